/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.c - the life of records: made, found, shared, forgotten
 */
#include "core/job/jobs.h"

#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "wire/pb.h"

JobSpec *job_spec_unpack(const struct job *job)
{
    return job_spec__unpack(NULL, job->spec->len, job->spec->data);
}

static uint8_t asked(bool has, bool value)
{
    return !has ? JOB_ASKED_NOT : value ? JOB_ASKED_YES : JOB_ASKED_NO;
}

void job_take_spec(struct state *state, struct job *job, const JobSpec *spec, struct packed *packed)
{
    const char *account = words_take(&state->words, spec->account);
    const char *qos = words_take(&state->words, spec->qos);

    words_drop(&state->words, job->account);
    words_drop(&state->words, job->qos);
    packed_drop(job->spec);
    job->account = account;
    job->qos = qos;
    job->spec = packed;
    job->batch = spec->batch;
    job->no_kill = spec->no_kill;
    job->beside = spec->no_allocate;
    job->requeue = asked(spec->has_requeue, spec->requeue) & 3;
    job->kill_on_invalid_dep = asked(spec->has_kill_on_invalid_dep, spec->kill_on_invalid_dep) & 3;
    job->nice = spec->nice;
    job->direct_priority = spec->has_priority && spec->priority > 0;
    job->begin_us = spec->begin_us;
    if (spec->deadline_us || job->more)
        job_more(job)->deadline_us = spec->deadline_us;
    if (spec->time_min_s || job->more)
        job_more(job)->time_min_s = (uint32_t)spec->time_min_s;
    if (spec->mail_type & MAIL_TIMES || job->more)
        job_more(job)->mail_times = spec->mail_type & MAIL_TIMES;
}

static size_t weight(const struct job *job)
{
    return job_is_meta(job) ? job->array->waiting : 1;
}

void job_count(struct state *state, const struct job *job, int sign)
{
    size_t *count = &state->by_phase[job_phase(job)];

    MUST(sign > 0 || *count >= weight(job));
    *count = sign > 0 ? *count + weight(job) : *count - weight(job);
    if (job->shape->reservation && job_phase(job) == PHASE_PENDING) {
        if (sign > 0)
            map_put_num(&state->resv_jobs, job->id, state);
        else
            map_del_num(&state->resv_jobs, job->id);
    }
    limits_count(state, job, sign, weight(job));
}

void job_link(struct state *state, struct job *job)
{
    index_put(&state->jobs, job);
    state->records++;
    if (job->array && job->id != job->array->id)
        array_index_put(job->array, job);
    if (!job_has_ended(job))
        job_name_link(state, job);
    if (job->deps)
        deps_register(state, job);
    job_count(state, job, 1);
    accrue_wait(state, job);
    timers_update(state, job);
    job_touch(state, job);
}

void job_free(struct state *state, struct job *job, struct events *out)
{
    if (job->array && job->id == job->array->id)
        array_free(job->array);
    payload_drop(state, job->payload, out);
    billing_group_drop(state, job->billing_group);
    owner_drop(state, job->owner);
    shape_drop(state, job->shape);
    words_drop(&state->words, job->account);
    words_drop(&state->words, job->qos);
    packed_drop(job->spec);
    run_free(state, job->run);
    deps_free(job->deps);
    job_more_free(job->more);
    free(job);
}

void job_forget(struct state *state, struct job *job, struct events *out)
{
    uint32_t id = job->id;
    struct array *array = job->array && job->array->id != id ? job->array : NULL;

    changes_forgot(&state->changes, id, state->index);
    job_count(state, job, -1);
    timers_remove(state, job);
    if (!job_has_ended(job))
        job_name_unlink(state, job);
    if (job->deps)
        deps_unregister(state, job);
    if (job->touched) {
        for (size_t i = 0; i < state->touched.len; i++) {
            if (state->touched.items[i] == job) {
                vec_remove(&state->touched, i);
                break;
            }
        }
    }
    state->digest -= job->hash;
    if (array)
        array_index_del(array, job);
    index_del(&state->jobs, id);
    state->records--;
    job_free(state, job, out);
    emit(out, EVENT_JOB_FORGOTTEN)->job_id = id;
    /* The record with the array's id outlives the others; perhaps it was waiting for this. */
    if (array && array->records == 0) {
        struct job *first = job_at(state, array->id);
        if (first)
            timers_update(state, first);
    }
}

/* A task's record begins as a copy of what the array's record says. */
static struct job *task_from(struct state *state, const struct job *meta, uint32_t number)
{
    struct job *task = NEW(struct job);

    *task = *meta;
    task->id = state->next_job_id++;
    task->is_task = true;
    task->array_task_id = array_task_id(meta->array, number);
    task->touched = false;
    task->name_next = task->name_prev = task->due_at = 0;
    task->hash = 0;
    task->planned_start_us = 0;
    owner_share(task->owner);
    billing_group_record(task->billing_group)->head.refs++;
    task->shape->head.refs++;
    task->spec->refs++;
    if (task->payload)
        ((struct payload *)(uintptr_t)task->payload)->refs++;
    task->account = words_take(&state->words, meta->account);
    task->qos = words_take(&state->words, meta->qos);
    task->deps = deps_copy(meta->deps);
    task->more = job_more_copy(meta->more);
    task->timer_kind = TIMER_FIXED;
    return task;
}

struct job *array_split(struct state *state, struct job *meta, uint32_t number, struct events *out)
{
    struct array *array = meta->array;
    struct job *task = meta;

    MUST(array && array->waiting > 0);
    job_count(state, meta, -1);
    bool last = array->waiting == 1;
    array_set(array, number, TASK_ACTIVE);
    array->unstarted++;
    if (last) {
        meta->is_task = true;
        meta->array_task_id = array_task_id(array, number);
    }
    job_count(state, meta, 1);
    job_touch(state, meta);
    if (!last) {
        task = task_from(state, meta, number);
        job_link(state, task);
        deps_follow(state, task, meta);
    }
    struct event *event = emit_job(out, EVENT_TASK_SPLIT, task);
    event->array_id = array->id;
    event->task = task->array_task_id;
    return task;
}

void admitted_done(struct admitted *admitted)
{
    shape_free(admitted->shape);
    array_free(admitted->array);
    deps_free(admitted->deps);
    *admitted = (struct admitted){ 0 };
}
