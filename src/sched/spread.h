/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spread.h - moments in order, and how values are spread: what horizon.c counts with
 */
#ifndef SCHED_SPREAD_H
#define SCHED_SPREAD_H

#include "base/vec.h"

struct moment {
    int64_t at_s;
    uint32_t job_id;
};
struct moments {
    VEC(struct moment) items; /* a heap */
};
void moment_put(struct moments *heap, struct moment item);
struct moment moment_take(struct moments *heap); /* the soonest; there is one */
bool moment_is_due(const struct moments *heap, int64_t now_s);

enum {
    SPREAD_STEP = 8, /* of predict_log(): 32 buckets a doubling */
    SPREAD_BUCKETS = 64 * 256 / SPREAD_STEP,
    SPREAD_LARGEST = 1 << 30,
};
struct spread {
    uint32_t counts[SPREAD_BUCKETS];
    uint64_t total;
};
void spread_add(struct spread *spread, int64_t value);
void spread_halve(struct spread *spread);
unsigned spread_bucket(int64_t value);
int64_t spread_value(unsigned bucket); /* the middle of it */
/* The bucket that one in `part` is in or above; 0: nothing is known. */
unsigned spread_top(const struct spread *spread, unsigned part);
/* The lowest bucket that no more than one in `part` is in or above. */
unsigned spread_tip(const struct spread *spread, unsigned part);

#endif
