/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit_counter.h - jobs that wait for counters of limits: limit queues of owners at counters of holders
 *
 * Inside limit_queue.c, limit_review.c and limit_counter.c; what holds is written there.
 */
#ifndef SCHED_LIMIT_LIMIT_COUNTER_H
#define SCHED_LIMIT_LIMIT_COUNTER_H

#include "sched/sched_priv.h"

/* What must be so before any job of the limit queue passes the counter. */
enum limit_counter_for {
    FOR_TRES,             /* and the following: so much of that TRES must be free */
    FOR_JOBS = TRES_MOST, /* one more job must have room */
    FOR_ANY,              /* nothing that could be told without looking */
    FOR_OVER,             /* the same, for jobs that would be given too much */
};

/* A limit queue at a counter. */
struct limit_waiter {
    struct limit_waiter *next; /* of the same limit queue */
    struct limit_queue *queue;
    struct limit_counter *counter;
    bool here;
    uint64_t turn; /* of the look at the counter in which it was shut */
    uint32_t at;   /* place + 1 in a heap of the counter; 0: not there */
    unsigned why;  /* enum limit_counter_for */
    int64_t needs; /* opens when what is in use, and this, are not above 0 */
};

/* Who waits for a holder. */
struct limit_counter {
    const struct holder *holder;
    struct heap known,
        any;       /* waits, by the first job of their limit queues; FOR_ANY and above apart */
    bool review;   /* is in sched->limit_counter_reviews */
    uint64_t fell; /* sched->falls when its counter last fell */
    uint64_t turn; /* of a look that was cut short and goes on; 0: none */
    uint32_t has;  /* a bit for each FOR_ that the following has */
    int64_t tight[FOR_ANY]; /* no waits needs less */
};

/* What is asked of a bin first. */
struct bin_at {
    struct family *family;
    struct bin *bin;
    int64_t shortest_us; /* as the bin has it */
    uint64_t turn;       /* of the look that found nothing in it */
    uint64_t ready_turn; /* of the look that found nothing that would be tried */
    bool shut;           /* a limit was in its way in the last look; else it is open */
};

/* The limit queue of an owner: who has the same counters. */
struct limit_queue {
    struct limit_queue *same; /* hash */
    uint64_t key;
    uint32_t number;
    const struct assoc *assoc;
    const struct qos *qos;
    uint32_t uid;
    char *account;
    uint32_t *partitions;
    size_t partition_count;
    VEC(struct bin_at) bins;
    VEC(const struct family *) families; /* of these bins: one is found by it */
    VEC(struct order) heads;             /* of their jobs: most are passed without more */
    struct order head;                   /* of its bins */
    struct order first;  /* where that job would be in the queue, if it is known; else 0 */
    uint64_t first_turn; /* of the priorities, when that was so */
    struct limit_waiter *waiters;
    struct limit_counter *via; /* that goes on when the job that it let out was tried */
    struct order let;          /* that job */
    bool again;                /* it waits there only to be looked at in its turn */
    uint32_t outs;             /* jobs that are out and were not tried yet */
    bool review, fell;         /* is in sched->limit_queue_reviews; because a counter fell */
    bool woken;                /* to be looked at for no other reason than limit_review.c (3) */
    bool open;                 /* a bin of it is */
    bool has_blocked;          /* some could be let out that would not be tried */
    uint64_t over_at;          /* sched->falls when a job of it was last found to be over */
    uint64_t turn;             /* of the counter that looked at it last */
    uint64_t rules;            /* that its waits are of */
};

/* limit_queue.c */
/* The first job of it, where it would be in the queue. */
struct order limit_queue_first(const struct sched *sched, struct limit_queue *queue);
/* This is in the way of a job of that family. */
void limit_queue_block(struct sched *sched, struct limit_queue *queue, const struct family *family,
                       const struct limit_hit *hit);
void limit_queue_tidy(struct sched *sched,
                      struct limit_queue *queue); /* goes when nobody needs it */
/* What a job of the family asks for, by the rules of now. */
void family_charge(const struct sched *sched, struct family *family, const struct job *job);
/* limit_review.c (3): it is open, by its first job; or is not. */
bool bin_open(const struct sched *sched, struct bin *bin); /* false: it was, with that key */
void bin_shut(struct bin *bin);

/* limit_review.c */
enum limit_queue_seen { LIMIT_QUEUE_OUT, LIMIT_QUEUE_STAYS };
/* Lets out the first that may go and will be tried; `show`: else some that will not be. */
enum limit_queue_seen limit_queue_look(struct sched *sched, struct limit_queue *queue, bool fell,
                                       bool show, unsigned *looked);

/* limit_counter.c */
void limit_counter_wait(struct sched *sched, struct limit_queue *queue, const struct holder *holder,
                        unsigned why, int64_t needs);
/* Is one that it once waiting at shut for every job of the limit queue? Then it waits there again. */
bool limit_counter_bars(struct sched *sched, struct limit_queue *queue);
/* From `why` on, up to `last`. */
void limit_counter_unwait(struct limit_queue *queue, unsigned why, unsigned last);
void limit_waiters_free(struct limit_queue *queue);
void limit_queue_renew(struct sched *sched,
                       struct limit_queue *queue); /* before it is looked at, or waiting */
void limit_counter_review(struct sched *sched, struct limit_counter *counter);
/* Is it the turn of another limit queue, whose first job is before that one? */
bool limit_counter_has_before(const struct sched *sched, const struct limit_counter *counter,
                              struct order order);
/* The limit queue that has let a job out there is looked at when it is its turn. */
void limit_counter_again(struct sched *sched, struct limit_counter *counter,
                         struct limit_queue *queue);
void limit_counter_look(struct sched *sched, struct limit_counter *counter, unsigned *budget);
void limit_counters_done(struct sched *sched);

#endif
