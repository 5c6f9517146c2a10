/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts_change.c - accounts under another configuration
 *
 * First it is found out who goes, who moves and whose jobs belong to others from now on; those are
 * counted out. Then the tables are changed, and those jobs are counted in again. All others, their
 * counters and their usage are not touched: a change costs what it changes, and a look at the
 * sections. It gives the same as if all had been made from nothing; test_accounts.c compares.
 */
#include <stdlib.h>
#include <string.h>

#include "core/policy/policy.h"
#include "policy/change.h"

/* ---- who goes, who moves ---- */

/* The name of the QOS that a partition has then; NULL: none. */
static const char *qos_then(const struct change *change, const struct partition *partition)
{
    const char *name = partition->spec->qos;
    const struct qos *qos = str_is_empty(name) ? NULL : map_get(&change->accounts->qos_names, name);

    if (qos ? qos->mark & MARK_GONE : !name || !map_has(&change->new_qos, name))
        return NULL;
    return name;
}

static void find_partitions(const struct state *state, struct change *change)
{
    struct map *was = &change->accounts->part_qos;

    vec_each (struct partition *, at, &state->partitions) {
        const struct qos *old = map_get(was, (*at)->spec->name);
        if (!str_eq(qos_then(change, *at), old ? old->name : NULL))
            map_put(&change->parts, (*at)->spec->name, change);
    }
    map_each (entry, was) {
        if (!partition_at(state, entry->key))
            map_put(&change->parts, entry->key, change);
    }
    change->binds = change->binds || map_len(&change->parts);
    change->binds_any = change->binds_any || map_len(&change->parts);
}

/* ---- jobs that belong to others ---- */

static bool has(const struct map *names, const char *name)
{
    return map_len(names) && map_has(names, name);
}

/* Is the QOS of the partition another for them? While it is their own it is nothing to them. */
static bool part_moves(const struct state *state, const struct change *change,
                       const struct billing_group_record *group, const char *partition)
{
    const char *own = group->billing_group.qos ? group->billing_group.qos->name : NULL;

    if (!has(&change->parts, partition))
        return false;
    const struct qos *old = map_get(&change->accounts->part_qos, partition);
    const struct partition *at = partition_at(state, partition);
    const char *was = old ? old->name : NULL, *then = at ? qos_then(change, at) : NULL;
    return !str_eq(str_eq(was, own) ? NULL : was, str_eq(then, own) ? NULL : then);
}

static unsigned what_moves(const struct state *state, const struct change *change,
                           const struct billing_group_record *group)
{
    const struct assoc *assoc = group->billing_group.assoc;
    const struct qos *qos = group->billing_group.qos;
    unsigned holds = 0;

    if (qos ? qos->mark & MARK_MOVED : false)
        return HOLDS_ALL; /* the rate of all who count them is another */
    if ((qos && qos->mark & MARK_GONE) || (!qos && group->qos && has(&change->new_qos, group->qos)))
        return HOLDS_ALL;
    if ((change->assocs && assoc && assoc->mark & (MARK_GONE | MARK_MOVED)) ||
        has(&change->users, group->owner->user))
        holds |= HOLDS_ASSOC;
    bool part = part_moves(state, change, group, billing_group_partition(group));
    for (size_t i = 0; i < group->runs.len && map_len(&change->parts); i++)
        part = part || part_moves(state, change, group, group->runs.items[i].partition);
    return holds | (part ? HOLDS_PART : 0);
}

static void count_out_group(struct state *state, struct change *change,
                            struct billing_group_record *group)
{
    unsigned holds = what_moves(state, change, group);

    if (!holds)
        return;
    limits_count_group(state, group, holds, UINT64_MAX);
    accrue_leave(change->accounts, group);
    group->moves = holds;
    vec_push(&change->moving, group);
}

static void count_out(struct state *state, struct change *change)
{
    if (!change->binds)
        return;
    if (change->binds_any) {
        vec_each (struct billing_group_record *, at, &state->billing_groups)
            count_out_group(state, change, *at);
        return;
    }
    map_each (entry, &change->users) {
        struct billing_group_record *group = map_get(&state->user_billing_groups, entry->key);
        for (; group; group = group->next_of_user)
            count_out_group(state, change, group);
    }
}

static void count_in(struct state *state, struct change *change)
{
    vec_each (struct billing_group_record *, at, &change->moving) {
        billing_group_bind(state, *at, (*at)->moves);
        limits_count_group(state, *at, (*at)->moves, 1);
        accrue_join(state, *at);
    }
    if (change->new_tres) { /* who was just counted in has them */
        vec_each (struct billing_group_record *, at, &state->billing_groups)
            limits_count_tres(state, *at, HOLDS_ALL & ~(*at)->moves, change->new_tres);
    }
    vec_each (struct billing_group_record *, at, &change->moving)
        (*at)->moves = 0;
}

/* ---- all of it ---- */

static void take_config(struct state *state, struct change *change)
{
    struct accounts then = { 0 };

    change_init(change);
    change_find(change);
    find_partitions(state, change);
    bool differ = change_find_tres(change, &then);
    count_out(state, change);
    if (differ)
        change_take_tres(change, &then);
    change_take(change);
}

/* PriorityUsageResetPeriod=NOW: with each configuration that says so. */
static void forget_usage(struct state *state, struct holder *holder)
{
    usage_settle(state, holder);
    memset(holder->usage, 0, sizeof(holder->usage));
    holder->wall = 0;
    holder_rehash(state, holder);
}

static void forget_all_usage(struct state *state)
{
    vec_each (struct assoc *, at, &state->accounts->assocs)
        forget_usage(state, &(*at)->holder);
    vec_each (struct qos *, at, &state->accounts->qos)
        forget_usage(state, &(*at)->holder);
}

unsigned accounts_rebuild(struct state *state, const Config *old, const struct sections *sections)
{
    struct accounts *accounts = state->accounts;
    struct change change = { .has_jobs = true,
                             .time_us = state->time_us,
                             .digest = &state->digest,
                             .accounts = accounts,
                             .config = state->config,
                             .old = old,
                             .sections = sections };
    uint64_t rules = accounts->share_rules;
    bool now = str_ieq(state->config->priority_usage_reset, "NOW");
    bool other = now || accounts->settings_hash != accounts_settings(state->config) ||
                 accounts->tres_hash != tres_texts_hash(state->config);

    for (enum section kind = SECTION_QOS; kind < SECTIONS; kind++)
        other = other || !sections->of[kind].all_same;
    if (!other)
        return accounts_follow(state);
    take_config(state, &change);
    accounts_see_partitions(state);
    vec_each (struct holder *, at, &change.fresh)
        holder_rehash(state, *at);
    count_in(state, &change);
    accounts->totals_generation = 0;
    if (now)
        forget_all_usage(state);
    state->priority_turn++;
    if (!state->priority_us)
        state->priority_us = state->time_us;
    if (change.shares || now || rules != accounts->share_rules)
        fairshare_update(state);
    change_done(&change);
    return change.all ? CHANGED_ALL : CHANGED_ACCOUNTS;
}

unsigned accounts_follow(struct state *state)
{
    struct change change = { .has_jobs = true,
                             .time_us = state->time_us,
                             .digest = &state->digest,
                             .accounts = state->accounts };

    change_init(&change);
    find_partitions(state, &change);
    count_out(state, &change);
    accounts_see_partitions(state);
    count_in(state, &change);
    state->accounts->totals_generation = 0;
    change_done(&change);
    return change.binds ? CHANGED_ACCOUNTS : 0;
}
