/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gang.c - jobs that share CPUs take turns
 */
#include "base/hash.h"
#include "sched/test/rig.h"
#include "test/unit.h"

static const char conf[] =
    "cluster_name = \"t\"\n[scheduler]\ntime_slice = \"0:10\"\n[preemption]\nmode = [\"GANG\"]\n"
    "[[nodes]]\nnames = \"n[1-3]\"\ncpus = 8\nsockets = 2\ncores_per_socket = 4\n"
    "memory_mb = 8000\n"
    "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
    "oversubscribe = \"FORCE:3\"\n";

static bool stopped(const struct rig *rig, uint32_t id)
{
    return rig_job(rig, id)->state == JOB_SUSPENDED;
}

/* Of those that run, no two have a CPU in common; and nobody waits for CPUs that are idle. */
static void judge(const struct rig *rig)
{
    for (size_t n = 0; n < state_node_count(rig->state); n++) {
        const struct node *node = state_node_at(rig->state, n);
        uint8_t users[8] = { 0 };
        for (size_t i = 0; i < node->jobs.len; i++) {
            const struct job *job = node->jobs.items[i];
            for (unsigned k = 0; k < job->run->count; k++) {
                if (job->run->parts[k].node != node || job->state != JOB_RUNNING ||
                    job->flags & (JOB_FLAG_COMPLETING | JOB_FLAG_CONFIGURING))
                    continue;
                bitset_each (cpu, &job->run->parts[k].cpu_ids)
                    assert_int_equal(++users[cpu], 1);
            }
        }
    }
}

/* Where CPUs have as many jobs as they may, the next starts when one of these ends, and nobody goes before it for longer. */
static void a_start_is_foreseen_on_shared_cpus(void **state)
{
    struct rig *rig = rig_new(conf);
    uint32_t waits, small;

    (void)state;
    rig->check = true;
    for (int i = 0; i < 3; i++)
        rig_submit(rig, i ? "N=3 n=24 t=2000" : "N=3 n=24 t=600");
    rig_plan(rig);
    waits = rig_submit(rig, "N=3 n=24 t=100");
    small = rig_submit(rig, "n=1 t=100");
    rig_plan(rig);
    assert_int_equal(rig_job(rig, waits)->state, JOB_PENDING);
    assert_in_range((sched_planned_start(rig->sched, rig_job(rig, waits)) - rig->now_us) / 1000000,
                    598, 600);
    sched_forecast(rig->sched, rig->now_us);
    assert_in_range((sched_planned_start(rig->sched, rig_job(rig, small)) - rig->now_us) / 1000000,
                    598, 701);
    rig_free(rig);
}

/* Also behind jobs that share with nobody. */
static void a_sharing_job_waits_for_others(void **state)
{
    struct rig *rig =
        rig_new("cluster_name = \"t\"\n[[nodes]]\nnames = \"n[1-2]\"\ncpus = 8\nmemory_mb = 8000\n"
                "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
                "oversubscribe = \"YES:2\"\n");
    uint32_t waits;

    (void)state;
    rig->check = true;
    rig_submit(rig, "c=8 t=600 w=n1");
    rig_submit(rig, "c=8 t=900 w=n2");
    rig_plan(rig);
    waits = rig_submit(rig, "c=8 t=100 share");
    rig_plan(rig);
    assert_in_range((sched_planned_start(rig->sched, rig_job(rig, waits)) - rig->now_us) / 1000000,
                    598, 600);
    rig_free(rig);
}

static void two_take_turns(void **state)
{
    struct rig *rig = rig_new(conf);
    uint32_t a = rig_submit(rig, "c=8 t=600 w=n1"), b;
    int64_t ran_a = 0, ran_b = 0;

    (void)state;
    rig->check = true;
    rig_plan(rig);
    b = rig_submit(rig, "c=8 t=600 w=n1");
    rig_plan(rig);
    assert_true(rig_runs(rig, b)); /* the new one begins */
    assert_true(stopped(rig, a));
    for (int i = 0; i < 12; i++) {
        bool first = rig_runs(rig, a);
        assert_int_equal(first + rig_runs(rig, b), 1);
        (first ? &ran_a : &ran_b)[0]++;
        assert_true(core_next_due(rig->state) <= rig->now_us + 10 * INT64_C(1000000));
        rig_wait(rig, 10);
        assert_int_not_equal(first, rig_runs(rig, a));
    }
    assert_int_equal(ran_a, ran_b);
    /* The time that it stood still is not taken off its limit. */
    assert_true(rig_job(rig, a)->run->suspended_total_us >= 50 * INT64_C(1000000));
    uint32_t runs = rig_runs(rig, a) ? a : b, waits = runs == a ? b : a;
    rig_end(rig, runs);
    assert_true(rig_runs(rig, waits)); /* at once, not when the slice is over */
    rig_wait(rig, 10);
    assert_true(rig_runs(rig, waits));
    rig_free(rig);
}

static void by_hand_it_stays(void **state)
{
    struct rig *rig = rig_new(conf);
    uint32_t a = rig_submit(rig, "c=8 t=600 w=n1"), b;
    Command cmd = COMMAND__INIT;
    CmdSuspend msg = CMD_SUSPEND__INIT;
    JobSelect jobs = JOB_SELECT__INIT;

    (void)state;
    rig->check = true;
    rig_plan(rig);
    b = rig_submit(rig, "c=8 t=600 w=n1");
    rig_plan(rig);
    cmd.what_case = COMMAND__WHAT_SUSPEND;
    cmd.suspend = &msg;
    msg.jobs = &jobs;
    jobs.n_job_ids = 1;
    jobs.job_ids = &a;
    rig_apply(rig, &cmd);
    for (int i = 0; i < 4; i++) {
        rig_wait(rig, 10);
        assert_true(stopped(rig, a));
        assert_true(rig_runs(rig, b));
    }
    msg.has_resume = msg.resume = true;
    rig_apply(rig, &cmd);
    judge(rig);
    assert_true(rig_runs(rig, a));
    assert_true(stopped(rig, b));
    rig_free(rig);
}

/* Its nodes are prepared. */
static void ready(struct rig *rig, const struct job *job)
{
    Command cmd = COMMAND__INIT;
    CmdReady msg = CMD_READY__INIT;

    cmd.what_case = COMMAND__WHAT_READY;
    cmd.ready = &msg;
    msg.has_job_id = msg.has_attempt = true;
    msg.job_id = job->id;
    msg.attempt = job->attempt;
    rig_apply(rig, &cmd);
}

static uint64_t seed;

static uint32_t dice(uint32_t sides)
{
    seed = hash_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    return (uint32_t)(seed >> 33) % sides;
}

static void never_two_at_once(void **state)
{
    static const char *const shapes[] = { "c=1", "c=3", "c=8", "N=2 n=8", "N=3 n=24", "c=4" };
    unsigned turns = 0;

    (void)state;
    for (uint64_t first = 1; first <= 30; first++) {
        struct rig *rig = rig_new(conf);
        seed = first;
        rig->check = true;
        for (unsigned step = 0; step < 100; step++) {
            char words[80];
            uint32_t what = dice(6);
            snprintf(words, sizeof(words), "%s t=%u", shapes[dice(6)], 60 + dice(900));
            if (what < 3)
                rig_submit(rig, words);
            else if (what < 5)
                rig_wait(rig, dice(15));
            for (const struct job *job = state_job_from(rig->state, 1); job && what == 5;
                 job = state_job_from(rig->state, (uint64_t)job->id + 1)) {
                turns += job->state == JOB_SUSPENDED;
                if (job->flags & JOB_FLAG_CONFIGURING)
                    ready(rig, job);
                if ((job->state == JOB_RUNNING || job->state == JOB_SUSPENDED) && dice(3) == 0) {
                    rig_cancel(rig, job->id);
                    rig_release(rig, job->id);
                    break;
                }
            }
            rig_plan(rig);
            judge(rig);
        }
        rig_free(rig);
    }
    assert_true(turns > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_start_is_foreseen_on_shared_cpus),
        cmocka_unit_test(a_sharing_job_waits_for_others),
        cmocka_unit_test(two_take_turns),
        cmocka_unit_test(by_hand_it_stays),
        cmocka_unit_test(never_two_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
