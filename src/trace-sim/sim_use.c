/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_use.c - what nodes of a simulation have, how much of it is in use, and where jobs are
 *
 * GPUs are counted in thousandths, since jobs may have parts of them; where there are none, CPUs.
 */
#include <stdlib.h>
#include <string.h>

#include "trace-sim/sim_going.h"

static uint32_t gpus_of(const struct node *node)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < node->gres_count; i++)
        sum += strcmp(node->gres[i].name, "gpu") == 0 ? node->gres[i].total : 0;
    return (uint32_t)sum;
}

static bool is_part_of_gpu(const struct node *node, const struct node_gres *gres)
{
    const struct node_gres *base = gres_base(node, gres);

    return base && gres->per && strcmp(base->name, "gpu") == 0;
}

/* The finest parts that any node has. */
static void find_shares(struct sim_going *going, const struct node *node)
{
    for (size_t i = 0; i < node->gres_count; i++) {
        const struct node_gres *gres = &node->gres[i];
        if (is_part_of_gpu(node, gres) && gres->per > going->share_per) {
            going->share = gres->name;
            going->share_per = gres->per;
        }
    }
}

void sim_use_read(struct sim_going *going)
{
    struct sim_run *run = going->run;
    const struct state *state = going->cluster.state;
    size_t count = state_node_count(state);

    going->used = NEW_ARRAY(uint32_t, count + 1);
    going->has = NEW_ARRAY(uint32_t, count + 1);
    for (size_t i = 0; i < count; i++) {
        going->gpus_most = MAX(going->gpus_most, gpus_of(state_node_at(state, i)));
        find_shares(going, state_node_at(state, i));
    }
    run->of_gpus = going->gpus_most > 0;
    going->scale = run->of_gpus ? SIM_MILLI : 1;
    for (size_t i = 0; i < count; i++) {
        const struct node *node = state_node_at(state, i);
        uint32_t units = run->of_gpus ? gpus_of(node) : node->cpus;
        going->has[i] = units * going->scale;
        run->units += units;
        run->unit_per_node = MAX(run->unit_per_node, units);
        vec_push(&run->nodes, mem_strdup(node->spec->name));
    }
}

void sim_use_done(struct sim_going *going)
{
    free(going->used);
    free(going->has);
}

static const struct node_gres *gres_named(const struct node *node, const char *name)
{
    for (size_t i = 0; i < node->gres_count; i++) {
        if (strcmp(node->gres[i].name, name) == 0)
            return &node->gres[i];
    }
    return NULL;
}

/* Thousandths of a GPU. */
static uint64_t milli_of(const struct node *node, const struct part_gres *part)
{
    if (strcmp(part->name, "gpu") == 0)
        return part->count * SIM_MILLI;
    const struct node_gres *gres = gres_named(node, part->name);
    return gres && is_part_of_gpu(node, gres) ? part->count * SIM_MILLI / gres->per : 0;
}

static uint32_t use_of(const struct sim_going *going, const struct job_part *part)
{
    uint64_t sum = 0;

    if (!going->run->of_gpus)
        return part->cpus;
    for (size_t i = 0; i < part->gres_count; i++)
        sum += milli_of(part->node, &part->gres[i]);
    return (uint32_t)sum;
}

uint64_t sim_use_of(const struct sim_going *going, const struct job *job)
{
    uint64_t sum = 0;

    for (unsigned i = 0; job->run && i < job->run->count; i++)
        sum += job->run->parts[i].node ? use_of(going, &job->run->parts[i]) : 0;
    return sum;
}

static uint32_t stranded_at(const struct sim_going *going, uint32_t node)
{
    return going->used[node] ? going->has[node] - MIN(going->used[node], going->has[node]) : 0;
}

static void count_use(struct sim_going *going, struct sim_job *line, const struct job *job,
                      bool more)
{
    if (line->counted == more)
        return;
    line->counted = more;
    for (unsigned i = 0; i < job->run->count; i++) {
        const struct job_part *part = &job->run->parts[i];
        if (!part->node)
            continue;
        uint32_t node = part->node->number, units = use_of(going, part);
        going->stranded -= stranded_at(going, node);
        going->used[node] += more ? units : -units;
        going->in_use += more ? units : -(uint64_t)units;
        going->stranded += stranded_at(going, node);
    }
}

/* ---- the timeline ---- */

static void keep_runs(struct sim_going *going, uint32_t job, uint32_t node,
                      const struct bitset *set)
{
    struct sim_bar bar = { .job = job, .node = node, .start_s = going->run->now_s, .end_s = -1 };

    for (size_t bit = bitset_next(set, 0); bit < set->bits; bit = bitset_next(set, bit)) {
        bar.first = (uint32_t)bit;
        while (bit < set->bits && bitset_has(set, bit))
            bit++;
        bar.count = (uint32_t)bit - bar.first;
        vec_push(&going->run->bars, bar);
    }
}

/* Above what others have of the same GPU. */
static void keep_part(struct sim_going *going, uint32_t job, const struct node *node,
                      const struct part_gres *part)
{
    const struct node_gres *gres = gres_named(node, part->name);
    struct sim_bar bar = { .job = job, .count = 1, .start_s = going->run->now_s, .end_s = -1 };

    bitset_each (device, &part->index) {
        uint64_t below = gres->shares[device] - MIN(part->count, gres->shares[device]);
        bar.node = node->number;
        bar.first = (uint32_t)device;
        bar.from_milli = (uint16_t)(below * SIM_MILLI / gres->per);
        bar.milli = (uint16_t)milli_of(node, part);
        vec_push(&going->run->bars, bar);
    }
}

static void keep_bars(struct sim_going *going, struct sim_job *line, const struct job *job)
{
    struct sim_run *run = going->run;
    uint32_t index = (uint32_t)(line - run->trace->jobs.items);

    line->bar = (uint32_t)run->bars.len;
    for (unsigned i = 0; i < job->run->count; i++) {
        const struct job_part *part = &job->run->parts[i];
        if (!run->of_gpus)
            keep_runs(going, index, part->node->number, &part->cpu_ids);
        for (size_t g = 0; run->of_gpus && g < part->gres_count; g++) {
            if (!part->gres[g].index.words)
                continue;
            if (strcmp(part->gres[g].name, "gpu") == 0)
                keep_runs(going, index, part->node->number, &part->gres[g].index);
            else if (milli_of(part->node, &part->gres[g]))
                keep_part(going, index, part->node, &part->gres[g]);
        }
    }
    line->bars = (uint32_t)run->bars.len - line->bar;
}

void sim_use_begin(struct sim_going *going, struct sim_job *line, const struct job *job)
{
    count_use(going, line, job, true);
    if (going->run->how->bars)
        keep_bars(going, line, job);
}

void sim_use_end(struct sim_going *going, struct sim_job *line, const struct job *job)
{
    count_use(going, line, job, false);
    for (uint32_t i = 0; i < line->bars; i++)
        going->run->bars.items[line->bar + i].end_s = going->run->now_s;
    line->bars = 0;
}
