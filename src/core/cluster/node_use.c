/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_use.c - what jobs use of a node, counted
 */
#include "core/cluster/cluster.h"

static void hold_cpus(struct node *node, const struct job_run *run, const struct job_part *part)
{
    if (!run->shared && part->cpu_ids.bits == node->cpu_ids.bits) {
        size_t both =
            node_has_cpu_ids(node) ? bitset_count_both(&part->cpu_ids, &node->cpu_ids) : 0;
        node->cpus_used += (uint32_t)(bitset_count(&part->cpu_ids) - both);
        bitset_or(&node->cpu_ids, &part->cpu_ids);
        return;
    }
    bitset_each (cpu, &part->cpu_ids) {
        if (cpu >= node->cpu_span)
            break;
        if (run->shared) {
            if (!node->cpu_shares)
                node->cpu_shares = mem_new(node->cpu_span);
            node->cpu_shares[cpu]++;
        }
        if (!bitset_has(&node->cpu_ids, cpu)) {
            bitset_add(&node->cpu_ids, cpu);
            node->cpus_used++;
        }
    }
}

void node_use_shares(struct node *node, struct node_gres *gres, const struct part_gres *part,
                     bool more)
{
    struct node_gres *base = &node->gres[gres->base_at - 1];

    size_t devices = MAX(bitset_count(&part->index), 1);

    bitset_each (device, &part->index) {
        uint32_t count = (uint32_t)(part->count / devices);
        if (device >= base->lent.bits)
            break;
        gres->shares[device] = more ? gres->shares[device] + count
                                    : gres->shares[device] - MIN(count, gres->shares[device]);
        bool lent = false; /* there may be shards and mps of the same device */
        for (size_t i = 0; i < node->gres_count; i++)
            lent = lent || (node->gres[i].base_at == gres->base_at && node->gres[i].shares[device]);
        if (lent)
            bitset_add(&base->lent, device);
        else
            bitset_del(&base->lent, device);
    }
}

void node_use_cores(struct node *node, const struct job_run *run, const struct job_part *part)
{
    hold_cpus(node, run, part);
    node->jobs_whole += run->whole_nodes;
    node->jobs_active++;
}

void node_use_add(struct node *node, const struct job_run *run, const struct job_part *part)
{
    if (!run->lent)
        node_use_cores(node, run, part);
    node->mem_used_mb += part->mem_mb;
    for (size_t i = 0; i < part->gres_count; i++) {
        struct node_gres *gres = node_gres_at(node, part->gres[i].name, part->gres[i].type);
        if (!gres)
            continue;
        gres->used += part->gres[i].count;
        if (gres->base_at)
            node_use_shares(node, gres, &part->gres[i], true);
        bitset_each (device, &part->gres[i].index) {
            if (device < gres->index.bits)
                bitset_add(&gres->index, device);
        }
    }
}

void node_use_recount(struct node *node)
{
    vec_each (struct job *, at, &node->jobs) {
        const struct job_run *run = (*at)->run;
        for (unsigned i = 0; i < run->count; i++) {
            if (run->parts[i].node == node)
                node_use_add(node, run, &run->parts[i]);
        }
    }
}
