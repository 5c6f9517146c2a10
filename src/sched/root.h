/* SPDX-License-Identifier: Apache-2.0 */
/*
 * root.h - the planner's root: its parts by name, and what all of them share
 *
 * Each group of files has a part and a folder: hosts, queue, place, limit, book (with forecast), preempt. The
 * header of a group defines its part. Parts are opaque to the groups below, so calls can only go down; where
 * a lower group has something to tell, it does so through struct sched_hooks.
 *
 *     explain ──> top (sched.c, plan.c, …) ──> preempt ──> book ──> limit ──> place ──> queue ──> hosts
 *
 * (1) What a host has free is what `core` says, less the claims of starts that are planned and not yet
 *     applied. The planner reads it from core again whenever something happened there, so it cannot drift.
 * (2) A family that did not fit is blocked. The planner does not try it again until a host that one of its
 *     jobs could use got more room (freed), or until enough hosts did (lacking).
 * (3) The first waiting job of each partition is booked: it has a start, hosts, and a block on each of them.
 *     No job behind it may take what a block needs.
 * (4) spare <= free: a host's spare room is what is left for a job of any length beside all of its blocks.
 * (5) The order is (tier, priority, id). Nothing depends on addresses.
 */
#ifndef SCHED_ROOT_H
#define SCHED_ROOT_H

#include "base/arena.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/units.h"
#include "base/vec.h"
#include "core/accounts.h"
#include "core/shape.h"
#include "sched/sched.h"

/* The planner assumes that a job without a time limit ends after this. */
#define UNLIMITED_US (INT64_C(365) * 86400 * US_PER_S)

/* (5): the smaller one goes first. */
struct order {
    uint64_t rank;
    uint32_t id;
};
static inline bool order_before(struct order a, struct order b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.id < b.id;
}
#define ORDER_LAST ((struct order){ UINT64_MAX, UINT32_MAX })
#define NO_ORDER   ((struct order){ 0, 0 })
static inline bool order_is_last(struct order order)
{
    return order.rank == UINT64_MAX && order.id == UINT32_MAX;
}

/*
 * What work costs. A unit is about two microseconds, so a slice with a budget of some thousands takes a few
 * milliseconds, whatever it does.
 */
enum {
    COST_TRY = 4,          /* placing a job; and one unit for this many hosts: */
    HOSTS_PER_COST = 64,   /* that were looked at closely, */
    STARTS_PER_COST = 2,   /* that were asked when they could start it, */
    GIVEN_PER_COST = 2,    /* that the job was given */
    COST_LIMIT_QUEUE = 2,  /* reviewing a limit queue; and one unit for this many of its jobs: */
    JOBS_PER_COST = 2,     /* that were looked at closely or moved in the order, */
    ITEMS_PER_COST = 8,    /* that were only passed over */
    COST_PER_RELEASE = 16, /* hosts that a release pays for when a start is worked out again */
};
static inline void budget_take(unsigned *budget, uint64_t cost)
{
    *budget -= (unsigned)MIN(*budget, cost);
}

/* What has still to be read from the state, in slices; rebuild.c. */
enum {
    READ_HOSTS = 1,
    READ_ROOM = 2,
    READ_RESVS = 4,
    READ_JOBS = 8,
    READ_NODES = 16,
    READ_NEEDS = 32,
};
struct rebuild {
    unsigned left; /* READ_*; 0: everything was read */
    uint32_t host, room_host, node_host, class, resv_host;
    uint64_t job_id; /* the next job, and above the next host or class, of each */
};

/* What the groups of the planner tell or ask the groups above them. sched.c fills it in. */
struct sched_hooks {
    /* What the host has, or has promised, changed. */
    void (*host_touched)(struct sched *sched, uint32_t number);
    /* The job was found on a host while hosts are read. */
    void (*job_read)(struct sched *sched, const struct job *job);
    /* A licence was given back that a job behind a limit could use. */
    void (*licence_freed)(struct sched *sched);
    /* The job has another place in the order. */
    void (*reorder)(struct sched *sched, const struct job *job);
    /* The job gives up its booking if it has one, or the search for one. */
    void (*unbook)(struct sched *sched, uint32_t job_id);
    void (*forget_search)(struct sched *sched, uint32_t job_id);
    /* What the job's preempt hold keeps of limits stops counting (-1), or counts again (1). */
    void (*hold_lift)(struct sched *sched, const struct job *job, int by);
    /* Is room held for the job until its victims are gone? */
    bool (*is_held)(const struct sched *sched, uint32_t job_id);
};

struct hosts;
struct queue;
struct placing;
struct limiting;
struct bookings;
struct forecasts;
struct preemption;
struct planning;

struct sched {
    const struct state *state;
    const struct sched_hooks *hooks;
    int64_t now_us;
    uint64_t epoch;    /* grows with every change of nodes */
    uint64_t changes;  /* grows with every event that may change a start */
    uint64_t releases; /* grows with every release of a node */
    uint64_t looked;   /* hosts that were ever looked at closely */
    struct rebuild rebuild;
    struct arena plan_arena; /* of the plan that sched_plan() gave last */

    struct hosts *hosts;        /* hosts/hosts.h */
    struct queue *queue;        /* queue/queue.h */
    struct placing *place;      /* place/place.h */
    struct limiting *limit;     /* limit/limit.h */
    struct bookings *book;      /* book/book.h */
    struct forecasts *forecast; /* the same */
    struct preemption *preempt; /* preempt/preempt.h */
    struct planning *plan;      /* plan.h */
};

static inline bool rebuild_is_done(const struct sched *sched)
{
    return !sched->rebuild.left;
}

/* Will the host be read again anyway? */
static inline bool rebuild_is_due(const struct sched *sched, uint32_t host)
{
    return sched->rebuild.left & READ_NODES && host >= sched->rebuild.node_host;
}

#endif
