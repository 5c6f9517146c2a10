/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rebuild.c - the state is read in slices
 *
 * After a restart, a configuration with other nodes or a change of reservations much has to be read
 * anew: a million jobs take a second. That is done some at a time, so that the loop goes on meanwhile.
 *
 * (1) Hosts first, with what runs there; then what is free there; what reservations keep; at last
 *     the jobs that wait. Nothing is planned until all is read.
 * (2) An event about something that was not read yet is passed over: the state has it already when
 *     its turn comes. What was read is changed by it as always.
 * (3) What there was before is set aside and freed bit by bit.
 * (4) Where nodes have something else, and the numbers that they had, only these are read again. Until
 *     the turn of a host comes what is free there is not worked out.
 * (5) What the shapes of waiting jobs need is worked out again when nodes or partitions are others:
 *     here, so that nobody who asks for it in a hurry has to look at all nodes for many of them.
 */
#include <stdlib.h>

#include "sched/plan.h"

enum {
    FEED_BUDGET = 500, /* for each command: a follower, who plans nothing, gets there too */
    COST_HOST = 2,
    RUNS_PER_UNIT = 4,
    HOSTS_PER_UNIT = 2,
    NODES_PER_UNIT = 24, /* for what a shape needs */
    RESV_HOSTS_PER_UNIT = 1,
    COST_JOB = 1,
    COST_LIMITED_JOB = 3,
};

void rebuild_begin(struct sched *sched)
{
    sched->rebuild = (struct rebuild){ .left = READ_HOSTS | READ_ROOM | READ_RESVS | READ_JOBS };
}

void rebuild_nodes(struct sched *sched)
{
    sched->rebuild.left |= READ_NODES;
    sched->rebuild.node_host = 0;
}

void rebuild_needs(struct sched *sched)
{
    sched->rebuild.left |= READ_NEEDS;
    sched->rebuild.class = 0;
}

void rebuild_reservations(struct sched *sched)
{
    sched->rebuild.left |= READ_RESVS;
    sched->rebuild.resv_host = 0;
    for (unsigned i = 0; i < SEARCHES; i++) /* what they found may be in one that is gone */
        search_end(sched, &sched->book->searches[i]);
}

/* ---- the parts; each is true when it is finished ---- */

static bool read_hosts(struct sched *sched, unsigned *budget)
{
    uint32_t *next = &sched->rebuild.host;
    size_t count = state_node_count(sched->state);

    for (; *next < count && *budget; ++*next) {
        host_take_new(sched, state_node_at(sched->state, *next));
        host_read_jobs(sched, *next);
        budget_take(budget,
                    COST_HOST + sched->hosts->list.items[*next].running.len / RUNS_PER_UNIT);
    }
    return *next == count;
}

static bool read_room(struct sched *sched, unsigned *budget)
{
    uint32_t *next = &sched->rebuild.room_host;

    for (; *next < sched->hosts->list.len && *budget; ++*next) {
        host_refresh(sched, *next);
        budget_take(budget, *next % HOSTS_PER_UNIT == 0);
    }
    return *next == sched->hosts->list.len;
}

/* (4) */
static bool read_nodes(struct sched *sched, unsigned *budget)
{
    uint32_t *next = &sched->rebuild.node_host;

    while (*next < sched->hosts->list.len && *budget) {
        ++*next; /* its turn has come */
        host_changed(sched, state_node_at(sched->state, *next - 1));
        budget_take(budget, 1);
    }
    return *next == sched->hosts->list.len;
}

static bool read_reservations(struct sched *sched, unsigned *budget)
{
    uint32_t *next = &sched->rebuild.resv_host;

    if (*next == 0) {
        resvs_begin(sched);
        licences_read_reservations(sched);
    }
    for (; *next < sched->hosts->list.len && *budget; ++*next)
        budget_take(budget, RESV_HOSTS_PER_UNIT + host_read_reservations(sched, *next));
    if (*next < sched->hosts->list.len)
        return false;
    book_blocks(sched);
    sched->epoch++;
    families_mark_ready(sched);
    return true;
}

/* What a shape needs is worked out anew when nodes or partitions changed: a look at every node. */
uint64_t shape_cost(const struct sched *sched, const struct shape *shape)
{
    return shape->needs && shape->generation == state_generation(sched->state)
               ? 0
               : 1 + state_node_count(sched->state) * shape->partition_count / NODES_PER_UNIT;
}

/* (5) */
static bool read_needs(struct sched *sched, unsigned *budget)
{
    uint32_t *next = &sched->rebuild.class;

    for (bool any = false; *next < sched->queue->classes.len && *budget; ++*next) {
        const struct class *class = sched->queue->classes.items[*next];
        uint64_t cost = class ? shape_cost(sched, class->family->shape) : 0;
        if (any && cost > *budget) /* one takes long */
            return false;
        any = any || cost;
        if (cost)
            shape_needs(sched->state, class->family->shape);
        budget_take(budget, cost + (*next % ITEMS_PER_COST == 0));
    }
    return *next >= sched->queue->classes.len;
}

static bool read_jobs(struct sched *sched, unsigned *budget)
{
    bool limited = state_enforce(sched->state);
    unsigned done = 0;

    for (; *budget; done++) {
        const struct job *job = state_job_from(sched->state, sched->rebuild.job_id);
        if (!job)
            return true;
        sched->rebuild.job_id = (uint64_t)job->id + 1;
        if (job->state == JOB_PENDING) {
            budget_take(budget,
                        shape_cost(sched, job->shape) + (limited ? COST_LIMITED_JOB : COST_JOB));
            pending_refresh(sched, job);
        } else {
            completing_add(sched, job, job->end_us);
            budget_take(budget, done % ITEMS_PER_COST == 0);
        }
    }
    return false;
}

static const struct {
    unsigned what;
    bool (*read)(struct sched *sched, unsigned *budget);
} parts[] = {
    { READ_HOSTS, read_hosts }, { READ_ROOM, read_room },          { READ_NODES, read_nodes },
    { READ_NEEDS, read_needs }, { READ_RESVS, read_reservations }, { READ_JOBS, read_jobs },
};

bool rebuild_continue(struct sched *sched, unsigned *budget)
{
    if (sched->plan->retired)
        retired_free_some(sched, budget);
    for (size_t i = 0; i < ARRAY_LEN(parts) && sched->rebuild.left; i++) {
        if (!(sched->rebuild.left & parts[i].what))
            continue;
        if (!*budget || !parts[i].read(sched, budget))
            return false;
        sched->rebuild.left &= ~parts[i].what;
        if (!sched->rebuild.left)
            sched->epoch++;
    }
    return true;
}

void rebuild_all(struct sched *sched)
{
    for (unsigned budget = UINT32_MAX; !rebuild_continue(sched, &budget);)
        budget = UINT32_MAX;
}

/* ---- (2) ---- */

/* Hosts that were read and that the event is about are read again. */
static void hosts_again(struct sched *sched, const struct event *event)
{
    const struct job_run *run = event->job ? event->job->run : NULL;

    for (unsigned i = 0; run && i < run->count; i++) {
        const struct node *node = run->parts[i].node;
        if (node && node->number < sched->rebuild.host)
            host_read_jobs(sched, node->number);
    }
    if (event->node && event->node->number < sched->rebuild.host)
        host_read_jobs(sched, event->node->number);
    if (event->kind == EVENT_JOB_ENDED || event->kind == EVENT_JOB_REQUEUED)
        preempt_ended(sched, event->job->id);
    if (event->kind == EVENT_JOB_RELEASED)
        licences_ended(sched, event->job_id);
}

bool rebuild_passes(struct sched *sched, const struct event *event)
{
    if (!(sched->rebuild.left & READ_HOSTS))
        return false;
    switch (event->kind) {
    case EVENT_PARTITION:
    case EVENT_CONFIG:
        return false; /* all anew */
    case EVENT_NODE_UP:
    case EVENT_NODE_DOWN:
    case EVENT_NODE_CHANGED:
        return event->node->number >= sched->rebuild.host;
    default:
        hosts_again(sched, event);
        return true;
    }
}

void rebuild_feed(struct sched *sched)
{
    unsigned budget = FEED_BUDGET;

    if (sched->rebuild.left || sched->plan->retired)
        rebuild_continue(sched, &budget);
}
