/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - a new configuration, under running jobs
 *
 * What scontrol changed of a partition's spec stays only while its own section is as it was and no
 * reconfigure was asked. Nodes are in config_nodes.c.
 *
 * (1) Partitions whose nodes are the same keep what was worked out of them.
 * (2) Who follows the state is told what is not as it was. Where partitions have the names that they
 *     had, in the same order, they stay in their places; what is the same is not touched at all.
 * (3) Nodes that a partition names are looked for unless it named the same before and they are there.
 */
#include "core/command/config.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "core/config_change.h"
#include "schema/conf.h"
#include "schema/sections.h"
#include "wire/pb.h"

static uint64_t nodesets_hash(const Config *config)
{
    uint64_t hash = config->n_nodesets;

    for (size_t i = 0; i < config->n_nodesets; i++)
        hash = message_hash(&config->nodesets[i]->base, hash);
    return hash;
}

/* No node that there was is missing. */
static bool has_all_nodes(const struct sections *sections)
{
    const struct sections_of *of = &sections->of[SECTION_NODES];
    bool all = true;

    for (size_t i = 0; all && i < of->old_count; i++)
        all = of->now[i];
    return all;
}

/* (3) */
static bool was_there(const Config *old, size_t i, const PartitionSpec *spec)
{
    return i < old->n_partitions && str_eq(old->partitions[i]->name, spec->name) &&
           str_eq(old->partitions[i]->nodes, spec->nodes);
}

/* Does the partition, as it is, have a node that will be no more? In doubt it does. */
static bool loses_nodes(const struct state *state, const PartitionSpec *spec,
                        const struct sections *sections)
{
    const struct sections_of *of = &sections->of[SECTION_NODES];
    const struct partition *is = partition_at(state, spec->name);

    if (!is || !str_eq(is->spec->nodes, spec->nodes) || state->sections.len != of->old_count)
        return true;
    for (size_t i = 0; i < of->old_count; i++) {
        const struct node_section *section = &state->sections.items[i];
        for (uint32_t k = 0; !of->now[i] && k < section->count; k++) {
            if (bitset_has(&is->nodes, section->first + k))
                return true;
        }
    }
    return false;
}

static int look_partitions(const struct state *state, const Config *config,
                           const struct sections *sections, struct err *err)
{
    const Config *old = state ? state->config : NULL;
    bool same_sets = old && nodesets_hash(old) == nodesets_hash(config);
    bool known = same_sets && has_all_nodes(sections);

    for (size_t i = 0; i < config->n_partitions; i++) {
        const PartitionSpec *spec = config->partitions[i];
        CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
        if (str_is_empty(spec->name) || strlen(spec->name) > LIMIT_NAME_BYTES)
            return err_set(err, ERR_CONFIG, "a partition has no name");
        for (size_t k = 0; k < i; k++) {
            if (str_eq(config->partitions[k]->name, spec->name))
                return err_set(err, ERR_CONFIG, "partition '%.100s' is there twice", spec->name);
        }
        bool was = same_sets && was_there(old, i, spec);
        if (!str_is_empty(spec->nodes) &&
            !(was && (known || !loses_nodes(state, spec, sections)))) {
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
        code = look_partitions(state, config, sections, err);
    return code < 0 ? code
                    : accounts_validate(state ? state->accounts : NULL, config, sections, err);
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
        node_jobs_each(state, count_licences, NULL);
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

/* (1) */
static void take_nodes(struct partition *to, const struct partition *from)
{
    bitset_done(&to->nodes);
    bitset_init(&to->nodes, from->nodes.bits);
    bitset_or(&to->nodes, &from->nodes);
    to->total_nodes = from->total_nodes;
    to->total_cpus = from->total_cpus;
}

/* The same nodes, which have other numbers. */
static void move_nodes(const struct state *state, struct partition *to,
                       const struct partition *from, const uint32_t *moved)
{
    bitset_done(&to->nodes);
    bitset_init(&to->nodes, state->nodes.len);
    bitset_each (number, &from->nodes) {
        uint32_t at = moved[number];
        if (at != UINT32_MAX && !state->nodes.items[at]->removed)
            bitset_add(&to->nodes, at);
    }
    partition_count(state, to);
}

/* It was configured so before, each node by its name. */
static bool names_each(const Config *old, size_t i, const PartitionSpec *spec)
{
    return was_there(old, i, spec) && spec->nodes && !strcasestr(spec->nodes, "all");
}

typedef VEC(struct partition *) partition_list;

/* Another of the same nodes that has been worked out, or NULL. */
static const struct partition *with_nodes(const partition_list *list, const char *nodes)
{
    vec_each (struct partition *, at, list) {
        if ((*at)->nodes.bits && str_eq((*at)->spec->nodes, nodes))
            return *at;
    }
    return NULL;
}

/* As it is to be, without its nodes. */
static struct partition *partition_then(const struct state *state, const Config *old,
                                        const PartitionSpec *spec, bool reconfigure)
{
    const struct partition *was = partition_at(state, spec->name);
    bool keep = was && !reconfigure && same_spec(configured(old, spec->name), spec);
    struct partition *partition = partition_new(keep ? was->spec : spec);

    if (was && keeps(state->config, "KeepPartState")) {
        partition->spec->has_state = was->spec->has_state;
        partition->spec->state = was->spec->state;
    }
    return partition;
}

static bool have_places(const struct state *state, const partition_list *list)
{
    bool same = list->len == state->partitions.len;

    for (size_t i = 0; same && i < list->len; i++)
        same = str_eq(list->items[i]->spec->name, state->partitions.items[i]->spec->name);
    return same;
}

/* (2); its nodes are known unless it stays as it is. */
static unsigned put_in_place(struct state *state, const partition_list *list, bool nodes_changed)
{
    unsigned changed = 0;

    for (size_t i = 0; i < list->len; i++) {
        struct partition *is = state->partitions.items[i], *then = list->items[i];
        if (nodes_changed || !same_spec(is->spec, then->spec)) {
            struct partition old = *is;
            *is = *then;
            *then = old;
            is->number = old.number;
            is->hash = old.hash;
            partition_settle(state, is);
            changed = CHANGED_PARTITIONS;
        }
        partition_free(then);
    }
    return changed;
}

static void put_anew(struct state *state, const partition_list *list)
{
    vec_each (struct partition *, at, &state->partitions) {
        state->digest -= (*at)->hash;
        partition_free(*at);
    }
    vec_clear(&state->partitions);
    vec_each (struct partition *, at, list) {
        (*at)->number = (unsigned)state->partitions.len;
        vec_push(&state->partitions, *at);
        partition_settle(state, *at);
    }
}

/* Partitions that scontrol made are not in the file: they go with a reconfigure, as in Slurm. */
static unsigned put_partitions(struct state *state, const Config *old, bool reconfigure,
                               const struct node_change *nodes)
{
    const Config *config = state->config;
    partition_list then = { 0 }, now = { 0 };
    unsigned changed = CHANGED_ALL;
    bool other_sets = nodesets_hash(old) != nodesets_hash(config);
    bool nodes_changed = nodes->changed || other_sets; /* and so may be what names mean: */
    bool names_changed = nodes->back || other_sets || (nodes->changed && config->n_nodesets);

    if (keeps(config, "KeepPartInfo"))
        reconfigure = false;
    vec_each (struct partition *, at, &state->partitions)
        vec_push(&now, *at);
    for (size_t i = 0; i < config->n_partitions; i++) {
        struct partition *at = partition_then(state, old, config->partitions[i], reconfigure);
        const struct partition *was = names_changed ? NULL : with_nodes(&now, at->spec->nodes);
        const struct partition *like = with_nodes(&then, at->spec->nodes);
        if (like) {
            take_nodes(at, like);
        } else if (was && !nodes->renumbered) {
            take_nodes(at, was);
            if (nodes_changed) /* they may have other CPUs */
                partition_count(state, at);
        } else if (was && names_each(old, i, at->spec)) {
            move_nodes(state, at, was, nodes->moved);
        } else {
            partition_resolve(state, at, NULL);
        }
        vec_push(&then, at);
    }
    if (have_places(state, &then))
        changed = put_in_place(state, &then, nodes_changed);
    else
        put_anew(state, &then);
    vec_done(&then);
    vec_done(&now);
    return changed;
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
        node_jobs_each(state, unbind, NULL);
}

static void take_config(struct state *state, struct node_change *nodes, const Config *config,
                        const struct sections *sections, bool reconfigure, struct events *out)
{
    Config *old = state->config;
    uint64_t due = timers_partitions(state);

    state->config = config_take(config, old, sections, &state->section_hashes, &state->config_hash);
    nodes->reconfigure = reconfigure;
    node_change_do(nodes, state->config);
    unsigned changed = config_differs(old, state->config);
    changed |= (nodes->changed ? CHANGED_NODES : 0) | (nodes->renumbered ? CHANGED_NUMBERS : 0);
    changed |= put_partitions(state, old, reconfigure, nodes);
    if (nodes->changed)
        reservations_renumber(state);
    reboots_next(state);
    reservations_next(state);
    config_licences(state);
    if (state->next_job_id < state->config->first_job_id)
        state->next_job_id = state->config->first_job_id;
    if (changed)
        state->generation++;
    changed |= accounts_rebuild(state, old, sections);
    emit(out, EVENT_CONFIG)->changed = changed; /* before any that speaks of jobs */
    accrue_turn(state, out);
    timers_follow(state, due);
    unbind_running(state, old);
    config_drop(old, sections);
    reservations_follow(state, out);
}

static enum err_code put_config(struct state *state, const Config *config,
                                struct sections *sections, bool reconfigure, struct err *err,
                                struct events *out)
{
    struct node_change nodes;
    int code = look_at(&nodes, state, config, sections, err);

    if (code == 0)
        take_config(state, &nodes, config, sections, reconfigure, out);
    node_change_done(&nodes);
    sections_done(sections);
    return (enum err_code) - code;
}

enum err_code apply_config(struct state *state, const CmdConfig *cmd, struct err *err,
                           struct events *out)
{
    static const Config nothing = CONFIG__INIT;
    const Config *config = cmd->config ? cmd->config : &nothing;
    struct sections sections;

    sections_compare(&sections, state->config, config);
    return put_config(state, config, &sections, cmd->reconfigure, err, out);
}

enum err_code apply_config_change(struct state *state, const CmdConfigChange *cmd, struct err *err,
                                  struct events *out)
{
    struct sections sections = { 0 };
    Config config;

    if (cmd->base_hash != config_base_hash(state))
        return (enum err_code) -
               err_set(err, ERR_TRANSITION, "the configuration is another by now");
    int code = sections_merge(&sections, &config, state->config, cmd, err);
    if (code < 0)
        return (enum err_code) - code;
    enum err_code answer = put_config(state, &config, &sections, cmd->reconfigure, err, out);
    sections_unmerge(&config);
    if (answer == ERR_OK && cmd->has_accounts)
        state->accounts_number = cmd->accounts;
    return answer;
}
