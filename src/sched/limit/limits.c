/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.c - jobs that a limit of their association or QOS keeps from starting
 *
 * core says in the depth of the account tree whether a job may start (limits_allow). Here is what
 * the planner asks before it tries a job; who may not start waits at a counter (limit_queue.c, limit_review.c, limit_counter.c).
 *
 * (1) Starts that are planned and not applied are counted in sched->limit->planned, so that no more are
 *     planned than the limit has room for.
 * (2) Limits on past usage fall with time; each turn of the priorities looks at all limit queues.
 * (3) Where accounts, QOS or partitions are others, what is planned is counted by those who count it
 *     now, and all limit queues are looked at. Some who counted it before are no more.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/limit/limit.h"

/* Jobs that are looked at in a slice, that are fetched before; what it costs to put one elsewhere. */
enum { SWEEP_SLICE = 512, SWEEP_AHEAD = 8, COST_MOVE = 3 };

struct held {
    size_t count;
    int64_t seconds;
    struct charge charge;
    const struct holder *holders[HOLDERS_MOST];
    uint32_t numbers[HOLDERS_MOST]; /* of these, who may be gone: (3) */
};

/* ---- what the planner asks ---- */

/* Beside all that is planned, but for what is held for itself. */
static bool allow_any(struct sched *sched, const struct job *job, struct limit_hit *hit)
{
    sched->hooks->hold_lift(sched, job, -1);
    bool good = limits_allow_any(sched->state, job, &sched->limit->planned, hit);
    sched->hooks->hold_lift(sched, job, 1);
    return good;
}

bool limits_in_way(struct sched *sched, const struct job *job)
{
    struct limit_hit hit;

    if (!state_enforce(sched->state) || allow_any(sched, job, &hit))
        return false;
    pending_limit(sched, job, &hit, false);
    return true;
}

bool limits_stop(struct sched *sched, uint32_t job_id)
{
    struct limit_hit hit;

    return state_enforce(sched->state) && !allow_any(sched, state_job(sched->state, job_id), &hit);
}

static void charge_parts(const struct sched *sched, const struct job *job,
                         const struct parts *parts, struct charge *out)
{
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < parts->list.len; i++) {
        const struct chosen *part = &parts->list.items[i];
        const struct node *node = sched->hosts->list.items[part->host].node;
        charge_add_node(sched->state, out, part->take.cpus, part->take.mem_mb);
        for (size_t g = 0; g < node->gres_count && g < TAKE_GRES; g++) {
            if (part->take.gres[g])
                charge_add(sched->state, out, node->gres[g].name, node->gres[g].type,
                           part->take.gres[g]);
        }
    }
    charge_close(sched->state, out, job->shape, parts->licence, parts->need->partition);
}

static bool allow_parts(struct sched *sched, const struct job *job, const struct parts *parts,
                        struct limit_hit *hit)
{
    struct charge charge;

    charge_parts(sched, job, parts, &charge);
    return limits_allow(sched->state, job, parts->need->partition, &charge, &sched->limit->planned,
                        hit);
}

bool limits_in_way_of(struct sched *sched, const struct job *job, struct parts *parts,
                      struct limit_hit *hit)
{
    struct limit_hit other;
    uint32_t first = parts->licence;

    if (!state_enforce(sched->state))
        return false;
    sched->hooks->hold_lift(sched, job, -1);
    bool good = allow_parts(sched, job, parts, hit);
    /* Of "a or b" another may be free too, and not limited. */
    for (uint32_t i = 0; !good && job->shape->licence_any && i < job->shape->licence_count; i++) {
        parts->licence = i;
        good = i != first && allow_parts(sched, job, parts, &other) && licences_free(sched, job, i);
    }
    if (!good)
        parts->licence = first;
    sched->hooks->hold_lift(sched, job, 1);
    return !good;
}

/* ---- (1) ---- */

static void count_held(struct sched *sched, struct held *held, const struct job *job,
                       const struct partition *partition)
{
    held->count = limits_holders(sched->state, job, partition, held->holders);
    for (size_t i = 0; i < held->count; i++)
        held->numbers[i] = held->holders[i]->number;
    limits_lift(sched, held, 1);
}

struct held *limits_plan(struct sched *sched, const struct job *job, const struct parts *parts)
{
    struct held *held;

    if (!state_enforce(sched->state))
        return NULL;
    held = NEW(struct held);
    charge_parts(sched, job, parts, &held->charge);
    held->seconds = limits_seconds(job);
    count_held(sched, held, job, parts->need->partition);
    return held;
}

void limits_lift(struct sched *sched, const struct held *held, int by)
{
    if (held)
        tallies_add(sched->state, &sched->limit->planned, held->holders, held->count, &held->charge,
                    held->seconds, by);
}

void limits_unplan(struct sched *sched, struct held *held, bool started)
{
    if (!held)
        return;
    tallies_add(sched->state, &sched->limit->planned, held->holders, held->count, &held->charge,
                held->seconds, -1);
    for (size_t i = 0; i < held->count && !started; i++) /* else core counts it now */
        limit_counter_fell(sched, held->holders[i]);
    free(held);
}

void limits_freed(struct sched *sched, const struct job *job)
{
    const struct holder *holders[HOLDERS_MOST];

    if (!map_len(&sched->limit->queue_keys))
        return;
    const char *partition = job->run ? job->run->partition : job->shape->partitions[0];
    size_t count =
        limits_holders(sched->state, job, state_partition(sched->state, partition), holders);
    for (size_t i = 0; i < count; i++)
        limit_counter_fell(sched, holders[i]);
}

/* ---- (3) ---- */

void limits_count_again(struct sched *sched, struct held *held, const struct job *job,
                        uint32_t partition, bool counts)
{
    for (size_t i = 0; held && !counts && i < held->count; i++)
        sched->limit->planned.items[held->numbers[i]] = (struct planned){ 0 };
    if (held && counts && job)
        count_held(sched, held, job, state_partition_at(sched->state, partition));
    else if (held && counts)
        held->count = 0;
}

void limits_renew(struct sched *sched)
{
    limit_counters_renew(sched);
    limit_queues_review_all(sched);
}

/* ---- turns of the priorities ---- */

/* (2), and each job to its new place in the order, some in each slice. */
void limits_sweep(struct sched *sched, unsigned *budget)
{
    uint64_t turn = state_priority_turn(sched->state);

    limit_counters_tidy(sched, budget);
    if (sched->limit->turn != turn) {
        sched->limit->turn = turn;
        sched->queue->sweep_id = priority_is_basic(sched->state) ? 0 : 1;
        limit_queues_review_all(sched);
    }
    if (sched->hosts->usable_again && !sched->limit->queue_sweep) {
        sched->hosts->usable_again = false;
        limit_queues_review_all(sched);
    }
    unsigned half = *budget / 2 + 1,
             limit_queues = half / 2 + 1; /* the rest is for who can start */
    unsigned left = limit_queues;
    limit_queues_sweep(sched, &left);
    left = half - MIN(half, limit_queues - left);
    for (unsigned done = 0; sched->queue->sweep_id && done < SWEEP_SLICE && left; done++) {
        const struct job *job = state_job_from(sched->state, sched->queue->sweep_id);
        sched->queue->sweep_id = job && job->id < UINT32_MAX ? job->id + 1 : 0;
        if (!job)
            break;
        pending_prefetch(sched, job->id + SWEEP_AHEAD);
        const struct pending *pending = pending_find(sched, job->id);
        bool moves = pending && pending->class && pending_rank_is_old(sched, job);
        if (moves)
            pending_refresh(sched, job);
        budget_take(&left, moves ? COST_MOVE : done % JOBS_PER_COST == 0);
    }
    *budget = MAX(*budget - MIN(*budget, half - left), 1);
}

void limits_done(struct sched *sched)
{
    limit_queues_done(sched);
    tallies_done(&sched->limit->planned);
}
