/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit_counter.h - limit queues that wait at the counters of holders
 *
 * For limit_queue.c, limit_counter.c and limit_review.c, which say what holds; limit_stop.c, foresee.c and
 * check.c read it.
 */
#ifndef SCHED_LIMIT_LIMIT_COUNTER_H
#define SCHED_LIMIT_LIMIT_COUNTER_H

#include "sched/limit/limit.h"

/* What must be so before the counter lets any job of a queue pass. */
enum limit_counter_for {
    FOR_TRES,             /* and the following: that much of the TRES must be free */
    FOR_JOBS = TRES_MOST, /* there must be room for one more job */
    FOR_ANY,              /* nothing that can be told without looking at the jobs */
    FOR_OVER,             /* the same, for jobs that would be given too much */
};

/* A limit queue that waits at a counter. */
struct limit_waiter {
    struct limit_waiter *next; /* of the same queue */
    struct limit_queue *queue;
    struct limit_counter *counter;
    bool here;
    uint64_t turn; /* of the review of the counter in which it was shut */
    uint32_t at;   /* place + 1 in a heap of the counter; 0: not there */
    unsigned why;  /* enum limit_counter_for */
    int64_t needs; /* opens when what is in use, plus this, is not above 0 */
};

/* The counter of a holder, with the queues that wait until it falls. */
struct limit_counter {
    const struct holder *holder;
    struct heap known,
        any;       /* waiters, by the first job of their queues; `any`: FOR_ANY and above */
    bool review;   /* is in sched->limit->counter_reviews */
    uint64_t fell; /* sched->limit->falls when it last fell */
    uint64_t turn; /* of a review that was cut short and goes on; 0: none */
    uint32_t has;  /* a bit for each FOR_ that `tight` has a value for */
    int64_t tight[FOR_ANY]; /* no waiter needs less */
};

/* What is read of a bin first. */
struct bin_at {
    struct family *family;
    struct bin *bin;
    int64_t shortest_us; /* as the bin has it */
    uint64_t turn;       /* of the review that found nothing in it */
    uint64_t ready_turn; /* of the review that found nothing that would be tried */
    bool shut;           /* a limit stopped it in the last review; otherwise it is open */
};

/* The jobs of one owner: they count against the same counters. */
struct limit_queue {
    struct limit_queue *same; /* the next with this hash */
    uint64_t key;
    uint32_t number;
    const struct assoc *assoc;
    const struct qos *qos;
    uint32_t uid;
    char *account;
    uint32_t *partitions;
    size_t partition_count;
    VEC(struct bin_at) bins;
    VEC(const struct family *) families; /* of these bins, to find one by its family */
    VEC(struct order) heads; /* of their jobs: most bins are passed over by this alone */
    struct order head;       /* of its bins */
    struct order first;      /* where that job would be in the partition queue, if known; else 0 */
    uint64_t first_turn;     /* of the priorities, when it was worked out */
    struct limit_waiter *waiters;
    struct limit_counter *via; /* goes on when the job that it let out was tried */
    struct order let;          /* that job */
    bool again;                /* waits at `via` only to be reviewed in its turn */
    uint32_t outs;             /* jobs that were let out and not tried yet */
    bool review, fell;         /* is in sched->limit->queue_reviews; because a counter fell */
    bool woken;                /* to be reviewed only for limit_review.c (3) */
    bool open;                 /* one of its bins is */
    bool has_blocked;          /* some jobs could be let out that would not be tried */
    uint64_t over_at;          /* sched->limit->falls when a job of it was last found to be over */
    uint64_t turn;             /* of the counter that reviewed it last */
    uint64_t rules;            /* that its waiters are for */
};

/* ---- limit_queue.c ---- */

/* Its first job, at the place where that would be in the partition queue. */
struct order limit_queue_first(const struct sched *sched, struct limit_queue *queue);
/* This limit stops a job of the family: the queue waits at its counter. */
void limit_queue_block(struct sched *sched, struct limit_queue *queue, const struct family *family,
                       const struct limit_hit *hit);
/* Frees the queue if no job needs it any more. */
void limit_queue_tidy(struct sched *sched, struct limit_queue *queue);
/* Works out what a job of the family asks for, by the present rules. */
void family_charge(const struct sched *sched, struct family *family, const struct job *job);
/* limit_review.c (3): the bin is open, keyed by its first job (false: it was, with that key); or shut. */
bool bin_open(const struct sched *sched, struct bin *bin);
void bin_shut(struct bin *bin);

/* ---- limit_review.c ---- */

enum limit_queue_seen { LIMIT_QUEUE_OUT, LIMIT_QUEUE_STAYS };
/* Lets out the first job that may go and will be tried; with `show`, failing that, some that will not be. */
enum limit_queue_seen limit_queue_look(struct sched *sched, struct limit_queue *queue, bool fell,
                                       bool show, unsigned *looked);

/* ---- limit_counter.c ---- */

void limit_counter_wait(struct sched *sched, struct limit_queue *queue, const struct holder *holder,
                        unsigned why, int64_t needs);
/* Is a counter that the queue once waited at shut for every job of it? Then the queue waits there again. */
bool limit_counter_bars(struct sched *sched, struct limit_queue *queue);
/* The queue stops waiting for the reasons from `why` to `last`. */
void limit_counter_unwait(struct limit_queue *queue, unsigned why, unsigned last);
void limit_waiters_free(struct limit_queue *queue);
/* Forgets waiters of earlier rules; to be called before the queue is reviewed or waits. */
void limit_queue_renew(struct sched *sched, struct limit_queue *queue);
void limit_counter_review(struct sched *sched, struct limit_counter *counter);
/* Does another queue that waits there have a first job before that one? */
bool limit_counter_has_before(const struct sched *sched, const struct limit_counter *counter,
                              struct order order);
/* The queue, which has let a job out there, is reviewed again in its turn. */
void limit_counter_again(struct sched *sched, struct limit_counter *counter,
                         struct limit_queue *queue);
void limit_counter_look(struct sched *sched, struct limit_counter *counter, unsigned *budget);
void limit_counters_done(struct sched *sched);

#endif
