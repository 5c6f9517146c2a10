/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gpu.c - which GPUs, and which CPUs beside them
 */
#include "sched/test/rig.h"
#include "test/unit.h"

#define GPUS                                                                         \
    "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core\"]\n"                    \
    "[[nodes]]\nnames = \"g[1-2]\"\ncpus = 32\nsockets = 2\ncores_per_socket = 16\n" \
    "memory_mb = 8000\ngres = [\"gpu:mi250x:8\"]\n"                                  \
    "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"

/* Two groups of four: linked inside, over the host between; each near one socket. */
static struct rig *two_groups(void)
{
    struct rig *rig = rig_new(GPUS);
    uint32_t links[64];
    char *cpus[8];
    NodeInventory found = NODE_INVENTORY__INIT;
    GresInventory gpu = GRES_INVENTORY__INIT, *list[1] = { &gpu };

    for (unsigned a = 0; a < 8; a++) {
        cpus[a] = (char *)(a / 4 ? "16-31" : "0-15");
        for (unsigned b = 0; b < 8; b++)
            links[a * 8 + b] = a == b ? 0 : a / 4 == b / 4 ? 4 : 1;
    }
    found.has_cpus = found.has_memory_mb = found.has_sockets = true;
    found.cpus = 32;
    found.memory_mb = 8000;
    found.sockets = 2;
    found.has_cores_per_socket = found.has_threads_per_core = true;
    found.cores_per_socket = 16;
    found.threads_per_core = 1;
    gpu.name = (char *)"gpu";
    gpu.type = (char *)"mi250x";
    gpu.has_count = true;
    gpu.count = 8;
    gpu.n_links = 64;
    gpu.links = links;
    gpu.n_cpus = 8;
    gpu.cpus = cpus;
    found.n_gres = 1;
    found.gres = list;
    rig_inventory(rig, "g1", &found);
    rig_inventory(rig, "g2", &found);
    return rig;
}

static void gpus_of_one_job_are_linked(void **state)
{
    struct rig *rig = two_groups();
    uint32_t two = rig_submit(rig, "gres=gpu:2 c=2"), four = rig_submit(rig, "gres=gpu:4 c=4");
    uint32_t more = rig_submit(rig, "gres=gpu:2 c=2"), eight = rig_submit(rig, "gres=gpu:8 c=8");

    (void)state;
    assert_int_equal(rig_plan(rig), 4);
    assert_string_equal(rig_where(rig, two), "g1:0-1 gpu=0-1");
    /* The whole group, not what is left of the first one and two of the second. */
    assert_string_equal(rig_where(rig, four), "g1:16-19 gpu=4-7");
    assert_string_equal(rig_where(rig, more), "g1:2-3 gpu=2-3");
    assert_string_equal(rig_where(rig, eight), "g2:0-7 gpu=0-7");
    rig_free(rig);
}

/* A single GPU comes from the group that is broken already. */
static void whole_groups_are_spared(void **state)
{
    struct rig *rig = two_groups();
    uint32_t first = rig_submit(rig, "gres=gpu:1 c=1"), second = rig_submit(rig, "gres=gpu:1 c=1");

    (void)state;
    assert_int_equal(rig_plan(rig), 2);
    uint32_t four = rig_submit(rig, "gres=gpu:4 c=4");
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, first), "g1:0 gpu=0");
    assert_string_equal(rig_where(rig, second), "g1:1 gpu=1");
    assert_string_equal(rig_where(rig, four), "g1:16-19 gpu=4-7");
    rig_free(rig);
}

/* What needs no GPU keeps off nodes whose GPUs are free, and GPU work fills up nodes. */
static void nodes_are_filled_up(void **state)
{
    struct rig *rig = two_groups();

    (void)state;
    rig_submit(rig, "gres=gpu:6 c=1 w=g2");
    rig_plan(rig);
    uint32_t two = rig_submit(rig, "gres=gpu:2 c=1"), none = rig_submit(rig, "c=1");
    assert_int_equal(rig_plan(rig), 2);
    assert_string_equal(rig_where(rig, two), "g2:16 gpu=6-7");
    assert_string_equal(rig_where(rig, none), "g2:1");
    rig_free(rig);
}

UNIT_MAIN(UNIT(gpus_of_one_job_are_linked), UNIT(whole_groups_are_spared),
          UNIT(nodes_are_filled_up))
