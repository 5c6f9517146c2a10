/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apply_time.c - the command that says how late it is: everything that is due happens
 */
#include <string.h>

#include "core/command/command.h"

/* One command does no more than this; core_next_due() asks for the next at once. */
enum { DUE_PER_COMMAND = 300 };

/*
 * This much of the time since the last command did not pass: the leader's clock was set, or nobody
 * led. It must end no job and forget no request: nodes count the time of jobs by themselves. A new
 * leader waits for silent nodes from the beginning, and so does its limit.
 */
void time_skipped(struct state *state, int64_t us, bool new_leader)
{
    requests_shift(state, us);
    if (new_leader)
        us += timers_silence_s(state) * US_PER_S;
    reboots_skipped(state, us);
    state->skipped_us += us; /* timers.c (4) */
}

static void pending_due(struct state *state, struct job *job, struct events *out)
{
    if (timers_deadline(job, true) <= state->time_us) {
        job_end(state, job, JOB_DEADLINE, REASON_FAIL_DEADLINE, state->time_us, NULL, out);
        return;
    }
    if (backoff_due(job) <= state->time_us) {
        backoff_pending(state, job);
        emit_job(out, EVENT_JOB_CHANGED, job)->shape_changed = true;
    }
    if (job->deps)
        deps_review(state, job, out);
    if (job_phase(job) == PHASE_PENDING)
        job_refresh(state, job, out);
}

static bool is_unheard(const CmdTime *cmd, const struct job *job)
{
    for (size_t i = 0; i < cmd->n_unheard; i++) {
        if (strcmp(cmd->unheard[i], job->run->parts[run_manager(job->run)].name) == 0)
            return true;
    }
    return false;
}

static void running_due(struct state *state, struct job *job, const CmdTime *cmd,
                        struct events *out)
{
    bool deadline = timers_deadline(job, false) <= state->time_us;

    if (job_phase(job) == PHASE_RUNNING && timers_mail_due(job) <= state->time_us) {
        timers_mail(state, job, out);
        return;
    }
    if (!deadline && timers_preempt(job) <= state->time_us) {
        preempt_out(state, job, job->more->preempt_requeue, state->time_us, out);
        return;
    }
    /* It may have ended in time, and its node could not say so yet. */
    if (!deadline && is_unheard(cmd, job)) {
        job->run->skipped_us += LIMIT_GRACE_S * US_PER_S;
        timers_update(state, job);
        job_touch(state, job);
        return;
    }
    job_end(state, job, deadline ? JOB_DEADLINE : JOB_TIMEOUT,
            deadline ? REASON_FAIL_DEADLINE : REASON_FAIL_TIMEOUT, state->time_us, NULL, out);
    if (job_holds(job))
        emit_job(out, EVENT_JOB_ENDING, job);
}

enum err_code apply_time(struct state *state, const CmdTime *cmd, struct events *out)
{
    reservations_due(state, out);
    reboots_due(state, out);
    if (usage_due(state)) {
        accrue_turn(state, out);
        emit(out, EVENT_PRIORITY);
    }
    if (state->dep_pending.first) /* timers.c (3) */
        return ERR_OK;
    for (unsigned i = 0; i < DUE_PER_COMMAND; i++) {
        int64_t us;
        const struct timer *first = timers_first(state, &us);
        if (us > state->time_us)
            break;
        struct job *job = first->job;
        switch (job_phase(job)) {
        case PHASE_PENDING:
            pending_due(state, job, out);
            break;
        case PHASE_CONFIGURING:
        case PHASE_RUNNING:
            running_due(state, job, cmd, out);
            break;
        case PHASE_SUSPENDED:
            suspended_for_await(state, job, 0);
            job_touch(state, job);
            timers_update(state, job);
            break;
        case PHASE_ENDED:
            job_forget(state, job, out);
            break;
        default:
            timers_update(state, job);
            break;
        }
    }
    return ERR_OK;
}
