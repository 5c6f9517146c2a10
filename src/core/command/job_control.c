/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_control.c - cancel, requeue, suspend, resume
 */
#include "core/command/command.h"

#include <string.h>

static const struct job_control_code {
    enum job_phase phase;
    enum err_code code;
} why_no_cancel[] = {
    { PHASE_COMPLETING, ERR_ALREADY_DONE },
    { PHASE_ENDED, ERR_ALREADY_DONE },
};

static enum err_code why_not(const struct job_control_code *rows, size_t count,
                             const struct job *job, enum err_code otherwise)
{
    for (size_t i = 0; i < count; i++) {
        if (rows[i].phase == job_phase(job))
            return rows[i].code;
    }
    return otherwise;
}

static enum err_code signal_one(struct job *job, const CmdCancel *cmd, struct events *out)
{
    enum job_phase phase = job_phase(job);

    if (phase != PHASE_RUNNING && phase != PHASE_CONFIGURING && phase != PHASE_SUSPENDED)
        return phase == PHASE_PENDING ? ERR_JOB_PENDING : ERR_ALREADY_DONE;
    struct event *event = emit_job(out, EVENT_JOB_SIGNAL, job);
    event->signal = cmd->signal;
    event->batch_only = cmd->batch_only;
    event->full = cmd->full;
    return ERR_OK;
}

static enum err_code cancel_one(struct state *state, struct job *job, const void *arg,
                                struct err *err, struct events *out)
{
    const CmdCancel *cmd = arg;
    JobState end = cmd->has_state && cmd->state > JOB_SUSPENDED ? cmd->state : JOB_CANCELLED;

    if (cmd->signal)
        return signal_one(job, cmd, out);
    if (!job_can(job, JOB_ON_EXIT))
        return why_not(why_no_cancel, ARRAY_LEN(why_no_cancel), job, ERR_ALREADY_DONE);
    bool alone = cmd->component && job->more && job->more->het_offset;
    if (alone && (job_phase(job) == PHASE_PENDING || job_phase(job) == PHASE_REQUEUING))
        return ERR_NOT_WHOLE_HET_JOB;
    if (end == JOB_PREEMPTED)
        job_more(job)->preempt_us = state->time_us;
    bool told = job_phase(job) == PHASE_REQUEUING; /* its nodes know already */
    if (alone)
        job_end_alone(state, job, end, cmd->reason, state->time_us, NULL, out);
    else
        job_end(state, job, end, cmd->reason, state->time_us, NULL, out);
    if (job_holds(job) && !told)
        emit_job(out, EVENT_JOB_ENDING, job);
    return ERR_OK;
}

/* Waiting tasks that are cancelled need no record: their bits say it. */
static enum err_code cancel_tasks(struct state *state, struct job *meta, const struct bitset *tasks,
                                  const void *arg, struct err *err, struct events *out)
{
    const CmdCancel *cmd = arg;
    struct str text = { 0 };

    if (cmd->signal)
        return ERR_JOB_PENDING;
    if (job_phase(meta) != PHASE_PENDING)
        return ERR_ALREADY_DONE;
    job_count(state, meta, -1);
    bitset_each (number, tasks)
        array_set(meta->array, (uint32_t)number, TASK_FAILED);
    job_count(state, meta, 1);
    job_touch(state, meta);
    array_format_set(meta->array, tasks, &text);
    emit_job(out, EVENT_TASKS_CANCELLED, meta)->text = arena_strdup(&out->arena, str_text(&text));
    str_done(&text);
    deps_notify(state, meta);
    return ERR_OK;
}

enum err_code apply_cancel(struct state *state, const CmdCancel *cmd, struct err *err,
                           struct events *out)
{
    struct job_select_act act = { .each = cancel_one, .tasks = cancel_tasks, .arg = cmd };

    return job_select_each(state, cmd->jobs, &act, err, out);
}

static void begin_at(struct state *state, const struct job *job, int64_t begin_us,
                     struct events *out)
{
    CmdUpdateJob update = CMD_UPDATE_JOB__INIT;
    JobSelect jobs = JOB_SELECT__INIT;
    JobSpec change = JOB_SPEC__INIT;
    uint32_t id = job->id;
    struct err err = { 0 };

    jobs.n_job_ids = 1;
    jobs.job_ids = &id;
    change.has_begin_us = true;
    change.begin_us = begin_us;
    update.jobs = &jobs;
    update.change = &change;
    update.has_by_admin = update.by_admin = true;
    apply_update_job(state, &update, &err, out);
}

static enum err_code requeue_one(struct state *state, struct job *job, const void *arg,
                                 struct err *err, struct events *out)
{
    const CmdRequeue *cmd = arg;
    bool hold = cmd->hold || cmd->special_exit;
    JobState ended_as = cmd->has_state ? cmd->state : JOB_CANCELLED;

    if (!job_has_script(state, job))
        return ERR_BATCH_ONLY;
    if (cmd->has_attempt && (cmd->attempt != job->attempt || !job_has_ended(job)))
        return ERR_STALE_ATTEMPT;
    if (cmd->incomplete_only && job_has_ended(job))
        return ERR_JOB_FINISHED;
    /* Who waits for its tasks has to hear first that there are none. */
    if (job_is_meta(job) && deps_notify_pending(state, job))
        return ERR_TRANSITION;
    if (!job_can(job, JOB_ON_REQUEUE))
        return job_phase(job) == PHASE_REQUEUING ? ERR_TRANSITION : ERR_JOB_PENDING;
    if (!job_may_requeue(state, job))
        return ERR_DISABLED;
    bool told = job_phase(job) == PHASE_COMPLETING;
    job_requeue(state, job, ended_as, hold ? 1 : 0,
                cmd->special_exit ? JOB_FLAG_SPECIAL_EXIT
                : cmd->hold       ? JOB_FLAG_REQUEUE_HOLD
                                  : 0,
                cmd->has_reason ? cmd->reason
                : hold          ? REASON_HELD_USER
                                : REASON_NONE,
                state->time_us, out);
    if (job_holds(job) && !told)
        emit_job(out, EVENT_JOB_ENDING, job);
    if (cmd->has_begin_us)
        begin_at(state, job, cmd->begin_us, out);
    return ERR_OK;
}

enum err_code apply_requeue(struct state *state, const CmdRequeue *cmd, struct err *err,
                            struct events *out)
{
    struct job_select_act act = { .each = requeue_one, .arg = cmd };

    return job_select_each(state, cmd->jobs, &act, err, out);
}

static enum err_code suspend_one(struct state *state, struct job *job, const void *arg,
                                 struct err *err, struct events *out)
{
    static const struct job_control_code not_running[] = {
        { PHASE_PENDING, ERR_JOB_PENDING },     { PHASE_CONFIGURING, ERR_TRANSITION },
        { PHASE_SUSPENDED, ERR_JOB_SUSPENDED }, { PHASE_REQUEUING, ERR_JOB_PENDING },
        { PHASE_COMPLETING, ERR_ALREADY_DONE }, { PHASE_ENDED, ERR_JOB_FINISHED },
    };
    const CmdSuspend *cmd = arg;

    if (job->beside)
        return ERR_TRANSITION;
    if (cmd->resume) {
        if (job_can(job, JOB_ON_RESUME) && job->run->lent)
            return preempt_resume(state, job, out) ? ERR_OK : ERR_NODES_BUSY;
        if (job_can(job, JOB_ON_RESUME) && job->run->gang)
            return ERR_NODES_BUSY; /* its turn comes by itself */
        if (!job_move(state, job, JOB_ON_RESUME, 0))
            return ERR_JOB_NOT_SUSPENDED;
        job->run->suspended_total_us += state->time_us - job->run->suspend_us;
    } else if (job_can(job, JOB_ON_RESUME) && job->run->gang) {
        job->run->gang = false; /* until somebody resumes it, whoever's turn it is */
        gang_drop(state, job);
        job_touch(state, job);
        return ERR_OK;
    } else {
        if (!job_move(state, job, JOB_ON_SUSPEND, 0))
            return why_not(not_running, ARRAY_LEN(not_running), job, ERR_JOB_NOT_RUNNING);
        job->run->suspend_us = state->time_us;
    }
    timers_update(state, job);
    if (cmd->resume)
        gang_runs(state, job, out);
    emit_job(out, cmd->resume ? EVENT_JOB_RESUMED : EVENT_JOB_SUSPENDED, job);
    return ERR_OK;
}

enum err_code apply_suspend(struct state *state, const CmdSuspend *cmd, struct err *err,
                            struct events *out)
{
    struct job_select_act act = { .each = suspend_one, .arg = cmd };

    return job_select_each(state, cmd->jobs, &act, err, out);
}
