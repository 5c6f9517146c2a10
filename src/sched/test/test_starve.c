/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_starve.c - whatever a job asks for, a stream of smaller ones behind it does not keep it waiting
 *
 * Once nobody is ahead of it, it starts when all that runs then has reached its time limit, or before; and not later
 * than it was promised then.
 */
#include <stdio.h>

#include "sched/test/rig.h"
#include "test/unit.h"

enum { LIMIT_S = 100, STEP_S = 7, STEPS = 200, IDS = 1000 };

#define NODES                                                                                        \
    "[[nodes]]\nnames = \"n[1-4]\"\ncpus = 8\nsockets = 2\ncores_per_socket = 4\nmemory_mb = 8000\n" \
    "gres = [\"gpu:4\"]\n[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"
#define HEAD "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core\"]\nlicenses = [\"m:4\"]\n"

static const char
    plain
        [] = HEAD NODES,
   shares[] = HEAD NODES "oversubscribe = \"YES:2\"\n",
   forces[] = HEAD NODES "oversubscribe = \"FORCE:2\"\n",
   own[] = HEAD NODES "exclusive_user = true\n",
   tree[] = HEAD
   "[topology]\nplugin = \"tree\"\n[[switches]]\nname = \"s1\"\nnodes = \"n[1-2]\"\n"
   "[[switches]]\nname = \"s2\"\nnodes = \"n[3-4]\"\n[[switches]]\nname = \"top\"\nswitches = \"s[1-2]\"\n" NODES;

static const struct {
    const char *conf, *wide, *small;
} rows[] = {
    { plain, "N=4 ex", "n=1" },
    { plain, "N=4 ex", "n=4" },
    { plain, "N=4 n=32", "n=1" },
    { plain, "N=4 contig c=8", "n=3" },
    { plain, "N=2 corespec=1", "n=1" },
    { plain, "c=1 exuser", "n=1" },
    { plain, "N=3 exuser", "n=4" },
    { plain, "N=3 exuser", "n=1" },
    { plain, "exmcs mcs=x", "n=1" },
    { plain, "N=4 gres=gpu:4", "gres=gpu:1" },
    { plain, "lic=m:4", "lic=m:1" },
    { plain, "N=4 ex", "exuser" },
    { plain, "N=1 n=8", "exuser n=2" },
    { own, "N=4", "n=1" },
    { own, "N=1", "n=4" },
    { shares, "N=4 tpn=8 n=32 share", "n=4" },
    { shares, "N=4 tpn=8 n=32 share", "n=1" },
    { shares, "N=4 n=32", "share n=3" },
    { forces, "N=4 n=32", "n=4" },
    { forces, "N=4 n=32", "n=1" },
    { forces, "N=4 ex", "n=1" },
    { forces, "exuser", "n=4" },
    { tree, "N=2 switches=1 ex", "n=1" },
    { tree, "extopo", "n=4" },
    { tree, "extopo", "n=1" },
    { tree, "N=4 extopo", "n=1" },
    { tree, "N=1 n=8", "extopo" },
    { plain, "N=2-4 n=30", "n=3" },
    { plain, "n=30", "n=3" },
    { plain, "N=4 spread n=16", "n=3" },
    { plain, "N=2 gres=gpu:4 bound", "gres=gpu:1 n=2" },
    { plain, "N=3 n=3 mem=7000", "mem=3000" },
    { plain, "N=2 ex : N=2 ex", "n=1" },
    { plain, "N=1 exuser : N=2 exuser", "n=1" },
    { plain, "n=8 w=n2", "n=3" },
    { plain, "N=3 ex x=n1", "n=3" },
    { plain, "n=8 tpn=4 N=2 lic=m:3", "n=2 lic=m:1" },
    { plain, "N=4 n=4 over ex", "n=2" },
    { shares, "N=4 share ex", "share n=2" },
    { shares, "N=2 share exuser", "share n=2" },
    { forces, "N=2 exuser n=4", "n=3" },
    { tree, "N=2 switches=1 n=16", "n=3" },
    { tree, "N=4 ex", "extopo" },
    { tree, "N=2 extopo", "exuser n=2" },
    { own, "N=4 n=32", "n=5" },
};

static void two_more(struct rig *rig, const char *small)
{
    char words[64];

    snprintf(words, sizeof(words), "%s t=%u uid=2", small, LIMIT_S);
    for (unsigned i = 0; i < 2; i++)
        assert_int_not_equal(rig_submit(rig, words), 0);
}

/* Those that have run as long as they may. */
static void end_all(struct rig *rig)
{
    for (uint32_t id = 1; id < IDS; id++) {
        const struct job *job = rig_job(rig, id);
        if (job && job->run && !job_has_ended(job) &&
            job_end_by(job, job->run->start_us) <= rig->now_us)
            rig_end(rig, id);
    }
}

static unsigned ahead_of(struct rig *rig, uint32_t id)
{
    unsigned ahead = 0;

    for (uint32_t other = 1; other < id; other++)
        ahead += rig_job(rig, other) && rig_job(rig, other)->state == JOB_PENDING;
    return ahead;
}

static void row(size_t at)
{
    struct rig *rig = rig_new(rows[at].conf);
    int64_t first_us = INT64_MAX, said_us = 0;
    char words[64];

    rig->check = true;
    for (unsigned i = 0; i < 10; i++) {
        two_more(rig, rows[at].small);
        rig_plan(rig);
        rig_wait(rig, STEP_S);
    }
    snprintf(words, sizeof(words), "%s t=60 uid=1", rows[at].wide);
    uint32_t id = rig_submit(rig, words);
    assert_int_not_equal(id, 0);
    for (unsigned i = 0; i < STEPS && !rig_runs(rig, id); i++) {
        two_more(rig, rows[at].small);
        rig_plan(rig);
        if (first_us == INT64_MAX && !ahead_of(rig, id))
            first_us = rig->now_us;
        if (first_us != INT64_MAX && !said_us)
            said_us = sched_planned_start(rig->sched, rig_job(rig, id));
        rig_wait(rig, STEP_S);
        end_all(rig);
        rig_plan(rig);
    }
    int64_t waited_s = (rig->now_us - first_us) / 1000000;
    int64_t late_s = said_us ? (rig->now_us - said_us) / 1000000 : 0;
    if (late_s > 2 * STEP_S)
        fail_msg("row %zu: '%s' behind '%s' starts %lld s later than promised", at, rows[at].wide,
                 rows[at].small, (long long)late_s);
    if (!rig_runs(rig, id) || waited_s > LIMIT_S + 2 * STEP_S)
        fail_msg("row %zu: '%s' behind '%s' waited %lld s%s", at, rows[at].wide, rows[at].small,
                 (long long)waited_s, rig_runs(rig, id) ? "" : " and does not run");
    rig_free(rig);
}

static void nobody_starves(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        row(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(nobody_starves) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
