/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts_merge.c - the tables of accounts under another configuration
 *
 * Who is there stays in his place and is read again where something is another; see accounts_change.c.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/change.h"
#include "wire/pb.h"

enum { FETCH_AHEAD = 8 };

/* ---- QOS ---- */

static void add_fresh(struct change *change, struct holder *holder)
{
    if (change->has_jobs)
        holder->usage_us = change->time_us;
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

    change_mark(change, assoc, MARK_READ | (other & READ_BELOW ? MARK_BELOW : 0));
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
    change_mark(change, assoc->parent, MARK_SHRINKS);
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

    struct map several; /* associations of users who have more than one */

    map_init(&several);
    map_each (entry, &change->users) {
        struct assoc *first = map_get(&accounts->by_user, entry->key), *at = first;
        map_del(&accounts->defaults, entry->key);
        if (first && !first->next_of_user && first->conf && !(first->mark & MARK_GONE))
            map_put(&accounts->defaults, entry->key, first);
        for (; first && first->next_of_user && at; at = at->next_of_user)
            map_put_num(&several, (uintptr_t)at, at);
    }
    for (size_t i = 0; i < change->config->n_users && map_len(&several); i++) {
        struct assoc *assoc = accounts->of_users.items[i];
        if (!map_get_num(&several, (uintptr_t)assoc))
            continue;
        const ConfUser *conf = change->config->users[i];
        if (conf->is_default || !map_has(&accounts->defaults, conf->name))
            map_put(&accounts->defaults, conf->name, assoc);
    }
    map_done(&several);
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
            change_mark(change, (*at)->parent, MARK_SHRINKS);
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
        if (change->digest)
            *change->digest -= (*at)->holder.hash;
        assoc_free(change->accounts, *at);
    }
    vec_each (struct qos *, at, &change->gone_qos) {
        if (change->digest)
            *change->digest -= (*at)->holder.hash;
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
        for (size_t i = 0; i < accounts->assocs.len; i++) {
            const struct assoc *soon =
                accounts->assocs.items[MIN(i + FETCH_AHEAD, accounts->assocs.len - 1)];
            __builtin_prefetch(&soon->shares_below, 1); /* they lie all over the memory */
            __builtin_prefetch(&soon->parent);
            accounts->assocs.items[i]->shares_below = 0;
        }
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
uint64_t accounts_settings(const Config *config)
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

void change_take(struct change *change)
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
    accounts->settings_hash = accounts_settings(change->config);
    accounts->share_rules = share_rules(accounts, change->config);
}
