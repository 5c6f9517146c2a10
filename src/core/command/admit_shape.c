// SPDX-License-Identifier: Apache-2.0
/*
 * admit_shape.c - may what a job asks for be had at all: names, nodes, partitions, reservations
 *
 * Part of admit.c, which says what is refused and what only waits.
 */
#include <string.h>

#include "core/command/command.h"
#include "core/resv.h"

static bool in_list(char **names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (str_ieq(names[i], name))
            return true;
    }
    return false;
}

/* A group by its name (the owner's first) or by number (any of the owner's). */
static bool in_groups(const PartitionSpec *part, const JobOwner *owner)
{
    if (part->n_allow_groups == 0 || in_list(part->allow_groups, part->n_allow_groups, "ALL"))
        return true;
    if (owner->group && in_list(part->allow_groups, part->n_allow_groups, owner->group))
        return true;
    for (size_t i = 0; i < part->n_allow_groups; i++) {
        uint64_t gid;
        if (!str_to_u64(part->allow_groups[i], UINT32_MAX, &gid))
            continue;
        if (gid == owner->gid)
            return true;
        for (size_t k = 0; k < owner->n_gids; k++) {
            if (gid == owner->gids[k])
                return true;
        }
    }
    return false;
}

static int check_access(const struct partition *partition, const JobOwner *owner,
                        const JobSpec *spec, struct err *err)
{
    const PartitionSpec *part = partition->spec;
    PartitionState state = partition_state(partition);

    if (state == PARTITION_DRAIN || state == PARTITION_INACTIVE)
        return err_code(err, ERR_PARTITION_NOT_AVAIL);
    if ((part->root_only && owner->uid != 0) || (part->disable_root && owner->uid == 0))
        return err_code(err, ERR_PERMISSION);
    if (!in_groups(part, owner))
        return err_code(err, ERR_PARTITION_GROUP);
    if (!partition_takes_account(partition, spec->account))
        return err_code(err, ERR_ACCOUNT);
    if (!partition_takes_qos(partition, spec->qos))
        return err_code(err, ERR_QOS);
    if (part->n_allow_alloc_nodes &&
        !in_list(part->allow_alloc_nodes, part->n_allow_alloc_nodes, "ALL") &&
        !in_list(part->allow_alloc_nodes, part->n_allow_alloc_nodes,
                 spec->alloc_node ? spec->alloc_node : ""))
        return err_code(err, ERR_PERMISSION);
    if (part->req_resv && str_is_empty(spec->reservation))
        return err_code(err, ERR_RESERVATION_ACCESS);
    return 0;
}

/* Partition limits; whether they refuse or only delay is EnforcePartLimits' business. */
static int check_limits(const struct state *state, const struct partition *partition,
                        const struct shape *shape, const JobSpec *spec, struct err *err)
{
    const struct qos *qos = state_qos(state, spec->qos);
    unsigned over = qos ? qos->flags : 0; /* what the job's QOS sets aside */
    const PartitionSpec *part = partition->spec;
    int64_t shortest = spec->time_min_s ? spec->time_min_s : spec->time_limit_s;

    if (part->has_max_nodes && shape->min_nodes > part->max_nodes && !(over & QOS_PART_MAX_NODES))
        return err_code(err, ERR_NODE_COUNT);
    if (shape->max_nodes < part->min_nodes && !(over & QOS_PART_MIN_NODES))
        return err_code(err, ERR_NODE_COUNT);
    if (spec->has_time_limit_s && part->max_time_s > 0 && !(over & QOS_PART_TIME) &&
        (shortest < 0 || shortest > part->max_time_s))
        return err_code(err, ERR_TIME_LIMIT);
    if ((part->max_mem_per_node_mb && shape->mem_per_node_mb > part->max_mem_per_node_mb) ||
        (part->max_mem_per_cpu_mb && shape->mem_per_cpu_mb > part->max_mem_per_cpu_mb))
        return err_code(err, ERR_TASK_MEMORY);
    return 0;
}

enum enforce { ENFORCE_NO, ENFORCE_ANY, ENFORCE_ALL };

static enum enforce enforced(const Config *config)
{
    const char *word = config->enforce_part_limits;

    if (word && (str_ieq(word, "ALL") || str_ieq(word, "YES")))
        return ENFORCE_ALL;
    return word && str_ieq(word, "ANY") ? ENFORCE_ANY : ENFORCE_NO;
}

static int check_memory(const Config *config, const struct shape *shape, struct err *err)
{
    if ((config->max_mem_per_node_mb && shape->mem_per_node_mb > config->max_mem_per_node_mb) ||
        (config->max_mem_per_cpu_mb && shape->mem_per_cpu_mb > config->max_mem_per_cpu_mb))
        return err_code(err, ERR_TASK_MEMORY);
    return 0;
}

/* What no node of the first partition could ever run. */
static int say_why(const struct state *state, const struct shape *shape, const struct need *needs,
                   struct err *err)
{
    CLEANUP(str_done) struct str why = { 0 };

    fit_why(state, shape, needs, &why);
    return err_set(err, ERR_NODE_CONFIG_UNAVAILABLE, "%s", str_text(&why));
}

/* At least one partition must take the job (with ALL: each), and one must have the nodes for it. */
static int check_partitions(const struct state *state, struct shape *shape, const JobOwner *owner,
                            const JobSpec *spec, struct err *err)
{
    enum enforce how = enforced(state->config);
    const struct need *needs = shape_needs(state, shape);
    int first_bad = 0;
    size_t good = 0, fitting = 0;
    struct err mine = { 0 };

    for (size_t i = 0; i < shape->partition_count; i++) {
        const struct partition *partition = needs[i].partition;
        if (!partition)
            return err_set(err, ERR_INVALID_PARTITION, "invalid partition specified: %.100s",
                           shape->partitions[i]);
        int code = check_access(partition, owner, spec, &mine);
        if (code == 0 && how != ENFORCE_NO)
            code = check_limits(state, partition, shape, spec, &mine);
        if (code < 0 && first_bad == 0) {
            first_bad = code;
            if (err)
                *err = mine;
        }
        if (code < 0 && how == ENFORCE_ALL)
            return code;
        good += code == 0;
        fitting += code == 0 && needs[i].fits;
    }
    if (good == 0)
        return first_bad;
    return fitting ? 0 : say_why(state, shape, needs, err);
}

static int check_features(const struct state *state, const struct shape *shape, struct err *err)
{
    int code = features_known(state, &shape->features, err);

    if (code == 0 && features_known(state, &shape->prefer, NULL) < 0)
        code = err_code(err, ERR_PREFER);
    return code;
}

static bool gres_is_known(const struct state *state, const char *name)
{
    for (size_t i = 0; i < state->config->n_gres_types; i++) {
        if (str_eq(state->config->gres_types[i], name))
            return true;
    }
    vec_each (struct node *, node, &state->nodes) {
        for (size_t i = 0; i < (*node)->gres_count; i++) {
            if (str_eq((*node)->gres[i].name, name))
                return true;
        }
    }
    return false;
}

static int check_licences(const struct state *state, const struct shape *shape, struct err *err)
{
    for (size_t i = 0; i < shape->licence_count; i++) {
        const struct shape_licence *want = &shape->licences[i];
        const struct licence *found = state_licence(state, want->name);
        if (!found)
            return err_set(err, ERR_LICENSES, "Invalid license specification: %.100s", want->name);
        if (want->count > found->total)
            return err_set(err, ERR_LICENSES,
                           "Invalid license specification: %u of %.100s are asked for, and there "
                           "are %u",
                           want->count, want->name, found->total);
    }
    return 0;
}

/* The nodes that are named must exist, and be in one of the partitions. */
static int check_nodelist(const struct state *state, const struct shape *shape, struct err *err)
{
    struct bitset set = { 0 };
    bool inside = false;

    if (shape->exclude) {
        int code = state_node_set(state, shape->exclude, &set, err);
        bitset_done(&set);
        if (code < 0)
            return code;
    }
    if (!shape->nodelist)
        return 0;
    int code = state_node_set(state, shape->nodelist, &set, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < shape->partition_count; i++) {
        const struct partition *partition = state_partition(state, shape->partitions[i]);
        inside = inside || !partition || bitset_within(&set, &partition->nodes);
    }
    size_t count = bitset_count(&set);
    bitset_done(&set);
    if (!inside)
        return err_code(err, ERR_NODES_NOT_IN_PARTITION);
    return count > shape->max_nodes ? err_code(err, ERR_NODE_COUNT) : 0;
}

static int check_reservation(const struct state *state, const struct shape *shape,
                             const JobOwner *owner, const JobSpec *spec, struct err *err)
{
    if (!shape->reservation)
        return 0;
    const char *cursor = shape->reservation;
    struct resv_access who = { .uid = owner->uid,
                               .user = owner->user,
                               .group = owner->group,
                               .gids = owner->gids,
                               .gid_count = owner->n_gids,
                               .account = spec->account,
                               .qos = spec->qos,
                               .partitions = spec->partition };
    struct span name;
    if (spec->account && owner->user)
        who.assoc = state_assoc(state, spec->account, owner->user, NULL);
    while (str_next(&cursor, ",", &name)) { /* each of them */
        const struct reservation *resv =
            state_reservation(state, arena_strndup(shape->arena, name.ptr, name.len));
        if (!resv)
            return err_set(err, ERR_RESERVATION_INVALID, "Requested reservation is invalid: %.*s",
                           (int)MIN(name.len, 100), name.ptr);
        if (!resv_admits(resv, &who))
            return err_code(err, ERR_RESERVATION_ACCESS);
    }
    return 0;
}

/* As in Slurm: names of --constraint, with & and |. */
static int check_batch(const struct shape *shape, const JobSpec *spec, struct err *err)
{
    const char *cursor = shape->batch, *of;
    struct span word, name;

    if (strpbrk(shape->batch, "[]*()"))
        return err_set(err, ERR_FEATURE, "Invalid feature specification: %.100s", shape->batch);
    while (str_next(&cursor, "&|", &word)) {
        bool found = false;
        for (of = spec->features ? spec->features : ""; str_next(&of, "&|[]()", &name);)
            found = found || (name.len >= word.len && memcmp(name.ptr, word.ptr, word.len) == 0 &&
                              (name.len == word.len || name.ptr[word.len] == '*'));
        if (!found)
            return err_set(err, ERR_FEATURE,
                           "Invalid feature specification: %.*s is not in --constraint",
                           (int)MIN(word.len, 100), word.ptr);
    }
    return 0;
}

/* Some node must have what it names. Once known, a shape is not looked up on all nodes again. */
static int check_names(const struct state *state, struct shape *shape, struct err *err)
{
    if (shape->names_known == state->generation + 1)
        return 0;
    int code = check_features(state, shape, err);
    for (size_t i = 0; i < shape->gres_count && code == 0; i++) {
        if (!gres_is_known(state, shape->gres[i].name))
            code = err_set(err, ERR_GRES, "Invalid generic resource (gres) specification: %.100s",
                           shape->gres[i].name);
    }
    if (code == 0)
        shape->names_known = state->generation + 1;
    return code;
}

int admit_check_shape(const struct state *state, struct shape *shape, const JobOwner *owner,
                      const JobSpec *spec, struct err *err)
{
    int code = check_names(state, shape, err);

    if (code == 0 && shape->batch)
        code = check_batch(shape, spec, err);
    if (code == 0 && state_has_blocks(state) && shape->segment && shape->min_nodes % shape->segment)
        code = err_set(err, ERR_NODE_COUNT, "%u nodes are not whole segments of %u",
                       shape->min_nodes, shape->segment);
    if (code == 0)
        code = check_licences(state, shape, err);
    if (code == 0)
        code = check_nodelist(state, shape, err);
    if (code == 0)
        code = check_memory(state->config, shape, err);
    if (code == 0)
        code = check_reservation(state, shape, owner, spec, err);
    return code < 0 ? code : check_partitions(state, shape, owner, spec, err);
}
