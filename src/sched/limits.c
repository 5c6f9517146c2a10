/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.c - jobs that a limit of their association or QOS keeps from starting
 *
 * core says in the depth of the account tree whether a job may start (limits_allow). Here is only
 * what makes that cheap for a long queue: a job that may not is taken out of its class and put into
 * the line of the holder whose counter is in the way. It is looked at again when that counter falls.
 *
 * (1) Starts that are planned and not applied are counted in sched->planned, so that no more are
 *     planned than the limit has room for.
 * (2) When a counter falls, the first of the line goes back to its class. It is out: the next one
 *     follows when it was tried, so a place that is free is not run for by the whole line. Those
 *     whose family is cold are not tried: of them RELEASE_MOST go at once, and as many with the next
 *     job that ends, or all when none is left to end.
 * (3) Limits on past usage fall with time; each turn of the priorities looks at all lines.
 * (4) A job that would be given more than it asks for, and more than there is room for, is over:
 *     it is not let out again until a counter falls.
 * (5) In the line of the job's own association all jobs have the same fair share: there they are
 *     in order without it (pend.own), and no turn moves them.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/sched_priv.h"

enum { RELEASE_MOST = 32, SWEEP_SLICE = 512, SWEEP_PER_BUDGET = 8 };

struct held {
    size_t count;
    int64_t seconds;
    struct charge charge;
    const struct holder *holders[HOLDERS_MOST];
};

/* ---- lines of holders ---- */

struct limited {
    struct line line;
    bool review; /* is in sched->review */
    bool fell;   /* its counter did, since it was looked at */
};

void limited_put(struct sched *sched, uint32_t holder, struct order order)
{
    if (holder == NO_HOLDER)
        return;
    struct limited *limited = map_get_num(&sched->limited, holder);
    if (!limited) {
        limited = NEW(struct limited);
        map_put_num(&sched->limited, holder, limited);
    }
    line_put(&limited->line, order);
}

void limited_del(struct sched *sched, uint32_t holder, struct order order)
{
    struct limited *limited = holder == NO_HOLDER ? NULL : map_get_num(&sched->limited, holder);

    if (!limited)
        return;
    line_del(&limited->line, order);
    if (order_is_last(line_head(&limited->line))) {
        map_del_num(&sched->limited, holder);
        line_done(&limited->line);
        free(limited);
    }
}

void limited_review(struct sched *sched, uint32_t holder, bool fell)
{
    struct limited *limited = map_get_num(&sched->limited, holder);

    if (!limited)
        return;
    limited->fell = limited->fell || fell;
    if (!limited->review)
        vec_push(&sched->review, holder);
    limited->review = true;
}

/* The first that may be let out; NULL: none. (4) */
static const struct job *first_of(const struct sched *sched, const struct limited *limited,
                                  bool fell)
{
    struct line_cursor cursor = { 0 };

    for (unsigned i = 0; limited && i < RELEASE_MOST; i++) {
        struct order order = line_next(&limited->line, &cursor);
        if (order_is_last(order))
            break;
        if (fell || !pend_find(sched, order.id)->over)
            return state_job(sched->state, order.id);
    }
    return NULL;
}

/* Does anything of the holder run, or is about to? */
static bool is_busy(const struct sched *sched, const struct job *job, uint32_t holder)
{
    const struct holder *holders[HOLDERS_MOST];
    const struct partition *partition = state_partition(sched->state, job->shape->partitions[0]);
    size_t count = limits_holders(sched->state, job, partition, holders);

    for (size_t i = 0; i < count; i++) {
        if (holders[i]->number == holder)
            return holders[i]->jobs ||
                   (holder < sched->planned.count && sched->planned.items[holder].jobs);
    }
    return true;
}

/* (2); returns how many were looked at. */
static unsigned release(struct sched *sched, uint32_t holder)
{
    struct limited *limited = map_get_num(&sched->limited, holder);
    bool fell = limited && limited->fell;
    const struct job *job = NULL;
    unsigned looked = 0;

    if (limited)
        limited->review = limited->fell = false;
    for (; looked < RELEASE_MOST; looked++) {
        struct limit_hit hit;
        limited = map_get_num(&sched->limited, holder);
        job = first_of(sched, limited, fell);
        if (!job)
            return looked;
        if (!limits_allow_any(sched->state, job, &sched->planned, &hit)) {
            if (hit.holder && hit.holder->number == holder)
                return looked + 1;
            class_limit_job(sched, job, &hit, false); /* it waits for another now */
        } else if (class_let_out(sched, job)) {
            return looked + 1; /* when it was tried, the next one */
        }
    }
    if (!is_busy(sched, job, holder))
        limited_review(sched, holder, false);
    return looked;
}

void limits_review(struct sched *sched, unsigned *budget)
{
    while (sched->review.len && *budget) {
        unsigned looked = release(sched, sched->review.items[--sched->review.len]);
        *budget -= MIN(*budget, 1 + looked / 2);
    }
}

/* ---- what the planner asks ---- */

bool limits_in_way(struct sched *sched, const struct job *job)
{
    struct limit_hit hit;

    if (!state_enforce(sched->state) || limits_allow_any(sched->state, job, &sched->planned, &hit))
        return false;
    class_limit_job(sched, job, &hit, false);
    return true;
}

bool limits_stop(const struct sched *sched, uint32_t job_id)
{
    struct limit_hit hit;

    return state_enforce(sched->state) &&
           !limits_allow_any(sched->state, state_job(sched->state, job_id), &sched->planned, &hit);
}

static void charge_parts(const struct sched *sched, const struct job *job,
                         const struct parts *parts, struct charge *out)
{
    memset(out, 0, sizeof(*out));
    for (size_t i = 0; i < parts->list.len; i++) {
        const struct chosen *part = &parts->list.items[i];
        const struct node *node = sched->hosts.items[part->host].node;
        charge_add_node(sched->state, out, part->take.cpus, part->take.mem_mb);
        for (size_t g = 0; g < node->gres_count && g < TAKE_GRES; g++) {
            if (part->take.gres[g])
                charge_add(sched->state, out, node->gres[g].name, node->gres[g].type,
                           part->take.gres[g]);
        }
    }
    charge_close(sched->state, out, job->shape, parts->need->partition);
}

bool limits_in_way_of(struct sched *sched, const struct job *job, const struct parts *parts,
                      struct limit_hit *hit)
{
    struct charge charge;

    if (!state_enforce(sched->state))
        return false;
    charge_parts(sched, job, parts, &charge);
    return !limits_allow(sched->state, job, parts->need->partition, &charge, &sched->planned, hit);
}

/* ---- (1) ---- */

struct held *limits_plan(struct sched *sched, const struct job *job, const struct parts *parts)
{
    struct held *held;

    if (!state_enforce(sched->state))
        return NULL;
    held = NEW(struct held);
    charge_parts(sched, job, parts, &held->charge);
    held->count = limits_holders(sched->state, job, parts->need->partition, held->holders);
    held->seconds = limits_seconds(job);
    tallies_add(sched->state, &sched->planned, held->holders, held->count, &held->charge,
                held->seconds, 1);
    return held;
}

void limits_unplan(struct sched *sched, struct held *held, bool started)
{
    if (!held)
        return;
    tallies_add(sched->state, &sched->planned, held->holders, held->count, &held->charge,
                held->seconds, -1);
    for (size_t i = 0; i < held->count && !started; i++) /* else core counts it now */
        limited_review(sched, held->holders[i]->number, true);
    free(held);
}

void limits_freed(struct sched *sched, const struct job *job)
{
    const struct holder *holders[HOLDERS_MOST];

    if (!map_len(&sched->limited))
        return;
    const char *partition = job->run ? job->run->partition : job->shape->partitions[0];
    size_t count =
        limits_holders(sched->state, job, state_partition(sched->state, partition), holders);
    for (size_t i = 0; i < count; i++)
        limited_review(sched, holders[i]->number, true);
}

/* ---- turns of the priorities ---- */

/* (3), and each job to its new place in the order, some in each slice. */
void limits_sweep(struct sched *sched, unsigned *budget)
{
    uint64_t turn = state_priority_turn(sched->state);

    if (sched->turn != turn) {
        sched->turn = turn;
        sched->sweep_id = priority_is_basic(sched->state) ? 0 : 1;
        map_each (entry, &sched->limited)
            limited_review(sched, (uint32_t)entry->num, true);
    }
    for (unsigned done = 0; sched->sweep_id && done < SWEEP_SLICE && *budget; done++) {
        const struct job *job = state_job_from(sched->state, sched->sweep_id);
        sched->sweep_id = job && job->id < UINT32_MAX ? job->id + 1 : 0;
        if (!job)
            break;
        const struct pend *pend = pend_find(sched, job->id);
        if (pend && pend->class && class_rank_is_old(sched, job))
            class_refresh(sched, job);
        if (done % SWEEP_PER_BUDGET == 0)
            --*budget;
    }
}

void limits_done(struct sched *sched)
{
    map_each (entry, &sched->limited) {
        line_done(&((struct limited *)entry->value)->line);
        free(entry->value);
    }
    map_done(&sched->limited);
    vec_done(&sched->review);
    tallies_done(&sched->planned);
}
