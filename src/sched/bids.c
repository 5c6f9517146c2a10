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

static uint32_t room_for(struct hunt *hunt, uint32_t host)
{
    return place_tasks_at(hunt->sched, hunt->family, hunt->partition, hunt->job, &hunt->view, host);
}

/* Who may be sent away there, the cheapest first; what ends anyway is marked. */
static void gather_here(struct hunt *hunt, const struct node *node)
{
    bool youngest = state_config(hunt->sched->state)->preempt_youngest_first;

    vec_clear(&hunt->list);
    vec_clear(&hunt->going);
    for (size_t i = 0; i < node->jobs.len; i++) {
        struct candidate one;
        if (hunt_is_going(node->jobs.items[i])) {
            vec_push(&hunt->going, node->jobs.items[i]);
            hunt_mark(hunt->sched, node->jobs.items[i], RUN_GONE);
        } else if (hunt_may_take(hunt, node->jobs.items[i], &one)) {
            vec_push(&hunt->list, one);
        }
    }
    if (hunt->list.len)
        qsort_r(hunt->list.items, hunt->list.len, sizeof(struct candidate), hunt_by_cost,
                &youngest);
}

static struct price price_of(const struct candidate *candidate)
{
    const struct job *job = candidate->job;

    return (struct price){ candidate->worth, job->priority, job->run->start_us, job->id };
}

/* Victims are taken from the cheapest on until there is enough room, for so many tasks. */
static struct bid bid_for(struct hunt *hunt, uint32_t number, uint32_t wanted)
{
    struct sched *sched = hunt->sched;
    struct bid bid = { .host = number };

    gather_here(hunt, sched->hosts.items[number].node);
    bid.tasks = room_for(hunt, number);
    for (; bid.jobs < hunt->list.len && bid.tasks < wanted; bid.jobs++) {
        hunt_mark_candidate(sched, &hunt->list.items[bid.jobs], true);
        bid.tasks = room_for(hunt, number);
        bid.dear = price_of(&hunt->list.items[bid.jobs]);
    }
    for (size_t i = 0; i < bid.jobs; i++)
        hunt_mark_candidate(sched, &hunt->list.items[i], false);
    for (size_t i = 0; i < hunt->going.len; i++)
        hunt_mark(sched, hunt->going.items[i], RUN_STAYS);
    return bid;
}

bool bids_ask(struct hunt *hunt, unsigned *budget)
{
    struct bids *bids = &hunt->sched->bids;
    const struct shape *shape = hunt->family->shape;
    uint32_t share = (shape->tasks + shape->min_nodes - 1) / shape->min_nodes;
    unsigned asked = 0;

    for (; *budget; asked++) {
        size_t number = bitset_next(&hunt->need->nodes, bids->next);
        if (number >= hunt->need->nodes.bits)
            break;
        bids->next = number + 1;
        struct bid bid = bid_for(hunt, (uint32_t)number, share);
        if (bid.tasks)
            vec_push(&bids->list, bid);
        budget_take(budget, 1 + (bid.jobs + hunt->list.len) / ROOMS_PER_COST);
    }
    vec_done(&hunt->list);
    vec_done(&hunt->going);
    if (asked > HOSTS_LEAST) /* the rest has a slice of its own */
        *budget = 0;
    return asked <= HOSTS_LEAST &&
           bitset_next(&hunt->need->nodes, bids->next) >= hunt->need->nodes.bits;
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

uint32_t *bids_best(const struct hunt *hunt, size_t *count)
{
    struct bids *bids = &hunt->sched->bids;
    const struct shape *shape = hunt->family->shape;
    const Config *config = state_config(hunt->sched->state);
    size_t least = MAX((size_t)HOSTS_LEAST, (size_t)shape->min_nodes * HOSTS_PER_NODE);
    uint64_t tasks = 0;

    if (hunt->family->particular) /* which of them go together is not known */
        least = MAX(least, (size_t)HOSTS_PARTICULAR);
    if (bids->list.len)
        qsort_r(bids->list.items, bids->list.len, sizeof(struct bid), by_jobs,
                (void *)(uintptr_t)config);
    uint32_t *hosts = NEW_ARRAY(uint32_t, bids->list.len + 1);
    for (*count = 0; *count < bids->list.len; ++*count) {
        if (*count >= least && tasks >= (uint64_t)shape->tasks * 2)
            break;
        hosts[*count] = bids->list.items[*count].host;
        tasks += bids->list.items[*count].tasks;
    }
    return hosts;
}

void bids_clear(struct sched *sched)
{
    vec_clear(&sched->bids.list);
    sched->bids.job_id = 0;
    sched->bids.next = 0;
}
