// SPDX-License-Identifier: Apache-2.0
/*
 * shape_gpus.c - GPUs that are asked for in several ways at once, and of more nodes than one
 *
 * (1) --gpus beside --gpus-per-node or --gpus-per-task says how many nodes or tasks there are; the
 *     request that is counted is then the smaller one. They are never added up.
 * (2) --gpus are of as few nodes as could ever hold them, at least one on each. How many that is depends on
 *     the nodes there are, so it is worked out with the needs.
 */
#include "core/shape/shapes.h"

/* Two lines, as Slurm's commands say it: what is wrong, and what that is an error of. */
static int refuse(struct err *err, const char *why)
{
    return err_set(err, ERR_GRES, "%s\n%s", why, err_text(ERR_GRES));
}

static struct shape_gres *gpus_of(struct shape *shape, GresScope scope)
{
    for (size_t i = 0; i < shape->gres_count; i++) {
        if (shape->gres[i].scope == scope && str_eq(shape->gres[i].name, "gpu"))
            return &shape->gres[i];
    }
    return NULL;
}

static bool has_gpus(const struct shape *shape)
{
    bool any = false;

    for (size_t i = 0; i < shape->gres_count; i++)
        any = any || str_eq(shape->gres[i].name, "gpu");
    return any;
}

/* A device is given whole or in shares. */
static bool has_both(const struct shape *shape)
{
    bool shares = false;

    for (size_t i = 0; i < shape->gres_count; i++)
        shares =
            shares || str_eq(shape->gres[i].name, "shard") || str_eq(shape->gres[i].name, "mps");
    return shares && has_gpus(shape);
}

static void drop_gres(struct shape *shape, struct shape_gres *gres)
{
    size_t at = (size_t)(gres - shape->gres);

    for (size_t i = at + 1; i < shape->gres_count; i++)
        shape->gres[i - 1] = shape->gres[i];
    shape->gres_count--;
}

/* Two ways of asking name the same GPUs: what has a type keeps it. */
static void same_type(struct shape_gres *stays, const struct shape_gres *goes)
{
    if (!stays->type)
        stays->type = goes->type;
}

static int gpus_of_nodes(struct shape *shape, struct err *err)
{
    struct shape_gres *all = gpus_of(shape, GRES_PER_JOB), *node = gpus_of(shape, GRES_PER_NODE);

    if (!all || !node)
        return 0;
    if (all->count % node->count)
        return refuse(err, "--gpus is not a multiple of --gpus-per-node or --gres=gpu");
    uint64_t nodes = all->count / node->count;
    if (nodes < shape->min_nodes || nodes > shape->max_nodes || nodes > LIMIT_NODES)
        return refuse(err, "--gpus and --gpus-per-node make another number of nodes than --nodes");
    shape->min_nodes = shape->max_nodes = (uint32_t)nodes;
    same_type(node, all);
    drop_gres(shape, all);
    return 0;
}

static int gpus_of_tasks(struct shape *shape, const JobSpec *spec, uint64_t *tasks, struct err *err)
{
    struct shape_gres *all = gpus_of(shape, GRES_PER_JOB), *task = gpus_of(shape, GRES_PER_TASK);
    struct shape_gres *node = gpus_of(shape, GRES_PER_NODE);

    if (!task)
        return 0;
    if (!all && !node && !spec->ntasks && !spec->ntasks_per_node)
        return refuse(err, "--gpus-per-task needs the number of tasks: --ntasks, or --gpus");
    if (all && (all->count % task->count || (*tasks && *tasks != all->count / task->count)))
        return refuse(err, "--gpus and --gpus-per-task make another number of tasks than --ntasks");
    if (all) {
        *tasks = all->count / task->count;
        shape->tasks_given = true;
        same_type(task, all);
        drop_gres(shape, all);
        return 0;
    }
    if (!node)
        return 0;
    if (node->count % task->count)
        return refuse(err, "--gpus-per-node is not a multiple of --gpus-per-task");
    uint32_t most = (uint32_t)(node->count / task->count);
    shape->tasks_per_node = shape->tasks_per_node ? MIN(shape->tasks_per_node, most) : most;
    if (!*tasks)
        *tasks = (uint64_t)shape->min_nodes * shape->tasks_per_node;
    same_type(node, task);
    drop_gres(shape, task);
    return 0;
}

/* --ntasks-per-gpu: as many tasks as the GPUs make, or as many GPUs as the tasks need. */
static int tasks_of_gpus(struct shape *shape, const JobSpec *spec, uint64_t *tasks, struct err *err)
{
    const struct shape_gres *node = gpus_of(shape, GRES_PER_NODE);
    uint64_t each = spec->ntasks_per_gpu, gpus = shape_gpus(shape);
    bool whole = gpus_of(shape, GRES_PER_JOB) && !node;

    if (!each)
        return 0;
    if (gpus_of(shape, GRES_PER_TASK))
        return refuse(err, "--gpus-per-task and --ntasks-per-gpu exclude each other");
    if (!gpus && !*tasks)
        return refuse(err, "--ntasks-per-gpu needs GPUs or a number of tasks");
    if (!gpus && *tasks % each)
        return refuse(err, "--ntasks is not a multiple of --ntasks-per-gpu");
    if (!*tasks || whole) /* they decide, whatever --ntasks says */
        *tasks = gpus * each;
    if (!gpus && shape->gres_count < TAKE_GRES)
        shape->gres[shape->gres_count++] =
            (struct shape_gres){ .name = "gpu", .count = *tasks / each, .scope = GRES_PER_JOB };
    if (whole || !gpus)
        shape->tasks_per_gpu = (uint32_t)MIN(each, LIMIT_CPUS_PER_NODE);
    if (node && !shape->tasks_per_node)
        shape->tasks_per_node = (uint32_t)MIN(node->count * each, UINT32_MAX);
    return 0;
}

/*
 * --gpus-per-socket beside others: what a node has is sockets times that, so --gpus-per-node says the
 * sockets or must agree with them, --gpus the nodes, --gpus-per-task how many tasks a socket takes.
 */
static int gpus_of_sockets(struct shape *shape, const JobSpec *spec, struct err *err)
{
    struct shape_gres *socket = gpus_of(shape, GRES_PER_SOCKET);
    struct shape_gres *all = gpus_of(shape, GRES_PER_JOB), *node = gpus_of(shape, GRES_PER_NODE);

    if (!socket)
        return 0;
    if (node && !spec->sockets_per_node && node->count % socket->count == 0)
        shape->sockets = (uint32_t)MIN(node->count / socket->count, UINT32_MAX);
    if (!shape->sockets)
        return refuse(err, "--gpus-per-socket needs --sockets-per-node");
    if (node && node->count != socket->count * shape->sockets)
        return refuse(err, "--gpus-per-node is not --gpus-per-socket times --sockets-per-node");
    if (node) {
        same_type(socket, node);
        drop_gres(shape, node);
        socket = gpus_of(shape, GRES_PER_SOCKET); /* the others moved */
        all = gpus_of(shape, GRES_PER_JOB);
    }
    if (all && all->count % (socket->count * shape->sockets))
        return refuse(err, "--gpus is not a multiple of --gpus-per-socket and --sockets-per-node");
    if (all) {
        uint64_t nodes = all->count / (socket->count * shape->sockets);
        if (nodes < shape->min_nodes || nodes > shape->max_nodes || nodes > LIMIT_NODES)
            return refuse(err, "--gpus and --gpus-per-socket make another number of nodes than "
                               "--nodes");
        shape->min_nodes = shape->max_nodes = (uint32_t)nodes;
        same_type(socket, all);
        drop_gres(shape, all);
    }
    struct shape_gres *task = gpus_of(shape, GRES_PER_TASK);
    socket = gpus_of(shape, GRES_PER_SOCKET);
    if (task && socket->count % task->count)
        return refuse(err, "--gpus-per-socket is not a multiple of --gpus-per-task");
    if (task) {
        uint32_t most = (uint32_t)MIN(socket->count / task->count * shape->sockets, UINT32_MAX);
        shape->tasks_per_node = shape->tasks_per_node ? MIN(shape->tasks_per_node, most) : most;
        same_type(socket, task);
        drop_gres(shape, task);
    }
    return 0;
}

int shape_settle_gpus(struct shape *shape, const JobSpec *spec, uint64_t *tasks, struct err *err)
{
    if (spec->cpus_per_gpu && spec->has_cpus_per_task)
        return refuse(err, "--cpus-per-gpu and --cpus-per-task exclude each other");
    if (spec->mem_per_gpu_mb && !spec->ntasks_per_gpu && !has_gpus(shape))
        return refuse(err, "--mem-per-gpu is given, but no GPU is asked for");
    if (has_both(shape))
        return refuse(err, "whole GPUs and shares of GPUs (shard, mps) exclude each other");
    int code = tasks_of_gpus(shape, spec, tasks, err);
    if (code == 0)
        code = gpus_of_sockets(shape, spec, err);
    if (code == 0)
        code = gpus_of_tasks(shape, spec, tasks, err);
    if (code == 0)
        code = gpus_of_nodes(shape, err);
    return code;
}

/* ---- what is dealt to the nodes ---- */

bool shape_has_job_gres(const struct shape *shape)
{
    for (size_t i = 0; i < shape->gres_count; i++) {
        if (shape->gres[i].scope == GRES_PER_JOB)
            return true;
    }
    return false;
}

void shape_set_nodes(struct shape *shape, uint32_t nodes)
{
    uint32_t each = shape->tasks_given ? 1 : MAX(shape->tasks_per_node, 1);

    shape->min_nodes = nodes;
    shape->tasks = (uint32_t)MAX(shape->asked_tasks, MIN((uint64_t)nodes * each, UINT32_MAX));
    shape->wish_nodes = MAX(shape->asked_wish, nodes);
    if (!shape->dealt)
        shape->units = shape->tasks;
}

static void add_also(struct shape *shape, size_t gres, uint64_t total)
{
    shape->also[shape->also_count++] = (struct shape_total){ gres, total };
}

/* GPUs of the whole job, if there are any: of the type that it has most of. Each node has some of all types. */
int shape_settle_units(struct shape *shape, struct err *err)
{
    struct shape_gres *most = NULL, *all = shape->gres;

    shape->units = shape->tasks;
    for (size_t i = 0; i < shape->gres_count; i++) {
        if (all[i].scope != GRES_PER_JOB)
            continue;
        if (all[i].count < shape->min_nodes)
            return refuse(err, "--gpus are fewer than --nodes");
        if (all[i].count > LIMIT_NODES * LIMIT_GRES_PER_NODE)
            return refuse(err, "--gpus are more than any cluster has");
        shape->max_nodes = (uint32_t)MIN(shape->max_nodes, all[i].count);
        if (!most || all[i].count > most->count)
            most = &all[i];
    }
    if (!most)
        return 0;
    if (shape->tasks_given) /* each node runs one at least */
        shape->max_nodes = MIN(shape->max_nodes, MAX(shape->tasks, shape->min_nodes));
    shape->dealt = (size_t)(most - all) + 1;
    shape->units = (uint32_t)most->count;
    shape->also = ARENA_ARRAY(shape->arena, struct shape_total, shape->gres_count + 1);
    for (size_t i = 0; i < shape->gres_count; i++) {
        if (all[i].scope == GRES_PER_JOB && &all[i] != most)
            add_also(shape, i, all[i].count);
    }
    shape->wish_nodes = MIN(shape->wish_nodes, shape->max_nodes);
    if (shape->tasks_per_gpu && shape->also_count) { /* they are where GPUs of any type are */
        shape->tasks_per_gpu = 0;
        shape->tasks_given = true;
    }
    if (!shape->tasks_per_gpu && shape->tasks_given && shape->tasks > shape->min_nodes)
        add_also(shape, TAKE_GRES, shape->tasks);
    return 0;
}
