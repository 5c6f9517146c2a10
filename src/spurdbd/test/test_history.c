// SPDX-License-Identifier: Apache-2.0
/*
 * test_history.c - entries of a journal go in, whatever is sent twice; questions get their answers
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "spurdbd/history.h"
#include "spurdbd/ingest.h"
#include "spurdbd/schema.h"
#include "sys/log.h"
#include "wire/pb_unpack.h"

#define S(seconds) (INT64_C(1700000000) * 1000000 + (int64_t)(seconds)*1000000)

/* ---- a database, and what goes into it ---- */

struct world {
    char dir[64];
    char url[256];
    struct store *store;
    int64_t cluster;
    struct ingest_batch batch;
    uint64_t next; /* index */
};

static uint8_t cluster_id[16] = "cluster-of-tests";

static FeedHello hello_of(uint64_t epoch, uint64_t last)
{
    FeedHello hello = FEED_HELLO__INIT;

    hello.has_cluster_id = hello.has_epoch = hello.has_last = true;
    hello.cluster_id = (ProtobufCBinaryData){ sizeof(cluster_id), cluster_id };
    hello.cluster = (char *)"test";
    hello.controller = (char *)"c1";
    hello.epoch = epoch;
    hello.last = last;
    return hello;
}

static struct ingest_position say_hello(struct world *world, uint64_t epoch, uint64_t last,
                                        bool *gap)
{
    FeedHello hello = hello_of(epoch, last);
    struct ingest_position position;
    struct err err = { 0 };

    assert_int_equal(
        ingest_hello(world->store, &hello, S(0), &world->cluster, &position, gap, &err), 0);
    return position;
}

/* SPUR_TEST_DATABASE names a server: each test has a schema of its own there. */
static void find_database(struct world *world)
{
    static unsigned made;
    const char *server = getenv("SPUR_TEST_DATABASE");
    struct store *store = NULL;
    struct err err = { 0 };
    char sql[64];

    strcpy(world->dir, "/tmp/spur-dbd.XXXXXX");
    assert_non_null(mkdtemp(world->dir));
    snprintf(world->url, sizeof(world->url), "sqlite:%s/spur.db", world->dir);
    if (!server)
        return;
    snprintf(sql, sizeof(sql), "CREATE SCHEMA t%u", ++made);
    if (store_open(server, &store, &err) < 0 || store_script(store, sql, &err) < 0)
        fail_msg("%s", err.text);
    store_close(store);
    snprintf(world->url, sizeof(world->url), "%s&options=-csearch_path%%3Dt%u", server, made);
}

static int set_up(void **state)
{
    struct world *world = NEW(struct world);
    struct err err = { 0 };
    bool gap;

    find_database(world);
    if (store_open(world->url, &world->store, &err) < 0 ||
        schema_settle(world->store, false, &err) < 0)
        fail_msg("%s", err.text);
    say_hello(world, 1, 0, &gap);
    assert_false(gap);
    world->next = 1;
    *state = world;
    return 0;
}

static int tear_down(void **state)
{
    struct world *world = *state;
    CLEANUP(freep) char *command = mem_printf("rm -rf '%s'", world->dir);

    ingest_batch_done(&world->batch);
    store_close(world->store);
    assert_int_equal(system(command), 0);
    free(world);
    return 0;
}

static void add_entry(struct world *world, const JournalEntry *entry)
{
    struct str packed = { 0 };

    str_reserve(&packed, journal_entry__get_packed_size(entry) + 1);
    packed.len = journal_entry__pack(entry, (uint8_t *)packed.data);
    vec_push(&world->batch.entries, packed);
    world->batch.last = entry->index;
}

static void add_record(struct world *world, JournalRecord *record, int64_t time_us)
{
    JournalEntry entry = JOURNAL_ENTRY__INIT;

    record->has_kind = record->has_job_id = true;
    entry.has_index = entry.has_time_us = true;
    entry.index = world->next++;
    entry.time_us = time_us;
    entry.n_records = 1;
    entry.records = &record;
    add_entry(world, &entry);
}

/* Writes what was added; what is `kept` can be sent again. */
static void flush(struct world *world, bool kept)
{
    struct err err = { 0 };

    world->batch.cluster = world->cluster;
    world->batch.epoch = 1;
    world->batch.now_us = S(0);
    if (ingest_write(world->store, &world->batch, &err) < 0)
        fail_msg("%s", err.text);
    if (!kept) {
        ingest_batch_done(&world->batch);
        memset(&world->batch, 0, sizeof(world->batch));
    }
}

/* A job with everything that records need, until the next call. */
struct sample {
    Job job;
    JobOwner owner;
    JobSpec spec;
    JobStatus status;
    Allocation allocation;
    NodeAlloc node;
    NodeAlloc *nodes[1];
};

static struct sample *sample_of(uint32_t id, JobState state, uint32_t attempt)
{
    static struct sample s;

    job__init(&s.job);
    job_owner__init(&s.owner);
    job_spec__init(&s.spec);
    job_status__init(&s.status);
    allocation__init(&s.allocation);
    node_alloc__init(&s.node);
    s.job.has_id = s.owner.has_uid = s.status.has_state = s.status.has_attempt = true;
    s.job.id = id;
    s.job.owner = &s.owner;
    s.job.spec = &s.spec;
    s.job.status = &s.status;
    s.owner.uid = 1000 + id % 2;
    s.owner.user = (char *)(id % 2 ? "bob" : "alice");
    s.spec.name = (char *)"name";
    s.spec.has_batch = s.spec.batch = true;
    s.status.state = state;
    s.status.attempt = attempt;
    s.status.account = (char *)"phys";
    s.status.partition = (char *)"debug";
    s.status.has_submit_us = s.status.has_eligible_us = true;
    s.status.submit_us = s.status.eligible_us = S(id * 100);
    if (state != JOB_PENDING && attempt) {
        s.status.has_start_us = true;
        s.status.start_us = S(id * 100 + 10);
        s.node.node = (char *)"n1";
        s.node.has_cpus = true;
        s.node.cpus = 2;
        s.nodes[0] = &s.node;
        s.allocation.n_nodes = 1;
        s.allocation.nodes = s.nodes;
        s.status.allocation = &s.allocation;
        s.status.tres_alloc = (char *)"cpu=2,node=1,billing=2";
    }
    return &s;
}

static void submitted(struct world *world, uint32_t id)
{
    JournalRecord record = JOURNAL_RECORD__INIT;

    record.kind = JOURNAL_SUBMITTED;
    record.job_id = id;
    record.job = &sample_of(id, JOB_PENDING, 0)->job;
    add_record(world, &record, S(id * 100));
}

static void started(struct world *world, uint32_t id, uint32_t attempt)
{
    JournalRecord record = JOURNAL_RECORD__INIT;
    struct sample *s = sample_of(id, JOB_RUNNING, attempt);

    s->status.has_restarts = true;
    s->status.restarts = attempt - 1;
    record.kind = JOURNAL_STARTED;
    record.job_id = id;
    record.has_attempt = true;
    record.attempt = attempt;
    record.job = &s->job;
    add_record(world, &record, S(id * 100 + 10));
}

static void ended(struct world *world, uint32_t id, uint32_t attempt, JobState state)
{
    JournalRecord record = JOURNAL_RECORD__INIT;
    struct sample *s = sample_of(id, state, attempt);

    s->status.has_restarts = attempt > 0;
    s->status.restarts = attempt ? attempt - 1 : 0;
    s->status.has_end_us = true;
    s->status.end_us = S(id * 100 + 20);
    record.kind = JOURNAL_ENDED;
    record.job_id = id;
    record.has_attempt = true;
    record.attempt = attempt;
    record.has_end_state = record.has_end_us = true;
    record.end_state = state;
    record.end_us = s->status.end_us;
    record.has_start_us = s->status.start_us != 0;
    record.start_us = s->status.start_us;
    record.job = &s->job;
    add_record(world, &record, S(id * 100 + 20));
}

static void requeued(struct world *world, uint32_t id, uint32_t attempt)
{
    JournalRecord record = JOURNAL_RECORD__INIT;
    struct sample *s = sample_of(id, JOB_PENDING, attempt);

    s->status.has_restarts = true;
    s->status.restarts = attempt;
    s->status.eligible_us = 0;
    record.kind = JOURNAL_REQUEUED;
    record.job_id = id;
    record.has_attempt = record.has_end_state = record.has_start_us = record.has_end_us = true;
    record.attempt = attempt;
    record.end_state = JOB_COMPLETED;
    record.start_us = S(id * 100 + 10);
    record.end_us = S(id * 100 + 15);
    record.job = &s->job;
    add_record(world, &record, S(id * 100 + 15));
}

static void step_part(struct world *world, uint32_t id, const char *node, uint64_t rss,
                      uint32_t status)
{
    JournalRecord record = JOURNAL_RECORD__INIT;
    StepPart part = STEP_PART__INIT;
    StepId step = STEP_ID__INIT;
    Usage usage = USAGE__INIT;

    step.has_job_id = step.has_attempt = step.has_step = true;
    step.job_id = id;
    step.attempt = 1;
    usage.has_max_rss_bytes = usage.has_user_us = true;
    usage.max_rss_bytes = rss;
    usage.user_us = 500000;
    part.id = &step;
    part.name = (char *)"prog";
    part.node = (char *)node;
    part.nodes = (char *)"n[1-2]";
    part.has_node_count = part.has_ntasks = part.has_tasks_here = part.has_state = true;
    part.has_exit_status = part.has_started_us = part.has_ended_us = true;
    part.node_count = part.ntasks = 2;
    part.tasks_here = 1;
    part.exit_status = status;
    part.state = status ? JOB_FAILED : JOB_COMPLETED;
    part.started_us = S(id * 100 + 11);
    part.ended_us = S(id * 100 + 12);
    part.usage = &usage;
    record.kind = JOURNAL_STEP;
    record.job_id = id;
    record.step = &part;
    add_record(world, &record, part.ended_us);
}

/* ---- asking ---- */

struct answer {
    struct arena arena;
    const ListHistoryReply *reply;
    struct str text; /* "id/run=STATE ": short and to be compared */
};

static void ask(struct world *world, const ListHistoryRequest *request, struct answer *answer)
{
    struct history_viewer viewer = { .uid = 1000 };
    struct history *history = history_new(world->store, request, &viewer);
    CLEANUP(str_done) struct str packed = { 0 };
    struct err err = { 0 };
    ProtobufCMessage *message;

    arena_init(&answer->arena);
    if (history_select(history, &err) < 0)
        fail_msg("%s", err.text);
    while (history_more(history))
        assert_int_equal(history_next(history, 1000, &packed, &err), 0);
    history_free(history);
    assert_int_equal(pb_unpack(&list_history_reply__descriptor, &answer->arena, str_text(&packed),
                               packed.len, &message, &err),
                     0);
    answer->reply = (const void *)message;
    answer->text = (struct str){ 0 };
    for (size_t i = 0; i < answer->reply->n_jobs; i++) {
        const AcctJob *job = answer->reply->jobs[i];
        str_addf(&answer->text, "%u/%u=%d%s ", job->job->id, job->run, (int)job->state,
                 job->requeued ? "R" : "");
    }
}

static void answer_done(struct answer *answer)
{
    arena_done(&answer->arena);
    str_done(&answer->text);
}

#define ASSERT_HISTORY(world, request, wanted)               \
    do {                                                     \
        struct answer got_;                                  \
        ask((world), (request), &got_);                      \
        assert_string_equal(str_text(&got_.text), (wanted)); \
        answer_done(&got_);                                  \
    } while (0)

/* ---- what is claimed ---- */

static void a_job_is_there_once_however_it_is_sent(void **state)
{
    struct world *world = *state;
    ListHistoryRequest all = LIST_HISTORY_REQUEST__INIT;

    submitted(world, 1);
    started(world, 1, 1);
    ended(world, 1, 1, JOB_COMPLETED);
    flush(world, true);
    flush(world, false); /* after a crash everything is sent again */
    ASSERT_HISTORY(world, &all, "1/1=3 ");
    submitted(world, 2);
    flush(world, false);
    ASSERT_HISTORY(world, &all, "1/1=3 2/1=0 ");
    started(world, 2, 1);
    flush(world, true);
    ended(world, 2, 1, JOB_FAILED);
    flush(world, true);
    flush(world, false);
    ASSERT_HISTORY(world, &all, "1/1=3 2/1=5 ");
}

static void each_run_after_a_requeue_is_a_row(void **state)
{
    struct world *world = *state;
    ListHistoryRequest last = LIST_HISTORY_REQUEST__INIT, both = LIST_HISTORY_REQUEST__INIT;

    both.has_duplicates = both.duplicates = true;
    for (int apart = 0; apart <= 1; apart++) {
        uint32_t id = 1 + (uint32_t)apart;
        submitted(world, id);
        started(world, id, 1);
        if (apart)
            flush(world, false);
        requeued(world, id, 1);
        if (apart)
            flush(world, false);
        started(world, id, 2);
        ended(world, id, 2, JOB_COMPLETED);
        flush(world, false);
    }
    ASSERT_HISTORY(world, &both, "1/1=3R 1/2=3 2/1=3R 2/2=3 ");
    ASSERT_HISTORY(world, &last, "1/2=3 2/2=3 ");
}

static void a_job_that_never_ran_has_a_row_too(void **state)
{
    struct world *world = *state;
    ListHistoryRequest all = LIST_HISTORY_REQUEST__INIT;
    struct answer answer;

    submitted(world, 1);
    ended(world, 1, 0, JOB_CANCELLED);
    flush(world, false);
    ask(world, &all, &answer);
    assert_string_equal(str_text(&answer.text), "1/1=4 ");
    assert_int_equal(answer.reply->jobs[0]->start_us, 0);
    assert_int_equal(answer.reply->jobs[0]->n_steps, 0);
    answer_done(&answer);
}

static void parts_of_a_step_are_joined_once(void **state)
{
    struct world *world = *state;
    ListHistoryRequest all = LIST_HISTORY_REQUEST__INIT;
    struct answer answer;

    submitted(world, 1);
    started(world, 1, 1);
    step_part(world, 1, "n1", 1000, 0);
    flush(world, false);
    step_part(world, 1, "n1", 1000, 0); /* the node was not told that it had arrived */
    step_part(world, 1, "n2", 3000, 256);
    step_part(world, 1, "n2", 3000, 256);
    ended(world, 1, 1, JOB_COMPLETED);
    flush(world, false);
    ask(world, &all, &answer);
    const AcctJob *job = answer.reply->jobs[0];
    assert_int_equal(job->n_steps, 2); /* the batch script comes first */
    assert_string_equal(job->steps[0]->name, "batch");
    const AcctStep *step = job->steps[1];
    assert_int_equal(step->state, JOB_FAILED);
    assert_int_equal(step->exit_status, 256);
    assert_int_equal(step->usage->tasks, 2);
    assert_int_equal(step->usage->user_us, 1000000);
    assert_int_equal(step->usage->rss_bytes->max, 3000);
    assert_string_equal(step->usage->rss_bytes->max_node, "n2");
    assert_int_equal(step->usage->rss_bytes->min, 1000);
    assert_int_equal(step->usage->rss_bytes->total, 4000);
    assert_null(step->waits_for);
    answer_done(&answer);
}

static void windows_and_states(void **state)
{
    struct world *world = *state;
    ListHistoryRequest r = LIST_HISTORY_REQUEST__INIT;
    uint32_t failed = JOB_FAILED, running = JOB_RUNNING, pending = JOB_PENDING;

    for (uint32_t id = 1; id <= 4; id++) { /* eligible at id*100, runs from +10 to +20 */
        submitted(world, id);
        started(world, id, 1);
        ended(world, id, 1, id == 2 ? JOB_FAILED : JOB_COMPLETED);
    }
    submitted(world, 5);
    started(world, 5, 1);
    submitted(world, 6);
    flush(world, false);
    r.has_start_us = r.has_end_us = true;
    r.start_us = S(215);
    r.end_us = S(305);
    ASSERT_HISTORY(world, &r, "2/1=5 3/1=3 "); /* 3 waited at its end */
    r.start_us = S(221);
    ASSERT_HISTORY(world, &r, "3/1=3 ");
    r.end_us = S(1000);
    ASSERT_HISTORY(world, &r, "3/1=3 4/1=3 5/1=1 6/1=0 ");
    r.start_us = S(0);
    r.n_states = 1;
    r.states = &failed;
    ASSERT_HISTORY(world, &r, "2/1=5 ");
    r.states = &running;
    r.start_us = S(415);
    ASSERT_HISTORY(world, &r, "4/1=3 5/1=1 "); /* it ran within the window */
    r.states = &pending;
    ASSERT_HISTORY(world, &r, "5/1=1 6/1=0 ");
    r.start_us = S(600);
    ASSERT_HISTORY(world, &r, "6/1=0 ");
}

static void filters(void **state)
{
    struct world *world = *state;
    ListHistoryRequest r = LIST_HISTORY_REQUEST__INIT;
    uint32_t uid = 1001;
    char *nobody[] = { (char *)"nobody" }, *phys[] = { (char *)"phys" };

    for (uint32_t id = 1; id <= 3; id++) {
        submitted(world, id);
        started(world, id, 1);
        ended(world, id, 1, JOB_COMPLETED);
    }
    flush(world, false);
    r.n_uids = 1;
    r.uids = &uid;
    ASSERT_HISTORY(world, &r, "1/1=3 3/1=3 ");
    r.n_accounts = 1;
    r.accounts = phys;
    ASSERT_HISTORY(world, &r, "1/1=3 3/1=3 ");
    r.accounts = nobody;
    ASSERT_HISTORY(world, &r, "");
    r.n_accounts = 0;
    r.nodes = (char *)"n[1-3]";
    ASSERT_HISTORY(world, &r, "1/1=3 3/1=3 ");
    r.nodes = (char *)"n2";
    ASSERT_HISTORY(world, &r, "");
    r.nodes = NULL;
    r.has_min_cpus = true;
    r.min_cpus = 3;
    ASSERT_HISTORY(world, &r, "");
    r.n_clusters = 1;
    r.clusters = nobody;
    r.has_min_cpus = false;
    ASSERT_HISTORY(world, &r, "");
}

static void quotes_are_text(void **state)
{
    struct world *world = *state;
    ListHistoryRequest r = LIST_HISTORY_REQUEST__INIT;
    char *names[] = { (char *)"name') OR ('1'='1" };

    submitted(world, 1);
    flush(world, false);
    r.n_names = 1;
    r.names = names;
    ASSERT_HISTORY(world, &r, "");
}

static void what_the_journal_lacks_is_a_gap(void **state)
{
    struct world *world = *state;
    JournalEntry lost = JOURNAL_ENTRY__INIT;
    bool gap;

    submitted(world, 1);
    flush(world, false);
    lost.has_index = lost.has_lost_from = true;
    lost.lost_from = 1;
    lost.index = world->next = 50;
    add_entry(world, &lost);
    world->next++;
    submitted(world, 2);
    flush(world, false);
    struct ingest_position position = say_hello(world, 1, 60, &gap);
    assert_int_equal(position.index, 51);
    assert_true(gap);
}

static void a_database_ahead_of_its_cluster_goes_back(void **state)
{
    struct world *world = *state;
    ListHistoryRequest all = LIST_HISTORY_REQUEST__INIT;
    bool gap;

    for (uint32_t id = 1; id <= 5; id++)
        submitted(world, id);
    flush(world, false);
    struct ingest_position position = say_hello(world, 1, 3, &gap);
    assert_int_equal(position.index, 3);
    assert_true(gap);
    world->next = 4; /* the restored controllers go on from there */
    ended(world, 4, 0, JOB_CANCELLED);
    flush(world, false);
    ASSERT_HISTORY(world, &all, "1/1=0 2/1=0 3/1=0 4/1=4 5/1=0 ");
}

static void newer_tables_are_refused(void **state)
{
    struct world *world = *state;
    struct err err = { 0 };
    unsigned found;

    assert_int_equal(schema_settle(world->store, false, &err), 0); /* twice is once */
    assert_int_equal(schema_found(world->store, &found, &err), 0);
    assert_int_equal(found, schema_version());
    assert_int_equal(store_run(world->store, "INSERT INTO spur_schema(version) VALUES(?1)",
                               STORE_VALUES(STORE_INT(schema_version() + 1)), &err),
                     0);
    assert_true(schema_settle(world->store, true, &err) < 0);
    assert_non_null(strstr(err.text, "newer build"));
}

static void a_batch_that_fails_leaves_nothing(void **state)
{
    struct world *world = *state;
    ListHistoryRequest all = LIST_HISTORY_REQUEST__INIT;
    struct str rubbish = { 0 };
    struct err err = { 0 };

    submitted(world, 1);
    str_add(&rubbish, "\xff\xff\xff");
    vec_push(&world->batch.entries, rubbish);
    world->batch.cluster = world->cluster;
    assert_true(ingest_write(world->store, &world->batch, &err) < 0);
    ASSERT_HISTORY(world, &all, "");
}

static void passwords_are_not_shown(void **state)
{
    static const char *const cases[][2] = {
        { "postgresql://spur:secret@host/db", "postgresql://spur@host/db" },
        { "postgresql://spur@host/db", "postgresql://spur@host/db" },
        { "sqlite:/a/b", "sqlite:/a/b" },
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(str_done) struct str shown = { 0 };
        store_add_shown(&shown, cases[i][0]);
        assert_string_equal(str_text(&shown), cases[i][1]);
    }
}

#define WITH_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_WORLD(a_job_is_there_once_however_it_is_sent),
        WITH_WORLD(each_run_after_a_requeue_is_a_row),
        WITH_WORLD(a_job_that_never_ran_has_a_row_too),
        WITH_WORLD(parts_of_a_step_are_joined_once),
        WITH_WORLD(windows_and_states),
        WITH_WORLD(filters),
        WITH_WORLD(quotes_are_text),
        WITH_WORLD(what_the_journal_lacks_is_a_gap),
        WITH_WORLD(a_database_ahead_of_its_cluster_goes_back),
        WITH_WORLD(newer_tables_are_refused),
        WITH_WORLD(a_batch_that_fails_leaves_nothing),
        cmocka_unit_test(passwords_are_not_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
