/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_life.c - what goes with each step of a job's life: arrays, dependencies, events
 */
#include "core/job/jobs.h"

#include <stdlib.h>

static bool nothing_in_the_way(const struct state *state, const struct job *job)
{
    return !job->hold && !job->deps && job_begin_us(job) <= state->time_us;
}

void job_refresh(struct state *state, struct job *job, struct events *out)
{
    if (job_phase(job) != PHASE_PENDING)
        return;
    bool may = nothing_in_the_way(state, job);
    if (may && !job->eligible_us) {
        job->eligible_us = state->time_us;
        accrue_begin(state, job);
        emit_job(out, EVENT_JOB_ELIGIBLE, job);
    } else if (!may && job->eligible_us) {
        accrue_stop(state, job);
        job->eligible_us = 0;
        emit_job(out, EVENT_JOB_WAITING, job);
    }
    timers_update(state, job);
    job_touch(state, job);
}

/* A task that was running, or was waiting to, is so no more. */
static void leave_array(struct job *job, enum job_phase was)
{
    struct array *array = job->array;

    if (!array || !job->is_task)
        return;
    if (was == PHASE_CONFIGURING || was == PHASE_RUNNING || was == PHASE_SUSPENDED)
        array->running--;
    else if (was == PHASE_PENDING || was == PHASE_REQUEUING)
        array->unstarted--;
}

static void mark_task(struct state *state, struct job *job, enum task_bits bits)
{
    uint32_t number;

    if (!job->array || !job->is_task || !array_find(job->array, job->array_task_id, &number))
        return;
    array_set(job->array, number, bits);
    job_touch(state, job_at(state, job->array->id));
}

/* Has the last of its tasks ended? Those of a cancelled record never had one of their own. */
static bool array_is_over(const struct state *state, const struct array *array)
{
    const struct job *first = array ? job_at(state, array->id) : NULL;

    return first && !array->active &&
           (!array->waiting || (job_is_meta(first) && job_phase(first) == PHASE_ENDED));
}

static void now_ended(struct state *state, struct job *job, struct events *out)
{
    mark_task(state, job, job->state == JOB_COMPLETED ? TASK_OK : TASK_FAILED);
    struct event *event = emit_job(out, EVENT_JOB_CLEAN, job);
    event->end_state = job->state;
    event->array_last = array_is_over(state, job->array);
    deps_notify(state, job);
    timers_update(state, job);
}

/* The components of a heterogeneous job end together and are requeued together. */
static struct job *component(const struct state *state, const struct job *job, uint32_t offset)
{
    if (!job->more || offset >= job->more->het_count || offset == job->more->het_offset)
        return NULL;
    return job_at(state, job->more->het_job_id + offset);
}

static void end_others(struct state *state, const struct job *job, struct events *out)
{
    for (uint32_t i = 0; job->more && i < job->more->het_count; i++) {
        struct job *other = component(state, job, i);
        if (!other || !job_can(other, JOB_ON_EXIT))
            continue;
        bool told = job_phase(other) == PHASE_REQUEUING;
        job_end(state, other, job->state, job->reason, job->end_us, NULL, out);
        if (job_holds(other) && !told)
            emit_job(out, EVENT_JOB_ENDING, other);
    }
}

static void requeue_others(struct state *state, const struct job *job, JobState ended_as,
                           int64_t end_us, struct events *out)
{
    for (uint32_t i = 0; job->more && i < job->more->het_count; i++) {
        struct job *other = component(state, job, i);
        if (!other || !job_can(other, JOB_ON_REQUEUE))
            continue;
        bool told = job_phase(other) == PHASE_COMPLETING;
        backoff_share(job, other);
        job_requeue(state, other, ended_as, job->hold,
                    job->flags & (JOB_FLAG_REQUEUE_HOLD | JOB_FLAG_SPECIAL_EXIT), job->reason,
                    end_us, out);
        if (job_holds(other) && !told)
            emit_job(out, EVENT_JOB_ENDING, other);
    }
}

/* It runs no more, so nobody need wait for it or let it go on. */
static void no_turns(struct state *state, struct job *job)
{
    suspended_for_drop(state, job);
    gang_drop(state, job);
    job->run->gang = false;
}

bool job_end_alone(struct state *state, struct job *job, JobState end_state, unsigned reason,
                   int64_t end_us, const Usage *usage, struct events *out)
{
    enum job_phase was = job_phase(job);

    if (!job_move(state, job, JOB_ON_EXIT, end_state))
        return false;
    site_hooks_end(state, job);
    if (was == PHASE_RUNNING || was == PHASE_CONFIGURING)
        limits_refund(state, job, state->time_us - end_us);
    job_name_unlink(state, job);
    if (job->deps) {
        deps_unregister(state, job);
        deps_free(job->deps);
        job->deps = NULL;
    }
    leave_array(job, was);
    if (was == PHASE_SUSPENDED)
        no_turns(state, job);
    if (job->more)
        job->more->preempt_end_us = 0;
    job->reason = (uint16_t)reason;
    job_say_why(job, NULL);
    job->end_us = end_us;
    job->planned_start_us = 0;
    if (was == PHASE_SUSPENDED)
        job->run->suspended_total_us += end_us - job->run->suspend_us;
    struct event *event = emit_job(out, EVENT_JOB_ENDED, job);
    event->end_state = end_state;
    event->start_us = job->run ? job->run->start_us : 0;
    event->end_us = end_us;
    event->usage = usage;
    if (was == PHASE_REQUEUING)
        deps_notify(state, job); /* it counts as started again */
    if (was == PHASE_PENDING)
        now_ended(state, job, out);
    else
        job_settle_release(state, job, out);
    return true;
}

void job_end(struct state *state, struct job *job, JobState end_state, unsigned reason,
             int64_t end_us, const Usage *usage, struct events *out)
{
    if (job_end_alone(state, job, end_state, reason, end_us, usage, out))
        end_others(state, job, out);
}

/* All nodes have released a job that was to be requeued. */
static void now_pending(struct state *state, struct job *job, struct events *out)
{
    if (job->run) {
        job_name_runs(state, job, false);
        deps_notify_name(state, job);
    }
    run_free(state, job->run);
    job->run = NULL;
    job->end_us = 0;
    job->flags &= ~(uint32_t)JOB_FLAG_REQUEUE_HOLD; /* it was to be requeued, and has been */
    backoff_pending(state, job);
    emit_job(out, EVENT_JOB_CLEAN, job)->end_state = JOB_PENDING;
    job_refresh(state, job, out);
}

void job_settle_release(struct state *state, struct job *job, struct events *out)
{
    bool waits = job->run && job->run->epilog == SITE_DUE;

    if (job_holds(job) || waits || !job_can(job, JOB_ON_RELEASED)) {
        timers_update(state, job);
        return;
    }
    job_move(state, job, JOB_ON_RELEASED, job->state);
    if (job_phase(job) == PHASE_PENDING)
        now_pending(state, job, out);
    else
        now_ended(state, job, out);
}

void job_requeue(struct state *state, struct job *job, JobState ended_as, unsigned hold,
                 uint32_t flags, unsigned reason, int64_t end_us, struct events *out)
{
    enum job_phase was = job_phase(job);

    if (!job_move(state, job, JOB_ON_REQUEUE, ended_as))
        return;
    if (was != PHASE_ENDED)
        site_hooks_end(state, job);
    leave_array(job, was);
    if (was == PHASE_SUSPENDED)
        no_turns(state, job);
    if (job->more)
        job->more->preempt_end_us = 0;
    if (job->array && job->is_task)
        job->array->unstarted++;
    if (was == PHASE_ENDED) {
        mark_task(state, job, TASK_ACTIVE);
        job_touch(state, job);
    }
    if (was == PHASE_ENDED || was == PHASE_COMPLETING)
        job_name_link(state, job);
    struct event *event = emit_job(out, EVENT_JOB_REQUEUED, job);
    event->end_state = ended_as;
    event->start_us = job->run ? job->run->start_us : 0;
    event->end_us = end_us;
    job->restarts += job->restarts < UINT16_MAX;
    job->hold = (uint8_t)hold;
    job->reason = (uint16_t)reason;
    job_say_why(job, hold && reason == REASON_HELD_USER ? "job requeued in held state" : NULL);
    job->flags |= flags;
    accrue_stop(state, job);
    job->eligible_us = 0;
    job->end_us = 0;
    deps_notify(state, job); /* who waited for its start waits again */
    if (was == PHASE_ENDED)
        now_pending(state, job, out);
    else
        job_settle_release(state, job, out);
    requeue_others(state, job, ended_as, end_us, out);
}

void job_release(struct state *state, struct job *job, struct job_part *part, struct events *out)
{
    struct node *node = part->node;

    if (!node)
        return;
    alloc_give(state, job, part);
    emit_job(out, EVENT_JOB_RELEASED, job)->node = node;
    reboot_idle(state, node, out);
}

void job_lost_node(struct state *state, struct job *job, struct job_part *part, enum job_lost how,
                   struct events *out)
{
    enum job_phase phase = job_phase(job);
    bool spared = part->left, goes_on = job_goes_on_without(job, part);

    if (spared) { /* it had been given up before */
        job_release(state, job, part, out);
        job_settle_release(state, job, out);
        return;
    }
    job_set_text(&job_more(job)->failed_node, part->name);
    job_release(state, job, part, out);
    job_touch(state, job);
    if (phase == PHASE_COMPLETING || phase == PHASE_REQUEUING) {
        job_settle_release(state, job, out);
        return;
    }
    if (goes_on) {
        spare_nodes_take(state, job, part);
        job_leave(state, job, part);
        emit_job(out, EVENT_JOB_CHANGED, job);
        return;
    }
    if ((how == JOB_NEVER_RAN && !job->beside) ||
        (how == JOB_RUNS_NOT && job_may_requeue(state, job)))
        job_requeue_without(state, job, part->name, out);
    else
        job_end(state, job, JOB_NODE_FAIL, REASON_FAIL_DOWN_NODE, state->time_us, NULL, out);
    if (job_holds(job))
        emit_job(out, EVENT_JOB_ENDING, job);
}
