/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - the top of the planner: events in, starts out
 */
#ifndef SCHED_PLAN_H
#define SCHED_PLAN_H

#include "sched/preempt/preempt.h"

/* ---- plan.c ---- */

/* Tries to plan a start of the job; over what is booked behind the order, unless that is NO_ORDER. */
bool plan_job(struct sched *sched, struct family *family, const struct job *job, struct order over,
              uint32_t *short_of);
/* The same on these hosts, one entry for each component. */
bool plan_job_at(struct sched *sched, struct family *family, const struct job *job,
                 struct order over, const struct booked *of);

/* ---- start_held.c ---- */

/* Starts the jobs whose victims are gone, before all others. */
void preempt_start_held(struct sched *sched);

/* ---- start_message.c ---- */

/* The message that starts the job with these parts. */
JobStart *start_message(struct sched *sched, const struct job *job, uint32_t task,
                        const struct parts *parts, const struct inflight *inflight);

/* ---- completing.c ---- */

struct completing {
    uint32_t job_id, attempt;
    int64_t until_us;
};
/* The job has ended; while it still holds nodes, others may have to wait. */
void completing_add(struct sched *sched, const struct job *job, int64_t end_us);
/* Until when no job starts, unless something happens before; 0: jobs may start. */
int64_t completing_until(struct sched *sched);

/* ---- rebuild.c: the state is read in slices ---- */

void rebuild_begin(struct sched *sched);        /* all of it */
void rebuild_reservations(struct sched *sched); /* these changed */
void rebuild_nodes(struct sched *sched);        /* what nodes have changed */
void rebuild_needs(struct sched *sched);        /* what shapes need of nodes changed */
bool rebuild_continue(struct sched *sched, unsigned *budget); /* true when everything is read */
void rebuild_feed(struct sched *sched); /* reads some of it, after each command */
void rebuild_all(struct sched *sched);
/* Is the event about something that was not read yet? */
bool rebuild_passes(struct sched *sched, const struct event *event);
/* What it costs to work out the shape's needs, if that must be done. */
uint64_t shape_cost(const struct sched *sched, const struct shape *shape);

/* ---- reconfigure.c: a configuration change that affects only part of the planner ---- */

/* Follows the change (`changed`: enum changed). False: everything must be read again. */
bool reconfigure_follow(struct sched *sched, unsigned changed);
/* Puts each pending job where it belongs now, some in each slice. */
void reconfigure_continue(struct sched *sched, unsigned *budget);
/* Was the job that is about to be tried not where it belongs? It is now. */
bool reconfigure_moves(struct sched *sched, uint32_t job_id);

/* ---- renumber.c ---- */

/*
 * Gives hosts the numbers that nodes have now. All hosts must then be read again (rebuild_nodes()); bookings
 * and holds were given up before.
 */
void hosts_renumber(struct sched *sched);

/* ---- sched.c ---- */

/* How many waiting jobs of the partition are booked. */
unsigned bookings_of(const struct sched *sched, size_t partition);
/* The job waits again, or is gone. */
void sched_again(struct sched *sched, uint32_t job_id);
/* Frees some of what was retired. */
void retired_free_some(struct sched *sched, unsigned *budget);

/* ---- the part of struct sched ---- */

struct planning {
    struct sched *retired; /* what there was before everything was read again; NULL: freed */
    uint64_t generation, kinds_seen;
    uint64_t reclass_id;   /* the next job that is put where it belongs; 0: none */
    bool reclass_first;    /* nothing starts before that is done; reconfigure.c (1) */
    VEC(uint32_t) refused; /* jobs whose start core refused: not tried until something happens */
    int64_t refused_until_us;
    VEC(struct completing) completing;
    uint64_t given; /* hosts of all starts, ever */
    struct str names;
    struct {
        uint32_t job_id;  /* 0: none */
        uint32_t last_id; /* the job that was put off last: once is enough */
        uint64_t at, epoch,
            changed; /* hosts->changes, epoch and the job's `changed` at that time */
        struct order over;
        struct parts parts;
        bool now; /* in this slice */
    } placed;     /* a wide job that has its hosts and starts in the next slice; plan.c */
    struct plan plan;
    VEC(CmdStart *) starts;
    struct parts scratch;
};

#endif
