/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dep_notify.c - what has become of a job is told to those who waited for it, some with each command
 *
 * A job on which a hundred thousand wait may end in one command. Its notice take the list of those who
 * wait as it is, with what the job has become, to the end of a queue; they are told from there, in
 * order of id, and go on as if they had been told at once.
 *
 * (1) Who still waits after being told goes on to the next notice of the same key, if there are some,
 *     else to those who wait now. So everybody hears everything in the order it happened, once.
 * (2) A command that brings notice tells a few when nothing was in the queue. The rest is for CmdTime,
 *     which is due at once; nothing else that is due happens before the queue is empty, so nothing
 *     is forgotten that somebody has to hear of.
 * (3) A job that a command names is told first what there is for it.
 * (4) aftercorr of an array: each task waits for its twin. A task gets its own record when its twin
 *     has ended; the array's record waits as long as it has tasks.
 */
#include <stdlib.h>
#include <string.h>

#include "core/job/jobs.h"

/* How many are told by a command that brings notice, and by a CmdTime. */
enum { TOLD_AT_ONCE = 64, TOLD_BY_TIME = 300 };
enum { ITEMS_AS_ONE = 64, TWINS_AS_ONE = 16 }; /* looked at for the cost of one that is told */

static struct wait_map *map_of(struct state *state, const struct dep_notice *notice)
{
    return notice->singleton ? &state->singletons : &state->dep_waiters;
}

void dep_notify_append(struct state *state, struct dep_notice *notice)
{
    struct dep_waiters *waiters = dep_waiters_make(map_of(state, notice), notice->key);

    if (state->dep_pending.last)
        state->dep_pending.last->next = notice;
    else
        state->dep_pending.first = notice;
    state->dep_pending.last = notice;
    state->dep_pending.count++;
    if (waiters->last)
        waiters->last->next_same = notice;
    else
        waiters->notice = notice;
    waiters->last = notice;
    dep_notify_changed(state, notice);
}

/* The first of all, so the first of its key. */
static void drop_first(struct state *state)
{
    struct dep_notice *notice = state->dep_pending.first;
    struct dep_waiters *waiters = dep_waiters_at(map_of(state, notice), notice->key);

    state->dep_pending.first = notice->next;
    if (!notice->next)
        state->dep_pending.last = NULL;
    state->dep_pending.count--;
    waiters->notice = notice->next_same;
    if (!waiters->notice)
        waiters->last = NULL;
    dep_waiters_settle(map_of(state, notice), waiters);
    state->digest -= notice->hash;
    wait_list_done(&notice->ids);
    free(notice);
}

/* ---- notice come ---- */

void deps_notify(struct state *state, const struct job *job)
{
    if (dep_waiters_len(&state->dep_waiters) || dep_waiters_len(&state->singletons))
        vec_push(&state->dep_changed, job->id);
}

static struct dep_notice *dep_notify_new(const struct state *state, uint64_t key, uint32_t job_id,
                                         uint32_t task)
{
    const struct job *job = job_at(state, job_id);
    struct dep_notice *notice = NEW(struct dep_notice);

    notice->number = state->dep_pending.last ? state->dep_pending.last->number + 1 : 1;
    notice->key = key;
    notice->task = task;
    notice->time_us = state->time_us;
    if (!job)
        return notice;
    notice->array = job->array && job->array->id == job_id;
    notice->all = deps_fate(state, job_id, NO_TASK);
    if (task != NO_TASK)
        notice->one = deps_fate(state, job_id, task);
    return notice;
}

static void post(struct state *state, uint32_t job_id, uint32_t task, bool start)
{
    uint64_t key = dep_waiters_key(job_id, start);
    struct dep_waiters *waiters = dep_waiters_at(&state->dep_waiters, key);

    if (!waiters)
        return;
    struct dep_notice *notice = dep_notify_new(state, key, job_id, task);
    bool ended = notice->all.ended || notice->one.ended || (notice->array && task == NO_TASK);
    if (!start && !ended) { /* nobody waits for what happened */
        free(notice);
        return;
    }
    notice->ids = waiters->ids;
    waiters->ids = (struct wait_list){ 0 };
    dep_notify_append(state, notice);
}

static void post_name(struct state *state, uint64_t name)
{
    const struct dep_waiters *waiters = dep_waiters_at(&state->singletons, name);

    if (!waiters || waiters->notice)
        return;
    struct dep_notice *notice = dep_notify_new(state, name, 0, NO_TASK);
    notice->singleton = true;
    dep_notify_append(state, notice);
}

void deps_notify_name(struct state *state, const struct job *job)
{
    post_name(state, job_name_hash(job->owner->uid, job_name(job)));
}

static void post_all(struct state *state)
{
    for (size_t i = 0; i < state->dep_changed.len; i++) {
        const struct job *job = job_at(state, state->dep_changed.items[i]);
        if (!job)
            continue;
        uint32_t array_id = job->array ? job->array->id : 0;
        uint32_t task = job->is_task ? job->array_task_id : NO_TASK;
        for (unsigned start = 0; start < 2; start++) {
            post(state, job->id, job->id == array_id ? task : NO_TASK, start);
            if (array_id && array_id != job->id)
                post(state, array_id, task, start);
        }
        post_name(state, job_name_hash(job->owner->uid, job_name(job)));
    }
    vec_clear(&state->dep_changed);
}

/* News for this one alone. */
static void ask_twins(struct state *state, const struct job *job, const struct dep *dep)
{
    struct dep_notice *notice = dep_notify_new(state, dep_key(dep), dep->job_id, NO_TASK);
    struct dep_waiters *waiters = dep_waiters_make(&state->dep_waiters, notice->key);

    wait_list_del(&waiters->ids, job->id);
    wait_list_add(&notice->ids, job->id);
    dep_notify_append(state, notice);
}

void deps_ask_twins(struct state *state, const struct job *job)
{
    if (job_phase(job) != PHASE_PENDING)
        return;
    for (size_t i = 0; job->deps && i < job->deps->count; i++) {
        const struct dep *dep = &job->deps->items[i];
        if (deps_of_twins(job, dep) && !dep->failed && !deps_pending_notice(state, job, dep))
            ask_twins(state, job, dep);
    }
}

/* ---- and are told ---- */

static struct fate fate_in(const struct state *state, const struct dep_notice *notice,
                           uint32_t task)
{
    if (task == NO_TASK || !notice->array)
        return notice->all;
    if (notice->task == task)
        return notice->one;
    if (notice->task != NO_TASK)
        return (struct fate){ 0 }; /* of another one */
    return deps_fate(state, (uint32_t)(notice->key >> 1), task);
}

static enum dep_verdict verdict_in(const struct state *state, const struct dep_notice *notice,
                                   const struct job *job, const struct dep *dep)
{
    uint32_t task = dep->task;

    if (dep_key(dep) != notice->key || dep->type == DEP_SINGLETON || deps_of_twins(job, dep))
        return WAIT;
    if (dep->type == DEP_AFTER_CORR && task == NO_TASK && job->is_task)
        task = job->array_task_id;
    struct fate fate = fate_in(state, notice, task);
    return deps_judge(dep, &fate, notice->time_us);
}

/* Drops and marks what is decided. True when nothing is left to wait for. */
static bool decide(const struct state *state, const struct dep_notice *notice,
                   const struct job *job, bool *waits)
{
    struct deps *deps = job->deps;
    size_t kept = 0;

    *waits = false;
    for (size_t i = 0; i < deps->count; i++) {
        struct dep *dep = &deps->items[i];
        enum dep_verdict verdict = dep->failed ? NEVER_DONE : verdict_in(state, notice, job, dep);
        if (verdict == DONE && deps->any)
            return true;
        if (verdict == DONE)
            continue;
        dep->failed = verdict == NEVER_DONE;
        *waits |= !dep->failed && dep->type != DEP_SINGLETON && dep_key(dep) == notice->key;
        deps->items[kept++] = *dep;
    }
    deps->count = kept;
    return kept == 0;
}

static unsigned tell(struct state *state, struct dep_notice *notice, struct job *job,
                     struct events *out)
{
    unsigned cost = 1 + (unsigned)(job->deps->count / ITEMS_AS_ONE);
    bool was_never = deps_never(job->deps), waits;

    wait_list_del(&notice->ids, job->id);
    if (decide(state, notice, job, &waits)) {
        deps_unregister(state, job);
        deps_free(job->deps);
        job->deps = NULL;
    } else if (waits && notice->next_same) { /* (1) */
        wait_list_add(&notice->next_same->ids, job->id);
        dep_notify_changed(state, notice->next_same);
    } else if (waits) {
        wait_list_add(&dep_waiters_make(&state->dep_waiters, notice->key)->ids, job->id);
    }
    deps_changed(state, job, was_never, out);
    dep_notify_changed(state, notice);
    return cost;
}

/* The task waits no more for its twin: it goes on by itself. */
static bool tell_twin(struct state *state, struct dep_notice *notice, struct job *meta,
                      const struct dep *dep, uint32_t number, struct events *out)
{
    struct fate fate = fate_in(state, notice, array_task_id(meta->array, number));

    if (deps_judge(dep, &fate, notice->time_us) == WAIT || !ids_left(state))
        return false;
    struct job *task = array_split(state, meta, number, out);
    if (task != meta) {
        tell(state, notice, task, out);
        deps_review(state, task, out); /* of its other twins it may have no notice */
    }
    return true;
}

/* (4) The array's record is told; true when all of its tasks have been. */
static bool tell_twins(struct state *state, struct dep_notice *notice, struct job *meta,
                       unsigned left, unsigned *cost, struct events *out)
{
    const struct dep *found = NULL;
    uint32_t number;

    for (size_t i = 0; i < meta->deps->count && !found; i++) {
        const struct dep *dep = &meta->deps->items[i];
        if (deps_of_twins(meta, dep) && dep_key(dep) == notice->key)
            found = dep;
    }
    if (!found)
        return true;
    struct dep dep = *found;
    if (notice->array && notice->task != NO_TASK) {
        if (array_find(meta->array, notice->task, &number) &&
            array_task(meta->array, number) == TASK_WAITING)
            *cost += tell_twin(state, notice, meta, &dep, number, out);
        return true;
    }
    if (notice->twin_of != meta->id) {
        notice->twin_of = meta->id;
        notice->twin = 0;
    }
    number = array_next_waiting(meta->array, notice->twin);
    for (unsigned looks = 0; number < meta->array->count && job_is_meta(meta); looks++) {
        if (*cost + looks / TWINS_AS_ONE >= left)
            break;
        *cost += tell_twin(state, notice, meta, &dep, number, out);
        number = array_next_waiting(meta->array, number + 1);
    }
    notice->twin = number;
    dep_notify_changed(state, notice);
    return number >= meta->array->count || !job_is_meta(meta);
}

/* The first one keeps the others waiting, so they are asked one after the other. */
static unsigned tell_name(struct state *state, struct dep_notice *notice, struct events *out)
{
    struct dep_waiters *waiters = dep_waiters_at(&state->singletons, notice->key);

    if (!waiters->ids.len) {
        drop_first(state);
        return 1;
    }
    struct job *job = job_at(state, wait_list_at(&waiters->ids, 0));
    bool was_never = deps_never(job->deps);
    if (deps_singleton(state, job) == WAIT) {
        drop_first(state);
        return 1;
    }
    struct deps *deps = job->deps;
    size_t kept = 0;
    for (size_t i = 0; i < deps->count; i++) {
        if (deps->items[i].type != DEP_SINGLETON)
            deps->items[kept++] = deps->items[i];
    }
    wait_list_del(&waiters->ids, job->id);
    bool any = deps->any && kept < deps->count;
    deps->count = kept;
    if (any || kept == 0) {
        deps_unregister(state, job);
        deps_free(deps);
        job->deps = NULL;
    }
    deps_changed(state, job, was_never, out);
    return 1;
}

/* One of those who wait for the first notice; how much was done. */
static unsigned tell_next(struct state *state, unsigned left, struct events *out)
{
    struct dep_notice *notice = state->dep_pending.first;
    unsigned cost = 0;

    if (notice->singleton)
        return tell_name(state, notice, out);
    if (notice->ids.len) {
        struct job *job = job_at(state, wait_list_at(&notice->ids, 0));
        bool meta = job_is_meta(job);
        if (meta && !tell_twins(state, notice, job, left, &cost, out))
            return MAX(cost, left);
        cost += tell(state, notice, job, out);
        if (meta && !job_is_meta(job))
            deps_review(state, job, out);
    }
    if (!notice->ids.len)
        drop_first(state);
    return MAX(cost, 1);
}

void deps_settle(struct state *state, bool time, struct events *out)
{
    bool behind = state->dep_pending.first && state->dep_pending.first->time_us < state->time_us;
    unsigned left = time ? TOLD_BY_TIME : behind ? 0 : TOLD_AT_ONCE; /* (2) */

    if (state->notify_most && left)
        left = state->notify_most;
    post_all(state);
    while (left && state->dep_pending.first) {
        unsigned cost = tell_next(state, left, out);
        left -= MIN(left, cost);
        post_all(state);
    }
}

/* Of the notice that the job has not been told, the first; none that its tasks must hear first. */
static struct dep_notice *first_untold(const struct state *state, const struct job *job)
{
    struct dep_notice *first = NULL;

    for (size_t i = 0; job->deps && i < job->deps->count; i++) {
        const struct dep *dep = &job->deps->items[i];
        struct dep_notice *notice = deps_pending_notice(state, job, dep);
        if (notice && deps_of_twins(job, dep))
            return NULL;
        if (notice && (!first || notice->number < first->number))
            first = notice;
    }
    return first;
}

void deps_catch_up(struct state *state, struct job *job, struct events *out)
{
    struct dep_notice *notice;
    bool told = false;

    while (state->dep_pending.first && job_phase(job) == PHASE_PENDING &&
           (notice = first_untold(state, job))) {
        tell(state, notice, job, out);
        told = true;
    }
    if (told)
        post_all(state); /* it may have ended, and be requeued now */
}

bool deps_notify_pending(const struct state *state, const struct job *job)
{
    for (unsigned start = 0; start < 2; start++) {
        const struct dep_waiters *waiters =
            dep_waiters_at(&state->dep_waiters, dep_waiters_key(job->id, start));
        if (waiters && waiters->notice)
            return true;
    }
    return false;
}
