/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deps.c - jobs that wait for other jobs
 *
 * A dependency is a list of items joined by ',' (all) or '?' (any one). An item that is fulfilled
 * is dropped, one that never can be is marked, so the list always says what is left.
 *
 * (1) An item that waits is registered under the id it names (singleton: under owner and name), so
 *     that news of that job reach it. Waiters are kept in order of id.
 * (2) Items only name jobs that exist. What a job has become is noted in the item before that job
 *     can be forgotten; who comes later than that does not wait for it.
 * (3) aftercorr of an array: each task waits for its twin. A task gets its own record when its twin
 *     has ended; the array's record waits as long as it has tasks.
 */
#include "core/deps_priv.h"

#include <stdlib.h>
#include <string.h>

enum verdict { WAIT, DONE, NEVER_DONE };

/* What has become of the job that an item names. */

struct fate {
    bool started; /* all of it started, or will not any more */
    bool ended;   /* all of it */
    bool ok;      /* ended, and all of it with COMPLETED */
    int64_t start_us;
};

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

static struct fate fate_of(const struct state *state, const struct dep *dep, uint32_t task)
{
    const struct job *job = job_at(state, dep->job_id);

    if (!job) /* (2): cannot be, but a damaged snapshot must not crash us */
        return (struct fate){ true, true, false, 0 };
    if (task != NO_TASK && job->array && job->array->id == job->id)
        return fate_of_task(state, job, task);
    if (job->array && job->array->id == job->id)
        return fate_of_array(state, job->array);
    return fate_of_record(job);
}

static bool same_name(const struct job *a, const struct job *b)
{
    struct span x = job_name(a), y = job_name(b);

    return a->owner->uid == b->owner->uid && x.len == y.len && memcmp(x.ptr, y.ptr, x.len) == 0;
}

/* Jobs of the same owner and name that were there before, or run already. */
static enum verdict singleton_verdict(const struct state *state, const struct job *self)
{
    uint64_t hash = name_hash(self->owner->uid, job_name(self));

    for (const struct job *job = name_next(state, hash, NULL); job;
         job = name_next(state, hash, job)) {
        if (job == self || (self->array && job->array == self->array))
            continue;
        if ((job->id < self->id || job->run) && same_name(job, self))
            return WAIT;
    }
    return DONE;
}

static enum verdict verdict_of(const struct state *state, const struct job *self,
                               const struct dep *dep)
{
    if (dep->type == DEP_SINGLETON)
        return singleton_verdict(state, self);
    uint32_t task = dep->task;
    if (dep->type == DEP_AFTER_CORR && task == NO_TASK && self->is_task)
        task = self->array_task_id;
    struct fate fate = fate_of(state, dep, task);
    switch ((enum dep_type)dep->type) {
    case DEP_AFTER:
        return fate.started && (fate.ended ||
                                fate.start_us + dep->minutes * 60 * US_PER_S <= state->time_us)
                   ? DONE
                   : WAIT;
    case DEP_AFTER_ANY:
    case DEP_AFTER_BURST_BUFFER: /* there is no stage-out to wait for after the end */
        return fate.ended ? DONE : WAIT;
    case DEP_AFTER_CORR:
    case DEP_AFTER_OK:
        return !fate.ended ? WAIT : fate.ok ? DONE : NEVER_DONE;
    case DEP_AFTER_NOT_OK:
        return !fate.ended ? WAIT : fate.ok ? NEVER_DONE : DONE;
    case DEP_SINGLETON:
        break;
    }
    return WAIT;
}

/* Registering; (1). */

static struct waiters *waiters_of(struct map *map, uint64_t key, bool make)
{
    struct waiters *waiters = map_get_num(map, key);

    if (!waiters && make) {
        waiters = NEW(struct waiters);
        map_put_num(map, key, waiters);
    }
    return waiters;
}

static size_t place_of(const struct waiters *waiters, uint32_t id)
{
    size_t lo = 0, hi = waiters->ids.len;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (waiters->ids.items[mid] < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void add_waiter(struct map *map, uint64_t key, uint32_t id)
{
    struct waiters *waiters = waiters_of(map, key, true);
    size_t at = place_of(waiters, id);

    if (at < waiters->ids.len && waiters->ids.items[at] == id)
        return;
    vec_push(&waiters->ids, id);
    memmove(&waiters->ids.items[at + 1], &waiters->ids.items[at],
            (waiters->ids.len - 1 - at) * sizeof(id));
    waiters->ids.items[at] = id;
}

static void remove_waiter(struct map *map, uint64_t key, uint32_t id)
{
    struct waiters *waiters = waiters_of(map, key, false);

    if (!waiters)
        return;
    size_t at = place_of(waiters, id);
    if (at < waiters->ids.len && waiters->ids.items[at] == id)
        vec_remove(&waiters->ids, at);
    if (waiters->ids.len == 0) {
        map_del_num(map, key);
        vec_done(&waiters->ids);
        free(waiters);
    }
}

void deps_register(struct state *state, struct job *job)
{
    for (size_t i = 0; i < job->deps->count; i++) {
        const struct dep *dep = &job->deps->items[i];
        if (dep->type == DEP_SINGLETON)
            add_waiter(&state->singletons, name_hash(job->owner->uid, job_name(job)), job->id);
        else if (!dep->failed)
            add_waiter(&state->waiters, dep->job_id, job->id);
    }
}

void deps_unregister(struct state *state, struct job *job)
{
    for (size_t i = 0; i < job->deps->count; i++) {
        const struct dep *dep = &job->deps->items[i];
        if (dep->type == DEP_SINGLETON)
            remove_waiter(&state->singletons, name_hash(job->owner->uid, job_name(job)), job->id);
        else
            remove_waiter(&state->waiters, dep->job_id, job->id);
    }
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

static bool waits_for_twins(const struct job *job, const struct dep *dep)
{
    return dep->type == DEP_AFTER_CORR && dep->task == NO_TASK && job_is_meta(job);
}

/* Brings every item up to date. True when nothing is left to wait for. */
static bool review_items(const struct state *state, const struct job *job, struct deps *deps)
{
    size_t kept = 0;

    for (size_t i = 0; i < deps->count; i++) {
        struct dep *dep = &deps->items[i];
        enum verdict verdict = dep->failed                 ? NEVER_DONE
                               : waits_for_twins(job, dep) ? WAIT
                                                           : verdict_of(state, job, dep);
        if (verdict == DONE && deps->any)
            return true;
        if (verdict == DONE)
            continue;
        dep->failed = verdict == NEVER_DONE;
        deps->items[kept++] = *dep;
    }
    deps->count = kept;
    return kept == 0;
}

static void split_twin(struct state *state, struct job *meta, uint32_t number, struct dep twin,
                       struct events *out)
{
    struct fate fate = fate_of(state, &twin, array_task_id(meta->array, number));

    if (!fate.ended)
        return;
    struct job *task = array_split(state, meta, number, out);
    if (task != meta)
        deps_review(state, task, NO_TASK, out);
}

/* (3) Tasks whose twins have ended go on by themselves. The hint is the only twin with news. */
static void split_twins(struct state *state, struct job *meta, uint32_t hint, struct events *out)
{
    const struct dep *dep = NULL;
    uint32_t number;

    for (size_t i = 0; i < meta->deps->count && !dep; i++) {
        if (waits_for_twins(meta, &meta->deps->items[i]))
            dep = &meta->deps->items[i];
    }
    if (!dep)
        return;
    struct dep twin = *dep;
    if (hint != NO_TASK) {
        if (array_find(meta->array, hint, &number) &&
            array_task(meta->array, number) == TASK_WAITING)
            split_twin(state, meta, number, twin, out);
        return;
    }
    for (number = array_next_waiting(meta->array, 0);
         number < meta->array->count && job_is_meta(meta);
         number = array_next_waiting(meta->array, number + 1))
        split_twin(state, meta, number, twin, out);
}

void deps_review(struct state *state, struct job *job, uint32_t hint, struct events *out)
{
    if (!job->deps || job_phase(job) != PHASE_PENDING)
        return;
    if (job_is_meta(job))
        split_twins(state, job, hint, out);
    bool was_never = deps_never(job->deps);
    deps_unregister(state, job);
    if (review_items(state, job, job->deps)) {
        deps_free(job->deps);
        job->deps = NULL;
    } else {
        deps_register(state, job);
    }
    job_touch(state, job);
    if (!was_never && deps_never(job->deps))
        emit_job(out, EVENT_JOB_CHANGED, job)->dep_invalid = true;
    if (deps_never(job->deps) && kills(state, job))
        job_end(state, job, JOB_CANCELLED, REASON_DEP_INVALID, state->time_us, NULL, out);
    else
        job_refresh(state, job, out);
}

void deps_news(struct state *state, const struct job *job)
{
    if (map_len(&state->waiters) || map_len(&state->singletons))
        vec_push(&state->news, job->id);
}

/* Those who still wait afterwards register again, in the order they were in. */
static void review_waiters(struct state *state, uint32_t id, uint32_t hint, struct events *out)
{
    struct waiters *waiters = map_del_num(&state->waiters, id);

    if (!waiters)
        return;
    vec_each (uint32_t, at, &waiters->ids) {
        struct job *job = job_at(state, *at);
        if (job)
            deps_review(state, job, hint, out);
    }
    vec_done(&waiters->ids);
    free(waiters);
}

/* The first one keeps the others waiting, so they are asked one after the other. */
static void review_singletons(struct state *state, uint64_t name, struct events *out)
{
    for (;;) {
        const struct waiters *waiters = waiters_of(&state->singletons, name, false);
        if (!waiters)
            return;
        uint32_t id = waiters->ids.items[0];
        deps_review(state, job_at(state, id), NO_TASK, out);
        waiters = waiters_of(&state->singletons, name, false);
        if (waiters && waiters->ids.items[0] == id)
            return;
    }
}

void deps_settle(struct state *state, struct events *out)
{
    for (size_t i = 0; i < state->news.len; i++) {
        const struct job *job = job_at(state, state->news.items[i]);
        if (!job)
            continue;
        uint32_t id = job->id, array_id = job->array ? job->array->id : 0;
        uint32_t task = job->is_task ? job->array_task_id : NO_TASK;
        uint64_t name = name_hash(job->owner->uid, job_name(job));
        review_waiters(state, id, id == array_id ? task : NO_TASK, out);
        if (array_id && array_id != id)
            review_waiters(state, array_id, task, out);
        review_singletons(state, name, out);
    }
    vec_clear(&state->news);
}

int64_t deps_due(const struct state *state, const struct job *job)
{
    int64_t due = NEVER;

    for (size_t i = 0; job->deps && i < job->deps->count; i++) {
        const struct dep *dep = &job->deps->items[i];
        if (dep->type != DEP_AFTER || !dep->minutes || dep->failed)
            continue;
        struct fate fate = fate_of(state, dep, dep->task);
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
