/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_query.c - lists of jobs, and records as messages
 */
#include "core/msg.h"
#include "core/query.h"
#include "core/test/fixture.h"
#include "schema/reasons.h"
#include "wire/pb.h"

static void ids_as_people_write_them(void **unused)
{
    static const struct {
        const char *text;
        bool good;
        uint32_t id;
        const char *tasks; /* NULL: none */
    } rows[] = {
        { "12", true, 12, NULL },
        { "12_3", true, 12, "3" },
        { "12_[1-5,9]", true, 12, "1-5,9" },
        { "12+1", true, 12, NULL },
        { "12_*", true, 12, NULL },
        { "0", false, 0, NULL },
        { "", false, 0, NULL },
        { "x", false, 0, NULL },
        { "12_", false, 0, NULL },
        { "12_[", false, 0, NULL },
        { "12_[]", false, 0, NULL },
        { "12_x", false, 0, NULL },
        { "12 ", false, 0, NULL },
        { "-1", false, 0, NULL },
        { "99999999999", false, 0, NULL },
        { "12+", false, 0, NULL },
        { "12_[1-5", false, 0, NULL },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct job_ref ref;
        struct err err;
        int code = job_ref_parse(rows[i].text, &ref, &err);
        if ((code == 0) != rows[i].good)
            fail_msg("'%s'", rows[i].text);
        if (code < 0)
            continue;
        assert_int_equal(ref.id, rows[i].id);
        assert_int_equal(ref.has_tasks, rows[i].tasks != NULL);
        if (rows[i].tasks)
            assert_true(span_eq((struct span){ ref.tasks, ref.tasks_len }, rows[i].tasks));
    }
}

/* "1 3 4_2": ids in the order they come, tasks when expanded. */
static void list(const struct fix *fix, const ListJobsRequest *request, char *out, size_t size)
{
    struct query *query = NULL;
    struct err err = { 0 };
    struct query_cursor cursor = { 0 };
    const struct job *job;
    uint32_t task;
    unsigned budget = 2;
    size_t len = 0;

    out[0] = '\0';
    if (query_new(fix->state, request, &query, &err) < 0)
        fail_msg("%s", err.text);
    for (;;) {
        job = query_next(query, fix->state, &cursor, &budget, &task);
        if (!job && budget == 0) { /* a slice is over */
            budget = 2;
            continue;
        }
        if (!job)
            break;
        len += (size_t)snprintf(out + len, size - len, "%s%u", len ? " " : "", job->id);
        if (task != NO_TASK)
            len += (size_t)snprintf(out + len, size - len, "_%u", task);
    }
    query_free(query);
}

#define assert_list(fix, request, expected)           \
    do {                                              \
        char text_[400];                              \
        list((fix), (request), text_, sizeof(text_)); \
        assert_string_equal(text_, (expected));       \
    } while (0)

static struct fix *some_jobs(void)
{
    struct fix *fix = fix_new(2);
    JobSpec spec = fix_spec();

    fix_start(fix, fix_job(fix), "n1", 1); /* 1 runs on n1 */
    fix_job(fix);                          /* 2 waits */
    spec.name = (char *)"other";
    spec.account = (char *)"physics";
    spec.partition = (char *)"small";
    fix_submit_as(fix, 1001, &spec);     /* 3 of bob */
    fix_cancel(fix, fix_job(fix), NULL); /* 4 ended */
    spec = fix_spec();
    spec.array = (char *)"1-3";
    fix_submit(fix, &spec);                /* 5 */
    fix_start_task(fix, 5, 2, "n2", 1);    /* 6 is 5_2 */
    fix_start(fix, fix_job(fix), "n2", 1); /* 7 */
    fix_finish_held(fix, 7, 0);            /* completing */
    return fix;
}

static void filters(void **unused)
{
    struct fix *fix = some_jobs();
    char *one[1];
    JobState states[1];

    ListJobsRequest request = LIST_JOBS_REQUEST__INIT;
    assert_list(fix, &request, "1 2 3 5 6 7");
    SET(&request, all_states, true);
    assert_list(fix, &request, "1 2 3 4 5 6 7");
    SET(&request, array_expand, true);
    assert_list(fix, &request, "1 2 3 4 5_1 5_3 6 7");

    struct {
        const char *what;
        const char *value;
        const char *expected;
    } rows[] = {
        { "users", "bob", "3" },
        { "users", "1000", "1 2 5 6 7" },
        { "accounts", "physics", "3" },
        { "partitions", "small", "3" },
        { "names", "other", "3" },
        { "nodes", "n2", "6 7" },
        { "nodes", "n[1-2]", "1 6 7" },
        { "ids", "5", "5 6" },
        { "ids", "5_2", "6" },
        { "ids", "5_[1,3]", "5" },
        { "ids", "2", "2" },
        { "ids", "99", "" },
        { "ids", "5_9", "" },
        { "qos", "none", "" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        ListJobsRequest r = LIST_JOBS_REQUEST__INIT;
        const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field_by_name(
            &list_jobs_request__descriptor, rows[i].what);
        one[0] = (char *)(uintptr_t)rows[i].value;
        *(char ***)(void *)((char *)&r + field->offset) = one;
        *(size_t *)(void *)((char *)&r + field->quantifier_offset) = 1;
        assert_list(fix, &r, rows[i].expected);
    }
    ListJobsRequest ended = LIST_JOBS_REQUEST__INIT;
    states[0] = JOB_CANCELLED;
    ended.n_states = 1;
    ended.states = states;
    assert_list(fix, &ended, "4");
    ListJobsRequest flags = LIST_JOBS_REQUEST__INIT;
    SET(&flags, flag_mask, JOB_FLAG_COMPLETING);
    assert_list(fix, &flags, "7");
    fix_free(fix);
}

static Job *packed_job(const struct fix *fix, uint32_t id, uint32_t task, enum job_parts parts)
{
    struct str bytes = { 0 };

    struct job_words words = { .as_task = task != NO_TASK,
                               .task = task,
                               .reason = REASON_RESOURCES };
    job_pack(fix->state, fix_get(fix, id), parts, &words, &bytes);
    Job *job = job__unpack(NULL, bytes.len, (const uint8_t *)str_text(&bytes));
    assert_non_null(job);
    str_done(&bytes);
    return job;
}

static void jobs_as_messages(void **unused)
{
    struct fix *fix = some_jobs();

    Job *job = packed_job(fix, 1, NO_TASK, JOB_PACK_FULL);
    assert_string_equal(job->spec->work_dir, "/home/user");
    assert_string_equal(job->owner->user, "alice");
    assert_int_equal(job->status->state, JOB_RUNNING);
    assert_string_equal(job->status->allocation->nodes[0]->node, "n1");
    assert_string_equal(job->status->allocation->nodes[0]->cpu_ids, "0");
    assert_int_equal(job->status->end_us, job->status->start_us + INT64_C(3600000000));
    assert_int_equal(job->status->num_nodes, 1);
    assert_string_equal(job->status->tres_alloc, "cpu=1,node=1,billing=1");
    assert_int_equal(job->status->reason, REASON_NONE); /* it runs: the planner has no say */
    job__free_unpacked(job, NULL);

    job = packed_job(fix, 3, NO_TASK, JOB_PACK_BRIEF);
    assert_string_equal(job->spec->name, "other");
    assert_string_equal(job->spec->partition, "small");
    assert_null(job->spec->work_dir);
    assert_string_equal(job->status->partition, "small");
    assert_int_equal(job->status->reason, REASON_RESOURCES);
    job__free_unpacked(job, NULL);

    job = packed_job(fix, 5, NO_TASK, JOB_PACK_BRIEF);
    assert_string_equal(job->status->array_tasks, "1,3");
    job__free_unpacked(job, NULL);
    job = packed_job(fix, 5, 3, JOB_PACK_BRIEF);
    assert_null(job->status->array_tasks);
    assert_int_equal(job->status->array_task_id, 3);
    job__free_unpacked(job, NULL);

    fix_hold(fix, 2, 1, false);
    job = packed_job(fix, 2, NO_TASK, JOB_PACK_BRIEF);
    assert_int_equal(job->status->priority, 0);
    assert_int_equal(job->status->reason, REASON_HELD_USER);
    job__free_unpacked(job, NULL);
    fix_free(fix);
}

static void tres_texts(void **unused)
{
    static const struct {
        uint64_t mem;
        uint32_t cpus, gpus;
        const char *text;
    } rows[] = {
        { 500, 1, 0, "cpu=1,mem=500M,node=1,billing=1" },
        { 1024, 2, 2, "cpu=2,mem=1G,node=1,billing=2,gres/gpu=2" },
        { 1536, 1, 1, "cpu=1,mem=1.50G,node=1,billing=1,gres/gpu=1" },
        { 4000, 4, 0, "cpu=4,mem=4000M,node=1,billing=4" },
        { 512, 1, 0, "cpu=1,mem=512M,node=1,billing=1" },
    };
    struct fix *fix = fix_new(2);

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        JobSpec spec = fix_spec();
        GresRequest gpu = GRES_REQUEST__INIT, *list_of_one[1] = { &gpu };
        SET(&spec, mem_per_node_mb, rows[i].mem);
        SET(&spec, cpus_per_task, rows[i].cpus);
        gpu.name = (char *)"gpu";
        SET(&gpu, count, rows[i].gpus);
        spec.n_gres = 1;
        spec.gres = list_of_one;
        Job *job = packed_job(fix, fix_submit(fix, &spec), NO_TASK, JOB_PACK_BRIEF);
        assert_string_equal(job->status->tres_req, rows[i].text);
        assert_null(job->status->tres_alloc);
        job__free_unpacked(job, NULL);
    }
    fix_free(fix);
}

static void the_rest_as_messages(void **unused)
{
    struct fix *fix = some_jobs();
    struct arena arena;
    Node node;
    Partition partition;

    arena_init(&arena);
    node_msg(fix->state, state_node(fix->state, "n2"), &arena, &node);
    assert_int_equal(node.status->state, NODE_MIXED);
    assert_true(node.status->flags & NODE_FLAG_COMPLETING);
    assert_int_equal(node.status->alloc_cpus, 2);
    assert_int_equal(node.status->n_jobs, 2);
    assert_int_equal(node.status->n_partitions, 2);
    assert_string_equal(node.status->alloc_gres[0]->name, "gpu");
    partition_msg(fix->state, state_partition(fix->state, "small"), &arena, &partition);
    assert_int_equal(partition.total_nodes, 2);
    assert_int_equal(partition.total_cpus, 8);
    assert_string_equal(partition.node_names[1], "n2");
    /* They can be packed as they are. */
    assert_true(node__get_packed_size(&node) > 0);
    assert_true(partition__get_packed_size(&partition) > 0);
    arena_done(&arena);
    fix_free(fix);
}

/* A reader that has a list gets what changed since, and what it is to drop. */
static void changes_since_an_index(void **unused)
{
    struct fix *fix = fix_new(1);
    JobSpec spec = fix_spec();
    ListJobsRequest request = LIST_JOBS_REQUEST__INIT;
    uint32_t stays = fix_submit(fix, &spec), ends = fix_submit(fix, &spec);
    struct query *query;
    struct query_cursor cursor = { 0 };
    struct id_list gone = { 0 };
    struct err err = { 0 };
    uint32_t task;

    SET(&request, changed_since, state_head(fix->state).index);
    uint32_t comes = fix_submit(fix, &spec);
    fix_cancel(fix, ends, NULL);
    assert_int_equal(query_new(fix->state, &request, &query, &err), 0);
    query_collect(query, &gone);
    const struct job *job = query_next(query, fix->state, &cursor, NULL, &task);
    assert_true(job && job->id == comes && stays != comes);
    assert_null(query_next(query, fix->state, &cursor, NULL, &task));
    assert_true(query_gone(query, fix->state, &gone));
    assert_true(gone.ids.len == 1 && gone.ids.items[0] == ends);
    query_free(query);
    fix_time(fix, 100000); /* forgotten */
    assert_null(state_job(fix->state, ends));
    vec_clear(&gone.ids);
    assert_int_equal(query_new(fix->state, &request, &query, &err), 0);
    assert_true(query_gone(query, fix->state, &gone));
    assert_true(gone.ids.len == 1 && gone.ids.items[0] == ends);
    query_free(query);
    /* A state that was read from disk does not know: the reader gets everything. */
    struct state *copy = fix_copy(fix);
    cursor = (struct query_cursor){ 0 };
    assert_int_equal(query_new(copy, &request, &query, &err), 0);
    assert_false(query_gone(query, copy, &gone));
    assert_true(query_next(query, copy, &cursor, NULL, &task)->id == stays);
    query_free(query);
    state_free(copy);
    vec_done(&gone.ids);
    fix_free(fix);
}

static void named_tasks_are_expanded_alone(void **unused)
{
    struct fix *fix = fix_new(1);
    JobSpec spec = fix_spec();
    spec.array = (char *)"0-9";
    ListJobsRequest request = LIST_JOBS_REQUEST__INIT;
    char text[32], *ids[] = { text };
    struct query *query;
    struct query_cursor cursor = { 0 };
    struct err err = { 0 };
    uint32_t id = fix_submit(fix, &spec), task;

    snprintf(text, sizeof(text), "%u_[3,7]", id);
    request.n_ids = 1;
    request.ids = ids;
    SET(&request, array_expand, true);
    assert_int_equal(query_new(fix->state, &request, &query, &err), 0);
    assert_non_null(query_next(query, fix->state, &cursor, NULL, &task));
    assert_int_equal(task, 3);
    assert_non_null(query_next(query, fix->state, &cursor, NULL, &task));
    assert_int_equal(task, 7);
    assert_null(query_next(query, fix->state, &cursor, NULL, &task));
    query_free(query);
    fix_free(fix);
}

UNIT_MAIN(UNIT(changes_since_an_index), UNIT(named_tasks_are_expanded_alone),
          UNIT(ids_as_people_write_them), UNIT(filters), UNIT(jobs_as_messages), UNIT(tres_texts),
          UNIT(the_rest_as_messages))
