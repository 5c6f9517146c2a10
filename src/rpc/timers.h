/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timers.h - many deadlines behind one timer
 *
 * A binary heap of embedded nodes. Setting, moving and clearing cost a few swaps and no memory, so
 * every call and connection can have one.
 */
#ifndef RPC_TIMERS_H
#define RPC_TIMERS_H

#include "base/vec.h"

struct timer {
    int64_t at_ms;
    size_t slot; /* index in the heap + 1; 0 when not set */
    void (*fire)(struct timer *timer);
};

struct timers {
    VEC(struct timer *) heap;
};

void timers_done(struct timers *timers);
void timers_set(struct timers *timers, struct timer *timer, int64_t at_ms); /* or moves it */
void timers_clear(struct timers *timers, struct timer *timer);
/* Fires what is due, each once, cleared before its call. */
void timers_run(struct timers *timers, int64_t now_ms);
/* False when none is set. */
bool timers_next(const struct timers *timers, int64_t *at_ms);

static inline bool timer_is_set(const struct timer *timer)
{
    return timer->slot != 0;
}

#endif
