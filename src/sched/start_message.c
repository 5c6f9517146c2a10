/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start_message.c - a start that is planned, as the command says it
 *
 * All of it is of sched->plan_arena, or borrowed from nodes and shapes: valid as long as the plan. Nodes
 * that have just the same are named together: a job of 10,000 is written, logged and read at once.
 */
#include <string.h>

#include "sched/plan.h"

static char *set_text(struct sched *sched, const struct bitset *set)
{
    static const char digits[] = "0123456789";
    char *text, *at;
    size_t runs = 0;

    for (size_t bit = bitset_next(set, 0); bit < set->bits; runs++) {
        while (bit < set->bits && bitset_has(set, bit))
            bit++;
        bit = bitset_next(set, bit);
    }
    at = text = arena_alloc(&sched->plan_arena, runs * 14 + 1);
    for (size_t bit = bitset_next(set, 0); bit < set->bits; bit = bitset_next(set, bit)) {
        size_t ends[2] = { bit, bit };
        while (bit < set->bits && bitset_has(set, bit))
            ends[1] = bit++;
        if (at != text)
            *at++ = ',';
        for (int k = 0; k < 1 + (ends[1] != ends[0]); k++) {
            char number[8];
            int len = 0;
            for (size_t v = ends[k]; len == 0 || v; v /= 10)
                number[len++] = digits[v % 10];
            if (k)
                *at++ = '-';
            while (len)
                *at++ = number[--len];
        }
    }
    *at = '\0';
    return text;
}

static bool are_same(const struct bitset *a, const struct bitset *b)
{
    return a->bits == b->bits && (!a->words == !b->words) && (!a->words || bitset_eq(a, b));
}

/* Are the generic resources of the two nodes called the same, in the same order? */
static bool has_same_gres(const struct host *a, const struct host *b)
{
    if (a->kind == b->kind || (!a->node->gres_count && !b->node->gres_count))
        return true;
    if (a->node->gres_count != b->node->gres_count)
        return false;
    for (size_t g = 0; g < a->node->gres_count; g++) {
        if (!str_eq(a->node->gres[g].name, b->node->gres[g].name) ||
            !str_eq(a->node->gres[g].type, b->node->gres[g].type))
            return false;
    }
    return true;
}

/* Has a part just the same as the one before it? */
static bool is_like(const struct sched *sched, const struct chosen *part, const struct claim *claim)
{
    if (part->take.cpus != part[-1].take.cpus || part->take.mem_mb != part[-1].take.mem_mb ||
        part->take.tasks != part[-1].take.tasks || claim->device_kinds != claim[-1].device_kinds ||
        memcmp(part->take.gres, part[-1].take.gres, sizeof(part->take.gres)) != 0 ||
        !are_same(&claim->cpus, &claim[-1].cpus))
        return false;
    for (size_t g = 0; g < claim->device_kinds; g++) {
        if (part->take.gres[g] && !are_same(&claim->devices[g], &claim[-1].devices[g]))
            return false;
    }
    return has_same_gres(&sched->hosts->list.items[part->host],
                         &sched->hosts->list.items[part[-1].host]);
}

/* So many of the parts behind it have the same: their names. */
static size_t add_also(struct sched *sched, NodeAlloc *to, const struct chosen *part,
                       const struct claim *claim, size_t most)
{
    struct str *names = &sched->plan->names;
    size_t count = 0;

    str_clear(names);
    for (; count < most && is_like(sched, part + count + 1, claim + count + 1); count++) {
        if (count)
            str_add_char(names, ',');
        str_add(names, sched->hosts->list.items[part[count + 1].host].node->spec->name);
    }
    if (count)
        to->also = arena_copy(&sched->plan_arena, names->data, names->len + 1);
    return count;
}

static NodeAlloc *node_alloc(struct sched *sched, const struct chosen *part,
                             const struct claim *claim)
{
    struct arena *arena = &sched->plan_arena;
    const struct node *node = sched->hosts->list.items[part->host].node;
    NodeAlloc *out = ARENA_NEW(arena, NodeAlloc);

    node_alloc__init(out);
    out->node = node->spec->name;
    out->has_cpus = out->has_mem_mb = out->has_tasks = true;
    out->cpus = part->take.cpus;
    out->cpu_ids = set_text(sched, &claim->cpus);
    out->mem_mb = part->take.mem_mb;
    out->tasks = part->take.tasks;
    out->gres = ARENA_ARRAY(arena, GresAlloc *, node->gres_count + 1);
    for (size_t g = 0; g < node->gres_count && g < TAKE_GRES; g++) {
        if (!part->take.gres[g])
            continue;
        GresAlloc *gres = ARENA_NEW(arena, GresAlloc);
        gres_alloc__init(gres);
        gres->name = (char *)node->gres[g].name;
        gres->type = (char *)node->gres[g].type;
        gres->has_count = true;
        gres->count = part->take.gres[g];
        if (claim->devices[g].words)
            gres->index = set_text(sched, &claim->devices[g]);
        out->gres[out->n_gres++] = gres;
    }
    return out;
}

JobStart *start_message(struct sched *sched, const struct job *job, uint32_t task,
                        const struct parts *parts, const struct inflight *inflight)
{
    struct arena *arena = &sched->plan_arena;
    JobStart *start = ARENA_NEW(arena, JobStart);
    Allocation *allocation = ARENA_NEW(arena, Allocation);

    job_start__init(start);
    allocation__init(allocation);
    start->has_job_id = start->has_attempt = true;
    start->job_id = job->id;
    start->attempt = job->attempt + 1;
    start->has_array_task_id = task != NO_TASK;
    start->array_task_id = task;
    start->allocation = allocation;
    allocation->partition = parts->need->partition->spec->name;
    if (parts->resv)
        allocation->reservation = parts->resv->spec->name;
    if (job->shape->licence_any)
        allocation->licenses = (char *)(uintptr_t)job->shape->licences[parts->licence].name;
    allocation->nodes = ARENA_ARRAY(arena, NodeAlloc *, parts->list.len);
    for (size_t i = 0, like; i < parts->list.len; i += 1 + like) {
        const struct chosen *part = &parts->list.items[i];
        const struct claim *claim = &inflight->claims[i];
        NodeAlloc *node = allocation->nodes[allocation->n_nodes++] = node_alloc(sched, part, claim);
        like = add_also(sched, node, part, claim, parts->list.len - i - 1);
    }
    return start;
}
