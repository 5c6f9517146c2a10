/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_wide.c - jobs of thousands of hosts are found in one slice and held in the next
 */
#include <string.h>

#include "sched/plan.h"
#include "sched/sched_check.h"
#include "sched/test/rig.h"
#include "test/unit.h"

#define CLUSTER                                                          \
    "cluster_name = \"wide\"\n"                                          \
    "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n" \
    "[[nodes]]\nnames = \"n[1-2900]\"\ncpus = 8\nmemory_mb = 8000\n"     \
    "[[nodes]]\nnames = \"g[1-100]\"\ncpus = 8\nmemory_mb = 8000\ngres = [\"gpu:h100:4\"]\n"

static struct rig *wide(void)
{
    struct rig *rig = rig_new(CLUSTER);

    rig->check = false; /* each time for 3,000 hosts takes long */
    return rig;
}

static void checks(struct rig *rig)
{
    struct err err = { 0 };

    if (core_check(rig->state, &err) < 0 || sched_check(rig->sched, &err) < 0)
        fail_msg("%s", err.text);
}

/* Up to the slice in which its hosts are found: nothing starts yet. */
static void find(struct rig *rig)
{
    bool more = true;

    for (unsigned i = 0; i < 100 && more && !rig->sched->plan->placed.job_id; i++)
        assert_int_equal(rig_slice(rig, &more), 0);
    assert_true(more && rig->sched->plan->placed.job_id);
}

static void it_starts_in_the_next_slice(void **unused)
{
    struct rig *rig = wide();
    uint32_t id = rig_submit(rig, "N=3000 ex t=600");
    bool more;

    find(rig);
    assert_int_equal(rig_slice(rig, &more), 1);
    assert_true(rig_runs(rig, id));
    checks(rig);
    /* All nodes, in one command of a few entries. */
    assert_int_equal(rig_job(rig, id)->run->count, 3000);
    rig_end(rig, id);
    checks(rig);
    rig_free(rig);
}

static void a_few_thousand_cpus_too(void **unused)
{
    struct rig *rig = wide();
    uint32_t a = rig_submit(rig, "N=2500 c=3 t=600"), b = rig_submit(rig, "N=2500 c=3 t=600");

    rig_plan(rig);
    assert_true(rig_runs(rig, a) && rig_runs(rig, b));
    assert_int_equal(rig->refused, 0);
    checks(rig);
    rig_free(rig);
}

/* What was found is worth nothing then: it is found again, and nothing is refused. */
static void hosts_that_change_meanwhile_are_not_used(void **unused)
{
    static const struct {
        const char *words;
        bool runs;
    } rows[] = { { "N=2500 ex t=600", true }, { "N=3000 ex t=600", false } };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rig *rig = wide();
        uint32_t id = rig_submit(rig, rows[i].words);
        find(rig);
        rig_node(rig, "n7", "DRAIN");
        rig_plan(rig);
        assert_int_equal(rig_runs(rig, id), rows[i].runs);
        assert_int_equal(rig->refused, 0);
        assert_int_equal(state_node(rig->state, "n7")->jobs.len, 0);
        checks(rig);
        rig_free(rig);
    }
}

/* Others that come, or it goes: nothing is left of it. */
static void the_job_may_go_meanwhile(void **unused)
{
    struct rig *rig = wide();
    uint32_t id = rig_submit(rig, "N=3000 ex t=600");

    find(rig);
    rig_cancel(rig, id);
    uint32_t other = rig_submit(rig, "N=3000 ex t=600");
    rig_plan(rig);
    assert_true(rig_runs(rig, other));
    assert_int_equal(rig->refused, 0);
    checks(rig);
    rig_free(rig);
}

/* It asks for less then: what was found for more is not what it gets. */
static void the_job_may_change_meanwhile(void **unused)
{
    struct rig *rig = wide();
    uint32_t id = rig_submit(rig, "N=3000 ex t=600");
    Command cmd = COMMAND__INIT;
    CmdUpdateJob msg = CMD_UPDATE_JOB__INIT;
    JobSelect jobs = JOB_SELECT__INIT;
    JobSpec change = JOB_SPEC__INIT;

    find(rig);
    jobs.job_ids = &id;
    jobs.n_job_ids = 1;
    change.has_min_nodes = change.has_max_nodes = change.has_ntasks = true;
    change.min_nodes = change.max_nodes = change.ntasks = 2100;
    msg.jobs = &jobs;
    msg.change = &change;
    cmd.what_case = COMMAND__WHAT_UPDATE_JOB;
    cmd.update_job = &msg;
    assert_int_equal(rig_apply(rig, &cmd), ERR_OK);
    rig_plan(rig);
    assert_true(rig_runs(rig, id));
    assert_int_equal(rig_job(rig, id)->run->count, 2100);
    checks(rig);
    rig_free(rig);
}

/* One that goes before it came: it starts, and the wide one waits. */
static void who_comes_before_it_goes_first(void **unused)
{
    struct rig *rig = wide();
    uint32_t id = rig_submit(rig, "N=3000 ex t=600");

    find(rig);
    uint32_t first = rig_submit(rig, "N=1 t=600 prio=4294967000");
    rig_plan(rig);
    assert_true(rig_runs(rig, first));
    assert_false(rig_runs(rig, id));
    assert_int_equal(rig->refused, 0);
    rig_end(rig, first);
    rig_plan(rig);
    assert_true(rig_runs(rig, id));
    checks(rig);
    rig_free(rig);
}

UNIT_MAIN(UNIT(it_starts_in_the_next_slice), UNIT(a_few_thousand_cpus_too),
          UNIT(hosts_that_change_meanwhile_are_not_used), UNIT(the_job_may_go_meanwhile),
          UNIT(the_job_may_change_meanwhile), UNIT(who_comes_before_it_goes_first))
