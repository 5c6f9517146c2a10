/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc.c - what jobs hold on nodes: taking and giving back
 *
 * (1) A start is looked at as a whole before anything changes (alloc_check.c), so that it is applied
 *     whole or not at all.
 * (2) A part holds its amounts as long as part->node is set; alloc_give() is the only way back.
 */
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "core/job/alloc.h"

static void insert_job(struct node *node, struct job *job)
{
    size_t at = node->jobs.len;

    vec_push(&node->jobs, job);
    for (; at > 0 && node->jobs.items[at - 1]->id > job->id; at--)
        node->jobs.items[at] = node->jobs.items[at - 1];
    node->jobs.items[at] = job;
}

static void remove_job(struct node *node, const struct job *job)
{
    for (size_t i = 0; i < node->jobs.len; i++) {
        if (node->jobs.items[i] == job) {
            vec_remove(&node->jobs, i);
            return;
        }
    }
}

static void free_cpus(struct node *node, const struct job_run *run, const struct job_part *part)
{
    if (!run->shared && part->cpu_ids.bits == node->cpu_ids.bits &&
        !(node->kept.words && bitset_meets(&node->kept, &part->cpu_ids))) {
        node->cpus_used -= (uint32_t)bitset_count_both(&part->cpu_ids, &node->cpu_ids);
        bitset_minus(&node->cpu_ids, &part->cpu_ids);
        return;
    }
    bitset_each (cpu, &part->cpu_ids) {
        if (cpu >= node->cpu_span)
            break;
        if (run->shared && node->cpu_shares && --node->cpu_shares[cpu] > 0)
            continue;
        if (bitset_has(&node->cpu_ids, cpu) && !node_keeps(node, cpu)) {
            bitset_del(&node->cpu_ids, cpu);
            node->cpus_used--;
        }
    }
}

static void free_cores(struct node *node, const struct job_run *run, const struct job_part *part)
{
    free_cpus(node, run, part);
    node->jobs_whole -= run->whole_nodes && node->jobs_whole;
    node->jobs_active -= node->jobs_active > 0;
}

void alloc_hold(struct state *state, struct job *job, struct job_part *part)
{
    node_use_add(part->node, job->run, part);
    insert_job(part->node, job);
    if (job->run->held++ == 0) {
        licences_count(state, job, 1);
        resv_job(state, job, 1);
    }
}

void alloc_give(struct state *state, struct job *job, struct job_part *part)
{
    struct node *node = part->node;

    MUST(node && job->run->held > 0);
    if (!job->run->lent)
        free_cores(node, job->run, part);
    node->mem_used_mb -= MIN(part->mem_mb, node->mem_used_mb);
    for (size_t i = 0; i < part->gres_count; i++) {
        struct node_gres *gres = node_gres_at(node, part->gres[i].name, part->gres[i].type);
        if (!gres)
            continue;
        gres->used -= MIN(part->gres[i].count, gres->used);
        if (gres->base_at)
            node_use_shares(node, gres, &part->gres[i], false);
        bitset_each (device, &part->gres[i].index) {
            if (device < gres->index.bits)
                bitset_del(&gres->index, device);
        }
    }
    remove_job(node, job);
    if (node->jobs.len == 0)
        node->last_busy_us = state->time_us;
    part_changes(job->run, part);
    part->name = words_again(part->name);
    part->node = NULL; /* (2) */
    part_changed(job->run, part);
    if (--job->run->held == 0) {
        job->run->skipped_us = 0;
        licences_count(state, job, -1);
        resv_job(state, job, -1);
    }
    node_touch(state, node);
    job_touch(state, job);
}

/* As the part before has it, when it is of the same. */
static const char *word_like(struct state *state, const char *like, const char *text)
{
    return like ? words_again(like) : words_take(&state->words, text);
}

static void keep_set(struct job_run *run, struct bitset *out, const struct bitset *from)
{
    if (!run->pool) {
        bitset_init_copy(out, from);
        return;
    }
    out->bits = from->bits;
    out->words = arena_copy(run->pool, from->words, (from->bits + 63) / 64 * sizeof(uint64_t));
}

static void fill_part(struct state *state, struct job_run *run, struct job_part *part,
                      const struct alloc_part *of, unsigned share, struct choice *choice)
{
    const NodeAlloc *alloc = of->alloc;
    struct node *node = of->node;
    bool same = part != run->parts && of[-1].alloc == alloc;

    part->name = node_word(state, node);
    part->node = node;
    part->cpus = alloc->cpus;
    part->tasks = alloc->tasks;
    part->mem_mb = alloc->mem_mb;
    alloc_choose_cpus(node, alloc, share, choice);
    keep_set(run, &part->cpu_ids, &choice->cpus.set);
    part->gres_count = alloc->n_gres;
    if (alloc->n_gres)
        part->gres = run->pool ? ARENA_ARRAY(run->pool, struct part_gres, alloc->n_gres)
                               : NEW_ARRAY(struct part_gres, alloc->n_gres);
    for (size_t i = 0; i < alloc->n_gres; i++) {
        const GresAlloc *from = alloc->gres[i];
        const struct bitset *devices;
        part->gres[i].name = word_like(state, same ? part[-1].gres[i].name : NULL, from->name);
        part->gres[i].type =
            str_is_empty(from->type)
                ? NULL
                : word_like(state, same ? part[-1].gres[i].type : NULL, from->type);
        part->gres[i].count = from->count;
        alloc_choose_devices(node, node_gres_at(node, from->name, from->type), from, choice,
                             &devices);
        if (devices)
            keep_set(run, &part->gres[i].index, devices);
    }
}

void alloc_take(struct state *state, struct job *job, const JobStart *start,
                const struct alloc_parts *parts)
{
    const Allocation *allocation = start->allocation;
    const struct need *need = alloc_need(state, job, allocation->partition);
    struct job_run *run = mem_new(sizeof(*run) + parts->count * sizeof(struct job_part));
    struct choice choice = { 0 };

    MUST(!job->run && need);
    run->start_us = state->time_us;
    run->skipped_us = -state->skipped_us;
    run->partition = words_take(&state->words, allocation->partition);
    run->reservation = words_take(&state->words, allocation->reservation);
    run->whole_nodes = need->whole_nodes;
    run->shared = need->share > 1;
    run->count = (unsigned)parts->count;
    if (run->count > WIDE_PARTS) {
        run->pool = NEW(struct arena);
        arena_init(run->pool);
    }
    licences_choose(state, job->shape, allocation, &run->licence);
    job->run = run;
    for (size_t i = 0; i < run->count; i++) {
        fill_part(state, run, &run->parts[i], &parts->of[i], need->share, &choice);
        alloc_hold(state, job, &run->parts[i]); /* what a node lends is not in its hash */
        part_changed(run, &run->parts[i]);
    }
    choice_done(&choice);
    charge_bill(state, job);
    spare_nodes_mark(job);
}

/* ---- CPUs that a suspended job lends ---- */

void alloc_lend(struct state *state, struct job *job)
{
    job->run->lent = true;
    suspended_for_add(state, job);
    for (unsigned i = 0; i < job->run->count; i++) {
        struct job_part *part = &job->run->parts[i];
        if (!part->node)
            continue;
        free_cores(part->node, job->run, part);
        node_touch(state, part->node);
    }
}

static bool cpus_are_free(const struct node *node, const struct bitset *cpus, unsigned share)
{
    bitset_each (cpu, cpus) {
        if (!alloc_cpu_is_free(node, cpu, share))
            return false;
    }
    return true;
}

bool alloc_could_recall(const struct state *state, const struct job *job)
{
    const struct need *need = job->run->shared ? alloc_need(state, job, job->run->partition) : NULL;
    const struct partition *partition = partition_at(state, job->run->partition);
    unsigned share = need ? need->share : 1;
    struct err err = { 0 };

    for (unsigned i = 0; i < job->run->count; i++) {
        const struct job_part *part = &job->run->parts[i];
        if (!part->node)
            continue;
        if (part->node->jobs_whole || (job->run->whole_nodes && part->node->jobs_active) ||
            alloc_check_others(job, partition, part->node, &err) < 0 ||
            (share > 1 ? !cpus_are_free(part->node, &part->cpu_ids, share)
                       : bitset_meets(&part->node->cpu_ids, &part->cpu_ids)))
            return false;
    }
    return true;
}

bool alloc_recall(struct state *state, struct job *job)
{
    if (!alloc_could_recall(state, job))
        return false;
    for (unsigned i = 0; i < job->run->count; i++) {
        struct job_part *part = &job->run->parts[i];
        if (!part->node)
            continue;
        node_use_cores(part->node, job->run, part);
        node_touch(state, part->node);
    }
    job->run->lent = false;
    suspended_for_drop(state, job);
    job_touch(state, job);
    return true;
}

void alloc_undo(struct state *state, struct job *job)
{
    for (unsigned i = 0; i < job->run->count; i++)
        alloc_give(state, job, &job->run->parts[i]);
    run_free(state, job->run);
    job->run = NULL;
}
