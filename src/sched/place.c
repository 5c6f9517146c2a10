/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - which nodes a job gets
 *
 * Nodes in order of weight, then number. A first pass takes them as they come; when that needs more
 * nodes than the job allows, a second takes those that hold most tasks first.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "sched/sched_priv.h"

static uint64_t less(uint64_t total, uint64_t used, uint64_t held, uint64_t freed)
{
    uint64_t taken = used + held;

    taken = taken > freed ? taken - freed : 0;
    return total > taken ? total - taken : 0;
}

void room_now(const struct sched *sched, const struct node *node, const struct held *freed,
              uint64_t gres[TAKE_GRES], struct room *room)
{
    static const struct held nothing;
    const struct held *held = &sched->held.items[node->number];
    const struct held *ends = freed ? &freed[node->number] : &nothing;

    room->cpus = (uint32_t)less(node->cpus, node->cpus_used, held->cpus, ends->cpus);
    if (node->threads > 1)
        room->cpus -= room->cpus % node->threads;
    room->mem_mb = less(node->mem_mb, node->mem_used_mb, held->mem_mb, ends->mem_mb);
    for (size_t i = 0; i < node->gres_count && i < TAKE_GRES; i++)
        gres[i] = less(node->gres[i].total, node->gres[i].used, held->gres[i], ends->gres[i]);
    room->gres = gres;
    room->empty = node->jobs.len + held->jobs <= ends->jobs;
}

/* Company that does not suit: somebody has the node for himself, or it is another user's. */
static bool company_suits(const struct sched *sched, const struct job *job, const struct need *need,
                          const struct node *node, const struct view *view, bool empty)
{
    const struct held *held = &sched->held.items[node->number];
    bool by_user = job->shape->exclusive_user || need->partition->spec->exclusive_user;

    if (empty)
        return true;
    if (need->whole_nodes || held->whole)
        return false;
    if (node->jobs_whole && !(view->freed && view->freed[node->number].whole >= node->jobs_whole))
        return false;
    for (size_t i = 0; i < node->jobs.len; i++) {
        const struct job *other = node->jobs.items[i];
        if ((by_user || other->shape->exclusive_user) && other->owner->uid != job->owner->uid)
            return false;
    }
    return true;
}

/* Is the node kept for somebody else during the time the job would run? */
static bool is_reserved(const struct sched *sched, const struct job *job, const struct node *node,
                        const struct view *view)
{
    const char *mine = job->shape->reservation;
    bool inside = !mine;

    for (size_t i = 0; i < state_reservation_count(sched->state); i++) {
        const struct reservation *r = state_reservation_at(sched->state, i);
        bool covers = bitset_has(&r->nodes, node->number);
        if (mine && strcmp(mine, r->spec->name) == 0)
            inside = covers && r->active;
        else if (covers && r->spec->start_us < view->end_us && r->spec->end_us > view->start_us)
            return true;
    }
    return !inside;
}

struct candidate {
    uint32_t node, tasks;
};

static uint32_t tasks_here(const struct sched *sched, const struct job *job,
                           const struct need *need, const struct node *node,
                           const struct view *view)
{
    uint64_t gres[TAKE_GRES];
    struct room room;

    if (!node_is_usable(node) || (view->forbidden && bitset_has(view->forbidden, node->number)) ||
        is_reserved(sched, job, node, view))
        return 0;
    room_now(sched, node, view->freed, gres, &room);
    if (!company_suits(sched, job, need, node, view, room.empty))
        return 0;
    return fit_tasks(job->shape, need, node, &room);
}

static int by_tasks(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->tasks != y->tasks)
        return x->tasks < y->tasks ? 1 : -1;
    return (x->node > y->node) - (x->node < y->node);
}

/* The nodes that the job names must all be among the chosen. */
static bool required_nodes(const struct sched *sched, const struct shape *shape, struct bitset *set)
{
    struct err err;

    if (!shape->nodelist) {
        bitset_init(set, state_node_count(sched->state));
        return true;
    }
    return state_node_set(sched->state, shape->nodelist, set, &err) == 0;
}

/* Takes candidates in their order until nodes and tasks are enough. */
static bool take(const struct sched *sched, const struct job *job, const struct need *need,
                 const struct view *view, const struct candidate *list, size_t count,
                 struct parts *parts)
{
    const struct shape *shape = job->shape;
    uint64_t tasks = 0;
    size_t used = 0;

    while (used < count && used < shape->max_nodes &&
           (used < shape->min_nodes || tasks < shape->tasks))
        tasks += list[used++].tasks;
    if (used < shape->min_nodes || tasks < shape->tasks)
        return false;
    uint32_t left = MAX(shape->tasks, (uint32_t)used), before = 0;
    for (size_t i = 0; i < used; i++) {
        const struct node *node = state_node_at(sched->state, list[i].node);
        uint32_t others = (uint32_t)(used - i - 1); /* each needs one */
        uint32_t here = MIN(list[i].tasks, left - others);
        struct chosen chosen = { .node = list[i].node };
        uint64_t gres[TAKE_GRES];
        struct room room;
        room_now(sched, node, view->freed, gres, &room);
        fit_part(shape, need, node, &room, before, here, &chosen.take);
        vec_push(&parts->list, chosen);
        before += here;
        left -= here;
    }
    return left == 0;
}

static bool place_in(const struct sched *sched, const struct job *job, const struct need *need,
                     const struct view *view, struct parts *parts)
{
    struct bitset required = { 0 };
    VEC(struct candidate) list = { 0 };
    size_t first = 0;
    bool good = required_nodes(sched, job->shape, &required);

    for (size_t i = 0; good && i < sched->order.len; i++) {
        uint32_t number = sched->order.items[i];
        bool must = bitset_has(&required, number);
        if (!bitset_has(&need->nodes, number)) {
            good = !must;
            continue;
        }
        uint32_t tasks = tasks_here(sched, job, need, state_node_at(sched->state, number), view);
        if (!tasks) {
            good = !must;
            continue;
        }
        vec_push(&list, (struct candidate){ number, tasks });
        if (must) { /* to the front */
            struct candidate moved = list.items[list.len - 1];
            memmove(&list.items[first + 1], &list.items[first],
                    (list.len - 1 - first) * sizeof(moved));
            list.items[first++] = moved;
        }
    }
    vec_clear(&parts->list);
    if (good && !take(sched, job, need, view, list.items, list.len, parts)) {
        vec_clear(&parts->list);
        qsort(list.items + first, list.len - first, sizeof(*list.items), by_tasks);
        good = take(sched, job, need, view, list.items, list.len, parts);
    }
    vec_done(&list);
    bitset_done(&required);
    return good;
}

bool place(const struct sched *sched, const struct job *job, const struct view *view,
           struct parts *parts, const struct need **found)
{
    const struct need *needs = shape_needs(sched->state, job->shape);

    for (size_t i = 0; i < job->shape->partition_count; i++) {
        const struct need *need = &needs[i];
        if (!need->partition || !need->fits || core_partition_reason(job, need))
            continue;
        if (place_in(sched, job, need, view, parts)) {
            *found = need;
            return true;
        }
    }
    return false;
}
