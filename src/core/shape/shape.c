/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape.c - what a job asks for, read once and shared by all that ask the same
 *
 * The key of a shape holds every field of the spec that matters here, so a new field that the
 * planner reads needs a line in key_of().
 */
#include "core/shape.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/size.h"
#include "core/shape/shapes.h"
#include "wire/pb.h"

/* Fields in a fixed order: a bit for each that is there, then their values one after the other. */
struct key {
    struct str bytes;
    uint64_t there;
    unsigned count;
};

static void key_number(struct key *key, bool has, uint64_t value)
{
    if (has) {
        key->there |= UINT64_C(1) << key->count;
        str_add_len(&key->bytes, &value, sizeof(value));
    }
    key->count++;
}

static void key_text(struct key *key, const char *text)
{
    if (text) {
        key->there |= UINT64_C(1) << key->count;
        str_add_len(&key->bytes, text, strlen(text) + 1);
    }
    key->count++;
}

static void key_gres(struct key *key, const JobSpec *spec)
{
    key_number(key, spec->n_gres > 0, spec->n_gres);
    for (size_t i = 0; i < spec->n_gres; i++) {
        const GresRequest *gres = spec->gres[i];
        uint64_t numbers[2] = { gres->has_count ? gres->count : 1, gres->scope };
        const char *name = gres->name ? gres->name : "", *type = gres->type ? gres->type : "";
        str_add_len(&key->bytes, numbers, sizeof(numbers));
        str_add_len(&key->bytes, name, strlen(name) + 1);
        str_add_len(&key->bytes, type, strlen(type) + 1);
    }
}

/* --distribution=NODES:SOCKETS[:CORES][,…]: cyclic over the sockets, when that is said. */
static bool is_scattered(const JobSpec *spec)
{
    const char *colon = spec->distribution ? strchr(spec->distribution, ':') : NULL;

    return str_ieq(spec->hint, "memory_bound") ||
           (colon && (str_istarts(colon + 1, "cyclic") || str_istarts(colon + 1, "fcyclic")));
}

#define NUMBER(field) key_number(&key, spec->has_##field, (uint64_t)spec->field)

static struct span key_of(const JobSpec *spec, struct arena *arena)
{
    struct key key = { 0 };

    key_text(&key, spec->partition);
    key_text(&key, spec->reservation);
    key_text(&key, spec->licenses);
    key_text(&key, spec->features);
    key_text(&key, spec->prefer);
    key_text(&key, spec->nodelist);
    key_text(&key, spec->exclude);
    key_text(&key, spec->hint);
    key_text(&key, spec->tres_per_task);
    key_text(&key, spec->mcs_label);
    key_text(&key, spec->batch_features);
    key_text(&key, spec->node_sizes);
    key_gres(&key, spec);
    NUMBER(min_nodes);
    NUMBER(max_nodes);
    NUMBER(ntasks);
    NUMBER(cpus_per_task);
    NUMBER(ntasks_per_node);
    NUMBER(ntasks_per_socket);
    NUMBER(ntasks_per_core);
    NUMBER(ntasks_per_gpu);
    NUMBER(min_cpus_per_node);
    NUMBER(sockets_per_node);
    NUMBER(cores_per_socket);
    NUMBER(threads_per_core);
    NUMBER(mem_per_node_mb);
    NUMBER(mem_per_cpu_mb);
    NUMBER(mem_per_gpu_mb);
    NUMBER(tmp_disk_mb);
    NUMBER(cpus_per_gpu);
    NUMBER(contiguous);
    NUMBER(exclusive);
    NUMBER(oversubscribe);
    NUMBER(overcommit);
    NUMBER(spread_job);
    NUMBER(use_min_nodes);
    NUMBER(core_spec);
    NUMBER(thread_spec);
    NUMBER(switches);
    NUMBER(switches_wait_s);
    NUMBER(segment);
    NUMBER(spare_nodes);
    NUMBER(enforce_binding);
    NUMBER(spread_segments);
    NUMBER(one_task_per_sharing);
    NUMBER(reboot);
    key_number(&key, spec->signal_at_reservation, spec->signal_before_s);
    key_number(&key, is_scattered(spec), 1);
    str_add_len(&key.bytes, &key.there, sizeof(key.there));
    struct span out = { arena_copy(arena, key.bytes.data, key.bytes.len), key.bytes.len };
    str_done(&key.bytes);
    return out;
}

static int read_partitions(struct shape *shape, const char *text, struct err *err)
{
    const char *cursor = text;
    struct span word;
    size_t count = 0;

    while (str_next(&cursor, ",", &word))
        count++;
    if (count == 0 || count > LIMIT_JOB_PARTITIONS)
        return err_code(err, ERR_INVALID_PARTITION);
    shape->partitions = ARENA_ARRAY(shape->arena, const char *, count);
    cursor = text;
    while (str_next(&cursor, ",", &word))
        shape->partitions[shape->partition_count++] =
            arena_strndup(shape->arena, word.ptr, word.len);
    return 0;
}

uint64_t shape_gres_all(const struct shape *shape, const struct shape_gres *gres, uint64_t nodes,
                        uint64_t tasks)
{
    switch (gres->scope) {
    case GRES_PER_JOB:
        return gres->count;
    case GRES_PER_TASK:
        return gres->count * tasks;
    case GRES_PER_SOCKET:
        return gres->count * MAX(shape->sockets, 1) * nodes;
    case GRES_PER_NODE:
    default:
        return gres->count * nodes;
    }
}

uint64_t shape_gpus(const struct shape *shape)
{
    uint64_t gpus = 0;

    for (size_t i = 0; i < shape->gres_count; i++) {
        const struct shape_gres *gres = &shape->gres[i];
        if (str_eq(gres->name, "gpu"))
            gpus += shape_gres_all(shape, gres, shape->min_nodes, shape->tasks);
    }
    return gpus;
}

static void read_flags(struct shape *shape, const JobSpec *spec)
{
    /* Who keeps cores for the system on a node has the node; who has it rebooted, too. */
    shape->reboot = spec->reboot;
    shape->exclusive =
        spec->exclusive == EXCLUSIVE_NODE || spec->core_spec || spec->thread_spec || spec->reboot;
    shape->exclusive_user = spec->exclusive == EXCLUSIVE_USER;
    shape->exclusive_mcs = spec->exclusive == EXCLUSIVE_MCS;
    shape->exclusive_topo = spec->exclusive == EXCLUSIVE_TOPO;
    shape->has_bound = spec->has_enforce_binding;
    shape->bound = spec->enforce_binding;
    shape->has_lone = spec->has_one_task_per_sharing;
    shape->lone = spec->one_task_per_sharing;
    shape->spread_segments = spec->spread_segments;
    shape->oversubscribe = spec->oversubscribe;
    shape->overcommit = spec->overcommit;
    shape->contiguous = spec->contiguous;
    shape->spread = spec->spread_job;
    shape->multithread = str_ieq(spec->hint, "multithread");
    shape->scattered = is_scattered(spec);
    shape->one_thread =
        spec->threads_per_core == 1 || (spec->hint && (str_ieq(spec->hint, "nomultithread") ||
                                                       str_ieq(spec->hint, "compute_bound") ||
                                                       str_ieq(spec->hint, "memory_bound")));
}

static const char *text_or_null(struct arena *arena, const char *text)
{
    return str_is_empty(text) ? NULL : arena_strdup(arena, text);
}

/*
 * With -N 2-4 a job gets four nodes if they are free, unless it has fewer tasks, wants devices for all of
 * it together, or says otherwise.
 */
static void read_wish(struct shape *shape, const JobSpec *spec)
{
    uint32_t most = shape->min_nodes;

    if (shape->spread)
        most = shape->max_nodes;
    else if (spec->has_min_nodes && spec->has_max_nodes && !spec->use_min_nodes &&
             !shape_has_job_gres(shape))
        most = shape->max_nodes;
    if (shape->tasks_given)
        most = MIN(most, shape->tasks);
    shape->wish_nodes = MIN(MAX(most, shape->min_nodes), LIMIT_NODES);
}

bool shape_takes_nodes(const struct shape *shape, size_t count)
{
    for (size_t i = 0; i < shape->size_count; i++) {
        if (shape->sizes[i] == count)
            return true;
    }
    return !shape->size_count;
}

static int read_sizes(struct shape *shape, const JobSpec *spec, struct err *err)
{
    uint32_t *sizes = NULL;
    size_t count;

    if (str_is_empty(spec->node_sizes))
        return 0;
    if (spec->spare_nodes)
        return err_set(err, ERR_NODE_COUNT, "--nodes=%.100s does not go with nodes in reserve",
                       spec->node_sizes);
    if (size_read_list(spec->node_sizes, LIMIT_NODES, &sizes, &count, NULL) < 0)
        return err_code(err, ERR_NODE_COUNT);
    shape->sizes = arena_copy(shape->arena, sizes, count * sizeof(*sizes));
    shape->size_count = count;
    shape->min_nodes = sizes[0];
    shape->max_nodes = sizes[count - 1];
    free(sizes);
    return 0;
}

static int read_counts(struct shape *shape, const JobSpec *spec, struct err *err)
{
    uint64_t tasks = spec->ntasks;

    shape->min_nodes = MAX(spec->min_nodes, 1);
    shape->max_nodes = spec->has_max_nodes && spec->max_nodes ? spec->max_nodes : UINT32_MAX;
    int code = read_sizes(shape, spec, err);
    if (code < 0)
        return code;
    shape->min_nodes = MAX(shape->min_nodes, shape->features.total);
    if (shape->max_nodes < shape->min_nodes || shape->min_nodes > LIMIT_NODES)
        return err_code(err, ERR_NODE_COUNT);
    shape->cpus_per_task = MAX(MAX(spec->cpus_per_task, shape->cpus_per_task), 1);
    shape->tasks_per_node = spec->ntasks_per_node;
    shape->tasks_per_socket = spec->ntasks_per_socket;
    shape->tasks_per_core = spec->ntasks_per_core;
    shape->tasks_given = spec->has_ntasks && spec->ntasks;
    code = shape_settle_gpus(shape, spec, &tasks, err);
    if (code < 0)
        return code;
    if (!tasks)
        tasks = (uint64_t)shape->min_nodes * MAX(spec->ntasks_per_node, 1);
    if (shape->cpus_per_task > LIMIT_CPUS_PER_NODE)
        return err_code(err, ERR_CPU_COUNT);
    if (tasks > (uint64_t)LIMIT_NODES * LIMIT_CPUS_PER_NODE)
        return err_code(err, ERR_TASK_COUNT);
    shape->tasks = (uint32_t)MIN(tasks, UINT32_MAX);
    /* Fewer tasks than nodes: no node stays without one, as Slurm does it. */
    if (shape->tasks < shape->min_nodes && shape->tasks_given)
        shape->tasks = shape->min_nodes;
    read_wish(shape, spec);
    return 0;
}

static void read_nodes(struct shape *shape, const JobSpec *spec)
{
    shape->min_cpus_per_node = spec->min_cpus_per_node;
    shape->cpus_per_gpu = spec->cpus_per_gpu;
    shape->sockets = spec->sockets_per_node;
    shape->cores = spec->cores_per_socket;
    shape->threads = spec->threads_per_core;
    shape->mem_per_node_mb = spec->mem_per_node_mb;
    shape->has_mem_per_node = spec->has_mem_per_node_mb;
    shape->mem_per_cpu_mb = spec->mem_per_cpu_mb;
    shape->mem_per_gpu_mb = spec->mem_per_gpu_mb;
    shape->tmp_mb = spec->tmp_disk_mb;
    shape->nodelist = text_or_null(shape->arena, spec->nodelist);
    shape->exclude = text_or_null(shape->arena, spec->exclude);
    shape->reservation = text_or_null(shape->arena, spec->reservation);
    shape->batch = text_or_null(shape->arena, spec->batch_features);
    shape->mcs_label = text_or_null(shape->arena, spec->mcs_label);
    shape->core_spec = spec->core_spec;
    shape->thread_spec = spec->thread_spec;
    shape->switches = spec->switches;
    shape->switches_wait_s = spec->has_switches_wait_s ? spec->switches_wait_s : UINT32_MAX;
    shape->segment = spec->segment;
    shape->resv_warn_s = spec->signal_at_reservation ? MAX(spec->signal_before_s, 1) : 0;
}

static int read_resources(struct shape *shape, const JobSpec *spec, struct err *err)
{
    int code = shape_read_gres(shape, spec, err);

    if (code == 0)
        code = features_read(spec->features, shape->arena, &shape->features, err);
    if (code == 0)
        code = features_read(spec->prefer, shape->arena, &shape->prefer, err);
    if (code == 0)
        code = read_counts(shape, spec, err);
    if (code == 0)
        code = shape_read_spare_nodes(shape, spec, err);
    if (code == 0)
        code = shape_settle_units(shape, err);
    shape->asked_nodes = shape->min_nodes;
    shape->asked_tasks = shape->tasks;
    shape->asked_wish = shape->wish_nodes;
    return code < 0 ? code : shape_read_licences(shape, spec, err);
}

struct shape *shape_parse(const struct state *state, const JobSpec *spec, struct err *err)
{
    struct shape *shape = NEW(struct shape);

    shape->arena = NEW(struct arena);
    arena_init(shape->arena);
    shape->key = key_of(spec, shape->arena);
    read_flags(shape, spec);
    read_nodes(shape, spec);
    if (read_partitions(shape, spec->partition ? spec->partition : "", err) < 0 ||
        read_resources(shape, spec, err) < 0) {
        shape_free(shape);
        return NULL;
    }
    return shape;
}

void needs_free(struct shape *shape)
{
    for (size_t i = 0; shape->needs && i < shape->partition_count; i++) {
        struct need *need = &shape->needs[i];
        bitset_done(&need->nodes);
        for (size_t g = 0; need->alike && g < shape->features.group_count; g++)
            bitset_done(&need->alike[g]);
        free(need->alike);
    }
    free(shape->needs);
    free(shape->tres);
    shape->needs = NULL;
    shape->tres = NULL;
}

void shape_free(struct shape *shape)
{
    if (!shape)
        return;
    needs_free(shape);
    arena_done(shape->arena);
    free(shape->arena);
    free(shape);
}

struct shape *shape_find(const struct state *state, const JobSpec *spec, struct arena *arena)
{
    struct span key = key_of(spec, arena);

    return (struct shape *)intern_find(&state->shapes, key.ptr, key.len);
}

struct shape *shape_take(struct state *state, struct admitted *admitted)
{
    struct shape *shape = admitted->known;

    /* Two components of one job may bring the same new shape. */
    if (!shape)
        shape = (struct shape *)intern_find(&state->shapes, admitted->shape->key.ptr,
                                            admitted->shape->key.len);
    if (shape) {
        shape->head.refs++;
        return shape;
    }
    shape = TAKE(admitted->shape);
    intern_put(&state->shapes, &shape->head);
    return shape;
}

void shape_drop(struct state *state, struct shape *shape)
{
    if (shape && intern_drop(&state->shapes, &shape->head))
        shape_free(shape);
}

void shape_retire(struct state *state, struct shape *shape)
{
    vec_push(&state->old_shapes, shape);
}

void shapes_settle(struct state *state)
{
    vec_each (struct shape *, at, &state->old_shapes)
        shape_drop(state, *at);
    vec_clear(&state->old_shapes);
}

uint64_t shape_cpus(const struct shape *shape)
{
    uint64_t cpus =
        (uint64_t)(shape->overcommit ? shape->min_nodes : shape->tasks) * shape->cpus_per_task;

    cpus = MAX(cpus, (uint64_t)shape->min_nodes * shape->min_cpus_per_node);
    return MAX(cpus, shape_gpus(shape) * shape->cpus_per_gpu);
}

int shape_read_spare_nodes(struct shape *shape, const JobSpec *spec, struct err *err)
{
    uint32_t spare = spec->spare_nodes, nodes = shape->min_nodes;

    if (!spare)
        return 0;
    if (spec->has_max_nodes && spec->max_nodes && spec->max_nodes != nodes)
        return err_set(err, ERR_NODE_COUNT, "--spare-nodes needs one number of nodes, not a range");
    if (spare > LIMIT_NODES - nodes)
        return err_code(err, ERR_NODE_COUNT);
    for (size_t i = 0; i < shape->gres_count; i++) {
        if (shape->gres[i].scope == GRES_PER_JOB)
            return err_set(err, ERR_UNSUPPORTED,
                           "--spare-nodes needs GPUs per node or per task, not of the whole job");
    }
    uint32_t each = shape->tasks_per_node ? shape->tasks_per_node : (shape->tasks - 1) / nodes + 1;
    if ((uint64_t)each * (nodes + spare) > UINT32_MAX)
        return err_code(err, ERR_TASK_COUNT);
    shape->spare = spare;
    shape->tasks_per_node = each;
    shape->tasks = each * (nodes + spare);
    shape->min_nodes = shape->max_nodes = shape->wish_nodes = nodes + spare;
    return 0;
}

/* Nodes that have other features than the one before them: enough to know all names. */
struct feature_names {
    VEC(const struct node *) nodes;
};

static void feature_names_read(const struct state *state, struct feature_names *out)
{
    const struct node *last = NULL;

    vec_each (struct node *, node, &state->nodes) {
        if (!last || !feature_same(last, *node))
            vec_push(&out->nodes, *node);
        last = *node;
    }
}

static bool feature_is_known(const void *ctx, const char *name, size_t len)
{
    const struct feature_names *names = ctx;
    struct span span = { name, len };

    for (size_t k = 0; k < names->nodes.len; k++) {
        const struct node *node = names->nodes.items[k];
        for (size_t i = 0; i < node->spec->n_features; i++) {
            if (span_eq(span, node->spec->features[i]))
                return true;
        }
    }
    return false;
}

int features_known(const struct state *state, const struct features *features, struct err *err)
{
    struct feature_names names = { 0 };

    if (!features->plain && !features->group_count)
        return 0;
    feature_names_read(state, &names);
    int code = features_check(features, feature_is_known, &names, err);
    vec_done(&names.nodes);
    return code;
}
