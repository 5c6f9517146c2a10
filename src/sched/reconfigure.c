/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconfigure.c - a new configuration, of which only a part is another
 *
 * core says what is not as it was (enum changed). Only what depends on that is worked out anew, and
 * planning goes on. What jobs run is not touched; starts that are under way stay so.
 *
 * (1) Each waiting job goes to where it belongs now, some in each slice. One whose turn has not come
 *     is looked at before it is tried. Where partitions are others nothing starts until all have had
 *     their turn: the first of those that may start now may be the last to be looked at.
 * (2) Other limits, or others who count: all limit queues are looked at, with new counters (limit_counter.c).
 * (3) Other partitions or nodes: what is promised and held there is given up, and promised again.
 * (4) Other nodes, or of other numbers (renumber.c): hosts are read again, in slices; and what shapes need of nodes, with other
 *     partitions too. Nothing is planned until that is done, which takes some hundredths of a second.
 */
#include "core/preempt.h"
#include "sched/plan.h"

/* (3) */
static void give_up(struct sched *sched)
{
    while (sched->preempt->holds.len)
        preempt_hold_drop(sched, sched->preempt->holds.items[sched->preempt->holds.len - 1].job_id);
    while (sched->book->list.len)
        book_drop(sched, sched->book->list.items[sched->book->list.len - 1].job_id);
}

/* (2): what starts in flight and preempt holds count is taken out of all counters, or counted again. */
static void count_again(struct sched *sched, bool counts)
{
    map_each (entry, &sched->limit->inflights) {
        const struct inflight_list *inflights = entry->value;
        const struct job *job = state_job(sched->state, (uint32_t)entry->num);
        for (struct inflight *inflight = inflights->first; inflight; inflight = inflight->next)
            limits_count_again(sched, inflight->held, job,
                               inflight->count ? inflight->claims[0].partition : 0, counts);
    }
    vec_each (struct preempt_hold, hold, &sched->preempt->holds) {
        for (uint32_t i = 0; i < hold->components; i++)
            limits_count_again(sched, hold->held[i], state_job(sched->state, hold->job_id + i),
                               hold->partition_queues[i], counts);
    }
}

static void renew_limits(struct sched *sched)
{
    count_again(sched, false);
    count_again(sched, true);
    limits_renew(sched);
}

static void partitions_changed(struct sched *sched)
{
    for (size_t i = 0; i < sched->queue->partition_queues.len; i++) {
        const PartitionSpec *spec = state_partition_at(sched->state, i)->spec;
        sched->queue->partition_queues.items[i].most = bookings_of(sched, i);
        partition_queue_needs_booking(sched, (uint32_t)i, NO_ORDER);
        partition_queue_needs_booking(sched, (uint32_t)i, ORDER_LAST);
        sched->hosts->exclusive = sched->hosts->exclusive || spec->exclusive_user;
    }
    sched->queue->sweep_id = 1; /* tiers */
    if (sched->hosts->exclusive)
        rebuild_nodes(sched);
}

bool reconfigure_follow(struct sched *sched, unsigned changed)
{
    if (changed & CHANGED_ALL || sched->preempt->on != preempt_is_on(sched->state))
        return false;
    if (changed & CHANGED_NUMBERS && sched->rebuild.left & (READ_HOSTS | READ_ROOM))
        return false; /* that begins again */
    if (!changed)
        return true;
    for (unsigned i = 0; i < SEARCHES; i++)
        search_end(sched, &sched->book->searches[i]);
    answer_done(sched);
    forecasts_done(sched);
    if (changed & (CHANGED_NODES | CHANGED_NUMBERS))
        rebuild_nodes(sched); /* (4); first: nodes that are no more may not be looked at */
    if (changed & (CHANGED_ACCOUNTS | CHANGED_PARTITIONS))
        renew_limits(sched); /* (2); first: some of those who counted are no more */
    if (changed & (CHANGED_PARTITIONS | CHANGED_NODES | CHANGED_NUMBERS)) {
        give_up(sched);
        rebuild_needs(sched);
    }
    if (changed & CHANGED_NUMBERS)
        hosts_renumber(sched);
    preempts_renew(sched);
    if (changed & CHANGED_PARTITIONS)
        partitions_changed(sched);
    sched->plan->reclass_first = sched->plan->reclass_first || changed & CHANGED_PARTITIONS;
    sched->plan->refused_until_us = 0;
    sched->epoch++;
    sched->limit->stop_changed = true;
    families_mark_ready(sched);
    sched->queue->reclass = true; /* (1) */
    return true;
}

/* ---- (1) ---- */

static bool is_het(const struct job *job)
{
    return job->more && job->more->het_count && job->more->het_offset == 0;
}

/* True when something was to be done. */
static bool put_right(struct sched *sched, const struct job *job)
{
    if (job->run)
        preempt_again(sched, job);
    if (pending_is_right(sched, job) && !(is_het(job) && pending_find(sched, job->id)))
        return false;
    if (is_het(job)) /* the partitions of its other components count too */
        pending_remove(sched, job->id);
    pending_refresh(sched, job);
    return true;
}

void reconfigure_continue(struct sched *sched, unsigned *budget)
{
    unsigned half = sched->plan->reclass_first ? *budget : *budget / 2 + 1, left = half;

    if (sched->queue->reclass)
        sched->plan->reclass_id = 1;
    sched->queue->reclass = false;
    for (unsigned done = 0; sched->plan->reclass_id && left; done++) {
        const struct job *job = state_job_from(sched->state, sched->plan->reclass_id);
        sched->plan->reclass_id = job ? (uint64_t)job->id + 1 : 0;
        uint64_t cost = job ? shape_cost(sched, job->shape) : 0;
        bool moved = job && put_right(sched, job);
        budget_take(&left, cost + (moved ? COST_TRY : done % JOBS_PER_COST == 0));
    }
    *budget = MAX(*budget - MIN(*budget, half - left), 1);
    sched->plan->reclass_first = sched->plan->reclass_first && sched->plan->reclass_id;
}

bool reconfigure_moves(struct sched *sched, uint32_t job_id)
{
    const struct job *job;

    if (!sched->queue->reclass && (!sched->plan->reclass_id || job_id < sched->plan->reclass_id))
        return false;
    job = state_job(sched->state, job_id);
    if (!job || pending_is_right(sched, job))
        return false;
    pending_refresh(sched, job);
    return true;
}
