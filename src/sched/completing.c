/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completing.c - jobs that have ended and still hold nodes: nobody starts for a while
 *
 * With jobs.complete_wait the next job is not given the first nodes that become free of a wide one, but
 * chooses when all of them are, or when the time is over.
 *
 * (1) The list is in the order in which jobs ended. One that has gone is taken off when it is the first: as
 *     long as any is there, everybody waits anyway.
 */
#include "sched/plan.h"

#define S INT64_C(1000000)

void completing_add(struct sched *sched, const struct job *job, int64_t end_us)
{
    uint32_t wait_s = state_config(sched->state)->complete_wait_s;

    if (wait_s && job->flags & JOB_FLAG_COMPLETING)
        vec_push(&sched->plan->completing,
                 (struct completing){ job->id, job->attempt, end_us + wait_s * S });
}

int64_t completing_until(struct sched *sched)
{
    size_t gone = 0;

    for (; gone < sched->plan->completing.len; gone++) { /* (1) */
        const struct completing *at = &sched->plan->completing.items[gone];
        const struct job *job = state_job(sched->state, at->job_id);
        if (job && job->attempt == at->attempt && job->flags & JOB_FLAG_COMPLETING &&
            at->until_us > sched->now_us)
            break;
    }
    for (size_t i = gone; gone && i < sched->plan->completing.len; i++)
        sched->plan->completing.items[i - gone] = sched->plan->completing.items[i];
    sched->plan->completing.len -= gone;
    return sched->plan->completing.len ? sched->plan->completing.items[0].until_us : 0;
}
