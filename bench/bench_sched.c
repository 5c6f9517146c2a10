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

#include "bench_load.h"
#include "bench_shocks.h"
#include "sys/heap.h"

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
        struct ending first = load_pop(load);
        bool more = true;
        uint64_t before = rig->started;
        if (first.us > rig->now_us)
            rig->now_us = first.us;
        if (rig_runs(rig, first.job_id))
            rig_end(rig, first.job_id);
        while (more)
            rig_slice(rig, &more);
        for (; before < rig->started; before++)
            load_submit(load);
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

static struct result run(const struct setting *of)
{
    struct load load;
    uint64_t most = placements(of);
    struct result out = { 0 };

    load_begin(&load, of);
    struct rig *rig = load.rig;
    load_fill(&load);
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
    heap_mend(NULL); /* as at the end of a start */
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
    load_done(&load);
    return out;
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
    { "booked.16", 100000, 1000, 100, 100, 8, .bookings = 16 },
    { "booked.64", 100000, 1000, 100, 100, 8, .bookings = 64 },
    { "booked.256", 100000, 1000, 100, 100, 8, .bookings = 256 },
    { "booked.1024", 100000, 1000, 100, 100, 8, .bookings = 1024 },
    { "booked.16", 100000, 10000, 100, 100, 8, .bookings = 16 },
    { "booked.64", 100000, 10000, 100, 100, 8, .bookings = 64 },
    { "booked.256", 100000, 10000, 100, 100, 8, .bookings = 256 },
    { "booked.1024", 100000, 10000, 100, 100, 8, .bookings = 1024 },
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
    mem_steady(); /* as spurctld */
    heap_begin();
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
            shocks_print(argc == 1 ? "slices" : argv[i], jobs ? (unsigned)atoi(jobs) : 0);
        if (argc == 1)
            break;
    }
    if (most > 0 && least > 0)
        printf("%-18s %26.2f x   (placed/s with 1e6 jobs, of those with 1e3)\n", "P8.ratio",
               most / least);
    return refused != 0;
}
