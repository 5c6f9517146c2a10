/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots.c - a hash table of numbers that never holds anybody up
 *
 * (1) Open addressing, at most three quarters full. A pair is where its hash says or after it, with
 *     nothing empty between.
 * (2) When it is full a table of twice the size begins, and each put moves some of the old one. It
 *     is empty long before the new one is full. What was moved or taken away there is marked GONE, so
 *     that a search in it goes on.
 */
#include "base/slots.h"

#include <stdlib.h>

enum { MOVES = 16, FIRST_CAP = 16 };
static const uint64_t GONE = UINT32_MAX;

static uint64_t pair(uint32_t hash, uint32_t number)
{
    return (uint64_t)hash << 32 | number;
}

void slots_done(struct slots *slots)
{
    free(slots->now);
    free(slots->old);
    *slots = (struct slots){ 0 };
}

static void place(struct slots *slots, uint64_t value)
{
    size_t mask = slots->cap - 1, at = (size_t)(value >> 32) & mask;

    while (slots->now[at])
        at = (at + 1) & mask;
    slots->now[at] = value;
}

/* (2) */
static void move_some(struct slots *slots)
{
    for (unsigned i = 0; slots->old && i < MOVES; i++) {
        uint64_t *from = &slots->old[slots->moved++];
        if (*from && *from != GONE)
            place(slots, *from);
        *from = *from ? GONE : 0;
        if (slots->moved == slots->old_cap) {
            free(slots->old);
            slots->old = NULL;
        }
    }
}

static void grow(struct slots *slots)
{
    while (slots->old)
        move_some(slots);
    slots->old = slots->now;
    slots->old_cap = slots->cap;
    slots->moved = 0;
    slots->cap = slots->cap ? slots->cap * 2 : FIRST_CAP;
    slots->now = NEW_ARRAY(uint64_t, slots->cap);
}

void slots_put(struct slots *slots, uint32_t hash, uint32_t number)
{
    if (slots->count + 1 > slots->cap / 4 * 3)
        grow(slots);
    move_some(slots);
    place(slots, pair(hash, number));
    slots->count++;
}

/* Closes the gap. */
static void take_out(struct slots *slots, size_t at)
{
    size_t mask = slots->cap - 1;

    for (size_t next = (at + 1) & mask; slots->now[next]; next = (next + 1) & mask) {
        size_t home = (size_t)(slots->now[next] >> 32) & mask;
        if (((next - home) & mask) >= ((next - at) & mask)) {
            slots->now[at] = slots->now[next];
            at = next;
        }
    }
    slots->now[at] = 0;
}

static uint32_t next_in(const uint64_t *table, size_t cap, uint32_t hash, struct slots_at *at)
{
    size_t mask = cap - 1, i = at->begun ? (at->at + 1) & mask : hash & mask;

    for (; table[i]; i = (i + 1) & mask) {
        if (table[i] >> 32 == hash && table[i] != GONE) {
            at->at = i;
            at->begun = true;
            return (uint32_t)table[i];
        }
    }
    return 0;
}

uint32_t slots_next(const struct slots *slots, uint32_t hash, struct slots_at *at)
{
    uint32_t number = 0;

    if (slots->now && !at->in_old)
        number = next_in(slots->now, slots->cap, hash, at);
    if (number || !slots->old)
        return number;
    if (!at->in_old)
        *at = (struct slots_at){ .in_old = true };
    return next_in(slots->old, slots->old_cap, hash, at);
}

void slots_set(struct slots *slots, const struct slots_at *at, uint32_t number)
{
    uint64_t *slot = at->in_old ? &slots->old[at->at] : &slots->now[at->at];

    *slot = pair((uint32_t)(*slot >> 32), number);
}

void slots_del(struct slots *slots, uint32_t hash, uint32_t number)
{
    struct slots_at at = { 0 };
    uint32_t found;

    while ((found = slots_next(slots, hash, &at)) && found != number)
        continue;
    if (!found)
        return;
    if (at.in_old)
        slots->old[at.at] = GONE;
    else
        take_out(slots, at.at);
    slots->count--;
}

uint32_t slots_walk(const struct slots *slots, size_t *at)
{
    for (; *at < slots->cap; ++*at) {
        if (slots->now[*at])
            return (uint32_t)slots->now[(*at)++];
    }
    for (; slots->old && *at - slots->cap < slots->old_cap; ++*at) {
        uint64_t value = slots->old[*at - slots->cap];
        if (value && value != GONE) {
            ++*at;
            return (uint32_t)value;
        }
    }
    return 0;
}
