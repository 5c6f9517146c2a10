/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hunt_priv.h - looking for victims: what preempt.c, hunt.c and bids.c share
 */
#ifndef SCHED_HUNT_PRIV_H
#define SCHED_HUNT_PRIV_H

#include "core/preempt.h"
#include "sched/place_priv.h"

struct candidate {
    const struct job *job;
    enum preempt_mode mode;
    uint32_t worth;
};
/* For one job; lives for a call. */
struct hunt {
    struct sched *sched;
    struct family *family;
    const struct job *job;
    const struct need *need;
    size_t partition;
    struct view view;
    VEC(struct candidate) list; /* the cheapest first */
    VEC(const struct job *) going;
    struct parts parts;
};

/* hunt.c */
void hunt_init(struct hunt *hunt, struct sched *sched, const struct job *job, size_t partition);
/* Names victims on the hosts, the cheapest host first, and holds their room; or false. */
bool hunt_victims(struct hunt *hunt, const uint32_t *hosts, size_t count);
void hunt_mark(struct sched *sched, const struct job *job, uint8_t out);
void hunt_mark_candidate(struct sched *sched, const struct candidate *candidate, bool out);
bool hunt_is_going(const struct job *job); /* ends anyway */
bool hunt_may_take(struct hunt *hunt, const struct job *job, struct candidate *out);
int hunt_by_cost(const void *a, const void *b, void *youngest); /* of candidates */

/* bids.c */
/* Asks hosts what they would cost, some in each slice; true when all have said so. */
bool bids_ask(struct hunt *hunt, unsigned *budget);
/* The cheapest of them, as many as may be needed; to be freed. */
uint32_t *bids_best(const struct hunt *hunt, size_t *count);
void bids_clear(struct sched *sched);

#endif
