/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start_held.c - starting the jobs whose victims are gone
 */
#include "sched/plan.h"

static bool start_on_seats(struct sched *sched, const struct preempt_hold *hold,
                           struct family *family, const struct job *job, struct order over)
{
    struct booked *of = preempt_hold_parts_now(sched, hold, over);
    bool good = of && plan_job_at(sched, family, job, over, of);

    booked_free(sched, of, hold->components);
    return good;
}

/* All that it waited for has happened. */
static void start_now(struct sched *sched, struct preempt_hold *hold, const struct pending *pending,
                      const struct job *job)
{
    struct family *family = class_of(sched, pending)->family;
    struct order order = { pending->rank, job->id };
    uint32_t short_of;

    for (uint32_t i = 0; i < hold->components; i++) {
        limits_unplan(sched, hold->held[i], true); /* its own start counts instead */
        hold->held[i] = NULL;
    }
    bool good = plan_job(sched, family, job, order, &short_of) ||
                start_on_seats(sched, hold, family, job, order);
    /*
     * It is later than when the hold was made, and it ends so much later: what was promised to jobs before it
     * for just after that makes way, and is promised anew. Nobody goes in in vain.
     */
    good = good || start_on_seats(sched, hold, family, job, (struct order){ 0, job->id });
    if (!good)
        vec_push(&sched->preempt->retries,
                 (struct preempt_retry){ hold->job_id, sched->now_us + PREEMPT_RETRY_US });
}

void preempt_start_held(struct sched *sched)
{
    for (size_t i = 0; i < sched->preempt->holds.len;) {
        struct preempt_hold *hold = &sched->preempt->holds.items[i];
        const struct job *job = state_job(sched->state, hold->job_id);
        const struct pending *pending = job ? pending_find(sched, job->id) : NULL;
        uint32_t id = hold->job_id;
        bool waits = job && job_is_eligible(job) && pending;
        while (hold->gone < hold->count &&
               preempt_victim_is_gone(sched, &hold->victims[hold->gone]))
            hold->gone++;
        if (waits && (hold->gone < hold->count || hold->told < hold->named)) {
            i++;
            continue;
        }
        if (waits && pending->place == PENDING_QUEUED)
            start_now(sched, hold, pending, job);
        preempt_hold_drop(sched, id);
    }
}
