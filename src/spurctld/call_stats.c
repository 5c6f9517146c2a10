/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_stats.c - how many calls of which method and user the controller answered, and their cost
 */
#include "spurctld/call_stats.h"

#include <stdlib.h>
#include <string.h>

void call_stats_init(struct call_stats *stats, size_t method_count)
{
    stats->methods = NEW_ARRAY(struct call_stat, method_count);
    stats->method_count = method_count;
    map_init(&stats->users);
}

static void forget_users(struct call_stats *stats)
{
    map_each (entry, &stats->users)
        free(entry->value);
    map_done(&stats->users);
}

void call_stats_done(struct call_stats *stats)
{
    if (!stats->methods)
        return;
    forget_users(stats);
    free(stats->methods);
    stats->methods = NULL;
}

void call_stats_reset(struct call_stats *stats)
{
    forget_users(stats);
    map_init(&stats->users);
    memset(stats->methods, 0, stats->method_count * sizeof(*stats->methods));
}

static void add(struct call_stat *stat, int64_t took_us)
{
    stat->count++;
    stat->total_us += (uint64_t)MAX(took_us, 0);
}

void call_stats_add(struct call_stats *stats, size_t method, bool has_uid, uint32_t uid,
                    int64_t took_us)
{
    struct call_stat *user = has_uid ? map_get_num(&stats->users, uid) : NULL;

    add(&stats->methods[method], took_us);
    if (has_uid && !user && map_len(&stats->users) < CALL_STATS_USERS_MAX) {
        user = NEW(struct call_stat);
        map_put_num(&stats->users, uid, user);
    }
    if (user)
        add(user, took_us);
}

static CallStat *report_one(const struct call_stat *stat, struct arena *arena)
{
    CallStat *out = ARENA_NEW(arena, CallStat);

    call_stat__init(out);
    out->has_count = out->has_total_us = true;
    out->count = stat->count;
    out->total_us = stat->total_us;
    return out;
}

void call_stats_report(const struct call_stats *stats, call_stats_name_fn *name, void *ctx,
                       DiagReply *reply, struct arena *arena)
{
    reply->calls_by_method = ARENA_ARRAY(arena, CallStat *, stats->method_count);
    for (size_t i = 0; i < stats->method_count; i++) {
        if (!stats->methods[i].count)
            continue;
        CallStat *one = report_one(&stats->methods[i], arena);
        one->name = (char *)name(ctx, i);
        reply->calls_by_method[reply->n_calls_by_method++] = one;
    }
    reply->calls_by_user = ARENA_ARRAY(arena, CallStat *, map_len(&stats->users));
    map_each (entry, &stats->users) {
        CallStat *one = report_one(entry->value, arena);
        one->has_id = true;
        one->id = (uint32_t)entry->num;
        reply->calls_by_user[reply->n_calls_by_user++] = one;
    }
}
