/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit.c - how long a step may run: boot time less the time it was frozen
 */
#include "spurstepd/limit.h"

#include "base/limits.h"

enum { SECOND_US = 1000000 };

static int64_t bounded_us(int64_t seconds)
{
    return seconds < 0 ? -1 : MIN(seconds, LIMIT_SECONDS) * SECOND_US;
}

void limit_start(struct limit *limit, int64_t limit_s, int64_t warn_before_s, int64_t now_us)
{
    *limit = (struct limit){
        .limit_us = bounded_us(limit_s),
        .warn_us = bounded_us(warn_before_s),
        .started_us = now_us,
        .frozen_since_us = -1,
    };
}

int64_t limit_used_us(const struct limit *limit, int64_t now_us)
{
    int64_t until = limit->frozen_since_us >= 0 ? limit->frozen_since_us : now_us;

    return until - limit->started_us - limit->frozen_us;
}

void limit_change(struct limit *limit, int64_t limit_s, int64_t now_us)
{
    int64_t used = limit_used_us(limit, now_us);

    limit->limit_us = bounded_us(limit_s);
    if (limit->limit_us < 0 || used < limit->limit_us)
        limit->over = false;
    if (limit->limit_us < 0 || used < limit->limit_us - limit->warn_us)
        limit->warned = false;
}

void limit_freeze(struct limit *limit, int64_t now_us)
{
    if (limit->frozen_since_us < 0)
        limit->frozen_since_us = now_us;
}

void limit_thaw(struct limit *limit, int64_t now_us)
{
    if (limit->frozen_since_us >= 0)
        limit->frozen_us += now_us - limit->frozen_since_us;
    limit->frozen_since_us = -1;
}

enum limit_event limit_due(struct limit *limit, int64_t now_us)
{
    if (limit->limit_us < 0 || limit->frozen_since_us >= 0 || limit->over)
        return LIMIT_NOTHING;
    int64_t used = limit_used_us(limit, now_us);
    if (used >= limit->limit_us) {
        limit->over = true;
        return LIMIT_OVER;
    }
    if (limit->warn_us >= 0 && !limit->warned && used >= limit->limit_us - limit->warn_us) {
        limit->warned = true;
        return LIMIT_WARN;
    }
    return LIMIT_NOTHING;
}

int64_t limit_next_us(const struct limit *limit, int64_t now_us)
{
    if (limit->limit_us < 0 || limit->frozen_since_us >= 0 || limit->over)
        return -1;
    int64_t at = limit->limit_us;
    if (limit->warn_us >= 0 && !limit->warned)
        at = MAX(limit->limit_us - limit->warn_us, 0);
    return now_us + at - limit_used_us(limit, now_us);
}
