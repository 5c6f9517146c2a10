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

#include "core/policy/accounts_change.h"

void change_mark(struct change *change, struct assoc *assoc, unsigned how)
{
    if (!assoc->mark)
        vec_push(&change->touched, assoc);
    assoc->mark |= (uint8_t)how;
}

/* ---- who goes, who moves ---- */

static void find_qos(struct change *change)
{
    const struct sections_of *of = sections_of(change, SECTION_QOS);

    for (size_t i = 0; i < of->old_count; i++) {
        struct qos *qos = change->accounts->of_qos.items[i];
        if (of->now[i] || str_eq(qos->name, "normal")) /* that one is always there */
            continue;
        qos->mark |= MARK_GONE;
        vec_push(&change->gone_qos, qos);
        change->binds = change->binds_any = true;
    }
    for (size_t i = 0; i < of->count; i++) {
        const ConfQos *conf = change->config->qos[i];
        struct qos *qos = map_get(&change->accounts->qos_names, conf->name);
        if (!qos)
            map_put(&change->new_qos, conf->name, change);
        else if (!of->same[i] && qos_factor(conf) != qos->usage_factor)
            qos->mark |= MARK_MOVED;
        else
            continue;
        change->binds = change->binds_any = true;
    }
    const struct qos *normal = map_get(&change->accounts->qos_names, "normal");
    bool configured = false;
    for (size_t i = 0; i < of->count; i++)
        configured = configured || str_eq(change->config->qos[i]->name, "normal");
    if (normal && !configured && normal->usage_factor != 1000) {
        ((struct qos *)(uintptr_t)normal)->mark |= MARK_MOVED;
        change->binds = change->binds_any = true;
    }
}

static void goes(struct change *change, struct assoc *assoc)
{
    change_mark(change, assoc, MARK_GONE);
    vec_push(&change->gone, assoc);
    if (assoc->user)
        map_put(&change->users, assoc->user, change);
    change->binds = change->shares = change->assocs = true;
    change->priorities = change->priorities || assoc->priority;
}

static void moves(struct change *change, struct assoc *assoc)
{
    change_mark(change, assoc, MARK_MOVED);
    change->binds = change->binds_any = change->shares = change->assocs = true;
    vec_each (struct assoc *, at, &assoc->children)
        moves(change, *at);
}

static void find_accounts(struct change *change)
{
    const struct sections_of *of = sections_of(change, SECTION_ACCOUNTS);

    for (size_t i = 0; i < of->old_count; i++) {
        struct assoc *assoc = change->accounts->of_accounts.items[i];
        if (!of->now[i] && assoc->parent)
            goes(change, assoc);
    }
    for (size_t i = 0; i < of->count; i++) {
        const ConfAccount *conf = change->config->accounts[i];
        struct assoc *assoc =
            of->was[i] ? change->accounts->of_accounts.items[of->was[i] - 1] : NULL;
        if (assoc && !of->same[i] && assoc->parent &&
            !str_eq(assoc->parent->account, conf->parent ? conf->parent : "root"))
            moves(change, assoc);
    }
}

static void find_users(struct change *change)
{
    const struct sections_of *of = sections_of(change, SECTION_USERS);
    struct assoc *root = assoc_get(change->accounts, "root", "root", NULL);
    uint32_t *roots = &change->accounts->roots;

    for (size_t i = 0; i < of->old_count; i++) {
        if (!of->now[i])
            goes(change, change->accounts->of_users.items[i]);
        *roots -= !of->old_same[i] && str_eq(change->old->users[i]->name, "root");
    }
    for (size_t i = 0; i < of->count; i++) {
        const ConfUser *conf = change->config->users[i];
        if (of->same[i]) /* there are many: they are not looked at */
            continue;
        *roots += str_eq(conf->name, "root");
        if (!of->in_order[i] || conf->is_default != change->old->users[of->was[i] - 1]->is_default)
            map_put(&change->users, conf->name, change);
        change->binds = change->binds || !of->was[i];
    }
    change->has_root = *roots > 0;
    /* The one that is there of itself goes when another is, unless that is the same. */
    if (root && !root->conf && change->has_root) {
        bool taken = false;
        for (size_t i = 0; i < of->count && !taken; i++) {
            const ConfUser *conf = change->config->users[i];
            taken = str_eq(conf->name, "root") && str_eq(conf->account, "root") && !conf->partition;
        }
        if (!taken)
            goes(change, root);
    }
}

/* The name of the QOS that a partition has then; NULL: none. */
static const char *qos_then(const struct change *change, const struct partition *partition)
{
    const char *name = partition->spec->qos;
    const struct qos *qos = str_is_empty(name) ? NULL : map_get(&change->accounts->qos_names, name);

    if (qos ? qos->mark & MARK_GONE : !name || !map_has(&change->new_qos, name))
        return NULL;
    return name;
}

static void find_partitions(struct change *change)
{
    struct map *was = &change->accounts->part_qos;
    const struct state *state = change->state;

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
static bool part_moves(const struct change *change, const struct billing_group_record *group,
                       const char *partition)
{
    const char *own = group->billing_group.qos ? group->billing_group.qos->name : NULL;

    if (!has(&change->parts, partition))
        return false;
    const struct qos *old = map_get(&change->accounts->part_qos, partition);
    const struct partition *at = partition_at(change->state, partition);
    const char *was = old ? old->name : NULL, *then = at ? qos_then(change, at) : NULL;
    return !str_eq(str_eq(was, own) ? NULL : was, str_eq(then, own) ? NULL : then);
}

static unsigned what_moves(const struct change *change, const struct billing_group_record *group)
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
    bool part = part_moves(change, group, billing_group_partition(group));
    for (size_t i = 0; i < group->runs.len && map_len(&change->parts); i++)
        part = part || part_moves(change, group, group->runs.items[i].partition);
    return holds | (part ? HOLDS_PART : 0);
}

static void count_out_tab(struct change *change, struct billing_group_record *group)
{
    unsigned holds = what_moves(change, group);

    if (!holds)
        return;
    limits_count_group(change->state, group, holds, UINT64_MAX);
    accrue_leave(change->accounts, group);
    group->moves = holds;
    vec_push(&change->moving, group);
}

static void count_out(struct change *change)
{
    if (!change->state || !change->binds)
        return;
    if (change->binds_any) {
        vec_each (struct billing_group_record *, at, &change->state->billing_groups)
            count_out_tab(change, *at);
        return;
    }
    map_each (entry, &change->users) {
        struct billing_group_record *group =
            map_get(&change->state->user_billing_groups, entry->key);
        for (; group; group = group->next_of_user)
            count_out_tab(change, group);
    }
}

static void count_in(struct change *change)
{
    vec_each (struct billing_group_record *, at, &change->moving) {
        billing_group_bind(change->state, *at, (*at)->moves);
        limits_count_group(change->state, *at, (*at)->moves, 1);
        accrue_join(change->state, *at);
    }
    if (change->new_tres) { /* who was just counted in has them */
        vec_each (struct billing_group_record *, at, &change->state->billing_groups)
            limits_count_tres(change->state, *at, HOLDS_ALL & ~(*at)->moves, change->new_tres);
    }
    vec_each (struct billing_group_record *, at, &change->moving)
        (*at)->moves = 0;
}

/* ---- TRES ---- */

static bool tres_may_differ(const struct change *change)
{
    static const enum section kinds[] = { SECTION_QOS, SECTION_ACCOUNTS, SECTION_USERS };

    if (!change->accounts->tres_count ||
        change->accounts->tres_hash != tres_texts_hash(change->config))
        return true;
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        const struct sections_of *of = sections_of(change, kinds[k]);
        size_t count;
        ProtobufCMessage **list = sections_list(change->config, kinds[k], &count);
        ProtobufCMessage **old = sections_list(change->old, kinds[k], &count);
        for (size_t i = 0; i < of->count && !of->all_same; i++) {
            if (!of->same[i] && tres_are_named(change->accounts, list[i]))
                return true;
        }
        for (size_t i = 0; i < of->old_count && !of->all_same; i++) {
            if (!of->old_same[i] && tres_are_named(change->accounts, old[i]))
                return true;
        }
    }
    return false;
}

/* Those of the new configuration, into tables of their own. */
static struct accounts tres_then(const struct change *change)
{
    struct accounts then = { .tres_hash = tres_texts_hash(change->config) };

    arena_init(&then.arena);
    tres_collect(&then, change->config);
    return then;
}

static bool same_tres(const struct accounts *a, const struct accounts *b)
{
    bool same = a->tres_count == b->tres_count;

    for (size_t i = 0; same && i < a->tres_count; i++)
        same = str_eq(a->tres[i].name, b->tres[i].name);
    return same;
}

/* The amounts of each TRES go to its index among the new ones. */
static void move_amounts(const struct change *change, uint64_t amounts[TRES_MOST],
                         const size_t *index)
{
    uint64_t was[TRES_MOST];

    memcpy(was, amounts, sizeof(was));
    memset(amounts, 0, sizeof(was));
    for (size_t i = 0; i < change->accounts->tres_count; i++) {
        if (index[i] < TRES_MOST)
            amounts[index[i]] = was[i];
    }
}

static void move_holder(const struct change *change, struct holder *holder, const size_t *index)
{
    if (change->state && holder->keeps)
        usage_settle(change->state, holder);
    move_amounts(change, holder->used, index);
    move_amounts(change, holder->run_end, index);
    move_amounts(change, holder->rate, index);
    move_amounts(change, holder->usage, index);
    if (change->state && holder->keeps)
        holder_rehash(change->state, holder);
}

static void move_qos(const struct change *change, struct qos *qos, const size_t *index)
{
    move_holder(change, &qos->holder, index);
    map_each (entry, qos->users)
        move_holder(change, entry->value, index);
    map_each (entry, qos->accounts)
        move_holder(change, entry->value, index);
}

static void take_tres(struct change *change, struct accounts *then)
{
    struct accounts *accounts = change->accounts;
    size_t index[TRES_MOST];

    change->new_tres = (UINT32_C(1) << then->tres_count) - 1;
    for (size_t i = 0; i < accounts->tres_count; i++) {
        index[i] = tres_find(then, accounts->tres[i].name, strlen(accounts->tres[i].name));
        if (index[i] < TRES_MOST)
            change->new_tres &= ~(UINT32_C(1) << index[i]);
    }
    vec_each (struct assoc *, at, &accounts->assocs)
        move_holder(change, &(*at)->holder, index);
    vec_each (struct qos *, at, &accounts->qos)
        move_qos(change, *at, index);
    arena_done(&accounts->arena);
    accounts->arena = then->arena;
    accounts->tres_limit_fields = then->tres_limit_fields;
    accounts->tres_count = then->tres_count;
    memcpy(accounts->tres, then->tres, sizeof(then->tres));
}

/* ---- all of it ---- */

static void change_init(struct change *change)
{
    map_init(&change->users);
    map_init(&change->new_qos);
    map_init(&change->parts);
}

static void change_done(struct change *change)
{
    map_done(&change->users);
    map_done(&change->new_qos);
    map_done(&change->parts);
    vec_done(&change->touched);
    vec_done(&change->gone);
    vec_done(&change->gone_qos);
    vec_done(&change->fresh);
    vec_done(&change->moving);
}

static void find_all(struct change *change)
{
    find_qos(change);
    find_accounts(change);
    find_users(change);
    if (change->state)
        find_partitions(change);
}

static void take_config(struct change *change)
{
    struct accounts then = { 0 };

    change_init(change);
    find_all(change);
    bool differ = tres_may_differ(change);
    if (differ) {
        then = tres_then(change);
        change->all = !same_tres(change->accounts, &then);
        change->accounts->tres_hash = then.tres_hash;
    }
    count_out(change);
    if (change->all)
        take_tres(change, &then);
    else if (differ)
        arena_done(&then.arena);
    change_take(change);
}

void accounts_make(struct accounts *accounts, const Config *config)
{
    static const Config nothing = CONFIG__INIT;
    struct sections sections;
    struct change change = {
        .accounts = accounts, .config = config, .old = &nothing, .sections = &sections
    };

    sections_compare(&sections, &nothing, config);
    take_config(&change);
    change_done(&change);
    sections_done(&sections);
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
    struct change change = { .state = state,
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
    take_config(&change);
    accounts_see_partitions(state);
    vec_each (struct holder *, at, &change.fresh)
        holder_rehash(state, *at);
    count_in(&change);
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
    struct change change = { .state = state, .accounts = state->accounts };

    change_init(&change);
    find_partitions(&change);
    count_out(&change);
    accounts_see_partitions(state);
    count_in(&change);
    state->accounts->totals_generation = 0;
    change_done(&change);
    return change.binds ? CHANGED_ACCOUNTS : 0;
}
