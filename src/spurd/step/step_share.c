/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_share.c - what a step takes of one node of an allocation: CPUs, memory, devices
 *
 * (1) A step that asks for no devices has all of the job's, as in Slurm; so it waits while another
 *     has some of them, unless it overlaps.
 * (2) Devices with an index are taken by index, lowest first; others are only counted. The index of
 *     a share of a GPU is the GPU's and may belong to several steps.
 */
#include "spurd/step/step_share.h"

#include <string.h>

#include "base/bitset.h"
#include "base/limits.h"

static bool is_shared(const GresAlloc *gres)
{
    return str_eq(gres->name, "shard") || str_eq(gres->name, "mps");
}

static bool is_same(const GresAlloc *a, const GresAlloc *b)
{
    return str_eq(a->name, b->name) && str_eq(a->type, b->type);
}

static bool is_asked(const GresAlloc *have, const GresRequest *asked)
{
    return str_eq(have->name, asked->name) &&
           (str_is_empty(asked->type) || str_eq(have->type, asked->type));
}

static bool has_index(const GresAlloc *gres)
{
    return !str_is_empty(gres->index) && !is_shared(gres);
}

/* Of what the job has: the indexes that nobody uses, and how many that are. */
static uint64_t free_of(const struct step_share *share, const GresAlloc *have, bool now,
                        struct bitset *out)
{
    uint64_t taken = 0;

    if (has_index(have))
        bitset_parse(out, have->index);
    for (size_t i = 0; now && !share->request->overlap && i < share->used->steps.len; i++) {
        const StepNode *other = share->used->steps.items[i];
        for (size_t k = 0; k < other->n_gres; k++) {
            struct bitset part;
            if (!is_same(other->gres[k], have))
                continue;
            taken += other->gres[k]->count;
            if (!has_index(have) || str_is_empty(other->gres[k]->index))
                continue;
            bitset_init(&part, LIMIT_GRES_PER_NODE);
            if (bitset_parse(&part, other->gres[k]->index))
                bitset_minus(out, &part);
            bitset_done(&part);
        }
    }
    if (has_index(have))
        return bitset_count(out);
    return have->count > taken ? have->count - taken : 0;
}

static uint64_t count_free(const struct step_share *share, const GresAlloc *have, bool now)
{
    struct bitset set;

    bitset_init(&set, LIMIT_GRES_PER_NODE);
    uint64_t count = free_of(share, have, now, &set);
    bitset_done(&set);
    return count;
}

uint64_t step_share_count(const struct step_share *share, const GresRequest *gres, bool now)
{
    uint64_t count = 0;

    for (size_t i = 0; i < share->alloc->n_gres; i++) {
        if (is_asked(share->alloc->gres[i], gres))
            count += count_free(share, share->alloc->gres[i], now);
    }
    return count;
}

uint32_t step_share_tasks(const struct step_share *share, bool now)
{
    const StepRequest *request = share->request;
    uint64_t most = UINT32_MAX;

    if (request->n_gres == 0 && !request->no_gres) { /* (1) */
        for (size_t i = 0; now && i < share->alloc->n_gres; i++) {
            const GresAlloc *have = share->alloc->gres[i];
            if (count_free(share, have, true) < count_free(share, have, false))
                return 0;
        }
        return UINT32_MAX;
    }
    for (size_t i = 0; i < request->n_gres; i++) {
        const GresRequest *asked = request->gres[i];
        uint64_t count = step_share_count(share, asked, now);
        uint64_t each = asked->count;
        if (asked->scope == GRES_PER_SOCKET)
            each *= MAX(share->used->sockets, 1);
        if (each == 0)
            continue;
        if (asked->scope == GRES_PER_TASK)
            most = MIN(most, count / each);
        else if (count < (asked->scope == GRES_PER_JOB ? 1 : each))
            return 0;
    }
    return (uint32_t)most;
}

/* How many groups of `size` CPUs the job has a part of. */
static uint32_t count_groups(const struct step_share *share, uint32_t size)
{
    uint32_t cpus = MAX(share->alloc->cpus, 1), count = 0;
    size_t last = SIZE_MAX;
    struct bitset own;

    bitset_init(&own, LIMIT_CPU_NUMBER);
    if (str_is_empty(share->alloc->cpu_ids) || !bitset_parse(&own, share->alloc->cpu_ids))
        bitset_add_range(&own, 0, cpus - 1);
    bitset_each (cpu, &own) {
        count += cpu / size != last;
        last = cpu / size;
    }
    bitset_done(&own);
    return count;
}

uint32_t step_share_places(const struct step_share *share)
{
    const StepRequest *request = share->request;
    uint64_t most = UINT32_MAX;

    if (request->ntasks_per_core)
        most =
            (uint64_t)request->ntasks_per_core * count_groups(share, MAX(share->used->threads, 1));
    if (request->ntasks_per_socket)
        most = MIN(most, (uint64_t)request->ntasks_per_socket *
                             count_groups(share, share->used->per_socket ? share->used->per_socket
                                                                         : LIMIT_CPU_NUMBER));
    return (uint32_t)MIN(most, UINT32_MAX);
}

uint32_t step_share_cpus_per_task(const struct step_share *share)
{
    const StepRequest *request = share->request;
    uint32_t cpus = MAX(request->cpus_per_task, 1), threads = MAX(share->used->threads, 1);

    for (size_t i = 0; request->cpus_per_gpu && i < request->n_gres; i++) {
        const GresRequest *asked = request->gres[i];
        if (str_eq(asked->name, "gpu") && asked->scope == GRES_PER_TASK)
            cpus = MAX(cpus, (uint32_t)MIN(asked->count * request->cpus_per_gpu, UINT16_MAX));
    }
    if (request->ntasks_per_core) /* its part of a core is its own */
        cpus = MAX(cpus, threads / MIN(request->ntasks_per_core, threads));
    if (request->threads_per_core && request->threads_per_core < threads)
        cpus *= threads / request->threads_per_core; /* the other threads of its cores stay idle */
    return cpus;
}

/* Adds `count` of what the job has in one row to the step's. */
static void take_row(const struct step_share *share, const GresAlloc *have, uint64_t count,
                     bool now, struct arena *arena, StepNode *out)
{
    GresAlloc *row = NULL;
    struct bitset all, chosen;
    CLEANUP(str_done) struct str text = { 0 };

    if (count == 0)
        return;
    for (size_t i = 0; i < out->n_gres; i++)
        row = is_same(out->gres[i], have) ? out->gres[i] : row;
    if (!row) {
        row = out->gres[out->n_gres++] = ARENA_NEW(arena, GresAlloc);
        gres_alloc__init(row);
        row->name = have->name;
        row->type = have->type;
        row->has_count = true;
    }
    row->count += count;
    if (!has_index(have)) {
        row->index = have->index;
        return;
    }
    bitset_init(&all, LIMIT_GRES_PER_NODE);
    bitset_init(&chosen, LIMIT_GRES_PER_NODE);
    free_of(share, have, now, &all);
    bitset_each (index, &all) {
        if (bitset_count(&chosen) < row->count)
            bitset_add(&chosen, index);
    }
    bitset_format(&chosen, &text);
    row->index = arena_strdup(arena, str_text(&text));
    bitset_done(&all);
    bitset_done(&chosen);
}

static uint64_t has_already(const StepNode *out, const GresAlloc *have)
{
    for (size_t i = 0; i < out->n_gres; i++) {
        if (is_same(out->gres[i], have))
            return out->gres[i]->count;
    }
    return 0;
}

static void take_asked(const struct step_share *share, const GresRequest *asked, uint64_t want,
                       bool now, struct arena *arena, StepNode *out)
{
    for (size_t i = 0; want > 0 && i < share->alloc->n_gres; i++) {
        const GresAlloc *have = share->alloc->gres[i];
        if (!is_asked(have, asked))
            continue;
        uint64_t room = count_free(share, have, now), own = has_already(out, have);
        uint64_t count = MIN(want, room > own ? room - own : 0);
        take_row(share, have, count, now, arena, out);
        want -= count;
    }
}

static uint64_t wanted(const struct step_share *share, const GresRequest *asked, uint32_t tasks,
                       size_t after, uint64_t left)
{
    uint64_t free = step_share_count(share, asked, true);

    switch (asked->scope) {
    case GRES_PER_TASK:
        return asked->count * tasks;
    case GRES_PER_SOCKET:
        return asked->count * MAX(share->used->sockets, 1);
    case GRES_PER_JOB:
        /* One stays for each of the nodes that follow. */
        return left > after ? MIN(free, left - after) : MIN(left, 1);
    default:
        return asked->count;
    }
}

static void take_gres(const struct step_share *share, uint32_t tasks, size_t after, uint64_t *left,
                      bool now, struct arena *arena, StepNode *out)
{
    const StepRequest *request = share->request;

    out->gres = ARENA_ARRAY(arena, GresAlloc *, share->alloc->n_gres + 1);
    if (request->n_gres == 0 && !request->no_gres) {
        for (size_t i = 0; i < share->alloc->n_gres; i++)
            take_row(share, share->alloc->gres[i], share->alloc->gres[i]->count, false, arena, out);
        return;
    }
    for (size_t i = 0; i < request->n_gres; i++) {
        uint64_t want = wanted(share, request->gres[i], tasks, after, left[i]);
        if (request->gres[i]->scope == GRES_PER_JOB)
            left[i] -= MIN(left[i], want);
        take_asked(share, request->gres[i], want, now, arena, out);
    }
}

static uint64_t gpus_of(const StepNode *node)
{
    uint64_t count = 0;

    for (size_t i = 0; i < node->n_gres; i++)
        count += str_eq(node->gres[i]->name, "gpu") ? node->gres[i]->count : 0;
    return count;
}

static void add_used(const struct step_used *used, struct bitset *out)
{
    for (size_t i = 0; i < used->steps.len; i++) {
        struct bitset part;
        if (str_is_empty(used->steps.items[i]->cpu_ids))
            continue;
        bitset_init(&part, LIMIT_CPU_NUMBER);
        if (bitset_parse(&part, used->steps.items[i]->cpu_ids))
            bitset_or(out, &part);
        bitset_done(&part);
    }
}

/* The lowest that nobody uses; an overlapping step also has others' when these do not do. */
static void take_cpus(const struct step_share *share, struct arena *arena, StepNode *out)
{
    const NodeAlloc *alloc = share->alloc;
    CLEANUP(str_done) struct str text = { 0 };
    struct bitset own, used, chosen;

    if (str_is_empty(alloc->cpu_ids))
        return;
    bitset_init(&own, LIMIT_CPU_NUMBER);
    bitset_init(&used, LIMIT_CPU_NUMBER);
    bitset_init(&chosen, LIMIT_CPU_NUMBER);
    if (bitset_parse(&own, alloc->cpu_ids)) {
        add_used(share->used, &used);
        for (int pass = 0; pass < 2; pass++) {
            bitset_each (cpu, &own) {
                bool busy = bitset_has(&used, cpu);
                if (busy == (pass == 1) && bitset_count(&chosen) < out->cpus)
                    bitset_add(&chosen, cpu);
            }
        }
        bitset_format(&chosen, &text);
        out->cpu_ids = arena_strdup(arena, str_text(&text));
    }
    bitset_done(&own);
    bitset_done(&used);
    bitset_done(&chosen);
}

static uint64_t memory_of(const struct step_share *share, const StepNode *out)
{
    const StepRequest *request = share->request;

    if (request->mem_per_cpu_mb)
        return request->mem_per_cpu_mb * out->cpus;
    if (request->mem_per_gpu_mb)
        return request->mem_per_gpu_mb * gpus_of(out);
    return request->mem_per_node_mb;
}

bool step_share_take(const struct step_share *share, uint32_t tasks, size_t after, uint64_t *left,
                     bool now, struct arena *arena, StepNode *out)
{
    const StepRequest *request = share->request;
    const NodeAlloc *alloc = share->alloc;
    uint32_t all = MAX(alloc->cpus, 1);

    take_gres(share, tasks, after, left, now, arena, out);
    uint64_t cpus = (uint64_t)tasks * step_share_cpus_per_task(share);
    cpus = MAX(cpus, gpus_of(out) * request->cpus_per_gpu);
    out->has_cpus = out->has_mem_mb = true;
    out->cpus = request->exact ? (uint32_t)MIN(cpus, all) : all;
    take_cpus(share, arena, out);
    out->mem_mb = memory_of(share, out);
    uint64_t taken = now && !request->overlap ? share->used->mem_mb : 0;
    return !out->mem_mb || !alloc->mem_mb || taken + out->mem_mb <= alloc->mem_mb;
}
