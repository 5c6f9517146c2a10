/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_run.c - a trace in simulated time
 *
 * The next thing that happens is a submission or an end; time jumps there. What ends at a moment
 * ends before what is submitted then, and both before the planner is asked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/sim.h"
#include "core/shape.h"
#include "sched/sched.h"

enum { TICK_EVERY = 512 };
#define US_PER_S INT64_C(1000000)
#define PUT(message, field, value)     \
    do {                               \
        (message)->has_##field = true; \
        (message)->field = (value);    \
    } while (0)

struct ending {
    int64_t s;
    uint32_t index;
};

/* A run while it goes on. */
struct going {
    struct sim_run *run;
    struct sim_cluster cluster;
    VEC(struct ending) endings; /* a heap */
    VEC(uint32_t) by_id;        /* id - first id → index of the job */
    uint32_t first_id;
    uint32_t *used, *has; /* units by node */
    uint32_t in_use, stranded, gpus_most;
};

static bool ends_before(struct ending a, struct ending b)
{
    return a.s != b.s ? a.s < b.s : a.index < b.index;
}

static void push(struct going *going, struct ending item)
{
    vec_push(&going->endings, item);
    struct ending *heap = going->endings.items;
    size_t at = going->endings.len - 1;
    for (; at && ends_before(item, heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = item;
}

static struct ending pop(struct going *going)
{
    struct ending *heap = going->endings.items, first = heap[0], last;
    size_t at = 0, len = --going->endings.len;

    last = heap[len];
    for (size_t child; (child = at * 2 + 1) < len; at = child) {
        if (child + 1 < len && ends_before(heap[child + 1], heap[child]))
            child++;
        if (!ends_before(heap[child], last))
            break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return first;
}

static double cpu_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* ---- what nodes have, and how much of it is used ---- */

static uint32_t gpus_of(const struct node *node)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < node->gres_count; i++)
        sum += strcmp(node->gres[i].name, "gpu") == 0 ? node->gres[i].total : 0;
    return (uint32_t)sum;
}

static void read_nodes(struct going *going)
{
    struct sim_run *run = going->run;
    const struct state *state = going->cluster.state;
    size_t count = state_node_count(state);

    going->used = NEW_ARRAY(uint32_t, count + 1);
    going->has = NEW_ARRAY(uint32_t, count + 1);
    for (size_t i = 0; i < count; i++)
        going->gpus_most = MAX(going->gpus_most, gpus_of(state_node_at(state, i)));
    run->of_gpus = going->gpus_most > 0;
    for (size_t i = 0; i < count; i++) {
        const struct node *node = state_node_at(state, i);
        going->has[i] = run->of_gpus ? gpus_of(node) : node->cpus;
        run->units += going->has[i];
        run->unit_per_node = MAX(run->unit_per_node, going->has[i]);
        vec_push(&run->nodes, mem_strdup(node->spec->name));
    }
}

static uint32_t units_of(const struct going *going, const struct job_part *part)
{
    uint64_t sum = 0;

    if (!going->run->of_gpus)
        return part->cpus;
    for (size_t i = 0; i < part->gres_count; i++)
        sum += strcmp(part->gres[i].name, "gpu") == 0 ? part->gres[i].count : 0;
    return (uint32_t)sum;
}

static uint32_t stranded_at(const struct going *going, uint32_t node)
{
    return going->used[node] ? going->has[node] - MIN(going->used[node], going->has[node]) : 0;
}

static void count_use(struct going *going, const struct job *job, bool more)
{
    for (unsigned i = 0; i < job->run->count; i++) {
        const struct job_part *part = &job->run->parts[i];
        if (!part->node)
            continue;
        uint32_t node = part->node->number, units = units_of(going, part);
        going->stranded -= stranded_at(going, node);
        going->used[node] += more ? units : -units;
        going->in_use += more ? units : -units;
        going->stranded += stranded_at(going, node);
    }
}

static void keep_runs(struct sim_run *run, uint32_t node, const struct bitset *set)
{
    for (size_t bit = bitset_next(set, 0); bit < set->bits; bit = bitset_next(set, bit)) {
        size_t first = bit;
        while (bit < set->bits && bitset_has(set, bit))
            bit++;
        vec_push(&run->bars, (struct sim_bar){ node, (uint32_t)first, (uint32_t)(bit - first) });
    }
}

static void keep_bars(struct going *going, struct sim_job *line, const struct job *job)
{
    struct sim_run *run = going->run;

    line->bar = (uint32_t)run->bars.len;
    for (unsigned i = 0; i < job->run->count; i++) {
        const struct job_part *part = &job->run->parts[i];
        if (!run->of_gpus)
            keep_runs(run, part->node->number, &part->cpu_ids);
        for (size_t g = 0; run->of_gpus && g < part->gres_count; g++) {
            if (strcmp(part->gres[g].name, "gpu") == 0 && part->gres[g].index.words)
                keep_runs(run, part->node->number, &part->gres[g].index);
        }
    }
    line->bars = (uint32_t)run->bars.len - line->bar;
}

static void on_start(void *ctx, const struct job *job)
{
    struct going *going = ctx;
    struct sim_run *run = going->run;
    uint32_t index = going->by_id.items[job->id - going->first_id];
    struct sim_job *line = &run->trace->jobs.items[index];

    line->fate = SIM_RUNS;
    line->start_s = run->now_s;
    push(going, (struct ending){ run->now_s + line->run_s, index });
    count_use(going, job, true);
    if (run->how->bars)
        keep_bars(going, line, job);
}

/* ---- jobs ---- */

struct asked {
    JobSpec spec;
    GresRequest gres, *gres_list[1];
};

static void ask_gpus(const struct going *going, const struct sim_job *line, struct asked *asked,
                     uint32_t nodes)
{
    bool even = line->gpus % nodes == 0 && line->gpus / nodes <= going->gpus_most;

    gres_request__init(&asked->gres);
    asked->gres.name = (char *)"gpu";
    PUT(&asked->gres, count, even ? line->gpus / nodes : line->gpus);
    PUT(&asked->gres, scope, even ? GRES_PER_NODE : GRES_PER_JOB);
    asked->gres_list[0] = &asked->gres;
    asked->spec.gres = asked->gres_list;
    asked->spec.n_gres = 1;
}

static void ask(const struct going *going, const struct sim_job *line, struct asked *asked)
{
    JobSpec *spec = &asked->spec;
    uint32_t nodes = line->nodes;

    *spec = (JobSpec)JOB_SPEC__INIT;
    spec->name = going->run->trace->names.items[line->name];
    if (!*spec->name)
        spec->name = (char *)"job";
    spec->work_dir = (char *)"/";
    PUT(spec, batch, true);
    PUT(spec, time_limit_s, line->limit_s);
    if (line->gpus && going->gpus_most && !nodes)
        nodes = (line->gpus + going->gpus_most - 1) / going->gpus_most;
    if (nodes) {
        PUT(spec, min_nodes, nodes);
        PUT(spec, max_nodes, nodes);
        PUT(spec, ntasks, nodes);
        PUT(spec, cpus_per_task, MAX((line->cpus + nodes - 1) / nodes, 1));
    } else {
        PUT(spec, ntasks, MAX(line->cpus, 1));
    }
    if (line->gpus)
        ask_gpus(going, line, asked, MAX(nodes, 1));
    if (line->mem_mb)
        PUT(spec, mem_per_node_mb, line->mem_mb);
}

static void submit(struct going *going, uint32_t index)
{
    struct sim_run *run = going->run;
    struct sim_job *line = &run->trace->jobs.items[index];
    const char *user = run->trace->users.items[line->user];
    JobOwner owner = JOB_OWNER__INIT;
    struct asked asked;
    struct err err = { 0 };

    ask(going, line, &asked);
    PUT(&owner, uid, 100000 + line->user);
    PUT(&owner, gid, 100);
    owner.user = (char *)(uintptr_t)(*user ? user : "nobody");
    owner.group = (char *)"users";
    /* Its number may be wanted before the answer is here: it starts when the planner is asked. */
    line->id = sim_cluster_submit(&going->cluster, &owner, &asked.spec, &err);
    if (!line->id) {
        line->fate = SIM_REFUSED;
        if (!run->refused++) {
            snprintf(run->why_refused, sizeof(run->why_refused), "%s", err.text);
            run->refused_line = line->line;
        }
        return;
    }
    if (!going->by_id.len)
        going->first_id = line->id;
    while (going->by_id.len <= line->id - going->first_id)
        vec_push(&going->by_id, index);
    run->submitted++;
}

static void end(struct going *going, struct ending ending)
{
    struct sim_job *line = &going->run->trace->jobs.items[ending.index];
    const struct job *job = state_job(going->cluster.state, line->id);

    if (job && job->run)
        count_use(going, job, false);
    sim_cluster_end(&going->cluster, line->id);
    line->fate = SIM_ENDED;
    line->end_s = ending.s;
    going->run->ended++;
}

/* ---- time ---- */

/* Up to `then` nothing changes. */
static void pass_time(struct going *going, int64_t then)
{
    struct sim_run *run = going->run;
    double seconds = (double)(then - run->now_s);
    size_t waiting = run->submitted - run->ended - going->endings.len;

    run->sum.area += seconds * going->in_use;
    if (waiting) {
        run->sum.waiting += seconds;
        run->sum.waste += seconds * going->stranded;
    }
    run->sum.most_waiting = MAX(run->sum.most_waiting, waiting);
    run->now_s = then;
    going->cluster.now_us = MAX(going->cluster.now_us, SIM_BEGIN_US + then * US_PER_S);
}

static void go(struct going *going)
{
    struct sim_run *run = going->run;
    size_t next = 0, count = run->trace->jobs.len;

    for (uint64_t turn = 0; next < count || going->endings.len; turn++) {
        int64_t then = next < count ? run->trace->jobs.items[next].submit_s : INT64_MAX;
        if (going->endings.len)
            then = MIN(then, going->endings.items[0].s);
        pass_time(going, then);
        while (going->endings.len && going->endings.items[0].s <= then)
            end(going, pop(going));
        sim_cluster_wait(&going->cluster, going->cluster.now_us);
        while (next < count && run->trace->jobs.items[next].submit_s <= then)
            submit(going, (uint32_t)next++);
        sim_cluster_plan(&going->cluster);
        if (turn % TICK_EVERY == 0 && run->how->tick && !run->how->tick(run->how->ctx, run)) {
            run->stopped = true;
            return;
        }
    }
}

int sim_run(struct sim_run *run, const struct sim_how *how, struct sim_trace *trace,
            struct err *err)
{
    struct going going = { .run = run };

    *run = (struct sim_run){ .how = how, .trace = trace };
    vec_each (struct sim_job, job, &trace->jobs) {
        job->fate = SIM_WAITS;
        job->start_s = job->end_s = -1;
        job->id = job->bar = job->bars = 0;
    }
    double begin = cpu_ms();
    int code = sim_cluster_new(&going.cluster, how->config, SIM_BEGIN_US, err);
    if (code >= 0) {
        going.cluster.on_start = on_start;
        going.cluster.ctx = &going;
        read_nodes(&going);
        go(&going);
    }
    run->sum.cpu_ms = cpu_ms() - begin;
    run->sum.events = going.cluster.index;
    run->sum.starts = going.cluster.starts;
    run->sum.refused_starts = going.cluster.refused;
    sim_cluster_done(&going.cluster);
    free(going.used);
    free(going.has);
    vec_done(&going.endings);
    vec_done(&going.by_id);
    return code;
}

void sim_run_done(struct sim_run *run)
{
    vec_each (char *, name, &run->nodes)
        free(*name);
    vec_done(&run->nodes);
    vec_done(&run->bars);
}
