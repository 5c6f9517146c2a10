/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit.h - what keeps pending jobs from starting besides room: limits, and starts in flight
 *
 * A job that a limit of its association or QOS keeps waiting is in the limit queue of its owner. A limit queue
 * waits at the counters that are too high; when one falls, the queue is reviewed and lets jobs out that may be
 * tried.
 */
#ifndef SCHED_LIMIT_LIMIT_H
#define SCHED_LIMIT_LIMIT_H

#include "sched/place/place.h"

struct held; /* what a planned start counts against limits */
struct limit_counter;
struct limit_queue;

/* ---- limits.c ---- */

/* Does a limit keep the job from starting? If so, it is out of its class's queue when this returns. */
bool limits_in_way(struct sched *sched, const struct job *job);
/* The same; changes nothing. */
bool limits_stop(struct sched *sched, uint32_t job_id);
/* The same with what the job would be given. Changes nothing but parts->licence. */
bool limits_in_way_of(struct sched *sched, const struct job *job, struct parts *parts,
                      struct limit_hit *hit);
/* Counts a start that is planned; and stops counting it, `started` or not. */
struct held *limits_plan(struct sched *sched, const struct job *job, const struct parts *parts);
void limits_unplan(struct sched *sched, struct held *held, bool started);
/* Stops (-1) or resumes (+1) counting `held` against its limits. NULL is allowed. */
void limits_lift(struct sched *sched, const struct held *held, int by);
/* The job does not run any more: counters fall. */
void limits_freed(struct sched *sched, const struct job *job);
/* Follows changes of priorities and of limits, in slices. */
void limits_sweep(struct sched *sched, unsigned *budget);
/*
 * After limits, or who counts what, changed: first every planned start is taken out of the counters
 * (`counts` false), then counted by those who count such jobs now, then limits_renew() reviews every queue.
 */
void limits_count_again(struct sched *sched, struct held *held, const struct job *job,
                        uint32_t partition, bool counts);
void limits_renew(struct sched *sched);
void limits_done(struct sched *sched);

/* ---- limit_counter.c ---- */

/* The counter of the holder fell. */
void limit_counter_fell(struct sched *sched, const struct holder *holder);
void limit_counters_renew(struct sched *sched);
void limit_counters_tidy(struct sched *sched, unsigned *budget); /* frees those of earlier rules */

/* ---- limit_queue.c ---- */

/* Does the job belong to the limit queue that it is in? */
bool limit_queue_has(const struct sched *sched, uint32_t queue, const struct job *job);
/* The number of the limit queue of the job's owner. */
uint32_t limit_queue_of(struct sched *sched, const struct job *job);
void limit_queue_put(struct sched *sched, uint32_t queue, const struct class *class,
                     struct order order);
void limit_queue_del(struct sched *sched, uint32_t queue, const struct class *class,
                     struct order order);
/* A job that was put there is kept waiting by this limit. */
void limit_queue_hit(struct sched *sched, uint32_t queue, const struct class *class,
                     const struct limit_hit *hit, bool over);
void limit_queues_done(struct sched *sched);
bool limit_queues_done_some(struct sched *sched, unsigned *budget); /* true: all are freed */

/* ---- limit_review.c ---- */

/* Asks for a review of the queue; `fell`: because a counter fell. */
void limit_queue_review(struct sched *sched, uint32_t queue, bool fell);
/* Asks for a review of every queue; limit_queues_sweep() does the work in slices. */
void limit_queues_review_all(struct sched *sched);
void limit_queues_sweep(struct sched *sched, unsigned *budget);
/* One of the queue's jobs was let out (1), or was tried (-1). */
void limit_queue_out(struct sched *sched, uint32_t queue, int by);
/* Does a job in a limit queue go before the job that is about to be tried? Then its queue is reviewed first. */
bool limit_queue_ahead(struct sched *sched, struct family *family, struct order order);
/* Reviews queues whose counters fell, and lets out jobs that may be tried. */
void limits_review(struct sched *sched, unsigned *budget);
bool limits_to_review(const struct sched *sched);
/* Jobs that were let out will not be tried in this family: the next ones of their queues follow. */
void family_tried(struct sched *sched, struct family *family);

/* ---- limit_stop.c ---- */

/* Does a job before this one wait for a limit and stop it, in all its partitions? */
bool limit_stop_blocks(struct sched *sched, const struct family *family, struct order order);

/* ---- pending_place.c: where a pending job waits ---- */

/* Where it belongs, if no limit keeps it waiting. */
enum pending_place pending_place_of(const struct sched *sched, const struct job *job);
/* Puts the job where it belongs: into a class, parked, behind a limit, or out of the planner. */
void pending_refresh(struct sched *sched, const struct job *job);
/* Is it in the class and the limit queue that it belongs to? If not, pending_refresh() is due. */
bool pending_is_right(struct sched *sched, const struct job *job);
void pending_remove(struct sched *sched, uint32_t job_id);
/* Only what is planned of the job changed. */
void pending_settle(struct sched *sched, const struct job *job);
/* Takes the job out of its queue until the limit has room. */
void pending_limit(struct sched *sched, const struct job *job, const struct limit_hit *hit,
                   bool over);
/* Puts it back into its queue. `out`: to be tried; false when it will not be. */
bool pending_let_out(struct sched *sched, const struct job *job, bool out);
/* Would it be tried there soon? */
bool pending_would_try(struct sched *sched, const struct pending *pending, uint32_t job_id);
/* Where the job is in the order, or would be if no limit kept it waiting. */
struct order pending_order(const struct sched *sched, const struct job *job);
bool pending_rank_is_old(struct sched *sched, const struct job *job);
/* Lets parked records of the array go, as many as it has room for. */
void throttle_release(struct sched *sched, uint32_t array_id);

/* ---- inflight.c ---- */

/* A start that is planned and that the log has not given back yet. */
struct inflight {
    struct inflight *next; /* of the same job record */
    uint32_t task, array_id;
    struct held *held;            /* by limits */
    struct licence_use *licences; /* NULL: none */
    size_t count;
    struct claim claims[]; /* one for each part */
};
struct inflight_list {
    struct inflight *first, *last;
    uint32_t count, next_task;
};
struct inflight *inflight_start(struct sched *sched, const struct job *job, uint32_t task,
                                const struct parts *parts, const struct family *family,
                                int64_t end_us);
/* A job that was suspended for the job `with_id`, whose start is planned; see inflight.c. */
struct returning {
    uint32_t with_id, job_id;
};
void inflight_return(struct sched *sched, const struct job *lent, uint32_t with_id);
/*
 * The start came back or never will: its claims are given up. `started`: the job that started, NULL when none
 * did; the caller then tells its hosts what it has. False: there was no such start.
 */
bool inflight_end(struct sched *sched, uint32_t job_id, uint32_t task, const struct job *started);
/* The same for a start that was never proposed: no job is told. */
void inflight_undo(struct sched *sched, uint32_t job_id, uint32_t task);
void inflights_done(struct sched *sched);

/* ---- the part of struct sched ---- */

struct limiting {
    struct map queue_keys;            /* hash → struct limit_queue, chained */
    VEC(struct limit_queue *) queues; /* by number; NULL: free */
    VEC(uint32_t) free_queues;
    VEC(struct limit_counter *) counters;     /* by number of the holder; NULL: no queue waits */
    VEC(struct limit_counter *) old_counters; /* of earlier rules, until no queue knows them */
    uint64_t rules;                           /* grows when limits, or who counts what, change */
    size_t old_queues;                        /* that know earlier rules */
    VEC(uint32_t) queue_reviews, counter_reviews;
    uint32_t queue_sweep; /* queues up to this number have still to be reviewed; 0: none */
    uint64_t falls;       /* of counters */
    uint64_t counter_turns, queue_turns; /* reviews of counters and of queues */
    struct tallies planned;              /* by holder */
    uint64_t turn;                       /* of the priorities, as seen last */
    bool stop_changed;    /* a job that was stopped may not be any more; limit_stop.c */
    struct map inflights; /* job id → struct inflight_list */
    VEC(struct returning) returning;
};

static inline struct inflight_list *inflights_of(const struct sched *sched, uint32_t job_id)
{
    const struct map *inflights = &sched->limit->inflights;

    return map_len(inflights) ? map_get_num(inflights, job_id) : NULL;
}

#endif
