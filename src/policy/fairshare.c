/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fairshare.c - who has used less than is due to him: the fair-share factor of every user
 *
 * Fair tree: children of an account are ranked by share / usage, then, account by account in that
 * order, the children of each; a user's factor is his rank. Users of an account that has used less
 * than its siblings always go before theirs. Classic: 2^(-usage / share), usage of the parents
 * counted by share. Integers only; accounts that are level are ranked together. Who has the share
 * "parent" counts as the account above: its users are all level, its accounts are passed over.
 */
#include <stdlib.h>
#include <string.h>

#include "policy/accounts.h"

uint64_t exp2_minus(uint64_t num, uint64_t den)
{
    /* 2^(-2^-k) of 2^32, for k = 1 … 32 */
    static const uint64_t roots[] = {
        3037000500, 3611622603, 3938502376, 4112874773, 4202935003, 4248701965, 4271771996,
        4283353945, 4289156690, 4292061010, 4293513907, 4294240540, 4294603903, 4294785595,
        4294876445, 4294921870, 4294944583, 4294955939, 4294961618, 4294964457, 4294965876,
        4294966586, 4294966941, 4294967119, 4294967207, 4294967252, 4294967274, 4294967285,
        4294967290, 4294967293, 4294967295, 4294967295,
    };
    uint64_t whole = den ? num / den : UINT64_MAX;

    if (whole >= 32)
        return 0;
    uint64_t rest = (uint64_t)(((unsigned __int128)(num % den) << 32) / den);
    uint64_t out = FRACTION >> whole;
    for (unsigned k = 0; k < 32; k++) {
        if (rest >> (31 - k) & 1)
            out = mul_fraction(out, roots[k]);
    }
    return out;
}

enum { FETCH_AHEAD = 8 };

/* They lie all over the memory. */
static void assoc_fetch(const struct assoc *assoc)
{
    __builtin_prefetch(&assoc->norm_shares, 1);
    __builtin_prefetch(&assoc->parent);
    __builtin_prefetch(&assoc->holder.usage[TRES_BILLING]);
    __builtin_prefetch(&assoc->holder.usage_us);
    __builtin_prefetch(&assoc->holder.rate[TRES_BILLING]);
}

static uint64_t used(const struct assoc *assoc)
{
    return assoc->share_of->share_used;
}

/* ---- fair tree ---- */

/* What decides the place of one, beside each other in memory: there may be many. */
struct level {
    uint64_t about; /* share / usage, rounded down: who has more of it goes first */
    uint64_t shares, used;
    struct assoc *assoc;
    bool user;
};
typedef VEC(struct level) level_list;

/* Positive when a has used less of its share than b: share / usage compared without dividing. */
static int level_compare(const struct level *a, const struct level *b)
{
    if (!a->used || !b->used) { /* who has used nothing goes first, unless he has no share */
        bool a_first = !a->used && a->shares, b_first = !b->used && b->shares;
        if (a_first != b_first)
            return a_first ? 1 : -1;
        if (a_first)
            return 0;
    }
    unsigned __int128 left = (unsigned __int128)a->shares * b->used;
    unsigned __int128 right = (unsigned __int128)b->shares * a->used;
    return left > right ? 1 : left < right ? -1 : 0;
}

static int by_level(const void *a, const void *b)
{
    const struct level *x = a, *y = b;

    if (x->about != y->about)
        return x->about > y->about ? -1 : 1;
    int order = level_compare(y, x);

    if (order)
        return order;
    if (x->user != y->user)
        return x->user ? -1 : 1;
    return 0; /* they are ranked together */
}

struct ranking {
    uint64_t rank, seen, users;
};

static void rank_level(struct ranking *ranking, struct level *list, size_t count, bool tied);

/* An account that uses the share above is not there: its children take its place. */
static void add_children(const struct assoc *parent, level_list *all)
{
    for (size_t i = 0; i < parent->children.len; i++) {
        struct assoc *child = parent->children.items[i];
        if (i + FETCH_AHEAD < parent->children.len)
            __builtin_prefetch(&parent->children.items[i + FETCH_AHEAD]->norm_shares);
        if (!child->user && child->share_of != child)
            add_children(child, all);
        else
            vec_push(all,
                     ((struct level){ 0, child->norm_shares, used(child), child, child->user }));
    }
}

/* The children of accounts that are level, ranked together. */
static void rank_below(struct ranking *ranking, const struct level *list, size_t count, bool tied)
{
    level_list all = { 0 };

    for (size_t i = 0; i < count; i++)
        add_children(list[i].assoc, &all);
    if (all.len)
        rank_level(ranking, all.items, all.len, tied);
    vec_done(&all);
}

/* Where somebody has neither share nor usage nothing is said: he is level with all. */
static void set_about(struct level *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!list[i].shares && !list[i].used)
            return;
    }
    for (size_t i = 0; i < count; i++)
        list[i].about = list[i].used ? (list[i].shares << 31) / list[i].used : UINT64_MAX;
}

/* `tied`: the first of them have the rank of the user that their account is level with. */
static void rank_level(struct ranking *ranking, struct level *list, size_t count, bool tied)
{
    size_t end;

    set_about(list, count);
    qsort(list, count, sizeof(*list), by_level);
    for (size_t i = 0; i < count; i = end, tied = false) {
        size_t users = i;
        for (end = i + 1; end < count && level_compare(&list[i], &list[end]) == 0; end++)
            ;
        while (users < end && list[users].user)
            users++;
        if (!tied)
            ranking->rank = ranking->users - ranking->seen;
        for (size_t k = i; k < users; k++)
            list[k].assoc->factor = ranking->rank * FRACTION / ranking->users;
        ranking->seen += users - i;
        if (users < end)
            rank_below(ranking, list + users, end - users, tied || users > i);
    }
}

/* ---- classic ---- */

static uint64_t of_total(const struct accounts *accounts, const struct assoc *assoc)
{
    uint64_t total = used(accounts->assocs.items[0]);

    return total ? (uint64_t)(((unsigned __int128)used(assoc) << 32) / total) : 0;
}

/* Own usage, and of the parent's what falls to the share. Parents come first. */
static void classic(struct accounts *accounts, const Config *config)
{
    uint64_t damping = MAX(config->priority_fairshare_damping, 1);
    uint64_t *effective = NEW_ARRAY(uint64_t, accounts->holders + 1);

    vec_each (struct assoc *, at, &accounts->assocs) {
        struct assoc *assoc = *at;
        uint64_t own = of_total(accounts, assoc);
        if (assoc->share_of != assoc) {
            effective[assoc->holder.number] = effective[assoc->share_of->holder.number];
            assoc->factor = assoc->share_of->factor;
            continue;
        }
        if (assoc->parent && !(accounts->flags & PRIO_DEPTH_OBLIVIOUS)) {
            uint64_t above = effective[assoc->parent->holder.number];
            uint64_t below = MAX(assoc->parent->share_of->shares_below, 1);
            if (above > own)
                own += (uint64_t)((unsigned __int128)(above - own) * assoc->fairshare / below);
        }
        effective[assoc->holder.number] = own;
        assoc->factor = assoc->norm_shares ? exp2_minus(own / damping, assoc->norm_shares) : 0;
    }
    free(effective);
}

static void norm_shares(const struct accounts *accounts, int64_t time_us)
{
    const assoc_list *all = &accounts->assocs;

    for (size_t i = 0; i < all->len; i++) {
        struct assoc *assoc = all->items[i];
        if (i + FETCH_AHEAD < all->len)
            assoc_fetch(all->items[i + FETCH_AHEAD]);
        const struct assoc *from = assoc->parent ? assoc->parent->share_of : NULL;
        uint64_t above = from ? from->norm_shares : FRACTION;
        uint64_t below = from ? MAX(from->shares_below, 1) : 1;
        uint64_t shares = from ? assoc->fairshare : 1;
        if (assoc->share_of != assoc)
            shares = below; /* all of it */
        assoc->norm_shares = (uint64_t)((unsigned __int128)above * shares / below);
        assoc->share_used = usage_at(&assoc->holder, TRES_BILLING, time_us);
    }
}

static void work_out(struct accounts *accounts, const Config *config, int64_t time_us)
{
    norm_shares(accounts, time_us);
    if (accounts->flags & PRIO_NO_FAIR_TREE) {
        classic(accounts, config);
        return;
    }
    struct ranking ranking = { .users = MAX(accounts->users, 1) };
    rank_below(&ranking, &(struct level){ .assoc = accounts->assocs.items[0] }, 1, false);
}

/* INCR_ONLY: who has jobs that wait keeps the factor they had. All of his have the same. */
static void work_out_upwards(struct accounts *accounts, const Config *config, int64_t time_us)
{
    uint64_t *before = NEW_ARRAY(uint64_t, accounts->assocs.len + 1);

    for (size_t i = 0; i < accounts->assocs.len; i++)
        before[i] = accounts->assocs.items[i]->factor;
    work_out(accounts, config, time_us);
    for (size_t i = 0; i < accounts->assocs.len; i++) {
        struct assoc *assoc = accounts->assocs.items[i];
        if (assoc->user && assoc->holder.submitted > assoc->holder.jobs)
            assoc->factor = MAX(assoc->factor, before[i]);
    }
    free(before);
}

void fairshare_work_out(struct accounts *accounts, const Config *config, int64_t time_us)
{
    if (accounts->flags & PRIO_INCR_ONLY)
        work_out_upwards(accounts, config, time_us);
    else
        work_out(accounts, config, time_us);
}
