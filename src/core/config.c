/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - a new configuration, under running jobs
 *
 * What scontrol changed of a partition's spec stays only while its own section is as it was and no
 * reconfigure was asked. Nodes are in config_nodes.c.
 *
 * (1) Partitions whose nodes are the same keep what was worked out of them.
 */
#include "core/config_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "core/pb.h"
#include "core/sections.h"
#include "schema/conf.h"

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

static int look_at(struct node_change *change, struct state *state, const Config *config,
                   const struct sections *sections, struct err *err)
{
    int code = node_change_look(change, state, config, sections, err);

    if (code == 0)
        code = look_partitions(config, err);
    return code < 0 ? code : accounts_look(state, config, sections, err);
}

int core_admit_config(const Config *config, struct err *err)
{
    struct node_change change;
    int code = look_at(&change, NULL, config, NULL, err);

    node_change_done(&change);
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

static uint64_t nodesets_hash(const Config *config)
{
    uint64_t hash = config->n_nodesets;

    for (size_t i = 0; i < config->n_nodesets; i++)
        hash = message_hash(&config->nodesets[i]->base, hash);
    return hash;
}

/* (1) */
static void take_nodes(struct partition *to, const struct partition *from)
{
    bitset_done(&to->nodes);
    bitset_init(&to->nodes, from->nodes.bits);
    bitset_or(&to->nodes, &from->nodes);
    to->total_nodes = from->total_nodes;
    to->total_cpus = from->total_cpus;
}

/* Another of the same nodes that has been worked out, or NULL. */
static const struct partition *with_nodes(const struct state *state, const char *nodes)
{
    vec_each (struct partition *, at, &state->partitions) {
        if (str_eq((*at)->spec->nodes, nodes))
            return *at;
    }
    return NULL;
}

/* Partitions that scontrol made are not in the file: they go with a reconfigure, as in Slurm. */
static void put_partitions(struct state *state, const Config *old, bool reconfigure,
                           bool nodes_changed)
{
    const Config *config = state->config;
    VEC(struct partition *) fresh = { 0 }, gone = { 0 };

    if (keeps(config, "KeepPartInfo"))
        reconfigure = false;
    for (size_t i = 0; i < config->n_partitions; i++) {
        const PartitionSpec *spec = config->partitions[i];
        const struct partition *was = partition_at(state, spec->name);
        bool keep = was && !reconfigure && same_spec(configured(old, spec->name), spec);
        struct partition *partition = partition_new(keep ? was->spec : spec);
        const struct partition *like =
            nodes_changed ? NULL : with_nodes(state, partition->spec->nodes);
        if (was && keeps(config, "KeepPartState")) {
            partition->spec->has_state = was->spec->has_state;
            partition->spec->state = was->spec->state;
        }
        if (like)
            take_nodes(partition, like);
        vec_push(&fresh, partition);
    }
    vec_each (struct partition *, at, &state->partitions) {
        state->digest -= (*at)->hash;
        vec_push(&gone, *at);
    }
    vec_clear(&state->partitions);
    vec_each (struct partition *, at, &fresh) {
        const struct partition *like = with_nodes(state, (*at)->spec->nodes);
        if (!(*at)->nodes.bits && like)
            take_nodes(*at, like);
        else if (!(*at)->nodes.bits)
            partition_resolve(state, *at, NULL);
        (*at)->number = (unsigned)state->partitions.len;
        vec_push(&state->partitions, *at);
        partition_settle(state, *at);
    }
    vec_each (struct partition *, at, &gone)
        partition_free(*at);
    vec_done(&gone);
    vec_done(&fresh);
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
    struct node_change nodes;
    struct sections sections;

    sections_compare(&sections, state->config, config);
    int code = look_at(&nodes, state, config, &sections, err);

    if (code == 0) {
        Config *old = state->config;
        uint64_t due = due_partitions(state);
        state->config =
            config_take(config, old, &sections, &state->section_hashes, &state->config_hash);
        nodes.reconfigure = cmd->reconfigure;
        node_change_do(&nodes, state->config);
        put_partitions(state, old, cmd->reconfigure,
                       nodes.changed || nodesets_hash(old) != nodesets_hash(state->config));
        if (nodes.changed)
            reservations_renumber(state);
        reboots_next(state);
        reservations_next(state);
        config_licences(state);
        if (state->next_job_id < state->config->first_job_id)
            state->next_job_id = state->config->first_job_id;
        state->generation++;
        accounts_rebuild(state, old, &sections);
        accrue_turn(state, out);
        due_follow(state, due);
        unbind_running(state, old);
        config_drop(old, &sections);
        emit(out, EVENT_CONFIG);
        reservations_follow(state, out);
    }
    node_change_done(&nodes);
    sections_done(&sections);
    return (enum err_code) - code;
}
