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

#include "base/hash.h"
#include "core/sections.h"
#include "core/state_priv.h"

/* Of an association or QOS, while a configuration is taken. */
enum mark {
    MARK_GONE = 1,
    MARK_MOVED = 2,    /* it, or who is above it, has another parent; a QOS: another usage factor */
    MARK_READ = 4,     /* it was read again */
    MARK_BELOW = 8,    /* what it passes on is another */
    MARK_SHRINKS = 16, /* some of its children are no more */
};

struct change {
    struct state *state; /* NULL: all is made from nothing, and there is no job */
    struct accounts *accounts;
    const Config *config, *old;
    const struct sections *sections; /* NULL: the configuration is what it was */
    bool all;                        /* the TRES are others: everything is read again */
    bool binds;                      /* some jobs belong to others */
    bool assocs;                     /* some of the associations there were are gone or moved */
    uint32_t new_tres;               /* bits of TRES that were not counted */
    bool shares, priorities;         /* some of these are others */
    bool has_root;                   /* a user of that name is configured */
    struct map users;                /* names of users whose sections are others */
    struct map new_qos;              /* names */
    struct map parts;                /* partitions whose QOS is another */
    assoc_list touched, gone;        /* have a mark */
    VEC(struct qos *) gone_qos;
    VEC(struct holder *) fresh;
    VEC(struct tab_record *) moving; /* jobs that others count from now on */
};

static void mark(struct change *change, struct assoc *assoc, unsigned how)
{
    if (!assoc->mark)
        vec_push(&change->touched, assoc);
    assoc->mark |= (uint8_t)how;
}

static const struct sections_of *sections_of(const struct change *change, enum section kind)
{
    return &change->sections->of[kind];
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
        change->binds = true;
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
        change->binds = true;
    }
    const struct qos *normal = map_get(&change->accounts->qos_names, "normal");
    bool configured = false;
    for (size_t i = 0; i < of->count; i++)
        configured = configured || str_eq(change->config->qos[i]->name, "normal");
    if (normal && !configured && normal->usage_factor != 1000) {
        ((struct qos *)(uintptr_t)normal)->mark |= MARK_MOVED;
        change->binds = true;
    }
}

static void goes(struct change *change, struct assoc *assoc)
{
    mark(change, assoc, MARK_GONE);
    vec_push(&change->gone, assoc);
    if (assoc->user)
        map_put(&change->users, assoc->user, change);
    change->binds = change->shares = change->assocs = true;
    change->priorities = change->priorities || assoc->priority;
}

static void moves(struct change *change, struct assoc *assoc)
{
    mark(change, assoc, MARK_MOVED);
    change->binds = change->shares = change->assocs = true;
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

    for (size_t i = 0; i < of->old_count; i++) {
        if (!of->now[i])
            goes(change, change->accounts->of_users.items[i]);
    }
    for (size_t i = 0; i < of->count; i++) {
        const ConfUser *conf = change->config->users[i];
        change->has_root = change->has_root || str_eq(conf->name, "root");
        if (of->same[i])
            continue;
        if (!of->in_order[i] || conf->is_default != change->old->users[of->was[i] - 1]->is_default)
            map_put(&change->users, conf->name, change);
        change->binds = change->binds || !of->was[i];
    }
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
}

/* ---- jobs that belong to others ---- */

static bool has(const struct map *names, const char *name)
{
    return map_len(names) && map_has(names, name);
}

/* Is the QOS of the partition another for them? While it is their own it is nothing to them. */
static bool part_moves(const struct change *change, const struct tab_record *tab,
                       const char *partition)
{
    const char *own = tab->tab.qos ? tab->tab.qos->name : NULL;

    if (!has(&change->parts, partition))
        return false;
    const struct qos *old = map_get(&change->accounts->part_qos, partition);
    const struct partition *at = partition_at(change->state, partition);
    const char *was = old ? old->name : NULL, *then = at ? qos_then(change, at) : NULL;
    return !str_eq(str_eq(was, own) ? NULL : was, str_eq(then, own) ? NULL : then);
}

static unsigned what_moves(const struct change *change, const struct tab_record *tab)
{
    const struct assoc *assoc = tab->tab.assoc;
    const struct qos *qos = tab->tab.qos;
    unsigned holds = 0;

    if (qos ? qos->mark & MARK_MOVED : false)
        return HOLDS_ALL; /* the rate of all who count them is another */
    if ((qos && qos->mark & MARK_GONE) || (!qos && tab->qos && has(&change->new_qos, tab->qos)))
        return HOLDS_ALL;
    if ((change->assocs && assoc && assoc->mark & (MARK_GONE | MARK_MOVED)) ||
        has(&change->users, tab->owner->user))
        holds |= HOLDS_ASSOC;
    bool part = part_moves(change, tab, tab_partition(tab));
    for (size_t i = 0; i < tab->runs.len && map_len(&change->parts); i++)
        part = part || part_moves(change, tab, tab->runs.items[i].partition);
    return holds | (part ? HOLDS_PART : 0);
}

static void count_out(struct change *change)
{
    if (!change->state || !change->binds)
        return;
    vec_each (struct tab_record *, at, &change->state->tabs) {
        unsigned holds = what_moves(change, *at);
        if (!holds)
            continue;
        limits_count_tab(change->state, *at, holds, UINT64_MAX);
        accrue_leave(change->accounts, *at);
        (*at)->moves = holds;
        vec_push(&change->moving, *at);
    }
}

static void count_in(struct change *change)
{
    vec_each (struct tab_record *, at, &change->moving) {
        tab_bind(change->state, *at, (*at)->moves);
        limits_count_tab(change->state, *at, (*at)->moves, 1);
        accrue_join(change->state, *at);
    }
    if (change->new_tres) { /* who was just counted in has them */
        vec_each (struct tab_record *, at, &change->state->tabs)
            limits_count_tres(change->state, *at, HOLDS_ALL & ~(*at)->moves, change->new_tres);
    }
    vec_each (struct tab_record *, at, &change->moving)
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
    accounts->bound_fields = then->bound_fields;
    accounts->tres_count = then->tres_count;
    memcpy(accounts->tres, then->tres, sizeof(then->tres));
}

/* ---- QOS ---- */

static void add_fresh(struct change *change, struct holder *holder)
{
    if (change->state)
        holder->usage_us = change->state->time_us;
    vec_push(&change->fresh, holder);
}

static struct qos *take_one_qos(struct change *change, const char *name, const ConfQos *conf,
                                bool same)
{
    struct qos *qos = map_get(&change->accounts->qos_names, name);
    bool fresh = !qos;

    if (fresh) {
        qos = qos_make(change->accounts, name);
        add_fresh(change, &qos->holder);
    }
    bool read = fresh || !same || change->all;
    qos->conf = conf;
    if (read)
        qos_read(change->accounts, qos);
    return qos;
}

static void take_qos(struct change *change)
{
    const struct sections_of *of = sections_of(change, SECTION_QOS);
    struct accounts *accounts = change->accounts;
    struct qos *normal = map_get(&accounts->qos_names, "normal");
    bool has_normal = false;

    vec_clear(&accounts->of_qos);
    for (size_t i = 0; i < of->count; i++) {
        const ConfQos *conf = change->config->qos[i];
        vec_push(&accounts->of_qos, take_one_qos(change, conf->name, conf, of->same[i]));
        has_normal = has_normal || str_eq(conf->name, "normal");
    }
    vec_clear(&accounts->qos);
    vec_each (struct qos *, at, &accounts->of_qos)
        vec_push(&accounts->qos, *at);
    if (!has_normal)
        vec_push(&accounts->qos, take_one_qos(change, "normal", NULL, normal && !normal->conf));
    accounts->top_qos = 0;
    vec_each (struct qos *, at, &accounts->qos)
        accounts->top_qos = MAX(accounts->top_qos, (*at)->priority);
}

/* ---- associations ---- */

static void read_assoc(struct change *change, struct assoc *assoc)
{
    unsigned other = assoc_read(change->accounts, assoc);

    mark(change, assoc, MARK_READ | (other & READ_BELOW ? MARK_BELOW : 0));
    change->shares = change->shares || other & READ_SHARE;
    change->priorities = change->priorities || other & READ_PRIORITY;
}

static struct assoc *new_assoc(struct change *change, const char *account, const char *user,
                               const char *partition, struct assoc *parent)
{
    struct assoc *assoc = assoc_make(change->accounts, account, user, partition, parent);

    add_fresh(change, &assoc->holder);
    change->shares = true;
    return assoc;
}

static void take_root(struct change *change)
{
    struct accounts *accounts = change->accounts;
    const ConfAccount *conf = NULL;

    if (!accounts->assocs.len)
        vec_push(&accounts->assocs, new_assoc(change, "root", NULL, NULL, NULL));
    struct assoc *root = accounts->assocs.items[0];
    for (size_t i = 0; i < change->config->n_accounts; i++) {
        if (str_eq(change->config->accounts[i]->name, "root"))
            conf = change->config->accounts[i];
    }
    bool same = conf ? root->conf == &conf->base : !root->conf;
    root->conf = conf ? &conf->base : NULL;
    if (!same || change->all)
        read_assoc(change, root);
}

static void set_parent(struct change *change, struct assoc *assoc, struct assoc *parent)
{
    if (assoc->parent == parent)
        return;
    mark(change, assoc->parent, MARK_SHRINKS);
    assoc->parent = parent;
    vec_push(&parent->children, assoc);
}

static struct assoc *take_account(struct change *change, const ConfAccount *conf,
                                  struct assoc *assoc, bool same)
{
    struct accounts *accounts = change->accounts;
    struct assoc *root = accounts->assocs.items[0];
    struct assoc *parent = conf->parent ? assoc_get(accounts, conf->parent, NULL, NULL) : root;
    bool fresh = !assoc;

    if (str_eq(conf->name, "root"))
        return root;
    if (!parent)
        parent = root;
    if (fresh)
        assoc = new_assoc(change, conf->name, NULL, NULL, parent);
    assoc->conf = &conf->base;
    set_parent(change, assoc, parent);
    if (fresh || !same || change->all || parent->mark & MARK_BELOW || assoc->mark & MARK_MOVED)
        read_assoc(change, assoc);
    return assoc;
}

static void take_accounts(struct change *change)
{
    const struct sections_of *of = sections_of(change, SECTION_ACCOUNTS);
    struct accounts *accounts = change->accounts;
    assoc_list fresh = { 0 };

    take_root(change);
    for (size_t i = 0; i < of->count; i++) {
        struct assoc *was = of->was[i] ? accounts->of_accounts.items[of->was[i] - 1] : NULL;
        vec_push(&fresh, take_account(change, change->config->accounts[i], was, of->same[i]));
    }
    vec_done(&accounts->of_accounts);
    accounts->of_accounts = fresh;
}

static struct assoc *take_user(struct change *change, const ConfUser *conf, struct assoc *assoc)
{
    struct accounts *accounts = change->accounts;
    struct assoc *parent = assoc_get(accounts, conf->account, NULL, NULL);

    if (!assoc) /* root may be there of itself */
        assoc = assoc_get(accounts, conf->account, conf->name, conf->partition);
    if (!assoc)
        assoc = new_assoc(change, conf->account, conf->name, conf->partition,
                          parent ? parent : accounts->assocs.items[0]);
    assoc->conf = &conf->base;
    read_assoc(change, assoc);
    return assoc;
}

static void take_users(struct change *change)
{
    const struct sections_of *of = sections_of(change, SECTION_USERS);
    struct accounts *accounts = change->accounts;
    assoc_list fresh = { 0 };

    vec_reserve(&fresh, of->count);
    for (size_t i = 0; i < of->count; i++) {
        struct assoc *was = of->was[i] ? accounts->of_users.items[of->was[i] - 1] : NULL;
        vec_push(&fresh, of->same[i] && !change->all
                             ? was
                             : take_user(change, change->config->users[i], was));
    }
    vec_done(&accounts->of_users);
    accounts->of_users = fresh;
}

/* Who is below an account that passes on other things, and was not read since. */
static void read_below(struct change *change)
{
    for (size_t i = 0; i < change->touched.len; i++) {
        struct assoc *parent = change->touched.items[i];
        for (size_t k = 0; parent->mark & MARK_BELOW && k < parent->children.len; k++) {
            struct assoc *child = parent->children.items[k];
            if (child->parent == parent && child->user && !(child->mark & (MARK_READ | MARK_GONE)))
                read_assoc(change, child);
        }
    }
}

/* A user root is always there. */
static struct assoc *take_root_user(struct change *change)
{
    struct accounts *accounts = change->accounts;
    struct assoc *user = assoc_get(accounts, "root", "root", NULL);

    if (change->has_root)
        return NULL;
    if (!user || user->mark & MARK_GONE) {
        user = new_assoc(change, "root", "root", NULL, accounts->assocs.items[0]);
        read_assoc(change, user);
        map_put(&change->users, "root", change);
    } else if (change->all) {
        read_assoc(change, user);
    }
    return user;
}

/* The account of jobs that name none: the first, or the last that says so. */
static void take_defaults(struct change *change, struct assoc *root_user)
{
    struct accounts *accounts = change->accounts;

    map_each (entry, &change->users)
        map_del(&accounts->defaults, entry->key);
    for (size_t i = 0; i < change->config->n_users && map_len(&change->users); i++) {
        const ConfUser *conf = change->config->users[i];
        if (map_has(&change->users, conf->name) &&
            (conf->is_default || !map_has(&accounts->defaults, conf->name)))
            map_put(&accounts->defaults, conf->name, accounts->of_users.items[i]);
    }
    if (root_user)
        map_put(&accounts->defaults, "root", root_user);
}

static void put_in_order(struct accounts *accounts, struct assoc *root_user)
{
    struct assoc *root = accounts->assocs.items[0];

    vec_clear(&accounts->assocs);
    vec_reserve(&accounts->assocs, accounts->of_accounts.len + accounts->of_users.len + 2);
    vec_push(&accounts->assocs, root);
    vec_each (struct assoc *, at, &accounts->of_accounts) {
        if (*at != root)
            vec_push(&accounts->assocs, *at);
    }
    vec_each (struct assoc *, at, &accounts->of_users)
        vec_push(&accounts->assocs, *at);
    if (root_user)
        vec_push(&accounts->assocs, root_user);
    accounts->users = (uint32_t)accounts->of_users.len + (root_user ? 1 : 0);
}

/* ---- who is gone ---- */

static void drop_keys(struct change *change)
{
    struct str key = { 0 };

    vec_each (struct assoc *, at, &change->gone) {
        str_clear(&key);
        assoc_key(&key, (*at)->account, (*at)->user, (*at)->partition);
        map_del(&change->accounts->assoc_keys, str_text(&key));
        if ((*at)->parent && !((*at)->parent->mark & MARK_GONE))
            mark(change, (*at)->parent, MARK_SHRINKS);
    }
    str_done(&key);
    vec_each (struct qos *, at, &change->gone_qos)
        map_del(&change->accounts->qos_names, (*at)->name);
}

static void shrink(struct assoc *parent)
{
    size_t left = 0;

    for (size_t i = 0; i < parent->children.len; i++) {
        struct assoc *child = parent->children.items[i];
        if (child->parent == parent && !(child->mark & MARK_GONE))
            parent->children.items[left++] = child;
    }
    parent->children.len = left;
}

static void drop_gone(struct change *change)
{
    vec_each (struct assoc *, at, &change->touched) {
        if ((*at)->mark & MARK_SHRINKS)
            shrink(*at);
    }
    vec_each (struct assoc *, at, &change->touched)
        (*at)->mark = 0;
    vec_each (struct assoc *, at, &change->gone) {
        if (change->state)
            change->state->digest -= (*at)->holder.hash;
        assoc_free(change->accounts, *at);
    }
    vec_each (struct qos *, at, &change->gone_qos) {
        if (change->state)
            change->state->digest -= (*at)->holder.hash;
        qos_free(change->accounts, *at);
    }
    vec_each (struct qos *, at, &change->accounts->qos)
        (*at)->mark = 0;
}

/* ---- shares and priorities ---- */

/* Parents come first. */
static void find_share(struct assoc *assoc)
{
    bool own = !assoc->parent || assoc->fairshare != FAIRSHARE_PARENT;

    assoc->share_of = own ? assoc : assoc->parent->share_of;
    if (own && assoc->parent)
        ((struct assoc *)(uintptr_t)assoc->parent->share_of)->shares_below += assoc->fairshare;
}

static void find_shares(const struct change *change)
{
    struct accounts *accounts = change->accounts;

    if (change->shares) {
        vec_each (struct assoc *, at, &accounts->assocs)
            (*at)->shares_below = 0;
        vec_each (struct assoc *, at, &accounts->assocs)
            find_share(*at);
    }
    if (change->shares || change->priorities) {
        accounts->top_assoc = 0;
        vec_each (struct assoc *, at, &accounts->assocs)
            accounts->top_assoc = MAX(accounts->top_assoc, (*at)->priority);
    }
}

static unsigned enforce_of(const char *text)
{
    static const struct {
        const char *word;
        unsigned bits;
    } rows[] = {
        { "associations", ENFORCE_ASSOCS },
        { "limits", ENFORCE_ASSOCS | ENFORCE_LIMITS },
        { "qos", ENFORCE_ASSOCS | ENFORCE_QOS },
        { "safe", ENFORCE_ASSOCS | ENFORCE_LIMITS | ENFORCE_SAFE },
        { "wckeys", ENFORCE_ASSOCS },
        { "all", ENFORCE_ASSOCS | ENFORCE_LIMITS | ENFORCE_QOS | ENFORCE_SAFE },
    };
    unsigned bits = 0;
    struct span word;

    while (text && str_next(&text, ", ", &word)) {
        for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
            if (strlen(rows[i].word) == word.len &&
                strncasecmp(rows[i].word, word.ptr, word.len) == 0)
                bits |= rows[i].bits;
        }
    }
    return bits;
}

/* Nodes, partitions and licences are nothing to accounts; `hash` is of those too. */
static uint64_t settings_hash(const Config *config)
{
    Config rest = *config;

    rest.n_nodes = rest.n_partitions = rest.n_gres = rest.n_down = rest.n_nodesets = 0;
    rest.n_switches = rest.n_blocks = rest.n_qos = rest.n_accounts = rest.n_users = 0;
    rest.licenses = rest.hash = NULL;
    return message_hash(&rest.base, 0);
}

/* What decides how shares become factors. */
static uint64_t share_rules(const struct accounts *accounts, const Config *config)
{
    uint64_t flags = accounts->flags & (PRIO_NO_FAIR_TREE | PRIO_DEPTH_OBLIVIOUS);

    return flags << 32 | config->priority_fairshare_damping;
}

/* ---- all of it ---- */

/* The tables; jobs that belong to others are counted nowhere meanwhile. */
static void take_all(struct change *change)
{
    struct accounts *accounts = change->accounts;
    struct assoc *root_user;

    accounts->enforce = enforce_of(change->config->accounting_enforce);
    take_qos(change);
    drop_keys(change);
    take_accounts(change);
    take_users(change);
    read_below(change);
    root_user = take_root_user(change);
    take_defaults(change, root_user);
    put_in_order(accounts, root_user);
    drop_gone(change);
    find_shares(change);
    priority_read(accounts, change->config);
    accrue_read(accounts);
    accounts->settings_hash = settings_hash(change->config);
    accounts->share_rules = share_rules(accounts, change->config);
}

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
    take_all(change);
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

void accounts_rebuild(struct state *state, const Config *old, const struct sections *sections)
{
    struct accounts *accounts = state->accounts;
    struct change change = { .state = state,
                             .accounts = accounts,
                             .config = state->config,
                             .old = old,
                             .sections = sections };
    uint64_t rules = accounts->share_rules;
    bool now = str_ieq(state->config->priority_usage_reset, "NOW");
    bool other = now || accounts->settings_hash != settings_hash(state->config) ||
                 accounts->tres_hash != tres_texts_hash(state->config);

    for (enum section kind = SECTION_QOS; kind < SECTIONS; kind++)
        other = other || !sections->of[kind].all_same;
    if (!other) {
        accounts_follow(state);
        return;
    }
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
}

void accounts_follow(struct state *state)
{
    struct change change = { .state = state, .accounts = state->accounts };

    change_init(&change);
    find_partitions(&change);
    count_out(&change);
    accounts_see_partitions(state);
    count_in(&change);
    state->accounts->totals_generation = 0;
    change_done(&change);
}
