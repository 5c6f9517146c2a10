/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timers.c - a binary heap of embedded nodes
 */
#include "rpc/timers.h"

void timers_done(struct timers *timers)
{
    vec_done(&timers->heap);
}

static void place(struct timers *timers, size_t slot, struct timer *timer)
{
    timers->heap.items[slot - 1] = timer;
    timer->slot = slot;
}

/* Moves the timer from an empty slot to where it belongs. */
static void settle(struct timers *timers, size_t slot, struct timer *timer)
{
    struct timer **items = timers->heap.items;

    while (slot > 1 && items[slot / 2 - 1]->at_ms > timer->at_ms) {
        place(timers, slot, items[slot / 2 - 1]);
        slot /= 2;
    }
    for (;;) {
        size_t child = slot * 2;
        if (child > timers->heap.len)
            break;
        if (child < timers->heap.len && items[child]->at_ms < items[child - 1]->at_ms)
            child++;
        if (items[child - 1]->at_ms >= timer->at_ms)
            break;
        place(timers, slot, items[child - 1]);
        slot = child;
    }
    place(timers, slot, timer);
}

void timers_set(struct timers *timers, struct timer *timer, int64_t at_ms)
{
    size_t slot = timer->slot;

    timer->at_ms = at_ms;
    if (!slot) {
        vec_push(&timers->heap, timer);
        slot = timers->heap.len;
    }
    settle(timers, slot, timer);
}

void timers_clear(struct timers *timers, struct timer *timer)
{
    size_t slot = timer->slot;

    if (!slot)
        return;
    struct timer *last = timers->heap.items[--timers->heap.len];
    timer->slot = 0;
    if (last != timer)
        settle(timers, slot, last);
}

void timers_run(struct timers *timers, int64_t now_ms)
{
    while (timers->heap.len && timers->heap.items[0]->at_ms <= now_ms) {
        struct timer *timer = timers->heap.items[0];

        timers_clear(timers, timer);
        timer->fire(timer);
    }
}

bool timers_next(const struct timers *timers, int64_t *at_ms)
{
    if (!timers->heap.len)
        return false;
    *at_ms = timers->heap.items[0]->at_ms;
    return true;
}
