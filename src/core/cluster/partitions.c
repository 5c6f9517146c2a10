/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partitions.c - partition records and the commands that change them
 */
#include "core/cluster/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "schema/conf.h"
#include "wire/pb.h"

enum { DEFAULT_SHARE = 4, MOST_SHARE = 255 };

/* OverSubscribe: NO, YES[:N], FORCE[:N], EXCLUSIVE. */
static void read_sharing(struct partition *partition)
{
    const char *text = partition->spec->oversubscribe;
    uint64_t most = DEFAULT_SHARE;

    partition->max_share = 1;
    partition->share_forced = partition->whole_nodes = false;
    if (str_is_empty(text) || str_istarts(text, "NO"))
        return;
    if (str_ieq(text, "EXCLUSIVE")) {
        partition->whole_nodes = true;
        return;
    }
    const char *colon = strchr(text, ':');
    if (colon && !str_to_u64(colon + 1, MOST_SHARE, &most))
        most = MOST_SHARE;
    partition->max_share = (unsigned)MAX(most, 1);
    partition->share_forced = str_istarts(text, "FORCE");
}

struct partition *partition_new(const PartitionSpec *spec)
{
    struct partition *partition = NEW(struct partition);

    partition->spec = pb_copy(spec);
    read_sharing(partition);
    return partition;
}

void partition_free(struct partition *partition)
{
    if (!partition)
        return;
    pb_free(partition->spec);
    bitset_done(&partition->nodes);
    free(partition);
}

static bool in_list(char **names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (str_ieq(names[i], name))
            return true;
    }
    return false;
}

/* What is allowed says all; only without it does what is denied count. */
static bool takes(char **allow, size_t allow_count, char **deny, size_t deny_count,
                  const char *name)
{
    if (allow_count)
        return in_list(allow, allow_count, name ? name : "") || in_list(allow, allow_count, "ALL");
    return !in_list(deny, deny_count, name ? name : "");
}

bool partition_takes_account(const struct partition *partition, const char *account)
{
    const PartitionSpec *part = partition->spec;

    return takes(part->allow_accounts, part->n_allow_accounts, part->deny_accounts,
                 part->n_deny_accounts, account);
}

bool partition_takes_qos(const struct partition *partition, const char *qos)
{
    const PartitionSpec *part = partition->spec;

    return takes(part->allow_qos, part->n_allow_qos, part->deny_qos, part->n_deny_qos, qos);
}

PartitionState partition_state(const struct partition *partition)
{
    return partition->spec->has_state ? partition->spec->state : PARTITION_UP;
}

unsigned partition_tier(const struct partition *partition)
{
    return partition->spec->has_priority_tier ? partition->spec->priority_tier : 1;
}

void partition_count(const struct state *state, struct partition *partition)
{
    partition->total_nodes = partition->total_cpus = 0;
    bitset_each (number, &partition->nodes) {
        partition->total_nodes++;
        partition->total_cpus += state->nodes.items[number]->cpus;
    }
}

int partition_resolve(const struct state *state, struct partition *partition, struct err *err)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
    const char *text = partition->spec->nodes;

    bitset_done(&partition->nodes);
    bitset_init(&partition->nodes, state->nodes.len);
    if (!str_is_empty(text)) { /* who does not ask for an error has looked at it */
        int code = (err ? conf_hosts : conf_hosts_named)(state->config, text, &hosts, err);
        if (code < 0)
            return code;
    }
    hostlist_each (host, &hosts) {
        const struct node *node = map_get_len(&state->node_names, host.name, host.len);
        if (node && !node->removed)
            bitset_add(&partition->nodes, node->number);
    }
    partition_count(state, partition);
    return 0;
}

void partition_settle(struct state *state, struct partition *partition)
{
    state->digest -= partition->hash;
    partition->hash = partition_hash(partition);
    state->digest += partition->hash;
}
