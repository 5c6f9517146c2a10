/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rollup.h - use of the past, summed up by hour, day and month
 *
 *     bool more = true;
 *     while (more && rollup_step(store, cluster, now_s, &more, &err) == 0)
 *         ;
 *     rollup_sum(store, cluster, edges_s, 2, now_s, &meter, &err);
 *
 * The rows can always be made again from the history: rollup_restart(). Times are seconds.
 */
#ifndef SPURDBD_ROLLUP_H
#define SPURDBD_ROLLUP_H

#include "spurdbd/meter.h"
#include "spurdbd/store.h"

enum rollup_period { ROLLUP_HOUR, ROLLUP_DAY, ROLLUP_MONTH };
/* The beginning of the hour, day or month (local time) that a moment is in; of the next one. */
int64_t rollup_floor(enum rollup_period period, int64_t at_s);
int64_t rollup_next(enum rollup_period period, int64_t at_s);

/* Everything before that is summed up; INT64_MIN: nothing. */
int rollup_done(struct store *store, int64_t cluster, int64_t *done_s, struct err *err);
/* The history from there on is another than was summed up; inside a transaction. */
int rollup_restart(struct store *store, int64_t cluster, int64_t from_s, struct err *err);
/* Everything from there on is to be summed up again, INT64_MIN: everything; in a transaction of its own. */
int rollup_again(struct store *store, int64_t cluster, int64_t from_s, struct err *err);
/* Sums up the next hours, a day of them at most, in a transaction. *more: there are others. */
int rollup_step(struct store *store, int64_t cluster, int64_t now_s, bool *more, struct err *err);

/*
 * What was used between the edges: from the sums where there are some, from the history itself for the rest,
 * so that the last minutes are in it. The caller frees *out.
 */
int rollup_sum(struct store *store, int64_t cluster, const int64_t *edges_s, size_t count,
               int64_t now_s, struct meter **out, struct err *err);
/* The same from the history alone, into the spans of `meter`; meter_settle() is left to the caller. */
int rollup_direct(struct store *store, int64_t cluster, struct meter *meter, int64_t from_s,
                  int64_t to_s, int64_t now_s, struct err *err);

/* ---- runs of jobs in a window: rollup_runs.c ---- */

struct rollup_part {
    int64_t from_s, to_s;
    struct span tres;
};
struct rollup_run {
    struct meter_who who;
    uint32_t job_id, run, gid;
    int64_t eligible_s, start_s,
        end_s; /* start_s 0: never; end_s: INT64_MAX while it has not ended */
    struct span tres_req;
    const struct rollup_part *parts; /* when it had what, without suspensions */
    size_t part_count;
    struct span reservation, nodes;
    int64_t node_count;
};
typedef int rollup_each_fn(void *ctx, const struct rollup_run *run, struct err *err);
/* Runs that waited or ran between the two moments. */
int rollup_each_run(struct store *store, int64_t cluster, int64_t from_s, int64_t to_s,
                    rollup_each_fn *each, void *ctx, struct err *err);

#endif
