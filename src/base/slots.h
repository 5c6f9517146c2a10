/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots.h - a hash table of numbers that never holds anybody up
 *
 * It holds pairs of a hash and a number that is not 0 (an id, a place + 1); what they stand for is
 * the caller's. It grows a little with each put, so that no put costs more when there are millions.
 *
 *     struct slots slots = { 0 };
 *     slots_put(&slots, hash, id);
 *     for (struct slots_at at = { 0 }; (id = slots_next(&slots, hash, &at));)
 *         if (is_it(id)) ...
 *     slots_done(&slots);
 */
#ifndef BASE_SLOTS_H
#define BASE_SLOTS_H

#include "base/util.h"

struct slots {
    uint64_t *now, *old; /* hash and number; what is in `old` is moved bit by bit */
    size_t cap, old_cap, moved, count;
};

#define SLOTS_MOST UINT32_C(0xfffffffe) /* the highest number that can be put */

void slots_done(struct slots *slots);
void slots_put(struct slots *slots, uint32_t hash, uint32_t number);
/* The pair must be there. */
void slots_del(struct slots *slots, uint32_t hash, uint32_t number);

/* The next number with that hash, or 0; nothing may be put or taken away between. */
struct slots_at {
    size_t at;
    bool begun, in_old;
};
uint32_t slots_next(const struct slots *slots, uint32_t hash, struct slots_at *at);
/* What slots_next() gave is this number from now on. */
void slots_set(struct slots *slots, const struct slots_at *at, uint32_t number);

/* All numbers, in no order that means anything: begin with 0; 0 at the end. */
uint32_t slots_walk(const struct slots *slots, size_t *at);

#endif
