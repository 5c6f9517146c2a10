/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_phase.c - what phase a job is in, and what follows from that
 */
#include "core/record/record.h"

enum job_phase job_phase(const struct job *job)
{
    bool completing = job->flags & JOB_FLAG_COMPLETING;

    switch (job->state) {
    case JOB_PENDING:
        return completing ? PHASE_REQUEUING : PHASE_PENDING;
    case JOB_RUNNING:
        return job->flags & JOB_FLAG_CONFIGURING ? PHASE_CONFIGURING : PHASE_RUNNING;
    case JOB_SUSPENDED:
        return PHASE_SUSPENDED;
    default:
        return completing ? PHASE_COMPLETING : PHASE_ENDED;
    }
}

bool job_is_meta(const struct job *job)
{
    return job->array && !job->is_task;
}

bool job_has_ended(const struct job *job)
{
    return job->state > JOB_SUSPENDED;
}

bool job_holds(const struct job *job)
{
    return job->run && job->run->held > 0;
}

unsigned run_nodes(const struct job_run *run)
{
    unsigned count = 0;

    for (unsigned i = 0; i < run->count; i++)
        count += !run->parts[i].left && !run->parts[i].spare;
    return count;
}

unsigned run_manager(const struct job_run *run)
{
    for (unsigned i = 0; i < run->count; i++) {
        if (run->parts[i].node && !run->parts[i].left && !run->parts[i].spare)
            return i;
    }
    return 0;
}
