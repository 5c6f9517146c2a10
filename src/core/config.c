/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - a new configuration, under running jobs
 *
 * Nodes keep what was decided about them (down, drain, reasons). What scontrol changed of a node's
 * or partition's spec stays only while its own section is as it was and no reconfigure was asked.
 *
 * (1) The order of nodes is the configuration's, then removed ones that still hold jobs.
 */
#include "core/state_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "core/pb.h"
#include "schema/conf.h"

/* A configuration looked at: every node and partition by name. */
struct look {
    struct map nodes; /* name → hash of the NodeSpec, as a pointer */
    struct err *err;
};

static int look_node(void *ctx, const NodeSpec *node)
{
    struct look *look = ctx;

    if (str_is_empty(node->name) || strlen(node->name) > LIMIT_HOST_NAME)
        return err_set(look->err, ERR_CONFIG, "a node has no name");
    if (map_has(&look->nodes, node->name))
        return err_set(look->err, ERR_CONFIG, "node '%.100s' is there twice", node->name);
    if (map_len(&look->nodes) >= LIMIT_NODES)
        return err_set(look->err, ERR_CONFIG, "there are more than %d nodes", LIMIT_NODES);
    if (node->cpus > LIMIT_CPUS_PER_NODE)
        return err_set(look->err, ERR_CONFIG, "node '%.100s' has too many CPUs", node->name);
    if (node->n_gres > TAKE_GRES)
        return err_set(look->err, ERR_CONFIG,
                       "node '%.100s' has more than %d kinds of generic "
                       "resources",
                       node->name, TAKE_GRES);
    map_put(&look->nodes, node->name, (void *)(uintptr_t)(message_hash(&node->base, 0) | 1));
    return 0;
}

static int look_partitions(const Config *config, struct err *err)
{
    for (size_t i = 0; i < config->n_partitions; i++) {
        const PartitionSpec *spec = config->partitions[i];
        CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
        if (str_is_empty(spec->name) || strlen(spec->name) > LIMIT_NAME_BYTES)
            return err_set(err, ERR_CONFIG, "a partition has no name");
        for (size_t k = 0; k < i; k++) {
            if (str_eq(config->partitions[k]->name, spec->name))
                return err_set(err, ERR_CONFIG, "partition '%.100s' is there twice", spec->name);
        }
        if (!str_is_empty(spec->nodes)) {
            int code = conf_hosts(config, spec->nodes, &hosts, err);
            if (code < 0)
                return code;
        }
    }
    return 0;
}

static int look_at(const Config *config, struct look *look, struct err *err)
{
    look->err = err;
    map_init(&look->nodes);
    int code = conf_each_node(config, look_node, look, err);
    if (code == 0)
        code = look_partitions(config, err);
    return code < 0 ? code : accounts_look(config, err);
}

int core_admit_config(const Config *config, struct err *err)
{
    struct look look;
    int code = look_at(config, &look, err);

    map_done(&look.nodes);
    return code;
}

static void count_licences(struct state *state, struct job *job, void *ctx)
{
    (void)ctx;
    licences_count(state, job, 1);
}

/* What is in use of those that were there is known; for a new one the jobs that hold nodes are asked. */
static bool carry_use(struct licence *from, size_t count, struct state *state)
{
    bool all = true;

    vec_each (struct licence, licence, &state->licences) {
        size_t i = 0;
        while (i < count && from[i].name != licence->name)
            i++;
        if (i < count)
            licence->used = from[i].used;
        all = all && i < count;
    }
    return all;
}

/* "matlab:10,comsol:2" */
void config_licences(struct state *state)
{
    const char *cursor = state->config->licenses;
    struct licence *old = state->licences.items;
    size_t old_count = state->licences.len;
    struct span word;

    state->licences.items = NULL;
    state->licences.len = state->licences.cap = 0;
    while (cursor && str_next(&cursor, ",", &word)) {
        char *name = arena_strndup(&state->scratch, word.ptr, word.len);
        char *colon = strpbrk(name, ":*=");
        uint64_t total = 1;
        if (colon) {
            *colon = '\0';
            if (!str_to_u64(colon + 1, UINT32_MAX, &total))
                continue;
        }
        vec_push(&state->licences, (struct licence){ .name = words_take(&state->words, name),
                                                     .total = (uint32_t)total });
    }
    if (!carry_use(old, old_count, state)) {
        vec_each (struct licence, licence, &state->licences)
            licence->used = 0;
        holding_each(state, count_licences, NULL);
    }
    for (size_t i = 0; i < old_count; i++)
        words_drop(&state->words, old[i].name);
    free(old);
}

void config_mark_removed(struct state *state)
{
    struct look look;

    look_at(state->config, &look, NULL);
    vec_each (struct node *, at, &state->nodes)
        (*at)->removed = !map_has(&look.nodes, (*at)->spec->name);
    map_done(&look.nodes);
}

struct change {
    struct state *state;
    struct look old, new;
    bool reconfigure;
    VEC(struct node *) nodes;
};

static int put_node(void *ctx, const NodeSpec *spec)
{
    struct change *change = ctx;
    struct state *state = change->state;
    struct node *node = node_at(state, spec->name);

    if (!node) {
        node = node_new(spec);
        node_first_state(state, node);
    } else {
        void *was = map_get(&change->old.nodes, spec->name);
        void *is = map_get(&change->new.nodes, spec->name);
        if (change->reconfigure || was != is || node->removed)
            node_set_spec(node, spec);
        node->removed = false;
        node_amounts(node);
    }
    vec_push(&change->nodes, node);
    node_touch(state, node);
    return 0;
}

static void forget_node(struct state *state, struct node *node)
{
    for (size_t i = 0; i < state->touched_nodes.len; i++) {
        if (state->touched_nodes.items[i] == node) {
            vec_remove(&state->touched_nodes, i);
            break;
        }
    }
    state->digest -= node->hash;
    node_free(node);
}

static void keep_or_forget(struct change *change)
{
    struct state *state = change->state;

    vec_each (struct node *, at, &state->nodes) {
        struct node *node = *at;
        if (map_has(&change->new.nodes, node->spec->name))
            continue;
        if (node->jobs.len == 0) {
            forget_node(state, node);
            continue;
        }
        node->removed = true;
        vec_push(&change->nodes, node);
    }
}

/* (1) */
static void renumber(struct change *change)
{
    struct state *state = change->state;

    vec_done(&state->nodes);
    map_done(&state->node_names);
    for (size_t i = 0; i < change->nodes.len; i++) {
        struct node *node = change->nodes.items[i];
        node->number = (uint32_t)i;
        vec_push(&state->nodes, node);
        map_put(&state->node_names, node->spec->name, node);
    }
    vec_done(&change->nodes);
}

static const PartitionSpec *configured(const Config *config, const char *name)
{
    for (size_t i = 0; i < config->n_partitions; i++) {
        if (str_eq(config->partitions[i]->name, name))
            return config->partitions[i];
    }
    return NULL;
}

static bool same_spec(const PartitionSpec *a, const PartitionSpec *b)
{
    return a && b && message_hash(&a->base, 0) == message_hash(&b->base, 0);
}

/* ReconfigFlags: KeepPartInfo, KeepPartState. */
static bool keeps(const Config *config, const char *flag)
{
    return config->reconfig_flags && strcasestr(config->reconfig_flags, flag);
}

static void put_partitions(struct state *state, const Config *old, const Config *config,
                           bool reconfigure)
{
    VEC(struct partition *) fresh = { 0 };

    if (keeps(config, "KeepPartInfo"))
        reconfigure = false;
    for (size_t i = 0; i < config->n_partitions; i++) {
        const PartitionSpec *spec = config->partitions[i];
        const struct partition *was = partition_at(state, spec->name);
        bool keep = was && !reconfigure && same_spec(configured(old, spec->name), spec);
        struct partition *partition = partition_new(keep ? was->spec : spec);
        if (was && keeps(config, "KeepPartState")) {
            partition->spec->has_state = was->spec->has_state;
            partition->spec->state = was->spec->state;
        }
        vec_push(&fresh, partition);
    }
    vec_each (struct partition *, at, &state->partitions) {
        state->digest -= (*at)->hash;
        partition_free(*at);
    }
    vec_clear(&state->partitions);
    vec_each (struct partition *, at, &fresh) {
        (*at)->number = (unsigned)state->partitions.len;
        vec_push(&state->partitions, *at);
        partition_settle(state, *at);
    }
    vec_done(&fresh);
}

/* Partitions that scontrol made are not in the file: they go with a reconfigure, as in Slurm. */
static void resolve_partitions(struct state *state)
{
    vec_each (struct partition *, at, &state->partitions)
        partition_resolve(state, *at, NULL);
}

static bool requeues(const Config *config)
{
    return !config->has_job_requeue || config->job_requeue;
}

static void unbind(struct state *state, struct job *job, void *ctx)
{
    (void)ctx;
    if (job->requeue == JOB_ASKED_NOT && !job_has_ended(job))
        job_unbind(state, job);
}

/* Jobs that did not say whether they may be requeued may be from now on; those that run did not begin so. */
static void unbind_running(struct state *state, const Config *old)
{
    if (!requeues(old) && requeues(state->config))
        holding_each(state, unbind, NULL);
}

enum err_code apply_config(struct state *state, const CmdConfig *cmd, struct err *err,
                           struct events *out)
{
    static const Config nothing = CONFIG__INIT;
    const Config *config = cmd->config ? cmd->config : &nothing;
    struct change change = { .state = state, .reconfigure = cmd->reconfigure };
    int code = look_at(config, &change.new, err);

    if (code == 0) {
        look_at(state->config, &change.old, NULL);
        Config *old = state->config;
        uint64_t due = due_partitions(state);
        state->config = pb_copy(config);
        state->config_hash = message_hash(&state->config->base, 0);
        conf_each_node(state->config, put_node, &change, NULL);
        keep_or_forget(&change);
        renumber(&change);
        put_partitions(state, old, state->config, cmd->reconfigure);
        resolve_partitions(state);
        reservations_renumber(state);
        reboots_next(state);
        reservations_next(state);
        config_licences(state);
        if (state->next_job_id < state->config->first_job_id)
            state->next_job_id = state->config->first_job_id;
        state->generation++;
        accounts_rebuild(state);
        accrue_turn(state, out);
        due_follow(state, due);
        unbind_running(state, old);
        pb_free(old);
        map_done(&change.old.nodes);
        emit(out, EVENT_CONFIG);
        reservations_follow(state, out);
    }
    map_done(&change.new.nodes);
    return (enum err_code) - code;
}
