/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bids.c - what it would cost to let a job use a host
 *
 * On a large cluster that takes longer than a slice: hosts are asked some at a time, and what they said
 * is kept meanwhile. It may be old in the end. It decides only in which order hosts are taken; who must
 * go there is worked out anew (hunt.c).
 */
#include <stdlib.h>

#include "sched/hunt_priv.h"

enum { ROOMS_PER_COST = 1, HOSTS_LEAST = 256, HOSTS_PARTICULAR = 2048, HOSTS_PER_NODE = 2 };

/* Somebody on the host, and where among its runs. */
struct there {
    struct quarry quarry;
    uint32_t job_id; /* of the component that is there */
};
struct asking {
    struct hunt *hunt;
    const struct hunter *hunter;
    struct host *host;
    uint32_t number;
    VEC(struct there) list; /* the cheapest first */
};

static uint32_t room_for(const struct asking *ask)
{
    const struct hunter *hunter = ask->hunter;

    return place_tasks_at(ask->hunt->sched, hunter->family, hunter->partition, hunter->job,
                          &hunter->view, ask->number);
}

static void mark(const struct asking *ask, uint32_t job_id, uint8_t out)
{
    for (size_t i = 0; i < ask->host->runs.len; i++) {
        if (ask->host->runs.items[i].job_id == job_id)
            ask->host->runs.items[i].out = out;
    }
}

static int by_cost(const void *a, const void *b, void *arg)
{
    const struct there *x = a, *y = b;

    return hunt_by_cost(&x->quarry, &y->quarry, *(const bool *)arg);
}

/* Who may be sent away there, the cheapest first; what ends anyway is marked. */
static void gather_here(struct asking *ask)
{
    struct sched *sched = ask->hunt->sched;
    bool youngest = state_config(sched->state)->preempt_youngest_first;
    const struct node *node = ask->host->node;

    vec_clear(&ask->list);
    for (size_t i = 0; i < node->jobs.len; i++) {
        const struct job *job = node->jobs.items[i], *first = hunt_stands_for(sched, job);
        struct there one = { .job_id = job->id };
        if (hunt_is_going(ask->hunt, job)) {
            mark(ask, job->id, RUN_GONE);
            continue;
        }
        bool takes = hunt_may_take(ask->hunt, first, &one.quarry) &&
                     one.quarry.sides >> ask->hunter->side & 1;
        if (!takes && first->run->lent) /* hunt.c (3) */
            mark(ask, job->id, RUN_RETURNS);
        else if (takes && !one.quarry.lent)
            vec_push(&ask->list, one);
    }
    if (ask->list.len)
        qsort_r(ask->list.items, ask->list.len, sizeof(struct there), by_cost, &youngest);
}

/* Victims are taken from the cheapest on until there is enough room, for so many tasks. */
static struct bid bid_for(struct asking *ask, uint32_t number, uint32_t wanted)
{
    struct bid bid = { .host = number };

    ask->number = number;
    ask->host = &ask->hunt->sched->hosts.items[number];
    gather_here(ask);
    bid.tasks = room_for(ask);
    for (; bid.jobs < ask->list.len && bid.tasks < wanted; bid.jobs++) {
        const struct there *one = &ask->list.items[bid.jobs];
        mark(ask, one->job_id, one->quarry.out);
        bid.tasks = room_for(ask);
        bid.dear = (struct price){ one->quarry.worth, one->quarry.priority, one->quarry.start_us,
                                   one->quarry.id };
    }
    hunt_unmark_host(ask->hunt, number);
    return bid;
}

bool bids_ask(struct hunt *hunt, const struct hunter *hunter, unsigned *budget)
{
    struct chase *chase = hunt->chase;
    const struct shape *shape = hunter->family->shape;
    const struct bitset *nodes = &hunter->need->nodes;
    uint32_t share = (shape->units + shape->min_nodes - 1) / shape->min_nodes;
    struct asking ask = { .hunt = hunt, .hunter = hunter };
    unsigned asked = 0;

    for (; *budget; asked++) {
        size_t number = bitset_next(nodes, chase->next);
        if (number >= nodes->bits)
            break;
        chase->next = number + 1;
        struct bid bid = bid_for(&ask, (uint32_t)number, share);
        if (bid.tasks)
            vec_push(&chase->bids, bid);
        budget_take(budget, 1 + (bid.jobs + ask.list.len) / ROOMS_PER_COST);
    }
    vec_done(&ask.list);
    if (asked > HOSTS_LEAST) /* the rest has a slice of its own */
        *budget = 0;
    return asked <= HOSTS_LEAST && bitset_next(nodes, chase->next) >= nodes->bits;
}

/* As hunt_by_cost(). */
static int by_price(const struct price *x, const struct price *y, bool youngest)
{
    if (x->worth != y->worth)
        return x->worth < y->worth ? -1 : 1;
    if (!youngest && x->priority != y->priority)
        return x->priority < y->priority ? -1 : 1;
    if (x->start_us != y->start_us)
        return x->start_us > y->start_us ? -1 : 1;
    return x->id > y->id ? -1 : x->id < y->id;
}

static int by_jobs(const void *a, const void *b, void *arg)
{
    const struct bid *x = a, *y = b;
    const Config *config = arg;

    if (!config->preempt_strict_order && x->jobs != y->jobs)
        return x->jobs < y->jobs ? -1 : 1;
    if (!x->jobs != !y->jobs) /* nobody has to go */
        return !x->jobs ? -1 : 1;
    int dearer = by_price(&x->dear, &y->dear, config->preempt_youngest_first);
    if (dearer)
        return dearer;
    if (x->tasks != y->tasks)
        return x->tasks > y->tasks ? -1 : 1;
    return x->host < y->host ? -1 : x->host > y->host;
}

bool bids_best(struct hunt *hunt, const struct hunter *hunter)
{
    struct chase *chase = hunt->chase;
    const struct shape *shape = hunter->family->shape;
    const Config *config = state_config(hunt->sched->state);
    size_t least = MAX((size_t)HOSTS_LEAST, (size_t)shape->min_nodes * HOSTS_PER_NODE), count = 0;
    uint64_t tasks = 0;

    if (hunter->family->particular) /* which of them go together is not known */
        least = MAX(least, (size_t)HOSTS_PARTICULAR);
    for (uint32_t i = 0; i < hunt->count && hunt->count > 1; i++) /* the others are there too */
        least +=
            i == (uint32_t)(hunter - hunt->hunters) ? 0 : hunt->hunters[i].job->shape->min_nodes;
    if (chase->bids.len)
        qsort_r(chase->bids.items, chase->bids.len, sizeof(struct bid), by_jobs,
                (void *)(uintptr_t)config);
    for (; count < chase->bids.len; count++) {
        if (count >= least && tasks >= (uint64_t)shape->units * 2)
            break;
        vec_push(&chase->hosts, chase->bids.items[count].host);
        tasks += chase->bids.items[count].tasks;
    }
    vec_push(&chase->ends, chase->hosts.len);
    vec_clear(&chase->bids);
    return count >= shape->min_nodes && tasks >= shape->units;
}
