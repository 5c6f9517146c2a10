/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apply_partition.c - the command that makes, changes or removes a partition
 */
#include <stdlib.h>
#include <string.h>

#include "core/command/command.h"
#include "core/command/config.h"
#include "wire/pb.h"

/* Only one partition is the default. */
static void only_default(struct state *state, const struct partition *keep)
{
    vec_each (struct partition *, at, &state->partitions) {
        if (*at == keep || !(*at)->spec->is_default)
            continue;
        (*at)->spec->is_default = false;
        partition_settle(state, *at);
    }
}

static enum err_code create(struct state *state, const PartitionSpec *spec, struct err *err)
{
    struct partition *partition = partition_new(spec);
    int code = partition_resolve(state, partition, err);

    if (code < 0) {
        partition_free(partition);
        return (enum err_code) - code;
    }
    partition->number = (unsigned)state->partitions.len;
    vec_push(&state->partitions, partition);
    partition_settle(state, partition);
    if (spec->is_default)
        only_default(state, partition);
    return ERR_OK;
}

static enum err_code change(struct state *state, struct partition *partition,
                            const CmdPartition *cmd, struct err *err)
{
    PartitionSpec *spec = pb_merge(partition->spec, cmd->change, &state->scratch);

    for (size_t i = 0; i < cmd->n_clear; i++) {
        if (str_eq(cmd->clear[i], "name") || !pb_clear(spec, cmd->clear[i]))
            return (enum err_code) - err_set(err, ERR_UNKNOWN_OPTION,
                                             "a partition has no field '%.100s'", cmd->clear[i]);
    }
    struct partition *fresh = partition_new(spec);
    int code = partition_resolve(state, fresh, err);
    if (code < 0) {
        partition_free(fresh);
        return (enum err_code) - code;
    }
    fresh->number = partition->number;
    fresh->hash = partition->hash;
    struct partition old = *partition;
    *partition = *fresh;
    *fresh = old;
    partition_free(fresh);
    partition_settle(state, partition);
    if (cmd->change->is_default)
        only_default(state, partition);
    return ERR_OK;
}

static void remove_partition(struct state *state, struct partition *partition)
{
    state->digest -= partition->hash;
    vec_remove(&state->partitions, partition->number);
    for (size_t i = 0; i < state->partitions.len; i++)
        state->partitions.items[i]->number = (unsigned)i;
    partition_free(partition);
}

enum err_code apply_partition(struct state *state, const CmdPartition *cmd, struct err *err,
                              struct events *out)
{
    const char *name = cmd->change ? cmd->change->name : NULL;
    struct partition *partition = name ? partition_at(state, name) : NULL;
    enum err_code code = ERR_OK;
    unsigned changed = cmd->create || cmd->remove ? CHANGED_ALL : CHANGED_PARTITIONS;
    uint64_t due = timers_partitions(state);

    if (str_is_empty(name) || strlen(name) > LIMIT_NAME_BYTES)
        return ERR_INVALID_PARTITION;
    if (cmd->create)
        code = partition ? ERR_EXISTS : create(state, cmd->change, err);
    else if (!partition)
        return ERR_INVALID_PARTITION;
    else if (cmd->remove && billing_groups_use(state, name))
        return ERR_PARTITION_IN_USE;
    else if (cmd->remove)
        remove_partition(state, partition);
    else
        code = change(state, partition, cmd, err);
    if (code != ERR_OK)
        return code;
    state->generation++;
    changed |= accounts_follow(state);
    reservations_follow(state, out);
    timers_follow(state, due);
    struct event *event = emit(out, EVENT_PARTITION);
    event->text = arena_strdup(&out->arena, name);
    event->changed = changed;
    return ERR_OK;
}
