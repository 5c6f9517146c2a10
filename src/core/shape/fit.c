/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit.c - how much of a job fits on a node
 *
 * (1) Where cores are given whole (by_core), CPUs are counted in whole cores: room->cpus and what
 *     is taken are multiples of the node's threads. The same with sockets (by_socket).
 * (2) fit_part() of what fit_units() allowed never takes more than the room.
 * (3) What is dealt to the nodes of a job are its tasks, or GPUs of the whole job (--gpus) where it has such.
 *     These do not take from each other: a node that has the CPUs for so many tasks and for so many GPUs
 *     has room for both, for the CPUs of the one are those of the other. So it is asked for each alone.
 */
#include "core/shape.h"

#include <stdlib.h>
#include <string.h>

#include "core/shape/shapes.h"

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

uint32_t need_unit(const struct need *need, const struct node *node)
{
    /* A socket of which the system keeps a part cannot be given whole. */
    if (need->by_socket && !need->whole_nodes && !node->kept.words)
        return node->cpus / node->sockets;
    return need->by_core || need->by_socket ? node->threads : 1;
}

uint32_t need_cpus(const struct need *need, const struct node *node)
{
    uint64_t most = node->cpus;

    if (need->max_cpus_per_node)
        most = MIN(most, need->max_cpus_per_node);
    if (need->max_cpus_per_socket)
        most = MIN(most, (uint64_t)need->max_cpus_per_socket * node->sockets);
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

static uint64_t gres_for(const struct shape *shape, size_t at, const struct portion *portion)
{
    const struct shape_gres *gres = &shape->gres[at];

    switch (gres->scope) {
    case GRES_PER_TASK:
        return gres->count * portion->tasks;
    case GRES_PER_SOCKET:
        return gres->count * MAX(shape->sockets, 1);
    case GRES_PER_JOB:
        return portion->gres[at];
    case GRES_PER_NODE:
    default:
        return gres->count;
    }
}

static uint64_t gpus_for(const struct shape *shape, const struct portion *portion)
{
    uint64_t gpus = 0;

    for (size_t i = 0; i < shape->gres_count; i++) {
        if (str_eq(shape->gres[i].name, "gpu"))
            gpus += gres_for(shape, i, portion);
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
                         const struct node *node, const struct portion *portion)
{
    uint32_t tasks = portion->tasks;
    uint64_t cpus = (uint64_t)(shape->overcommit ? 1 : tasks) * task_cpus(shape, node);

    if (!shape->overcommit)
        cpus = MAX(MAX(cpus, apart_cpus(need, node, tasks, task_cpus(shape, node))),
                   cpus_by_socket(shape, need, node, tasks));
    cpus = MAX(cpus, shape->min_cpus_per_node);
    cpus = MAX(cpus, gpus_for(shape, portion) * need->cpus_per_gpu *
                         (shape->one_thread ? node->threads : 1));
    return whole_cores(need, node, cpus); /* (1) */
}

static uint64_t mem_for(const struct shape *shape, const struct need *need, const struct node *node,
                        const struct portion *portion, uint32_t cpus)
{
    if (need->mem_all)
        return node->mem_mb;
    if (need->mem_per_node_mb)
        return need->mem_per_node_mb;
    if (shape->mem_per_task_mb)
        return shape->mem_per_task_mb * portion->tasks;
    if (need->mem_per_cpu_mb)
        return need->mem_per_cpu_mb * (shape->one_thread ? cpus / node->threads : cpus);
    return need->mem_per_gpu_mb * gpus_for(shape, portion);
}

bool fit_holds(const struct shape *shape, const struct need *need, const struct node *node,
               const struct room *room, const struct portion *portion)
{
    uint32_t cpus = cpus_for(shape, need, node, portion), have = room_cpus(shape, node, room);

    if (cpus > have)
        return false;
    if (mem_for(shape, need, node, portion, cpus) > room->mem_mb)
        return false;
    for (size_t i = 0; i < shape->gres_count; i++) {
        uint64_t lone = lone_devices(need, &shape->gres[i], node);
        uint64_t want = lone ? shape->gres[i].count : gres_for(shape, i, portion);
        if (want > gres_room(&shape->gres[i], node, room) || (lone && portion->tasks > lone))
            return false;
    }
    return true;
}

/* No more tasks than this, whatever they take besides CPUs. */
static uint64_t most_tasks(const struct shape *shape, const struct need *need,
                           const struct node *node, const struct room *room)
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
        most = MIN(most, (uint64_t)shape->tasks_per_socket * node->sockets);
    if (need->tasks_per_core && !shape->overcommit)
        most = MIN(most, (uint64_t)need->tasks_per_core * (cpus / node->threads));
    return most;
}

/* A node that is asked how much of a job it holds. */
struct fitting {
    const struct shape *shape;
    const struct need *need;
    const struct node *node;
    const struct room *room;
    uint64_t most_tasks;
    struct portion portion;
};

/* So many tasks (`gres` is TASKS) or devices, with the rest as it is. */
enum { TASKS = TAKE_GRES };

static bool holds_so_many(struct fitting *f, size_t gres, uint64_t count)
{
    if (gres == TASKS)
        f->portion.tasks = (uint32_t)count;
    else
        f->portion.gres[gres] = count;
    if (gres + 1 == f->shape->dealt && f->shape->tasks_per_gpu) {
        if (count * f->shape->tasks_per_gpu > f->most_tasks)
            return false;
        f->portion.tasks = (uint32_t)count * f->shape->tasks_per_gpu;
    }
    return fit_holds(f->shape, f->need, f->node, f->room, &f->portion);
}

static uint32_t most_held(struct fitting *f, size_t gres, uint64_t most)
{
    if (most == 0 || !holds_so_many(f, gres, 1))
        return 0;
    /* Every amount grows with the number, so the largest that holds is found by halving. */
    uint32_t lo = 1, hi = (uint32_t)MIN(most, UINT32_MAX);
    if (hi > 2 && holds_so_many(f, gres, hi)) /* as it mostly does where nobody is */
        lo = hi;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo + 1) / 2;
        if (holds_so_many(f, gres, mid))
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

/* Without a number of tasks, --ntasks-per-node is what each node must run, not only a bound. */
static uint32_t least_tasks(const struct shape *shape)
{
    return shape->tasks_given ? 1 : MAX(MIN(shape->tasks_per_node, shape->tasks), 1);
}

/* With the least of everything that is for the whole job; false when the node has not even that. */
static bool fitting_init(struct fitting *f, const struct shape *shape, const struct need *need,
                         const struct node *node, const struct room *room)
{
    f->shape = shape;
    f->need = need;
    f->node = node;
    f->room = room;
    f->most_tasks = most_tasks(shape, need, node, room);
    f->portion.tasks = least_tasks(shape);
    for (size_t i = 0; shape->dealt && i < shape->gres_count; i++)
        f->portion.gres[i] = 1;
    return f->most_tasks >= f->portion.tasks;
}

static uint64_t most_devices(const struct fitting *f, size_t gres)
{
    const struct shape_gres *want = &f->shape->gres[gres];

    return MIN(want->count, gres_room(want, f->node, f->room));
}

uint32_t fit_units(const struct shape *shape, const struct need *need, const struct node *node,
                   const struct room *room)
{
    struct fitting f;

    if (!fitting_init(&f, shape, need, node, room))
        return 0;
    if (shape->dealt)
        return most_held(&f, shape->dealt - 1, most_devices(&f, shape->dealt - 1));
    uint32_t least = f.portion.tasks, tasks = most_held(&f, TASKS, f.most_tasks);
    return tasks < least ? 0 : tasks;
}

void fit_also(const struct shape *shape, const struct need *need, const struct node *node,
              const struct room *room, uint32_t *out)
{
    for (size_t i = 0; i < shape->also_count; i++) {
        struct fitting f;
        size_t gres = shape->also[i].gres;
        out[i] = 0;
        if (fitting_init(&f, shape, need, node, room))
            out[i] = most_held(&f, gres, gres == TASKS ? f.most_tasks : most_devices(&f, gres));
    }
}

void portion_of(const struct shape *shape, uint32_t units, bool least, struct portion *out)
{
    bool whole = units >= shape->units;

    out->tasks = shape->dealt ? least_tasks(shape) : units;
    for (size_t i = 0; shape->dealt && i < shape->gres_count; i++)
        out->gres[i] = i + 1 == shape->dealt ? units : 1;
    if (shape->tasks_per_gpu)
        out->tasks = units * shape->tasks_per_gpu;
    for (size_t i = 0; i < shape->also_count; i++) {
        uint64_t total = shape->also[i].total;
        uint64_t some = whole ? total : least ? 1 : MAX(total * units / shape->units, 1);
        if (shape->also[i].gres == TASKS)
            out->tasks = (uint32_t)some;
        else
            out->gres[shape->also[i].gres] = some;
    }
}

static void take_gres(const struct shape *shape, const struct need *need, const struct node *node,
                      const struct room *room, const struct portion *portion, struct take *out)
{
    for (size_t i = 0; i < shape->gres_count; i++) {
        uint64_t want = gres_for(shape, i, portion);
        bool lone = lone_devices(need, &shape->gres[i], node);
        for (size_t g = 0; g < node->gres_count && g < TAKE_GRES && want; g++) {
            if (!gres_matches(&shape->gres[i], &node->gres[g]))
                continue;
            if (node->gres[g].base_at && !lone && room->gres[g] < want)
                continue; /* of a device of another type */
            uint64_t some = MIN(want, room->gres[g] - MIN(out->gres[g], room->gres[g]));
            if (lone) {
                some = want; /* room is that of one device */
                out->share_devices = portion->tasks;
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

void fit_portion(const struct shape *shape, const struct need *need, const struct node *node,
                 const struct room *room, const struct portion *portion, struct take *out)
{
    uint32_t have = room_cpus(shape, node, room);

    *out = (struct take){ .tasks = portion->tasks };
    out->cpus = need->whole_nodes ? have : MIN(cpus_for(shape, need, node, portion), have);
    out->mem_mb = mem_for(shape, need, node, portion, out->cpus);
    out->mem_mb = MIN(out->mem_mb, room->mem_mb);
    take_gres(shape, need, node, room, portion, out);
    if (need->whole_nodes)
        take_all_gres(node, room, out);
}

void fit_part(const struct shape *shape, const struct need *need, const struct node *node,
              const struct room *room, uint32_t units, struct take *out)
{
    struct portion portion;

    portion_of(shape, units, false, &portion);
    fit_portion(shape, need, node, room, &portion, out);
}

bool fit_structure(const struct shape *shape, const struct node *node)
{
    const NodeSpec *spec = node->spec;

    return shape->sockets <= node->sockets &&
           (!shape->cores || shape->cores <= MAX(spec->cores_per_socket, 1)) &&
           (!shape->threads || shape->threads <= node->threads) && shape->tmp_mb <= node->tmp_mb;
}

void fit_amounts(const struct shape *shape, const struct need *need, const struct node *node,
                 struct node_amounts *out)
{
    uint64_t totals[TAKE_GRES];
    struct portion portion;
    struct room room = { need_cpus(need, node), node->mem_mb, totals, true };

    for (size_t i = 0; i < node->gres_count && i < TAKE_GRES; i++)
        totals[i] = gres_most(&node->gres[i]);
    portion_of(shape, shape->dealt ? 1 : least_tasks(shape), true, &portion);
    out->structure = fit_structure(shape, node);
    out->features = features_could(&shape->features, shape->min_nodes, node);
    out->cpus = cpus_for(shape, need, node, &portion);
    out->cpus_have = room_cpus(shape, node, &room);
    out->mem_mb = mem_for(shape, need, node, &portion, (uint32_t)out->cpus);
    out->mem_have_mb = node->mem_mb;
    out->sockets = !shape_by_socket(shape) || fit_sockets_empty(shape, node);
    out->cpus_near = UINT32_MAX;
    if (need->bound) {
        struct take take;
        fit_portion(shape, need, node, &room, &portion, &take);
        out->cpus_near = gres_locality_most(node, &take);
    }
    for (size_t i = 0; i < shape->gres_count && i < TAKE_GRES; i++) {
        out->gres[i] = gres_for(shape, i, &portion);
        out->gres_have[i] = gres_room(&shape->gres[i], node, &room);
    }
}
