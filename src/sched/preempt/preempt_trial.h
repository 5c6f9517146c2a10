/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt_trial.h - looking for victims: what preempt_search.c, preempt_trial.c, preempt_cost.c and preempt_hold.c share
 */
#ifndef SCHED_PREEMPT_PREEMPT_TRIAL_H
#define SCHED_PREEMPT_PREEMPT_TRIAL_H

#include "core/preempt.h"
#include "sched/place/chooser.h"

/* Hunters that differ in whom they may send away; more than these are not searched for. */
enum { SIDES_MOST = 64 };

/* A job, or a component of one: they are to start together. */
struct preemptor {
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
/* Lives for a call; what it found out is in sched->preempt_search. */
struct preempt_trial {
    struct sched *sched;
    struct preempt_search *search; /* NULL: nobody is thought away */
    const struct job *job;
    const struct job *const *jobs; /* its components, if nobody submitted it; else NULL */
    struct preemptor *preemptors;
    uint32_t count;
    struct side sides[SIDES_MOST];
    unsigned side_count;
    struct het_turns turns;
};

/* ---- preempt_trial.c ---- */

/*
 * The job with all its components, each in the partition that has this number among all (partition queues: one for
 * each), else in the first that would take it. False when one of them has none, or none may search.
 */
bool preempt_trial_open(struct preempt_trial *trial, struct sched *sched, const struct job *job,
                        uint32_t partition_queue, const uint32_t *partition_queues);
/* The same for a job that nobody submitted, of these components. */
bool preempt_trial_open_asked(struct preempt_trial *trial, struct sched *sched,
                              const struct job *const *jobs, uint32_t count,
                              uint32_t partition_queue);
void preempt_trial_close(struct preempt_trial *trial);
/* Who stands for all components of the job: the first, as long as it runs. */
const struct job *preempt_trial_stands_for(const struct sched *sched, const struct job *job);
/* Ends anyway, or was told to for this preemptor. */
bool preempt_trial_is_going(const struct preempt_trial *trial, const struct job *job);
/* May it be sent away now? By whom, and what does it leave? */
bool preempt_trial_may_take(struct preempt_trial *trial, const struct job *job, struct victim *out);
int preempt_trial_by_cost(const struct victim *a, const struct victim *b, bool youngest);
struct victim *preempt_trial_victim(const struct preempt_trial *trial,
                                    uint32_t job_id); /* NULL: not among them */
/* Runs on the host are as if gone, as far as the side may send them away; or none are. */
void preempt_trial_mark_host(const struct preempt_trial *trial, uint32_t host, unsigned side);
void preempt_trial_unmark_host(const struct preempt_trial *trial, uint32_t host);
void preempt_trial_mark_all(const struct preempt_trial *trial, unsigned side);
void preempt_trial_unmark_all(const struct preempt_trial *trial);
/* All of them beside each other; of->parts says where. With several sides marks are changed. */
bool preempt_trial_fits(struct preempt_trial *trial);
/* Would the limits of accounts and QOS let them, as preempt_trial_fits() placed them? */
bool preempt_trial_is_allowed(struct preempt_trial *trial);
/* Is there room for the seats on this host? They are these, all of it. */
bool preempt_trial_seats_fit(struct preempt_trial *trial, const struct seat *seats, size_t count);

/* ---- preempt_cost.c ---- */

/* Asks hosts what they would cost the preemptor, some in each slice; true when all have said so. */
bool preempt_cost_gather(struct preempt_trial *trial, const struct preemptor *preemptor,
                         unsigned *budget);
/* The cheapest of them, as many as may be needed, are added to search->hosts; false: too few. */
bool preempt_cost_cheapest(struct preempt_trial *trial, const struct preemptor *preemptor);

/* ---- preempt_hold.c ---- */

/* Room is held on the seats of the search; who must go is told in time. */
void preempt_hold_put(struct preempt_trial *trial);

#endif
