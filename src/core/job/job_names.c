/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_names.c - unended jobs by owner and name, for those who wait to be alone with theirs
 *
 * (1) Jobs whose (uid, name) have the same hash are a chain in order of id; slots know its first
 *     one, and the `prev` of the first is the last. Who comes has the highest id almost always.
 * (2) Who waits as a singleton waits for jobs before it and for those that run. The latter may have
 *     higher ids: where somebody waits they are in a list, all with higher ids than `covers`.
 */
#include <string.h>

#include "base/hash.h"
#include "core/job/jobs.h"

enum { NEAR = 512 };

uint64_t job_name_hash(uint32_t uid, struct span name)
{
    return hash_bytes(name.ptr, name.len, uid);
}

static uint64_t hash_of(const struct job *job)
{
    return job_name_hash(job->owner->uid, job_name(job));
}

static struct job *first_of(const struct state *state, uint32_t hash, struct slots_at *at)
{
    uint32_t id = slots_next(&state->names, hash, at);

    return id ? job_at(state, id) : NULL;
}

struct job *job_name_next(const struct state *state, uint64_t hash, const struct job *after)
{
    struct slots_at at = { 0 };

    if (!after)
        return first_of(state, (uint32_t)hash, &at);
    return after->name_next ? job_at(state, after->name_next) : NULL;
}

static bool is_in(const struct job *job, uint32_t hash)
{
    return job && job->name_prev && (uint32_t)hash_of(job) == hash;
}

/* One of the chain whose id is not far from the job's. */
static struct job *neighbour(const struct state *state, const struct job *job, uint32_t hash)
{
    for (uint32_t d = 1; d <= NEAR; d++) {
        struct job *below = job->id > d ? job_at(state, job->id - d) : NULL;
        struct job *above = job_at(state, job->id + d);
        if (is_in(below, hash))
            return below;
        if (is_in(above, hash))
            return above;
    }
    return NULL;
}

/* The last of the chain with a lower id, from whichever end is nearer; NULL when it is the first. */
static struct job *before(const struct state *state, const struct job *job, uint32_t hash,
                          struct job *first)
{
    struct job *near = neighbour(state, job, hash);
    struct job *low = first, *high = near ? near : job_at(state, first->name_prev);

    if (near && near->id < job->id)
        low = near;
    if (job->id < first->id)
        return NULL;
    for (;;) {
        if (high->id < job->id)
            return high;
        struct job *next = low->name_next ? job_at(state, low->name_next) : NULL;
        if (!next || next->id > job->id)
            return low;
        low = next;
        high = job_at(state, high->name_prev);
    }
}

static struct dep_waiters *alone(const struct state *state, const struct job *job)
{
    return dep_waiters_len(&state->singletons) ? dep_waiters_at(&state->singletons, hash_of(job))
                                               : NULL;
}

void job_name_runs(struct state *state, const struct job *job, bool runs)
{
    struct dep_waiters *waiters = alone(state, job);

    if (waiters && runs)
        wait_list_add(&waiters->runs, job->id);
    else if (waiters)
        wait_list_del(&waiters->runs, job->id);
}

void job_name_link(struct state *state, struct job *job)
{
    struct slots_at at = { 0 };
    uint32_t hash = (uint32_t)hash_of(job);
    struct job *first = first_of(state, hash, &at);

    state->name_count++;
    state->name_changes++;
    job->name_next = 0;
    job->name_prev = job->id;
    if (job->run)
        job_name_runs(state, job, true);
    if (!first) {
        slots_put(&state->names, hash, job->id);
        return;
    }
    struct job *last = job_at(state, first->name_prev);
    struct job *prev = last->id < job->id ? last : before(state, job, hash, first);
    if (!prev) {
        job->name_next = first->id;
        job->name_prev = first->name_prev;
        first->name_prev = job->id;
        slots_set(&state->names, &at, job->id);
        return;
    }
    job->name_next = prev->name_next;
    job->name_prev = prev->id;
    prev->name_next = job->id;
    if (job->name_next)
        job_at(state, job->name_next)->name_prev = job->id;
    else
        first->name_prev = job->id;
}

void job_name_unlink(struct state *state, struct job *job)
{
    struct job *prev = job_at(state, job->name_prev);
    bool is_first = !prev->name_next || prev == job;
    struct slots_at at = { 0 };

    state->name_count--;
    state->name_changes++;
    if (job->run)
        job_name_runs(state, job, false);
    if (is_first && !job->name_next) {
        slots_del(&state->names, (uint32_t)hash_of(job), job->id);
    } else if (is_first) {
        first_of(state, (uint32_t)hash_of(job), &at);
        slots_set(&state->names, &at, job->name_next);
        job_at(state, job->name_next)->name_prev = job->name_prev;
    } else {
        prev->name_next = job->name_next;
        struct job *next = job->name_next ? job_at(state, job->name_next)
                                          : first_of(state, (uint32_t)hash_of(job), &at);
        next->name_prev = job->name_prev;
    }
    job->name_next = job->name_prev = 0;
}

void job_name_waits(struct state *state, const struct job *job)
{
    struct dep_waiters *waiters = dep_waiters_make(&state->singletons, hash_of(job));
    struct slots_at at = { 0 };

    wait_list_add(&waiters->ids, job->id);
    if (waiters->covers && waiters->covers <= job->id)
        return;
    waiters->covers = job->id; /* (2) */
    const struct job *first = first_of(state, (uint32_t)hash_of(job), &at);
    const struct job *one = first ? job_at(state, first->name_prev) : NULL;
    for (; one && one->id > job->id; one = job_at(state, one->name_prev)) {
        if (one->run)
            wait_list_add(&waiters->runs, one->id);
        if (one == first)
            break;
    }
}

/* ---- is the job alone with its name? ---- */

static bool same_name(const struct job *a, const struct job *b)
{
    struct span x = job_name(a), y = job_name(b);

    return a->owner->uid == b->owner->uid && x.len == y.len && memcmp(x.ptr, y.ptr, x.len) == 0;
}

static bool keeps_waiting(const struct job *job, const struct job *self)
{
    return job != self && !(self->array && job->array == self->array) && same_name(job, self);
}

/*
 * The tasks of an array do not wait for each other: when they come one after the other, those at the
 * beginning of the chain need not be passed again for each.
 */
static const struct job *first_other(struct state *state, const struct job *self, uint64_t hash)
{
    bool known = self->array && state->passed.array_id == self->array->id &&
                 state->passed.hash == hash && state->passed.changes == state->name_changes;
    const struct job *job =
        known ? job_at(state, state->passed.upto) : job_name_next(state, hash, NULL);

    while (job && !keeps_waiting(job, self) && job->id < self->id)
        job = job_name_next(state, hash, job);
    if (self->array && job)
        state->passed = (struct name_passed){ hash, state->name_changes, self->array->id, job->id };
    return job;
}

enum dep_verdict deps_singleton(struct state *state, const struct job *self)
{
    uint64_t hash = hash_of(self);
    const struct dep_waiters *waiters = dep_waiters_at(&state->singletons, hash);

    for (size_t i = 0; waiters && i < waiters->runs.len; i++) {
        if (keeps_waiting(job_at(state, wait_list_at(&waiters->runs, i)), self))
            return WAIT;
    }
    const struct job *job = first_other(state, self, hash);
    return job && job->id < self->id ? WAIT : DONE;
}

/* ---- is all of it right? ---- */

bool job_name_check(const struct state *state, const struct job *job)
{
    uint64_t hash = hash_of(job);
    const struct dep_waiters *waiters = dep_waiters_at(&state->singletons, hash);
    uint32_t last = 0;
    bool found = false;

    for (const struct job *at = job_name_next(state, hash, NULL); at;
         at = job_name_next(state, hash, at)) {
        if (at->id <= last || (last && at->name_prev != last))
            return false;
        last = at->id;
        found |= at == job;
    }
    if (!found || job_name_next(state, hash, NULL)->name_prev != last)
        return false;
    return !job->run || !waiters || !waiters->ids.len || wait_list_at(&waiters->ids, 0) > job->id ||
           wait_list_has(&waiters->runs, job->id);
}
