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
static struct rig *two_groups_of(const char *toml)
{
    struct rig *rig = rig_new(toml);
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

static struct rig *two_groups(void)
{
    return two_groups_of(GPUS);
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

/* ---- kinds of nodes, as their agents report them ---- */

struct kind_of_node {
    const char *name, *type;
    unsigned count;
    const char *links[8]; /* 0 nothing, 1 host, 2 NUMA node, 3 switch, 4 the best */
    const char *cpus[8];
};

static const struct kind_of_node kinds[] = {
    /* All eight are linked to each other; four are near each socket. */
    { "8 x MI300X",
      "mi300x",
      8,
      { "04444444", "40444444", "44044444", "44404444", "44440444", "44444044", "44444404",
        "44444440" },
      { "0-15", "0-15", "0-15", "0-15", "16-31", "16-31", "16-31", "16-31" } },
    /* NVSwitch. */
    { "8 x H100",
      "h100",
      8,
      { "04444444", "40444444", "44044444", "44404444", "44440444", "44444044", "44444404",
        "44444440" },
      { "0-15", "0-15", "0-15", "0-15", "16-31", "16-31", "16-31", "16-31" } },
    /* Two halves of a card are near, cards are linked in a ring. */
    { "4 x MI250X",
      "mi250x",
      8,
      { "04311131", "40131113", "31043111", "13401311", "11310431", "11134013", "31113104",
        "13111340" },
      { "0-7", "0-7", "8-15", "8-15", "16-23", "16-23", "24-31", "24-31" } },
    /* Two pairs with a bridge each, the rest over PCIe: the same switch, or the host. */
    { "mixed",
      "a100",
      6,
      { "043311", "403311", "330411", "334011", "111102", "111120" },
      { "0-15", "0-15", "0-15", "0-15", "16-31", "16-31" } },
};

static struct rig *node_of(const struct kind_of_node *kind)
{
    char toml[600];
    uint32_t links[64];
    NodeInventory found = NODE_INVENTORY__INIT;
    GresInventory gpu = GRES_INVENTORY__INIT, *list[1] = { &gpu };

    snprintf(toml, sizeof(toml),
             "cluster_name = \"t\"\n[scheduler]\nselect = [\"CR_Core\"]\n"
             "[[nodes]]\nnames = \"g1\"\ncpus = 32\nsockets = 2\ncores_per_socket = 16\n"
             "memory_mb = 8000\ngres = [\"gpu:%s:%u\"]\n"
             "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n",
             kind->type, kind->count);
    struct rig *rig = rig_new(toml);
    for (unsigned a = 0; a < kind->count; a++) {
        for (unsigned b = 0; b < kind->count; b++)
            links[a * kind->count + b] = (uint32_t)(kind->links[a][b] - '0');
    }
    found.has_cpus = found.has_memory_mb = found.has_sockets = true;
    found.cpus = 32;
    found.memory_mb = 8000;
    found.sockets = 2;
    found.has_cores_per_socket = found.has_threads_per_core = true;
    found.cores_per_socket = 16;
    found.threads_per_core = 1;
    gpu.name = (char *)"gpu";
    gpu.type = (char *)(uintptr_t)kind->type;
    gpu.has_count = true;
    gpu.count = kind->count;
    gpu.n_links = (size_t)kind->count * kind->count;
    gpu.links = links;
    gpu.n_cpus = kind->count;
    gpu.cpus = (char **)(uintptr_t)kind->cpus;
    found.n_gres = 1;
    found.gres = list;
    rig_inventory(rig, "g1", &found);
    return rig;
}

static unsigned link_sum(const struct kind_of_node *kind, unsigned set)
{
    unsigned sum = 0;

    for (unsigned a = 0; a < kind->count; a++) {
        for (unsigned b = 0; b < a; b++) {
            if (set >> a & set >> b & 1)
                sum += 2 * (unsigned)(kind->links[a][b] - '0') +
                       (strcmp(kind->cpus[a], kind->cpus[b]) == 0);
        }
    }
    return sum;
}

static unsigned set_of(const struct job *job)
{
    unsigned set = 0;

    bitset_each (device, &job->run->parts[0].gres[0].index)
        set |= 1U << device;
    return set;
}

/* No other set of the free devices is linked better, nor leaves the others linked better. */
static void assert_best(const struct kind_of_node *kind, unsigned unused, unsigned set)
{
    unsigned in = link_sum(kind, set), rest = link_sum(kind, unused & ~set);

    assert_int_equal(set & ~unused, 0);
    for (unsigned other = 1; other < 1U << kind->count; other++) {
        if (other & ~unused || __builtin_popcount(other) != __builtin_popcount(set))
            continue;
        unsigned other_in = link_sum(kind, other);
        assert_true(other_in <= in);
        if (other_in == in)
            assert_true(link_sum(kind, unused & ~other) <= rest);
    }
}

static void the_best_set_on_every_kind(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
        struct rig *rig = node_of(&kinds[k]);
        uint32_t ids[8] = { 0 };
        unsigned held = 0, all = (1U << kinds[k].count) - 1, dice = 7;
        for (unsigned step = 0; step < 200; step++) {
            char words[40];
            unsigned slot = (dice = dice * 1103515245 + 12345) >> 16 & 7;
            if (ids[slot]) {
                held &= ~set_of(rig_job(rig, ids[slot]));
                rig_end(rig, ids[slot]);
                ids[slot] = 0;
                continue;
            }
            unsigned want = 1 + ((dice = dice * 1103515245 + 12345) >> 16) % 4;
            unsigned left = kinds[k].count - (unsigned)__builtin_popcount(held);
            if (want > left)
                continue;
            snprintf(words, sizeof(words), "gres=gpu:%u c=%u", want, want);
            ids[slot] = rig_submit(rig, words);
            assert_int_equal(rig_plan(rig), 1);
            unsigned set = set_of(rig_job(rig, ids[slot]));
            assert_best(&kinds[k], all & ~held, set);
            held |= set;
        }
        rig_free(rig);
    }
}

/* Jobs of two never leave single devices of different cards behind. */
static void cards_stay_whole(void **state)
{
    const struct kind_of_node *mi250x = &kinds[2];
    struct rig *rig = node_of(mi250x);
    uint32_t one = rig_submit(rig, "gres=gpu:1 c=1"), pair = rig_submit(rig, "gres=gpu:2 c=2");

    (void)state;
    uint32_t last = rig_submit(rig, "gres=gpu:1 c=1"), four = rig_submit(rig, "gres=gpu:4 c=4");
    assert_int_equal(rig_plan(rig), 4);
    assert_int_equal(set_of(rig_job(rig, one)), 1U);
    assert_int_equal(set_of(rig_job(rig, last)), 2U); /* the other half of its card */
    assert_int_equal(link_sum(mi250x, set_of(rig_job(rig, pair))), 9);
    assert_int_equal(link_sum(mi250x, set_of(rig_job(rig, four))), 34); /* two cards, neighbours */
    rig_free(rig);
}

/* ---- shares ---- */

#define SHARDS                                                                       \
    "cluster_name = \"t\"\n[[nodes]]\nnames = \"s1\"\ncpus = 32\nmemory_mb = 8000\n" \
    "gres = [\"gpu:a100:2\", \"shard:8\"]\n"                                         \
    "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n"

static void shares_are_of_one_device(void **state)
{
    struct rig *rig = rig_new(SHARDS);
    uint32_t three = rig_submit(rig, "gres=shard:3"), two = rig_submit(rig, "gres=shard:2");

    (void)state;
    uint32_t one = rig_submit(rig, "gres=shard:1");
    assert_int_equal(rig_plan(rig), 3);
    assert_string_equal(rig_where(rig, three), "s1:0 shard=0");
    assert_string_equal(rig_where(rig, two), "s1:1 shard=1"); /* does not fit beside it */
    assert_string_equal(rig_where(rig, one), "s1:2 shard=0"); /* fills it up */
    assert_int_equal(rig_submit(rig, "gres=shard:5"), 0);     /* no device has so many */
    uint32_t gpu = rig_submit(rig, "gres=gpu:1");
    assert_int_equal(rig_plan(rig), 0);
    rig_end(rig, two);
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, gpu), "s1:1 gpu=1");
    uint32_t more = rig_submit(rig, "gres=shard:2"); /* one device is full, one is given */
    assert_int_equal(rig_plan(rig), 0);
    rig_end(rig, three);
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, more), "s1:0 shard=0");
    rig_end(rig, gpu);
    rig_end(rig, more);
    rig_end(rig, one);
    uint32_t both = rig_submit(rig, "gres=gpu:2");
    assert_int_equal(rig_plan(rig), 1);
    assert_string_equal(rig_where(rig, both), "s1:0 gpu=0-1");
    rig_free(rig);
}

/* A part of a device that is configured as a type is as good as a device. */
static void profiles_are_types(void **state)
{
    struct rig *rig = rig_new("cluster_name = \"t\"\n[[nodes]]\nnames = \"s1\"\ncpus = 32\n"
                              "memory_mb = 8000\n"
                              "gres = [\"gpu:1g.10gb:4\", \"gpu:3g.40gb:1\"]\n"
                              "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n");
    uint32_t large = rig_submit(rig, "gres=gpu:3g.40gb:1"),
             small = rig_submit(rig, "gres=gpu:1g.10gb:3");

    (void)state;
    uint32_t other = rig_submit(rig, "gres=gpu:3g.40gb:1");
    assert_int_equal(rig_plan(rig), 2);
    assert_string_equal(rig_where(rig, large), "s1:0 gpu=0");
    assert_string_equal(rig_where(rig, small), "s1:1 gpu=0-2");
    assert_false(rig_runs(rig, other));
    rig_free(rig);
}

/* CPUs only near its GPUs: where these are taken it waits, or goes to another node. */
static void cpus_must_be_near(void **state)
{
    struct rig *rig = two_groups();
    uint32_t much = rig_submit(rig, "c=28 w=g1"), any = rig_submit(rig, "gres=gpu:1 c=4 w=g1");

    (void)state;
    assert_int_equal(rig_plan(rig), 2); /* four are left: near one group */
    rig_end(rig, any);
    /* A socket has 16 */
    assert_int_equal(rig_admit(rig, "gres=gpu:1 c=20 bound w=g2"), ERR_NODE_CONFIG_UNAVAILABLE);
    assert_int_equal(rig_admit(rig, "N=1-1 gres=gpu:1 n=20 bound"), ERR_NODE_CONFIG_UNAVAILABLE);
    assert_int_equal(rig_admit(rig, "gres=gpu:5 c=20 bound w=g2"), 0); /* are of both */
    uint32_t fits = rig_submit(rig, "gres=gpu:1 c=16 bound");
    rig_plan(rig);
    assert_string_equal(rig_where(rig, fits), "g2:0-15 gpu=0");
    rig_end(rig, much);
    rig_plan(rig);
    uint32_t both = rig_submit(rig, "gres=gpu:8 c=32 bound w=g1");
    rig_plan(rig);
    assert_true(rig_runs(rig, both));
    rig_free(rig);
}

/* ---- so many of each socket ---- */

static unsigned bits(unsigned set)
{
    return (unsigned)__builtin_popcount(set);
}

static void each_socket_has_as_many(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
        struct rig *rig = node_of(&kinds[k]);
        unsigned first = 0, second = 0;
        for (unsigned device = 0; device < kinds[k].count; device++) {
            bool low = strcmp(kinds[k].cpus[device], "0-15") == 0 ||
                       strcmp(kinds[k].cpus[device], "0-7") == 0 ||
                       strcmp(kinds[k].cpus[device], "8-15") == 0;
            first |= low ? 1U << device : 0;
            second |= low ? 0 : 1U << device;
        }
        uint32_t one = rig_submit(rig, "gps=gpu:1 spn=2 n=4");
        assert_int_equal(rig_plan(rig), 1);
        unsigned set = set_of(rig_job(rig, one));
        assert_int_equal(bits(set & first), 1);
        assert_int_equal(bits(set & second), 1);
        assert_non_null(strstr(rig_where(rig, one), ",16-17 ")); /* CPUs of both */
        rig_end(rig, one);
        uint32_t pair = rig_submit(rig, "gps=gpu:2 spn=2"), half;
        assert_int_equal(rig_plan(rig), 1);
        set = set_of(rig_job(rig, pair));
        assert_int_equal(bits(set & first), 2);
        assert_int_equal(bits(set & second), 2);
        rig_end(rig, pair);
        half = rig_submit(rig, "gps=gpu:2 spn=1");
        assert_int_equal(rig_plan(rig), 1);
        set = set_of(rig_job(rig, half));
        assert_true(set == (set & first) || set == (set & second));
        assert_int_equal(bits(set), 2);
        /* A socket has no more than four. */
        assert_int_equal(rig_admit(rig, "gps=gpu:5 spn=1"), ERR_NODE_CONFIG_UNAVAILABLE);
        rig_free(rig);
    }
}

/* Enough are free, but all on one socket: it waits for the other one. */
static void a_full_socket_is_waited_for(void **state)
{
    struct rig *rig = node_of(&kinds[0]);
    uint32_t four = rig_submit(rig, "gps=gpu:4 spn=1 c=4 t=100");

    (void)state;
    assert_int_equal(rig_plan(rig), 1);
    uint32_t both = rig_submit(rig, "gps=gpu:1 spn=2 c=2 t=100");
    uint32_t one = rig_submit(rig, "gps=gpu:2 spn=1 c=2 t=100");
    assert_int_equal(rig_plan(rig), 1);
    assert_false(rig_runs(rig, both));
    assert_true(rig_runs(rig, one));
    assert_true(rig_test(rig, "gps=gpu:1 spn=2 c=2 t=10") > rig->now_us);
    rig_end(rig, four);
    assert_int_equal(rig_plan(rig), 1);
    assert_int_equal(bits(set_of(rig_job(rig, both)) & 15), 1);
    assert_int_equal(bits(set_of(rig_job(rig, both))), 2);
    rig_free(rig);
}

/* The best linked set is of no use when its CPUs are too few, or not free; another may be. */
static void a_set_with_cpus_goes_first(void **state)
{
    struct rig *rig = node_of(&kinds[2]);

    (void)state;
    rig->check = true;
    /* A card has eight CPUs near it. */
    uint32_t card = rig_submit(rig, "gres=gpu:2 c=8 bound"),
             wide = rig_submit(rig, "gres=gpu:2 c=9 bound");
    assert_int_equal(rig_plan(rig), 2);
    assert_string_equal(rig_where(rig, card), "g1:0-7 gpu=0-1");
    assert_int_equal(bits(set_of(rig_job(rig, wide))), 2);
    assert_int_equal(rig_admit(rig, "gres=gpu:2 c=16 bound"), 0);
    assert_int_equal(rig_admit(rig, "gres=gpu:2 c=17 bound"), ERR_NODE_CONFIG_UNAVAILABLE);
    assert_int_equal(rig_admit(rig, "gres=gpu:4 c=32 bound"), 0);
    rig_end(rig, card);
    rig_end(rig, wide);
    /* One of each. */
    uint32_t all = rig_submit(rig, "gres=gpu:4 c=32 bound");
    assert_int_equal(rig_plan(rig), 1);
    unsigned set = set_of(rig_job(rig, all));
    for (unsigned pair = 0; pair < 8; pair += 2)
        assert_int_equal(bits(set >> pair & 3), 1);
    rig_end(rig, all);
    /* CPUs of the first cards are in use: by whom does not matter. */
    uint32_t busy = rig_submit(rig, "c=20");
    assert_int_equal(rig_plan(rig), 1);
    uint32_t four = rig_submit(rig, "gres=gpu:2 c=4 bound"),
             eight = rig_submit(rig, "gres=gpu:2 c=8 bound");
    assert_int_equal(rig_plan(rig), 2);
    assert_string_equal(rig_where(rig, eight), "g1:24-31 gpu=6-7");
    assert_string_equal(rig_where(rig, four), "g1:20-23 gpu=4-5");
    uint32_t none = rig_submit(rig, "gres=gpu:1 bound"), more = rig_submit(rig, "gres=gpu:1");
    assert_int_equal(rig_plan(rig), 0); /* no CPU is free at all */
    rig_end(rig, busy);
    assert_int_equal(rig_plan(rig), 2);
    assert_true(rig_runs(rig, none) && rig_runs(rig, more));
    rig_free(rig);
}

/* Who goes leaves CPUs that are near, or nobody goes. */
static void room_is_made_near(void **state)
{
    struct rig *rig =
        two_groups_of(GPUS "[[partitions]]\nname = \"high\"\nnodes = \"g1\"\npriority_tier = 2\n"
                           "[preemption]\ntype = \"partition_prio\"\nmode = \"CANCEL\"\n");

    (void)state;
    rig->check = true;
    uint32_t first = rig_submit(rig, "w=g1 gres=gpu:4 c=16 bound t=1000");
    uint32_t second = rig_submit(rig, "w=g1 c=12 t=1000 p=high"),
             third = rig_submit(rig, "w=g1 c=4 t=1000");
    assert_int_equal(rig_plan(rig), 3);
    assert_string_equal(rig_where(rig, third), "g1:12-15");
    /* The GPUs that are free have four CPUs near that may become so. */
    uint32_t four = rig_submit(rig, "p=high gres=gpu:4 c=4 bound t=10");
    rig_plan(rig);
    rig_release_all(rig);
    rig_plan(rig);
    assert_true(rig_runs(rig, four));
    assert_false(rig_runs(rig, third));
    assert_true(rig_runs(rig, first) && rig_runs(rig, second));
    /* Twelve are of somebody who stays: those near the other GPUs do. */
    rig_end(rig, four);
    third = rig_submit(rig, "w=g1 c=4 t=1000");
    assert_int_equal(rig_plan(rig), 1);
    uint32_t eight = rig_submit(rig, "p=high gres=gpu:2 c=8 bound t=10");
    rig_plan(rig);
    rig_release_all(rig);
    rig_plan(rig);
    assert_true(rig_runs(rig, eight));
    assert_false(rig_runs(rig, first));
    assert_true(rig_runs(rig, second) && rig_runs(rig, third));
    rig_free(rig);
}

/* Its start is when CPUs near GPUs are free, not when some are. */
static void near_cpus_are_foreseen(void **state)
{
    struct rig *rig = two_groups();
    int64_t begin_us = rig->now_us;

    (void)state;
    rig->check = true;
    rig_submit(rig, "w=g[1-2] N=2 gres=gpu:4 c=4 bound t=500");  /* GPUs of the first group */
    rig_submit(rig, "w=g[1-2] N=2 gres=gpu:1 c=16 bound t=100"); /* CPUs of the second */
    assert_int_equal(rig_plan(rig), 2);
    /* Of 32 CPUs 12 are free, but near GPUs of which none is. */
    uint32_t id = rig_submit(rig, "gres=gpu:1 c=8 bound t=10");
    assert_int_equal(rig_plan(rig), 0);
    assert_int_equal((sched_planned_start(rig->sched, rig_job(rig, id)) - begin_us) / 1000000, 100);
    assert_int_equal((rig_test(rig, "gres=gpu:1 c=8 bound t=10") - begin_us) / 1000000, 100);
    rig_free(rig);
}

/* --gpus, --gpus-per-node and --gpus-per-task beside it are about the same GPUs. */
static void other_ways_agree(void **state)
{
    struct rig *rig = node_of(&kinds[1]);
    static const struct {
        const char *words;
        enum err_code code;
        unsigned gpus;
    } asked[] = {
        { "gps=gpu:1 spn=2 gpus=gpu:2", 0, 2 },
        { "gps=gpu:1 spn=2 gpus=gpu:4", ERR_NODE_CONFIG_UNAVAILABLE, 0 }, /* of two nodes */
        { "gps=gpu:1 spn=2 gpus=gpu:3", ERR_GRES, 0 },
        { "gps=gpu:2 gres=gpu:4", 0, 4 }, /* of two sockets */
        { "gps=gpu:2 spn=1 gres=gpu:4", ERR_GRES, 0 },
        { "gps=gpu:2", ERR_GRES, 0 },
        { "gps=gpu:2 spn=2 gpt=gpu:1 n=4", 0, 4 },
        { "gps=gpu:2 spn=2 gpt=gpu:1 n=5", ERR_NODE_CONFIG_UNAVAILABLE, 0 },
        { "gps=gpu:h100:4 spn=2", 0, 8 },
        { "gps=gpu:a100:4 spn=2", ERR_NODE_CONFIG_UNAVAILABLE, 0 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
        assert_int_equal(rig_admit(rig, asked[i].words), asked[i].code);
        if (asked[i].code)
            continue;
        uint32_t id = rig_submit(rig, asked[i].words);
        assert_int_equal(rig_plan(rig), 1);
        assert_int_equal(bits(set_of(rig_job(rig, id))), asked[i].gpus);
        rig_end(rig, id);
    }
    rig_free(rig);
}

/* Where nobody knows which socket they are near, any will do. */
static void unknown_sockets_are_no_bound(void **state)
{
    struct rig *rig = rig_new(GPUS);
    uint32_t id = rig_submit(rig, "gps=gpu:3 spn=2");

    (void)state;
    assert_int_equal(rig_plan(rig), 1);
    assert_int_equal(bits(set_of(rig_job(rig, id))), 6);
    rig_free(rig);
}

UNIT_MAIN(UNIT(gpus_of_one_job_are_linked), UNIT(whole_groups_are_spared),
          UNIT(nodes_are_filled_up), UNIT(the_best_set_on_every_kind), UNIT(cards_stay_whole),
          UNIT(shares_are_of_one_device), UNIT(profiles_are_types), UNIT(cpus_must_be_near),
          UNIT(a_set_with_cpus_goes_first), UNIT(room_is_made_near), UNIT(near_cpus_are_foreseen),
          UNIT(each_socket_has_as_many), UNIT(a_full_socket_is_waited_for), UNIT(other_ways_agree),
          UNIT(unknown_sockets_are_no_bound))
