/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_predict.c - who goes first: by limit, and by what earlier jobs let expect
 */
#include "sched/test/rig.h"
#include "test/unit.h"

#define CLUSTER(order)                                                            \
    "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core\"]\norder = \"" order \
    "\"\norder_patience = 1000\norder_bound = \"1-0\"\n"                          \
    "[[nodes]]\nnames = \"g1\"\ncpus = 8\nmemory_mb = 8000\ngres = [\"gpu:8\"]\n" \
    "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"

static void at(struct rig *rig, int64_t s)
{
    rig_wait(rig, s);
}

/* Runs one job alone for so long. */
static void past(struct rig *rig, const char *words, int64_t ran_s)
{
    uint32_t id = rig_submit(rig, words);

    assert_int_not_equal(id, 0);
    rig_plan(rig);
    assert_true(rig_runs(rig, id));
    at(rig, ran_s);
    rig_end(rig, id);
}

/* Which of two jobs that cannot run together goes first, behind one that has the node now. */
static uint32_t first_of(struct rig *rig, const char *a, int64_t between_s, const char *b)
{
    uint32_t blocker = rig_submit(rig, "gres=gpu:8 t=inf uid=999 name=blocker");

    rig_plan(rig);
    assert_true(rig_runs(rig, blocker));
    uint32_t one = rig_submit(rig, a);
    at(rig, between_s);
    uint32_t two = rig_submit(rig, b);
    rig_end(rig, blocker);
    rig_plan(rig);
    uint32_t won = rig_runs(rig, one) ? 1 : rig_runs(rig, two) ? 2 : 0;
    if (won)
        rig_end(rig, won == 1 ? one : two);
    rig_cancel(rig, won == 1 ? two : one);
    return won;
}

static void by_limit(void **state)
{
    struct rig *rig = rig_new(CLUSTER("sjf"));

    (void)state;
    assert_int_equal(first_of(rig, "gres=gpu:8 t=600", 5, "gres=gpu:8 t=60"), 2);
    assert_int_equal(first_of(rig, "gres=gpu:8 t=60", 5, "gres=gpu:8 t=600"), 1);
    assert_int_equal(first_of(rig, "gres=gpu:8 t=inf", 5, "gres=gpu:8 t=600"), 2);
    assert_int_equal(first_of(rig, "gres=gpu:8 t=60 nice=1000", 5, "gres=gpu:8 t=600"), 2);
    rig_free(rig);
}

static void limits_count_until_something_is_known(void **state)
{
    struct rig *rig = rig_new(CLUSTER("predict"));

    (void)state;
    assert_int_equal(first_of(rig, "gres=gpu:8 t=600", 5, "gres=gpu:8 t=60"), 2);
    assert_int_equal(first_of(rig, "gres=gpu:8 t=60", 5, "gres=gpu:8 t=600"), 1);
    rig_free(rig);
}

/* Two users ask for the same hour; one of them always needs a minute. */
static void users_and_names_are_told_apart(void **state)
{
    struct rig *rig = rig_new(CLUSTER("predict"));

    (void)state;
    for (int i = 0; i < 4; i++) {
        past(rig, "gres=gpu:8 t=3600 uid=1 name=train", 3500);
        past(rig, "gres=gpu:8 t=3600 uid=2 name=train", 60);
        past(rig, "gres=gpu:8 t=3600 uid=1 name=test", 30);
    }
    assert_int_equal(first_of(rig, "gres=gpu:8 t=3600 uid=1 name=train", 5,
                              "gres=gpu:8 t=3600 uid=2 name=train"),
                     2);
    assert_int_equal(first_of(rig, "gres=gpu:8 t=3600 uid=2 name=train", 5,
                              "gres=gpu:8 t=3600 uid=1 name=train"),
                     1);
    assert_int_equal(
        first_of(rig, "gres=gpu:8 t=3600 uid=1 name=train", 5, "gres=gpu:8 t=3600 uid=1 name=test"),
        2);
    rig_free(rig);
}

/* A new planner for the same state knows what the old one saw. */
static void what_ended_is_recalled(void **state)
{
    struct rig *rig = rig_new(CLUSTER("predict"));

    (void)state;
    for (int i = 0; i < 4; i++) {
        past(rig, "gres=gpu:8 t=3600 uid=1 name=train", 50);
        past(rig, "gres=gpu:8 t=3600 uid=2 name=train", 5);
    }
    sched_free(rig->sched);
    rig->sched = sched_new(rig->state);
    assert_int_equal(first_of(rig, "gres=gpu:8 t=3600 uid=1 name=train", 5,
                              "gres=gpu:8 t=3600 uid=2 name=train"),
                     2);
    rig_free(rig);
}

/* The bound is a day: who came more than that before is not overtaken, however large. */
static void nobody_is_overtaken_beyond_the_bound(void **state)
{
    struct rig *rig = rig_new(CLUSTER("predict"));

    (void)state;
    assert_int_equal(first_of(rig, "gres=gpu:8 t=864000", 80000, "gres=gpu:8 t=1"), 2);
    assert_int_equal(first_of(rig, "gres=gpu:8 t=864000", 86500, "gres=gpu:8 t=1"), 1);
    rig_free(rig);
}

/* What comes is counted by how long it would take in the order of submission. */
#define PATIENT                                                                          \
    "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core\"]\norder = \"predict\"\n%s" \
    "[[nodes]]\nnames = \"g1\"\ncpus = 8\nmemory_mb = 8000\ngres = [\"gpu:8\"]\n"        \
    "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"

/* Jobs of 80 and 120 s without end, and one of 1000 s in between: how long does that wait? */
static int64_t large_waits(const char *settings, int64_t every_s)
{
    CLEANUP(freep) char *conf = mem_printf(PATIENT, settings);
    struct rig *rig = rig_new(conf);
    uint32_t ids[600] = { 0 }, large = 0;
    int64_t now = 0, wait = -1;

    rig->check = false;
    for (int i = 0; i < 600 && wait < 0; i++) {
        if (i == 200)
            large = rig_submit(rig, "gres=gpu:8 t=1000");
        ids[i] = rig_submit(rig, i % 2 ? "gres=gpu:8 t=80" : "gres=gpu:8 t=120");
        rig_plan(rig);
        for (int64_t until = now + every_s; now < until; now++) {
            at(rig, 1);
            for (int k = MAX(0, i - 400); k <= i; k++) {
                const struct job *job = ids[k] ? state_job(rig->state, ids[k]) : NULL;
                if (job && rig_runs(rig, ids[k]) &&
                    rig->now_us - job->run->start_us >= job->time_limit_s * INT64_C(1000000) - 1) {
                    rig_end(rig, ids[k]);
                    ids[k] = 0;
                    rig_plan(rig);
                }
            }
            if (large && wait < 0 && rig_runs(rig, large))
                wait = now - 200 * every_s;
        }
    }
    rig_free(rig);
    return wait;
}

/* A job of 100 s every 90 s: the queue grows by a ninth, and the large job is always the last by size. */
static void a_large_job_starts_when_its_time_has_come(void **state)
{
    int64_t patient = large_waits("order_late = 0\norder_patience = 90\n", 90);
    int64_t less = large_waits("order_late = 0\norder_patience = 50\n", 90);
    int64_t none = large_waits("order_patience = 0\n", 90);

    (void)state;
    /* 20,000 s of work came in 18,000 s: in order of submission it would wait 2,000 s. */
    assert_in_range(none, 1900, 2100);
    assert_in_range(less, 900, 4000);
    assert_in_range(patient, less, 8000);
    /* One that may be late waits longer, but not for ever. */
    assert_in_range(large_waits("order_late = 1000\norder_patience = 90\n", 90), 2 * patient,
                    40000);
    assert_in_range(large_waits("order_late = 0\norder_bound = \"0:10:00\"\n", 90), 590, 2100);
}

/* Many kinds of jobs: what is known is bounded, and places change with what is learned. */
static void many_kinds(void **state)
{
    struct rig *rig = rig_new(CLUSTER("predict"));
    char words[100];

    (void)state;
    rig->check = false;
    for (int i = 0; i < 3000; i++) {
        snprintf(words, sizeof(words), "gres=gpu:8 t=%d uid=%d name=n%d", 60 + i % 50, 1 + i % 97,
                 i);
        past(rig, words, 1 + i % 40);
    }
    rig->check = true;
    assert_int_equal(first_of(rig, "gres=gpu:8 t=6000", 5, "gres=gpu:8 t=60"), 2);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_limit),
        cmocka_unit_test(limits_count_until_something_is_known),
        cmocka_unit_test(users_and_names_are_told_apart),
        cmocka_unit_test(what_ended_is_recalled),
        cmocka_unit_test(nobody_is_overtaken_beyond_the_bound),
        cmocka_unit_test(a_large_job_starts_when_its_time_has_come),
        cmocka_unit_test(many_kinds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
