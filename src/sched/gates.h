/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gates.h - jobs that wait for counters of limits: lines of owners at gates of holders
 *
 * Inside waits.c, looks.c and gates.c; what holds is written there.
 */
#ifndef SCHED_GATES_H
#define SCHED_GATES_H

#include "sched/sched_priv.h"

/* What must be so before any job of the line passes the gate. */
enum gate_for {
    FOR_TRES,             /* and the following: so much of that TRES must be free */
    FOR_JOBS = TRES_MOST, /* one more job must have room */
    FOR_ANY,              /* nothing that could be told without looking */
    FOR_OVER,             /* the same, for jobs that would be given too much */
};

/* A line at a gate. */
struct hang {
    struct hang *next; /* of the same line */
    struct waiting *line;
    struct gate *gate;
    bool here;
    uint64_t turn; /* of the look at the gate in which it was shut */
    uint32_t at;   /* place + 1 in a heap of the gate; 0: not there */
    unsigned why;  /* enum gate_for */
    int64_t needs; /* opens when what is in use, and this, are not above 0 */
};

/* Who waits for a holder. */
struct gate {
    const struct holder *holder;
    struct heap known, any; /* hangs, by the first job of their lines; FOR_ANY and above apart */
    bool review;            /* is in sched->gate_reviews */
    uint64_t fell;          /* sched->falls when its counter last fell */
    uint64_t turn;          /* of a look that was cut short and goes on; 0: none */
    uint32_t has;           /* a bit for each FOR_ that the following has */
    int64_t tight[FOR_ANY]; /* no hang needs less */
};

/* Jobs of a line that have the same shape. */
struct bin {
    struct family *family;
    struct waiting *line;
    uint32_t open_at;    /* place + 1 in a heap of family->opens; 0: in none */
    uint8_t side;        /* which of them */
    uint32_t keyed;      /* the job by which it is there */
    uint64_t keyed_turn; /* and the turn of the priorities */
    int64_t shortest_us; /* no job of it has a shorter limit */
    struct line jobs;
};

/* What is asked of a bin first. */
struct bin_at {
    struct family *family;
    struct bin *bin;
    int64_t shortest_us; /* as the bin has it */
    uint64_t turn;       /* of the look that found nothing in it */
    uint64_t hot_turn;   /* of the look that found nothing that would be tried */
    bool shut;           /* a limit was in its way in the last look; else it is open */
};

/* The line of an owner: who has the same counters. */
struct waiting {
    struct waiting *same; /* hash */
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
    struct hang *hangs;
    struct gate *via;  /* that goes on when the job that it let out was tried */
    struct order let;  /* that job */
    bool again;        /* it hangs there only to be looked at in its turn */
    uint32_t outs;     /* jobs that are out and were not tried yet */
    bool review, fell; /* is in sched->line_reviews; because a counter fell */
    bool woken;        /* to be looked at for no other reason than looks.c (3) */
    bool open;         /* a bin of it is */
    bool colds;        /* some could be let out that would not be tried */
    uint64_t over_at;  /* sched->falls when a job of it was last found to be over */
    uint64_t turn;     /* of the gate that looked at it last */
    uint64_t rules;    /* that its hangs are of */
};

/* waits.c */
/* The first job of it, where it would be in the queue. */
struct order line_first(const struct sched *sched, struct waiting *line);
/* This is in the way of a job of that family. */
void line_hang(struct sched *sched, struct waiting *line, const struct family *family,
               const struct limit_hit *hit);
void line_tidy(struct sched *sched, struct waiting *line); /* goes when nobody needs it */
/* What a job of the family asks for, by the rules of now. */
void family_charge(const struct sched *sched, struct family *family, const struct job *job);
/* looks.c (3): it is open, by its first job; or is not. */
bool bin_open(const struct sched *sched, struct bin *bin); /* false: it was, with that key */
void bin_shut(struct bin *bin);

/* looks.c */
enum line_seen { LINE_OUT, LINE_STAYS };
/* Lets out the first that may go and will be tried; `show`: else some that will not be. */
enum line_seen line_look(struct sched *sched, struct waiting *line, bool fell, bool show,
                         unsigned *looked);

/* gates.c */
void gate_hang(struct sched *sched, struct waiting *line, const struct holder *holder, unsigned why,
               int64_t needs);
/* Is one that it once hung at shut for every job of the line? Then it hangs there again. */
bool gate_bars(struct sched *sched, struct waiting *line);
/* From `why` on, up to `last`. */
void gate_unhang(struct waiting *line, unsigned why, unsigned last);
void hangs_free(struct waiting *line);
void line_renew(struct sched *sched, struct waiting *line); /* before it is looked at, or hung */
void gate_review(struct sched *sched, struct gate *gate);
/* Is it the turn of another line, whose first job is before that one? */
bool gate_has_before(const struct sched *sched, const struct gate *gate, struct order order);
/* The line that has let a job out there is looked at when it is its turn. */
void gate_again(struct sched *sched, struct gate *gate, struct waiting *line);
void gate_look(struct sched *sched, struct gate *gate, unsigned *budget);
void gates_done(struct sched *sched);

#endif
