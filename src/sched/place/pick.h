/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pick.h - what pick.c (devices of a host) and pick_cpus.c (its CPUs) share
 */
#ifndef SCHED_PLACE_PICK_H
#define SCHED_PLACE_PICK_H

#include <string.h>

#include "sched/place/place.h"

/* Bit sets that live for one call; most are small. */
enum { SCRATCH_WORDS = 4 };

static inline void scratch_init(struct bitset *set, uint64_t *words, size_t bits)
{
    if (bits > (size_t)SCRATCH_WORDS * 64) {
        bitset_init(set, bits);
        return;
    }
    memset(words, 0, SCRATCH_WORDS * sizeof(*words));
    *set = (struct bitset){ .words = words, .bits = bits };
}

static inline void scratch_done(struct bitset *set, const uint64_t *words)
{
    if (set->words != words)
        bitset_done(set);
}

/* Adds the CPUs that nobody has to an empty set. */
void pick_free_cpus(const struct host *host, unsigned share, struct bitset *out);
/* Chooses CPUs for what is taken, near those in `near` (no words: anywhere); `by_socket`: on all sockets. */
void pick_cpus(const struct host *host, const struct shape *shape, const struct need *need,
               const struct take *take, const struct bitset *near, bool by_socket,
               struct bitset *out);

#endif
