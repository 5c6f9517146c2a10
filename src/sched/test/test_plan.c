/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plan.c - which jobs start, and where
 */
#include "sched/test/rig.h"
#include "schema/reasons.h"
#include "test/unit.h"

#define CLUSTER "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core\"]\n"
#define MAIN    "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
#define FOUR                                                                               \
    CLUSTER "[[nodes]]\nnames = \"n[1-4]\"\ncpus = 8\nsockets = 2\ncores_per_socket = 4\n" \
            "memory_mb = 8000\n" MAIN

static void jobs_start_in_order(void **state)
{
    struct rig *rig = rig_new(FOUR);
    uint32_t a = rig_submit(rig, "c=8"), b = rig_submit(rig, "c=8"), c = rig_submit(rig, "c=4");

    (void)state;
    assert_int_equal(rig_plan(rig), 3);
    assert_string_equal(rig_where(rig, a), "n1:0-7");
    assert_string_equal(rig_where(rig, b), "n2:0-7");
    assert_string_equal(rig_where(rig, c), "n3:0-3");
    rig_free(rig);
}

/* A small job goes where least is left, not to an empty node. */
static void small_jobs_fill_up_nodes(void **state)
{
    struct rig *rig = rig_new(FOUR);

    (void)state;
    rig_submit(rig, "c=5");
    uint32_t two = rig_submit(rig, "c=2"), four = rig_submit(rig, "c=4");
    uint32_t one = rig_submit(rig, "c=1");
    assert_int_equal(rig_plan(rig), 4);
    assert_string_equal(rig_where(rig, two), "n1:5-6");
    assert_string_equal(rig_where(rig, four), "n2:0-3");
    assert_string_equal(rig_where(rig, one), "n1:7");
    rig_free(rig);
}

static void higher_priority_goes_first(void **state)
{
    struct rig *rig = rig_new(FOUR);
    uint32_t all = rig_submit(rig, "N=4 ex");

    (void)state;
    assert_int_equal(rig_plan(rig), 1);
    uint32_t low = rig_submit(rig, "N=4 ex prio=10"), high = rig_submit(rig, "N=4 ex prio=20");
    assert_int_equal(rig_plan(rig), 0);
    rig_end(rig, all);
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, high));
    assert_false(rig_runs(rig, low));
    rig_free(rig);
}

static void several_nodes_or_none(void **state)
{
    struct rig *rig = rig_new(FOUR);
    uint32_t one = rig_submit(rig, "c=8"), three = rig_submit(rig, "N=3 n=24");

    (void)state;
    uint32_t four = rig_submit(rig, "N=4 n=32");
    assert_int_equal(rig_plan(rig), 2);
    assert_string_equal(rig_where(rig, three), "n2:0-7;n3:0-7;n4:0-7");
    rig_end(rig, three);
    assert_int_equal(rig_plan(rig), 0);
    rig_end(rig, one);
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, four), "n1:0-7;n2:0-7;n3:0-7;n4:0-7");
    rig_free(rig);
}

/* Tasks without a number of nodes go to several when no single one has room. */
static void tasks_spread_when_they_must(void **state)
{
    struct rig *rig = rig_new(FOUR);

    (void)state;
    for (int i = 0; i < 4; i++)
        rig_submit(rig, "c=5");
    uint32_t many = rig_submit(rig, "n=8"), more = rig_submit(rig, "n=8");
    assert_int_equal(rig_plan(rig), 5);
    assert_string_equal(rig_where(rig, many), "n1:5-7;n2:5-7;n3:5-6");
    assert_false(rig_runs(rig, more));
    rig_free(rig);
}

/* A job behind may go first if it ends before the first one starts, or is not in its way. */
static void backfill_delays_nobody(void **state)
{
    struct rig *rig = rig_new(FOUR);
    uint32_t long_one = rig_submit(rig, "N=2 ex t=1000");

    (void)state;
    assert_int_equal(rig_plan(rig), 1);
    uint32_t wide = rig_submit(rig, "N=3 ex t=1000");
    uint32_t too_long = rig_submit(rig, "N=2 ex t=2000");
    uint32_t short_one = rig_submit(rig, "N=2 ex t=900");
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, short_one));
    assert_int_equal(sched_planned_start(rig->sched, rig_job(rig, wide)) / 1000000,
                     rig_job(rig, long_one)->run->start_us / 1000000 + 1000);
    rig_end(rig, short_one);
    /* One node is not needed by the wide one: it may be used for ever. */
    uint32_t beside = rig_submit(rig, "N=1 ex t=inf");
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, beside));
    assert_false(rig_runs(rig, too_long));
    rig_end(rig, long_one);
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, wide));
    rig_free(rig);
}

/* Q2: a job as wide as the cluster starts when what runs has reached its limit, whatever comes. */
static void wide_job_is_not_starved(void **state)
{
    struct rig *rig = rig_new(FOUR);
    uint32_t ids[400], wide = 0;
    int64_t ends[400], submitted = 0;
    size_t count = 0;

    (void)state;
    for (int step = 0; step < 200; step++) {
        if (step == 20) {
            wide = rig_submit(rig, "N=4 ex t=500");
            submitted = rig->now_us;
        }
        ids[count] = rig_submit(rig, step % 3 ? "c=2 t=100" : "c=1 t=300");
        ends[count++] = 0;
        rig_plan(rig);
        for (size_t i = 0; i < count; i++) {
            const struct job *job = rig_job(rig, ids[i]);
            if (!ends[i] && rig_runs(rig, ids[i]))
                ends[i] = job_end_by(job, job->run->start_us);
        }
        if (wide && rig_runs(rig, wide))
            break;
        rig_wait(rig, 10);
        for (size_t i = 0; i < count; i++) {
            if (ends[i] && ends[i] <= rig->now_us && rig_runs(rig, ids[i]))
                rig_end(rig, ids[i]);
        }
    }
    assert_true(rig_runs(rig, wide));
    /* the longest limit of those that ran, and a step of the test */
    assert_true(rig->now_us - submitted <= (300 + 10) * INT64_C(1000000));
    rig_free(rig);
}

static void jobs_that_end_early_bring_it_forward(void **state)
{
    struct rig *rig = rig_new(FOUR);
    uint32_t first = rig_submit(rig, "N=4 ex t=10000");

    (void)state;
    rig_plan(rig);
    uint32_t next = rig_submit(rig, "N=4 ex t=10"), last = rig_submit(rig, "N=1 t=5");
    assert_int_equal(rig_plan(rig), 0);
    assert_true(sched_planned_start(rig->sched, rig_job(rig, next)) >
                rig->now_us + INT64_C(9000000000));
    rig_wait(rig, 5);
    rig_end(rig, first);
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, next));
    rig_end(rig, next);
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, last));
    rig_free(rig);
}

static void arrays_go_task_by_task(void **state)
{
    struct rig *rig = rig_new(FOUR);
    uint32_t array = rig_submit(rig, "array=0-99%3 c=4");
    char id[16];

    (void)state;
    assert_int_equal(rig_plan(rig), 3);
    assert_int_equal(rig_job(rig, array)->array->running, 3);
    snprintf(id, sizeof(id), "%u", array);
    for (int round = 0; round < 97; round++) {
        uint32_t done = 0;
        for (const struct job *job = state_job_from(rig->state, 1); job && !done;
             job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
            if (job->state == JOB_RUNNING)
                done = job->id;
        }
        rig_end(rig, done);
        assert_int_equal(rig_plan(rig), 1);
    }
    assert_int_equal(rig_job(rig, array)->array->waiting, 0);
    rig_free(rig);
}

static void a_drained_node_is_not_used(void **state)
{
    struct rig *rig = rig_new(FOUR);

    (void)state;
    rig_node(rig, "n1", "DRAIN");
    uint32_t a = rig_submit(rig, "c=1"), all = rig_submit(rig, "N=4");
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, a), "n2:0");
    assert_int_equal(sched_reason(rig->sched, rig_job(rig, all)), REASON_NODE_NOT_AVAIL);
    assert_string_equal(sched_reason_text(rig->sched, rig_job(rig, all)),
                        "ReqNodeNotAvail, UnavailableNodes:n1");
    rig_node(rig, "n1", "RESUME");
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, all));
    rig_free(rig);
}

static void memory_is_looked_at(void **state)
{
    struct rig *rig = rig_new(FOUR);

    (void)state;
    for (int i = 0; i < 4; i++)
        rig_submit(rig, "c=1 mem=6000");
    uint32_t big = rig_submit(rig, "c=1 mem=3000"), small = rig_submit(rig, "c=1 mem=2000");
    assert_int_equal(rig_plan(rig), 5);
    assert_false(rig_runs(rig, big));
    assert_true(rig_runs(rig, small));
    assert_int_equal(sched_reason(rig->sched, rig_job(rig, big)), REASON_RESOURCES);
    rig_free(rig);
}

static void named_nodes_are_used(void **state)
{
    struct rig *rig = rig_new(FOUR);
    uint32_t a = rig_submit(rig, "w=n3 c=8"), b = rig_submit(rig, "N=2 w=n4 x=n1 n=2");
    uint32_t c = rig_submit(rig, "w=n3 c=1");

    (void)state;
    assert_int_equal(rig_plan(rig), 2);
    assert_string_equal(rig_where(rig, a), "n3:0-7");
    assert_string_equal(rig_where(rig, b), "n2:0;n4:0");
    rig_end(rig, a);
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, c), "n3:0");
    rig_free(rig);
}

static void whole_nodes_are_empty_nodes(void **state)
{
    struct rig *rig = rig_new(FOUR);

    (void)state;
    for (int i = 0; i < 3; i++)
        rig_submit(rig, "N=1 c=8 x=n4");
    uint32_t small = rig_submit(rig, "c=1"), whole = rig_submit(rig, "ex c=2");
    assert_int_equal(rig_plan(rig), 4);
    rig_end(rig, small);
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, whole), "n4:0-7");
    rig_free(rig);
}

static void users_keep_to_themselves(void **state)
{
    struct rig *rig = rig_new(FOUR);
    uint32_t a = rig_submit(rig, "exuser c=1 uid=1"), b = rig_submit(rig, "c=1 uid=2");
    uint32_t c = rig_submit(rig, "c=1 uid=1 w=n1"), d = rig_submit(rig, "c=1 uid=2 w=n1");

    (void)state;
    assert_int_equal(rig_plan(rig), 3);
    assert_string_equal(rig_where(rig, a), "n1:0");
    assert_string_equal(rig_where(rig, b), "n2:0");
    assert_string_equal(rig_where(rig, c), "n1:1");
    rig_end(rig, c);
    rig_end(rig, a);
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, d), "n1:0");
    rig_free(rig);
}

static void a_refused_start_is_planned_again(void **state)
{
    struct rig *rig = rig_new(FOUR);
    uint32_t id = rig_submit(rig, "c=8");
    const struct plan *plan = sched_plan(rig->sched, rig->now_us, 100);

    (void)state;
    assert_int_equal(plan->count, 1);
    /* Planned, not applied: it holds its node. */
    rig_submit(rig, "c=8 w=n1");
    assert_int_equal(sched_plan(rig->sched, rig->now_us, 100)->count, 0);
    sched_abandon_all(rig->sched);
    assert_int_equal(rig_plan(rig), 2);
    assert_true(rig_runs(rig, id));
    rig_free(rig);
}

static void strictly_in_order_without_backfill(void **state)
{
    struct rig *rig =
        rig_new("cluster_name = \"t\"\n[scheduler]\nplugin = \"builtin\"\nselect = [\"CR_Core\"]\n"
                "[[nodes]]\nnames = \"n[1-4]\"\ncpus = 8\nmemory_mb = 8000\n" MAIN);
    uint32_t first = rig_submit(rig, "N=2 ex");

    (void)state;
    rig_plan(rig);
    uint32_t wide = rig_submit(rig, "N=4 ex"), small = rig_submit(rig, "c=1 t=1");
    assert_int_equal(rig_plan(rig), 0);
    rig_end(rig, first);
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, wide));
    rig_end(rig, wide);
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, small));
    rig_free(rig);
}

/* While a job that has ended holds nodes nobody starts, for so long at most. */
static void completing_jobs_are_waited_for(void **state)
{
    static const char nodes[] = "[[nodes]]\nnames = \"n[1-4]\"\ncpus = 8\nmemory_mb = 8000\n" MAIN;
    char text[600];

    (void)state;
    for (unsigned wait_s = 0; wait_s <= 30; wait_s += 30) {
        snprintf(text, sizeof(text), "cluster_name = \"t\"\n[jobs]\ncomplete_wait = %u\n%s", wait_s,
                 nodes);
        struct rig *rig = rig_new(text);
        uint32_t wide = rig_submit(rig, "N=2 ex");
        assert_int_equal(rig_plan(rig), 1);
        rig_cancel(rig, wide);
        uint32_t one = rig_submit(rig, "c=1");
        assert_int_equal(rig_plan(rig), wait_s ? 0 : 1); /* other nodes are free */
        rig_release(rig, wide);
        assert_int_equal(rig_plan(rig), wait_s ? 1 : 0);
        assert_true(rig_runs(rig, one));

        uint32_t slow = rig_submit(rig, "N=2 ex");
        assert_int_equal(rig_plan(rig), 1);
        rig_cancel(rig, slow);
        uint32_t two = rig_submit(rig, "c=1");
        rig_wait(rig, 29);
        assert_int_equal(rig_plan(rig), wait_s ? 0 : 1);
        rig_partition(rig, "main", 3600); /* what was read anew is the same */
        assert_int_equal(rig_plan(rig), 0);
        rig_wait(rig, 2);
        assert_int_equal(rig_plan(rig), wait_s ? 1 : 0);
        assert_true(rig_runs(rig, two));
        rig_free(rig);
    }
}

UNIT_MAIN(UNIT(jobs_start_in_order), UNIT(small_jobs_fill_up_nodes),
          UNIT(higher_priority_goes_first), UNIT(several_nodes_or_none),
          UNIT(tasks_spread_when_they_must), UNIT(backfill_delays_nobody),
          UNIT(wide_job_is_not_starved), UNIT(jobs_that_end_early_bring_it_forward),
          UNIT(arrays_go_task_by_task), UNIT(a_drained_node_is_not_used), UNIT(memory_is_looked_at),
          UNIT(named_nodes_are_used), UNIT(whole_nodes_are_empty_nodes),
          UNIT(users_keep_to_themselves), UNIT(a_refused_start_is_planned_again),
          UNIT(strictly_in_order_without_backfill), UNIT(completing_jobs_are_waited_for))
