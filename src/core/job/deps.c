/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deps.c - jobs that wait for other jobs
 *
 * A dependency is a list of items joined by ',' (all) or '?' (any one). An item that is fulfilled
 * is dropped, one that never can be is marked, so the list always says what is left.
 *
 * (1) An item that waits is registered under the id it names (singleton: under owner and name), so
 *     that notice of that job reach it: dep_waiters.c, dep_notify.c.
 * (2) Items only name jobs that exist. What a job has become is noted in the item before that job
 *     can be forgotten; who comes later than that does not wait for it.
 */
#include "core/job/jobs.h"

#include <stdlib.h>
#include <string.h>

static struct fate fate_of_record(const struct job *job)
{
    enum job_phase phase = job_phase(job);
    bool ended = phase == PHASE_ENDED;

    return (struct fate){
        .started = ended || (job->run && phase != PHASE_REQUEUING),
        .ended = ended,
        .ok = ended && job->state == JOB_COMPLETED,
        .start_us = job->run ? job->run->start_us : 0,
    };
}

static struct fate fate_of_array(const struct state *state, const struct array *array)
{
    const struct job *first = job_at(state, array->id);
    /* Tasks of a cancelled array record never had one of their own. */
    bool dead = first && job_is_meta(first) && job_phase(first) == PHASE_ENDED;
    uint32_t waiting = dead ? 0 : array->waiting;

    return (struct fate){
        .started = waiting == 0 && array->unstarted == 0,
        .ended = waiting == 0 && array->active == 0,
        .ok = array->ok == array->count,
        .start_us = array->last_start_us,
    };
}

static struct fate fate_of_task(const struct state *state, const struct job *first, uint32_t task)
{
    const struct array *array = first->array;
    uint32_t number;

    if (!array_find(array, task, &number))
        return (struct fate){ true, true, true, 0 };
    switch (array_task(array, number)) {
    case TASK_OK:
        return (struct fate){ true, true, true, 0 };
    case TASK_FAILED:
        return (struct fate){ true, true, false, 0 };
    case TASK_ACTIVE:
        break;
    case TASK_WAITING:
        return job_phase(first) == PHASE_ENDED ? (struct fate){ true, true, false, 0 }
                                               : (struct fate){ 0 };
    }
    if (first->is_task && first->array_task_id == task)
        return fate_of_record(first);
    const struct job *record = array_record(state, array, task);
    return record ? fate_of_record(record) : (struct fate){ true, true, true, 0 };
}

struct fate deps_fate(const struct state *state, uint32_t job_id, uint32_t task)
{
    const struct job *job = job_at(state, job_id);

    if (!job) /* (2): cannot be, but a damaged snapshot must not crash us */
        return (struct fate){ true, true, false, 0 };
    if (task != NO_TASK && job->array && job->array->id == job->id)
        return fate_of_task(state, job, task);
    if (job->array && job->array->id == job->id)
        return fate_of_array(state, job->array);
    return fate_of_record(job);
}

enum dep_verdict deps_judge(const struct dep *dep, const struct fate *fate, int64_t now_us)
{
    switch ((enum dep_type)dep->type) {
    case DEP_AFTER:
        return fate->started &&
                       (fate->ended || fate->start_us + dep->minutes * 60 * US_PER_S <= now_us)
                   ? DONE
                   : WAIT;
    case DEP_AFTER_ANY:
    case DEP_AFTER_BURST_BUFFER: /* there is no stage-out to wait for after the end */
        return fate->ended ? DONE : WAIT;
    case DEP_AFTER_CORR:
    case DEP_AFTER_OK:
        return !fate->ended ? WAIT : fate->ok ? DONE : NEVER_DONE;
    case DEP_AFTER_NOT_OK:
        return !fate->ended ? WAIT : fate->ok ? NEVER_DONE : DONE;
    case DEP_SINGLETON:
        break;
    }
    return WAIT;
}

/* As things are; what the job is still to be told says nothing yet. */
static enum dep_verdict verdict_of(struct state *state, const struct job *self,
                                   const struct dep *dep)
{
    if (dep->failed)
        return NEVER_DONE;
    if (dep->type == DEP_SINGLETON)
        return deps_singleton(state, self);
    if (deps_of_twins(self, dep) || deps_pending_notice(state, self, dep))
        return WAIT;
    uint32_t task = dep->task;
    if (dep->type == DEP_AFTER_CORR && task == NO_TASK && self->is_task)
        task = self->array_task_id;
    struct fate fate = deps_fate(state, dep->job_id, task);
    return deps_judge(dep, &fate, state->time_us);
}

bool deps_never(const struct deps *deps)
{
    size_t failed = 0;

    for (size_t i = 0; deps && i < deps->count; i++)
        failed += deps->items[i].failed;
    return deps && (deps->any ? failed == deps->count : failed > 0);
}

static bool kills(const struct state *state, const struct job *job)
{
    if (job->kill_on_invalid_dep != JOB_ASKED_NOT)
        return job->kill_on_invalid_dep == JOB_ASKED_YES;
    return state->config->kill_invalid_depend;
}

bool deps_of_twins(const struct job *job, const struct dep *dep)
{
    return dep->type == DEP_AFTER_CORR && dep->task == NO_TASK && job_is_meta(job);
}

void deps_changed(struct state *state, struct job *job, bool was_never, struct events *out)
{
    job_touch(state, job);
    if (!was_never && deps_never(job->deps))
        emit_job(out, EVENT_JOB_CHANGED, job)->dep_invalid = true;
    if (deps_never(job->deps) && kills(state, job))
        job_end(state, job, JOB_CANCELLED, REASON_DEP_INVALID, state->time_us, NULL, out);
    else
        job_refresh(state, job, out);
}

void deps_review(struct state *state, struct job *job, struct events *out)
{
    struct deps *deps = job->deps;
    size_t kept = 0;

    if (!deps || job_phase(job) != PHASE_PENDING)
        return;
    bool was_never = deps_never(deps), goes = false;
    uint8_t *verdicts = ARENA_ARRAY(&state->scratch, uint8_t, deps->count);
    for (size_t i = 0; i < deps->count && !goes; i++) {
        verdicts[i] = (uint8_t)verdict_of(state, job, &deps->items[i]);
        goes = deps->any && verdicts[i] == DONE;
    }
    if (goes)
        deps_unregister(state, job);
    else
        deps_withdraw(state, job);
    for (size_t i = 0; i < deps->count && !goes; i++) {
        if (verdicts[i] == DONE)
            continue;
        deps->items[i].failed = verdicts[i] == NEVER_DONE;
        deps->items[kept++] = deps->items[i];
    }
    deps->count = kept;
    if (kept) {
        deps_register(state, job);
    } else {
        deps_free(deps);
        job->deps = NULL;
    }
    deps_changed(state, job, was_never, out);
}

int64_t deps_due(const struct state *state, const struct job *job)
{
    int64_t due = NEVER;

    for (size_t i = 0; job->deps && i < job->deps->count; i++) {
        const struct dep *dep = &job->deps->items[i];
        if (dep->type != DEP_AFTER || !dep->minutes || dep->failed)
            continue;
        struct fate fate = deps_fate(state, dep->job_id, dep->task);
        int64_t at = fate.start_us + dep->minutes * 60 * US_PER_S;
        if (fate.started && !fate.ended)
            due = MIN(due, at);
    }
    return due;
}

/* Does the job, or one it waits for, wait for `self`? */
static bool leads_to(const struct state *state, const struct deps *deps, const struct job *self)
{
    VEC(uint32_t) stack = { 0 };
    struct map seen;
    bool found = false;

    map_init(&seen);
    for (size_t i = 0; i < deps->count; i++)
        vec_push(&stack, deps->items[i].job_id);
    while (stack.len && !found) {
        uint32_t id = stack.items[--stack.len];
        const struct job *job = id ? job_at(state, id) : NULL;
        if (!job || map_get_num(&seen, id))
            continue;
        map_put_num(&seen, id, (void *)job);
        found = job == self || (self->array && job->array == self->array);
        for (size_t i = 0; job->deps && i < job->deps->count; i++)
            vec_push(&stack, job->deps->items[i].job_id);
    }
    vec_done(&stack);
    map_done(&seen);
    return found;
}

static int bad(struct err *err, const char *text)
{
    return err_set(err, ERR_DEPENDENCY, "Job dependency problem: '%.100s'", text);
}

/*
 * Jobs that ended so long ago that nobody remembers how are no hindrance, as in Slurm: such items are
 * fulfilled. True when nothing is left to wait for.
 */
static bool drop_forgotten(const struct state *state, struct deps *deps)
{
    size_t kept = 0, before = deps->count;

    for (size_t i = 0; i < before; i++) {
        struct dep *dep = &deps->items[i];
        bool gone = dep->type != DEP_SINGLETON && !dep->failed && dep->job_id &&
                    dep->job_id < state->next_job_id && !job_at(state, dep->job_id);
        if (!gone)
            deps->items[kept++] = *dep;
    }
    deps->count = kept;
    return kept == 0 || (deps->any && kept < before);
}

/* (2) Every named job must be known, and the list must not lead back to the job itself. */
static int check_targets(const struct state *state, const struct job *self, struct deps *deps,
                         const char *text, struct err *err)
{
    for (size_t i = 0; i < deps->count; i++) {
        struct dep *dep = &deps->items[i];
        const struct job *job = job_at(state, dep->job_id);
        uint32_t number;
        if (dep->failed || (!job && dep->type != DEP_SINGLETON))
            return bad(err, text);
        if (dep->task != NO_TASK && (!job->array || job->array->id != job->id ||
                                     !array_find(job->array, dep->task, &number)))
            return bad(err, text);
        dep->array = dep->task == NO_TASK && job && job->array && job->array->id == job->id;
    }
    if (self && leads_to(state, deps, self))
        return err_set(err, ERR_CIRCULAR_DEPENDENCY, "Circular job dependency: '%.100s'", text);
    return 0;
}

int deps_parse(const struct state *state, const struct job *self, const char *text,
               struct deps **out, struct err *err)
{
    struct deps *deps = deps_read(text);

    if (!deps)
        return bad(err, text);
    if (drop_forgotten(state, deps)) {
        deps_free(deps);
        *out = NULL;
        return 0;
    }
    int code = check_targets(state, self, deps, text, err);
    if (code < 0) {
        deps_free(deps);
        return code;
    }
    *out = deps;
    return 0;
}
