// SPDX-License-Identifier: Apache-2.0
/*
 * test_rollup.c - sums of use equal what the history says, whatever comes late
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "spurdbd/ingest.h"
#include "spurdbd/rollup.h"
#include "spurdbd/schema.h"

enum { HOUR = 3600, DAY = 86400, JOBS = 60, DAYS = 70, USERS = 3 };
#define BEGIN INT64_C(1704067200) /* 2024-01-01 UTC */

static const char *const users[USERS] = { "alice", "bob", "carol" };

/* ---- a database ---- */

struct world {
    char dir[64], url[256];
    struct store *store;
    int64_t cluster;
    uint64_t next;
};

static int set_up(void **state)
{
    static unsigned made;
    struct world *world = NEW(struct world);
    const char *server = getenv("SPUR_TEST_DATABASE");
    FeedHello hello = FEED_HELLO__INIT;
    struct ingest_position position;
    struct err err = { 0 };
    uint8_t id[16] = "cluster-of-tests";
    bool gap;

    strcpy(world->dir, "/tmp/spur-dbd.XXXXXX");
    assert_non_null(mkdtemp(world->dir));
    snprintf(world->url, sizeof(world->url), "sqlite:%s/spur.db", world->dir);
    if (server) {
        char sql[64];
        snprintf(sql, sizeof(sql), "CREATE SCHEMA r%u", ++made);
        if (store_open(server, &world->store, &err) < 0 ||
            store_script(world->store, sql, &err) < 0)
            fail_msg("%s", err.text);
        store_close(world->store);
        snprintf(world->url, sizeof(world->url), "%s&options=-csearch_path%%3Dr%u", server, made);
    }
    hello.has_cluster_id = true;
    hello.cluster_id = (ProtobufCBinaryData){ sizeof(id), id };
    hello.cluster = (char *)"test";
    hello.controller = (char *)"c1";
    if (store_open(world->url, &world->store, &err) < 0 ||
        schema_settle(world->store, false, &err) < 0 ||
        ingest_hello(world->store, &hello, BEGIN * 1000000, &world->cluster, &position, &gap,
                     &err) < 0)
        fail_msg("%s", err.text);
    world->next = 1;
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    CLEANUP(freep) char *command = mem_printf("rm -rf '%s'", world->dir);

    store_close(world->store);
    assert_int_equal(system(command), 0);
    free(world);
    return 0;
}

/* ---- a history: what happens to a job, and the same as plain intervals ---- */

struct use {
    unsigned user, cpus;
    int64_t from, to;
};
struct happening {
    int64_t at_s;
    unsigned job;
    JournalKind kind;
};
struct job {
    unsigned id, user, cpus;
    uint32_t attempt, restarts;
    JobState state;
    int64_t submit_s, start_s, end_s, suspended_s;
    const char *account, *reservation;
};
struct story {
    VEC(struct use) used, planned;
    VEC(struct happening) events;
    struct job jobs[JOBS];
};

static unsigned seed;
static int64_t pick(int64_t below)
{
    seed = seed * 1103515245u + 12345u;
    return (int64_t)((seed >> 8) % (uint64_t)below);
}

static void happens(struct story *story, unsigned job, int64_t at_s, JournalKind kind)
{
    vec_push(&story->events, (struct happening){ at_s, job, kind });
}

/* One run: it waits, runs, may be suspended, and ends or is requeued. Returns when that was. */
static int64_t tell_run(struct story *story, unsigned index, int64_t at, bool requeue)
{
    const struct job *job = &story->jobs[index];
    int64_t start = at + 1 + pick(5 * HOUR), run = 1 + pick(pick(4) ? 3 * HOUR : 3 * DAY);
    int64_t end = start + run;

    vec_push(&story->planned, (struct use){ job->user, job->cpus, at, start });
    happens(story, index, start, JOURNAL_STARTED);
    if (run > 100 && pick(3) == 0) {
        int64_t from = start + 1 + pick(run / 2), to = from + 1 + pick(run / 3);
        happens(story, index, from, JOURNAL_SUSPENDED);
        happens(story, index, to, JOURNAL_RESUMED);
        vec_push(&story->used, (struct use){ job->user, job->cpus, start, from });
        vec_push(&story->used, (struct use){ job->user, job->cpus, to, end });
    } else {
        vec_push(&story->used, (struct use){ job->user, job->cpus, start, end });
    }
    happens(story, index, end, requeue ? JOURNAL_REQUEUED : JOURNAL_ENDED);
    return end;
}

static int by_time(const void *a, const void *b)
{
    const struct happening *x = a, *y = b;

    if (x->at_s != y->at_s)
        return x->at_s < y->at_s ? -1 : 1;
    return x < y ? -1 : 1;
}

static void tell(struct story *story)
{
    for (unsigned i = 0; i < JOBS; i++) {
        struct job *job = &story->jobs[i];
        *job = (struct job){ .id = i + 1,
                             .user = (unsigned)pick(USERS),
                             .cpus = 1 + (unsigned)pick(8),
                             .submit_s = BEGIN + pick((int64_t)(DAYS - 5) * DAY) };
        happens(story, i, job->submit_s, JOURNAL_SUBMITTED);
        int64_t at = tell_run(story, i, job->submit_s, pick(4) == 0);
        if (story->events.items[story->events.len - 1].kind == JOURNAL_REQUEUED)
            tell_run(story, i, at, false);
    }
    qsort(story->events.items, story->events.len, sizeof(struct happening), by_time);
}

static int64_t expected(const struct story *story, int user, bool planned, int64_t from, int64_t to)
{
    int64_t sum = 0;
    size_t count = planned ? story->planned.len : story->used.len;
    const struct use *uses = planned ? story->planned.items : story->used.items;

    for (size_t i = 0; i < count; i++) {
        int64_t lap = MIN(uses[i].to, to) - MAX(uses[i].from, from);
        if (lap > 0 && (user < 0 || uses[i].user == (unsigned)user))
            sum += lap * uses[i].cpus;
    }
    return sum;
}

/* ---- the journal of it ---- */

struct parts {
    Job job;
    JobOwner owner;
    JobSpec spec;
    JobStatus status;
    char tres[64];
};

static Job *job_message(struct parts *p, const struct job *job)
{
    job__init(&p->job);
    job_owner__init(&p->owner);
    job_spec__init(&p->spec);
    job_status__init(&p->status);
    p->job.has_id = p->owner.has_uid = p->status.has_state = p->status.has_attempt = true;
    p->status.has_submit_us = p->status.has_eligible_us = p->status.has_restarts = true;
    p->status.has_start_us = p->status.has_end_us = p->status.has_suspended_total_us = true;
    p->job.id = job->id;
    p->job.owner = &p->owner;
    p->job.spec = &p->spec;
    p->job.status = &p->status;
    p->owner.uid = 1000 + job->user;
    p->owner.user = (char *)(uintptr_t)users[job->user];
    p->spec.name = (char *)"name";
    p->spec.reservation = (char *)(uintptr_t)job->reservation;
    p->status.state = job->state;
    p->status.attempt = job->attempt;
    p->status.restarts = job->restarts;
    p->status.account = (char *)(uintptr_t)(job->account ? job->account : "phys");
    p->status.partition = (char *)"debug";
    p->status.submit_us = p->status.eligible_us = job->submit_s * 1000000;
    p->status.start_us = job->start_s * 1000000;
    p->status.end_us = job->end_s * 1000000;
    p->status.suspended_total_us = job->suspended_s * 1000000;
    snprintf(p->tres, sizeof(p->tres), "cpu=%u,node=1", job->cpus);
    p->status.tres_req = p->tres;
    p->status.tres_alloc = job->start_s ? p->tres : NULL;
    return &p->job;
}

/* What the event makes of the job, and the record of it. */
static void advance(struct job *job, const struct happening *event, JournalRecord *record)
{
    record->has_attempt = record->has_end_state = true;
    switch (event->kind) {
    case JOURNAL_STARTED:
        job->attempt++;
        job->state = JOB_RUNNING;
        job->start_s = event->at_s;
        break;
    case JOURNAL_SUSPENDED:
        job->state = JOB_SUSPENDED;
        job->suspended_s++;
        break;
    case JOURNAL_RESUMED:
        job->state = JOB_RUNNING;
        break;
    case JOURNAL_REQUEUED:
    case JOURNAL_ENDED:
        record->has_start_us = record->has_end_us = true;
        record->start_us = job->start_s * 1000000;
        record->end_us = event->at_s * 1000000;
        job->state = event->kind == JOURNAL_ENDED ? JOB_COMPLETED : JOB_PENDING;
        job->end_s = event->kind == JOURNAL_ENDED ? event->at_s : 0;
        record->end_state = JOB_COMPLETED;
        if (event->kind == JOURNAL_REQUEUED) {
            job->restarts++;
            job->start_s = 0;
            job->submit_s = event->at_s; /* eligible again from now on */
        }
        break;
    default:
        break;
    }
    record->attempt = job->attempt;
}

static void add(struct world *world, struct ingest_batch *batch, JournalRecord *record,
                int64_t at_s)
{
    JournalEntry entry = JOURNAL_ENTRY__INIT;
    struct str packed = { 0 };

    entry.has_index = entry.has_time_us = record->has_kind = record->has_job_id = true;
    entry.index = world->next++;
    entry.time_us = at_s * 1000000;
    entry.n_records = 1;
    entry.records = &record;
    str_reserve(&packed, journal_entry__get_packed_size(&entry) + 1);
    packed.len = journal_entry__pack(&entry, (uint8_t *)packed.data);
    vec_push(&batch->entries, packed);
    batch->last = entry.index;
}

static void add_event(struct world *world, struct ingest_batch *batch, struct story *story,
                      const struct happening *event)
{
    struct job *job = &story->jobs[event->job];
    JournalRecord record = JOURNAL_RECORD__INIT;
    struct parts parts;

    record.kind = event->kind;
    record.job_id = job->id;
    advance(job, event, &record);
    record.job = job_message(&parts, job);
    add(world, batch, &record, event->at_s);
}

static void write_batch(struct world *world, struct ingest_batch *batch)
{
    struct err err = { 0 };

    batch->cluster = world->cluster;
    batch->epoch = 1;
    if (ingest_write(world->store, batch, &err) < 0)
        fail_msg("%s", err.text);
    ingest_batch_done(batch);
    memset(batch, 0, sizeof(*batch));
}

static void roll(struct world *world, int64_t now_s)
{
    struct err err = { 0 };
    bool more = true;

    while (more) {
        if (rollup_step(world->store, world->cluster, now_s, &more, &err) < 0)
            fail_msg("%s", err.text);
    }
}

/* ---- tests ---- */

static int64_t used_by(const struct meter *meter, const char *user, const char *tres)
{
    int64_t sum = 0;

    for (unsigned who = 0; who < meter_who_count(meter); who++) {
        for (unsigned t = 0; t < meter_tres_count(meter); t++) {
            if (strcmp(meter_tres_at(meter, t), tres) == 0 &&
                strcmp(meter_who_at(meter, who)->user, user) == 0)
                sum += meter_value(meter, METER_USED, 0, who, t);
        }
    }
    return sum;
}

static int64_t of_cluster(const struct meter *meter, enum meter_kind kind, const char *tres)
{
    int64_t sum = 0;

    for (unsigned t = 0; t < meter_tres_count(meter); t++) {
        if (strcmp(meter_tres_at(meter, t), tres) == 0)
            sum += meter_value(meter, kind, 0, 0, t);
    }
    return sum;
}

static void compare(struct world *world, const struct story *story, int64_t from, int64_t to,
                    int64_t now)
{
    int64_t edges[] = { from, to }, all = 0;
    struct meter *meter = NULL;
    struct err err = { 0 };

    if (rollup_sum(world->store, world->cluster, edges, 2, now, &meter, &err) < 0)
        fail_msg("%s", err.text);
    for (int user = 0; user < USERS; user++) {
        int64_t want = expected(story, user, false, from, MIN(to, now));
        int64_t have = used_by(meter, users[user], "cpu");
        if (want != have)
            fail_msg("seed %u: %s used %" PRId64 " and not %" PRId64 " from %" PRId64
                     " to %" PRId64,
                     seed, users[user], have, want, from, to);
        all += want;
    }
    assert_int_equal(of_cluster(meter, METER_ALLOC, "cpu"), all);
    assert_int_equal(of_cluster(meter, METER_PLANNED, "cpu") + of_cluster(meter, METER_OVER, "cpu"),
                     expected(story, -1, true, from, MIN(to, now)));
    meter_free(meter);
}

static int add_row(void *ctx, const struct store_row *row, struct err *err)
{
    struct str *out = ctx;

    (void)err;
    for (unsigned i = 0; i < 6; i++)
        str_addf(out, "%" PRId64 " ", store_row_int(row, i));
    str_add_char(out, '\n');
    return 0;
}

static void dump(struct world *world, struct str *out)
{
    struct err err = { 0 };

    if (store_each(world->store,
                   "SELECT period, t_s, who, tres, amount, 0 FROM usage_sum"
                   " ORDER BY period, t_s, who, tres",
                   STORE_NO_VALUES, add_row, out, &err) < 0 ||
        store_each(world->store,
                   "SELECT period, t_s, tres, alloc, planned, overcommit FROM usage_cluster"
                   " ORDER BY period, t_s, tres",
                   STORE_NO_VALUES, add_row, out, &err) < 0)
        fail_msg("%s", err.text);
}

/*
 * Events are delivered some hours late at random, and the sums are made in between: they must be the same as those
 * that are made in the end from nothing, and as the intervals that the story was told with.
 */
static void test_random_histories(void **state)
{
    struct world *world = *state;
    struct story story = { 0 };
    struct ingest_batch batch = { 0 };
    CLEANUP(str_done) struct str before = { 0 }, after = { 0 };
    struct err err = { 0 };
    int64_t now = BEGIN + (int64_t)DAYS * DAY;

    seed = 20240101;
    tell(&story);
    for (size_t i = 0; i < story.events.len; i++) {
        const struct happening *event = &story.events.items[i];
        add_event(world, &batch, &story, event);
        if (pick(3) == 0) {
            write_batch(world, &batch);
            roll(world, MIN(event->at_s + pick(12 * HOUR), now));
        }
    }
    write_batch(world, &batch);
    roll(world, now - 2 * HOUR);
    for (int i = 0; i < 60; i++) {
        int64_t from = BEGIN + pick((int64_t)DAYS * DAY), to = from + 1 + pick(40 * DAY);
        if (i % 3 == 0) {
            from = rollup_floor(ROLLUP_HOUR, from);
            to = rollup_floor(ROLLUP_MONTH, to);
        }
        if (from < to)
            compare(world, &story, from, to, now);
    }
    compare(world, &story, BEGIN, now, now);
    dump(world, &before);
    assert_true(before.len > 1000);
    if (rollup_again(world->store, world->cluster, INT64_MIN, &err) < 0)
        fail_msg("%s", err.text);
    roll(world, now - 2 * HOUR);
    dump(world, &after);
    assert_string_equal(str_text(&before), str_text(&after));
    vec_done(&story.used);
    vec_done(&story.planned);
    vec_done(&story.events);
}

/* A job that gets another account, or other CPUs, while it runs. */
static void test_changes_of_running_jobs(void **state)
{
    struct world *world = *state;
    struct story story = { 0 };
    struct ingest_batch batch = { 0 };
    struct meter *meter = NULL;
    struct err err = { 0 };
    struct job *job = &story.jobs[0];
    int64_t edges[] = { BEGIN, BEGIN + DAY };

    *job = (struct job){ .id = 1, .cpus = 8, .submit_s = BEGIN };
    add_event(world, &batch, &story, &(struct happening){ BEGIN, 0, JOURNAL_SUBMITTED });
    add_event(world, &batch, &story, &(struct happening){ BEGIN + HOUR, 0, JOURNAL_STARTED });
    write_batch(world, &batch);
    roll(world, BEGIN + 5 * HOUR);
    job->cpus = 2;
    add_event(world, &batch, &story, &(struct happening){ BEGIN + 3 * HOUR, 0, JOURNAL_CHANGED });
    write_batch(world, &batch);
    roll(world, BEGIN + 6 * HOUR);
    job->account = "chem";
    add_event(world, &batch, &story, &(struct happening){ BEGIN + 5 * HOUR, 0, JOURNAL_CHANGED });
    write_batch(world, &batch);
    roll(world, BEGIN + 7 * HOUR);
    if (rollup_sum(world->store, world->cluster, edges, 2, BEGIN + 7 * HOUR, &meter, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(used_by(meter, "alice", "cpu"), (2 * 8 + 4 * 2) * HOUR);
    for (unsigned who = 0; who < meter_who_count(meter); who++)
        assert_string_equal(meter_who_at(meter, who)->account, "chem");
    meter_free(meter);
}

static void put(struct world *world, const char *sql, struct store_values values)
{
    struct err err = { 0 };

    if (store_run(world->store, sql, values, &err) < 0)
        fail_msg("%s", err.text);
}

static void put_event(struct world *world, const char *node, int64_t from, int64_t to,
                      const char *tres)
{
    put(world,
        "INSERT INTO event(cluster, node_name, t_start, t_end, state, flags, reason, reason_uid,"
        " reason_user, tres, nodes) VALUES(?1, ?2, ?3, ?4, 1, 0, '', 0, '', ?5, '')",
        STORE_VALUES(STORE_INT(world->cluster), STORE_TEXT(node), STORE_INT(from * 1000000),
                     STORE_INT(to * 1000000), STORE_TEXT(tres)));
}

static void put_resv(struct world *world, int id, const char *name, const char *node, int64_t from,
                     int64_t to, const char *flags)
{
    put(world,
        "INSERT INTO resv(cluster, id, name, t_start, t_end, ended, nodes, node_count, tres, users,"
        " accounts, flags, comment) VALUES(?1, ?2, ?3, ?4, ?5, 1, ?6, 1, 'cpu=4', '', '', ?7, '')",
        STORE_VALUES(STORE_INT(world->cluster), STORE_INT(id), STORE_TEXT(name),
                     STORE_INT(from * 1000000), STORE_INT(to * 1000000), STORE_TEXT(node),
                     STORE_TEXT(flags)));
}

/* Nodes that are down, for maintenance or without; a reservation that a job uses in part. */
static void test_cluster(void **state)
{
    struct world *world = *state;
    struct story story = { 0 };
    struct ingest_batch batch = { 0 };
    struct meter *meter = NULL;
    struct err err = { 0 };
    int64_t edges[] = { BEGIN, BEGIN + 8 * HOUR };

    put_event(world, "", BEGIN - HOUR, 0, "cpu=10");
    put_event(world, "n1", BEGIN + HOUR, BEGIN + 3 * HOUR, "cpu=4");
    put_resv(world, 1, "work", "n[1-1]", BEGIN + 2 * HOUR, BEGIN + 4 * HOUR, "MAINT");
    put_resv(world, 2, "lab", "n2", BEGIN + 5 * HOUR, BEGIN + 7 * HOUR, "");
    story.jobs[0] =
        (struct job){ .id = 1, .cpus = 2, .submit_s = BEGIN + 5 * HOUR, .reservation = "lab" };
    add_event(world, &batch, &story, &(struct happening){ BEGIN + 5 * HOUR, 0, JOURNAL_SUBMITTED });
    add_event(world, &batch, &story, &(struct happening){ BEGIN + 5 * HOUR, 0, JOURNAL_STARTED });
    add_event(world, &batch, &story, &(struct happening){ BEGIN + 6 * HOUR, 0, JOURNAL_ENDED });
    write_batch(world, &batch);
    for (int round = 0; round < 2; round++) { /* from the history, then from sums */
        if (rollup_sum(world->store, world->cluster, edges, 2, BEGIN + 9 * HOUR, &meter, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(of_cluster(meter, METER_TOTAL, "cpu"), 80 * HOUR);
        assert_int_equal(of_cluster(meter, METER_ALLOC, "cpu"), 2 * HOUR);
        assert_int_equal(of_cluster(meter, METER_DOWN, "cpu"), 4 * HOUR);
        assert_int_equal(of_cluster(meter, METER_PDOWN, "cpu"), 8 * HOUR);
        assert_int_equal(of_cluster(meter, METER_RESV, "cpu"), 6 * HOUR);
        meter_free(TAKE(meter));
        roll(world, BEGIN + 9 * HOUR);
    }
}

/* What does not fit into the cluster: use first, then down, then what is planned. */
static void test_what_fits(void **state)
{
    int64_t edges[] = { 0, HOUR };
    struct meter *meter = meter_new(edges, 2);
    unsigned who = meter_who(meter, &(struct meter_who){ .user = "alice" });
    unsigned cpu = meter_tres(meter, "cpu", 3);

    (void)state;
    meter_add(meter, METER_TOTAL, 0, cpu, 10, -5, 2 * HOUR);
    meter_add(meter, METER_USED, who, cpu, 6, 0, HOUR);
    meter_add(meter, METER_DOWN, 0, cpu, 2, 0, HOUR);
    meter_add_tres(meter, METER_PLANNED, 0, "cpu=5,mem=2G", 12, 0, HOUR);
    meter_settle(meter);
    assert_int_equal(meter_value(meter, METER_TOTAL, 0, 0, cpu), 10 * HOUR);
    assert_int_equal(meter_value(meter, METER_ALLOC, 0, 0, cpu), 6 * HOUR);
    assert_int_equal(meter_value(meter, METER_DOWN, 0, 0, cpu), 2 * HOUR);
    assert_int_equal(meter_value(meter, METER_PLANNED, 0, 0, cpu), 2 * HOUR);
    assert_int_equal(meter_value(meter, METER_OVER, 0, 0, cpu), 3 * HOUR);
    assert_int_equal(meter_value(meter, METER_OVER, 0, 0, meter_tres(meter, "mem", 3)),
                     2048 * HOUR);
    meter_free(meter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_random_histories, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_changes_of_running_jobs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cluster, set_up, tear_down),
        cmocka_unit_test(test_what_fits),
    };

    setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
