/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt_cost.c - what it would cost to let a job use a host
 *
 * On a large cluster that takes longer than a slice: hosts are asked some at a time, and what they said
 * is kept meanwhile. It may be old in the end. It decides only in which order hosts are taken; who must
 * go there is worked out anew (preempt_trial.c).
 */
#include <stdlib.h>

#include "sched/preempt/preempt_trial.h"

enum { ROOMS_PER_COST = 1, HOSTS_LEAST = 256, HOSTS_PARTICULAR = 2048, HOSTS_PER_NODE = 2 };

/* Somebody on the host, and where among its runs. */
struct there {
    struct victim victim;
    uint32_t job_id; /* of the component that is there */
};
struct asking {
    struct preempt_trial *trial;
    const struct preemptor *preemptor;
    struct host *host;
    uint32_t number;
    VEC(struct there) list; /* the cheapest first */
};

static uint32_t room_for(const struct asking *ask)
{
    const struct preemptor *preemptor = ask->preemptor;

    return place_tasks_at(ask->trial->sched, preemptor->family, preemptor->partition,
                          preemptor->job, &preemptor->view, ask->number);
}

static void mark(const struct asking *ask, uint32_t job_id, uint8_t out)
{
    for (size_t i = 0; i < ask->host->running.len; i++) {
        if (ask->host->running.items[i].job_id == job_id)
            ask->host->running.items[i].out = out;
    }
}

static int by_cost(const void *a, const void *b, void *arg)
{
    const struct there *x = a, *y = b;

    return preempt_trial_by_cost(&x->victim, &y->victim, *(const bool *)arg);
}

/* Who may be sent away there, the cheapest first; what ends anyway is marked. */
static void gather_here(struct asking *ask)
{
    struct sched *sched = ask->trial->sched;
    bool youngest = state_config(sched->state)->preempt_youngest_first;
    const struct node *node = ask->host->node;

    vec_clear(&ask->list);
    for (size_t i = 0; i < node->jobs.len; i++) {
        const struct job *job = node->jobs.items[i], *first = preempt_trial_stands_for(sched, job);
        struct there one = { .job_id = job->id };
        if (preempt_trial_is_going(ask->trial, job)) {
            mark(ask, job->id, HOST_JOB_GONE);
            continue;
        }
        bool takes = preempt_trial_may_take(ask->trial, first, &one.victim) &&
                     one.victim.sides >> ask->preemptor->side & 1;
        if (!takes && first->run->lent) /* preempt_trial.c (3) */
            mark(ask, job->id, HOST_JOB_RETURNS);
        else if (takes && !one.victim.lent)
            vec_push(&ask->list, one);
    }
    if (ask->list.len)
        qsort_r(ask->list.items, ask->list.len, sizeof(struct there), by_cost, &youngest);
}

/* Victims are taken from the cheapest on until there is enough room, for so many tasks. */
static struct host_cost cost_for(struct asking *ask, uint32_t number, uint32_t wanted)
{
    struct host_cost host_cost = { .host = number };

    ask->number = number;
    ask->host = &ask->trial->sched->hosts->list.items[number];
    gather_here(ask);
    host_cost.tasks = room_for(ask);
    for (; host_cost.jobs < ask->list.len && host_cost.tasks < wanted; host_cost.jobs++) {
        const struct there *one = &ask->list.items[host_cost.jobs];
        mark(ask, one->job_id, one->victim.out);
        host_cost.tasks = room_for(ask);
        host_cost.dear = (struct price){ one->victim.worth, one->victim.priority,
                                         one->victim.start_us, one->victim.id };
    }
    preempt_trial_unmark_host(ask->trial, number);
    return host_cost;
}

bool preempt_cost_gather(struct preempt_trial *trial, const struct preemptor *preemptor,
                         unsigned *budget)
{
    struct preempt_search *search = trial->search;
    const struct shape *shape = preemptor->family->shape;
    const struct bitset *nodes = &preemptor->need->nodes;
    uint32_t share = (shape->units + shape->min_nodes - 1) / shape->min_nodes;
    struct asking ask = { .trial = trial, .preemptor = preemptor };
    unsigned asked = 0;

    for (; *budget; asked++) {
        size_t number = bitset_next(nodes, search->next);
        if (number >= nodes->bits)
            break;
        search->next = number + 1;
        struct host_cost host_cost = cost_for(&ask, (uint32_t)number, share);
        if (host_cost.tasks)
            vec_push(&search->host_costs, host_cost);
        budget_take(budget, 1 + (host_cost.jobs + ask.list.len) / ROOMS_PER_COST);
    }
    vec_done(&ask.list);
    if (asked > HOSTS_LEAST) /* the rest has a slice of its own */
        *budget = 0;
    return asked <= HOSTS_LEAST && bitset_next(nodes, search->next) >= nodes->bits;
}

/* As preempt_trial_by_cost(). */
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
    const struct host_cost *x = a, *y = b;
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

bool preempt_cost_cheapest(struct preempt_trial *trial, const struct preemptor *preemptor)
{
    struct preempt_search *search = trial->search;
    const struct shape *shape = preemptor->family->shape;
    const Config *config = state_config(trial->sched->state);
    size_t least = MAX((size_t)HOSTS_LEAST, (size_t)shape->min_nodes * HOSTS_PER_NODE), count = 0;
    uint64_t tasks = 0;

    if (preemptor->family->particular) /* which of them go together is not known */
        least = MAX(least, (size_t)HOSTS_PARTICULAR);
    for (uint32_t i = 0; i < trial->count && trial->count > 1; i++) /* the others are there too */
        least += i == (uint32_t)(preemptor - trial->preemptors)
                     ? 0
                     : trial->preemptors[i].job->shape->min_nodes;
    if (search->host_costs.len)
        qsort_r(search->host_costs.items, search->host_costs.len, sizeof(struct host_cost), by_jobs,
                (void *)(uintptr_t)config);
    for (; count < search->host_costs.len; count++) {
        if (count >= least && tasks >= (uint64_t)shape->units * 2)
            break;
        vec_push(&search->hosts, search->host_costs.items[count].host);
        tasks += search->host_costs.items[count].tasks;
    }
    vec_push(&search->ends, search->hosts.len);
    vec_clear(&search->host_costs);
    return count >= shape->min_nodes && tasks >= shape->units;
}
