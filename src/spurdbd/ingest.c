/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest.c - entries of a cluster's journal become rows, each exactly once
 *
 * (1) A batch is one transaction with the position that it leads to. Entries at or below the position are
 *     passed over, so whatever is sent again after a crash changes nothing.
 * (2) A row is one run of a job. The run that a waiting job is going to have is its last attempt and one; a
 *     requeue ends a run and begins the next.
 * (3) Records of a job in the same batch are joined in memory: what starts and ends in it is written once.
 * (4) Sums of use (rollup.c) that were made from what a batch changes are made again: the transaction notes
 *     the first moment that became another.
 */
#include "spurdbd/ingest.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/map.h"
#include "schema/job_view.h"
#include "schema/names.h"
#include "spurdbd/ingest_cluster.h"
#include "spurdbd/rollup.h"
#include "spurdbd/usage.h"
#include "wire/pb_unpack.h"

enum { LOADED_TOGETHER = 256 };

#define MONTH_US (INT64_C(30) * 86400 * 1000000)

struct resized {
    int64_t at_us;
    char *before; /* TRES */
};

/* A run of a job, as the batch leaves it. */
struct run_row {
    uint32_t job_id, run;
    const Job *job; /* NULL: the row is there, and only what follows is new */
    JobState state;
    bool requeued, ended;
    int64_t cancelled_by; /* uid; -1: nobody, or not known */
    int64_t start_us, end_us;
    int64_t born_us; /* the entry that made the row, if it is new */
    VEC(struct resized) resizes;
};

struct step_row {
    uint32_t job_id, run;
    AcctStep *step;
    bool changed;
};

struct ingest {
    struct store *store;
    const struct ingest_batch *batch;
    struct arena arena;
    struct map runs;   /* key_of() → struct run_row */
    struct map steps;  /* "job.run.step" → struct step_row */
    struct map spans;  /* month → int64_t in the arena */
    struct map assocs; /* "account user partition" → id of the association */
    struct str packed, text;
    int64_t entry_us; /* of the entry that is being taken */
    int64_t done_us;  /* use before that is summed up */
    int64_t dirty_us; /* from there on it must be summed up again; INT64_MAX: from nowhere */
};

/* ---- hello ---- */

struct found_cluster {
    int64_t id;
    struct ingest_position position;
};

static int take_cluster(void *ctx, const struct store_row *row, struct err *err)
{
    struct found_cluster *found = ctx;

    (void)err;
    found->id = store_row_int(row, 0);
    found->position.epoch = (uint64_t)store_row_int(row, 1);
    found->position.index = (uint64_t)store_row_int(row, 2);
    return 0;
}

static int add_gap(struct store *store, int64_t cluster, uint64_t from, uint64_t upto,
                   int64_t now_us, const char *why, struct err *err)
{
    return store_run(store,
                     "INSERT INTO gap(cluster, idx_from, idx_upto, noticed_us, why)"
                     " VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
                     STORE_VALUES(STORE_INT(cluster), STORE_INT(from), STORE_INT(upto),
                                  STORE_INT(now_us), STORE_TEXT(why)),
                     err);
}

static int set_position(struct store *store, int64_t cluster, uint64_t epoch, uint64_t index,
                        int64_t now_us, struct err *err)
{
    return store_run(
        store, "UPDATE cluster SET epoch = ?2, idx = ?3, heard_us = ?4 WHERE id = ?1",
        STORE_VALUES(STORE_INT(cluster), STORE_INT(epoch), STORE_INT(index), STORE_INT(now_us)),
        err);
}

static int save_hello(struct store *store, const FeedHello *hello, int64_t now_us,
                      struct found_cluster *found, struct err *err)
{
    CLEANUP(str_done) struct str packed = { 0 };
    struct store_value uuid = STORE_BYTES(hello->cluster_id.data, hello->cluster_id.len);

    FeedHello kept = *hello; /* read by each query: accounts of the database are not kept twice */
    if (!kept.file_owns)
        kept.accounts = NULL;
    str_reserve(&packed, feed_hello__get_packed_size(&kept) + 1);
    packed.len = feed_hello__pack(&kept, (uint8_t *)packed.data);
    if (store_run(store,
                  "INSERT INTO cluster(uuid, name, epoch, idx, heard_us, hello)"
                  " VALUES(?1, ?2, 0, 0, ?3, ?4) ON CONFLICT(uuid)"
                  " DO UPDATE SET name = ?2, heard_us = ?3, hello = ?4",
                  STORE_VALUES(uuid, STORE_TEXT(hello->cluster), STORE_INT(now_us),
                               STORE_BYTES(packed.data, packed.len)),
                  err) < 0)
        return -(int)err->code;
    return store_each(store, "SELECT id, epoch, idx FROM cluster WHERE uuid = ?1",
                      STORE_VALUES(uuid), take_cluster, found, err);
}

/* The database knows more than the log that the controllers have: they were restored from a backup. */
static int settle_ahead(struct store *store, const FeedHello *hello, int64_t now_us,
                        struct found_cluster *found, struct err *err)
{
    struct ingest_position had = found->position;

    if (had.index <= hello->last && had.epoch <= hello->epoch)
        return 0;
    found->position =
        (struct ingest_position){ MIN(had.epoch, hello->epoch), MIN(had.index, hello->last) };
    if (add_gap(store, found->id, found->position.index + 1, had.index, now_us,
                "the database was ahead of the controllers' log, which has other entries here",
                err) < 0 ||
        (hello->changes &&
         store_run(store, "UPDATE acct_cluster SET repair = ?2 WHERE name = ?1",
                   STORE_VALUES(STORE_TEXT(hello->cluster),
                                STORE_TEXT("the controllers were restored from an older copy: the "
                                           "database knows more of their log than they do")),
                   err) < 0))
        return -(int)err->code;
    return set_position(store, found->id, found->position.epoch, found->position.index, now_us,
                        err);
}

int ingest_hello(struct store *store, const FeedHello *hello, int64_t now_us, int64_t *cluster,
                 struct ingest_position *position, bool *gap, struct err *err)
{
    struct found_cluster found = { 0 };
    int64_t gaps = 0;

    if (store_begin(store, err) < 0)
        return -(int)err->code;
    if (save_hello(store, hello, now_us, &found, err) < 0 ||
        settle_ahead(store, hello, now_us, &found, err) < 0 ||
        store_number(store, "SELECT count(*) FROM gap WHERE cluster = ?1",
                     STORE_VALUES(STORE_INT(found.id)), 0, &gaps, err) < 0 ||
        store_commit(store, err) < 0) {
        store_rollback(store);
        return -(int)err->code;
    }
    *cluster = found.id;
    *position = found.position;
    *gap = gaps > 0;
    return 0;
}

/* ---- runs of jobs ---- */

/* (2) */
static uint32_t run_of(const Job *job)
{
    const JobStatus *status = job_status(job);
    bool over = status->restarts >= status->attempt; /* its last attempt was requeued */

    if (status->state == JOB_PENDING)
        return status->attempt + 1;
    if (job_state_ended(status->state) && (!status->start_us || over))
        return status->attempt + 1;
    return status->attempt;
}

static struct run_row *row_of(struct ingest *in, uint32_t job_id, uint32_t run)
{
    uint64_t key = (uint64_t)job_id << 24 | (run & 0xffffff);
    struct run_row *row = map_get_num(&in->runs, key);

    if (!row) {
        row = ARENA_NEW(&in->arena, struct run_row);
        row->job_id = job_id;
        row->run = run;
        row->cancelled_by = -1;
        row->born_us = in->entry_us;
        map_put_num(&in->runs, key, row);
    }
    return row;
}

/* (4) */
static void note_dirty(struct ingest *in, int64_t from_us)
{
    if (from_us > 0)
        in->dirty_us = MIN(in->dirty_us, from_us);
}

/* TRES that a job has; of generic resources also each type, whether or not the cluster counts it. */
static void add_given(struct str *out, const Job *job)
{
    const Allocation *allocation = job_status(job)->allocation;
    struct map counts;

    job_add_tres(out, job, true);
    map_init(&counts);
    for (size_t i = 0; allocation && i < allocation->n_nodes; i++) {
        const NodeAlloc *node = allocation->nodes[i];
        for (size_t k = 0; k < node->n_gres && !node->left; k++) {
            const GresAlloc *gres = node->gres[k];
            if (str_is_empty(gres->type))
                continue;
            CLEANUP(freep) char *name = mem_printf(",gres/%s:%s=", gres->name, gres->type);
            uintptr_t before = (uintptr_t)map_get(&counts, name);
            map_put(&counts, name, (void *)(before + gres->count));
        }
    }
    map_each (entry, &counts) {
        if (out->len && !strstr(str_text(out), entry->key))
            str_addf(out, "%s%llu", entry->key, (unsigned long long)(uintptr_t)entry->value);
    }
    map_done(&counts);
}

/* A running job has other TRES than the record before says: it was resized at this entry. */
static void note_resize(struct ingest *in, struct run_row *row, const Job *job)
{
    CLEANUP(str_done) struct str before = { 0 }, after = { 0 };

    if (!row->job || !row->start_us || job_status(job)->start_us != row->start_us)
        return;
    add_given(&before, row->job);
    add_given(&after, job);
    if (before.len && after.len && !str_eq(str_text(&before), str_text(&after)))
        vec_push(&row->resizes,
                 (struct resized){ in->entry_us, arena_strdup(&in->arena, str_text(&before)) });
}

static void note_job(struct ingest *in, const Job *job, uint32_t run, bool waits)
{
    const JobStatus *status = job_status(job);
    struct run_row *row = row_of(in, job->id, run);
    bool ended = !waits && job_state_ended(status->state);

    if (!waits && !ended)
        note_resize(in, row, job);
    row->job = job;
    row->state = waits ? JOB_PENDING : status->state;
    row->start_us = waits || status->state == JOB_PENDING ? 0 : status->start_us;
    row->ended = ended;
    row->end_us = ended ? status->end_us : 0;
    if (ended && run > status->attempt)
        row->start_us = 0;
}

static void note_batch(struct ingest *in, const Job *job, uint32_t run, const JournalRecord *record,
                       JobState state);

static void take_ended(struct ingest *in, const JournalRecord *record)
{
    uint32_t run = run_of(record->job);

    note_job(in, record->job, run, false);
    struct run_row *row = row_of(in, record->job_id, run);
    row->ended = true;
    row->state = record->end_state;
    row->end_us = record->end_us;
    if (record->has_by_uid)
        row->cancelled_by = record->by_uid;
    if (row->start_us)
        note_batch(in, record->job, run, record, record->end_state);
}

static void take_requeued(struct ingest *in, const JournalRecord *record)
{
    const Job *job = record->job;
    uint32_t ended = record->attempt;
    struct run_row *row = row_of(in, record->job_id, ended);

    if (!row->ended) {
        row->requeued = row->ended = true;
        row->state = record->end_state;
        row->start_us = record->start_us;
        row->end_us = record->end_us;
    }
    if (record->usage)
        note_batch(in, row->job ? row->job : job, ended, record, record->end_state);
    note_job(in, job, ended + 1, true);
}

static int end_suspension(struct ingest *in, uint32_t job_id, uint32_t run, int64_t time_us,
                          struct err *err)
{
    return store_run(in->store,
                     "UPDATE suspend SET t_to = ?4 WHERE cluster = ?1 AND job_id = ?2"
                     " AND run = ?3 AND t_to = 0",
                     STORE_VALUES(STORE_INT(in->batch->cluster), STORE_INT(job_id), STORE_INT(run),
                                  STORE_INT(time_us)),
                     err);
}

static int write_suspension(struct ingest *in, const JournalRecord *record, int64_t time_us,
                            struct err *err)
{
    bool begins = record->kind == JOURNAL_SUSPENDED;
    struct run_row *row = row_of(in, record->job_id, record->attempt);

    row->state = begins ? JOB_SUSPENDED : JOB_RUNNING;
    note_dirty(in, time_us);
    if (!begins)
        return end_suspension(in, record->job_id, record->attempt, time_us, err);
    return store_run(in->store,
                     "INSERT INTO suspend(cluster, job_id, run, t_from, t_to)"
                     " VALUES(?1, ?2, ?3, ?4, 0) ON CONFLICT DO NOTHING",
                     STORE_VALUES(STORE_INT(in->batch->cluster), STORE_INT(record->job_id),
                                  STORE_INT(record->attempt), STORE_INT(time_us)),
                     err);
}

/* ---- steps ---- */

static struct step_row *step_row_of(struct ingest *in, uint32_t job_id, uint32_t run, uint32_t step)
{
    str_clear(&in->text);
    str_addf(&in->text, "%u.%u.%u", job_id, run, step);
    struct step_row *row = map_get(&in->steps, str_text(&in->text));
    if (!row) {
        row = ARENA_NEW(&in->arena, struct step_row);
        row->job_id = job_id;
        row->run = run;
        map_put(&in->steps, str_text(&in->text), row);
    }
    return row;
}

static void note_batch(struct ingest *in, const Job *job, uint32_t run, const JournalRecord *record,
                       JobState state)
{
    if (!job_spec(job)->batch || !job_status(job)->allocation)
        return;
    AcctStep *step =
        usage_batch_step(job, record->usage, state, record->start_us, record->end_us, &in->arena);
    struct step_row *row = step_row_of(in, record->job_id, run, step->step);
    row->step = step;
    row->changed = true;
}

static int take_known(void *ctx, const struct store_row *row, struct err *err)
{
    struct ingest *in = ctx;
    struct span bytes = store_row_bytes(row, 3);
    ProtobufCMessage *message = NULL;

    if (pb_unpack(&acct_step__descriptor, &in->arena, bytes.ptr, bytes.len, &message, err) < 0)
        return -(int)err->code;
    step_row_of(in, (uint32_t)store_row_int(row, 0), (uint32_t)store_row_int(row, 1),
                (uint32_t)store_row_int(row, 2))
        ->step = (AcctStep *)message;
    return 0;
}

typedef VEC(struct store_value) value_vec;

/* The values of a question about steps: cluster, smallest and largest job id, ids. */
enum { VALUE_CLUSTER, VALUE_LEAST, VALUE_MOST, VALUE_IDS };

/*
 * What earlier batches knew of steps: of many jobs at once, since each question costs a round trip. The range keeps
 * PostgreSQL from reading everything while it has no statistics of a young table.
 */
static int load_some(struct ingest *in, value_vec *values, struct err *err)
{
    struct store_value last = values->items[values->len - 1];

    str_clear(&in->text);
    str_add(&in->text, "SELECT job_id, run, step, step_bytes FROM step WHERE cluster = ?1"
                       " AND job_id >= ?2 AND job_id <= ?3 AND job_id IN (");
    while (values->len < VALUE_IDS + LOADED_TOGETHER) /* one text; the last is named again */
        vec_push(values, last);
    for (size_t i = VALUE_IDS; i < values->len; i++) {
        struct store_value *least = &values->items[VALUE_LEAST], *most = &values->items[VALUE_MOST];
        int64_t id = values->items[i].number;
        *least = STORE_INT(i == VALUE_IDS ? id : MIN(id, least->number));
        *most = STORE_INT(i == VALUE_IDS ? id : MAX(id, most->number));
        str_addf(&in->text, i == VALUE_IDS ? "?%zu" : ", ?%zu", i + 1);
    }
    str_add_char(&in->text, ')');
    CLEANUP(freep) char *sql = mem_strdup(str_text(&in->text));
    int code = store_each(in->store, sql, (struct store_values){ values->items, values->len },
                          take_known, in, err);
    values->len = VALUE_IDS;
    return code;
}

static int load_steps(struct ingest *in, JournalEntry *const *entries, size_t count,
                      struct err *err)
{
    value_vec values = { 0 };
    struct map seen;
    int code = 0;

    map_init(&seen);
    for (int i = VALUE_CLUSTER; i < VALUE_IDS; i++)
        vec_push(&values, STORE_INT(in->batch->cluster));
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; code == 0 && k < entries[i]->n_records; k++) {
            const StepPart *part = entries[i]->records[k]->step;
            if (!part || !part->id || map_put_num(&seen, part->id->job_id, in))
                continue;
            vec_push(&values, STORE_INT(part->id->job_id));
            if (values.len == VALUE_IDS + LOADED_TOGETHER)
                code = load_some(in, &values, err);
        }
    }
    if (code == 0 && values.len > VALUE_IDS)
        code = load_some(in, &values, err);
    vec_done(&values);
    map_done(&seen);
    return code;
}

static void take_part(struct ingest *in, const StepPart *part)
{
    if (!part || !part->id)
        return;
    struct step_row *row = step_row_of(in, part->id->job_id, part->id->attempt, part->id->step);
    if (!row->step)
        row->step = usage_step_new(part, &in->arena);
    if (usage_step_add(row->step, part, &in->arena))
        row->changed = true;
}

/* A step that began. One that is known already, by this or by its end, stays as it is. */
static void take_begun(struct ingest *in, const StepPart *part)
{
    if (!part || !part->id)
        return;
    struct step_row *row = step_row_of(in, part->id->job_id, part->id->attempt, part->id->step);
    if (row->step)
        return;
    row->step = usage_step_new(part, &in->arena);
    row->step->has_state = row->step->has_start_us = true;
    row->step->state = JOB_RUNNING;
    row->step->start_us = part->started_us;
    row->changed = true;
}

static int write_step(struct ingest *in, const struct step_row *row, struct err *err)
{
    const AcctStep *step = row->step;

    str_clear(&in->packed);
    str_reserve(&in->packed, acct_step__get_packed_size(step) + 1);
    in->packed.len = acct_step__pack(step, (uint8_t *)in->packed.data);
    return store_run(
        in->store,
        "INSERT INTO step(cluster, job_id, run, step, state, t_start, t_end,"
        " step_bytes) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
        " ON CONFLICT(cluster, job_id, run, step) DO UPDATE SET state = ?5,"
        " t_start = ?6, t_end = ?7, step_bytes = ?8",
        STORE_VALUES(STORE_INT(in->batch->cluster), STORE_INT(row->job_id), STORE_INT(row->run),
                     STORE_INT(step->step), STORE_INT(step->state), STORE_INT(step->start_us),
                     STORE_INT(step->end_us), STORE_BYTES(in->packed.data, in->packed.len)),
        err);
}

/* ---- writing rows ---- */

/* The number of `name` in "cpu=8,mem=1.50G,gres/gpu=2"; memory in MB. */
static int64_t tres_count(const char *tres, const char *name)
{
    const char *cursor = tres;
    struct span word;
    size_t len = strlen(name);

    while (cursor && str_next(&cursor, ",", &word)) {
        if (word.len <= len || strncmp(word.ptr, name, len) != 0 || word.ptr[len] != '=')
            continue;
        char *end;
        int64_t whole = strtoll(word.ptr + len + 1, &end, 10), half = 0;
        if (*end == '.') {
            half = end[1] == '5' ? 1 : 0;
            end += strspn(end + 1, "0123456789") + 1;
        }
        return *end == 'G'   ? whole * 1024 + half * 512
               : *end == 'T' ? whole * 1024 * 1024 + half * 512 * 1024
                             : whole;
    }
    return 0;
}

static void note_span(struct ingest *in, const struct run_row *row, int64_t eligible_us)
{
    int64_t from_us = eligible_us ? eligible_us : row->start_us;
    uint64_t month = (uint64_t)(row->end_us / MONTH_US);
    int64_t *longest = map_get_num(&in->spans, month);

    if (!row->ended || !from_us)
        return;
    if (!longest) {
        longest = ARENA_NEW(&in->arena, int64_t);
        map_put_num(&in->spans, month, longest);
    }
    *longest = MAX(*longest, row->end_us - from_us);
}

static const char insert_job[] =
    "INSERT INTO job(cluster, job_id, run, array_job, array_task, het_job, het_offset, uid, gid,"
    " user_name, account, assoc_id, partition_name, qos, wckey, name, reservation, state,"
    " requeued, t_submit, t_eligible, t_start, t_end, suspended_us, limit_s, cpus, nodes, mem_mb,"
    " gpus, billing, exit_status, nodelist, tres_alloc, job_bytes, cancelled_by, tres_req, t_wait)"
    " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,"
    " ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36,"
    " ?37)"
    " ON CONFLICT(cluster, job_id, run) DO UPDATE SET array_job = ?4, array_task = ?5,"
    " het_job = ?6, het_offset = ?7, account = ?11, partition_name = ?13,"
    " assoc_id = CASE WHEN ?12 = 0 THEN job.assoc_id ELSE ?12 END,"
    " qos = ?14, wckey = ?15, name = ?16, reservation = ?17, state = ?18, requeued = ?19,"
    " t_submit = ?20, t_eligible = ?21, t_start = ?22, t_end = ?23, suspended_us = ?24,"
    " limit_s = ?25, cpus = ?26, nodes = ?27, mem_mb = ?28, gpus = ?29, billing = ?30,"
    " exit_status = ?31, nodelist = ?32, tres_alloc = ?33, job_bytes = ?34,"
    " cancelled_by = CASE WHEN ?35 < 0 THEN job.cancelled_by ELSE ?35 END, tres_req = ?36";

/* The message as it is kept: who else is in the owner's groups is nobody's business. */
static void pack_job(struct ingest *in, const Job *job)
{
    JobOwner owner = *job_owner(job);
    Job kept = *job;

    owner.n_gids = 0;
    kept.owner = &owner;
    str_clear(&in->packed);
    str_reserve(&in->packed, job__get_packed_size(&kept) + 1);
    in->packed.len = job__pack(&kept, (uint8_t *)in->packed.data);
}

/* ---- what of the past became another: (4) ---- */

struct old_run {
    struct ingest *in;
    const struct run_row *row;
    const char *tres_req, *tres_alloc; /* as they will be */
    bool found;
};

static bool differs(const struct store_row *row, unsigned column, const char *now)
{
    return !span_eq(store_row_bytes(row, column), now ? now : "");
}

static void note_moved(struct ingest *in, int64_t was_us, int64_t is_us)
{
    if (was_us == is_us)
        return;
    note_dirty(in, was_us);
    note_dirty(in, is_us);
}

static int compare_run(void *ctx, const struct store_row *old, struct err *err)
{
    struct old_run *self = ctx;
    struct ingest *in = self->in;
    const struct run_row *row = self->row;
    const JobStatus *status = job_status(row->job);
    int64_t eligible = store_row_int(old, 0), start = store_row_int(old, 1);

    (void)err;
    self->found = true;
    note_moved(in, eligible, status->eligible_us);
    note_moved(in, start, row->start_us);
    note_moved(in, store_row_int(old, 2), row->end_us);
    if (differs(old, 3, status->account) || differs(old, 4, status->partition) ||
        differs(old, 5, status->qos) || differs(old, 6, job_spec(row->job)->wckey) ||
        differs(old, 7, self->tres_req)) {
        note_dirty(in, eligible);
        note_dirty(in, start);
    }
    if (start && row->start_us == start && differs(old, 8, self->tres_alloc) && !row->ended &&
        row->resizes.len == 0) {
        struct span before = store_row_bytes(old, 8);
        vec_push(
            &((struct run_row *)(uintptr_t)row)->resizes,
            (struct resized){ row->born_us, arena_strndup(&in->arena, before.ptr, before.len) });
    }
    return 0;
}

static int write_resizes(struct ingest *in, const struct run_row *row, struct err *err)
{
    vec_each (const struct resized, resize, &row->resizes) {
        note_dirty(in, resize->at_us);
        if (store_run(in->store,
                      "INSERT INTO resize(cluster, job_id, run, t_us, tres_alloc)"
                      " VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
                      STORE_VALUES(STORE_INT(in->batch->cluster), STORE_INT(row->job_id),
                                   STORE_INT(row->run), STORE_INT(resize->at_us),
                                   STORE_TEXT(resize->before)),
                      err) < 0)
            return -(int)err->code;
    }
    return 0;
}

/*
 * A run that was submitted after what is summed up changes no sum. Of others the row is compared: a running job
 * may have been resized, whenever it began.
 */
static int note_changes(struct ingest *in, const struct run_row *row, const char *tres_req,
                        const char *tres_alloc, struct err *err)
{
    const JobStatus *status = job_status(row->job);
    struct old_run old = { in, row, tres_req, tres_alloc, false };
    bool may_resize = row->start_us && !row->ended && row->start_us < row->born_us;

    if ((status->submit_us < in->done_us || may_resize) &&
        store_each(in->store,
                   "SELECT t_eligible, t_start, t_end, account, partition_name, qos, wckey,"
                   " tres_req, tres_alloc FROM job WHERE cluster = ?1 AND job_id = ?2 AND run = ?3",
                   STORE_VALUES(STORE_INT(in->batch->cluster), STORE_INT(row->job_id),
                                STORE_INT(row->run)),
                   compare_run, &old, err) < 0)
        return -(int)err->code;
    if (!old.found) {
        note_dirty(in, status->eligible_us ? MAX(status->eligible_us, row->born_us) : 0);
        note_dirty(in, row->start_us);
    }
    return write_resizes(in, row, err);
}

/*
 * The association that a job runs in, or 0. Removed ones count: ids are never given twice, and an old entry may
 * come after the removal.
 */
static int find_assoc(struct ingest *in, const char *account, const char *user,
                      const char *partition, int64_t *out, struct err *err)
{
    str_clear(&in->text);
    str_addf(&in->text, "%s %s %s", account ? account : "", user ? user : "",
             partition ? partition : "");
    void *known = map_get(&in->assocs, str_text(&in->text));
    if (!known) {
        int64_t id = 0;
        if (store_number(in->store,
                         "SELECT a.id FROM acct_assoc a JOIN cluster c ON c.name = a.cluster"
                         " WHERE c.id = ?1 AND a.account = ?2 AND a.user_name = ?3"
                         " AND (a.partition_name = ?4 OR a.partition_name = '')"
                         " ORDER BY a.deleted, a.partition_name DESC LIMIT 1",
                         STORE_VALUES(STORE_INT(in->batch->cluster), STORE_TEXT(account),
                                      STORE_TEXT(user), STORE_TEXT(partition)),
                         0, &id, err) < 0)
            return -(int)err->code;
        known = (void *)(uintptr_t)(id + 1);
        map_put(&in->assocs, str_text(&in->text), known);
    }
    *out = (int64_t)(uintptr_t)known - 1;
    return 0;
}

static int write_run(struct ingest *in, const struct run_row *row, struct err *err)
{
    const Job *job = row->job;
    const JobStatus *status = job_status(job);
    const JobSpec *spec = job_spec(job);
    const JobOwner *owner = job_owner(job);
    CLEANUP(str_done) struct str nodes = { 0 }, tres = { 0 }, asked = { 0 };
    bool given = row->start_us != 0;
    const char *reservation = status->allocation ? status->allocation->reservation : NULL;

    int64_t assoc = 0;

    if (find_assoc(in, status->account, owner->user, status->partition, &assoc, err) < 0)
        return -(int)err->code;
    if (given) {
        job_add_nodes(&nodes, job);
        add_given(&tres, job);
    }
    job_add_tres(&asked, job, false);
    note_span(in, row, status->eligible_us);
    if (note_changes(in, row, str_text(&asked), str_text(&tres), err) < 0)
        return -(int)err->code;
    if (row->ended && status->suspended_total_us &&
        end_suspension(in, row->job_id, row->run, row->end_us, err) < 0)
        return -(int)err->code;
    pack_job(in, job);
    return store_run(
        in->store, insert_job,
        STORE_VALUES(
            STORE_INT(in->batch->cluster), STORE_INT(row->job_id), STORE_INT(row->run),
            STORE_INT(status->array_job_id),
            status->has_array_task_id ? STORE_INT(status->array_task_id) : STORE_NONE,
            STORE_INT(status->het_job_id),
            status->het_job_id ? STORE_INT(status->het_offset) : STORE_NONE, STORE_INT(owner->uid),
            STORE_INT(owner->gid), STORE_TEXT(owner->user), STORE_TEXT(status->account),
            STORE_INT(assoc), STORE_TEXT(status->partition), STORE_TEXT(status->qos),
            STORE_TEXT(spec->wckey), STORE_TEXT(spec->name),
            STORE_TEXT(reservation ? reservation : spec->reservation), STORE_INT(row->state),
            STORE_INT(row->requeued), STORE_INT(status->submit_us), STORE_INT(status->eligible_us),
            STORE_INT(row->start_us), STORE_INT(row->end_us), STORE_INT(status->suspended_total_us),
            STORE_INT(job_limit_s(job)), STORE_INT(given ? job_cpu_count(job) : 0),
            STORE_INT(given ? job_node_count(job) : 0),
            STORE_INT(tres_count(str_text(&tres), "mem")),
            STORE_INT(tres_count(str_text(&tres), "gres/gpu")),
            STORE_INT(tres_count(str_text(&tres), "billing")), STORE_INT(status->exit_status),
            STORE_TEXT(str_text(&nodes)), STORE_TEXT(str_text(&tres)),
            STORE_BYTES(in->packed.data, in->packed.len), STORE_INT(row->cancelled_by),
            STORE_TEXT(str_text(&asked)), STORE_INT(row->born_us)),
        err);
}

/* The run was written by an earlier batch; this one says that it ended, or was suspended. */
static int update_run(struct ingest *in, const struct run_row *row, struct err *err)
{
    note_span(in, row, row->start_us);
    note_dirty(in, row->end_us);
    return store_run(in->store,
                     "UPDATE job SET state = ?4, requeued = ?5,"
                     " t_end = CASE WHEN t_end = 0 THEN ?6 ELSE t_end END"
                     " WHERE cluster = ?1 AND job_id = ?2 AND run = ?3 AND t_end = 0",
                     STORE_VALUES(STORE_INT(in->batch->cluster), STORE_INT(row->job_id),
                                  STORE_INT(row->run), STORE_INT(row->state),
                                  STORE_INT(row->requeued), STORE_INT(row->end_us)),
                     err);
}

static int write_rows(struct ingest *in, struct err *err)
{
    int code = 0;

    map_each (entry, &in->runs) {
        const struct run_row *row = entry->value;
        code = row->job ? write_run(in, row, err) : update_run(in, row, err);
        if (code < 0)
            return code;
    }
    map_each (entry, &in->steps) {
        const struct step_row *row = entry->value;
        if (row->changed && write_step(in, row, err) < 0)
            return -(int)err->code;
    }
    map_each (entry, &in->spans) {
        code = store_run(in->store,
                         "INSERT INTO span(month, longest_us) VALUES(?1, ?2) ON CONFLICT(month)"
                         " DO UPDATE SET longest_us = CASE WHEN span.longest_us < ?2 THEN ?2"
                         " ELSE span.longest_us END",
                         STORE_VALUES(STORE_INT(entry->num), STORE_INT(*(int64_t *)entry->value)),
                         err);
        if (code < 0)
            return code;
    }
    return 0;
}

/* ---- entries ---- */

static int take_cancelled_tasks(struct ingest *in, const JournalRecord *record, int64_t time_us,
                                struct err *err)
{
    return store_run(in->store,
                     "INSERT INTO array_cancelled(cluster, job_id, t_us, tasks)"
                     " VALUES(?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
                     STORE_VALUES(STORE_INT(in->batch->cluster), STORE_INT(record->job_id),
                                  STORE_INT(time_us), STORE_TEXT(record->text)),
                     err);
}

static int take_payload(struct ingest *in, const JournalRecord *record, struct err *err)
{
    if (!record->payload)
        return 0;
    str_clear(&in->packed);
    str_reserve(&in->packed, job_payload__get_packed_size(record->payload) + 1);
    in->packed.len = job_payload__pack(record->payload, (uint8_t *)in->packed.data);
    return store_run(in->store,
                     "INSERT INTO payload(cluster, job_id, payload) VALUES(?1, ?2, ?3)"
                     " ON CONFLICT(cluster, job_id) DO UPDATE SET payload = ?3",
                     STORE_VALUES(STORE_INT(in->batch->cluster), STORE_INT(record->job_id),
                                  STORE_BYTES(in->packed.data, in->packed.len)),
                     err);
}

static int take_record(struct ingest *in, const JournalEntry *entry, const JournalRecord *record,
                       struct err *err)
{
    int64_t time_us = entry->time_us;

    switch (record->kind) {
    case JOURNAL_SUBMITTED:
    case JOURNAL_SPLIT:
    case JOURNAL_STARTED:
    case JOURNAL_CHANGED:
        if (record->job)
            note_job(in, record->job, run_of(record->job), false);
        return 0;
    case JOURNAL_ENDED:
        if (record->job)
            take_ended(in, record);
        return 0;
    case JOURNAL_REQUEUED:
        if (record->job)
            take_requeued(in, record);
        return 0;
    case JOURNAL_SUSPENDED:
    case JOURNAL_RESUMED:
        return write_suspension(in, record, time_us, err);
    case JOURNAL_TASKS_CANCELLED:
        return take_cancelled_tasks(in, record, time_us, err);
    case JOURNAL_STEP:
        take_part(in, record->step);
        return 0;
    case JOURNAL_STEP_STARTED:
        take_begun(in, record->step);
        return 0;
    case JOURNAL_PAYLOAD:
        return take_payload(in, record, err);
    case JOURNAL_NODE:
    case JOURNAL_CAPACITY:
    case JOURNAL_RESERVATION:
    case JOURNAL_RESERVATION_ENDED:
        note_dirty(in, entry->time_us);
        if (record->reservation && record->reservation->spec)
            note_dirty(in, record->reservation->spec->start_us);
        return ingest_cluster(in->store, in->batch->cluster, entry, record, err);
    default:
        return 0; /* of a newer controller, and of no concern here */
    }
}

/* Those that the database does not have yet. */
static int unpack_entries(struct ingest *in, uint64_t position, JournalEntry ***out, size_t *count,
                          struct err *err)
{
    const struct ingest_batch *batch = in->batch;
    JournalEntry **entries = ARENA_ARRAY(&in->arena, JournalEntry *, batch->entries.len + 1);
    size_t fresh = 0;

    for (size_t i = 0; i < batch->entries.len; i++) {
        const struct str *packed = &batch->entries.items[i];
        ProtobufCMessage *message = NULL;
        if (pb_unpack(&journal_entry__descriptor, &in->arena, packed->data, packed->len, &message,
                      err) < 0)
            return err_wrap(err, "entry of the journal");
        entries[fresh] = (JournalEntry *)message;
        fresh += entries[fresh]->index > position; /* (1) */
    }
    *out = entries;
    *count = fresh;
    return 0;
}

static int take_entry(struct ingest *in, const JournalEntry *entry, uint64_t position,
                      struct err *err)
{
    if (entry->lost_from)
        return add_gap(in->store, in->batch->cluster, MAX(entry->lost_from, position + 1),
                       entry->index, in->batch->now_us,
                       "the controllers have given up these entries of their journal", err);
    in->entry_us = entry->time_us;
    for (size_t i = 0; i < entry->n_records; i++) {
        if (take_record(in, entry, entry->records[i], err) < 0)
            return err_wrap(err, "entry %llu", (unsigned long long)entry->index);
    }
    return 0;
}

static int write_all(struct ingest *in, struct err *err)
{
    const struct ingest_batch *batch = in->batch;
    struct found_cluster found = { 0 };

    if (store_each(in->store, "SELECT id, epoch, idx FROM cluster WHERE id = ?1",
                   STORE_VALUES(STORE_INT(batch->cluster)), take_cluster, &found, err) < 0)
        return -(int)err->code;
    int64_t done_s;
    if (rollup_done(in->store, batch->cluster, &done_s, err) < 0)
        return -(int)err->code;
    in->done_us = done_s == INT64_MIN ? INT64_MIN : done_s * 1000000;
    in->dirty_us = INT64_MAX;
    uint64_t position = found.position.index;
    JournalEntry **entries = NULL;
    size_t count = 0;
    if (unpack_entries(in, position, &entries, &count, err) < 0 ||
        load_steps(in, entries, count, err) < 0)
        return -(int)err->code;
    for (size_t i = 0; i < count; i++) {
        if (take_entry(in, entries[i], position, err) < 0)
            return -(int)err->code;
    }
    if (write_rows(in, err) < 0 ||
        (in->dirty_us < in->done_us &&
         rollup_restart(in->store, batch->cluster, in->dirty_us / 1000000, err) < 0))
        return -(int)err->code;
    return set_position(in->store, batch->cluster, MAX(batch->epoch, found.position.epoch),
                        MAX(batch->last, position), batch->now_us, err);
}

int ingest_write(struct store *store, const struct ingest_batch *batch, struct err *err)
{
    struct ingest in = { .store = store, .batch = batch };

    arena_init(&in.arena);
    map_init(&in.runs);
    map_init(&in.steps);
    map_init(&in.spans);
    map_init(&in.assocs);
    int code = store_begin(store, err);
    if (code == 0) {
        code = write_all(&in, err);
        if (code == 0)
            code = store_commit(store, err);
        if (code < 0)
            store_rollback(store);
    }
    map_each (entry, &in.runs)
        vec_done(&((struct run_row *)entry->value)->resizes);
    map_done(&in.runs);
    map_done(&in.steps);
    map_done(&in.spans);
    map_done(&in.assocs);
    str_done(&in.packed);
    str_done(&in.text);
    arena_done(&in.arena);
    return code;
}

void ingest_batch_done(struct ingest_batch *batch)
{
    vec_each (struct str, entry, &batch->entries)
        str_done(entry);
    vec_done(&batch->entries);
}
