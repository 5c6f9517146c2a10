/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deps_words.c - what of a dependency is left, for a person
 */
#include <string.h>

#include "core/deps_priv.h"
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

/* Those before it in the chain of its name, and those that run after it; not more than can be told. */
static void add_singleton(const struct state *state, const struct job *self, struct str *out)
{
    struct span name = job_name(self);
    uint64_t hash = name_hash(self->owner->uid, name);
    const struct waiters *waiters = waiters_at(&state->singletons, hash);
    const struct job *first = NULL;
    unsigned count = 0, looks = 0;

    for (const struct job *job = name_next(state, hash, NULL);
         job && job->id < self->id && ++looks < SINGLETON_LOOKS;
         job = name_next(state, hash, job)) {
        count += is_other(job, self);
        first = !first && is_other(job, self) ? job : first;
    }
    for (size_t i = 0; waiters && i < waiters->runs.len && ++looks < SINGLETON_LOOKS; i++) {
        const struct job *job = job_at(state, wait_list_at(&waiters->runs, i));
        bool later = job->id > self->id && is_other(job, self);
        count += later;
        first = !first && later ? job : first;
    }
    str_addf(out, "singleton: %u%s earlier job%s of %s named %.*s %s to end", count,
             looks < SINGLETON_LOOKS ? "" : " or more", count == 1 ? "" : "s", self->owner->user,
             (int)MIN(name.len, 64), name.ptr, count == 1 ? "has" : "have");
    if (first)
        str_addf(out, ", the first is job %u (%s)", first->id,
                 job_state_text(first->state, first->flags));
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
