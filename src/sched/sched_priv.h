/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_priv.h - inside the planner
 *
 * (1) A class is all pending jobs with the same shape and time limit: they get the same answer. A
 *     class that did not fit is not tried again until something became free (`version`).
 * (2) What a node has left is what the state says, less what planned starts hold (`tentative`).
 * (3) The order is (tier, priority, id), the same on every replica.
 */
#ifndef SCHED_SCHED_PRIV_H
#define SCHED_SCHED_PRIV_H

#include "base/map.h"
#include "base/vec.h"
#include "core/shape.h"
#include "sched/sched.h"

struct class
{
    struct shape *shape;
    int64_t limit_s;
    VEC(struct entry *) queue; /* by order; those before `head` are gone */
    size_t head;
    uint64_t tried;  /* version at which it did not fit; 0: not yet */
    bool backfilled; /* it was only looked at behind a reservation then */
};

struct entry {
    uint32_t job_id;
    uint32_t priority, tier;
    struct class *class;
    uint32_t next_task; /* of an array's record: no task number below waits and is not planned */
    uint32_t planned;   /* tasks that are planned and not yet applied; 1 for a job */
    uint64_t refused;   /* version at which core last refused its start */
};

/* What planned starts hold on one node. */
struct held {
    uint32_t cpus, jobs, whole;
    uint64_t mem_mb;
    uint64_t gres[TAKE_GRES];
};

struct chosen {
    uint32_t node;
    struct take take;
};

/* A start that was planned and has not come back. */
struct tentative {
    uint32_t job_id, task;
    bool whole;
    size_t count;
    struct chosen *parts;
};

struct sched {
    const struct state *state;
    struct map entries; /* job id → struct entry */
    VEC(struct class *) classes;
    struct map class_of; /* hash of (shape, limit) → struct class chain by probing */
    VEC(struct tentative) tentative;
    VEC(struct held) held; /* by node number */
    VEC(uint32_t) order;   /* node numbers by (weight, number) */
    uint64_t version;      /* grows when something became free */
    struct arena plan_arena;
    struct plan plan;
    VEC(CmdStart *) starts;

    /* The first job that must wait has a reservation: nodes and when it starts. */
    uint32_t top_job;
    uint64_t top_version;
    int64_t top_start_us;
    struct bitset top_nodes;
};

/* ---- place.c ---- */

/* When the planner looks: now, or after everything that ends by then has ended. */
struct view {
    const struct held *freed;       /* by node: what will have ended; NULL: now */
    const struct bitset *forbidden; /* nodes not to be used; NULL: none */
    int64_t start_us, end_us;
};

/*
 * Chooses nodes for a job; true when it fits. `parts` is filled (cleared first). Considers the
 * job's partitions in its order; *partition is the one that fits.
 */
struct parts {
    VEC(struct chosen) list;
};
bool place(const struct sched *sched, const struct job *job, const struct view *view,
           struct parts *parts, const struct need **need);
void room_now(const struct sched *sched, const struct node *node, const struct held *freed,
              uint64_t gres[TAKE_GRES], struct room *room);

/* ---- queue.c ---- */
void queue_add(struct sched *sched, const struct job *job);
void queue_remove(struct sched *sched, uint32_t job_id);
/* The best class that may be tried, or NULL. Classes tried at this version are passed over. */
struct class *queue_best(struct sched *sched);
struct entry *class_head(struct class *class);
bool entry_before(const struct entry *a, const struct entry *b);

/* ---- shadow.c ---- */
/* When the job could start if nothing else did: fills parts; INT64_MAX never. */
int64_t shadow(const struct sched *sched, const struct job *job, int64_t now_us,
               struct parts *parts);

#endif
