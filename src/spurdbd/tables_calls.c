/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tables_calls.c - what people ask and change of accounts, and what leaders are told of it
 *
 * (1) Changes run one after the other, each in one transaction: what was there is read, the asker's right to
 *     each edit is looked at, the edits are made, and what is there then is checked as a whole.
 * (2) A cluster for which something is another then has one change more. Its leader is told how all is, at
 *     once or when it next says hello; the numbers say whether it knows.
 * (3) Where the configuration file has the accounts nothing is changed but by adopting them.
 * (4) When controllers have a later change than the database, or the database knew more of their log than they do,
 *     one of them was restored. Changes then wait until somebody says whose accounts hold (repair).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spurdbd/records.h"
#include "spurdbd/serve.h"
#include "spurdbd/tables.h"
#include "sys/clock.h"
#include "sys/log.h"
#include "wire/pb_unpack.h"

enum call_kind {
    CALL_LIST,
    CALL_RECORDS,
    CALL_CHANGE,
    CALL_ADOPT,
    CALL_RUNAWAY,
    CALL_REPAIR,
    CALL_SYNC,
    CALL_PURGE
};

enum { PURGE_FIRST_MS = 5000, PURGE_EACH_MS = 3600 * 1000 };

/* A cluster whose leader is to be told. */
struct told {
    char *cluster;
    FeedChange *change;
};

struct tables_call {
    uv_work_t work;
    enum call_kind kind;
    struct dbd *dbd;
    struct rpc_call *call; /* NULL: it is a sync */
    struct history_viewer viewer;
    const ListTablesRequest *list;
    const ChangeTablesRequest *change;
    const AdoptRequest *adopt;
    const ListRecordsRequest *records;
    const FixRunawayRequest *runaway;
    const RepairRequest *repair;
    FeedHello
        *leader; /* of a repair: what the leader said, with its accounts; NULL: none is connected */
    ListRecordsReply found;
    FixRunawayReply fixed;
    RepairReply repaired;
    char *cluster; /* of a sync */
    uint64_t leader_has;
    bool file_owns, running;
    struct arena arena;
    struct store *store;
    VEC(FeedHello *) hellos; /* the last of each cluster; in the arena */
    ListTablesReply *tables;
    VEC(struct told) told;
    uint64_t revision;
    AdoptReply adopted;
    int code;
    struct err err;
};

static void go_on(struct dbd *dbd);

/* ---- in a worker: who asks ---- */

static int take_hello(void *ctx, const struct store_row *row, struct err *err)
{
    struct tables_call *self = ctx;
    struct span bytes = store_row_bytes(row, 0);
    ProtobufCMessage *hello = NULL;

    if (pb_unpack(&feed_hello__descriptor, &self->arena, bytes.ptr, bytes.len, &hello, err) < 0)
        return -(int)err->code;
    vec_push(&self->hellos, (FeedHello *)hello);
    return 0;
}

static bool is_listed(char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; name && i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

static unsigned level_in(const struct tables_call *self, const FeedHello *hello)
{
    if (history_is_admin(&self->viewer, hello))
        return ADMIN_FULL;
    return is_listed(hello->operators, hello->n_operators, self->viewer.name) ? ADMIN_OPERATOR
                                                                              : ADMIN_NONE;
}

/* In the database, or in the file of that cluster; NULL: in those of all. */
static unsigned level_of(const struct tables_call *self, const char *cluster)
{
    unsigned own = self->viewer.admin ? ADMIN_FULL : ADMIN_NONE, least = ADMIN_FULL;
    bool any = false;

    if (self->viewer.plain)
        return ADMIN_NONE;
    for (size_t i = 0; i < self->tables->n_users; i++) {
        const AcctUser *user = self->tables->users[i];
        if (self->viewer.name && str_eq(user->name, self->viewer.name))
            own = MAX(own, user->admin_level);
    }
    for (size_t i = 0; i < self->hellos.len; i++) {
        const FeedHello *hello = self->hellos.items[i];
        if (cluster && !str_eq(hello->cluster, cluster))
            continue;
        any = true;
        least = MIN(least, level_in(self, hello));
    }
    return MAX(own, any ? least : (unsigned)ADMIN_NONE);
}

static const FeedHello *hello_of(const struct tables_call *self, const char *cluster)
{
    const FeedHello *found = NULL;

    for (size_t i = 0; i < self->hellos.len; i++) {
        if (!cluster || str_eq(self->hellos.items[i]->cluster, cluster))
            found = self->hellos.items[i];
    }
    return found;
}

static int read_all(struct tables_call *self, const struct tables_want *want)
{
    vec_clear(&self->hellos);
    if (store_each(self->store, "SELECT hello FROM cluster ORDER BY heard_us", STORE_NO_VALUES,
                   take_hello, self, &self->err) < 0 ||
        tables_read(self->store, &self->arena, want, &self->tables, &self->err) < 0)
        return -(int)self->err.code;
    return 0;
}

/* ---- in a worker: lists ---- */

static void do_list(struct tables_call *self)
{
    struct tables_want want = { self->list->with_deleted, self->list->transactions };
    struct tables_asker asker = { .name = self->viewer.name };

    if (read_all(self, &want) < 0) {
        self->code = -(int)self->err.code;
        return;
    }
    asker.level = level_of(self, NULL);
    const FeedHello *any = hello_of(self, NULL);
    for (size_t i = 0; i < self->tables->n_clusters; i++) {
        AcctClusterRow *row = self->tables->clusters[i];
        const FeedHello *hello = hello_of(self, row->name);
        row->has_registered = row->has_file_owns = true;
        row->registered = hello != NULL;
        row->file_owns = hello && hello->file_owns && row->changes == 0;
        row->control_host = hello ? hello->control_host : NULL;
    }
    self->tables->asker = (char *)(uintptr_t)self->viewer.name;
    self->tables->has_asker_level = true;
    self->tables->asker_level = asker.level;
    self->tables->private_data = any ? any->private_data : NULL;
    tables_hide(self->tables, &asker, self->tables->private_data);
}

/* PrivateData=events keeps nodes, and reservations, from all but operators. */
static void do_records(struct tables_call *self)
{
    if (read_all(self, &(struct tables_want){ 0 }) < 0) {
        self->code = -(int)self->err.code;
        return;
    }
    for (size_t i = 0; i < self->hellos.len; i++) {
        const FeedHello *hello = self->hellos.items[i];
        if (history_sees(&self->viewer, hello, self->records->events ? "events" : "reservations") ||
            level_of(self, hello->cluster) >= ADMIN_OPERATOR)
            continue;
        self->code =
            err_set(&self->err, ERR_PERMISSION,
                    "cluster '%s' shows these to operators only (private_data)", hello->cluster);
        return;
    }
    self->code = records_read(self->store, self->records, clock_wall_us(), &self->arena,
                              &self->found, &self->err);
}

/* ---- in a worker: changes ---- */

static int end_runaway(struct tables_call *self)
{
    if (read_all(self, &(struct tables_want){ 0 }) < 0)
        return -(int)self->err.code;
    if (level_of(self, NULL) < ADMIN_OPERATOR)
        return err_set(&self->err, ERR_PERMISSION,
                       "only an operator or administrator may end runs in the history");
    self->fixed.has_fixed = true;
    return records_end_runs(self->store, self->runaway, &self->fixed.fixed, &self->err);
}

/* (3) */
static int may_be_changed(const struct tables_call *self, const AcctEdit *edit, struct err *err)
{
    const char *cluster = edit->assoc ? edit->assoc->cluster : NULL;
    const FeedHello *file = NULL;
    bool free = false;

    for (size_t i = 0; i < self->tables->n_clusters; i++) {
        const AcctClusterRow *row = self->tables->clusters[i];
        const FeedHello *hello = hello_of(self, row->name);
        if (cluster && !str_eq(row->name, cluster))
            continue;
        if (hello && hello->file_owns && row->changes == 0)
            file = hello;
        else
            free = true;
    }
    if (!file || free || edit->cluster)
        return 0;
    return err_set(err, ERR_PERMISSION,
                   "accounts of cluster '%s' come from its configuration file ([[accounts]], "
                   "[[users]], [[qos]]): change them there, or give them to the database with "
                   "'spur accounting adopt'",
                   file->cluster);
}

/* (4) */
static int needs_repair(const struct tables_call *self, const AcctEdit *edit, struct err *err)
{
    const char *cluster = edit->assoc ? edit->assoc->cluster : NULL;

    for (size_t i = 0; i < self->tables->n_clusters; i++) {
        const AcctClusterRow *row = self->tables->clusters[i];
        if (!str_is_empty(row->repair) && (!cluster || str_eq(row->name, cluster)))
            return err_set(err, ERR_PERMISSION,
                           "accounts of cluster '%s' cannot be changed: %s. See 'spur accounting "
                           "status', then run 'spur accounting repair --from database' or '--from "
                           "controllers'",
                           row->name, row->repair);
    }
    return 0;
}

static struct span packed_config(const ListTablesReply *tables, const char *cluster,
                                 struct arena *arena, Config **out)
{
    *out = tables_config(tables, cluster, arena);
    size_t len = config__get_packed_size(*out);
    uint8_t *bytes = arena_alloc(arena, len + 1);

    config__pack(*out, bytes);
    return (struct span){ (char *)bytes, len };
}

static void tell(struct tables_call *self, const char *cluster, Config *config, uint64_t number,
                 bool adopt)
{
    FeedChange *change = ARENA_NEW(&self->arena, FeedChange);

    feed_change__init(change);
    change->has_number = change->has_adopt = true;
    change->number = number;
    change->adopt = adopt;
    change->accounts = config;
    struct told told = { arena_strdup(&self->arena, cluster), change };
    vec_push(&self->told, told);
}

static uint64_t changes_of(const ListTablesReply *tables, const char *cluster)
{
    for (size_t i = 0; i < tables->n_clusters; i++) {
        if (str_eq(tables->clusters[i]->name, cluster))
            return tables->clusters[i]->changes;
    }
    return 0;
}

/* (2) */
static int number_changes(struct tables_call *self, const ListTablesReply *before,
                          const ListTablesReply *after, const char *adopted)
{
    for (size_t i = 0; i < after->n_clusters; i++) {
        const char *cluster = after->clusters[i]->name;
        Config *was, *now;
        struct span one = packed_config(before, cluster, &self->arena, &was);
        struct span two = packed_config(after, cluster, &self->arena, &now);
        bool adopt = str_eq(cluster, adopted);
        const FeedHello *hello = hello_of(self, cluster);
        bool file = hello && hello->file_owns && after->clusters[i]->changes == 0;
        if ((file && !adopt) ||
            (!adopt && one.len == two.len && memcmp(one.ptr, two.ptr, one.len) == 0))
            continue;
        if (tables_next_change(self->store, cluster, &self->err) < 0)
            return -(int)self->err.code;
        tell(self, cluster, now, after->clusters[i]->changes + 1, adopt);
    }
    return 0;
}

static int make_edits(struct tables_call *self, AcctEdit *const *edits, size_t count,
                      const char *adopted)
{
    struct err *err = &self->err;
    ListTablesReply *before = self->tables, *after;
    const char *actor = self->viewer.name ? self->viewer.name : "unknown";
    int64_t now_us = clock_wall_us();

    for (size_t i = 0; i < count; i++) {
        struct tables_asker asker = {
            self->viewer.name, level_of(self, edits[i]->assoc ? edits[i]->assoc->cluster : NULL)
        };
        if ((!adopted &&
             (may_be_changed(self, edits[i], err) < 0 || needs_repair(self, edits[i], err) < 0)) ||
            tables_may(before, edits[i], &asker, err) < 0 ||
            tables_edit(self->store, edits[i], actor, now_us, err) < 0)
            return -(int)err->code;
    }
    if (tables_read(self->store, &self->arena, &(struct tables_want){ 0 }, &after, err) < 0 ||
        tables_check(after, err) < 0 || number_changes(self, before, after, adopted) < 0 ||
        tables_next_revision(self->store, &self->revision, err) < 0)
        return -(int)err->code;
    return 0;
}

static int change_all(struct tables_call *self)
{
    const ChangeTablesRequest *request = self->change;

    if (read_all(self, &(struct tables_want){ 0 }) < 0)
        return -(int)self->err.code;
    if (request->has_revision && request->revision != self->tables->revision)
        return err_set(&self->err, ERR_TRANSITION,
                       "somebody else changed accounts meanwhile: try again");
    return make_edits(self, request->edits, request->n_edits, NULL);
}

static int adopt_all(struct tables_call *self)
{
    AcctEdit *edits, **list;

    if (read_all(self, &(struct tables_want){ 0 }) < 0)
        return -(int)self->err.code;
    const FeedHello *hello =
        hello_of(self, str_is_empty(self->adopt->cluster) ? NULL : self->adopt->cluster);
    if (!hello)
        return err_set(&self->err, ERR_INVALID, "no controller of such a cluster has been here");
    if (!hello->file_owns || !hello->accounts)
        return err_set(&self->err, ERR_INVALID,
                       "cluster '%s' has no accounts in its configuration file: they are the "
                       "database's already",
                       hello->cluster);
    if (changes_of(self->tables, hello->cluster))
        return err_set(&self->err, ERR_INVALID,
                       "accounts of cluster '%s' are the database's already", hello->cluster);
    if (level_of(self, hello->cluster) < ADMIN_FULL)
        return err_set(&self->err, ERR_PERMISSION, "only an administrator may adopt accounts");
    size_t count =
        tables_adopt(self->tables, hello->accounts, hello->cluster, &self->arena, &edits);
    list = ARENA_ARRAY(&self->arena, AcctEdit *, count + 1);
    for (size_t i = 0; i < count; i++)
        list[i] = &edits[i];
    self->adopted.has_accounts = self->adopted.has_users = self->adopted.has_qos = true;
    self->adopted.accounts = (uint32_t)hello->accounts->n_accounts;
    self->adopted.users = (uint32_t)hello->accounts->n_users;
    self->adopted.qos = (uint32_t)hello->accounts->n_qos;
    return make_edits(self, list, count, hello->cluster);
}

static bool is_broken(const struct tables_call *self, const char *cluster)
{
    for (size_t i = 0; i < self->tables->n_clusters; i++) {
        if (str_eq(self->tables->clusters[i]->name, cluster))
            return !str_is_empty(self->tables->clusters[i]->repair);
    }
    return false;
}

static bool config_has(const Config *config, const ConfUser *limits)
{
    if (str_is_empty(limits->name)) {
        for (size_t i = 0; i < config->n_accounts; i++) {
            if (str_eq(config->accounts[i]->name, limits->account))
                return true;
        }
        return str_eq(limits->account, "root");
    }
    for (size_t i = 0; i < config->n_users; i++) {
        const ConfUser *user = config->users[i];
        if (str_eq(user->name, limits->name) && str_eq(user->account, limits->account) &&
            str_eq(user->partition ? user->partition : "",
                   limits->partition ? limits->partition : ""))
            return true;
    }
    return str_eq(limits->name, "root");
}

/* The database gets what the controllers have: what they lack goes, what it lacks comes. */
static int take_from_controllers(struct tables_call *self, const char *cluster)
{
    const Config *config = self->leader->accounts;
    AcctEdit *edits;
    struct err *err = &self->err;
    const char *actor = self->viewer.name ? self->viewer.name : "unknown";
    size_t count = tables_adopt(self->tables, config, cluster, &self->arena, &edits);
    ListTablesReply *after;

    for (size_t i = 0; i < self->tables->n_assocs; i++) {
        AcctEdit gone = ACCT_EDIT__INIT;
        gone.has_remove = gone.remove = true;
        gone.assoc = self->tables->assocs[i];
        gone.action = (char *)"Repair";
        gone.what = gone.assoc->limits->account;
        if (str_eq(gone.assoc->cluster, cluster) && !config_has(config, gone.assoc->limits) &&
            tables_edit(self->store, &gone, actor, clock_wall_us(), err) < 0)
            return -(int)err->code;
    }
    for (size_t i = 0; i < count; i++) {
        if (tables_edit(self->store, &edits[i], actor, clock_wall_us(), err) < 0)
            return -(int)err->code;
    }
    if (tables_read(self->store, &self->arena, &(struct tables_want){ 0 }, &after, err) < 0 ||
        tables_check(after, err) < 0 || tables_next_revision(self->store, &self->revision, err) < 0)
        return -(int)err->code;
    return 0;
}

/* (4) */
static int repair_cluster(struct tables_call *self)
{
    Config *config;

    if (read_all(self, &(struct tables_want){ 0 }) < 0)
        return -(int)self->err.code;
    const char *cluster = self->leader ? self->leader->cluster : self->repair->cluster;
    if (level_of(self, NULL) < ADMIN_FULL)
        return err_set(&self->err, ERR_PERMISSION, "only an administrator may repair accounts");
    if (!self->leader)
        return err_set(&self->err, ERR_INVALID,
                       "no controller of the cluster is connected: accounts are repaired when both "
                       "sides are there");
    if (!is_broken(self, cluster))
        return err_set(&self->err, ERR_INVALID,
                       "accounts of cluster '%s' need no repair: database and controllers agree",
                       cluster);
    bool from_database = self->repair->from_database;
    uint64_t own = changes_of(self->tables, cluster), theirs = self->leader->changes;
    uint64_t number = from_database ? MAX(own, theirs) + 1 : MAX(own, theirs);
    if (!from_database && !self->leader->accounts)
        return err_set(&self->err, ERR_INVALID, "the controllers have no accounts to take");
    if ((!from_database && take_from_controllers(self, cluster) < 0) ||
        tables_repaired(self->store, cluster, number, &self->err) < 0)
        return -(int)self->err.code;
    if (from_database || number > theirs) {
        ListTablesReply *after;
        if (tables_read(self->store, &self->arena, &(struct tables_want){ 0 }, &after, &self->err) <
            0)
            return -(int)self->err.code;
        packed_config(after, cluster, &self->arena, &config);
        tell(self, cluster, config, number, true);
    }
    self->repaired.cluster = arena_strdup(&self->arena, cluster);
    self->repaired.has_changes = true;
    self->repaired.changes = number;
    return 0;
}

static int sync_leader(struct tables_call *self)
{
    Config *config;

    if (tables_register(self->store, self->cluster, clock_wall_us(), &self->err) < 0 ||
        read_all(self, &(struct tables_want){ 0 }) < 0)
        return -(int)self->err.code;
    uint64_t number = changes_of(self->tables, self->cluster);
    if (number < self->leader_has) /* (4) */
        return tables_need_repair(self->store, self->cluster,
                                  "the controllers have a later change of accounts than the "
                                  "database, which was restored from an older copy",
                                  &self->err);
    if (number == self->leader_has || is_broken(self, self->cluster))
        return 0;
    packed_config(self->tables, self->cluster, &self->arena, &config);
    /* A change that adopted may have been lost on its way. */
    tell(self, self->cluster, config, number, true);
    return 0;
}

static void do_change(struct tables_call *self)
{
    if (store_begin(self->store, &self->err) < 0) {
        self->code = -(int)self->err.code;
        return;
    }
    self->code = self->kind == CALL_SYNC      ? sync_leader(self)
                 : self->kind == CALL_ADOPT   ? adopt_all(self)
                 : self->kind == CALL_RUNAWAY ? end_runaway(self)
                 : self->kind == CALL_REPAIR  ? repair_cluster(self)
                                              : change_all(self);
    if (self->code == 0)
        self->code = store_commit(self->store, &self->err);
    if (self->code < 0)
        store_rollback(self->store);
}

/* Piece by piece; what comes meanwhile waits for no more than one. */
static void do_purge(struct tables_call *self)
{
    uint64_t removed = 0;
    bool left = true;

    while (left && self->code == 0 && !self->dbd->stopping)
        self->code = purge_some(self->store, &self->dbd->purge, clock_wall_us(), &left, &removed,
                                &self->err);
    if (removed)
        log_info("history.purged", "runs=%llu", (unsigned long long)removed);
}

static void do_work(uv_work_t *work)
{
    struct tables_call *self = work->data;

    if (dbd_open(self->dbd, &self->store, &self->err) < 0)
        self->code = -(int)self->err.code;
    else if (self->kind == CALL_LIST)
        do_list(self);
    else if (self->kind == CALL_RECORDS)
        do_records(self);
    else if (self->kind == CALL_PURGE)
        do_purge(self);
    else
        do_change(self);
}

/* ---- on the loop ---- */

static void reply(struct tables_call *self)
{
    ChangeTablesReply changed = CHANGE_TABLES_REPLY__INIT;
    CLEANUP(str_done) struct str shown = { 0 };

    if (self->code < 0) {
        rpc_fail(self->call, &self->err);
    } else if (self->kind == CALL_LIST) {
        for (size_t i = 0; i < self->tables->n_clusters; i++) {
            AcctClusterRow *row = self->tables->clusters[i];
            row->has_connected = true;
            row->connected = dbd_feed(self->dbd, row->name) != NULL;
        }
        store_add_shown(&shown, self->dbd->url);
        self->tables->database = (char *)(uintptr_t)str_text(&shown);
        self->tables->has_now_us = self->tables->has_start_us = true;
        self->tables->now_us = clock_wall_us();
        self->tables->start_us = self->dbd->start_us;
        rpc_reply(self->call, &self->tables->base);
    } else if (self->kind == CALL_RECORDS) {
        rpc_reply(self->call, &self->found.base);
    } else if (self->kind == CALL_RUNAWAY) {
        rpc_reply(self->call, &self->fixed.base);
    } else if (self->kind == CALL_REPAIR) {
        rpc_reply(self->call, &self->repaired.base);
    } else if (self->kind == CALL_ADOPT) {
        rpc_reply(self->call, &self->adopted.base);
    } else {
        changed.has_revision = true;
        changed.revision = self->revision;
        rpc_reply(self->call, &changed.base);
    }
}

static void call_free(struct tables_call *self)
{
    store_close(self->store);
    vec_done(&self->hellos);
    vec_done(&self->told);
    arena_done(&self->arena);
    free(self->cluster);
    if (self->leader)
        feed_hello__free_unpacked(self->leader, NULL);
    free(self);
}

static void sync_failed(struct tables_call *self)
{
    struct feed *feed = dbd_feed(self->dbd, self->cluster);

    log_error(self->kind == CALL_PURGE ? "history.purge" : "accounts.sync", "cluster=%s text=%s",
              self->cluster ? self->cluster : "all", self->err.text);
    if (feed && self->kind == CALL_SYNC && !self->dbd->stopping)
        feed_sync_later(feed);
}

static void work_done(uv_work_t *work, int status)
{
    struct tables_call *self = work->data;
    struct dbd *dbd = self->dbd;

    (void)status;
    for (size_t i = 0; i < self->told.len && self->code == 0 && !dbd->stopping; i++) {
        struct feed *feed = dbd_feed(dbd, self->told.items[i].cluster);
        if (feed)
            feed_change(feed, self->told.items[i].change);
    }
    if (self->call)
        reply(self);
    else if (self->code < 0)
        sync_failed(self);
    for (size_t i = 0; i < dbd->changes.len; i++) {
        if (dbd->changes.items[i] == self)
            vec_remove(&dbd->changes, i);
    }
    if (!dbd->changes.len)
        vec_done(&dbd->changes);
    call_free(self);
    go_on(dbd);
}

/* (1) */
static void go_on(struct dbd *dbd)
{
    struct tables_call *first = dbd->changes.len ? dbd->changes.items[0] : NULL;

    if (!first || first->running)
        return;
    first->running = true;
    uv_queue_work(dbd->uv, &first->work, do_work, work_done);
}

static struct tables_call *new_call(struct dbd *dbd, enum call_kind kind, struct rpc_call *call)
{
    struct tables_call *self = NEW(struct tables_call);

    self->dbd = dbd;
    self->kind = kind;
    self->call = call;
    self->work.data = self;
    adopt_reply__init(&self->adopted);
    list_records_reply__init(&self->found);
    fix_runaway_reply__init(&self->fixed);
    repair_reply__init(&self->repaired);
    arena_init(&self->arena);
    if (call) {
        dbd_viewer(dbd, call, &self->viewer);
        self->viewer.name = arena_strdup(&self->arena, self->viewer.name);
    }
    return self;
}

void dbd_on_tables(struct rpc_call *call, const ProtobufCMessage *request)
{
    struct tables_call *self = new_call(rpc_call_ctx(call), CALL_LIST, call);

    self->list = (const void *)request;
    uv_queue_work(self->dbd->uv, &self->work, do_work, work_done);
}

void dbd_on_change(struct rpc_call *call, const ProtobufCMessage *request)
{
    struct tables_call *self = new_call(rpc_call_ctx(call), CALL_CHANGE, call);

    self->change = (const void *)request;
    vec_push(&self->dbd->changes, self);
    go_on(self->dbd);
}

void dbd_on_adopt(struct rpc_call *call, const ProtobufCMessage *request)
{
    struct tables_call *self = new_call(rpc_call_ctx(call), CALL_ADOPT, call);

    self->adopt = (const void *)request;
    vec_push(&self->dbd->changes, self);
    go_on(self->dbd);
}

void dbd_on_records(struct rpc_call *call, const ProtobufCMessage *request)
{
    struct tables_call *self = new_call(rpc_call_ctx(call), CALL_RECORDS, call);

    self->records = (const void *)request;
    uv_queue_work(self->dbd->uv, &self->work, do_work, work_done);
}

void dbd_on_runaway(struct rpc_call *call, const ProtobufCMessage *request)
{
    struct tables_call *self = new_call(rpc_call_ctx(call), CALL_RUNAWAY, call);

    self->runaway = (const void *)request;
    vec_push(&self->dbd->changes, self);
    go_on(self->dbd);
}

void dbd_on_repair(struct rpc_call *call, const ProtobufCMessage *request)
{
    struct tables_call *self = new_call(rpc_call_ctx(call), CALL_REPAIR, call);
    const char *cluster = ((const RepairRequest *)(const void *)request)->cluster;
    struct feed *feed = dbd_feed(self->dbd, str_is_empty(cluster) ? NULL : cluster);

    self->repair = (const void *)request;
    if (feed) {
        size_t len = feed_hello__get_packed_size(feed_hello(feed));
        CLEANUP(freep) uint8_t *packed = mem_new(len + 1);
        feed_hello__pack(feed_hello(feed), packed);
        self->leader = feed_hello__unpack(NULL, len, packed);
    }
    vec_push(&self->dbd->changes, self);
    go_on(self->dbd);
}

void dbd_tables_sync(struct dbd *dbd, const struct feed *feed)
{
    struct tables_call *self = new_call(dbd, CALL_SYNC, NULL);

    self->cluster = mem_strdup(feed_hello(feed)->cluster);
    self->leader_has = feed_hello(feed)->changes;
    vec_push(&dbd->changes, self);
    go_on(dbd);
}

static void on_purge(uv_timer_t *timer)
{
    struct dbd *dbd = timer->data;

    vec_push(&dbd->changes, new_call(dbd, CALL_PURGE, NULL));
    go_on(dbd);
    uv_timer_start(timer, on_purge, PURGE_EACH_MS, 0);
}

void dbd_purge_start(struct dbd *dbd)
{
    const struct purge *purge = &dbd->purge;

    dbd->purging.data = dbd;
    if (purge->job_s || purge->step_s || purge->event_s || purge->resv_s || purge->txn_s)
        uv_timer_start(&dbd->purging, on_purge, PURGE_FIRST_MS, 0);
}
