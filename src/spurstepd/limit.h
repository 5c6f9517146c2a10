/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit.h - how long a step may run: boot time less the time it was frozen
 *
 * Pure: the caller says what time it is. Wall clocks may jump; nothing here sees them.
 */
#ifndef SPURSTEPD_LIMIT_H
#define SPURSTEPD_LIMIT_H

#include "base/util.h"

enum limit_event { LIMIT_NOTHING, LIMIT_WARN, LIMIT_OVER };

struct limit {
    int64_t limit_us; /* of run time; negative: none */
    int64_t warn_us;  /* the warning comes this long before the end; negative: none */
    int64_t started_us;
    int64_t frozen_us;       /* in all, without the freeze that lasts */
    int64_t frozen_since_us; /* -1: not frozen */
    bool warned, over;
};

/* limit_s < 0: no limit; warn_before_s < 0: no warning. */
void limit_start(struct limit *limit, int64_t limit_s, int64_t warn_before_s, int64_t now_us);

/* A longer limit takes back an end that was not yet acted on, and warns again. */
void limit_change(struct limit *limit, int64_t limit_s, int64_t now_us);

void limit_freeze(struct limit *limit, int64_t now_us);
void limit_thaw(struct limit *limit, int64_t now_us);

int64_t limit_used_us(const struct limit *limit, int64_t now_us);

/* What is due, each event once. */
enum limit_event limit_due(struct limit *limit, int64_t now_us);

/* When limit_due() has something to say if nothing changes; -1: never. */
int64_t limit_next_us(const struct limit *limit, int64_t now_us);

#endif
