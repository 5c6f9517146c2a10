/* SPDX-License-Identifier: Apache-2.0 */
/*
 * starts.c - a start that is planned, as the command says it
 *
 * All of it is of sched->plan_arena, or borrowed from nodes and shapes: valid as long as the plan. Nodes
 * that have just the same are named together: a job of 10,000 is written, logged and read at once.
 */
#include <string.h>

#include "sched/sched_priv.h"

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

/* Has a part just the same as the one before it? */
static bool is_like(const struct sched *sched, const struct chosen *part, const struct claim *claim)
{
    const struct node *node = sched->hosts.items[part->host].node;
    const struct node *before = sched->hosts.items[part[-1].host].node;

    if (part->take.cpus != part[-1].take.cpus || part->take.mem_mb != part[-1].take.mem_mb ||
        part->take.tasks != part[-1].take.tasks || node->gres_count != before->gres_count ||
        !are_same(&claim->cpus, &claim[-1].cpus))
        return false;
    for (size_t g = 0; g < node->gres_count && g < TAKE_GRES; g++) {
        if (part->take.gres[g] != part[-1].take.gres[g])
            return false;
        if (part->take.gres[g] && (!str_eq(node->gres[g].name, before->gres[g].name) ||
                                   !str_eq(node->gres[g].type, before->gres[g].type) ||
                                   !are_same(&claim->devices[g], &claim[-1].devices[g])))
            return false;
    }
    return true;
}

/* Names of nodes that have the same, behind it. */
static void add_also(struct sched *sched, NodeAlloc *to, const struct chosen *parts, size_t count)
{
    size_t len = 0;

    for (size_t i = 0; i < count; i++)
        len += strlen(sched->hosts.items[parts[i].host].node->spec->name) + 1;
    char *at = to->also = len ? arena_alloc(&sched->plan_arena, len) : NULL;
    for (size_t i = 0; i < count; i++) {
        at = stpcpy(at, sched->hosts.items[parts[i].host].node->spec->name);
        *at++ = i + 1 < count ? ',' : '\0';
    }
}

static NodeAlloc *node_alloc(struct sched *sched, const struct chosen *part,
                             const struct claim *claim)
{
    struct arena *arena = &sched->plan_arena;
    const struct node *node = sched->hosts.items[part->host].node;
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
                        const struct parts *parts, const struct flight *flight)
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
        const struct claim *claim = &flight->claims[i];
        for (like = 0; i + like + 1 < parts->list.len; like++) {
            if (!is_like(sched, part + like + 1, claim + like + 1))
                break;
        }
        NodeAlloc *node = allocation->nodes[allocation->n_nodes++] = node_alloc(sched, part, claim);
        add_also(sched, node, part + 1, like);
    }
    return start;
}
