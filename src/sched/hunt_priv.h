/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hunt_priv.h - looking for victims: what chase.c, hunt.c, bids.c and holds.c share
 */
#ifndef SCHED_HUNT_PRIV_H
#define SCHED_HUNT_PRIV_H

#include "core/preempt.h"
#include "sched/place_priv.h"

/* Hunters that differ in whom they may send away; more than these are not hunted for. */
enum { SIDES_MOST = 64 };

/* A job, or a component of one: they are to start together. */
struct hunter {
    const struct job *job;
    struct family *family;
    bool own; /* the family is to be freed */
    const struct need *need;
    size_t partition;
    unsigned side;
    struct view view;
    struct booked of;      /* where it is to be */
    const uint32_t *hosts; /* where it may be, the best first */
    size_t host_count;
};
struct side {
    const struct job *job;
    const struct partition *partition;
};
/* Lives for a call; what it found out is in sched->chase. */
struct hunt {
    struct sched *sched;
    struct chase *chase; /* NULL: nobody is thought away */
    const struct job *job;
    const struct job *const *jobs; /* its components, if nobody submitted it; else NULL */
    struct hunter *hunters;
    uint32_t count;
    struct side sides[SIDES_MOST];
    unsigned side_count;
    struct het_turns turns;
};

/* ---- hunt.c ---- */

/*
 * The job with all its components, each in the partition that has this number among all (lanes: one for
 * each), else in the first that would take it. False when one of them has none, or none may hunt.
 */
bool hunt_open(struct hunt *hunt, struct sched *sched, const struct job *job, uint32_t lane,
               const uint32_t *lanes);
/* The same for a job that nobody submitted, of these components. */
bool hunt_open_asked(struct hunt *hunt, struct sched *sched, const struct job *const *jobs,
                     uint32_t count, uint32_t lane);
void hunt_close(struct hunt *hunt);
/* Who stands for all components of the job: the first, as long as it runs. */
const struct job *hunt_stands_for(const struct sched *sched, const struct job *job);
/* Ends anyway, or was told to for this hunter. */
bool hunt_is_going(const struct hunt *hunt, const struct job *job);
/* May it be sent away now? By whom, and what does it leave? */
bool hunt_may_take(struct hunt *hunt, const struct job *job, struct quarry *out);
int hunt_by_cost(const struct quarry *a, const struct quarry *b, bool youngest);
struct quarry *hunt_quarry(const struct hunt *hunt, uint32_t job_id); /* NULL: not among them */
/* Runs on the host are as if gone, as far as the side may send them away; or none are. */
void hunt_mark_host(const struct hunt *hunt, uint32_t host, unsigned side);
void hunt_unmark_host(const struct hunt *hunt, uint32_t host);
void hunt_mark_all(const struct hunt *hunt, unsigned side);
void hunt_unmark_all(const struct hunt *hunt);
/* All of them beside each other; of->parts says where. With several sides marks are changed. */
bool hunt_fits(struct hunt *hunt);
/* Would the limits of accounts and QOS let them, as hunt_fits() placed them? */
bool hunt_is_allowed(struct hunt *hunt);
/* Is there room for the seats on this host? They are these, all of it. */
bool hunt_seats_fit(struct hunt *hunt, const struct seat *seats, size_t count);

/* ---- bids.c ---- */

/* Asks hosts what they would cost the hunter, some in each slice; true when all have said so. */
bool bids_ask(struct hunt *hunt, const struct hunter *hunter, unsigned *budget);
/* The cheapest of them, as many as may be needed, are added to chase->hosts; false: too few. */
bool bids_best(struct hunt *hunt, const struct hunter *hunter);

/* ---- holds.c ---- */

/* Room is held on the seats of the chase; who must go is told in time. */
void hold_put(struct hunt *hunt);

#endif
