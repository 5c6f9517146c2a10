/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched.h - the planner: fed by events, asked for a plan
 *
 * Pure and deterministic: depends only on the state it was made for, on the events it was fed and
 * on `now_us`. Keeps its own compact arrays, changed by events. Costs O(1) or so an event; a job
 * whose class does not fit is not looked at again until something it could use changes.
 */
#ifndef SCHED_SCHED_H
#define SCHED_SCHED_H

#include "base/arena.h"
#include "base/err.h"
#include "core/event.h"
#include "core/state.h"
#include "proto/command.pb-c.h"

struct sched;

/* Reads the whole state once. `state` must outlive the planner. */
struct sched *sched_new(const struct state *state);
void sched_free(struct sched *sched);

/* Every event of every applied command, in order, after core_apply() has returned. */
void sched_feed(struct sched *sched, const struct event *event);
void sched_feed_all(struct sched *sched, const struct events *events);

struct plan {
    CmdStart *const *starts; /* each to be proposed as one command */
    size_t count;
    CmdPreempt *const *preempts; /* the same */
    size_t preempt_count;
    bool more;       /* the budget ran out: ask again */
    bool works;      /* more, and every slice brings it nearer to its end */
    int64_t wake_us; /* ask again then even if nothing happens; INT64_MAX never */
};

/*
 * Decides which pending jobs start now, on which nodes, CPUs and devices. Looks at no more than
 * `budget` candidates and continues there on the next call. What it plans is held (tentative)
 * until EVENT_JOB_STARTED or EVENT_REJECTED for it is fed, or sched_abandon() is called. The plan
 * borrows from `sched` and is valid until the next sched_plan().
 */
const struct plan *sched_plan(struct sched *sched, int64_t now_us, unsigned budget);

/* A planned start was never proposed, or the log refused it: give back what it held. */
void sched_abandon(struct sched *sched, const CmdStart *start);
/* All of them: leadership was lost. */
void sched_abandon_all(struct sched *sched);

/*
 * Why an eligible pending job does not run: Resources, Priority, ReqNodeNotAvail, PartitionDown, …
 * (enum job_reason). What core_job_reason() says goes before this.
 */
unsigned sched_reason(const struct sched *sched, const struct job *job);
/* What goes with it, "ReqNodeNotAvail, UnavailableNodes:n1"; NULL: nothing. Until the next feed. */
const char *sched_reason_text(const struct sched *sched, const struct job *job);

struct explanation {
    const char *sentence; /* what it waits for, in words with numbers */
    const char *const *details;
    size_t detail_count;
    int64_t planned_start_us;  /* 0 unknown */
    const char *planned_nodes; /* may be NULL */
    uint32_t jobs_ahead;
    bool never;
    bool unusable;         /* of the nodes that could run it too few are up */
    const char *preempts;  /* jobs that would make room for it, "12,14"; NULL: none */
    const char *partition; /* where, then; NULL: in the first that takes it */
};
/* From the arena, for any job. */
void sched_explain(struct sched *sched, const struct job *job, int64_t now_us, struct arena *arena,
                   struct explanation *out);

/*
 * When and where a job of these components would start, were it submitted now. Nothing is changed. Nodes are
 * those of all components.
 */
int sched_test(struct sched *sched, const JobOwner *owner, const JobSpec *const *specs,
               size_t count, int64_t now_us, struct arena *arena, struct explanation *out,
               struct err *err);

/*
 * Foresees when the first waiting jobs of each partition start, if much happened since it was done
 * last. Looks at no more than some thousand hosts; sched_plan() goes on with it.
 */
void sched_forecast(struct sched *sched, int64_t now_us);

/* Whether it takes more than a millisecond or so to say when a job of so many components would start. */
bool sched_is_long_to_ask(const struct sched *sched, size_t components);
/* What is asked is worked out whole from here on, not in slices: for a copy of the process. */
void sched_take_time(struct sched *sched);

/* Is something that was asked about still being worked out? sched_plan() goes on with it. */
bool sched_is_asked(const struct sched *sched);

/* Is something kept free on the node for a job that is booked? */
bool sched_is_planned(const struct sched *sched, const struct node *node);

/* The expected start of a pending job as last planned or foreseen; 0 when not known. */
int64_t sched_planned_start(const struct sched *sched, const struct job *job);
/* And where; nothing when that is not known. */
void sched_planned_nodes(const struct sched *sched, const struct job *job, struct str *out);
/* When the planner last looked. */
int64_t sched_looked_us(const struct sched *sched);
/* Whether a waiting job has a planned start that later jobs must not delay. */
bool sched_has_bookings(const struct sched *sched);

#endif
