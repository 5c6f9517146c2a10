// SPDX-License-Identifier: Apache-2.0
/*
 * test_views.c - squeue and sinfo print what Slurm's printed for the same jobs and nodes
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cases.h"
#include "cli/sinfo.h"
#include "cli/squeue.h"
#include "sample.h"
#include "test/unit.h"

static ListPartitionsReply partitions = LIST_PARTITIONS_REPLY__INIT;
static ListNodesReply nodes = LIST_NODES_REPLY__INIT;

static void make_cluster(void)
{
    static const char *const names[] = { "debug", "batch", "gpu", "restricted", "closed" };

    partitions.partitions = NEW_ARRAY(Partition *, ARRAY_LEN(names));
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        partitions.partitions[partitions.n_partitions++] = sample_partition(names[i]);
    nodes.nodes = NEW_ARRAY(Node *, 8);
    for (unsigned i = 1; i <= 8; i++)
        nodes.nodes[nodes.n_nodes++] = sample_node(i);
}

static void free_cluster(void)
{
    for (size_t i = 0; i < partitions.n_partitions; i++)
        partition__free_unpacked(partitions.partitions[i], NULL);
    for (size_t i = 0; i < nodes.n_nodes; i++)
        node__free_unpacked(nodes.nodes[i], NULL);
    free(partitions.partitions);
    free(nodes.nodes);
}

/* When the first recordings were made, node1 and node7 were not yet kept for a planned job. */
static void plan_nodes(bool late)
{
    nodes.nodes[0]->status->flags = late ? NODE_FLAG_PLANNED : 0;
    nodes.nodes[6]->status->flags = late ? NODE_FLAG_PLANNED : 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines in order, or as a set: jobs of equal rank stand in no order that anyone relies on. */
static char *arrange(char *text, bool sorted)
{
    struct str out = { 0 };
    char *lines[128], *save = NULL;
    size_t count = 0;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        lines[count++] = line;
    if (sorted)
        qsort(lines, count, sizeof(lines[0]), by_text);
    for (size_t i = 0; i < count; i++)
        str_addf(&out, "%s\n", lines[i]);
    return str_take(&out);
}

/* Fails with the first line that differs. */
static void check_same(const struct one_case *one, const char *got, const char *want)
{
    size_t same = 0, line = 1, from = 0;

    if (strcmp(got, want) == 0)
        return;
    for (; got[same] == want[same]; same++) {
        if (got[same] == '\n') {
            line++;
            from = same + 1;
        }
    }
    fail_msg("%s %s %s %s: line %zu\n got \"%.*s\"\nwant \"%.*s\"", one->argv[0],
             one->argc > 1 ? one->argv[1] : "", one->argc > 2 ? one->argv[2] : "",
             one->argc > 3 ? one->argv[3] : "", line, (int)strcspn(got + from, "\n"), got + from,
             (int)strcspn(want + from, "\n"), want + from);
}

static void test_sinfo_prints_what_slurms_printed(void **state)
{
    struct field_ctx ctx = { .now_us = SAMPLE_START_US + INT64_C(59000000) };
    struct one_case one = { 0 };
    struct cases cases;
    unsigned checked = 0;

    cases_open(&cases, "sinfo.cases");
    while (case_next(&cases, &one, 1)) {
        struct sinfo sinfo;
        char *got;

        plan_nodes(strcmp(one.words[0], "late") == 0);
        sinfo_init(&sinfo, one.argc, one.argv);
        assert_int_equal(sinfo_read(&sinfo), -1);
        capture_begin();
        sinfo_print(&sinfo, &partitions, &nodes, ctx);
        got = capture_end();
        /* Slurm's own order of a node's partitions changed while it was recorded. */
        if (one.argc > 1 && strcmp(one.argv[1], "-N") == 0 && one.words[0][0] == 'l') {
            char *have = arrange(got, true), *want = arrange(one.output, true);

            check_same(&one, have, want);
            free(have);
            free(want);
        } else {
            check_same(&one, got, one.output);
        }
        checked++;
        free(got);
        sinfo_done(&sinfo);
    }
    assert_true(checked > 100);
    free(one.output);
    cases_close(&cases);
}

static void show_queue(struct one_case *one, struct field_ctx ctx, Job **jobs, size_t count,
                       char **got)
{
    queue_jobs list = { 0 };
    struct squeue squeue;

    squeue_init(&squeue, one->argc, one->argv);
    assert_int_equal(squeue_read(&squeue), -1);
    for (size_t i = 0; i < count; i++)
        squeue_add(&squeue, &list, jobs[i], ctx.now_us);
    capture_begin();
    assert_int_equal(squeue_print(&squeue, &list, &ctx), 0);
    *got = capture_end();
    vec_done(&list);
    squeue_done(&squeue);
}

static void test_squeue_prints_what_slurms_printed(void **state)
{
    static const uint32_t ids[] = { 133, 134, 136, 137, 138, 140, 141, 142,
                                    143, 145, 146, 147, 148, 149, 152 };
    Job *jobs[ARRAY_LEN(ids)];
    struct one_case one = { 0 };
    struct cases cases;
    unsigned checked = 0;

    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        jobs[i] = sample_job(ids[i]);
    cases_open(&cases, "squeue.cases");
    while (case_next(&cases, &one, 2)) {
        struct field_ctx ctx = { .now_us =
                                     SAMPLE_START_US + atoi(one.words[1]) * INT64_C(1000000) };
        bool sorted = strcmp(one.words[0], "set") == 0;
        char *got, *have, *want;

        show_queue(&one, ctx, jobs, ARRAY_LEN(ids), &got);
        have = arrange(got, sorted);
        want = arrange(one.output, sorted);
        check_same(&one, have, want);
        checked++;
        free(got);
        free(have);
        free(want);
    }
    assert_true(checked > 8);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++)
        job__free_unpacked(jobs[i], NULL);
    free(one.output);
    cases_close(&cases);
}

static void test_squeue_sorts_by_several_letters(void **state)
{
    struct field_ctx ctx = { .now_us = SAMPLE_START_US + INT64_C(60000000) };
    Job *jobs[] = { sample_job(142), sample_job(143), sample_job(133), sample_job(145) };
    static const struct {
        const char *spec;
        uint32_t ids[4];
    } cases[] = {
        { "i", { 133, 142, 143, 145 } },      { "-i", { 145, 143, 142, 133 } },
        { "P,t,-p", { 143, 142, 133, 145 } }, { "u,-p", { 142, 133, 145, 143 } },
        { "-M,i", { 133, 142, 143, 145 } },   { "D,i", { 145, 133, 143, 142 } },
    };
    struct err err = { 0 };
    queue_jobs list = { 0 };

    for (size_t i = 0; i < 4; i++)
        vec_push(&list, jobs[i]);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(queue_sort(&list, cases[i].spec, &ctx, &err), 0);
        for (size_t k = 0; k < 4; k++)
            assert_int_equal(list.items[k]->id, cases[i].ids[k]);
    }
    assert_true(queue_sort(&list, "P,~", &ctx, &err) < 0);
    assert_string_equal(err.text, "~");
    vec_done(&list);
    for (size_t i = 0; i < 4; i++)
        job__free_unpacked(jobs[i], NULL);
}

static void test_states_are_words_codes_and_all(void **state)
{
    struct queue_states states;
    struct err err = { 0 };

    assert_int_equal(queue_read_states("PD,running,CG", &states, &err), 0);
    assert_int_equal(states.states, 1u << JOB_PENDING | 1u << JOB_RUNNING);
    assert_int_equal(states.flags, JOB_FLAG_COMPLETING);
    assert_int_equal(queue_read_states("all", &states, &err), 0);
    assert_true(states.all);
    assert_true(queue_read_states("R,nope", &states, &err) < 0);
    assert_string_equal(err.text, "nope");
}

static void test_job_ids_as_people_write_them(void **state)
{
    static const char *const good[] = { "1",    "4294967280", "12_3",  "12_[1-5]", "12_[1,3-9%2]",
                                        "12_*", "12+1",       "12_3-5" };
    static const char *const bad[] = { "",      "abc", "12a",  "12_", "12_[",        "12_[]",
                                       "12_[1", "12+", "12+x", "-1",  "12345678901", "12_x",
                                       "12 3",  "12.0" };
    const char *step;
    size_t len;

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        assert_true(cli_is_job_id(good[i], strlen(good[i])));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(cli_is_job_id(bad[i], strlen(bad[i])));
    assert_true(cli_is_step_id("12_3.batch", &len, &step));
    assert_string_equal(step, "batch");
    assert_false(cli_is_step_id("12.", &len, &step));
}

static void test_ids_name_jobs_and_tasks(void **state)
{
    static const struct {
        const char *ids;
        bool task, record, het;
    } cases[] = {
        { "136", true, true, false },         { "136_1", true, true, false },
        { "136_[3-9]", false, true, false },  { "136_[0-9:2]", false, true, false },
        { "136_[5,1%2]", true, true, false }, { "136_*", true, true, false },
        { "137", true, false, false },        { "12,136_[2,4],137", true, true, false },
        { "139", false, false, true },        { "139+1", false, false, true },
        { "139+0", false, false, false },     { "1", false, false, false },
    };
    Job *task = sample_job(137), *record = sample_job(136), *het = sample_job(140);

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(queue_id_matches(cases[i].ids, task), cases[i].task);
        assert_int_equal(queue_id_matches(cases[i].ids, record), cases[i].record);
        assert_int_equal(queue_id_matches(cases[i].ids, het), cases[i].het);
    }
    job__free_unpacked(task, NULL);
    job__free_unpacked(record, NULL);
    job__free_unpacked(het, NULL);
}

/* Writes every column of a table for one object: none may read what the object does not have. */
static void write_all(const struct field_table *table, const void *object)
{
    struct field_ctx ctx = { 0 };
    struct str out = { 0 };

    for (size_t i = 0; i < table->count; i++) {
        struct field_call call = { .field = &table->rows[i], .object = object, .ctx = &ctx };

        str_clear(&out);
        if (table->rows[i].write && table->rows[i].column.header)
            table->rows[i].write(&call, &out);
    }
    str_done(&out);
}

static void test_every_column_of_every_kind_of_row(void **state)
{
    static const uint32_t ids[] = { 133, 136, 137, 140, 142, 143, 145 };
    StepInfo bare_step = STEP_INFO__INIT;
    JobSpec bare_spec = JOB_SPEC__INIT;
    JobStatus bare_status = JOB_STATUS__INIT;
    Job bare = JOB__INIT;

    bare.spec = &bare_spec;
    bare.status = &bare_status;
    write_all(&job_fields, &bare);
    write_all(&step_fields, &(struct queue_step){ .job = &bare });
    write_all(&step_fields, &(struct queue_step){ .job = &bare, .info = &bare_step });
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        Job *job = sample_job(ids[i]);

        write_all(&job_fields, job);
        write_all(&step_fields, &(struct queue_step){ .job = job });
        write_all(&step_fields, &(struct queue_step){ .job = job, .info = &bare_step });
        job__free_unpacked(job, NULL);
    }
    for (size_t i = 0; i < nodes.n_nodes; i++)
        write_all(&node_fields, nodes.nodes[i]);
    for (size_t i = 0; i < partitions.n_partitions; i++)
        write_all(&partition_fields, partitions.partitions[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_sinfo_prints_what_slurms_printed),  UNIT(test_squeue_prints_what_slurms_printed),
        UNIT(test_squeue_sorts_by_several_letters),   UNIT(test_states_are_words_codes_and_all),
        UNIT(test_job_ids_as_people_write_them),      UNIT(test_ids_name_jobs_and_tasks),
        UNIT(test_every_column_of_every_kind_of_row),
    };
    int failed;

    setenv("TZ", "UTC", 1);
    tzset();
    make_cluster();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    free_cluster();
    return failed;
}
