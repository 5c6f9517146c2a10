/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_backoff.c - a job that nodes failed starts again elsewhere, later and later, and not for ever
 */
#include "sched/test/rig.h"
#include "schema/reasons.h"
#include "test/unit.h"

#define S INT64_C(1000000)

static const char three[] = "cluster_name = \"t\"\n"
                            "[[nodes]]\nnames = \"n[1-3]\"\ncpus = 8\nmemory_mb = 8000\n"
                            "[[partitions]]\nname = \"main\"\nnodes = \"n[1-3]\"\ndefault = true\n";

/* The node of a running job fails, is told of the end of its jobs, and is back. */
static void node_fails(struct rig *rig, uint32_t id, char *node, size_t size)
{
    snprintf(node, size, "%s", rig_job(rig, id)->run->parts[0].name);
    rig_node(rig, node, "DOWN");
    rig_release(rig, id);
    rig_node(rig, node, "RESUME");
    assert_int_equal(rig_job(rig, id)->state, JOB_PENDING);
}

static int collect(void *to, const void *bytes, size_t len)
{
    str_add_len(to, bytes, len);
    return 0;
}

/* What a controller that starts again knows is the same. */
static void same_after_restart(const struct rig *rig)
{
    struct str bytes = { 0 };
    struct err err = { 0 };

    assert_int_equal(core_snapshot_write(rig->state, collect, &bytes), 0);
    struct restore *restore = core_restore_begin();
    assert_int_equal(core_restore_feed(restore, bytes.data, bytes.len, &err), 0);
    struct state *again = core_restore_end(restore, &err);
    assert_non_null(again);
    assert_int_equal(core_digest(again), core_digest(rig->state));
    for (const struct job *job = state_job_from(rig->state, 1); job;
         job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
        const struct job *other = state_job(again, job->id);
        assert_true(str_eq(job->shape->exclude, other->shape->exclude));
        assert_int_equal(job_begin_us(job), job_begin_us(other));
    }
    state_free(again);
    str_done(&bytes);
}

static const char *node_of(const struct rig *rig, uint32_t id)
{
    return rig_runs(rig, id) ? rig_job(rig, id)->run->parts[0].name : "";
}

static void the_first_time_it_starts_at_once_elsewhere(void **state)
{
    struct rig *rig = rig_new(three);
    uint32_t id = rig_submit(rig, "c=8 t=600");
    char node[64];

    (void)state;
    rig_plan(rig);
    node_fails(rig, id, node, sizeof(node));
    rig_plan(rig);
    assert_true(rig_runs(rig, id));
    assert_string_not_equal(node_of(rig, id), node);
    rig_free(rig);
}

static void it_does_without_the_node_though_it_is_the_only_free_one(void **state)
{
    struct rig *rig = rig_new(three);
    char node[64];

    (void)state;
    rig_submit(rig, "w=n2 ex t=6000"); /* the others are busy, the bad one is not */
    rig_submit(rig, "w=n3 ex t=6000");
    uint32_t id = rig_submit(rig, "c=8 t=600");
    rig_plan(rig);
    node_fails(rig, id, node, sizeof(node));
    assert_string_equal(node, "n1");
    rig_plan(rig);
    assert_false(rig_runs(rig, id));
    assert_true(rig_job(rig, id)->more->avoids);
    same_after_restart(rig);
    rig_wait(rig, 601); /* jobs.avoid_failed_node */
    rig_plan(rig);
    assert_false(rig_job(rig, id)->more->avoids);
    assert_string_equal(node_of(rig, id), "n1");
    rig_free(rig);
}

static void a_node_it_cannot_do_without_is_used_again(void **state)
{
    static const char *const jobs[] = { "w=n1 c=1 t=60", "N=3 ex t=60" };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        struct rig *rig = rig_new(three);
        uint32_t id = rig_submit(rig, jobs[i]);
        char node[64];
        rig_plan(rig);
        node_fails(rig, id, node, sizeof(node));
        rig_plan(rig);
        assert_true(rig_runs(rig, id));
        rig_free(rig);
    }
}

static void each_time_it_waits_longer_and_then_it_is_held(void **state)
{
    static const int64_t waits_s[] = { 0, 10, 20, 40, 80 };
    struct rig *rig = rig_new(three);
    uint32_t id = rig_submit(rig, "c=8 t=600");
    const struct job *job = rig_job(rig, id);
    char node[64];

    (void)state;
    rig_plan(rig);
    for (size_t i = 0; i < ARRAY_LEN(waits_s); i++) {
        node_fails(rig, id, node, sizeof(node));
        rig_plan(rig);
        assert_int_equal(rig_runs(rig, id), waits_s[i] == 0);
        if (!waits_s[i])
            continue;
        assert_int_equal(core_job_reason(rig->state, job), REASON_BEGIN_TIME);
        int64_t left = job_begin_us(job) - rig->now_us;
        assert_true(left > (waits_s[i] - 2) * S && left <= waits_s[i] * S);
        same_after_restart(rig);
        rig_wait(rig, waits_s[i] - 2);
        rig_plan(rig);
        assert_false(rig_runs(rig, id));
        rig_wait(rig, 3);
        rig_plan(rig);
        assert_true(rig_runs(rig, id));
    }
    node_fails(rig, id, node, sizeof(node));
    rig_plan(rig);
    assert_int_equal(job->hold, 2);
    assert_int_equal(core_job_reason(rig->state, job), REASON_MAX_REQUEUE);
    rig_free(rig);
}

static void one_that_ran_for_long_counts_from_the_beginning(void **state)
{
    struct rig *rig = rig_new(three);
    uint32_t id = rig_submit(rig, "c=8 t=inf");
    char node[64];

    (void)state;
    rig_plan(rig);
    for (int i = 0; i < 8; i++) {
        rig_wait(rig, 3700);
        node_fails(rig, id, node, sizeof(node));
        rig_plan(rig);
        assert_true(rig_runs(rig, id));
        assert_int_equal(rig_job(rig, id)->more->node_fails, 1);
    }
    rig_free(rig);
}

static void all_components_do_without_it(void **state)
{
    struct rig *rig = rig_new(three);
    uint32_t id = rig_submit(rig, "c=2 t=600 : c=2 t=600");
    char node[64];

    (void)state;
    rig_plan(rig);
    snprintf(node, sizeof(node), "%s", node_of(rig, id));
    rig_node(rig, node, "DOWN");
    rig_release(rig, id);
    rig_release(rig, id + 1);
    rig_node(rig, node, "RESUME");
    rig_plan(rig);
    assert_true(rig_runs(rig, id) && rig_runs(rig, id + 1));
    assert_string_not_equal(node_of(rig, id), node);
    assert_string_not_equal(node_of(rig, id + 1), node);
    rig_free(rig);
}

UNIT_MAIN(UNIT(the_first_time_it_starts_at_once_elsewhere),
          UNIT(it_does_without_the_node_though_it_is_the_only_free_one),
          UNIT(a_node_it_cannot_do_without_is_used_again),
          UNIT(each_time_it_waits_longer_and_then_it_is_held),
          UNIT(one_that_ran_for_long_counts_from_the_beginning), UNIT(all_components_do_without_it))
