/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram.h - moments in order, and how values are spread: what overtake.c counts with
 */
#ifndef SCHED_QUEUE_HISTOGRAM_H
#define SCHED_QUEUE_HISTOGRAM_H

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
    HISTOGRAM_STEP = 8, /* of predict_log(): 32 buckets a doubling */
    HISTOGRAM_BUCKETS = 64 * 256 / HISTOGRAM_STEP,
    HISTOGRAM_LARGEST = 1 << 30,
};
struct histogram {
    uint32_t counts[HISTOGRAM_BUCKETS];
    uint64_t total;
};
void histogram_add(struct histogram *spread, int64_t value);
void histogram_halve(struct histogram *spread);
unsigned histogram_bucket(int64_t value);
int64_t histogram_value(unsigned bucket); /* the middle of it */
/* The bucket that one in `part` is in or above; 0: nothing is known. */
unsigned histogram_top(const struct histogram *spread, unsigned part);
/* The lowest bucket that no more than one in `part` is in or above. */
unsigned histogram_tip(const struct histogram *spread, unsigned part);

#endif
