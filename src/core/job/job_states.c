/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_states.c - the life of a job: what can follow what
 *
 * A phase is a pair of Slurm's base state and flags. This is the only file that writes them.
 */
#include "core/job/jobs.h"

static const struct job_edge {
    enum job_cause on;
    enum job_phase from, to;
} job_edges[] = {
    { JOB_ON_START, PHASE_PENDING, PHASE_RUNNING },
    { JOB_ON_START_SLOW, PHASE_PENDING, PHASE_CONFIGURING },
    { JOB_ON_READY, PHASE_CONFIGURING, PHASE_RUNNING },
    { JOB_ON_EXIT, PHASE_PENDING, PHASE_ENDED },
    { JOB_ON_EXIT, PHASE_CONFIGURING, PHASE_COMPLETING },
    { JOB_ON_EXIT, PHASE_RUNNING, PHASE_COMPLETING },
    { JOB_ON_EXIT, PHASE_SUSPENDED, PHASE_COMPLETING },
    { JOB_ON_EXIT, PHASE_REQUEUING, PHASE_COMPLETING },
    { JOB_ON_REQUEUE, PHASE_CONFIGURING, PHASE_REQUEUING },
    { JOB_ON_REQUEUE, PHASE_RUNNING, PHASE_REQUEUING },
    { JOB_ON_REQUEUE, PHASE_SUSPENDED, PHASE_REQUEUING },
    { JOB_ON_REQUEUE, PHASE_COMPLETING, PHASE_REQUEUING },
    { JOB_ON_REQUEUE, PHASE_ENDED, PHASE_PENDING },
    { JOB_ON_RELEASED, PHASE_COMPLETING, PHASE_ENDED },
    { JOB_ON_RELEASED, PHASE_REQUEUING, PHASE_PENDING },
    { JOB_ON_SUSPEND, PHASE_RUNNING, PHASE_SUSPENDED },
    { JOB_ON_RESUME, PHASE_SUSPENDED, PHASE_RUNNING },
};

/* How each phase is written; an end state is kept as it is. */
static const struct {
    int state; /* -1: the end state */
    uint32_t set, clear;
} looks[] = {
    [PHASE_PENDING] = { JOB_PENDING, 0,
                        JOB_FLAG_COMPLETING | JOB_FLAG_CONFIGURING | JOB_FLAG_REQUEUE },
    [PHASE_CONFIGURING] = { JOB_RUNNING, JOB_FLAG_CONFIGURING,
                            JOB_FLAG_COMPLETING | JOB_FLAG_REQUEUE | JOB_FLAG_LAUNCH_FAILED },
    [PHASE_RUNNING] = { JOB_RUNNING, 0,
                        JOB_FLAG_COMPLETING | JOB_FLAG_CONFIGURING | JOB_FLAG_REQUEUE |
                            JOB_FLAG_LAUNCH_FAILED },
    [PHASE_SUSPENDED] = { JOB_SUSPENDED, 0, 0 },
    [PHASE_COMPLETING] = { -1, JOB_FLAG_COMPLETING, JOB_FLAG_CONFIGURING | JOB_FLAG_REQUEUE },
    [PHASE_REQUEUING] = { JOB_PENDING, JOB_FLAG_COMPLETING | JOB_FLAG_REQUEUE,
                          JOB_FLAG_CONFIGURING },
    [PHASE_ENDED] = { -1, 0, JOB_FLAG_COMPLETING | JOB_FLAG_CONFIGURING | JOB_FLAG_REQUEUE },
};

static const struct job_edge *edge_of(const struct job *job, enum job_cause cause)
{
    enum job_phase from = job_phase(job);

    for (size_t i = 0; i < ARRAY_LEN(job_edges); i++) {
        if (job_edges[i].on == cause && job_edges[i].from == from)
            return &job_edges[i];
    }
    return NULL;
}

bool job_can(const struct job *job, enum job_cause cause)
{
    return edge_of(job, cause) != NULL;
}

bool job_move(struct state *state, struct job *job, enum job_cause cause, JobState end_state)
{
    const struct job_edge *edge = edge_of(job, cause);

    if (!edge)
        return false;
    job_count(state, job, -1);
    if (looks[edge->to].state >= 0)
        job->state = (uint8_t)looks[edge->to].state;
    else if (cause == JOB_ON_EXIT)
        job->state = (uint8_t)end_state;
    job->flags = (job->flags & ~looks[edge->to].clear) | looks[edge->to].set;
    job_count(state, job, 1);
    job_touch(state, job);
    return true;
}
