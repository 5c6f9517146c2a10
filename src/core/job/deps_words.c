/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deps_words.c - what of a dependency is left, for a person, and until when
 */
#include <string.h>

#include "core/job/jobs.h"
#include "schema/names.h"

enum { ITEMS_SHOWN = 5, SINGLETON_LOOKS = 10000 };

/* What the other job has to do, by enum dep_type. */
static const char *const must[] = {
    [DEP_AFTER] = "has to start",
    [DEP_AFTER_ANY] = "has to end",
    [DEP_AFTER_BURST_BUFFER] = "has to end",
    [DEP_AFTER_CORR] = "has to end with exit code 0, task by task",
    [DEP_AFTER_NOT_OK] = "has to fail",
    [DEP_AFTER_OK] = "has to end with exit code 0",
    [DEP_SINGLETON] = "",
};

static void add_other(const struct state *state, const struct dep *dep, struct str *out)
{
    const struct job *job = job_at(state, dep->job_id);
    const struct array *array = job && job->array && job->array->id == job->id ? job->array : NULL;

    if (job && dep->task != NO_TASK)
        job = state_task(state, dep->job_id, dep->task);
    str_addf(out, "job %u", dep->job_id);
    if (dep->task != NO_TASK)
        str_addf(out, "_%u", dep->task);
    if (!job)
        str_add(out, " (ended and forgotten)");
    else if (array && dep->task == NO_TASK)
        str_addf(out, " (%u of %u tasks ended, %u badly)", array->ok + array->failed, array->count,
                 array->failed);
    else
        str_addf(out, " (%s)", job_state_text(job->state, job->flags));
}

static bool is_other(const struct job *job, const struct job *self)
{
    return job != self && !(self->array && job->array == self->array);
}

/* Those before it in the chain of its name, and those that run after it. False: there are more. */
static bool each_before(const struct state *state, const struct job *self,
                        void (*each)(void *ctx, const struct job *job), void *ctx)
{
    uint64_t hash = job_name_hash(self->owner->uid, job_name(self));
    const struct dep_waiters *waiters = dep_waiters_at(&state->singletons, hash);
    unsigned looks = 0;

    for (const struct job *job = job_name_next(state, hash, NULL);
         job && job->id < self->id && ++looks < SINGLETON_LOOKS;
         job = job_name_next(state, hash, job)) {
        if (is_other(job, self))
            each(ctx, job);
    }
    for (size_t i = 0; waiters && i < waiters->runs.len && ++looks < SINGLETON_LOOKS; i++) {
        const struct job *job = job_at(state, wait_list_at(&waiters->runs, i));
        if (job->id > self->id && is_other(job, self))
            each(ctx, job);
    }
    return looks < SINGLETON_LOOKS;
}

struct before {
    unsigned count;
    const struct job *first;
};

static void count_before(void *ctx, const struct job *job)
{
    struct before *before = ctx;

    before->count++;
    before->first = before->first ? before->first : job;
}

static void add_singleton(const struct state *state, const struct job *self, struct str *out)
{
    struct span name = job_name(self);
    struct before before = { 0 };
    bool all = each_before(state, self, count_before, &before);

    str_addf(out, "singleton: %u%s earlier job%s of %s named %.*s %s to end", before.count,
             all ? "" : " or more", before.count == 1 ? "" : "s", self->owner->user,
             (int)MIN(name.len, 64), name.ptr, before.count == 1 ? "has" : "have");
    if (before.first)
        str_addf(out, ", the first is job %u (%s)", before.first->id,
                 job_state_text(before.first->state, before.first->flags));
}

static void add_item(const struct state *state, const struct job *self, const struct dep *dep,
                     struct str *out)
{
    if (dep->type == DEP_SINGLETON) {
        add_singleton(state, self, out);
        return;
    }
    add_other(state, dep, out);
    str_addf(out, " %s", dep->failed ? "did not end as it had to:" : must[dep->type]);
    if (dep->failed)
        str_addf(out, " it %s", must[dep->type]);
    else if (dep->type == DEP_AFTER && dep->minutes)
        str_addf(out, " and %u minute%s pass", dep->minutes, dep->minutes == 1 ? "" : "s");
}

void core_dependency_words(const struct state *state, const struct job *job, struct str *out)
{
    const struct deps *deps = job->deps;

    for (size_t i = 0; deps && i < deps->count; i++) {
        if (i == ITEMS_SHOWN) {
            str_addf(out, "; and %zu more", deps->count - i);
            break;
        }
        if (i)
            str_add(out, deps->any ? "; or " : "; ");
        add_item(state, job, &deps->items[i], out);
    }
}

/* ---- until when ---- */

/* Of all that an item names. */
struct latest {
    core_when_fn *when;
    void *ctx;
    bool end;
    int64_t us;
};

static void take_latest(void *ctx, const struct job *job)
{
    struct latest *latest = ctx;

    latest->us = MAX(latest->us, latest->when(latest->ctx, job, latest->end));
}

static void latest_of(const struct state *state, const struct dep *dep, struct latest *latest)
{
    const struct job *job = job_at(state, dep->job_id);
    const struct array *array = job && job->array && job->array->id == job->id ? job->array : NULL;
    uint32_t id;

    if (job && dep->task != NO_TASK)
        job = state_task(state, dep->job_id, dep->task);
    if (job)
        take_latest(latest, job);
    for (size_t at = 0;
         array && dep->task == NO_TASK && (id = slots_walk(&array->record_ids, &at));)
        take_latest(latest, job_at(state, id));
}

static int64_t item_us(const struct state *state, const struct job *self, const struct dep *dep,
                       core_when_fn *when, void *ctx)
{
    struct latest latest = { .when = when, .ctx = ctx, .end = dep->type != DEP_AFTER };
    int64_t more_us = dep->type == DEP_AFTER ? dep->minutes * 60 * US_PER_S : 0;

    if (dep->type != DEP_SINGLETON)
        latest_of(state, dep, &latest);
    else if (!each_before(state, self, take_latest, &latest))
        return NEVER;
    return latest.us == NEVER ? NEVER : latest.us + more_us;
}

int64_t core_dependency_us(const struct state *state, const struct job *job, core_when_fn *when,
                           void *ctx)
{
    const struct deps *deps = job->deps;
    int64_t all = 0, any = NEVER;

    for (size_t i = 0; deps && i < deps->count; i++) {
        int64_t us =
            deps->items[i].failed ? NEVER : item_us(state, job, &deps->items[i], when, ctx);
        all = MAX(all, us);
        any = MIN(any, us);
    }
    return deps && deps->any ? any : all;
}
