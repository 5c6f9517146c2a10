/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit.c - how much of a job fits on a node, and which nodes could ever serve it
 *
 * (1) Where cores are given whole (by_core), CPUs are counted in whole cores: room->cpus and what
 *     is taken are multiples of the node's threads. The same with sockets (by_socket).
 * (2) fit_part() of what fit_tasks() allowed never takes more than the room.
 */
#include "core/shape.h"

#include <stdlib.h>
#include <string.h>

#include "core/state_priv.h"

static bool gres_matches(const struct shape_gres *want, const struct node_gres *have)
{
    return str_eq(want->name, have->name) && (!want->type || str_eq(want->type, have->type));
}

/* Of all types together; a request without a type may take from several. */
static uint64_t gres_room(const struct shape_gres *want, const struct node *node,
                          const struct room *room)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < node->gres_count; i++) {
        if (gres_matches(want, &node->gres[i]))
            sum += room->gres[i];
    }
    return sum;
}

uint32_t node_socket_count(const struct node *node)
{
    uint32_t sockets = node->spec->sockets                   ? node->spec->sockets
                       : node->found && node->found->sockets ? node->found->sockets
                                                             : 1;

    return node->cpus % sockets ? 1 : sockets;
}

uint32_t need_unit(const struct need *need, const struct node *node)
{
    if (need->by_socket && !need->whole_nodes)
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

/* CPUs that jobs of this shape leave to the system. */
static uint32_t kept_cpus(const struct shape *shape, const struct node *node)
{
    uint32_t threads = (shape->thread_spec + node->threads - 1) / node->threads * node->threads;

    return shape->core_spec * node->threads + threads;
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

static uint64_t gpus_for(const struct shape *shape, uint32_t tasks)
{
    uint64_t gpus = 0;

    for (size_t i = 0; i < shape->gres_count; i++) {
        if (str_eq(shape->gres[i].name, "gpu"))
            gpus += gres_for(shape, &shape->gres[i], 0, tasks);
    }
    return gpus;
}

static uint32_t cpus_for(const struct shape *shape, const struct need *need,
                         const struct node *node, uint32_t tasks)
{
    uint64_t cpus = (uint64_t)tasks * task_cpus(shape, node);

    if (shape->overcommit)
        cpus = MIN(cpus, node->cpus);
    if (need->tasks_per_core)
        cpus = MAX(cpus, (uint64_t)(tasks + need->tasks_per_core - 1) / need->tasks_per_core *
                             node->threads);
    cpus = MAX(cpus, shape->min_cpus_per_node);
    cpus = MAX(cpus, gpus_for(shape, tasks) * need->cpus_per_gpu);
    return whole_cores(need, node, cpus); /* (1) */
}

static uint64_t mem_for(const struct shape *shape, const struct need *need, const struct node *node,
                        uint32_t tasks, uint32_t cpus)
{
    if (need->mem_all)
        return node->mem_mb;
    if (need->mem_per_node_mb)
        return need->mem_per_node_mb;
    if (shape->mem_per_task_mb)
        return shape->mem_per_task_mb * tasks;
    if (need->mem_per_cpu_mb)
        return need->mem_per_cpu_mb * cpus;
    return need->mem_per_gpu_mb * gpus_for(shape, tasks);
}

/* Would the node with this room run so many tasks? */
static bool holds(const struct shape *shape, const struct need *need, const struct node *node,
                  const struct room *room, uint32_t tasks)
{
    uint32_t cpus = cpus_for(shape, need, node, tasks), have = room_cpus(shape, node, room);

    if (shape->overcommit)
        cpus = MIN(cpus, MAX(have, 1));
    if (cpus > have)
        return false;
    if (mem_for(shape, need, node, tasks, cpus) > room->mem_mb)
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
    if (need->tasks_per_core)
        most = MIN(most, (uint64_t)need->tasks_per_core * (cpus / node->threads));
    if (most == 0 || !holds(shape, need, node, room, 1))
        return 0;
    /* Every amount grows with the number of tasks, so the largest that holds is found by halving. */
    uint32_t lo = 1, hi = (uint32_t)most;
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

void fit_part(const struct shape *shape, const struct need *need, const struct node *node,
              const struct room *room, uint32_t before, uint32_t tasks, struct take *out)
{
    uint32_t have = room_cpus(shape, node, room);

    *out = (struct take){ .tasks = tasks };
    out->cpus = need->whole_nodes ? have : MIN(cpus_for(shape, need, node, tasks), have);
    out->mem_mb = mem_for(shape, need, node, tasks, out->cpus);
    out->mem_mb = MIN(out->mem_mb, room->mem_mb);
    take_gres(shape, need, node, room, before, tasks, out);
}

/* Needs: a shape resolved for one partition. */

static bool memory_is_counted(const struct state *state)
{
    const char *how = state->config->select_parameters;

    return how && strcasestr(how, "memory");
}

static void need_memory(const struct state *state, const struct shape *shape, struct need *need)
{
    const PartitionSpec *part = need->partition->spec;
    const Config *config = state->config;

    if (shape->mem_per_task_mb) {
        need->mem_all = false;
    } else if (shape->has_mem_per_node) {
        need->mem_per_node_mb = shape->mem_per_node_mb;
        need->mem_all = shape->mem_per_node_mb == 0;
    } else if (shape->mem_per_cpu_mb) {
        need->mem_per_cpu_mb = shape->mem_per_cpu_mb;
    } else if (shape->mem_per_gpu_mb) {
        need->mem_per_gpu_mb = shape->mem_per_gpu_mb;
    } else if (part->def_mem_per_gpu_mb && shape_gpus(shape)) {
        need->mem_per_gpu_mb = part->def_mem_per_gpu_mb;
    } else if (part->def_mem_per_node_mb) {
        need->mem_per_node_mb = part->def_mem_per_node_mb;
    } else if (part->def_mem_per_cpu_mb) {
        need->mem_per_cpu_mb = part->def_mem_per_cpu_mb;
    } else if (config->def_mem_per_gpu_mb && shape_gpus(shape)) {
        need->mem_per_gpu_mb = config->def_mem_per_gpu_mb;
    } else if (config->def_mem_per_node_mb) {
        need->mem_per_node_mb = config->def_mem_per_node_mb;
    } else if (config->def_mem_per_cpu_mb) {
        need->mem_per_cpu_mb = config->def_mem_per_cpu_mb;
    } else {
        need->mem_all = memory_is_counted(state);
    }
}

static void need_units(const struct state *state, const struct shape *shape, struct need *need)
{
    const char *how = state->config->select_parameters;
    const char *own = need->partition->spec->select_parameters;

    if (!str_is_empty(own) && !str_ieq(own, "NONE"))
        how = own;
    need->by_core = !how || !strcasestr(how, "CR_CPU");
    need->by_socket = how && strcasestr(how, "CR_Socket");
    need->max_cpus_per_node = need->partition->spec->max_cpus_per_node;
    need->max_cpus_per_socket = need->partition->spec->max_cpus_per_socket;
    need->tasks_per_core = shape->tasks_per_core;
    if (!need->tasks_per_core && how && strcasestr(how, "CR_ONE_TASK_PER_CORE"))
        need->tasks_per_core = 1;
}

/* A word of SelectTypeParameters, unless the job says otherwise. */
static bool need_word(const struct state *state, const char *word, bool asked, bool yes)
{
    const char *how = state->config->select_parameters;

    return asked ? yes : how && strcasestr(how, word);
}

static void need_sharing(const struct shape *shape, struct need *need)
{
    const struct partition *partition = need->partition;

    need->whole_nodes = shape->exclusive || partition->whole_nodes;
    need->share = 1;
    if (!need->whole_nodes && (partition->share_forced || shape->oversubscribe))
        need->share = MAX(partition->max_share, 1);
}

static bool has_structure(const struct shape *shape, const struct node *node)
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
    out->structure = has_structure(shape, node);
    out->features = features_could(&shape->features, shape->min_nodes, node);
    out->cpus = cpus_for(shape, need, node, tasks);
    out->cpus_have = room_cpus(shape, node, &room);
    out->mem_mb = mem_for(shape, need, node, tasks, (uint32_t)out->cpus);
    out->mem_have_mb = node->mem_mb;
    if (shape->overcommit)
        out->cpus = MIN(out->cpus, MAX(out->cpus_have, 1));
    for (size_t i = 0; i < shape->gres_count && i < TAKE_GRES; i++) {
        out->gres[i] = gres_for(shape, &shape->gres[i], 0, tasks);
        out->gres_have[i] = gres_room(&shape->gres[i], node, &room);
    }
}

/* Tasks that the empty node could run; 0 when it is none of the job's nodes at all. */
static uint32_t could_run(const struct shape *shape, const struct need *need,
                          const struct node *node)
{
    uint64_t totals[TAKE_GRES];
    struct room room = { need_cpus(need, node), node->mem_mb, totals, true };

    for (size_t i = 0; i < node->gres_count && i < TAKE_GRES; i++)
        totals[i] = gres_most(&node->gres[i]);
    if (node->removed || !has_structure(shape, node))
        return 0;
    if (!features_could(&shape->features, shape->min_nodes, node))
        return 0;
    return fit_tasks(shape, need, node, &room);
}

static int most_first(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x > y ? -1 : x < y;
}

/* Could all these nodes, empty, run the job? */
static bool enough_nodes(const struct shape *shape, uint32_t *tasks, size_t count, size_t listed)
{
    uint64_t sum = 0;
    size_t most = MIN(count, shape->max_nodes);

    if (count < MAX(shape->min_nodes, listed) || listed > shape->max_nodes)
        return false;
    qsort(tasks, count, sizeof(*tasks), most_first);
    for (size_t i = 0; i < most; i++)
        sum += tasks[i];
    return sum >= shape->tasks;
}

/* Are there as many nodes with each feature as are counted? */
static bool enough_counted(const struct state *state, const struct shape *shape,
                           const struct need *need)
{
    struct feature_tally tally;

    feature_tally_init(&tally, &shape->features);
    bitset_each (number, &need->nodes)
        feature_tally_add(&tally, state->nodes.items[number]);
    return tally.have == shape->features.total;
}

/* Is one of the alternatives on enough nodes? */
static bool enough_alike(const struct state *state, const struct shape *shape,
                         const struct need *need, const uint32_t *tasks, size_t listed)
{
    uint32_t *some = NEW_ARRAY(uint32_t, need->node_count + 1);
    bool good = false;

    for (size_t g = 0; g < shape->features.group_count && !good; g++) {
        size_t count = 0, at = 0;
        bitset_each (number, &need->nodes) {
            if (feature_match(shape->features.groups[g].text, state->nodes.items[number]))
                some[count++] = tasks[at];
            at++;
        }
        good = enough_nodes(shape, some, count, listed);
    }
    free(some);
    return good;
}

/* `tasks` go with need->nodes. */
static bool whole_job_fits(const struct state *state, const struct shape *shape,
                           const struct need *need, uint32_t *tasks, size_t listed)
{
    if (shape->features.one_of)
        return enough_alike(state, shape, need, tasks, listed);
    if (shape->features.group_count && !enough_counted(state, shape, need))
        return false;
    return enough_nodes(shape, tasks, need->node_count, listed);
}

static void work_out(const struct state *state, const struct shape *shape, struct need *need)
{
    struct bitset listed = { 0 }, excluded = { 0 };
    uint32_t *tasks = NEW_ARRAY(uint32_t, state->nodes.len + 1);
    size_t count = 0, missing = 0;

    bitset_init(&need->nodes, state->nodes.len);
    if (shape->nodelist && state_node_set(state, shape->nodelist, &listed, NULL) < 0)
        missing = 1;
    if (shape->exclude)
        state_node_set(state, shape->exclude, &excluded, NULL);
    need_memory(state, shape, need);
    need_sharing(shape, need);
    need->bound = need_word(state, "ENFORCE_BINDING_GRES", shape->has_bound, shape->bound);
    need->least = need_word(state, "LL_SHARED_GRES", false, false);
    need->lone = need_word(state, "ONE_TASK_PER_SHARING_GRES", shape->has_lone, shape->lone);
    need_units(state, shape, need);
    need->max_tasks = state->config->max_tasks_per_node;
    need->cpus_per_gpu = shape->cpus_per_gpu ? shape->cpus_per_gpu
                         : need->partition->spec->def_cpu_per_gpu
                             ? need->partition->spec->def_cpu_per_gpu
                             : state->config->def_cpu_per_gpu;
    bitset_each (number, &need->partition->nodes) {
        if (excluded.words && bitset_has(&excluded, number))
            continue;
        uint32_t able = could_run(shape, need, state->nodes.items[number]);
        if (able) {
            bitset_add(&need->nodes, number);
            tasks[count++] = able;
        }
    }
    if (listed.words && !bitset_within(&listed, &need->nodes))
        missing = 1;
    need->node_count = (unsigned)count;
    need->fits = !missing && whole_job_fits(state, shape, need, tasks,
                                            listed.words ? bitset_count(&listed) : 0);
    bitset_done(&listed);
    bitset_done(&excluded);
    free(tasks);
}

uint64_t state_generation(const struct state *state)
{
    return state->generation;
}

const struct need *shape_needs(const struct state *state, struct shape *shape)
{
    if (shape->needs && shape->generation == state->generation)
        return shape->needs;
    needs_free(shape);
    shape->needs = NEW_ARRAY(struct need, shape->partition_count);
    shape->generation = state->generation;
    for (size_t i = 0; i < shape->partition_count; i++) {
        struct need *need = &shape->needs[i];
        need->partition = state_partition(state, shape->partitions[i]);
        if (need->partition)
            work_out(state, shape, need);
        else
            bitset_init(&need->nodes, state->nodes.len);
    }
    return shape->needs;
}
