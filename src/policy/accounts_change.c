/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts_change.c - which accounts, users, QOS and TRES differ between two configurations
 */
#include <stdlib.h>
#include <string.h>

#include "policy/change.h"

void change_mark(struct change *change, struct assoc *assoc, unsigned how)
{
    if (!assoc->mark)
        vec_push(&change->touched, assoc);
    assoc->mark |= (uint8_t)how;
}

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
    if (change->has_jobs && holder->keeps)
        usage_settle_until(holder, change->accounts->tres_count, change->time_us);
    move_amounts(change, holder->used, index);
    move_amounts(change, holder->run_end, index);
    move_amounts(change, holder->rate, index);
    move_amounts(change, holder->usage, index);
    if (change->has_jobs && holder->keeps) {
        *change->digest -= holder->hash;
        holder->hash = holder_hash(holder);
        *change->digest += holder->hash;
    }
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

bool change_find_tres(struct change *change, struct accounts *then)
{
    if (!tres_may_differ(change))
        return false;
    *then = tres_then(change);
    change->all = !same_tres(change->accounts, then);
    change->accounts->tres_hash = then->tres_hash;
    return true;
}

void change_take_tres(struct change *change, struct accounts *then)
{
    if (change->all)
        take_tres(change, then);
    else
        arena_done(&then->arena);
}

/* ---- all of it ---- */

void change_init(struct change *change)
{
    map_init(&change->users);
    map_init(&change->new_qos);
    map_init(&change->parts);
}

void change_done(struct change *change)
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

void change_find(struct change *change)
{
    find_qos(change);
    find_accounts(change);
    find_users(change);
}

void accounts_make(struct accounts *accounts, const Config *config)
{
    static const Config nothing = CONFIG__INIT;
    struct sections sections;
    struct accounts then = { 0 };
    struct change change = {
        .accounts = accounts, .config = config, .old = &nothing, .sections = &sections
    };

    sections_compare(&sections, &nothing, config);
    change_init(&change);
    change_find(&change);
    if (change_find_tres(&change, &then))
        change_take_tres(&change, &then);
    change_take(&change);
    change_done(&change);
    sections_done(&sections);
}
