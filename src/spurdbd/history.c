/* SPDX-License-Identifier: Apache-2.0 */
/*
 * history.c - what people ask of the history
 *
 * (1) No index answers "which runs overlap this window". A run that overlaps it ended before the end of the
 *     window plus the longest time that any run of that age took; table `span` knows that. So a look into
 *     the past reads what ended around then and not everything since.
 * (2) Runs that have not ended have t_end = 0, which the same index finds.
 * (3) What a viewer may not see is left out of the selection, so its number is not told either.
 * (4) "cluster + 0" keeps SQLite from the index that begins with the cluster, which selects nothing.
 * (5) A partial index is found by its own condition.
 */
#include "spurdbd/history.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/hostlist.h"
#include "base/map.h"
#include "base/vec.h"
#include "schema/job_view.h"
#include "schema/names.h"
#include "schema/reasons.h"
#include "spurdbd/usage.h"
#include "wire/pb_add.h"
#include "wire/pb_unpack.h"

enum {
    FIELD_REPLY_JOBS = 1,
    FIELD_JOB = 4,
    STEP_BATCH = 0xfffffffb,
    VALUES_MOST = 30000,
    TOGETHER_FIRST = 128,
    TOGETHER_MOST = 1024
};

#define MONTH_US (INT64_C(30) * 86400 * 1000000)

struct run {
    int64_t db_id;
    int64_t cluster;
    uint32_t job_id, run;
};

struct cluster {
    int64_t id;
    char *name;
    FeedHello *hello; /* in the arena; NULL: it never said anything */
    bool admin;       /* the viewer is one of its administrators */
    bool all;         /* the viewer may see jobs of everybody */
};

struct history {
    struct store *store;
    const ListHistoryRequest *request;
    const struct history_viewer *viewer;
    struct arena arena, row_arena;
    VEC(struct cluster) clusters;
    VEC(struct run) runs;
    size_t at;
    size_t together; /* runs that are read by one question */
    struct hostlist nodes;
    struct str sql;
    VEC(struct store_value) values;
    const char *running_cluster;
    StepInfo *const *running;
    size_t running_count;
    struct str packed;
};

struct history *history_new(struct store *store, const ListHistoryRequest *request,
                            const struct history_viewer *viewer)
{
    struct history *history = NEW(struct history);

    history->store = store;
    history->request = request;
    history->viewer = viewer;
    history->together = TOGETHER_FIRST;
    arena_init(&history->arena);
    arena_init(&history->row_arena);
    return history;
}

void history_free(struct history *history)
{
    if (!history)
        return;
    vec_done(&history->clusters);
    vec_done(&history->runs);
    vec_done(&history->values);
    hostlist_done(&history->nodes);
    str_done(&history->sql);
    str_done(&history->packed);
    arena_done(&history->arena);
    arena_done(&history->row_arena);
    free(history);
}

void history_running(struct history *history, const char *cluster, StepInfo *const *steps,
                     size_t count)
{
    history->running_cluster = cluster;
    history->running = steps;
    history->running_count = count;
}

size_t history_count(const struct history *history)
{
    return history->runs.len;
}

bool history_more(const struct history *history)
{
    return history->at < history->runs.len;
}

/* ---- clusters, and what the viewer is there ---- */

static bool in_list(char *const *list, size_t count, const char *name)
{
    for (size_t i = 0; name && i < count; i++) {
        if (strcmp(list[i], name) == 0)
            return true;
    }
    return false;
}

static bool has_word(const char *words, const char *word)
{
    const char *cursor = words;
    struct span at;

    while (cursor && str_next(&cursor, ", ", &at)) {
        if (span_ieq(at, word))
            return true;
    }
    return false;
}

bool history_sees(const struct history_viewer *viewer, const FeedHello *hello, const char *word)
{
    return !hello || history_is_admin(viewer, hello) ||
           (!viewer->plain && in_list(hello->operators, hello->n_operators, viewer->name)) ||
           !has_word(hello->private_data, word);
}

bool history_is_admin(const struct history_viewer *viewer, const FeedHello *hello)
{
    if (viewer->plain)
        return false;
    return viewer->admin || (hello && ((hello->has_admin_uid && hello->admin_uid == viewer->uid) ||
                                       in_list(hello->admins, hello->n_admins, viewer->name)));
}

static int take_cluster(void *ctx, const struct store_row *row, struct err *err)
{
    struct history *history = ctx;
    struct span name = store_row_bytes(row, 1), hello = store_row_bytes(row, 2);
    struct cluster cluster = { .id = store_row_int(row, 0) };
    ProtobufCMessage *message = NULL;

    cluster.name = arena_strndup(&history->arena, name.ptr, name.len);
    if (hello.len && pb_unpack(&feed_hello__descriptor, &history->arena, hello.ptr, hello.len,
                               &message, err) < 0)
        return -(int)err->code;
    cluster.hello = (FeedHello *)message;
    cluster.admin = history_is_admin(history->viewer, cluster.hello);
    cluster.all = history_sees(history->viewer, cluster.hello, "jobs");
    vec_push(&history->clusters, cluster);
    return 0;
}

static const struct cluster *cluster_of(const struct history *history, int64_t id)
{
    vec_each (const struct cluster, cluster, &history->clusters) {
        if (cluster->id == id)
            return cluster;
    }
    return NULL;
}

/* ---- the text of a selection ---- */

static void add_value(struct history *history, struct store_value value)
{
    vec_push(&history->values, value);
    str_addf(&history->sql, "?%zu", history->values.len);
}

static void add_number(struct history *history, const char *before, int64_t number)
{
    str_add(&history->sql, before);
    add_value(history, STORE_INT(number));
}

static void add_texts(struct history *history, const char *column, char *const *list, size_t count)
{
    if (!count)
        return;
    str_addf(&history->sql, " AND %s IN (", column);
    for (size_t i = 0; i < count; i++) {
        str_add(&history->sql, i ? ", " : "");
        add_value(history, STORE_TEXT(list[i]));
    }
    str_add_char(&history->sql, ')');
}

static void add_numbers(struct history *history, const char *column, const uint32_t *list,
                        size_t count)
{
    str_addf(&history->sql, "%s IN (", column);
    for (size_t i = 0; i < count; i++)
        add_number(history, i ? ", " : "", list[i]);
    str_add_char(&history->sql, ')');
}

static void add_users(struct history *history)
{
    const ListHistoryRequest *request = history->request;

    if (request->n_uids && request->n_users) {
        str_add(&history->sql, " AND (");
        add_numbers(history, "uid", request->uids, request->n_uids);
        str_add(&history->sql, " OR user_name IN (");
        for (size_t i = 0; i < request->n_users; i++) {
            str_add(&history->sql, i ? ", " : "");
            add_value(history, STORE_TEXT(request->users[i]));
        }
        str_add(&history->sql, "))");
    } else if (request->n_uids) {
        str_add(&history->sql, " AND ");
        add_numbers(history, "uid", request->uids, request->n_uids);
    } else {
        add_texts(history, "user_name", request->users, request->n_users);
    }
    if (request->n_gids) {
        str_add(&history->sql, " AND ");
        add_numbers(history, "gid", request->gids, request->n_gids);
    }
    if (request->n_assocs) {
        str_add(&history->sql, " AND ");
        add_numbers(history, "assoc_id", request->assocs, request->n_assocs);
    }
}

/* Those that were named; all if asked for; else the viewer's own. */
static bool wants_cluster(const struct history *history, const char *name)
{
    const ListHistoryRequest *request = history->request;

    if (request->n_clusters)
        return in_list(request->clusters, request->n_clusters, name);
    return request->all_clusters || !history->viewer->cluster ||
           str_eq(history->viewer->cluster, name);
}

/* (3) */
static void add_clusters(struct history *history)
{
    bool any = false;

    str_add(&history->sql, " AND (");
    vec_each (const struct cluster, cluster, &history->clusters) {
        if (!wants_cluster(history, cluster->name))
            continue;
        add_number(history, any ? " OR (cluster + 0 = " : "(cluster + 0 = ", cluster->id); /* (4) */
        if (!cluster->all)
            add_number(history, " AND uid = ", history->viewer->uid);
        str_add_char(&history->sql, ')');
        any = true;
    }
    str_add(&history->sql, any ? ")" : "1 = 0)");
}

static void add_range(struct history *history, const char *column, bool has_min, int64_t min,
                      bool has_max, int64_t max)
{
    if (has_min) {
        str_addf(&history->sql, " AND %s >= ", column);
        add_value(history, STORE_INT(min));
    }
    if (has_max) {
        str_addf(&history->sql, " AND %s <= ", column);
        add_value(history, STORE_INT(max));
    }
}

static void add_filters(struct history *history)
{
    const ListHistoryRequest *r = history->request;

    add_clusters(history);
    add_users(history);
    add_texts(history, "account", r->accounts, r->n_accounts);
    add_texts(history, "partition_name", r->partitions, r->n_partitions);
    add_texts(history, "qos", r->qos, r->n_qos);
    add_texts(history, "name", r->names, r->n_names);
    add_texts(history, "wckey", r->wckeys, r->n_wckeys);
    add_range(history, "cpus", r->has_min_cpus, r->min_cpus, r->has_max_cpus, r->max_cpus);
    add_range(history, "nodes", r->has_min_nodes, r->min_nodes, r->has_max_nodes, r->max_nodes);
    add_range(history, "limit_s", r->has_min_limit_s, r->min_limit_s, r->has_max_limit_s,
              r->max_limit_s);
}

static const char columns[] =
    "SELECT db_id, cluster, job_id, run, state, requeued, t_submit, t_eligible, t_start, t_end,"
    " suspended_us, nodelist";

/* ---- what the text cannot say ---- */

struct times {
    uint32_t state;
    bool requeued;
    int64_t submit, eligible, start, end, suspended;
};

/* A waiting run counts from its submission on; one that never could start counts at no time. */
static int64_t eligible_of(const struct times *t)
{
    return t->eligible ? t->eligible : t->end ? 0 : t->submit;
}

static bool is_in_window(const ListHistoryRequest *r, const struct times *t)
{
    int64_t eligible = eligible_of(t);

    if (r->has_end_us && (!eligible || eligible > r->end_us))
        return false;
    return !r->has_start_us || !t->end || t->end >= r->start_us;
}

/* Was it in that state within the window? */
static bool was_in(const ListHistoryRequest *r, const struct times *t, uint32_t state)
{
    int64_t from = r->has_start_us ? r->start_us : 0;
    int64_t upto = r->has_end_us ? r->end_us : INT64_MAX;
    int64_t eligible = eligible_of(t);
    int64_t waited_until = t->start ? t->start : t->end ? t->end : INT64_MAX;

    switch (state) {
    case JOB_PENDING:
        return eligible && eligible <= upto && waited_until >= from;
    case JOB_RUNNING:
        return t->start && t->start <= upto && (!t->end || t->end >= from);
    case JOB_SUSPENDED:
        return t->state == JOB_SUSPENDED ||
               (t->suspended && t->start <= upto && (!t->end || t->end >= from));
    default:
        return t->state == state && !t->requeued && t->end && t->end >= from && t->end <= upto;
    }
}

static bool has_state(const ListHistoryRequest *r, const struct times *t)
{
    if (!r->n_states && !r->requeued)
        return true;
    if (r->requeued && t->requeued && t->end && (!r->has_start_us || t->end >= r->start_us) &&
        (!r->has_end_us || t->end <= r->end_us))
        return true;
    for (size_t i = 0; i < r->n_states; i++) {
        if (was_in(r, t, r->states[i]))
            return true;
    }
    return false;
}

static bool used_nodes(const struct history *history, struct span text)
{
    CLEANUP(hostlist_done) struct hostlist used = { 0 };

    if (!hostlist_count(&history->nodes))
        return true;
    if (!text.len)
        return false;
    CLEANUP(freep) char *list = mem_strndup(text.ptr, text.len);
    return hostlist_parse(&used, list, NULL) == 0 &&
           hostlist_intersect(&used, &history->nodes, NULL) == 0 && hostlist_count(&used) > 0;
}

static bool has_constraints(const ListHistoryRequest *r, const Job *job)
{
    for (size_t i = 0; i < r->n_constraints; i++) {
        const char *cursor = job_spec(job)->features;
        struct span word;
        bool found = false;
        while (cursor && !found && str_next(&cursor, "&|,[]()* ", &word))
            found = span_eq(word, r->constraints[i]);
        if (!found)
            return false;
    }
    return true;
}

static bool has_reason(const ListHistoryRequest *r, const Job *job)
{
    for (size_t i = 0; i < r->n_reasons; i++) {
        if (str_ieq(reason_word(job_status(job)->reason), r->reasons[i]))
            return true;
    }
    return r->n_reasons == 0;
}

static bool needs_message(const ListHistoryRequest *r)
{
    return r->n_constraints || r->n_reasons;
}

/* Those that only the message tells. */
static int fits_message(struct history *history, struct span bytes, struct err *err)
{
    const ListHistoryRequest *r = history->request;
    ProtobufCMessage *message = NULL;

    arena_reset(&history->row_arena);
    if (pb_unpack(&job__descriptor, &history->row_arena, bytes.ptr, bytes.len, &message, err) < 0)
        return -(int)err->code;
    return has_constraints(r, (const Job *)message) && has_reason(r, (const Job *)message);
}

static int take_run(void *ctx, const struct store_row *row, struct err *err)
{
    struct history *history = ctx;
    struct times times = { (uint32_t)store_row_int(row, 4), store_row_int(row, 5) != 0,
                           store_row_int(row, 6),           store_row_int(row, 7),
                           store_row_int(row, 8),           store_row_int(row, 9),
                           store_row_int(row, 10) };
    bool states = history->request->n_states || history->request->requeued;

    if (states ? !has_state(history->request, &times) : !is_in_window(history->request, &times))
        return 0;
    if (!used_nodes(history, store_row_bytes(row, 11)))
        return 0;
    int fits =
        needs_message(history->request) ? fits_message(history, store_row_bytes(row, 12), err) : 1;
    if (fits > 0)
        vec_push(&history->runs,
                 (struct run){ store_row_int(row, 0), store_row_int(row, 1),
                               (uint32_t)store_row_int(row, 2), (uint32_t)store_row_int(row, 3) });
    return fits < 0 ? fits : 0;
}

/* ---- selecting ---- */

static int run_selection(struct history *history, struct err *err)
{
    struct store_values values = { history->values.items, history->values.len };

    if (history->values.len > VALUES_MOST)
        return err_set(err, ERR_TOO_MANY, "the request names more than %d things", VALUES_MOST);
    return store_each(history->store, str_text(&history->sql), values, take_run, history, err);
}

static void begin_selection(struct history *history)
{
    str_clear(&history->sql);
    vec_clear(&history->values);
    str_add(&history->sql, columns);
    str_add(&history->sql, needs_message(history->request) ? ", job_bytes" : "");
    str_add(&history->sql, " FROM job WHERE ");
}

/* (1) Of what ended after the window, only what was there in it. */
static void add_until(struct history *history, int64_t end_us, int64_t longest_us)
{
    add_number(history, " AND t_end <= ", end_us + longest_us);
    add_number(history, " AND (t_end <= ", end_us);
    add_number(history, " OR t_eligible <= ", end_us);
    add_number(history, " OR t_start <= ", end_us);
    str_add_char(&history->sql, ')');
}

static int select_window(struct history *history, struct err *err)
{
    const ListHistoryRequest *r = history->request;
    int64_t longest = 0;

    begin_selection(history);
    str_add(&history->sql, "t_end = 0"); /* (2) */
    add_filters(history);
    if (run_selection(history, err) < 0)
        return -(int)err->code;
    if (store_number(history->store, "SELECT max(longest_us) FROM span WHERE month >= ?1",
                     STORE_VALUES(STORE_INT(r->start_us / MONTH_US)), 0, &longest, err) < 0)
        return -(int)err->code;
    begin_selection(history);
    add_number(history, "t_end >= ", MAX(r->start_us, 1));
    if (r->has_end_us)
        add_until(history, r->end_us, longest);
    add_filters(history);
    return run_selection(history, err);
}

/* One id can name an array, one task of it, a heterogeneous job or a component. */
static int select_id(struct history *history, const AcctJobId *id, struct err *err)
{
    static const char *const owners[] = { "job_id = ", "array_job > 0 AND array_job = ",
                                          "het_job > 0 AND het_job = " }; /* (5) */

    for (size_t i = 0; i < ARRAY_LEN(owners); i++) {
        if ((id->has_task && i != 1) || (id->has_offset && i != 2))
            continue;
        begin_selection(history);
        add_number(history, owners[i], id->job);
        if (id->has_task)
            add_number(history, " AND array_task = ", id->task);
        if (id->has_offset)
            add_number(history, " AND het_offset = ", id->offset);
        add_filters(history);
        if (run_selection(history, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

static int by_age(const void *a, const void *b)
{
    const struct run *x = a, *y = b;

    return (x->db_id > y->db_id) - (x->db_id < y->db_id);
}

/* Several ways may lead to a run; without `duplicates` only the last run of a job counts. */
static void settle_runs(struct history *history)
{
    struct map last;
    size_t kept = 0;

    if (history->runs.len)
        qsort(history->runs.items, history->runs.len, sizeof(struct run), by_age);
    for (size_t i = 0; i < history->runs.len; i++) {
        if (!kept || history->runs.items[i].db_id != history->runs.items[kept - 1].db_id)
            history->runs.items[kept++] = history->runs.items[i];
    }
    history->runs.len = kept;
    if (history->request->duplicates)
        return;
    map_init(&last);
    for (size_t i = 0; i < history->runs.len; i++) {
        const struct run *run = &history->runs.items[i];
        map_put_num(&last, (uint64_t)run->cluster << 32 | run->job_id, (void *)(uintptr_t)(i + 1));
    }
    kept = 0;
    for (size_t i = 0; i < history->runs.len; i++) {
        struct run run = history->runs.items[i];
        if (map_get_num(&last, (uint64_t)run.cluster << 32 | run.job_id) ==
            (void *)(uintptr_t)(i + 1))
            history->runs.items[kept++] = run;
    }
    history->runs.len = kept;
    map_done(&last);
}

int history_select(struct history *history, struct err *err)
{
    const ListHistoryRequest *r = history->request;

    if (!str_is_empty(r->nodes) && hostlist_parse(&history->nodes, r->nodes, err) < 0)
        return -(int)err->code;
    if (store_each(history->store, "SELECT id, name, hello FROM cluster", STORE_NO_VALUES,
                   take_cluster, history, err) < 0)
        return -(int)err->code;
    if (r->n_ids == 0 && select_window(history, err) < 0)
        return -(int)err->code;
    for (size_t i = 0; i < r->n_ids; i++) {
        if (select_id(history, r->ids[i], err) < 0)
            return -(int)err->code;
    }
    settle_runs(history);
    return 0;
}

/* ---- the answer ---- */

struct answer {
    struct history *history;
    const struct cluster *cluster;
    const struct run *run;
    AcctJob job;
    struct span packed; /* of the job; empty: no row was found. Few answers have to unpack it. */
    uint32_t uid;
    VEC(AcctStep *) steps;
};

/* Those of some runs that follow each other: read together, since each question costs a round trip. */
struct answers {
    struct answer *items; /* by db_id, as the runs are */
    size_t count;
};

static int by_db_id(const void *key, const void *item)
{
    int64_t wanted = *(const int64_t *)key, here = ((const struct answer *)item)->run->db_id;

    return (wanted > here) - (wanted < here);
}

/* The first column of both questions is the run's db_id. */
static struct answer *answer_of(const struct answers *answers, const struct store_row *row)
{
    int64_t db_id = store_row_int(row, 0);

    return bsearch(&db_id, answers->items, answers->count, sizeof(struct answer), by_db_id);
}

/* For its steps that run, for those that were named, for its script. */
static bool needs_job(const struct answer *answer)
{
    const ListHistoryRequest *r = answer->history->request;
    bool runs = answer->job.start_us && !answer->job.has_end_us;

    return r->payload || (!r->no_steps && (runs || r->n_ids));
}

static int take_row(void *ctx, const struct store_row *row, struct err *err)
{
    struct answer *answer = answer_of(ctx, row);
    struct span bytes = store_row_bytes(row, 7);
    ProtobufCMessage *message = NULL;

    if (!answer)
        return 0;

    answer->job.has_state = answer->job.has_requeued = answer->job.has_start_us = true;
    answer->job.has_suspended_us = answer->job.has_assoc_id = true;
    answer->job.state = (JobState)store_row_int(row, 1);
    answer->job.requeued = store_row_int(row, 2) != 0;
    answer->job.start_us = store_row_int(row, 3);
    answer->job.end_us = store_row_int(row, 4);
    answer->job.has_end_us = answer->job.end_us != 0;
    answer->job.suspended_us = store_row_int(row, 5);
    answer->job.assoc_id = (uint32_t)store_row_int(row, 6);
    answer->uid = (uint32_t)store_row_int(row, 8);
    answer->job.has_cancelled_by = store_row_int(row, 9) >= 0;
    answer->job.cancelled_by = (uint32_t)store_row_int(row, 9);
    answer->packed.ptr = arena_copy(&answer->history->row_arena, bytes.ptr, bytes.len);
    answer->packed.len = bytes.len;
    if (!needs_job(answer))
        return 0;
    if (pb_unpack(&job__descriptor, &answer->history->row_arena, bytes.ptr, bytes.len, &message,
                  err) < 0)
        return -(int)err->code;
    answer->job.job = (Job *)message;
    return 0;
}

/* A request that names steps wants those only. */
static bool step_is_wanted(const struct answer *answer, uint32_t step)
{
    const ListHistoryRequest *r = answer->history->request;
    bool named = false;

    for (size_t i = 0; i < r->n_ids; i++) {
        const JobStatus *status = job_status(answer->job.job);
        const AcctJobId *id = r->ids[i];
        bool same =
            id->has_task     ? status->array_job_id == id->job && status->array_task_id == id->task
            : id->has_offset ? status->het_job_id == id->job && status->het_offset == id->offset
                             : id->job == answer->run->job_id || id->job == status->array_job_id ||
                                   id->job == status->het_job_id;
        if (!same)
            continue;
        if (!id->has_step || id->step == step)
            return true;
        named = true;
    }
    return !named;
}

static int take_step(void *ctx, const struct store_row *row, struct err *err)
{
    struct answer *answer = answer_of(ctx, row);
    struct span bytes = store_row_bytes(row, 1);
    ProtobufCMessage *message = NULL;

    if (!answer || !answer->packed.len)
        return 0;
    if (pb_unpack(&acct_step__descriptor, &answer->history->row_arena, bytes.ptr, bytes.len,
                  &message, err) < 0)
        return -(int)err->code;
    AcctStep *step = (AcctStep *)message;
    step->waits_for = NULL;
    if (step->state == JOB_RUNNING && answer->job.has_end_us) { /* nobody said how it ended */
        step->state = answer->job.state;
        step->has_end_us = true;
        step->end_us = answer->job.end_us;
    }
    if (step_is_wanted(answer, step->step))
        vec_push(&answer->steps, step);
    return 0;
}

static bool has_step(const struct answer *answer, uint32_t number)
{
    for (size_t i = 0; i < answer->steps.len; i++) {
        if (answer->steps.items[i]->step == number)
            return true;
    }
    return false;
}

static void add_running(struct answer *answer, const StepInfo *info)
{
    AcctStep *step = ARENA_NEW(&answer->history->row_arena, AcctStep);

    acct_step__init(step);
    step->has_step = step->has_state = step->has_start_us = step->has_node_count = true;
    step->has_ntasks = step->has_cpus = true;
    step->step = info->id->step;
    step->name = info->name;
    step->state = info->suspended ? JOB_SUSPENDED : JOB_RUNNING;
    step->start_us = info->started_us;
    step->nodes = info->nodes;
    step->node_count = info->node_count;
    step->ntasks = info->ntasks;
    step->cpus = info->cpus;
    step->tres = info->tres;
    step->submit_line = info->submit_line;
    step->distribution = info->distribution;
    step->cpu_freq = info->cpu_freq;
    vec_push(&answer->steps, step);
}

/* What runs is not in the database yet. */
static void add_live_steps(struct answer *answer)
{
    struct history *history = answer->history;
    bool runs = answer->job.start_us && !answer->job.has_end_us;
    bool here = history->running_cluster && answer->cluster &&
                strcmp(history->running_cluster, answer->cluster->name) == 0;

    if (runs && job_spec(answer->job.job)->batch && !has_step(answer, STEP_BATCH) &&
        step_is_wanted(answer, STEP_BATCH)) {
        AcctStep *batch = usage_batch_step(answer->job.job, NULL, answer->job.state,
                                           answer->job.start_us, 0, &history->row_arena);
        vec_push(&answer->steps, batch);
    }
    for (size_t i = 0; runs && here && i < history->running_count; i++) {
        const StepInfo *info = history->running[i];
        if (info->id && info->id->job_id == answer->run->job_id &&
            info->id->attempt == answer->run->run && !has_step(answer, info->id->step) &&
            step_is_wanted(answer, info->id->step))
            add_running(answer, info);
    }
}

/* batch and its like come before 0, 1, 2. */
static int by_step(const void *a, const void *b)
{
    const AcctStep *x = *(AcctStep *const *)a, *y = *(AcctStep *const *)b;
    bool x_named = x->step > 0xfffffff0, y_named = y->step > 0xfffffff0;

    if (x_named != y_named)
        return x_named ? -1 : 1;
    return (x->step > y->step) - (x->step < y->step);
}

static void settle_steps(struct answer *answer)
{
    if (answer->history->request->no_steps)
        return;
    add_live_steps(answer);
    if (answer->steps.len)
        qsort(answer->steps.items, answer->steps.len, sizeof(AcctStep *), by_step);
    answer->job.steps = answer->steps.items;
    answer->job.n_steps = answer->steps.len;
}

static int take_payload(void *ctx, const struct store_row *row, struct err *err)
{
    struct answer *answer = ctx;
    struct span bytes = store_row_bytes(row, 0);
    ProtobufCMessage *message = NULL;

    if (pb_unpack(&job_payload__descriptor, &answer->history->row_arena, bytes.ptr, bytes.len,
                  &message, err) < 0)
        return -(int)err->code;
    answer->job.payload = (JobPayload *)message;
    return 0;
}

/* Tasks of an array share the one that was submitted. */
static int add_payload(struct answer *answer, struct err *err)
{
    struct history *history = answer->history;
    uint32_t array = job_status(answer->job.job)->array_job_id;
    bool may = (answer->cluster && answer->cluster->admin) || answer->uid == history->viewer->uid;

    if (!history->request->payload || !may)
        return 0;
    return store_each(history->store,
                      "SELECT payload FROM payload WHERE cluster = ?1 AND job_id IN (?2, ?3)",
                      STORE_VALUES(STORE_INT(answer->run->cluster), STORE_INT(answer->run->job_id),
                                   STORE_INT(array ? array : answer->run->job_id)),
                      take_payload, answer, err);
}

/* Texts that are prepared are few: the number of ids is a power of two, and the last one stands for those that lack. */
static int ask_for(struct history *history, const char *sql, struct answers *answers,
                   store_each_fn *take, struct err *err)
{
    size_t count = 1;

    str_clear(&history->sql);
    vec_clear(&history->values);
    str_add(&history->sql, sql);
    while (count < answers->count)
        count *= 2;
    for (size_t i = 0; i < count; i++)
        add_number(history, i ? ", " : "", answers->items[MIN(i, answers->count - 1)].run->db_id);
    str_add_char(&history->sql, ')');
    return store_each(history->store, str_text(&history->sql),
                      (struct store_values){ history->values.items, history->values.len }, take,
                      answers, err);
}

static int read_answers(struct history *history, struct answers *answers, struct err *err)
{
    if (ask_for(history,
                "SELECT db_id, state, requeued, t_start, t_end, suspended_us, assoc_id, job_bytes,"
                " uid, cancelled_by FROM job WHERE db_id IN (",
                answers, take_row, err) < 0)
        return -(int)err->code;
    if (history->request->no_steps)
        return 0;
    return ask_for(history,
                   "SELECT j.db_id, s.step_bytes FROM job j JOIN step s ON s.cluster = j.cluster"
                   " AND s.job_id = j.job_id AND s.run = j.run WHERE j.db_id IN (",
                   answers, take_step, err);
}

/* The message with the packed job as one of its fields. */
static void add_spliced(struct str *out, const struct answer *answer)
{
    CLEANUP(str_done) struct str head = { 0 };
    size_t rest = acct_job__get_packed_size(&answer->job);

    pb_add_varint(&head, FIELD_JOB << 3 | 2);
    pb_add_varint(&head, answer->packed.len);
    pb_add_varint(out, FIELD_REPLY_JOBS << 3 | 2);
    pb_add_varint(out, head.len + answer->packed.len + rest);
    str_add_len(out, head.data, head.len);
    str_add_len(out, answer->packed.ptr, answer->packed.len);
    str_reserve(out, rest + 1);
    out->len += acct_job__pack(&answer->job, (uint8_t *)out->data + out->len);
    out->data[out->len] = '\0';
}

static int write_answer(struct answer *answer, struct str *out, struct err *err)
{
    if (!answer->packed.len) /* it was purged meanwhile */
        return 0;
    settle_steps(answer);
    if (answer->history->request->payload && add_payload(answer, err) < 0)
        return -(int)err->code;
    if (answer->job.job)
        pb_add_message(out, FIELD_REPLY_JOBS, &answer->job.base);
    else
        add_spliced(out, answer);
    return 0;
}

static int add_answers(struct history *history, const struct run *runs, size_t count,
                       struct str *out, struct err *err)
{
    arena_reset(&history->row_arena);
    struct answers answers = { ARENA_ARRAY(&history->row_arena, struct answer, count), count };
    for (size_t i = 0; i < count; i++) {
        struct answer *answer = &answers.items[i];
        *answer = (struct answer){ .history = history,
                                   .run = &runs[i],
                                   .cluster = cluster_of(history, runs[i].cluster),
                                   .job = ACCT_JOB__INIT };
        answer->job.cluster = answer->cluster ? answer->cluster->name : NULL;
        answer->job.has_db_id = answer->job.has_run = true;
        answer->job.db_id = (uint64_t)runs[i].db_id;
        answer->job.run = runs[i].run;
    }
    int code = read_answers(history, &answers, err);
    for (size_t i = 0; i < count; i++) {
        if (code == 0)
            code = write_answer(&answers.items[i], out, err);
        vec_done(&answers.items[i].steps);
    }
    return code;
}

/* How many are read together follows from how large the last were; a script may be large. */
int history_next(struct history *history, size_t bytes, struct str *out, struct err *err)
{
    size_t from = out->len, most = history->request->payload ? 1 : TOGETHER_MOST;

    while (history_more(history) && out->len - from < bytes) {
        size_t count = MIN(MIN(MAX(history->together, 1u), most), history->runs.len - history->at);
        size_t before = out->len;
        const struct run *runs = &history->runs.items[history->at];
        history->at += count;
        if (add_answers(history, runs, count, out, err) < 0)
            return -(int)err->code;
        bool large = out->len - before > bytes;
        history->together = large ? count / 2 : count * 2;
    }
    return 0;
}
