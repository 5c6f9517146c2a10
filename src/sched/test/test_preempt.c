/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_preempt.c - who makes room for whom, and that nobody does in in vain
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/test/rig.h"
#include "test/unit.h"

#define CLUSTER "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core_Memory\"]\n"
#define NODES                                                                                  \
    "[[nodes]]\nnames = \"n[1-4]\"\ncpus = 8\nsockets = 2\ncores_per_socket = 4\nmemory_mb = " \
    "8000\n"
#define LANES                                                                              \
    "[[partitions]]\nname = \"low\"\nnodes = \"ALL\"\ndefault = true\npriority_tier = 1\n" \
    "[[partitions]]\nname = \"high\"\nnodes = \"ALL\"\npriority_tier = 5\n"
#define TIERS(mode, more) \
    CLUSTER "[preemption]\ntype = \"partition_prio\"\nmode = \"" mode "\"\n" more NODES LANES

static JobState state_of(const struct rig *rig, uint32_t id)
{
    return (JobState)rig_job(rig, id)->state;
}

/* A job on each node; the last one is the youngest. */
static uint32_t fill(struct rig *rig)
{
    uint32_t id = 0;

    for (int i = 0; i < 4; i++) {
        id = rig_submit(rig, "c=8 mem=1000");
        rig_wait(rig, 1);
        assert_int_equal(rig_plan(rig), 1);
    }
    return id;
}

static size_t signals_of(const struct rig *rig, uint32_t signal)
{
    size_t count = 0;

    events_each(event, &rig->events) count +=
        event->kind == EVENT_JOB_SIGNAL && event->signal == signal;
    return count;
}

static void a_lower_tier_is_cancelled(void **state)
{
    struct rig *rig = rig_new(TIERS("CANCEL", ""));
    uint32_t low = rig_submit(rig, "N=4 ex");

    (void)state;
    assert_int_equal(rig_plan(rig), 1);
    uint32_t high = rig_submit(rig, "p=high c=8");
    assert_int_equal(rig_plan(rig), 0);
    assert_int_equal(rig->preempts, 1);
    assert_int_equal(state_of(rig, low), JOB_PREEMPTED);
    assert_int_equal(rig_plan(rig), 0);
    assert_int_equal(rig->preempts, 1); /* once is enough */
    rig_release(rig, low);
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, high));
    rig_free(rig);
}

/* What is freed is the preemptor's, whoever waits before it with more priority. */
static void a_requeued_job_waits_again(void **state)
{
    struct rig *rig = rig_new(TIERS("REQUEUE", ""));
    uint32_t low = rig_submit(rig, "N=4 ex");

    (void)state;
    assert_int_equal(rig_plan(rig), 1);
    uint32_t high = rig_submit(rig, "p=high N=2 ex t=100");
    rig_plan(rig);
    assert_int_equal(rig_job(rig, low)->restarts, 1);
    assert_true(rig_job(rig, low)->more->preempt_us > 0);
    rig_release(rig, low);
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, high));
    assert_int_equal(state_of(rig, low), JOB_PENDING);
    rig_end(rig, high);
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, low));
    assert_int_equal(rig_job(rig, low)->attempt, 2);
    rig_free(rig);
}

static void the_fewest_and_youngest_go(void **state)
{
    struct rig *rig = rig_new(TIERS("CANCEL", ""));
    uint32_t small[8], two;

    (void)state;
    for (int i = 0; i < 8; i++) { /* n1 and n2 are full of small ones */
        small[i] = rig_submit(rig, "c=2 mem=100");
        rig_plan(rig);
    }
    two = rig_submit(rig, "c=8");
    rig_plan(rig);
    rig_wait(rig, 5);
    uint32_t one = rig_submit(rig, "c=8");
    rig_plan(rig);
    uint32_t high = rig_submit(rig, "p=high c=8");
    rig_plan(rig);
    assert_int_equal(state_of(rig, one), JOB_PREEMPTED);
    assert_int_equal(state_of(rig, two), JOB_RUNNING);
    for (int i = 0; i < 8; i++)
        assert_int_equal(state_of(rig, small[i]), JOB_RUNNING);
    rig_release(rig, one);
    rig_plan(rig);
    assert_true(rig_runs(rig, high));
    rig_free(rig);
}

/* With all that may go the job would still not fit: nobody goes. */
static void nobody_goes_in_vain(void **state)
{
    struct rig *rig = rig_new(TIERS("CANCEL", ""));
    uint32_t low, keeps;

    (void)state;
    keeps = rig_submit(rig, "p=high N=2 ex");
    low = rig_submit(rig, "N=2 ex");
    assert_int_equal(rig_plan(rig), 2);
    rig_submit(rig, "p=high N=3 ex");
    assert_int_equal(rig_plan(rig), 0);
    assert_int_equal(rig->preempts, 0);
    assert_true(rig_runs(rig, low));
    assert_true(rig_runs(rig, keeps));
    rig_free(rig);
}

static void off_means_off(void **state)
{
    struct rig *rig =
        rig_new(CLUSTER "[preemption]\ntype = \"partition_prio\"\nmode = \"CANCEL\"\n" NODES
                        "[[partitions]]\nname = \"low\"\nnodes = \"ALL\"\ndefault = true\n"
                        "preempt_mode = \"OFF\"\n"
                        "[[partitions]]\nname = \"high\"\nnodes = \"ALL\"\npriority_tier = 5\n");
    uint32_t low = rig_submit(rig, "N=4 ex");

    (void)state;
    rig_plan(rig);
    rig_submit(rig, "p=high c=8");
    rig_plan(rig);
    assert_int_equal(rig->preempts, 0);
    assert_true(rig_runs(rig, low));
    rig_free(rig);
}

static void a_job_is_left_alone_for_its_exempt_time(void **state)
{
    struct rig *rig = rig_new(TIERS("CANCEL", "exempt_time = \"10\"\n"));
    uint32_t low = rig_submit(rig, "N=4 ex"), high;
    bool more;

    (void)state;
    rig_plan(rig);
    high = rig_submit(rig, "p=high c=8");
    rig_plan(rig);
    assert_int_equal(rig->preempts, 0);
    assert_int_equal(sched_plan(rig->sched, rig->now_us, 100)->wake_us,
                     rig_job(rig, low)->run->start_us + 600 * INT64_C(1000000));
    rig_wait(rig, 601);
    rig_slice(rig, &more);
    assert_int_equal(rig->preempts, 1);
    rig_release(rig, low);
    rig_plan(rig);
    assert_true(rig_runs(rig, high));
    rig_free(rig);
}

#define GRACE                                                                     \
    CLUSTER "[preemption]\ntype = \"partition_prio\"\nmode = \"REQUEUE\"\n" NODES \
            "[[partitions]]\nname = \"low\"\nnodes = \"ALL\"\ndefault = true\n"   \
            "grace_time = 120\n"                                                  \
            "[[partitions]]\nname = \"high\"\nnodes = \"ALL\"\npriority_tier = 5\n"

static void grace_is_given(void **state)
{
    struct rig *rig = rig_new(GRACE);
    uint32_t low = fill(rig), high;
    bool more;

    (void)state;
    high = rig_submit(rig, "p=high c=8 mem=100");
    rig_slice(rig, &more);
    assert_int_equal(rig->preempts, 1);
    assert_int_equal(signals_of(rig, SIGCONT), 1);
    assert_int_equal(signals_of(rig, SIGTERM), 1);
    /* It is known when it starts, and where. */
    const struct job *told = rig_job(rig, low), *waits = rig_job(rig, high);
    struct str names = { 0 };
    assert_int_equal(sched_planned_start(rig->sched, waits), told->more->preempt_end_us);
    sched_planned_nodes(rig->sched, waits, &names);
    assert_string_equal(str_text(&names), told->run->parts[0].name);
    str_done(&names);
    rig_wait(rig, 60);
    rig_plan(rig);
    assert_true(rig_runs(rig, low)); /* it saves its work */
    rig_wait(rig, 61);
    assert_int_equal(state_of(rig, low), JOB_PENDING);
    assert_int_equal(rig_job(rig, low)->restarts, 1);
    rig_release(rig, low);
    rig_plan(rig);
    assert_true(rig_runs(rig, high));
    assert_int_equal(rig->preempts, 1);
    rig_free(rig);
}

/* One that ends well within its grace has ended; nothing is requeued. */
static void who_ends_in_its_grace_has_ended(void **state)
{
    struct rig *rig = rig_new(GRACE);
    uint32_t low = fill(rig), high;

    (void)state;
    high = rig_submit(rig, "p=high c=8 mem=100");
    rig_plan(rig);
    rig_end(rig, low);
    assert_int_equal(state_of(rig, low), JOB_COMPLETED);
    rig_plan(rig);
    assert_true(rig_runs(rig, high));
    rig_free(rig);
}

static void a_suspended_job_runs_on_afterwards(void **state)
{
    struct rig *rig = rig_new(TIERS("SUSPEND,GANG", ""));
    uint32_t low = fill(rig), high;

    (void)state;
    high = rig_submit(rig, "p=high c=8 mem=1000");
    rig_plan(rig);
    assert_int_equal(state_of(rig, low), JOB_SUSPENDED);
    assert_true(rig_runs(rig, high));
    /* Its memory is still its own. */
    uint32_t more = rig_submit(rig, "p=high c=8 mem=8000");
    rig_plan(rig);
    assert_false(rig_runs(rig, more));
    rig_cancel(rig, more);
    rig_end(rig, high);
    assert_int_equal(state_of(rig, low), JOB_RUNNING);
    rig_plan(rig);
    rig_end(rig, low);
    assert_int_equal(state_of(rig, low), JOB_COMPLETED);
    rig_free(rig);
}

static void a_suspended_job_can_be_ended(void **state)
{
    struct rig *rig = rig_new(TIERS("SUSPEND,GANG", ""));
    uint32_t low = fill(rig), high;

    (void)state;
    high = rig_submit(rig, "p=high ex mem=100");
    rig_plan(rig);
    assert_true(rig_runs(rig, high));
    rig_cancel(rig, low);
    rig_release(rig, low);
    rig_end(rig, high);
    assert_int_equal(state_of(rig, low), JOB_CANCELLED);
    rig_free(rig);
}

static void qos_preempt_those_they_name(void **state)
{
    struct rig *rig = rig_new(
        CLUSTER
        "[preemption]\ntype = \"qos\"\nmode = \"CANCEL\"\n"
        "[[qos]]\nname = \"normal\"\n[[qos]]\nname = \"spare\"\npreempt_mode = \"REQUEUE\"\n"
        "[[qos]]\nname = \"urgent\"\npreempt = [\"spare\"]\n" NODES
        "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n");
    uint32_t normal = rig_submit(rig, "N=2 ex qos=normal");
    uint32_t spare = rig_submit(rig, "N=2 ex qos=spare");

    (void)state;
    assert_int_equal(rig_plan(rig), 2);
    rig_submit(rig, "N=2 ex qos=normal");
    rig_plan(rig);
    assert_int_equal(rig->preempts, 0);
    uint32_t urgent = rig_submit(rig, "N=2 ex qos=urgent");
    rig_plan(rig);
    assert_int_equal(rig->preempts, 1);
    assert_true(rig_runs(rig, normal));
    assert_int_equal(rig_job(rig, spare)->restarts, 1);
    rig_release(rig, spare);
    rig_plan(rig);
    assert_true(rig_runs(rig, urgent)); /* though another waited before it */
    rig_free(rig);
}

/* In the partition of the higher tier, however they were named: there it is not in the way of another one. */
static void of_several_partitions_the_higher_is_taken(void **state)
{
    struct rig *rig = rig_new(TIERS("CANCEL", ""));
    uint32_t both = rig_submit(rig, "p=low,high N=4 ex");

    (void)state;
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_job(rig, both)->run->partition, "high");
    rig_submit(rig, "p=high c=8");
    assert_int_equal(rig_plan(rig), 0);
    assert_int_equal(rig->preempts, 0);
    rig_free(rig);
}

/* Who made others go starts in the partition that let it. */
static void room_is_made_for_the_partition_that_may(void **state)
{
    struct rig *rig = rig_new(TIERS("CANCEL", ""));
    uint32_t low = rig_submit(rig, "N=4 ex");

    (void)state;
    assert_int_equal(rig_plan(rig), 1);
    uint32_t both = rig_submit(rig, "p=low,high N=4 ex");
    rig_plan(rig);
    assert_int_equal(state_of(rig, low), JOB_PREEMPTED);
    rig_release(rig, low);
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_job(rig, both)->run->partition, "high");
    rig_free(rig);
}

static int64_t last_start_us[400]; /* by job */

static void note_start(struct rig *rig, const struct job *job)
{
    assert_true(job->id < ARRAY_LEN(last_start_us));
    last_start_us[job->id] = rig->now_us;
}

/* Whom it went for; 0: it did not go since then. */
static uint32_t went_for(const struct rig *rig, uint32_t id, int64_t since_us, int64_t *when_us)
{
    const struct job *job = rig_job(rig, id);

    if (!job || !job->more || job->more->preempt_us <= since_us)
        return 0;
    *when_us = job->more->preempt_us;
    return job->more->preempted_by;
}

/*
 * Random jobs in three tiers. Every invariant is checked after each step; whoever was preempted was so for a job
 * that started then, or with the next plan.
 */
static void random_histories(void **state)
{
    static const char *const modes[] = { "CANCEL", "REQUEUE", "SUSPEND,GANG" };

    const char *more = getenv("SPUR_TEST_SEEDS");

    (void)state;
    for (unsigned seed = 1; seed <= (more ? (unsigned)atoi(more) : 60); seed++) {
        char toml[2048];
        unsigned luck = seed * 7919;
        snprintf(toml, sizeof(toml),
                 CLUSTER "[preemption]\ntype = \"partition_prio\"\nmode = \"%s\"\n" NODES LANES
                         "[[partitions]]\nname = \"top\"\nnodes = \"ALL\"\npriority_tier = 9\n",
                 modes[seed % 3]);
        struct rig *rig = rig_new(toml);
        uint32_t ids[200], count = 0;
        memset(last_start_us, 0, sizeof(last_start_us));
        rig->on_start = note_start;
        rig->check = true;
        for (int step = 0; step < 120; step++) {
            char words[80];
            static const char *const partition_queues[] = { "low", "low", "high", "top" };
            snprintf(words, sizeof(words), "p=%s N=%d n=%d mem=%d t=%d",
                     partition_queues[rand_r(&luck) % 4], 1 + rand_r(&luck) % 2,
                     2 + rand_r(&luck) % 10, 100 + rand_r(&luck) % 2000, 60 + rand_r(&luck) % 600);
            ids[count++] = rig_submit(rig, words);
            int64_t since_us = rig->now_us, when_us[ARRAY_LEN(ids)];
            uint32_t by[ARRAY_LEN(ids)];
            rig_plan(rig);
            for (uint32_t i = 0; i < count; i++) {
                const struct job *job = rig_job(rig, ids[i]);
                by[i] = went_for(rig, ids[i], since_us, &when_us[i]);
                if (job && job->run && job->flags & JOB_FLAG_COMPLETING)
                    rig_release(rig, ids[i]);
            }
            rig_plan(rig);
            for (uint32_t i = 0; i < count; i++) {
                if (by[i] && last_start_us[by[i]] < when_us[i])
                    fail_msg("seed %u: job %u went for job %u, which does not start", seed, ids[i],
                             by[i]);
            }
            for (uint32_t i = 0; i < count; i++) {
                if (rig_runs(rig, ids[i]) && rand_r(&luck) % 8 == 0)
                    rig_end(rig, ids[i]);
            }
            rig_wait(rig, 1 + rand_r(&luck) % 20);
        }
        assert_int_equal(rig->refused, 0);
        rig_free(rig);
    }
}

/* A job that is only asked about says that it would start now; and nobody has to go for it. */
static void a_question_counts_on_preemption(void **state)
{
    struct rig *rig = rig_new(TIERS("REQUEUE", ""));

    (void)state;
    fill(rig);
    uint64_t before = rig->preempts;
    assert_int_equal(rig_test(rig, "p=high c=8"), rig->now_us);
    assert_int_equal(rig_test(rig, "p=high N=4 ex"), rig->now_us);
    assert_true(rig_test(rig, "c=8 t=60") != rig->now_us); /* of the same tier */
    assert_int_equal(rig_plan(rig), 0);
    assert_int_equal(rig->preempts, before);
    uint32_t high = rig_submit(rig, "p=high c=8"); /* what was asked had no effect on it */
    rig_plan(rig);
    assert_int_equal(rig->preempts, before + 1);
    assert_true(high != 0);
    rig_free(rig);
}

/* Of very many nodes all are asked, by who has the time. */
static void a_question_is_answered_on_many_nodes(void **state)
{
    struct rig *rig =
        rig_new(CLUSTER "[preemption]\ntype = \"partition_prio\"\nmode = \"CANCEL\"\n"
                        "[[nodes]]\nnames = \"n[1-700]\"\ncpus = 8\nmemory_mb = 8000\n" LANES);

    (void)state;
    rig->check = false;
    assert_int_not_equal(rig_submit(rig, "N=700 ex"), 0);
    assert_int_equal(rig_plan(rig), 1);
    sched_take_time(rig->sched);
    assert_int_equal(rig_test(rig, "p=high c=8"), rig->now_us);
    assert_int_equal(rig_test(rig, "p=high N=700 ex"), rig->now_us);
    assert_true(rig_test(rig, "c=8") != rig->now_us);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lower_tier_is_cancelled),
        cmocka_unit_test(a_requeued_job_waits_again),
        cmocka_unit_test(the_fewest_and_youngest_go),
        cmocka_unit_test(nobody_goes_in_vain),
        cmocka_unit_test(off_means_off),
        cmocka_unit_test(a_job_is_left_alone_for_its_exempt_time),
        cmocka_unit_test(grace_is_given),
        cmocka_unit_test(who_ends_in_its_grace_has_ended),
        cmocka_unit_test(a_suspended_job_runs_on_afterwards),
        cmocka_unit_test(a_suspended_job_can_be_ended),
        cmocka_unit_test(qos_preempt_those_they_name),
        cmocka_unit_test(a_question_counts_on_preemption),
        cmocka_unit_test(a_question_is_answered_on_many_nodes),
        cmocka_unit_test(of_several_partitions_the_higher_is_taken),
        cmocka_unit_test(room_is_made_for_the_partition_that_may),
        cmocka_unit_test(random_histories),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
