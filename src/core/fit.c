/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit.c - how much of a job fits on a node
 *
 * (1) Where cores are given whole (by_core), CPUs are counted in whole cores: room->cpus and what
 *     is taken are multiples of the node's threads. The same with sockets (by_socket).
 * (2) fit_part() of what fit_tasks() allowed never takes more than the room.
 */
#include "core/shape.h"

#include <stdlib.h>
#include <string.h>

#include "core/state_priv.h"

bool gres_matches(const struct shape_gres *want, const struct node_gres *have)
{
    return str_eq(want->name, have->name) && (!want->type || str_eq(want->type, have->type));
}

/* Of all types together; a request without a type may take from several. Shares are of one device. */
static uint64_t gres_room(const struct shape_gres *want, const struct node *node,
                          const struct room *room)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < node->gres_count; i++) {
        if (!gres_matches(want, &node->gres[i]))
            continue;
        sum = node->gres[i].base_at ? MAX(sum, room->gres[i]) : sum + room->gres[i];
    }
    return sum;
}

uint32_t node_socket_count(const struct node *node)
{
    uint32_t sockets = node->spec->sockets                   ? node->spec->sockets
                       : node->found && node->found->sockets ? node->found->sockets
                                                             : 1;

    return node->cpu_span % sockets ? 1 : sockets;
}

uint32_t need_unit(const struct need *need, const struct node *node)
{
    /* A socket of which the system keeps a part cannot be given whole. */
    if (need->by_socket && !need->whole_nodes && !node->kept.words)
        return node->cpus / node_socket_count(node);
    return need->by_core || need->by_socket ? node->threads : 1;
}

uint32_t need_cpus(const struct need *need, const struct node *node)
{
    uint64_t most = node->cpus;

    if (need->max_cpus_per_node)
        most = MIN(most, need->max_cpus_per_node);
    if (need->max_cpus_per_socket)
        most = MIN(most, (uint64_t)need->max_cpus_per_socket * node_socket_count(node));
    return (uint32_t)most;
}

/* CPUs that jobs of this shape leave to the system, besides those that it has of the node anyway. */
static uint32_t kept_cpus(const struct shape *shape, const struct node *node)
{
    uint32_t cores = shape->core_spec + (shape->thread_spec + node->threads - 1) / node->threads;
    uint32_t kept = (node->cpu_span - node->cpus) / node->threads;

    return cores > kept ? (cores - kept) * node->threads : 0;
}

/* What the job may use of the room. */
static uint32_t room_cpus(const struct shape *shape, const struct node *node,
                          const struct room *room)
{
    uint32_t kept = kept_cpus(shape, node);

    return room->cpus > kept ? room->cpus - kept : 0;
}

/* CPUs of the node that one task's CPUs amount to. */
static uint32_t task_cpus(const struct shape *shape, const struct node *node)
{
    return shape->one_thread ? shape->cpus_per_task * node->threads : shape->cpus_per_task;
}

static uint32_t whole_cores(const struct need *need, const struct node *node, uint64_t cpus)
{
    uint64_t unit = need_unit(need, node);

    return (uint32_t)MIN((cpus + unit - 1) / unit * unit, UINT32_MAX);
}

/* The share of the first `tasks` tasks in a count for the whole job. */
static uint64_t job_share(const struct shape *shape, const struct shape_gres *gres, uint64_t tasks)
{
    return (gres->count * MIN(tasks, shape->tasks) + shape->tasks - 1) / shape->tasks;
}

/* Each task's shares are of a device of its own; of how many devices the node's shares are. */
static uint64_t lone_devices(const struct need *need, const struct shape_gres *want,
                             const struct node *node)
{
    for (size_t i = 0; need->lone && want->scope == GRES_PER_TASK && i < node->gres_count; i++) {
        const struct node_gres *base = gres_base(node, &node->gres[i]);
        if (base && gres_matches(want, &node->gres[i]))
            return base->total;
    }
    return 0;
}

/* What `tasks` tasks take here when `before` are on other nodes; 0 before gives the most. */
static uint64_t gres_for(const struct shape *shape, const struct shape_gres *gres, uint32_t before,
                         uint32_t tasks)
{
    switch (gres->scope) {
    case GRES_PER_TASK:
        return gres->count * tasks;
    case GRES_PER_SOCKET:
        return gres->count * MAX(shape->sockets, 1);
    case GRES_PER_JOB:
        return job_share(shape, gres, (uint64_t)before + tasks) - job_share(shape, gres, before);
    case GRES_PER_NODE:
    default:
        return gres->count;
    }
}

static uint64_t gpus_for(const struct shape *shape, uint32_t before, uint32_t tasks)
{
    uint64_t gpus = 0;

    for (size_t i = 0; i < shape->gres_count; i++) {
        if (str_eq(shape->gres[i].name, "gpu"))
            gpus += gres_for(shape, &shape->gres[i], before, tasks);
    }
    return gpus;
}

/* CPUs of so many tasks when only so many of them may be on one core; a core's others stay idle. */
static uint64_t apart_cpus(const struct need *need, const struct node *node, uint32_t tasks,
                           uint32_t each)
{
    uint64_t threads = node->threads, per_core = need->tasks_per_core;

    if (!per_core || (per_core >= threads && !need->by_core))
        return 0;
    if (per_core == 1)
        return tasks * ((each + threads - 1) / threads) * threads;
    return (tasks + per_core - 1) / per_core * threads;
}

uint32_t fit_socket_cpus(const struct shape *shape, const struct need *need,
                         const struct node *node, uint32_t tasks)
{
    uint64_t cpus = (uint64_t)tasks * task_cpus(shape, node);

    return whole_cores(need, node,
                       MAX(cpus, apart_cpus(need, node, tasks, task_cpus(shape, node))));
}

/* With so many tasks on a socket, its cores are given whole. */
static uint64_t cpus_by_socket(const struct shape *shape, const struct need *need,
                               const struct node *node, uint32_t tasks)
{
    uint32_t most = shape->tasks_per_socket;

    return most ? (uint64_t)(tasks / most) * fit_socket_cpus(shape, need, node, most) +
                      fit_socket_cpus(shape, need, node, tasks % most)
                : 0;
}

static uint32_t cpus_for(const struct shape *shape, const struct need *need,
                         const struct node *node, uint32_t before, uint32_t tasks)
{
    uint64_t cpus = (uint64_t)(shape->overcommit ? 1 : tasks) * task_cpus(shape, node);

    if (!shape->overcommit)
        cpus = MAX(MAX(cpus, apart_cpus(need, node, tasks, task_cpus(shape, node))),
                   cpus_by_socket(shape, need, node, tasks));
    cpus = MAX(cpus, shape->min_cpus_per_node);
    cpus = MAX(cpus, gpus_for(shape, before, tasks) * need->cpus_per_gpu);
    return whole_cores(need, node, cpus); /* (1) */
}

static uint64_t mem_for(const struct shape *shape, const struct need *need, const struct node *node,
                        uint32_t before, uint32_t tasks, uint32_t cpus)
{
    if (need->mem_all)
        return node->mem_mb;
    if (need->mem_per_node_mb)
        return need->mem_per_node_mb;
    if (shape->mem_per_task_mb)
        return shape->mem_per_task_mb * tasks;
    if (need->mem_per_cpu_mb)
        return need->mem_per_cpu_mb * (shape->one_thread ? cpus / node->threads : cpus);
    return need->mem_per_gpu_mb * gpus_for(shape, before, tasks);
}

/* Would the node with this room run so many tasks? */
static bool holds(const struct shape *shape, const struct need *need, const struct node *node,
                  const struct room *room, uint32_t tasks)
{
    uint32_t cpus = cpus_for(shape, need, node, 0, tasks), have = room_cpus(shape, node, room);

    if (cpus > have)
        return false;
    if (mem_for(shape, need, node, 0, tasks, cpus) > room->mem_mb)
        return false;
    for (size_t i = 0; i < shape->gres_count; i++) {
        uint64_t lone = lone_devices(need, &shape->gres[i], node);
        uint64_t want = lone ? shape->gres[i].count : gres_for(shape, &shape->gres[i], 0, tasks);
        if (want > gres_room(&shape->gres[i], node, room) || (lone && tasks > lone))
            return false;
    }
    return true;
}

uint32_t fit_tasks(const struct shape *shape, const struct need *need, const struct node *node,
                   const struct room *room)
{
    uint64_t most = shape->tasks;

    if ((need->whole_nodes || need->mem_all) && !room->empty)
        return 0;
    uint32_t cpus = room_cpus(shape, node, room);
    if (!shape->overcommit)
        most = MIN(most, cpus / task_cpus(shape, node));
    if (shape->tasks_per_node)
        most = MIN(most, shape->tasks_per_node);
    if (need->max_tasks)
        most = MIN(most, need->max_tasks);
    if (shape->tasks_per_socket)
        most = MIN(most, (uint64_t)shape->tasks_per_socket * node_socket_count(node));
    if (need->tasks_per_core && !shape->overcommit)
        most = MIN(most, (uint64_t)need->tasks_per_core * (cpus / node->threads));
    if (most == 0 || !holds(shape, need, node, room, 1))
        return 0;
    /* Every amount grows with the number of tasks, so the largest that holds is found by halving. */
    uint32_t lo = 1, hi = (uint32_t)most;
    if (hi > 2 && holds(shape, need, node, room, hi)) /* as it mostly does where nobody is */
        lo = hi;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo + 1) / 2;
        if (holds(shape, need, node, room, mid))
            lo = mid;
        else
            hi = mid - 1;
    }
    /* Without a number of tasks, --ntasks-per-node is what each node must run, not only a bound. */
    if (!shape->tasks_given && lo < MIN(shape->tasks_per_node, shape->tasks))
        return 0;
    return lo;
}

static void take_gres(const struct shape *shape, const struct need *need, const struct node *node,
                      const struct room *room, uint32_t before, uint32_t tasks, struct take *out)
{
    for (size_t i = 0; i < shape->gres_count; i++) {
        uint64_t want = gres_for(shape, &shape->gres[i], before, tasks);
        bool lone = lone_devices(need, &shape->gres[i], node);
        for (size_t g = 0; g < node->gres_count && g < TAKE_GRES && want; g++) {
            if (!gres_matches(&shape->gres[i], &node->gres[g]))
                continue;
            if (node->gres[g].base_at && !lone && room->gres[g] < want)
                continue; /* of a device of another type */
            uint64_t some = MIN(want, room->gres[g] - MIN(out->gres[g], room->gres[g]));
            if (lone) {
                some = want; /* room is that of one device */
                out->share_devices = tasks;
            }
            out->gres[g] += some;
            want -= some;
        }
    }
}

/* Who has a node for itself has its devices too, but those that it has shares of. */
static void take_all_gres(const struct node *node, const struct room *room, struct take *out)
{
    bool shares = false;

    for (size_t g = 0; g < node->gres_count && g < TAKE_GRES; g++)
        shares = shares || (node->gres[g].base_at && out->gres[g]);
    for (size_t g = 0; g < node->gres_count && g < TAKE_GRES && !shares; g++) {
        if (!node->gres[g].base_at)
            out->gres[g] = room->gres[g];
    }
}

void fit_part(const struct shape *shape, const struct need *need, const struct node *node,
              const struct room *room, uint32_t before, uint32_t tasks, struct take *out)
{
    uint32_t have = room_cpus(shape, node, room);

    *out = (struct take){ .tasks = tasks };
    out->cpus = need->whole_nodes ? have : MIN(cpus_for(shape, need, node, before, tasks), have);
    out->mem_mb = mem_for(shape, need, node, before, tasks, out->cpus);
    out->mem_mb = MIN(out->mem_mb, room->mem_mb);
    take_gres(shape, need, node, room, before, tasks, out);
    if (need->whole_nodes)
        take_all_gres(node, room, out);
}

bool fit_structure(const struct shape *shape, const struct node *node)
{
    const NodeSpec *spec = node->spec;

    return shape->sockets <= node_socket_count(node) &&
           (!shape->cores || shape->cores <= MAX(spec->cores_per_socket, 1)) &&
           (!shape->threads || shape->threads <= node->threads) && shape->tmp_mb <= node->tmp_mb;
}

void fit_amounts(const struct shape *shape, const struct need *need, const struct node *node,
                 uint32_t tasks, struct node_amounts *out)
{
    uint64_t totals[TAKE_GRES];
    struct room room = { need_cpus(need, node), node->mem_mb, totals, true };

    for (size_t i = 0; i < node->gres_count && i < TAKE_GRES; i++)
        totals[i] = gres_most(&node->gres[i]);
    out->structure = fit_structure(shape, node);
    out->features = features_could(&shape->features, shape->min_nodes, node);
    out->cpus = cpus_for(shape, need, node, 0, tasks);
    out->cpus_have = room_cpus(shape, node, &room);
    out->mem_mb = mem_for(shape, need, node, 0, tasks, (uint32_t)out->cpus);
    out->mem_have_mb = node->mem_mb;
    out->sockets = !shape_by_socket(shape) || fit_sockets_empty(shape, node);
    out->cpus_near = UINT32_MAX;
    if (need->bound) {
        struct take take;
        fit_part(shape, need, node, &room, 0, tasks, &take);
        out->cpus_near = near_most(node, &take);
    }
    for (size_t i = 0; i < shape->gres_count && i < TAKE_GRES; i++) {
        out->gres[i] = gres_for(shape, &shape->gres[i], 0, tasks);
        out->gres_have[i] = gres_room(&shape->gres[i], node, &room);
    }
}
