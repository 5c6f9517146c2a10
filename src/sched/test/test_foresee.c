/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_foresee.c - what is foreseen for jobs that wait for limits or for others holds
 *
 * There is always room on the nodes: only limits keep jobs of random owners waiting. All ask for as much and run until
 * their time limits. Then each starts when that was foreseen for it.
 */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "sched/test/rig.h"
#include "test/unit.h"

enum { USERS = 4, JOBS = 60 };

static const char toml[] =
    "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core\"]\n"
    "[accounting]\nenforce = [\"limits\"]\n"
    "[[nodes]]\nnames = \"n[1-40]\"\ncpus = 16\nmemory_mb = 8000\n"
    "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
    "[[qos]]\nname = \"normal\"\ngrp_jobs = 9\nmax_tres_per_user = \"cpu=9\"\n"
    "[[accounts]]\nname = \"all\"\ngrp_tres = \"cpu=21\"\n"
    "[[accounts]]\nname = \"a0\"\nparent = \"all\"\ngrp_tres = \"cpu=12\"\n"
    "[[accounts]]\nname = \"a1\"\nparent = \"all\"\nmax_tres_per_job = \"cpu=3\"\n"
    "[[users]]\nname = \"u1\"\naccount = \"a0\"\n[[users]]\nname = \"u2\"\naccount = \"a0\"\nmax_jobs = 2\n"
    "[[users]]\nname = \"u3\"\naccount = \"a1\"\n[[users]]\nname = \"u4\"\naccount = \"a1\"\n";

static uint64_t seed;

static uint32_t dice(uint32_t sides)
{
    seed = hash_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    return (uint32_t)(seed >> 33) % sides;
}

static int64_t foreseen(struct rig *rig, uint32_t id)
{
    struct arena arena;
    struct explanation about;

    arena_init(&arena);
    sched_explain(rig->sched, rig_job(rig, id), rig->now_us, &arena, &about);
    arena_done(&arena);
    return about.planned_start_us;
}

/* Time goes on to the next end of a job, and all that end in that second do. */
static bool next_end(struct rig *rig)
{
    int64_t first = INT64_MAX;

    for (uint32_t id = 1; id <= JOBS; id++) {
        if (rig_runs(rig, id))
            first = MIN(first, job_end_by(rig_job(rig, id), rig_job(rig, id)->run->start_us));
    }
    if (first == INT64_MAX)
        return false;
    rig_wait(rig, (first - rig->now_us + 999999) / 1000000);
    for (uint32_t id = 1; id <= JOBS; id++) {
        if (rig_runs(rig, id) &&
            job_end_by(rig_job(rig, id), rig_job(rig, id)->run->start_us) <= rig->now_us)
            rig_end(rig, id);
    }
    rig_plan(rig);
    return true;
}

/* What was said last when it was asked, by job. */
static unsigned random_seed(uint64_t of)
{
    struct rig *rig = rig_new(toml);
    int64_t said[JOBS + 1] = { 0 };
    unsigned asked = 0;

    seed = of;
    for (uint32_t id = 1; id <= JOBS; id++) {
        char words[80];
        snprintf(words, sizeof(words), "n=3 t=%u uid=%u", 60 * (1 + dice(50)), 1 + dice(USERS));
        assert_int_equal(rig_submit(rig, words), id);
    }
    rig_plan(rig);
    do {
        for (uint32_t id = 1; id <= JOBS; id++) {
            const struct job *job = rig_job(rig, id);
            if (!job || job->state != JOB_PENDING)
                continue;
            int64_t start = foreseen(rig, id);
            if (start && said[id] == 0)
                said[id] = start;
        }
        if (!next_end(rig))
            break;
        for (uint32_t id = 1; id <= JOBS; id++) {
            if (!rig_runs(rig, id) || !said[id])
                continue;
            int64_t late_s = (rig_job(rig, id)->run->start_us - said[id]) / 1000000;
            if (late_s < -2 || late_s > 2)
                fail_msg("seed %llu: job %u starts %lld s later than foreseen",
                         (unsigned long long)of, id, (long long)late_s);
            said[id] = 0;
            asked++;
        }
    } while (true);
    rig_free(rig);
    return asked;
}

static void jobs_start_when_foreseen(void **unused)
{
    unsigned asked = 0;

    (void)unused;
    for (uint64_t of = 1; of <= 12; of++)
        asked += random_seed(of);
    assert_true(asked > 12 * JOBS / 4);
}

/* Of two places that become free in the same moment the first two in order get one each, whosever they are. */
static void limits_let_jobs_go_in_their_order(void **unused)
{
    struct rig *rig = rig_new(
        "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core\"]\n"
        "[accounting]\nenforce = [\"limits\"]\n"
        "[[nodes]]\nnames = \"n[1-4]\"\ncpus = 16\nmemory_mb = 8000\n"
        "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
        "[[qos]]\nname = \"normal\"\ngrp_jobs = 2\n[[accounts]]\nname = \"a\"\n"
        "[[users]]\nname = \"u1\"\naccount = \"a\"\n[[users]]\nname = \"u2\"\naccount = \"a\"\n");
    uint32_t ends[2], id[6];

    (void)unused;
    for (unsigned i = 0; i < 2; i++)
        ends[i] = rig_submit(rig, "t=60 uid=1");
    rig_plan(rig);
    for (unsigned i = 0; i < 6; i++)
        id[i] = rig_submit(rig, i % 2 ? "n=2 t=60 uid=2" : "n=2 t=60 uid=1");
    rig_plan(rig);
    for (unsigned i = 0; i < 2; i++)
        rig_end(rig, ends[i]);
    rig_plan(rig);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(rig_runs(rig, id[i]), i < 2);
    rig_free(rig);
}

/* One who waits for a limit of his own lends his place to nobody else: not to his own later jobs either. */
static void a_stuck_job_is_no_help_to_others(void **unused)
{
    struct rig *rig = rig_new(
        "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core\"]\n"
        "[accounting]\nenforce = [\"limits\"]\n"
        "[[nodes]]\nnames = \"n[1-4]\"\ncpus = 16\nmemory_mb = 8000\n"
        "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
        "[[qos]]\nname = \"normal\"\ngrp_jobs = 2\n[[accounts]]\nname = \"a\"\n"
        "[[users]]\nname = \"u1\"\naccount = \"a\"\ngrp_tres = \"cpu=8\"\n"
        "[[users]]\nname = \"u2\"\naccount = \"a\"\n[[users]]\nname = \"u3\"\naccount = \"a\"\n");
    uint32_t ends;

    (void)unused;
    rig_submit(rig, "n=4 t=600 uid=1");
    ends = rig_submit(rig, "t=600 uid=3");
    rig_plan(rig);
    uint32_t stuck = rig_submit(rig, "n=6 t=60 uid=1"), next = rig_submit(rig, "n=2 t=60 uid=2");
    uint32_t small = rig_submit(rig, "n=2 t=60 uid=1");
    rig_plan(rig);
    rig_end(rig, ends);
    rig_plan(rig);
    assert_false(rig_runs(rig, stuck));
    assert_true(rig_runs(rig, next));
    assert_false(rig_runs(rig, small));
    rig_free(rig);
}

/* Two days after 240 CPU minutes were used there are less than 61 of them left. */
static void usage_decays_until_there_is_room(void **unused)
{
    struct rig *rig = rig_new(
        "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core\"]\nfairshare_halflife_days = 1\n"
        "[accounting]\nenforce = [\"limits\"]\n[priority]\ntype = \"multifactor\"\ncalc_period = 5\n"
        "[[nodes]]\nnames = \"n[1-4]\"\ncpus = 16\nmemory_mb = 8000\n"
        "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
        "[[qos]]\nname = \"normal\"\ngrp_tres_mins = \"cpu=61\"\n[[accounts]]\nname = \"a\"\n"
        "[[users]]\nname = \"u1\"\naccount = \"a\"\n");
    uint32_t spends = rig_submit(rig, "n=4 t=7200 uid=1");

    (void)unused;
    rig_plan(rig);
    rig_wait(rig, 3600);
    rig_end(rig, spends);
    uint32_t waits = rig_submit(rig, "n=1 t=60 uid=1");
    rig_plan(rig);
    int64_t left_s = (foreseen(rig, waits) - rig->now_us) / 1000000;
    assert_in_range(left_s, 47 * 3600, 49 * 3600);
    for (int64_t s = 0; s < left_s - 3600; s += 600) {
        rig_wait(rig, 600);
        rig_plan(rig);
        assert_false(rig_runs(rig, waits));
    }
    for (unsigned i = 0; i < 8 && !rig_runs(rig, waits); i++) {
        rig_wait(rig, 600);
        rig_plan(rig);
    }
    assert_true(rig_runs(rig, waits));
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(limits_let_jobs_go_in_their_order),
                                        cmocka_unit_test(a_stuck_job_is_no_help_to_others),
                                        cmocka_unit_test(jobs_start_when_foreseen),
                                        cmocka_unit_test(usage_decays_until_there_is_room) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
