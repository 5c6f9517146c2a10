/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage_calls.c - what people ask about use of the past, and when it is summed up
 *
 * (1) Workers read and write, each with a connection of its own.
 * (2) A cluster whose private_data has "usage" shows a user the own use and that of accounts which the user
 *     coordinates, and nothing of the cluster; with "jobs" the same holds for sizes of jobs.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "spurdbd/rollup_cluster.h"
#include "spurdbd/serve.h"
#include "spurdbd/tables.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "wire/pb_unpack.h"

enum { EDGES_MOST = 4096, ROLLUP_FIRST_MS = 2000, ROLLUP_EVERY_MS = 5 * 60 * 1000 };

enum usage_kind { KIND_SUM, KIND_SIZES, KIND_RESERVATIONS, KIND_RECOMPUTE, KIND_ROLLUP };

struct seen_cluster {
    int64_t id;
    const char *name;
    const FeedHello *hello;
};

struct usage_call {
    uv_work_t work;
    struct dbd *dbd;
    struct rpc_call *call; /* NULL: nobody asked */
    enum usage_kind kind;
    struct arena arena;
    const ProtobufCMessage *request;
    struct history_viewer viewer;
    const char *here; /* the cluster that is meant when none is named; NULL: any */
    struct store *store;
    VEC(struct seen_cluster) clusters;
    const ListTablesReply *tables; /* read when something is private */
    ProtobufCMessage *reply;
    int code;
    struct err err;
};

static int64_t now_s(void)
{
    return clock_wall_us() / 1000000;
}

/* ---- which clusters ---- */

static int take_cluster(void *ctx, const struct store_row *row, struct err *err)
{
    struct usage_call *self = ctx;
    struct span name = store_row_bytes(row, 1), hello = store_row_bytes(row, 2);
    struct seen_cluster cluster = { .id = store_row_int(row, 0) };
    ProtobufCMessage *message = NULL;

    cluster.name = arena_strndup(&self->arena, name.ptr, name.len);
    if (hello.len &&
        pb_unpack(&feed_hello__descriptor, &self->arena, hello.ptr, hello.len, &message, err) < 0)
        return -(int)err->code;
    cluster.hello = (const FeedHello *)message;
    vec_push(&self->clusters, cluster);
    return 0;
}

static bool is_listed(char *const *list, size_t count, const char *name)
{
    for (size_t i = 0; name && i < count; i++) {
        if (str_eq(list[i], name))
            return true;
    }
    return false;
}

/* Keeps those that are meant: the named ones, all, or that of the leader here. */
static void choose_clusters(struct usage_call *self, char *const *names, size_t count, bool all)
{
    size_t kept = 0;

    for (size_t i = 0; i < self->clusters.len; i++) {
        struct seen_cluster cluster = self->clusters.items[i];
        if (all || (count ? is_listed(names, count, cluster.name)
                          : !self->here || str_eq(self->here, cluster.name)))
            self->clusters.items[kept++] = cluster;
    }
    self->clusters.len = kept;
}

static int read_clusters(struct usage_call *self)
{
    return store_each(self->store, "SELECT id, name, hello FROM cluster ORDER BY name, id",
                      STORE_NO_VALUES, take_cluster, self, &self->err);
}

/* ---- who sees what: (2) ---- */

static int read_tables(struct usage_call *self)
{
    ListTablesReply *tables = NULL;

    if (self->tables)
        return 0;
    if (tables_read(self->store, &self->arena, &(struct tables_want){ 0 }, &tables, &self->err) < 0)
        return -(int)self->err.code;
    self->tables = tables;
    return 0;
}

/* Does the viewer see everything of the cluster? AdminLevel in the database counts too. */
static int sees_all(struct usage_call *self, const struct seen_cluster *cluster, const char *word,
                    bool *out)
{
    *out = history_sees(&self->viewer, cluster->hello, word);
    if (*out)
        return 0;
    if (read_tables(self) < 0)
        return -(int)self->err.code;
    for (size_t i = 0; i < self->tables->n_users; i++) {
        const AcctUser *user = self->tables->users[i];
        if (self->viewer.name && str_eq(user->name, self->viewer.name) &&
            user->admin_level >= ADMIN_OPERATOR)
            *out = true;
    }
    return 0;
}

static bool sees_who(const struct usage_call *self, bool all, const struct meter_who *who)
{
    return all || who->uid == self->viewer.uid ||
           (self->tables && tables_coordinates(self->tables, self->viewer.name, who->account));
}

/* ---- sums ---- */

struct answer {
    struct usage_call *self;
    const UsageRequest *request;
    const struct seen_cluster *cluster;
    const struct meter *meter;
    bool all;
    uint32_t *who; /* by the number that the meter has: the number in the reply and one */
    VEC(UsageWho *) whos;
    VEC(char *) names;
    VEC(uint32_t) row_who, row_tres, row_span;
    VEC(int64_t) row_amount;
    VEC(UsageCluster *) clusters;
};

static bool is_wanted(char *const *list, size_t count, const char *name)
{
    return count == 0 || is_listed(list, count, name);
}

static uint32_t reply_who(struct answer *a, unsigned number)
{
    const struct meter_who *from = meter_who_at(a->meter, number);

    if (a->who[number])
        return a->who[number] - 1;
    struct arena *arena = &a->self->arena;
    UsageWho *who = ARENA_NEW(arena, UsageWho);
    usage_who__init(who);
    who->cluster = (char *)(uintptr_t)a->cluster->name;
    who->account = arena_strdup(arena, from->account);
    who->user = arena_strdup(arena, from->user);
    who->partition = arena_strdup(arena, from->partition);
    who->qos = arena_strdup(arena, from->qos);
    who->wckey = arena_strdup(arena, from->wckey);
    who->has_uid = true;
    who->uid = from->uid;
    vec_push(&a->whos, who);
    a->who[number] = (uint32_t)a->whos.len;
    return (uint32_t)a->whos.len - 1;
}

static uint32_t reply_tres(struct answer *a, const char *name)
{
    for (size_t i = 0; i < a->names.len; i++) {
        if (str_eq(a->names.items[i], name))
            return (uint32_t)i;
    }
    vec_push(&a->names, arena_strdup(&a->self->arena, name));
    return (uint32_t)a->names.len - 1;
}

static void add_used(void *ctx, enum meter_kind kind, size_t span, unsigned who, unsigned tres,
                     int64_t value)
{
    struct answer *a = ctx;
    const char *name = meter_tres_at(a->meter, tres);

    if (kind != METER_USED || !value || a->request->clusters_only)
        return;
    const struct meter_who *whose = meter_who_at(a->meter, who);
    if (!is_wanted(a->request->tres, a->request->n_tres, name) ||
        !is_wanted(a->request->users, a->request->n_users, whose->user) ||
        !sees_who(a->self, a->all, whose))
        return;
    vec_push(&a->row_who, reply_who(a, who));
    vec_push(&a->row_tres, reply_tres(a, name));
    vec_push(&a->row_span, (uint32_t)span);
    vec_push(&a->row_amount, value);
}

static void add_cluster(struct answer *a, size_t span, unsigned tres)
{
    UsageCluster *row = ARENA_NEW(&a->self->arena, UsageCluster);
    int64_t *values[METER_KINDS] = {
        [METER_TOTAL] = &row->total,   [METER_ALLOC] = &row->alloc,
        [METER_DOWN] = &row->down,     [METER_PDOWN] = &row->planned_down,
        [METER_RESV] = &row->reserved, [METER_PLANNED] = &row->planned,
        [METER_OVER] = &row->over
    };
    const char *name = meter_tres_at(a->meter, tres);
    int64_t any = 0;

    usage_cluster__init(row);
    for (unsigned kind = METER_TOTAL; kind < METER_KINDS; kind++)
        any |= *values[kind] = meter_value(a->meter, (enum meter_kind)kind, span, 0, tres);
    if (!any || !is_wanted(a->request->tres, a->request->n_tres, name))
        return;
    row->cluster = (char *)(uintptr_t)a->cluster->name;
    row->tres = arena_strdup(&a->self->arena, name);
    row->idle = MAX(
        row->total - row->alloc - row->down - row->planned_down - row->reserved - row->planned, 0);
    row->span = (uint32_t)span;
    row->has_total = row->has_alloc = row->has_down = row->has_planned_down = true;
    row->has_reserved = row->has_planned = row->has_over = row->has_idle = row->has_span = true;
    vec_push(&a->clusters, row);
}

static int sum_cluster(struct answer *a)
{
    struct usage_call *self = a->self;
    const UsageRequest *request = a->request;
    struct meter *meter = NULL;

    if (sees_all(self, a->cluster, "usage", &a->all) < 0 ||
        rollup_sum(self->store, a->cluster->id, request->edges_s, request->n_edges_s, now_s(),
                   &meter, &self->err) < 0)
        return -(int)self->err.code;
    a->meter = meter;
    a->who = ARENA_ARRAY(&self->arena, uint32_t, meter_who_count(meter) + 1);
    meter_each(meter, add_used, a);
    for (size_t span = 0; span + 1 < request->n_edges_s && a->all; span++) {
        for (unsigned tres = 0; tres < meter_tres_count(meter); tres++)
            add_cluster(a, span, tres);
    }
    meter_free(meter);
    return 0;
}

static int check_edges(const UsageRequest *request, struct err *err)
{
    if (request->n_edges_s < 2 || request->n_edges_s > EDGES_MOST)
        return err_set(err, ERR_INVALID, "a question about use has from 2 to %d times", EDGES_MOST);
    for (size_t i = 1; i < request->n_edges_s; i++) {
        if (request->edges_s[i] <= request->edges_s[i - 1])
            return err_set(err, ERR_INVALID, "the times of a question about use must grow");
    }
    return 0;
}

/* The arrays are the arena's from here on. */
#define MOVE(reply, field, vec)                                                          \
    do {                                                                                 \
        (reply)->n_##field = (vec).len;                                                  \
        if ((vec).len)                                                                   \
            (reply)->field =                                                             \
                arena_copy(&self->arena, (vec).items, (vec).len * sizeof(*(vec).items)); \
        vec_done(&(vec));                                                                \
    } while (0)

static int do_sum(struct usage_call *self)
{
    struct answer a = { .self = self, .request = (const void *)self->request };
    UsageReply *reply = ARENA_NEW(&self->arena, UsageReply);
    int code = check_edges(a.request, &self->err);

    usage_reply__init(reply);
    if (code == 0)
        code = read_clusters(self);
    choose_clusters(self, a.request->clusters, a.request->n_clusters, a.request->all_clusters);
    for (size_t i = 0; i < self->clusters.len && code == 0; i++) {
        a.cluster = &self->clusters.items[i];
        code = sum_cluster(&a);
        reply->has_hidden = true;
        reply->hidden = reply->hidden || (code == 0 && !a.all);
    }
    MOVE(reply, who, a.whos);
    MOVE(reply, tres, a.names);
    MOVE(reply, row_who, a.row_who);
    MOVE(reply, row_tres, a.row_tres);
    MOVE(reply, row_span, a.row_span);
    MOVE(reply, row_amount, a.row_amount);
    MOVE(reply, clusters, a.clusters);
    reply->has_now_s = true;
    reply->now_s = now_s();
    self->reply = &reply->base;
    return code;
}

/* ---- sizes of jobs ---- */

struct sizes {
    struct usage_call *self;
    const SizesRequest *request;
    const struct seen_cluster *cluster;
    const char *tres;
    bool all;
    struct hostlist nodes;
    struct map rows; /* → SizesRow */
    struct str key;
    int64_t until_s;
};

static int64_t tres_count(struct span text, const char *name)
{
    size_t len = strlen(name), at = 0;

    while (at < text.len) {
        const char *word = text.ptr + at;
        const char *comma = memchr(word, ',', text.len - at);
        size_t word_len = comma ? (size_t)(comma - word) : text.len - at;
        if (word_len > len && memcmp(word, name, len) == 0 && word[len] == '=')
            return strtoll(word + len + 1, NULL, 10);
        at += word_len + 1;
    }
    return 0;
}

static bool used_node(const struct sizes *s, struct span text)
{
    CLEANUP(hostlist_done) struct hostlist used = { 0 };
    CLEANUP(freep) char *list = mem_strndup(text.ptr, text.len);

    return !hostlist_count(&s->nodes) ||
           (text.len && hostlist_parse(&used, list, NULL) == 0 &&
            hostlist_intersect(&used, &s->nodes, NULL) == 0 && hostlist_count(&used) > 0);
}

static bool has_number(const uint32_t *list, size_t count, uint32_t number)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == number)
            return true;
    }
    return count == 0;
}

static bool fits(const struct sizes *s, const struct rollup_run *run)
{
    const SizesRequest *r = s->request;

    return run->part_count && run->start_s < r->end_s && run->end_s > r->start_s &&
           is_wanted(r->accounts, r->n_accounts, run->who.account) &&
           is_wanted(r->users, r->n_users, run->who.user) &&
           is_wanted(r->partitions, r->n_partitions, run->who.partition) &&
           is_wanted(r->wckeys, r->n_wckeys, run->who.wckey) &&
           has_number(r->gids, r->n_gids, run->gid) &&
           has_number(r->jobs, r->n_jobs, run->job_id) && used_node(s, run->nodes) &&
           sees_who(s->self, s->all, &run->who);
}

static SizesRow *size_row(struct sizes *s, const struct rollup_run *run, int64_t size)
{
    struct arena *arena = &s->self->arena;

    str_clear(&s->key);
    str_addf(&s->key, "%s\1%s\1%s\1%s\1%lld", s->cluster->name, run->who.account, run->who.wckey,
             run->who.partition, (long long)size);
    SizesRow *row = map_get(&s->rows, str_text(&s->key));
    if (row)
        return row;
    row = ARENA_NEW(arena, SizesRow);
    sizes_row__init(row);
    row->cluster = (char *)(uintptr_t)s->cluster->name;
    row->account = arena_strdup(arena, run->who.account);
    row->wckey = arena_strdup(arena, run->who.wckey);
    row->partition = arena_strdup(arena, run->who.partition);
    row->has_size = row->has_jobs = row->has_amount = row->has_started = row->has_waited_s = true;
    row->size = size;
    map_put(&s->rows, str_text(&s->key), row);
    return row;
}

static int take_size(void *ctx, const struct rollup_run *run, struct err *err)
{
    struct sizes *s = ctx;
    const SizesRequest *r = s->request;

    (void)err;
    if (!fits(s, run))
        return 0;
    SizesRow *row = size_row(s, run, tres_count(run->parts[run->part_count - 1].tres, s->tres));
    row->jobs++;
    for (size_t i = 0; i < run->part_count; i++) {
        int64_t lap = MIN(run->parts[i].to_s, s->until_s) - MAX(run->parts[i].from_s, r->start_s);
        if (lap > 0)
            row->amount += lap * tres_count(run->parts[i].tres, s->tres);
    }
    if (run->start_s >= r->start_s && run->eligible_s) {
        row->started++;
        row->waited_s += MAX(run->start_s - run->eligible_s, 0);
    }
    return 0;
}

static int size_clusters(struct sizes *s)
{
    struct usage_call *self = s->self;
    const SizesRequest *r = s->request;

    if (r->start_s >= r->end_s)
        return err_set(&self->err, ERR_INVALID, "the window ends before it begins");
    if (!str_is_empty(r->nodes) && hostlist_parse(&s->nodes, r->nodes, &self->err) < 0)
        return -(int)self->err.code;
    if (read_clusters(self) < 0)
        return -(int)self->err.code;
    choose_clusters(self, r->clusters, r->n_clusters, r->all_clusters);
    for (size_t i = 0; i < self->clusters.len; i++) {
        s->cluster = &self->clusters.items[i];
        if (sees_all(self, s->cluster, "jobs", &s->all) < 0 ||
            rollup_each_run(self->store, s->cluster->id, r->start_s, r->end_s, take_size, s,
                            &self->err) < 0)
            return -(int)self->err.code;
    }
    return 0;
}

static int do_sizes(struct usage_call *self)
{
    struct sizes s = { .self = self, .request = (const void *)self->request, .tres = "cpu" };
    SizesReply *reply = ARENA_NEW(&self->arena, SizesReply);

    sizes_reply__init(reply);
    map_init(&s.rows);
    if (!str_is_empty(s.request->tres))
        s.tres = s.request->tres;
    s.until_s = MIN(s.request->end_s, now_s());
    int code = size_clusters(&s);
    reply->rows = ARENA_ARRAY(&self->arena, SizesRow *, map_len(&s.rows) + 1);
    map_each (entry, &s.rows)
        reply->rows[reply->n_rows++] = entry->value;
    map_done(&s.rows);
    hostlist_done(&s.nodes);
    str_done(&s.key);
    self->reply = &reply->base;
    return code;
}

/* ---- reservations ---- */

struct reservations {
    struct usage_call *self;
    const ReservationsRequest *request;
    const struct seen_cluster *cluster;
    struct past *past;
    struct meter *meter;
    int64_t until_s;
    VEC(ReservationRow *) rows;
};

static int use_reservation(void *ctx, const struct rollup_run *run, struct err *err)
{
    struct reservations *r = ctx;

    (void)err;
    past_use_reservation(r->past, r->meter, run, r->request->start_s, r->until_s);
    return 0;
}

static void add_reservation(struct reservations *r, size_t i)
{
    const struct past_reservation *from = &r->past->reservations.items[i];
    struct arena *arena = &r->self->arena;
    ReservationRow *row = ARENA_NEW(arena, ReservationRow);
    char number[24];

    snprintf(number, sizeof(number), "%zu", i);
    unsigned who = meter_who(r->meter, &(struct meter_who){ .account = number });
    reservation_row__init(row);
    row->cluster = (char *)(uintptr_t)r->cluster->name;
    row->has_id = row->has_start_s = row->has_end_s = true;
    row->id = from->id;
    row->start_s = from->from_s;
    row->end_s = from->to_s;
    row->name = arena_strdup(arena, from->name);
    row->nodes = arena_strdup(arena, from->nodes);
    row->flags = arena_strdup(arena, from->flags);
    row->users = arena_strdup(arena, from->users);
    row->accounts = arena_strdup(arena, from->accounts);
    row->tres = ARENA_ARRAY(arena, ReservationTres *, meter_tres_count(r->meter) + 1);
    for (unsigned t = 0; t < meter_tres_count(r->meter); t++) {
        ReservationTres *tres = ARENA_NEW(arena, ReservationTres);
        reservation_tres__init(tres);
        tres->tres = arena_strdup(arena, meter_tres_at(r->meter, t));
        tres->has_total = tres->has_alloc = true;
        tres->total = meter_value(r->meter, METER_TOTAL, 0, who, t);
        tres->alloc = meter_value(r->meter, METER_USED, 0, who, t);
        if (tres->total || tres->alloc)
            row->tres[row->n_tres++] = tres;
    }
    vec_push(&r->rows, row);
}

static bool has_node(const struct past_reservation *resv, const struct hostlist *nodes)
{
    CLEANUP(hostlist_done) struct hostlist both = { 0 };

    return !hostlist_count(nodes) ||
           (resv->nodes[0] && hostlist_parse(&both, resv->nodes, NULL) == 0 &&
            hostlist_intersect(&both, nodes, NULL) == 0 && hostlist_count(&both) > 0);
}

static int list_cluster(struct reservations *r, const struct hostlist *nodes)
{
    struct usage_call *self = r->self;
    const ReservationsRequest *request = r->request;
    int64_t edges[] = { request->start_s, MAX(r->until_s, request->start_s + 1) };

    r->past = past_new();
    r->meter = meter_new(edges, 2);
    int code = past_read(r->past, self->store, r->cluster->id, request->start_s, request->end_s,
                         &self->err);
    if (code == 0) {
        past_begin_reservations(r->past, r->meter, request->start_s, r->until_s);
        code = rollup_each_run(self->store, r->cluster->id, request->start_s, request->end_s,
                               use_reservation, r, &self->err);
    }
    for (size_t i = 0; i < r->past->reservations.len && code == 0; i++) {
        if (is_wanted(request->names, request->n_names, r->past->reservations.items[i].name) &&
            has_node(&r->past->reservations.items[i], nodes))
            add_reservation(r, i);
    }
    meter_free(r->meter);
    past_free(r->past);
    return code;
}

static int do_reservations(struct usage_call *self)
{
    struct reservations r = { .self = self, .request = (const void *)self->request };
    ReservationsReply *reply = ARENA_NEW(&self->arena, ReservationsReply);
    CLEANUP(hostlist_done) struct hostlist nodes = { 0 };
    int code = 0;
    bool all;

    reservations_reply__init(reply);
    r.until_s = MIN(r.request->end_s, now_s());
    if (r.request->start_s >= r.request->end_s)
        return err_set(&self->err, ERR_INVALID, "the window ends before it begins");
    if (!str_is_empty(r.request->nodes) && hostlist_parse(&nodes, r.request->nodes, &self->err) < 0)
        return -(int)self->err.code;
    if (read_clusters(self) < 0)
        return -(int)self->err.code;
    choose_clusters(self, r.request->clusters, r.request->n_clusters, r.request->all_clusters);
    for (size_t i = 0; i < self->clusters.len && code == 0; i++) {
        r.cluster = &self->clusters.items[i];
        code = sees_all(self, r.cluster, "reservations", &all);
        if (code == 0 && all)
            code = list_cluster(&r, &nodes);
    }
    MOVE(reply, rows, r.rows);
    self->reply = &reply->base;
    return code;
}

/* ---- summing up ---- */

static int roll_clusters(struct usage_call *self, uint32_t *steps)
{
    for (size_t i = 0; i < self->clusters.len; i++) {
        bool more = true;
        for (; more && !self->dbd->stopping; ++*steps) {
            if (rollup_step(self->store, self->clusters.items[i].id, now_s(), &more, &self->err) <
                0)
                return -(int)self->err.code;
        }
    }
    return 0;
}

static int do_rollup(struct usage_call *self)
{
    uint32_t steps = 0;

    return read_clusters(self) < 0 ? -(int)self->err.code : roll_clusters(self, &steps);
}

static int do_recompute(struct usage_call *self)
{
    const RecomputeRequest *request = (const void *)self->request;
    RecomputeReply *reply = ARENA_NEW(&self->arena, RecomputeReply);

    recompute_reply__init(reply);
    if (read_clusters(self) < 0)
        return -(int)self->err.code;
    choose_clusters(self, (char *const *)&request->cluster, request->cluster ? 1 : 0,
                    !request->cluster);
    if (!self->clusters.len)
        return err_set(&self->err, ERR_INVALID, "no controller of such a cluster has been here");
    for (size_t i = 0; i < self->clusters.len; i++) {
        const struct seen_cluster *cluster = &self->clusters.items[i];
        if (!history_is_admin(&self->viewer, cluster->hello))
            return err_set(&self->err, ERR_PERMISSION,
                           "only an administrator of cluster '%s' may have its use summed up again",
                           cluster->name);
        if (rollup_again(self->store, cluster->id,
                         request->has_from_s ? request->from_s : INT64_MIN, &self->err) < 0)
            return -(int)self->err.code;
    }
    reply->has_steps = true;
    self->reply = &reply->base;
    return roll_clusters(self, &reply->steps);
}

/* ---- workers ---- */

static void do_work(uv_work_t *work)
{
    static int (*const doers[])(struct usage_call *) = { [KIND_SUM] = do_sum,
                                                         [KIND_SIZES] = do_sizes,
                                                         [KIND_RESERVATIONS] = do_reservations,
                                                         [KIND_RECOMPUTE] = do_recompute,
                                                         [KIND_ROLLUP] = do_rollup };
    struct usage_call *self = work->data;

    self->code = dbd_open(self->dbd, &self->store, &self->err);
    if (self->code == 0)
        self->code = doers[self->kind](self);
    store_close(TAKE(self->store));
}

static void work_done(uv_work_t *work, int status)
{
    struct usage_call *self = work->data;

    (void)status;
    if (self->call && self->code < 0)
        rpc_fail(self->call, &self->err);
    else if (self->call)
        rpc_reply(self->call, self->reply);
    else if (self->code < 0)
        log_warn("usage.rollup", "text=%s", self->err.text);
    if (self->kind == KIND_ROLLUP && !self->dbd->stopping)
        uv_timer_start(&self->dbd->rollup, self->dbd->rollup.timer_cb, ROLLUP_EVERY_MS, 0);
    vec_done(&self->clusters);
    arena_done(&self->arena);
    free(self);
}

static void start(struct dbd *dbd, enum usage_kind kind, struct rpc_call *call,
                  const ProtobufCMessage *request)
{
    struct usage_call *self = NEW(struct usage_call);
    struct feed *feed = dbd_feed(dbd, NULL);

    self->dbd = dbd;
    self->kind = kind;
    self->call = call;
    self->request = request;
    self->work.data = self;
    arena_init(&self->arena);
    self->here = feed ? arena_strdup(&self->arena, feed_cluster(feed)) : NULL;
    if (call) {
        dbd_viewer(dbd, call, &self->viewer);
        self->viewer.name = arena_strdup(&self->arena, self->viewer.name);
    }
    uv_queue_work(dbd->uv, &self->work, do_work, work_done);
}

void dbd_on_usage(struct rpc_call *call, const ProtobufCMessage *request)
{
    start(rpc_call_ctx(call), KIND_SUM, call, request);
}

void dbd_on_sizes(struct rpc_call *call, const ProtobufCMessage *request)
{
    start(rpc_call_ctx(call), KIND_SIZES, call, request);
}

void dbd_on_reservations(struct rpc_call *call, const ProtobufCMessage *request)
{
    start(rpc_call_ctx(call), KIND_RESERVATIONS, call, request);
}

void dbd_on_recompute(struct rpc_call *call, const ProtobufCMessage *request)
{
    start(rpc_call_ctx(call), KIND_RECOMPUTE, call, request);
}

static void on_timer(uv_timer_t *timer)
{
    start(timer->data, KIND_ROLLUP, NULL, NULL);
}

void dbd_rollup_start(struct dbd *dbd)
{
    dbd->rollup.data = dbd;
    uv_timer_start(&dbd->rollup, on_timer, ROLLUP_FIRST_MS, 0);
}
