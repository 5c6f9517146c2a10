/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_stats.h - how many calls of which method and user the controller answered, and their cost
 *
 * What sdiag shows. The cost is the time that a handler kept the loop, not how long the caller
 * waited. The number of users is bounded; calls of further ones are counted by method only.
 */
#ifndef SPURCTLD_CALL_STATS_H
#define SPURCTLD_CALL_STATS_H

#include "base/arena.h"
#include "base/map.h"
#include "proto/controller.pb-c.h"

enum { CALL_STATS_USERS_MAX = 4096 };

struct call_stat {
    uint64_t count, total_us;
};

struct call_stats {
    struct call_stat *methods; /* by number of the method */
    size_t method_count;
    struct map users; /* uid → struct call_stat */
};

void call_stats_init(struct call_stats *stats, size_t method_count);
void call_stats_done(struct call_stats *stats);
void call_stats_reset(struct call_stats *stats);
/* `uid` is counted only when `has_uid`. */
void call_stats_add(struct call_stats *stats, size_t method, bool has_uid, uint32_t uid,
                    int64_t took_us);

/* Method `number` is called name(ctx, number); the name must outlive `reply`. */
typedef const char *call_stats_name_fn(void *ctx, size_t number);
/* Adds every method and user with calls to `reply`, in memory of `arena`. */
void call_stats_report(const struct call_stats *stats, call_stats_name_fn *name, void *ctx,
                       DiagReply *reply, struct arena *arena);

#endif
