/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc.c - what jobs hold on nodes
 *
 * (1) alloc_check() looks at everything before alloc_take() changes anything, so that a start is
 *     applied whole or not at all. It never lets a node hold more than it has.
 * (2) A part holds its amounts as long as part->node is set; alloc_give() is the only way back.
 */
#include "core/state_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "core/resv.h"

static int no_room(struct err *err, const char *node, const char *what)
{
    return err_set(err, ERR_NODES_BUSY, "node %s: %s", node, what);
}

static const struct need *need_in(const struct state *state, const struct job *job,
                                  const char *partition)
{
    const struct need *needs = shape_needs(state, job->shape);

    for (size_t i = 0; i < job->shape->partition_count; i++) {
        if (str_eq(job->shape->partitions[i], partition))
            return &needs[i];
    }
    return NULL;
}

static unsigned shares_of(const struct node *node, size_t cpu)
{
    return node->cpu_shares ? node->cpu_shares[cpu] : 0;
}

static bool cpu_is_free(const struct node *node, size_t cpu, unsigned share)
{
    if (!bitset_has(&node->cpu_ids, cpu))
        return true;
    return share > 1 && shares_of(node, cpu) > 0 && shares_of(node, cpu) < share;
}

/* The CPUs named, or the lowest free ones when only their number is. */
static bool choose_cpus(const struct node *node, const NodeAlloc *alloc, unsigned share,
                        struct bitset *out)
{
    size_t found = 0;

    bitset_init(out, node->cpu_span);
    if (!str_is_empty(alloc->cpu_ids)) {
        if (!bitset_parse(out, alloc->cpu_ids))
            return false;
        if (share <= 1)
            return !bitset_meets(out, &node->cpu_ids) && bitset_count(out) == alloc->cpus;
        bitset_each (cpu, out) {
            if (!cpu_is_free(node, cpu, share))
                return false;
            found++;
        }
        return found == alloc->cpus;
    }
    for (size_t cpu = 0; cpu < node->cpu_span && found < alloc->cpus; cpu++) {
        if (cpu_is_free(node, cpu, share)) {
            bitset_add(out, cpu);
            found++;
        }
    }
    return found == alloc->cpus;
}

static struct node_gres *gres_at(const struct node *node, const char *name, const char *type)
{
    for (size_t i = 0; i < node->gres_count; i++) {
        struct node_gres *gres = &node->gres[i];
        if (str_eq(gres->name, name) &&
            (str_is_empty(type) ? str_is_empty(gres->type) : str_eq(gres->type, type)))
            return gres;
    }
    return NULL;
}

/*
 * All shares of a job on a node are of one device, which nobody has for itself; or as many of each
 * of several.
 */
static bool choose_share(const struct node_gres *gres, const struct node_gres *base,
                         const GresAlloc *alloc, struct bitset *out)
{
    bitset_init(out, base->index.bits);
    if (!str_is_empty(alloc->index)) {
        size_t devices = bitset_parse(out, alloc->index) ? bitset_count(out) : 0;
        if (!devices || alloc->count % devices)
            return false;
        bitset_each (device, out) {
            if (bitset_has(&base->index, device) ||
                gres->shares[device] + alloc->count / devices > gres->per)
                return false;
        }
        return true;
    }
    for (size_t device = 0; device < base->index.bits; device++) {
        if (!bitset_has(&base->index, device) && gres->shares[device] + alloc->count <= gres->per) {
            bitset_add(out, device);
            return true;
        }
    }
    return false;
}

static bool choose_devices(const struct node *node, const struct node_gres *gres,
                           const GresAlloc *alloc, struct bitset *out)
{
    const struct node_gres *base = gres_base(node, gres);
    size_t found = 0;

    *out = (struct bitset){ 0 };
    if (alloc->count > gres->total - MIN(gres->used, gres->total))
        return false;
    if (base)
        return choose_share(gres, base, alloc, out);
    if (!gres->index.words)
        return true;
    bitset_init(out, gres->index.bits);
    if (!str_is_empty(alloc->index)) {
        return bitset_parse(out, alloc->index) && bitset_count(out) == alloc->count &&
               !bitset_meets(out, &gres->index) &&
               !(gres->lent.words && bitset_meets(out, &gres->lent));
    }
    for (size_t i = 0; i < gres->index.bits && found < alloc->count; i++) {
        if (!bitset_has(&gres->index, i) && !(gres->lent.words && bitset_has(&gres->lent, i))) {
            bitset_add(out, i);
            found++;
        }
    }
    return found == alloc->count;
}

static int check_gres(const struct node *node, const NodeAlloc *alloc, struct err *err)
{
    for (size_t i = 0; i < alloc->n_gres; i++) {
        const GresAlloc *want = alloc->gres[i];
        const struct node_gres *gres = gres_at(node, want->name, want->type);
        struct bitset devices = { 0 };
        if (!gres)
            return no_room(err, alloc->node, "it has no such generic resource");
        for (size_t k = 0; k < i; k++) {
            if (gres_at(node, alloc->gres[k]->name, alloc->gres[k]->type) == gres)
                return no_room(err, alloc->node, "a generic resource is named twice");
        }
        bool good = choose_devices(node, gres, want, &devices);
        bitset_done(&devices);
        if (!good)
            return no_room(err, alloc->node, "the generic resources are in use");
    }
    return 0;
}

/* Of those that run there nobody minds the job, and it minds none of them. */
static int check_others(const struct job *job, const struct partition *partition,
                        const struct node *node, struct err *err)
{
    bool by_user = job->shape->exclusive_user || (partition && partition->spec->exclusive_user);

    vec_each (struct job *, at, &node->jobs) {
        const struct job *other = *at;
        if (other->run->lent || other == job)
            continue;
        if ((by_user || other->shape->exclusive_user) && other->owner->uid != job->owner->uid)
            return no_room(err, node->spec->name, "it belongs to another user");
        if ((job->shape->exclusive_mcs || other->shape->exclusive_mcs) &&
            !str_eq(job->shape->mcs_label, other->shape->mcs_label))
            return no_room(err, node->spec->name, "jobs there have another MCS label");
    }
    return 0;
}

static int check_company(const struct job *job, const struct need *need, const struct node *node,
                         struct err *err)
{
    if (need->whole_nodes && node->jobs_active)
        return no_room(err, node->spec->name, "it is not empty");
    if (node->jobs_whole)
        return no_room(err, node->spec->name, "another job has it for itself");
    return check_others(job, need->partition, node, err);
}

/* MaxCPUsPerNode: what jobs of the partition have there already counts too. */
static bool within_partition(const struct need *need, const struct node *node, uint32_t cpus)
{
    uint64_t used = 0;

    if (!need->max_cpus_per_node && !need->max_cpus_per_socket)
        return true;
    vec_each (struct job *, at, &node->jobs) {
        const struct job_run *run = (*at)->run;
        for (unsigned i = 0; str_eq(run->partition, need->partition->spec->name) && i < run->count;
             i++)
            used += run->parts[i].node == node ? run->parts[i].cpus : 0;
    }
    return used + cpus <= need_cpus(need, node);
}

static int check_part(const struct state *state, const struct job *job, const struct need *need,
                      const NodeAlloc *alloc, struct err *err)
{
    const struct node *node = node_at(state, alloc->node);
    struct bitset cpus = { 0 };

    if (!node)
        return err_code(err, ERR_INVALID_NODE_NAME);
    if (!node_is_usable(node))
        return err_set(err, ERR_NODE_NOT_AVAIL, "node %s is not available", alloc->node);
    if (!bitset_has(&need->partition->nodes, node->number))
        return err_code(err, ERR_NODES_NOT_IN_PARTITION);
    if (check_company(job, need, node, err) < 0)
        return -(int)ERR_NODES_BUSY;
    bool good = alloc->cpus > 0 && choose_cpus(node, alloc, need->share, &cpus);
    bitset_done(&cpus);
    if (!good)
        return no_room(err, alloc->node, "the CPUs are in use");
    if (!within_partition(need, node, alloc->cpus))
        return no_room(err, alloc->node, "jobs of the partition have as many CPUs as they may");
    if (alloc->mem_mb > node->mem_mb - MIN(node->mem_used_mb, node->mem_mb))
        return no_room(err, alloc->node, "not enough memory is free");
    return check_gres(node, alloc, err);
}

int alloc_check(struct state *state, const struct job *job, const JobStart *start, struct err *err)
{
    const Allocation *allocation = start->allocation;

    if (!allocation || allocation->n_nodes == 0 || allocation->n_nodes > LIMIT_NODES ||
        !shape_takes_nodes(job->shape, allocation->n_nodes))
        return err_code(err, ERR_NODE_COUNT);
    const struct need *need = need_in(state, job, allocation->partition);
    if (!need || !need->partition)
        return err_code(err, ERR_INVALID_PARTITION);
    if (partition_state(need->partition) != PARTITION_UP &&
        partition_state(need->partition) != PARTITION_DRAIN)
        return err_code(err, ERR_PARTITION_NOT_AVAIL);
    if (resv_check_start(state, job, allocation, err) < 0)
        return -(int)err->code;
    uint32_t choice;
    if (!licences_choose(state, job->shape, allocation, &choice))
        return err_code(err, ERR_LICENSES_UNAVAILABLE);
    struct bitset seen;
    bitset_init(&seen, state->nodes.len);
    int code = 0;
    for (size_t i = 0; i < allocation->n_nodes && code == 0; i++) {
        code = check_part(state, job, need, allocation->nodes[i], err);
        if (code == 0) {
            const struct node *node = node_at(state, allocation->nodes[i]->node);
            if (bitset_has(&seen, node->number))
                code = no_room(err, node->spec->name, "it is named twice");
            bitset_add(&seen, node->number);
        }
    }
    bitset_done(&seen);
    return code;
}

/* Taking and giving back. */

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

static void hold_cpus(struct node *node, const struct job_run *run, const struct job_part *part)
{
    if (!run->shared && part->cpu_ids.bits == node->cpu_ids.bits) {
        size_t both = bitset_count_both(&part->cpu_ids, &node->cpu_ids);
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

static void free_cpus(struct node *node, const struct job_run *run, const struct job_part *part)
{
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

static void count_shares(struct node *node, struct node_gres *gres, const struct part_gres *part,
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

static void hold_cores(struct node *node, const struct job_run *run, const struct job_part *part)
{
    hold_cpus(node, run, part);
    node->jobs_whole += run->whole_nodes;
    node->jobs_active++;
}

static void free_cores(struct node *node, const struct job_run *run, const struct job_part *part)
{
    free_cpus(node, run, part);
    node->jobs_whole -= run->whole_nodes && node->jobs_whole;
    node->jobs_active -= node->jobs_active > 0;
}

static void hold_amounts(struct node *node, const struct job_run *run, const struct job_part *part)
{
    if (!run->lent)
        hold_cores(node, run, part);
    node->mem_used_mb += part->mem_mb;
    for (size_t i = 0; i < part->gres_count; i++) {
        struct node_gres *gres = gres_at(node, part->gres[i].name, part->gres[i].type);
        if (!gres)
            continue;
        gres->used += part->gres[i].count;
        if (gres->base_at)
            count_shares(node, gres, &part->gres[i], true);
        bitset_each (device, &part->gres[i].index) {
            if (device < gres->index.bits)
                bitset_add(&gres->index, device);
        }
    }
}

void alloc_hold(struct state *state, struct job *job, struct job_part *part)
{
    hold_amounts(part->node, job->run, part);
    insert_job(part->node, job);
    if (job->run->held++ == 0) {
        licences_count(state, job, 1);
        resv_job(state, job, 1);
    }
}

void alloc_recount(struct node *node)
{
    vec_each (struct job *, at, &node->jobs) {
        const struct job_run *run = (*at)->run;
        for (unsigned i = 0; i < run->count; i++) {
            if (run->parts[i].node == node)
                hold_amounts(node, run, &run->parts[i]);
        }
    }
}

void alloc_give(struct state *state, struct job *job, struct job_part *part)
{
    struct node *node = part->node;

    if (!job->run->lent)
        free_cores(node, job->run, part);
    node->mem_used_mb -= MIN(part->mem_mb, node->mem_used_mb);
    for (size_t i = 0; i < part->gres_count; i++) {
        struct node_gres *gres = gres_at(node, part->gres[i].name, part->gres[i].type);
        if (!gres)
            continue;
        gres->used -= MIN(part->gres[i].count, gres->used);
        if (gres->base_at)
            count_shares(node, gres, &part->gres[i], false);
        bitset_each (device, &part->gres[i].index) {
            if (device < gres->index.bits)
                bitset_del(&gres->index, device);
        }
    }
    remove_job(node, job);
    if (node->jobs.len == 0)
        node->last_busy_us = state->time_us;
    part->node = NULL; /* (2) */
    if (--job->run->held == 0) {
        job->run->skipped_us = 0;
        licences_count(state, job, -1);
        resv_job(state, job, -1);
    }
    node_touch(state, node);
    job_touch(state, job);
}

static void fill_part(struct state *state, struct job_part *part, const NodeAlloc *alloc,
                      unsigned share)
{
    struct node *node = node_at(state, alloc->node);

    part->name = words_take(&state->words, node->spec->name);
    part->node = node;
    part->cpus = alloc->cpus;
    part->tasks = alloc->tasks;
    part->mem_mb = alloc->mem_mb;
    choose_cpus(node, alloc, share, &part->cpu_ids);
    part->gres = alloc->n_gres ? NEW_ARRAY(struct part_gres, alloc->n_gres) : NULL;
    part->gres_count = alloc->n_gres;
    for (size_t i = 0; i < alloc->n_gres; i++) {
        const GresAlloc *from = alloc->gres[i];
        struct node_gres *gres = gres_at(node, from->name, from->type);
        part->gres[i].name = words_take(&state->words, gres->name);
        part->gres[i].type = words_take(&state->words, gres->type);
        part->gres[i].count = from->count;
        choose_devices(node, gres, from, &part->gres[i].index);
    }
}

void alloc_take(struct state *state, struct job *job, const JobStart *start)
{
    const Allocation *allocation = start->allocation;
    const struct need *need = need_in(state, job, allocation->partition);
    struct job_run *run = mem_new(sizeof(*run) + allocation->n_nodes * sizeof(struct job_part));

    run->start_us = state->time_us;
    run->skipped_us = -state->skipped_us;
    run->partition = words_take(&state->words, allocation->partition);
    run->reservation = words_take(&state->words, allocation->reservation);
    run->whole_nodes = need->whole_nodes;
    run->shared = need->share > 1;
    run->count = (unsigned)allocation->n_nodes;
    licences_choose(state, job->shape, allocation, &run->licence);
    job->run = run;
    for (size_t i = 0; i < run->count; i++) {
        fill_part(state, &run->parts[i], allocation->nodes[i], need->share);
        alloc_hold(state, job, &run->parts[i]);
        node_touch(state, run->parts[i].node);
    }
    charge_bill(state, job);
    spare_mark(job);
}

/* ---- CPUs that a suspended job lends ---- */

void alloc_lend(struct state *state, struct job *job)
{
    job->run->lent = true;
    lent_add(state, job);
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
        if (!cpu_is_free(node, cpu, share))
            return false;
    }
    return true;
}

bool alloc_could_recall(const struct state *state, const struct job *job)
{
    const struct need *need = job->run->shared ? need_in(state, job, job->run->partition) : NULL;
    const struct partition *partition = partition_at(state, job->run->partition);
    unsigned share = need ? need->share : 1;
    struct err err = { 0 };

    for (unsigned i = 0; i < job->run->count; i++) {
        const struct job_part *part = &job->run->parts[i];
        if (!part->node)
            continue;
        if (part->node->jobs_whole || (job->run->whole_nodes && part->node->jobs_active) ||
            check_others(job, partition, part->node, &err) < 0 ||
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
        hold_cores(part->node, job->run, part);
        node_touch(state, part->node);
    }
    job->run->lent = false;
    lent_drop(state, job);
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
