/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded machines are read as what they are; this one is read at all. */
#include "test/unit.h"

#include "spurd/node/inventory.h"
#include "spurd/test/tree.h"

static void look(const char *tree, const char *nvml, struct inventory *inventory, char *dir)
{
    struct err err = { 0 };

    strcpy(dir, "/tmp/spur-tree-XXXXXX");
    tree_unpack(tree, dir);
    struct inventory_options options = { .root = dir, .nvml = nvml };
    if (inventory_find(inventory, &options, &err) < 0)
        fail_msg("%s", err.text);
}

static void eight_amd_gpus(void **state)
{
    (void)state;
    struct inventory inventory;
    char dir[64];
    struct str text = { 0 };

    look("mi300x-8.tree", NULL, &inventory, dir);
    const NodeInventory *node = &inventory.node;
    assert_int_equal(node->cpus, 16);
    assert_int_equal(node->sockets, 2);
    assert_int_equal(node->cores_per_socket, 4);
    assert_int_equal(node->threads_per_core, 2);
    assert_int_equal(node->memory_mb, 2377868032 / 1024);
    assert_int_equal(node->n_numa_cpus, 2);
    assert_string_equal(node->numa_cpus[1], "4-7,12-15");
    assert_int_equal(node->n_gres, 1);
    const GresInventory *gpu = node->gres[0];
    assert_string_equal(gpu->name, "gpu");
    assert_string_equal(gpu->type, "mi300x");
    assert_int_equal(gpu->count, 8);
    assert_int_equal(gpu->mem_mb, 196592);
    assert_string_equal(gpu->files[3], "/dev/dri/renderD152");
    assert_string_equal(gpu->cpus[0], "0-3,8-11");
    assert_string_equal(gpu->ids[1], "GPU-1a2b3c4d5e6f0001");
    assert_int_equal(gpu->numa[7], 1);
    for (int i = 0; i < 8; i++) {
        for (int k = 0; k < 8; k++)
            assert_int_equal(gpu->links[i * 8 + k], i == k ? 0 : 4);
    }
    /* Threads of a core are next to each other in our numbering, and apart in the kernel's. */
    assert_true(inventory_map_cpus(&inventory, "0-3", &text));
    assert_string_equal(str_text(&text), "0-1,8-9");
    assert_false(inventory_map_cpus(&inventory, "16", &text));
    assert_false(inventory_map_cpus(&inventory, "x", &text));
    str_clear(&text);
    inventory_print(node, "g1", 93784, &text);
    assert_non_null(strstr(str_text(&text),
                           "NodeName=g1 CPUs=16 Boards=1 SocketsPerBoard=2 "
                           "CoresPerSocket=4 ThreadsPerCore=2 RealMemory=2322136"));
    assert_non_null(strstr(str_text(&text), " Gres=gpu:mi300x:8\nUpTime=1-02:03:04\n"));
    str_done(&text);
    inventory_done(&inventory);
    tree_remove(dir);
}

static void four_nvidia_gpus(void **state)
{
    (void)state;
    static const uint32_t by_proc[] = { 0, 2, 1, 1, 2, 0, 1, 1, 1, 1, 0, 2, 1, 1, 2, 0 };
    static const uint32_t by_nvml[] = { 0, 4, 1, 1, 4, 0, 1, 1, 1, 1, 0, 4, 1, 1, 4, 0 };

    for (int with = 0; with < 2; with++) {
        struct inventory inventory;
        char dir[64];
        look("a100-4.tree", with ? getenv("SPUR_FAKE_NVML") : NULL, &inventory, dir);
        assert_int_equal(inventory.node.n_gres, 1);
        const GresInventory *gpu = inventory.node.gres[0];
        assert_string_equal(gpu->type, "a100");
        assert_int_equal(gpu->count, 4);
        assert_string_equal(gpu->files[2], "/dev/nvidia2");
        assert_string_equal(gpu->ids[2], "GPU-5d5b2c60-aaaa-bbbb-cccc-000000000002");
        assert_int_equal(gpu->numa[2], 1);
        assert_memory_equal(gpu->links, with ? by_nvml : by_proc, sizeof(by_proc));
        assert_int_equal(gpu->mem_mb, with ? 81920 : 0);
        inventory_done(&inventory);
        tree_remove(dir);
    }
}

static void two_makes_and_a_broken_entry(void **state)
{
    (void)state;
    struct inventory inventory;
    char dir[64];

    look("mixed.tree", NULL, &inventory, dir);
    assert_int_equal(inventory.node.n_gres, 2);
    assert_string_equal(inventory.node.gres[0]->type, "gfx1101");
    assert_string_equal(inventory.node.gres[0]->files[0], "/dev/dri/renderD129");
    assert_string_equal(inventory.node.gres[0]->ids[0], "0000:03:00.0");
    assert_string_equal(inventory.node.gres[1]->type, "rtx4090");
    inventory_done(&inventory);
    tree_remove(dir);
}

static void this_machine(void **state)
{
    (void)state;
    struct inventory inventory;
    struct inventory_options options = { 0 };
    struct err err = { 0 };

    assert_int_equal(inventory_find(&inventory, &options, &err), 0);
    assert_true(inventory.node.cpus >= 1);
    assert_true(inventory.node.memory_mb > 100);
    assert_true(inventory.node.tmp_disk_mb > 0);
    assert_non_null(inventory.node.os);
    inventory_done(&inventory);
}

UNIT_MAIN(UNIT(eight_amd_gpus), UNIT(four_nvidia_gpus), UNIT(two_makes_and_a_broken_entry),
          UNIT(this_machine))
