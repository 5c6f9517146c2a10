/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_wants.c - many hosts that become free at once
 *
 * More hosts than are offered to jobs one by one (wants.c (1)). Jobs still start in their order, all that fit
 * do, and no slice looks further than its budget.
 */
#include "sched/sched_check.h"
#include "sched/test/rig.h"
#include "test/unit.h"

enum { NODES = 180, CORES = 4 };

static const char cluster[] = "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core_Memory\"]\n"
                              "[jobs]\ndef_mem_per_cpu = 100\n"
                              "[[nodes]]\nnames = \"c[1-180]\"\ncpus = 4\nmemory_mb = 4000\n"
                              "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n";

static uint32_t fill(struct rig *rig, uint32_t count, const char *const *words, size_t kinds)
{
    uint32_t last = 0;

    rig->check = false; /* of all jobs after each of them */
    for (uint32_t i = 0; i < count; i++)
        assert_int_not_equal(last = rig_submit(rig, words[i % kinds]), 0);
    rig->check = true;
    return last;
}

static void end_all(struct rig *rig, uint32_t first, uint32_t last)
{
    for (uint32_t id = first; id <= last; id++) {
        if (rig_runs(rig, id))
            rig_end(rig, id);
    }
}

static void jobs_start_in_order_when_all_hosts_are_freed(void **state)
{
    static const char *const first[] = { "c=4 t=600" };
    static const char *const words[] = { "c=1 t=600", "c=2 t=600", "c=1 t=1200" };
    struct rig *rig = rig_new(cluster);

    (void)state;
    uint32_t last = fill(rig, NODES, first, 1);
    assert_int_equal(rig_plan(rig), NODES);
    uint32_t next = last + 1, end = fill(rig, 3 * NODES, words, ARRAY_LEN(words));
    assert_int_equal(rig_plan(rig), 0);
    end_all(rig, 1, last);
    /* One after the other, in every slice. */
    bool more = true;
    while (more) {
        rig_slice(rig, &more);
        while (next <= end && rig_runs(rig, next))
            next++;
        for (uint32_t id = next; id <= end; id++)
            assert_false(rig_runs(rig, id));
    }
    /* 3 jobs have 4 CPUs: all run. */
    assert_int_equal(next, end + 1);
    rig_free(rig);
}

static uint32_t cpus_of(const struct job_run *run)
{
    uint32_t cpus = 0;

    for (unsigned i = 0; i < run->count; i++)
        cpus += run->parts[i].cpus;
    return cpus;
}

static void what_fits_starts_when_others_do_not(void **state)
{
    static const char *const first[] = { "c=4 t=600" };
    static const char *const words[] = { "c=3 t=600", "N=2 ex t=600", "c=1 t=600" };
    struct rig *rig = rig_new(cluster);

    (void)state;
    uint32_t last = fill(rig, NODES, first, 1);
    assert_int_equal(rig_plan(rig), NODES);
    uint32_t end = fill(rig, 2 * NODES, words, ARRAY_LEN(words));
    rig_plan(rig);
    end_all(rig, 1, last);
    rig_plan(rig);
    uint32_t cpus = 0;
    for (uint32_t id = last + 1; id <= end; id++)
        cpus += rig_runs(rig, id) ? cpus_of(rig_job(rig, id)->run) : 0;
    assert_true(cpus > NODES * CORES * 9 / 10);
    /* A planner that is made from the state alone finds no more. */
    struct sched *fresh = sched_new(rig->state);
    size_t count = 0;
    for (const struct plan *plan = sched_plan(fresh, rig->now_us, 512);;
         plan = sched_plan(fresh, rig->now_us, 512)) {
        count += plan->count;
        if (!plan->more)
            break;
    }
    assert_int_equal(count, 0);
    sched_free(fresh);
    rig_free(rig);
}

UNIT_MAIN(UNIT(jobs_start_in_order_when_all_hosts_are_freed),
          UNIT(what_fits_starts_when_others_do_not))
