/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts.c - accounts, associations and QOS of the state
 *
 * What they are is in src/policy; a new configuration is taken in accounts_change.c.
 */
#include "core/policy/policy.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* ---- finding ---- */

const struct assoc *state_assoc(const struct state *state, const char *account, const char *user,
                                const char *partition)
{
    const struct assoc *assoc = NULL;

    if (partition && user)
        assoc = assoc_get(state->accounts, account, user, partition);
    return assoc ? assoc : assoc_get(state->accounts, account, user, NULL);
}

const struct qos *state_qos(const struct state *state, const char *name)
{
    return name ? map_get(&state->accounts->qos_names, name) : NULL;
}

unsigned state_enforce(const struct state *state)
{
    return state->accounts->enforce;
}

const struct tres *state_tres(const struct state *state, size_t *count)
{
    *count = state->accounts->tres_count;
    return state->accounts->tres;
}

size_t state_assoc_count(const struct state *state)
{
    return state->accounts->assocs.len;
}

const struct assoc *state_assoc_at(const struct state *state, size_t number)
{
    return state->accounts->assocs.items[number];
}

size_t state_qos_count(const struct state *state)
{
    return state->accounts->qos.len;
}

const struct qos *state_qos_at(const struct state *state, size_t number)
{
    return state->accounts->qos.items[number];
}

size_t state_holder_count(const struct state *state)
{
    return state->accounts->holders;
}

const struct qos *partition_qos(const struct state *state, const struct partition *partition)
{
    return partition && !str_is_empty(partition->spec->qos) ? state_qos(state, partition->spec->qos)
                                                            : NULL;
}

struct holder *accounts_holder(const struct state *state, const char *account, const char *user,
                               const char *partition, const char *qos, struct assoc **assoc)
{
    if (qos) {
        struct qos *found = map_get(&state->accounts->qos_names, qos);
        return found ? &found->holder : NULL;
    }
    *assoc = account ? assoc_get(state->accounts, account, user, partition) : NULL;
    return *assoc ? &(*assoc)->holder : NULL;
}

/* ---- all of them ---- */

void accounts_replace(struct state *state)
{
    vec_each (struct assoc *, at, &state->accounts->assocs)
        state->digest -= (*at)->holder.hash;
    vec_each (struct qos *, at, &state->accounts->qos)
        state->digest -= (*at)->holder.hash;
    accrue_clear(state->accounts);
    accounts_free(state->accounts);
    state->accounts = accounts_new(state->config);
    accounts_see_partitions(state);
    accounts_hash_all(state);
}

void accounts_hash_all(struct state *state)
{
    vec_each (struct assoc *, at, &state->accounts->assocs)
        holder_rehash(state, &(*at)->holder);
    vec_each (struct qos *, at, &state->accounts->qos)
        holder_rehash(state, &(*at)->holder);
}

void accounts_see_partitions(struct state *state)
{
    struct accounts *accounts = state->accounts;

    map_clear(&accounts->part_qos);
    vec_each (struct partition *, at, &state->partitions) {
        const struct qos *qos = partition_qos(state, *at);
        if (qos)
            map_put(&accounts->part_qos, (*at)->spec->name, (void *)(uintptr_t)qos);
    }
}
