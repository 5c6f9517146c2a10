/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_limits.c - the planner and limits: never beyond them, nothing left behind, in order
 *
 * Random jobs of users with random limits run to the last one. core refuses what is beyond a limit,
 * so `refused` stays 0 only if the planner counts what it has planned; and a job that would be
 * forgotten in a line of a holder would never end.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/vec.h"
#include "core/apply.h"
#include "sched/test/rig.h"
#include "schema/reasons.h"
#include "test/unit.h"

#define HEAD HEAD_WITH("")
#define HEAD_WITH(setting)                                                                   \
    "cluster_name = \"t\"\n[scheduler]\n" setting "select = [\"CR_Core\"]\n"                 \
    "[accounting]\nenforce = [\"limits\"]\n[priority]\nweight_age = 1000\n"                  \
    "weight_fairshare = 10000\ncalc_period = 1\n"                                            \
    "[[nodes]]\nnames = \"n[1-6]\"\ncpus = 8\nmemory_mb = 8000\n"                            \
    "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\nqos = \"part\"\n"     \
    "[[qos]]\nname = \"normal\"\nmax_tres_per_user = \"cpu=12\"\n[[qos]]\nname = \"part\"\n" \
    "grp_jobs = 14\n[[accounts]]\nname = \"all\"\ngrp_tres = \"cpu=40\"\n"

static uint64_t dice_state;

static uint32_t dice(uint32_t below)
{
    dice_state = dice_state * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (uint32_t)(dice_state >> 33) % below;
}

struct host_job {
    VEC(uint32_t) running;
};

static void on_start(struct rig *rig, const struct job *job)
{
    struct host_job *run = rig->ctx;

    vec_push(&run->running, job->id);
}

static void one_seed(uint64_t seed)
{
    struct str toml = { 0 };
    struct host_job run = { 0 };
    enum { USERS = 7, JOBS = 150 };

    dice_state = seed;
    str_add(&toml, seed % 3 ? HEAD : HEAD_WITH("assoc_limit_stop = true\n"));
    if (seed % 2) /* a job may be given more CPUs than it asks for */
        str_add(&toml,
                "[[nodes]]\nnames = \"m[1-2]\"\ncpus = 8\nsockets = 1\ncores_per_socket = 4\n"
                "threads_per_core = 2\nmemory_mb = 8000\n");
    for (unsigned i = 0; i < 3; i++)
        str_addf(&toml, "[[accounts]]\nname = \"a%u\"\nparent = \"all\"\ngrp_tres = \"cpu=%u\"\n",
                 i, 8 + dice(16));
    for (unsigned i = 1; i <= USERS; i++)
        str_addf(&toml, "[[users]]\nname = \"u%u\"\naccount = \"a%u\"\nmax_jobs = %u\n", i, i % 3,
                 1 + dice(5));
    struct rig *rig = rig_new(str_text(&toml));
    str_done(&toml);
    rig->check = true;
    rig->on_start = on_start;
    rig->ctx = &run;
    unsigned left = JOBS;
    for (uint64_t ended = 0; ended < JOBS;) {
        char words[80];
        for (unsigned i = dice(8); left && i; i--, left--) {
            snprintf(words, sizeof(words), "n=%u t=%u uid=%u%s", 1 + dice(8), 60 + dice(3000),
                     1 + dice(USERS), dice(4) ? "" : " nice=20");
            assert_int_not_equal(rig_submit(rig, words), 0);
        }
        rig_plan(rig);
        if (!left && !run.running.len)
            fail_msg("seed %llu: %llu jobs wait for ever", (unsigned long long)seed,
                     (unsigned long long)(JOBS - ended));
        rig_wait(rig, 5 + dice(60));
        if (run.running.len) {
            size_t at = dice((uint32_t)run.running.len);
            uint32_t id = run.running.items[at];
            run.running.items[at] = run.running.items[--run.running.len];
            if (rig_runs(rig, id))
                rig_end(rig, id);
            ended++;
        }
    }
    assert_int_equal(rig->started, JOBS);
    assert_int_equal(rig->refused, 0);
    vec_done(&run.running);
    rig_free(rig);
}

static void everybody_runs_within_limits(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++)
        one_seed(seed);
}

/* Who waits for a limit is in nobody's way. */
static void a_limit_holds_nobody_else_back(void **state)
{
    struct rig *rig = rig_new(HEAD "[[users]]\nname = \"u1\"\naccount = \"all\"\nmax_jobs = 1\n"
                                   "[[users]]\nname = \"u2\"\naccount = \"all\"\n");
    uint32_t a = rig_submit(rig, "n=1 uid=1"), b = rig_submit(rig, "n=1 uid=1");
    uint32_t c = rig_submit(rig, "n=1 uid=2");

    (void)state;
    assert_int_equal(rig_plan(rig), 2);
    assert_true(rig_runs(rig, a) && rig_runs(rig, c) && !rig_runs(rig, b));
    assert_int_equal(core_job_reason(rig->state, rig_job(rig, b)), REASON_ASSOC_MAX_JOBS);
    rig_end(rig, c);
    assert_int_equal(rig_plan(rig), 0);
    rig_end(rig, a);
    assert_int_equal(rig_plan(rig), 1);
    assert_true(rig_runs(rig, b));
    rig_free(rig);
}

/* When a limit has room, those of its line that do not fit are not in the way of one that does. */
static void one_that_fits_goes_past_its_line(void **state)
{
    static const struct {
        unsigned max_jobs, wide;
    } rows[] = { { 2, 20 }, { 1, 100 } };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char toml[900];
        snprintf(toml, sizeof(toml),
                 "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core\"]\n[accounting]\n"
                 "enforce = [\"limits\"]\n[[nodes]]\nnames = \"n1\"\ncpus = 8\nmemory_mb = 800\n"
                 "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
                 "[[accounts]]\nname = \"all\"\n[[users]]\nname = \"u1\"\naccount = \"all\"\n"
                 "max_jobs = %u\n[[users]]\nname = \"u2\"\naccount = \"all\"\n",
                 rows[i].max_jobs);
        struct rig *rig = rig_new(toml);
        uint32_t first = rig_submit(rig, "n=1 uid=1");
        for (unsigned k = 1; k < rows[i].max_jobs; k++)
            rig_submit(rig, "n=1 uid=1");
        rig_submit(rig, "n=6 t=36000 uid=2");
        rig_plan(rig);
        for (unsigned k = 0; k < rows[i].wide; k++)
            rig_submit(rig, "n=4 uid=1");
        uint32_t small = rig_submit(rig, "n=1 t=60 uid=1");
        assert_int_equal(rig_plan(rig), 0);
        rig_end(rig, first);
        assert_int_equal(rig_plan(rig), 1);
        assert_true(rig_runs(rig, small));
        assert_int_equal(rig->refused, 0);
        rig_free(rig);
    }
}

#define STOP                                                                         \
    "cluster_name = \"t\"\n[scheduler]\nassoc_limit_stop = %s\n"                     \
    "[accounting]\nenforce = [\"limits\"]\n"                                         \
    "[[nodes]]\nnames = \"n[1-4]\"\ncpus = 8\nmemory_mb = 8000\n"                    \
    "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"             \
    "[[partitions]]\nname = \"other\"\nnodes = \"ALL\"\n"                            \
    "[[accounts]]\nname = \"a\"\ngrp_tres = \"cpu=8\"\n[[accounts]]\nname = \"b\"\n" \
    "[[users]]\nname = \"u1\"\naccount = \"a\"\n[[users]]\nname = \"u2\"\naccount = \"b\"\n"

/* Whoever is at his limit holds up those behind him in his partition, if that is wanted. */
static void a_limit_stops_who_is_behind(void **state)
{
    char text[900];

    (void)state;
    for (unsigned stops = 0; stops < 2; stops++) {
        snprintf(text, sizeof(text), STOP, stops ? "true" : "false");
        struct rig *rig = rig_new(text);
        rig->check = true;
        uint32_t has = rig_submit(rig, "n=8 uid=1");
        assert_int_equal(rig_plan(rig), 1);
        uint32_t limited = rig_submit(rig, "n=4 uid=1 prio=5000");
        rig_plan(rig);
        uint32_t behind = rig_submit(rig, "n=1 uid=2 prio=4000");
        uint32_t before = rig_submit(rig, "n=1 uid=2 prio=6000");
        uint32_t beside = rig_submit(rig, "p=other n=1 uid=2 prio=3000");
        rig_plan(rig);
        assert_false(rig_runs(rig, limited));
        assert_true(rig_runs(rig, before));
        assert_true(rig_runs(rig, beside)); /* another partition */
        assert_int_equal(rig_runs(rig, behind), !stops);
        rig_end(rig, has);
        rig_plan(rig);
        assert_true(rig_runs(rig, limited));
        assert_true(rig_runs(rig, behind));
        /* One that is cancelled holds up nobody. */
        uint32_t more = rig_submit(rig, "n=8 uid=1 prio=5000");
        uint32_t next = rig_submit(rig, "n=1 uid=2 prio=4000");
        rig_plan(rig);
        assert_int_equal(rig_runs(rig, next), !stops);
        rig_cancel(rig, more);
        rig_plan(rig);
        assert_true(rig_runs(rig, next));
        rig_free(rig);
    }
}

/* What each socket or task asks for is counted for all of them. */
static void all_that_is_asked_for_counts(void **state)
{
    struct rig *rig = rig_new(
        "cluster_name = \"t\"\n[accounting]\nenforce = [\"limits\"]\ntres = [\"gres/gpu\"]\n"
        "[[nodes]]\nnames = \"n[1-2]\"\ncpus = 8\nsockets = 2\ncores_per_socket = 4\n"
        "memory_mb = 8000\ngres = [\"gpu:8\"]\n"
        "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
        "[[qos]]\nname = \"normal\"\nmax_tres_per_job = \"gres/gpu=4,mem=1000\"\n"
        "[[accounts]]\nname = \"a\"\n[[users]]\nname = \"u1\"\naccount = \"a\"\n");
    static const struct {
        const char *words;
        unsigned reason;
    } jobs[] = {
        { "uid=1 gps=gpu:2 spn=2", 0 },
        { "uid=1 gps=gpu:3 spn=2", REASON_QOS_MAX_GRES_PER_JOB },
        { "uid=1 N=2 gps=gpu:2 spn=2", REASON_QOS_MAX_GRES_PER_JOB },
        { "uid=1 n=2 tres=mem=500M", 0 },
        { "uid=1 n=2 tres=mem=501M", REASON_QOS_MAX_MEM_PER_JOB },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        uint32_t id = rig_submit(rig, jobs[i].words);
        rig_plan(rig);
        assert_int_equal(rig_runs(rig, id), !jobs[i].reason);
        if (jobs[i].reason)
            assert_int_equal(core_job_reason(rig->state, rig_job(rig, id)), jobs[i].reason);
    }
    rig_free(rig);
}

/* Of "a or b" the one that was taken counts, and one that is not limited is taken. */
#define LICENCES(limits)                                                                         \
    "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core\"]\nlicenses = [\"a:4\", \"b:1\"]\n" \
    "[accounting]\nenforce = [\"limits\"]\n[[nodes]]\nnames = \"n1\"\ncpus = 64\n"               \
    "memory_mb = 8000\n[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"       \
    "[[qos]]\nname = \"normal\"\n" limits "[[accounts]]\nname = \"all\"\n"                       \
    "[[users]]\nname = \"u1\"\naccount = \"all\"\n"

static const char *licence_of(const struct rig *rig, uint32_t id)
{
    const struct job *job = rig_job(rig, id);

    return rig_runs(rig, id) ? job->shape->licences[job->run->licence].name : "-";
}

static void one_of_several_licences_counts(void **state)
{
    struct rig *rig = rig_new(LICENCES("grp_tres = \"license/a=1\"\n"));
    uint32_t ids[5];

    (void)state;
    rig->check = true;
    for (size_t i = 0; i < 5; i++)
        ids[i] = rig_submit(rig, i == 4 ? "uid=1 lic=a:3" : "uid=1 lic=a|b");
    rig_plan(rig);
    assert_string_equal(licence_of(rig, ids[0]), "a");
    assert_string_equal(licence_of(rig, ids[1]),
                        "b"); /* three of the other are free, but not for it */
    assert_string_equal(licence_of(rig, ids[2]), "-");
    assert_string_equal(licence_of(rig, ids[4]), "-");
    rig_end(rig, ids[1]);
    rig_plan(rig);
    assert_string_equal(licence_of(rig, ids[2]), "b");
    assert_string_equal(licence_of(rig, ids[3]), "-");
    rig_end(rig, ids[0]);
    rig_plan(rig);
    assert_string_equal(licence_of(rig, ids[3]), "a");
    assert_int_equal(rig->refused, 0);
    rig_free(rig);
    /* Who may have neither waits, and is told why. */
    rig = rig_new(LICENCES("grp_tres = \"license/a=0,license/b=0\"\n"));
    ids[0] = rig_submit(rig, "uid=1 lic=a|b");
    rig_plan(rig);
    assert_false(rig_runs(rig, ids[0]));
    assert_int_equal(core_job_reason(rig->state, rig_job(rig, ids[0])), REASON_QOS_GRP_LIC);
    rig_free(rig);
    /* One that is refused for its own size: not when another will do. */
    rig = rig_new(LICENCES("max_tres_per_job = \"license/a=1\"\nflags = [\"DenyOnLimit\"]\n"));
    assert_int_equal(rig_submit(rig, "uid=1 lic=a:2"), 0);
    ids[0] = rig_submit(rig, "uid=1 lic=a:2|b");
    rig_plan(rig);
    assert_string_equal(licence_of(rig, ids[0]), "b");
    rig_free(rig);
}

UNIT_MAIN(UNIT(all_that_is_asked_for_counts), UNIT(a_limit_stops_who_is_behind),
          UNIT(a_limit_holds_nobody_else_back), UNIT(one_that_fits_goes_past_its_line),
          UNIT(one_of_several_licences_counts), UNIT(everybody_runs_within_limits))
