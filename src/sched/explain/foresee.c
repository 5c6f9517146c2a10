/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foresee.c - from when on nothing but room is missing: limits, dependencies, times
 *
 * Worked out when somebody asks, from the time limits of those who are in the way.
 *
 * (1) A limit has room when enough of those that it counts have ended. They end with their time limits, and each time
 *     those that wait for limits go in their order, as the planner would let them. That they need room on nodes too
 *     is not looked at. Mostly it is sooner: jobs end before their limit.
 */
#include <stdlib.h>
#include <string.h>

#include "base/timefmt.h"
#include "core/core.h"
#include "sched/explain/explain.h"
#include "sched/limit/limit_counter.h"
#include "schema/reasons.h"

/* Questions to limits; jobs that are looked at; jobs that wait for each other, in a chain. */
enum {
    ASKS = 2000,
    ASKS_LONG = 1000000,
    WAITERS_MOST = 100000,
    CHAIN_MOST = 32,
    CHAIN_LOOKS = 1000
};

/* ---- limits ---- */

struct ending {
    int64_t end_us;
    const struct job *job;
    bool runs; /* now; else it is taken to start until then */
};

/* Jobs of one owner and class get the same answer. */
struct waiter {
    struct order order;
    const struct job *job;
    uint32_t tasks; /* that it stands for and that have not gone */
    uint32_t group;
};

struct foresight {
    struct sched *sched;
    int64_t now_us;
    struct tallies tallies;
    VEC(struct ending) ends; /* the first to end is the last */
    VEC(struct waiter) waiters;
    struct map groups;      /* limit queue and class → number + 1 */
    VEC(bool) refused;      /* by group, at this time */
    size_t asks, gone;      /* left; jobs that went before it */
    const struct job *last; /* that has to end */
};

static int64_t ends_by(const struct job *job)
{
    return job_end_by(job, job->run->start_us + job->run->suspended_total_us);
}

static void add_end(struct foresight *f, struct ending one)
{
    size_t low = 0, high = f->ends.len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (f->ends.items[middle].end_us > one.end_us)
            low = middle + 1;
        else
            high = middle;
    }
    vec_push(&f->ends, one);
    memmove(&f->ends.items[low + 1], &f->ends.items[low],
            (f->ends.len - 1 - low) * sizeof(struct ending));
    f->ends.items[low] = one;
}

static int by_end(const void *a, const void *b)
{
    const struct ending *x = a, *y = b;

    return x->end_us != y->end_us ? (x->end_us < y->end_us) - (x->end_us > y->end_us)
                                  : (x->job->id < y->job->id) - (x->job->id > y->job->id);
}

/* Each at the first of its nodes. */
static void add_running(struct foresight *f)
{
    for (size_t n = 0; n < f->sched->hosts->list.len; n++) {
        const struct node *node = f->sched->hosts->list.items[n].node;
        for (size_t i = 0; i < node->jobs.len; i++) {
            const struct job *job = node->jobs.items[i];
            unsigned first = 0;
            while (!job->run->parts[first].node)
                first++;
            if (job->run->parts[first].node == node && !job_has_ended(job))
                vec_push(&f->ends, (struct ending){ ends_by(job), job, true });
        }
    }
    if (f->ends.len)
        qsort(f->ends.items, f->ends.len, sizeof(struct ending), by_end);
}

static void tally(struct foresight *f, const struct job *job, bool runs, int sign)
{
    const struct state *state = f->sched->state;
    const struct holder *holders[HOLDERS_MOST];
    struct charge charge;
    const char *partition = runs ? job->run->partition : job->shape->partitions[0];
    size_t count = limits_holders(state, job, state_partition(state, partition), holders);
    int64_t seconds = limits_seconds(job);

    if (runs) {
        charge_given(state, job, &charge);
        seconds += job->run->start_us / US_PER_S - state_head(state).time_us / US_PER_S;
    } else {
        charge_asked(state, job, 0, &charge);
    }
    tallies_add(state, &f->tallies, holders, count, &charge, seconds, sign);
}

/* How many it stands for. */
static uint32_t tasks_of(const struct job *job)
{
    return job_is_meta(job) ? MAX(job->array->waiting, 1) : 1;
}

static void add_waiter(struct foresight *f, const struct job *job, uint32_t queue)
{
    const struct pending *pending = pending_find(f->sched, job->id);
    uint64_t key = (uint64_t)queue << 32 | (pending ? pending->class : 0);
    uintptr_t group = (uintptr_t)map_get_num(&f->groups, key);

    if (!group) {
        vec_push(&f->refused, false);
        group = f->refused.len;
        map_put_num(&f->groups, key, (void *)group);
    }
    vec_push(&f->waiters, (struct waiter){ pending_order(f->sched, job), job, tasks_of(job),
                                           (uint32_t)group - 1 });
}

static int by_order(const void *a, const void *b)
{
    const struct waiter *x = a, *y = b;

    return order_before(x->order, y->order) ? -1 : order_before(y->order, x->order);
}

/* All that wait for limits; itself in any case. False: too many. */
static bool add_waiters(struct foresight *f, const struct job *asked)
{
    const struct state *state = f->sched->state;
    struct order order;

    add_waiter(f, asked, UINT32_MAX);
    vec_each (struct limit_queue *, queue, &f->sched->limit->queues) {
        for (size_t i = 0; *queue && i < (*queue)->bins.len; i++) {
            const struct bin *bin = (*queue)->bins.items[i].bin;
            struct job_list_cursor cursor = { 0 };
            while (!order_is_last(order = job_list_next(&bin->jobs, &cursor))) {
                if (f->waiters.len > WAITERS_MOST)
                    return false;
                if (order.id != asked->id)
                    add_waiter(f, state_job(state, order.id), (*queue)->number);
            }
        }
    }
    qsort(f->waiters.items, f->waiters.len, sizeof(struct waiter), by_order);
    return true;
}

/* Whoever may go, goes. Does the job? */
static bool let_go(struct foresight *f, const struct job *asked)
{
    struct limit_hit hit;

    for (size_t i = 0; i < f->refused.len; i++)
        f->refused.items[i] = false;
    vec_each (struct waiter, at, &f->waiters) {
        while (at->tasks && !f->refused.items[at->group] && f->asks) {
            f->asks--;
            f->refused.items[at->group] =
                !limits_allow_any(f->sched->state, at->job, &f->tallies, &hit);
            if (f->refused.items[at->group])
                break;
            if (at->job == asked)
                return true;
            tally(f, at->job, false, 1);
            add_end(f, (struct ending){ job_end_by(at->job, f->now_us), at->job, false });
            at->tasks--;
            f->gone++;
        }
    }
    return false;
}

/* All do that end in the next second in which somebody does; false: nobody, as far as can be seen. */
static bool go_on(struct foresight *f)
{
    int64_t end_us = f->ends.len ? f->ends.items[f->ends.len - 1].end_us : INT64_MAX;

    if (end_us == INT64_MAX || !f->asks)
        return false;
    f->now_us = MAX(f->now_us, (end_us + US_PER_S - 1) / US_PER_S * US_PER_S);
    while (f->ends.len && f->ends.items[f->ends.len - 1].end_us <= f->now_us) {
        struct ending next = f->ends.items[--f->ends.len];
        tally(f, next.job, next.runs, -1);
        f->last = next.job;
    }
    return true;
}

/* Nobody has to end. */
static int64_t foresee_usage(const struct sched *sched, const struct limit_hit *hit, int64_t now_us,
                             struct str *out)
{
    int64_t until_us = limit_decays_us(sched->state, hit);

    if (until_us == INT64_MAX) {
        str_add(out, "what was used is not forgotten: PriorityDecayHalfLife and "
                     "PriorityUsageResetPeriod say how it could");
    } else {
        str_add(out, "what was used is forgotten bit by bit: the limit has room for it in ");
        timefmt_write_duration(out, (until_us - now_us) / US_PER_S, TIMEFMT_SHORT);
        str_add(out, " if nothing more is used until then");
    }
    return until_us;
}

int64_t foresee_limit(struct sched *sched, const struct job *job, const struct limit_hit *hit,
                      int64_t now_us, struct str *out)
{
    struct foresight f = { .sched = sched, .now_us = now_us };

    if (hit->past)
        return foresee_usage(sched, hit, now_us, out);
    f.asks = sched->forecast->takes_time ? ASKS_LONG : ASKS;
    bool known = hit->holder && add_waiters(&f, job);
    if (known)
        add_running(&f);
    while (known && !let_go(&f, job))
        known = go_on(&f);
    if (known && f.last) {
        str_add(out, "if jobs run as long as they may, the limit has room for it when job ");
        job_format_id(f.last, out);
        str_addf(out, " (%s) has ended, in ", f.last->owner->user);
        timefmt_write_duration(out, (f.now_us - now_us) / US_PER_S, TIMEFMT_SHORT);
        if (f.gone)
            str_addf(out, "; %zu other%s that wait%s for limits go%s first", f.gone,
                     f.gone == 1 ? "" : "s", f.gone == 1 ? "s" : "", f.gone == 1 ? "es" : "");
    }
    tallies_done(&f.tallies);
    map_done(&f.groups);
    vec_done(&f.refused);
    vec_done(&f.waiters);
    vec_done(&f.ends);
    return known ? f.now_us : INT64_MAX;
}

/* ---- dependencies and times ---- */

struct chain {
    struct sched *sched;
    unsigned depth, looks;
};

static int64_t eligible_us(struct chain *chain, const struct job *job);

static int64_t when(void *ctx, const struct job *job, bool end)
{
    struct chain *chain = ctx;
    int64_t start = INT64_MAX;

    if (job_has_ended(job))
        return 0;
    if (job->run)
        return end ? ends_by(job) : job->run->start_us;
    if (job_is_eligible(job)) {
        int64_t planned = sched_planned_start(chain->sched, job);
        start = planned && tasks_of(job) == 1 ? planned : INT64_MAX;
    } else if (chain->depth < CHAIN_MOST && chain->looks++ < CHAIN_LOOKS) {
        chain->depth++;
        start = eligible_us(chain, job);
        chain->depth--;
    }
    return start == INT64_MAX || !end ? start : job_end_by(job, start);
}

static int64_t eligible_us(struct chain *chain, const struct job *job)
{
    const struct state *state = chain->sched->state;
    int64_t begin_us = MAX(job_begin_us(job), chain->sched->now_us);

    switch (core_job_reason(state, job)) {
    case REASON_BEGIN_TIME:
        return begin_us;
    case REASON_DEPENDENCY:
        return MAX(core_dependency_us(state, job, when, chain), begin_us);
    default:
        return INT64_MAX;
    }
}

int64_t foresee_eligible(struct sched *sched, const struct job *job)
{
    struct chain chain = { .sched = sched };

    return eligible_us(&chain, job);
}
