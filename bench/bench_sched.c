/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_sched.c - placements a second with a long queue on a large, full cluster
 *
 * The real core and planner on made-up time: jobs end, the planner is told, what fits starts, and
 * for each that started another one is submitted, so the queue keeps its length. Counted is the
 * planner: feeding events and planning. What core needs for the same is printed beside it.
 *
 *     bench-sched                                     P7, P8, how they grow, and long slices
 *     bench-sched NAME...                             rows of these tables whose names begin so
 *     bench-sched JOBS [NODES [SHAPES [USERS]]]       one run
 *
 * For one run, in the environment, BOOKINGS=N: as scheduler.bookings. LIMITS=1: with accounts,
 * limits and fair share. SWITCHES=1: with a tree of switches, eighteen nodes to a leaf. PLACEMENTS=N:
 * so many are measured.
 *
 * The floor is a planner that asks nothing: the next job of an array on the next free node of
 * another, and the same command made of it.
 */
#include "bench.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/shape.h"
#include "sched/test/rig.h"
#include "schema/conf.h"

#define US_PER_S INT64_C(1000000)

/* One run: how long the queue is, on what, and what is asked. */
struct setting {
    const char *name;
    unsigned jobs, nodes, shapes, users;
    unsigned times;    /* different time limits */
    unsigned bookings; /* 0: the default */
    bool limits, switches, blocks, preempts;
};

static uint64_t seed = 1;

static uint32_t dice(uint32_t sides)
{
    seed = hash_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
    return (uint32_t)((seed >> 33) % sides);
}

/* ---- what ends when ---- */

struct ending {
    int64_t us;
    uint32_t job_id;
};

struct load {
    struct rig *rig;
    VEC(struct ending) heap;
    const struct setting *of;
};

static void heap_push(struct load *load, struct ending item)
{
    vec_push(&load->heap, item);
    size_t at = load->heap.len - 1;
    for (; at > 0 && item.us < load->heap.items[(at - 1) / 2].us; at = (at - 1) / 2)
        load->heap.items[at] = load->heap.items[(at - 1) / 2];
    load->heap.items[at] = item;
}

static struct ending heap_pop(struct load *load)
{
    struct ending first = load->heap.items[0], last = load->heap.items[--load->heap.len];
    size_t at = 0;

    for (;;) {
        size_t child = at * 2 + 1;
        if (child + 1 < load->heap.len &&
            load->heap.items[child + 1].us < load->heap.items[child].us)
            child++;
        if (child >= load->heap.len || last.us <= load->heap.items[child].us)
            break;
        load->heap.items[at] = load->heap.items[child];
        at = child;
    }
    load->heap.items[at] = last;
    return first;
}

static void on_start(struct rig *rig, const struct job *job)
{
    struct load *load = rig->ctx;
    int64_t limit = job->time_limit_s > 0 ? job->time_limit_s : 3600;

    /* Most jobs end long before their limit. */
    heap_push(load,
              (struct ending){ rig->now_us + (1 + dice((uint32_t)limit)) * US_PER_S, job->id });
}

/* ---- cluster and jobs ---- */

/* Every user is in one of 50 accounts, with limits of his own, the account's and a QOS'. */
static void add_accounts(struct str *toml, unsigned users)
{
    str_add(toml, "[accounting]\nenforce = [\"limits\"]\n"
                  "[priority]\nweight_age = 1000\nweight_fairshare = 100000\nweight_qos = 1000\n"
                  "calc_period = \"1-0\"\n" /* its cost is not that of placements */
                  "[[qos]]\nname = \"normal\"\nmax_tres_per_user = \"cpu=40000\"\n"
                  "[[accounts]]\nname = \"all\"\ngrp_tres = \"cpu=600000\"\n");
    for (unsigned i = 0; i < 50; i++)
        str_addf(toml, "[[accounts]]\nname = \"a%u\"\nparent = \"all\"\ngrp_tres = \"cpu=%u\"\n", i,
                 4000 + dice(16000));
    for (unsigned i = 1; i <= users; i++)
        str_addf(toml, "[[users]]\nname = \"u%u\"\naccount = \"a%u\"\nmax_jobs = %u\n", i, i % 50,
                 4 + dice(60));
}

static void add_switches(struct str *toml, unsigned nodes)
{
    enum { LEAF = 18, SPINE = 24 };
    unsigned leaves = 0, spines = 0;

    str_add(toml, "[topology]\nplugin = \"tree\"\n");
    for (unsigned kind = 0; kind < 2; kind++) {
        unsigned count = kind ? nodes - nodes * 6 / 10 : nodes * 6 / 10;
        for (unsigned i = 1; i <= count; i += LEAF)
            str_addf(toml, "[[switches]]\nname = \"l%u\"\nnodes = \"%c[%u-%u]\"\n", ++leaves,
                     kind ? 'g' : 'c', i, i + LEAF - 1 < count ? i + LEAF - 1 : count);
    }
    for (unsigned i = 1; i <= leaves; i += SPINE)
        str_addf(toml, "[[switches]]\nname = \"s%u\"\nswitches = \"l[%u-%u]\"\n", ++spines, i,
                 i + SPINE - 1 < leaves ? i + SPINE - 1 : leaves);
    str_addf(toml, "[[switches]]\nname = \"top\"\nswitches = \"s[1-%u]\"\n", spines);
}

static void add_blocks(struct str *toml, unsigned nodes)
{
    enum { BLOCK = 16 };
    unsigned blocks = 0;

    str_add(toml, "[topology]\nplugin = \"block\"\n");
    for (unsigned kind = 0; kind < 2; kind++) {
        unsigned count = kind ? nodes - nodes * 6 / 10 : nodes * 6 / 10;
        for (unsigned i = 1; i <= count; i += BLOCK)
            str_addf(toml, "[[blocks]]\nname = \"b%u\"\nnodes = \"%c[%u-%u]\"\n", ++blocks,
                     kind ? 'g' : 'c', i, i + BLOCK - 1 < count ? i + BLOCK - 1 : count);
    }
}

static struct rig *cluster(const struct setting *of)
{
    struct str toml = { 0 };
    unsigned nodes = of->nodes;

    str_addf(&toml,
             "cluster_name = \"bench\"\n[scheduler]\nselect = [\"CR_Core_Memory\"]\nbookings = %u\n"
             "[jobs]\nmax_job_count = 3000000\ndef_mem_per_cpu = 1000\nmin_job_age = 2\n"
             "[[nodes]]\nnames = \"c[1-%u]\"\ncpus = 64\nsockets = 2\ncores_per_socket = 32\n"
             "memory_mb = 256000\n"
             "[[nodes]]\nnames = \"g[1-%u]\"\ncpus = 64\nsockets = 2\ncores_per_socket = 32\n"
             "memory_mb = 512000\ngres = [\"gpu:h100:8\"]\n"
             "[[partitions]]\nname = \"main\"\nnodes = \"ALL\"\ndefault = true\n",
             of->bookings, nodes * 6 / 10, nodes - nodes * 6 / 10);
    if (of->limits)
        add_accounts(&toml, of->users);
    if (of->switches)
        add_switches(&toml, nodes);
    if (of->blocks)
        add_blocks(&toml, nodes);
    if (of->preempts)
        str_add(&toml, "[[partitions]]\nname = \"high\"\nnodes = \"ALL\"\npriority_tier = 5\n"
                       "[preemption]\ntype = \"partition_prio\"\nmode = \"CANCEL\"\n");
    struct rig *rig = rig_new(str_text(&toml));
    str_done(&toml);
    rig->check = false;
    return rig;
}

/* The shape follows from its number alone: one in ten is wide, four in ten want GPUs. */
static void job_words(const struct load *load, char *words, size_t size)
{
    const struct setting *of = load->of;
    unsigned shape = dice(of->shapes), one = shape % 10, two = shape / 10;
    unsigned limit = 60 * (1 + 7200 / of->times * dice(of->times));
    unsigned user = 1 + dice(of->users);
    unsigned wide = MIN(2 + two % 15, of->nodes / 2);

    if (one == 0)
        snprintf(words, size, "N=%u tpn=%u n=%u t=%u uid=%u", wide, 1 + two % 8,
                 wide * (1 + two % 8), limit, user);
    else if (one < 5)
        snprintf(words, size, "c=%u gres=gpu:h100:%u t=%u uid=%u", one * 2 + two % 3,
                 1U << (two % 4), limit, user);
    else
        snprintf(words, size, "c=%u mem=%u t=%u uid=%u", 1 + (one - 5) * 3 + two % 2,
                 1000 * (1 + two), limit, user);
}

static void submit(struct load *load)
{
    char words[160];

    job_words(load, words, sizeof(words));
    if (!rig_submit(load->rig, words)) {
        fprintf(stderr, "refused: %s\n", words);
        exit(1);
    }
}

/* ---- a run ---- */

static double cpu_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

struct result {
    double per_s, core_per_s, slice_ms, first_pass_ms, first_slice_ms, read_ms;
    uint64_t placed, refused;
};

/* Jobs end and others start until enough time was spent or enough were placed. */
static void churn(struct load *load, uint64_t most)
{
    struct rig *rig = load->rig;
    uint64_t until = rig->started + most;
    double begin = bench_ms();

    while (rig->started < until && load->heap.len && bench_ms() - begin < 20000) {
        struct ending first = heap_pop(load);
        bool more = true;
        uint64_t before = rig->started;
        if (first.us > rig->now_us)
            rig->now_us = first.us;
        if (rig_runs(rig, first.job_id))
            rig_end(rig, first.job_id);
        while (more)
            rig_slice(rig, &more);
        for (; before < rig->started; before++)
            submit(load);
        if (rig->started % 1024 == 0)
            rig_wait(rig, 0); /* ended jobs are forgotten */
    }
}

/* As many as need be to see it: few when there are few nodes, or each one is dear. */
static uint64_t placements(const struct setting *of)
{
    const char *asked = getenv("PLACEMENTS");

    if (asked)
        return strtoull(asked, NULL, 10);
    if (of->bookings || of->switches || of->blocks || of->nodes < 100)
        return 2000;
    return of->nodes < 1000 ? 20000 : 100000;
}

/* The cluster first, then the queue. */
static void fill(struct load *load)
{
    struct rig *rig = load->rig;
    unsigned nodes = load->of->nodes;

    seed = 1;
    rig->ctx = load;
    rig->on_start = on_start;
    for (bool full = false; !full;) {
        uint64_t before = rig->started;
        for (unsigned i = 0; i < nodes; i++)
            submit(load);
        rig_plan(rig);
        full = rig->started - before < nodes / 100 + 1;
    }
    while (state_counts(rig->state).pending < load->of->jobs)
        submit(load);
}

static struct result run(const struct setting *of)
{
    struct load load = { .rig = cluster(of), .of = of };
    struct rig *rig = load.rig;
    uint64_t most = placements(of);
    struct result out = { 0 };

    fill(&load);
    /* All of it from nothing, as after a restart. */
    sched_free(rig->sched);
    malloc_trim(0); /* a new process has nothing to tidy up */
    double begin = cpu_ms();
    rig->sched = sched_new(rig->state);
    out.read_ms = cpu_ms() - begin;
    begin = cpu_ms();
    rig->slice_ms = 0;
    rig_plan(rig); /* it is read in slices, then planned */
    out.first_pass_ms = cpu_ms() - begin;
    out.first_slice_ms = rig->slice_ms;
    churn(&load, most / 5);
    rig->plan_ms = rig->feed_ms = rig->core_ms = rig->slice_ms = 0;
    uint64_t placed = rig->started, refused = rig->refused;
    begin = bench_ms();
    double cpu = cpu_ms();
    churn(&load, most);
    /* Others may be busy on this machine: what counts is our share of the time of the CPU. */
    double share = (cpu_ms() - cpu) / (bench_ms() - begin);
    out.placed = rig->started - placed;
    out.refused = rig->refused - refused;
    out.per_s = (double)out.placed / ((rig->plan_ms + rig->feed_ms) * share) * 1e3;
    out.core_per_s = (double)out.placed / (rig->core_ms * share) * 1e3;
    out.slice_ms = rig->slice_ms;
    vec_done(&load.heap);
    rig_free(rig);
    return out;
}

/* ---- long slices: what happens rarely and touches everything ---- */

static void change_partition(struct rig *rig)
{
    rig_partition(rig, "main", INT64_C(86400) * 365);
}

static void make_reservation(struct rig *rig)
{
    rig_reserve(rig, "maint", "c[1-6000],g[1-4000]", 864000, false);
}

static void change_reservation(struct rig *rig)
{
    rig_reserve(rig, "maint", "c[1-3000]", 864000, true);
}

static void each_node(struct rig *rig, const char *state)
{
    for (unsigned i = 1; i <= 2000; i++) {
        char name[16];
        snprintf(name, sizeof(name), "c%u", i);
        rig_node(rig, name, state);
    }
}

static void drain_nodes(struct rig *rig)
{
    each_node(rig, "DRAIN");
}

static void resume_nodes(struct rig *rig)
{
    each_node(rig, "RESUME");
}

static void preempt_one(struct rig *rig)
{
    rig_submit(rig, "p=high c=16 gres=gpu:h100:4 t=600 uid=1");
}

static void preempt_wide(struct rig *rig)
{
    rig_submit(rig, "p=high N=200 ex t=600 uid=1");
}

static const struct {
    const char *name;
    void (*happen)(struct rig *rig);
    bool preempts;
} shocks[] = {
    { "slices.partition", change_partition, false },
    { "slices.resv_create", make_reservation, false },
    { "slices.resv_change", change_reservation, false },
    { "slices.drain_2000", drain_nodes, false },
    { "slices.resume_2000", resume_nodes, false },
    { "slices.preempt_1", preempt_one, true },
    { "slices.preempt_200", preempt_wide, true },
};

/* Each of them happens, then slices until nothing is left to do. */
static void run_shocks(const struct setting *of, const char *only)
{
    struct load load = { .rig = cluster(of), .of = of };
    struct rig *rig = load.rig;

    fill(&load);
    rig_plan(rig);
    rig->watch = true;
    for (size_t i = 0; i < ARRAY_LEN(shocks); i++) {
        if (strncmp(shocks[i].name, only, strlen(only)) != 0 || shocks[i].preempts != of->preempts)
            continue;
        bool more = true;
        unsigned slices = 0;
        uint64_t preempts = rig->preempts;
        rig->slice_ms = rig->fed_ms = rig->core_ms = rig->plan_ms = rig->feed_ms = 0;
        shocks[i].happen(rig);
        double core = rig->core_ms;
        for (; more || rig->preempts != preempts; slices++) {
            preempts = rig->preempts;
            rig_slice(rig, &more);
        }
        printf("%-18s %8u %6u %8.2f %8.2f %8u %9.0f %9.0f%s\n", shocks[i].name, of->jobs, of->nodes,
               rig->slice_ms, rig->fed_ms, slices, rig->plan_ms + rig->feed_ms, core,
               of->limits ? "  limits" : "");
        fflush(stdout);
    }
    vec_done(&load.heap);
    rig_free(rig);
}

static const struct setting shocked[] = {
    { "slices", 1000000, 10000, 100, 100, 8 },
    { "slices", 1000000, 10000, 100, 2000, 200, .limits = true },
    { "slices", 1000000, 10000, 100, 100, 8, .preempts = true },
};

static void print_shocks(const char *only, unsigned jobs)
{
    printf("%-18s %8s %6s %8s %8s %8s %9s %9s\n", "sched", "jobs", "nodes", "slice ms", "feed ms",
           "slices", "all ms", "core ms");
    for (size_t i = 0; i < ARRAY_LEN(shocked); i++) {
        struct setting of = shocked[i];
        if (jobs)
            of.jobs = jobs;
        run_shocks(&of, only);
    }
}

/* ---- the floor ---- */

static double floor_per_s(void)
{
    enum { COUNT = 200000, NODES = 10000 };
    uint32_t *jobs = NEW_ARRAY(uint32_t, COUNT), *hosts = NEW_ARRAY(uint32_t, NODES);
    struct arena arena;
    size_t sink = 0;

    arena_init(&arena);
    for (uint32_t i = 0; i < COUNT; i++)
        jobs[i] = i;
    double ms = BENCH_BEST(5, {
        for (uint32_t i = 0; i < COUNT; i++) {
            if (i % 2000 == 0)
                arena_reset(&arena);
            CmdStart *command = ARENA_NEW(&arena, CmdStart);
            JobStart *start = ARENA_NEW(&arena, JobStart);
            Allocation *allocation = ARENA_NEW(&arena, Allocation);
            NodeAlloc *alloc = ARENA_NEW(&arena, NodeAlloc);
            cmd_start__init(command);
            job_start__init(start);
            allocation__init(allocation);
            node_alloc__init(alloc);
            start->job_id = jobs[i];
            alloc->cpus = ++hosts[i % NODES];
            start->allocation = allocation;
            alloc->cpu_ids = arena_printf(&arena, "%u-%u", alloc->cpus, alloc->cpus + 3);
            sink += start->job_id;
        }
    });
    arena_done(&arena);
    free(jobs);
    free(hosts);
    return sink ? COUNT / ms * 1e3 : 0;
}

/* ---- the table ---- */

static const struct setting settings[] = {
    { "P7.100_shapes", 1000000, 10000, 100, 100, 8 },
    { "P7.20000_classes", 1000000, 10000, 100, 2000, 200 },
    { "P7.limits", 1000000, 10000, 100, 2000, 200, .limits = true },
    { "jobs.1e3", 1000, 10000, 100, 100, 8 },
    { "jobs.1e4", 10000, 10000, 100, 100, 8 },
    { "jobs.1e5", 100000, 10000, 100, 100, 8 },
    { "nodes.10", 100000, 10, 100, 100, 8 },
    { "nodes.100", 100000, 100, 100, 100, 8 },
    { "nodes.1000", 100000, 1000, 100, 100, 8 },
    { "nodes.50000", 100000, 50000, 100, 100, 8 },
    { "conservative.1e5", 100000, 1000, 100, 100, 8, .bookings = 256 },
    { "switches.1e4", 10000, 500, 100, 100, 8, .switches = true },
    { "blocks.1e4", 10000, 500, 100, 100, 8, .blocks = true },
};

static void print_head(void)
{
    printf("%-18s %8s %6s %10s %6s %9s %8s %8s %9s %8s\n", "sched", "jobs", "nodes", "placed/s",
           "floor", "core/s", "slice ms", "read ms", "first ms", "slice ms");
}

static void print(const struct setting *of, struct result r, double floor)
{
    printf("%-18s %8u %6u %10.0f %6.3f %9.0f %8.2f %8.0f %9.0f %8.2f", of->name, of->jobs,
           of->nodes, r.per_s, r.per_s / floor, r.core_per_s, r.slice_ms, r.read_ms,
           r.first_pass_ms, r.first_slice_ms);
    printf(r.refused ? "  %llu of %llu refused\n" : "\n", (unsigned long long)r.refused,
           (unsigned long long)r.placed);
    fflush(stdout);
}

static bool is_wanted(const struct setting *of, int argc, char **argv)
{
    bool wanted = argc == 1;

    for (int i = 1; i < argc; i++)
        wanted = wanted || strncmp(of->name, argv[i], strlen(argv[i])) == 0;
    return wanted;
}

static unsigned number(int argc, char **argv, int i, unsigned otherwise)
{
    return argc > i ? (unsigned)strtoul(argv[i], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    double floor = floor_per_s(), most = 0, least = 0;
    const char *bookings = getenv("BOOKINGS");
    uint64_t refused = 0;

    printf("%-18s %26.0f /s\n", "sched.floor", floor);
    print_head();
    if (argc > 1 && argv[1][0] >= '0' && argv[1][0] <= '9') {
        struct setting one = { "one", number(argc, argv, 1, 0), number(argc, argv, 2, 10000),
                               number(argc, argv, 3, 100), number(argc, argv, 4, 100) };
        one.times = one.users >= 1000 ? 200 : 8;
        one.bookings = bookings ? (unsigned)strtoul(bookings, NULL, 10) : 0;
        one.limits = getenv("LIMITS");
        one.switches = getenv("SWITCHES");
        print(&one, run(&one), floor);
        return 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        if (!is_wanted(&settings[i], argc, argv))
            continue;
        struct result result = run(&settings[i]);
        print(&settings[i], result, floor);
        refused += result.refused;
        most = strcmp(settings[i].name, "P7.100_shapes") == 0 ? result.per_s : most;
        least = strcmp(settings[i].name, "jobs.1e3") == 0 ? result.per_s : least;
    }
    const char *jobs = getenv("SHOCK_JOBS");
    for (int i = 1; i < argc || argc == 1; i++) {
        if (argc == 1 || strncmp(argv[i], "slices", 6) == 0)
            print_shocks(argc == 1 ? "slices" : argv[i], jobs ? (unsigned)atoi(jobs) : 0);
        if (argc == 1)
            break;
    }
    if (most > 0 && least > 0)
        printf("%-18s %26.2f x   (placed/s with 1e6 jobs, of those with 1e3)\n", "P8.ratio",
               most / least);
    return refused != 0;
}
