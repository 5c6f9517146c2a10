/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt_trial.h - trying a start as if some running jobs had gone: what the files of this folder share
 */
#ifndef SCHED_PREEMPT_PREEMPT_TRIAL_H
#define SCHED_PREEMPT_PREEMPT_TRIAL_H

#include "core/preempt.h"
#include "sched/place/chooser.h"
#include "sched/preempt/preempt.h"

/* Preemptors that may preempt different jobs are on different sides; no search is made with more sides. */
enum { SIDES_MOST = 64 };

/* A job, or a component of one; all components start together. */
struct preemptor {
    const struct job *job;
    struct family *family;
    bool own; /* the family is freed with the trial */
    const struct need *need;
    size_t partition;
    unsigned side;
    struct view view;
    struct booked of;      /* where it would run */
    const uint32_t *hosts; /* where it may run, the best first */
    size_t host_count;
};
struct side {
    const struct job *job;
    const struct partition *partition;
};
/* Lives for one call; what it finds out is kept in sched->preempt->search. */
struct preempt_trial {
    struct sched *sched;
    struct preempt_search *search; /* NULL: no job is left out */
    const struct job *job;
    const struct job *const *jobs; /* the components of a job that nobody submitted; else NULL */
    struct preemptor *preemptors;
    uint32_t count;
    struct side sides[SIDES_MOST];
    unsigned side_count;
    struct het_turns turns;
};

/* ---- preempt_trial.c ---- */

/*
 * Opens a trial for the job with all its components. Each is in the partition with this number
 * (`partition_queues`: one number for each), or else in the first that would take it. False when a component has
 * no partition, or none of them may preempt.
 */
bool preempt_trial_open(struct preempt_trial *trial, struct sched *sched, const struct job *job,
                        uint32_t partition_queue, const uint32_t *partition_queues);
/* The same for a job that nobody submitted, of these components. */
bool preempt_trial_open_asked(struct preempt_trial *trial, struct sched *sched,
                              const struct job *const *jobs, uint32_t count,
                              uint32_t partition_queue);
void preempt_trial_close(struct preempt_trial *trial);
/* The job that stands for all components: the first, as long as it runs. */
const struct job *preempt_trial_stands_for(const struct sched *sched, const struct job *job);
/* Does the job end anyway, or was it told to for this preemptor? */
bool preempt_trial_is_going(const struct preempt_trial *trial, const struct job *job);
/* May the job be preempted now? Fills in by which preemptors, and what it leaves. */
bool preempt_trial_may_take(struct preempt_trial *trial, const struct job *job, struct victim *out);
int preempt_trial_by_cost(const struct victim *a, const struct victim *b, bool youngest);
struct victim *preempt_trial_victim(const struct preempt_trial *trial,
                                    uint32_t job_id); /* NULL: not among them */
/* Marks the jobs on the host that the side may preempt as gone; or none of them. */
void preempt_trial_mark_host(const struct preempt_trial *trial, uint32_t host, unsigned side);
void preempt_trial_unmark_host(const struct preempt_trial *trial, uint32_t host);
void preempt_trial_mark_all(const struct preempt_trial *trial, unsigned side);
void preempt_trial_unmark_all(const struct preempt_trial *trial);
/* Do all preemptors fit beside each other? of->parts says where. With several sides this changes marks. */
bool preempt_trial_fits(struct preempt_trial *trial);
/* Do the limits of accounts and QOS allow them where preempt_trial_fits() placed them? */
bool preempt_trial_is_allowed(struct preempt_trial *trial);
/* Is there room for these seats, all of one host? */
bool preempt_trial_seats_fit(struct preempt_trial *trial, const struct seat *seats, size_t count);

/* ---- preempt_cost.c ---- */

/* Works out what hosts would cost the preemptor, some in each slice; true when all are done. */
bool preempt_cost_gather(struct preempt_trial *trial, const struct preemptor *preemptor,
                         unsigned *budget);
/* Adds the cheapest hosts to search->hosts, as many as may be needed; false: too few. */
bool preempt_cost_cheapest(struct preempt_trial *trial, const struct preemptor *preemptor);

/* ---- preempt_hold.c ---- */

/* Holds room on the seats of the search; victims are told later (preempt_holds_tell()). */
void preempt_hold_put(struct preempt_trial *trial);

#endif
