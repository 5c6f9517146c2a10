/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_book.c - promised starts: how many, and what they keep others from; starts that are foreseen
 */
#include "sched/test/rig.h"
#include "test/unit.h"

#define S INT64_C(1000000)
#define NODES                                                                      \
    "[[nodes]]\nnames = \"n[1-4]\"\ncpus = 8\nsockets = 2\ncores_per_socket = 4\n" \
    "memory_mb = 8000\n"
#define MAIN          "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
#define WITH(setting) "cluster_name = \"t\"\n[scheduler]\n" setting NODES MAIN

/* One runs for 1000 s on three nodes; the next two need all four, and two of them. */
struct queue {
    struct rig *rig;
    uint32_t runs, wide, pair;
};

static struct queue queue_new(const char *toml)
{
    struct queue q = { .rig = rig_new(toml) };

    q.runs = rig_submit(q.rig, "N=3 ex t=1000");
    assert_int_equal(rig_plan(q.rig), 1);
    q.wide = rig_submit(q.rig, "N=4 ex t=500");
    q.pair = rig_submit(q.rig, "N=2 ex t=5000");
    assert_int_equal(rig_plan(q.rig), 0);
    return q;
}

static int64_t starts_in_s(const struct queue *q, uint32_t job)
{
    int64_t start = sched_planned_start(q->rig->sched, rig_job(q->rig, job));

    return start ? (start - rig_job(q->rig, q->runs)->run->start_us + S / 2) / S : -1;
}

static void easy_promises_to_the_first(void **state)
{
    struct queue q = queue_new(WITH("backfill = \"easy\"\n"));

    (void)state;
    assert_int_equal(starts_in_s(&q, q.wide), 1000);
    assert_int_equal(starts_in_s(&q, q.pair), -1);
    rig_free(q.rig);
}

static void conservative_promises_to_all(void **state)
{
    struct queue q = queue_new(WITH("backfill = \"conservative\"\n"));
    uint32_t third = rig_submit(q.rig, "N=3 ex t=100"), small = rig_submit(q.rig, "c=8 t=900");

    (void)state;
    assert_int_equal(rig_plan(q.rig), 1);
    assert_true(rig_runs(q.rig, small)); /* in nobody's way */
    assert_int_equal(starts_in_s(&q, q.wide), 1000);
    assert_int_equal(starts_in_s(&q, q.pair), 1500);
    assert_int_equal(starts_in_s(&q, third), 6500); /* only two are left beside the pair */
    rig_free(q.rig);
}

static void so_many_are_promised(void **state)
{
    struct queue q = queue_new(WITH("bookings = 2\n"));
    uint32_t third = rig_submit(q.rig, "N=3 ex t=100");

    (void)state;
    rig_plan(q.rig);
    assert_int_equal(starts_in_s(&q, q.pair), 1500);
    assert_int_equal(starts_in_s(&q, third), -1);
    rig_free(q.rig);
}

static void partitions_have_their_own(void **state)
{
    struct queue q = queue_new("cluster_name = \"t\"\n" NODES MAIN "bookings = 2\n");

    (void)state;
    assert_int_equal(starts_in_s(&q, q.wide), 1000);
    assert_int_equal(starts_in_s(&q, q.pair), 1500);
    rig_free(q.rig);
}

/* Nothing that starts later than a promise was made moves it back. */
static void promises_are_kept(void **state)
{
    struct queue q = queue_new(WITH("backfill = \"conservative\"\n"));
    int64_t wide = starts_in_s(&q, q.wide), pair = starts_in_s(&q, q.pair);

    (void)state;
    for (int i = 0; i < 60; i++) {
        char words[40];
        snprintf(words, sizeof(words), "c=%d t=%d", 1 + i % 8, 100 + i * 37 % 2000);
        rig_submit(q.rig, words);
        rig_plan(q.rig);
        assert_true(starts_in_s(&q, q.wide) <= wide);
        assert_true(starts_in_s(&q, q.pair) <= pair);
        wide = starts_in_s(&q, q.wide);
        pair = starts_in_s(&q, q.pair);
    }
    rig_free(q.rig);
}

static void others_are_foreseen(void **state)
{
    struct queue q = queue_new(WITH("backfill = \"easy\"\n"));
    uint32_t third = rig_submit(q.rig, "N=3 ex t=100");

    (void)state;
    rig_plan(q.rig);
    sched_forecast(q.rig->sched, q.rig->now_us);
    assert_int_equal(starts_in_s(&q, q.wide), 1000);
    assert_int_equal(starts_in_s(&q, q.pair), 1500);
    assert_int_equal(starts_in_s(&q, third), 6500);
    /* Nothing is kept for them: a long one may use what they would. */
    uint32_t longer = rig_submit(q.rig, "c=8 t=900");
    assert_int_equal(rig_plan(q.rig), 1);
    assert_true(rig_runs(q.rig, longer));
    rig_end(q.rig, q.runs);
    rig_end(q.rig, longer);
    assert_int_equal(rig_plan(q.rig), 1);
    assert_true(rig_runs(q.rig, q.wide));
    rig_free(q.rig);
}

static void nodes_of_a_promise_are_planned(void **state)
{
    struct queue q = queue_new(WITH("backfill = \"easy\"\n"));

    (void)state;
    for (size_t n = 0; n < 4; n++)
        assert_true(sched_is_planned(q.rig->sched, state_node_at(q.rig->state, n)));
    rig_cancel(q.rig, q.wide);
    rig_cancel(q.rig, q.pair);
    rig_plan(q.rig);
    for (size_t n = 0; n < 4; n++)
        assert_false(sched_is_planned(q.rig->sched, state_node_at(q.rig->state, n)));
    rig_free(q.rig);
}

/* MinPrioThreshold: the first in order, but nothing is kept for it. */
static void low_priorities_are_promised_nothing(void **state)
{
    struct rig *rig = rig_new(WITH("") "[[qos]]\nname = \"low\"\nmin_prio_threshold = 1000\n");
    uint32_t ids[2];

    (void)state;
    rig_submit(rig, "N=3 ex t=1000");
    assert_int_equal(rig_plan(rig), 1);
    for (int i = 0; i < 2; i++) {
        JobSpec spec = JOB_SPEC__INIT;
        spec.qos = (char *)"low";
        spec.has_min_nodes = spec.has_exclusive = spec.has_time_limit_s = true;
        spec.min_nodes = 4;
        spec.exclusive = 1;
        spec.time_limit_s = 500;
        spec.has_priority = true;
        spec.priority = i ? 1000 : 999;
        ids[i] = rig_submit_spec(rig, 1000, &spec);
        assert_int_not_equal(ids[i], 0);
        assert_int_equal(rig_plan(rig), 0);
        bool promised = false;
        for (size_t n = 0; n < 4; n++)
            promised = promised || sched_is_planned(rig->sched, state_node_at(rig->state, n));
        assert_int_equal(promised, i);
    }
    rig_free(rig);
}

/* The first of each user, whatever else he has; and what is behind may use what is not kept. */
static void a_user_has_so_many(void **state)
{
    static const char *const settings[] = {
        WITH("bookings = 3\n"),
        WITH("bookings = 3\nbookings_per_user = 1\n"),
        WITH("bookings = 3\nbookings_per_account = 1\n"),
    };

    (void)state;
    for (unsigned bound = 0; bound < 3; bound++) {
        struct queue q = queue_new(settings[bound]); /* all of user 1000 */
        uint32_t other = rig_submit(q.rig, "N=4 ex t=300 uid=7");
        rig_plan(q.rig);
        assert_int_equal(starts_in_s(&q, q.wide), 1000);
        assert_int_equal(starts_in_s(&q, q.pair), bound ? -1 : 1500);
        assert_int_equal(starts_in_s(&q, other), bound ? 1500 : 6500);
        /* One that goes before takes the promise over. */
        uint32_t first = rig_submit(q.rig, "N=4 ex t=100 prio=4294901760");
        rig_plan(q.rig);
        assert_int_equal(starts_in_s(&q, first), 1000);
        assert_int_equal(starts_in_s(&q, q.wide), bound ? -1 : 1100);
        rig_cancel(q.rig, first);
        rig_plan(q.rig);
        assert_true(starts_in_s(&q, q.wide) >= 1000);
        /* When it runs, the next of the same user has it. */
        rig_end(q.rig, q.runs);
        rig_plan(q.rig);
        assert_true(rig_runs(q.rig, q.wide));
        assert_true(sched_planned_start(q.rig->sched, rig_job(q.rig, q.pair)) > 0);
        rig_free(q.rig);
    }
}

UNIT_MAIN(UNIT(easy_promises_to_the_first), UNIT(conservative_promises_to_all),
          UNIT(so_many_are_promised), UNIT(partitions_have_their_own), UNIT(promises_are_kept),
          UNIT(others_are_foreseen), UNIT(nodes_of_a_promise_are_planned),
          UNIT(low_priorities_are_promised_nothing), UNIT(a_user_has_so_many))
