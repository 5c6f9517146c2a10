/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_shares.c - shares and usage of associations, for sshare
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/accounts.h"
#include "proto/acct.pb-c.h"
#include "spurctld/ctl/ctl_priv.h"

struct shares {
    const struct ctl *ctl;
    struct ctl_ask *ask;
    const struct tres *tres;
    size_t tres_count;
    ListSharesReply *reply;
    bool hides; /* usage of others */
    bool limits;
};

/* Users come before the accounts below. */
static int by_name(const void *a, const void *b)
{
    const struct assoc *left = *(struct assoc *const *)a, *right = *(struct assoc *const *)b;

    if (!left->user != !right->user)
        return left->user ? -1 : 1;
    int order =
        left->user ? strcmp(left->user, right->user) : strcmp(left->account, right->account);
    return order ? order
                 : strcmp(left->partition ? left->partition : "",
                          right->partition ? right->partition : "");
}

static const char *minutes_limit(const struct assoc *assoc)
{
    if (!assoc->conf)
        return NULL;
    if (assoc->conf->descriptor == &conf_user__descriptor)
        return ((const ConfUser *)(const void *)assoc->conf)->grp_tres_mins;
    return ((const ConfAccount *)(const void *)assoc->conf)->grp_tres_mins;
}

static void add_tres(const struct shares *shares, const struct assoc *assoc, ShareRow *row)
{
    const struct state *state = shares->ctl->state;
    uint64_t now_s = (uint64_t)(state_head(state).time_us / 1000000);

    row->tres = ARENA_ARRAY(shares->ask->arena, ShareTres *, shares->tres_count);
    for (size_t i = 0; i < shares->tres_count; i++) {
        ShareTres *one = ARENA_NEW(shares->ask->arena, ShareTres);
        uint64_t end = assoc->holder.run_end[i], now = assoc->holder.used[i] * now_s;
        share_tres__init(one);
        one->name = (char *)(uintptr_t)shares->tres[i].name;
        one->has_used = one->has_run_secs = true;
        one->used = holder_usage(state, &assoc->holder, i);
        one->run_secs = (int64_t)(end - now) > 0 ? end - now : 0;
        row->tres[row->n_tres++] = one;
    }
}

static ShareLimit *add_limit(const struct shares *shares, ShareRow *row, const char *name,
                             uint64_t most, uint64_t used)
{
    ShareLimit *limit = ARENA_NEW(shares->ask->arena, ShareLimit);

    share_limit__init(limit);
    limit->name = (char *)(uintptr_t)name;
    limit->has_most = limit->has_used = true;
    limit->most = most;
    limit->used = used;
    row->limits[row->n_limits++] = limit;
    return limit;
}

static void add_minutes(const struct shares *shares, const struct assoc *assoc, ShareRow *row,
                        size_t tres, uint64_t most)
{
    const struct state *state = shares->ctl->state;
    uint64_t used = holder_usage(state, &assoc->holder, tres) / 60;
    struct limit_hit hit = {
        .past = true,
        .most = most,
        .used = used,
        .assoc = assoc,
        .holder = &assoc->holder,
        .tres = &shares->tres[tres],
    };
    ShareLimit *limit = add_limit(shares, row, "GrpTRESMins", most, used);

    limit->tres = (char *)(uintptr_t)shares->tres[tres].name;
    limit->has_past = limit->past = true;
    if (used >= most) {
        limit->frees_us = limit_decays_us(state, &hit);
        limit->has_frees_us = limit->frees_us != INT64_MAX;
    }
}

/* Those on all that it runs, or ran; what an account has for its users is theirs. */
static void add_limits(const struct shares *shares, const struct assoc *assoc, ShareRow *row)
{
    const struct tres_limits *limits = &assoc->tres_limits;
    static const struct {
        enum bound bound;
        const char *name;
        bool users;
    } counts[] = { { GRP_JOBS, "GrpJobs", false },
                   { GRP_SUBMIT, "GrpSubmitJobs", false },
                   { MAX_JOBS, "MaxJobs", true },
                   { MAX_SUBMIT, "MaxSubmitJobs", true } };

    row->limits =
        ARENA_ARRAY(shares->ask->arena, ShareLimit *, 2 * shares->tres_count + ARRAY_LEN(counts));
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        bool submits = counts[i].bound == GRP_SUBMIT || counts[i].bound == MAX_SUBMIT;
        if (limits->count[counts[i].bound] != NO_LIMIT && (!counts[i].users || assoc->user))
            add_limit(shares, row, counts[i].name, limits->count[counts[i].bound],
                      submits ? assoc->holder.submitted : assoc->holder.jobs);
    }
    for (size_t i = 0; i < shares->tres_count; i++) {
        if (limits->has_tres[GRP_TRES] >> i & 1) {
            ShareLimit *limit =
                add_limit(shares, row, "GrpTRES", limits->tres[GRP_TRES][i], assoc->holder.used[i]);
            limit->tres = (char *)(uintptr_t)shares->tres[i].name;
        }
        if (limits->has_tres[GRP_TRES_MINS] >> i & 1)
            add_minutes(shares, assoc, row, i, limits->tres[GRP_TRES_MINS][i]);
    }
}

static void add_row(struct shares *shares, const struct assoc *assoc)
{
    ShareRow *row = ARENA_NEW(shares->ask->arena, ShareRow);

    share_row__init(row);
    row->account = (char *)(uintptr_t)assoc->account;
    row->user = (char *)(uintptr_t)(assoc->user ? assoc->user : "");
    row->partition = (char *)(uintptr_t)assoc->partition;
    row->parent = (char *)(uintptr_t)(assoc->parent ? assoc->parent->account : "");
    row->has_depth = row->has_shares = row->has_usage = row->has_factor = true;
    row->depth = assoc->depth;
    row->shares = assoc->fairshare;
    row->usage = holder_usage(shares->ctl->state, &assoc->holder, TRES_BILLING);
    row->factor = assoc->factor;
    row->grp_tres_mins = (char *)(uintptr_t)minutes_limit(assoc);
    add_tres(shares, assoc, row);
    if (shares->limits)
        add_limits(shares, assoc, row);
    shares->reply->rows[shares->reply->n_rows++] = row;
}

static void add_below(struct shares *shares, const struct assoc *assoc)
{
    size_t count = assoc->children.len;
    struct assoc **list = ARENA_ARRAY(shares->ask->arena, struct assoc *, count + 1);

    if (!shares->hides || !assoc->user || str_eq(assoc->user, shares->ask->who->user))
        add_row(shares, assoc);
    for (size_t i = 0; i < count; i++)
        list[i] = assoc->children.items[i];
    qsort(list, count, sizeof(*list), by_name);
    for (size_t i = 0; i < count; i++)
        add_below(shares, list[i]);
}

void ctl_list_shares(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    ListSharesReply reply = LIST_SHARES_REPLY__INIT;
    struct shares shares = { .ctl = ctl, .ask = ask, .reply = &reply };
    const Config *config = state_config(ctl->state);
    size_t count = state_assoc_count(ctl->state);

    shares.limits = ((const ListSharesRequest *)(const void *)message)->limits;
    shares.tres = state_tres(ctl->state, &shares.tres_count);
    shares.hides = ctl_hides(ctl, ask, "usage");
    reply.rows = ARENA_ARRAY(ask->arena, ShareRow *, count + 1);
    reply.cluster = config->cluster_name;
    reply.has_classic = true;
    reply.classic = config->priority_flags && strcasestr(config->priority_flags, "NO_FAIR_TREE");
    reply.has_depth_oblivious = true;
    reply.depth_oblivious =
        config->priority_flags && strcasestr(config->priority_flags, "DEPTH_OBLIVIOUS");
    for (size_t i = 0; i < count; i++) {
        const struct assoc *assoc = state_assoc_at(ctl->state, i);
        if (!assoc->parent)
            add_below(&shares, assoc);
    }
    ask->ops->reply(ask, &reply.base);
}
