/* SPDX-License-Identifier: Apache-2.0 */
/*
 * suspended_for.c - jobs that are suspended for others, and which of them may run again
 *
 * (1) One that is suspended runs again when its CPUs are free and the job that it was suspended for does not wait
 *     any more. Only those are looked at for which that may have become so: they were touched, or one of their
 *     nodes, or the job that they wait for. All are after what changes more than jobs.
 * (2) They are looked at in the order of their ids, as if all were: the first gets the CPUs.
 * (3) Who is to be looked at is not in a snapshot; all are after it was read. core_check() sees to it that those
 *     who are not looked at would not run.
 */
#include <stdlib.h>

#include "core/job/jobs.h"

/* Those that are suspended for one job. */
struct suspended_for_list {
    VEC(struct job *) jobs;
};

/* ---- the list, by id; and by the job they wait for ---- */

static size_t place_of(const struct state *state, uint32_t id)
{
    size_t low = 0, high = state->suspended_for.len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (state->suspended_for.items[middle]->id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_there(const struct state *state, const struct job *job)
{
    size_t at = place_of(state, job->id);

    return at < state->suspended_for.len && state->suspended_for.items[at] == job;
}

static void link_to(struct state *state, struct job *job)
{
    uint32_t by = job->more ? job->more->preempted_by : 0;
    struct suspended_for_list *list = by ? map_get_num(&state->suspended_for_jobs, by) : NULL;

    if (by && !list) {
        list = NEW(struct suspended_for_list);
        map_put_num(&state->suspended_for_jobs, by, list);
    }
    if (list)
        vec_push(&list->jobs, job);
}

static void list_free(struct suspended_for_list *list)
{
    vec_done(&list->jobs);
    free(list);
}

static void unlink_from(struct state *state, const struct job *job)
{
    uint32_t by = job->more ? job->more->preempted_by : 0;
    struct suspended_for_list *list = by ? map_get_num(&state->suspended_for_jobs, by) : NULL;

    for (size_t i = 0; list && i < list->jobs.len; i++) {
        if (list->jobs.items[i] == job) {
            vec_remove(&list->jobs, i);
            break;
        }
    }
    if (list && !list->jobs.len) {
        map_del_num(&state->suspended_for_jobs, by);
        list_free(list);
    }
}

/* (1) */
static void note(struct state *state, struct job *job)
{
    uint32_t count = job->more && job->more->het_count ? job->more->het_count : 1;

    for (uint32_t i = 0; i < count; i++) { /* they come back together */
        struct job *one = count == 1 ? job : job_at(state, job->more->het_job_id + i);
        if (!one || !one->run || !one->run->lent || one->run->looked_at)
            continue;
        one->run->looked_at = true;
        vec_push(&state->suspended_for_changed, one->id);
    }
}

void suspended_for_add(struct state *state, struct job *job)
{
    size_t at = place_of(state, job->id);

    vec_push(&state->suspended_for, job);
    for (size_t i = state->suspended_for.len - 1; i > at; i--)
        state->suspended_for.items[i] = state->suspended_for.items[i - 1];
    state->suspended_for.items[at] = job;
    link_to(state, job);
    note(state, job);
}

void suspended_for_drop(struct state *state, const struct job *job)
{
    if (!is_there(state, job))
        return;
    unlink_from(state, job);
    job->run->looked_at = false;
    vec_remove(&state->suspended_for, place_of(state, job->id));
}

void suspended_for_await(struct state *state, struct job *job, uint32_t by_id)
{
    bool there = is_there(state, job);

    if (there)
        unlink_from(state, job);
    job_more(job)->preempted_by = by_id;
    if (there)
        link_to(state, job);
}

void suspended_for_done(struct state *state)
{
    map_each (entry, &state->suspended_for_jobs)
        list_free(entry->value);
    map_done(&state->suspended_for_jobs);
    vec_done(&state->suspended_for_changed);
    vec_done(&state->suspended_for);
}

/* ---- who may run again ---- */

void suspended_for_note(struct state *state)
{
    if (!state->suspended_for.len)
        return;
    vec_each (struct job *, at, &state->touched) {
        const struct suspended_for_list *list = map_get_num(&state->suspended_for_jobs, (*at)->id);
        for (size_t i = 0; list && i < list->jobs.len; i++)
            note(state, list->jobs.items[i]);
        note(state, *at);
    }
    vec_each (struct node *, at, &state->touched_nodes) {
        for (size_t i = 0; i < (*at)->jobs.len; i++)
            note(state, (*at)->jobs.items[i]);
    }
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

void suspended_for_settle(struct state *state, bool all, struct events *out)
{
    for (size_t i = 0; all && i < state->suspended_for.len; i++)
        note(state, state->suspended_for.items[i]);
    suspended_for_note(state);
    if (state->suspended_for_changed.len)
        qsort(state->suspended_for_changed.items, state->suspended_for_changed.len,
              sizeof(uint32_t), by_id); /* (2) */
    for (size_t i = 0; i < state->suspended_for_changed.len; i++) {
        struct job *job = job_at(state, state->suspended_for_changed.items[i]);
        if (!job || !job->run || !job->run->looked_at)
            continue; /* it runs, or has gone */
        job->run->looked_at = false;
        if (is_there(state, job) && !preempt_is_waited_for(state, job))
            preempt_resume(state, job, out);
    }
    vec_clear(&state->suspended_for_changed);
}

bool suspended_for_is_right(const struct state *state, const struct job *job)
{
    return job->run->looked_at || !is_there(state, job) || preempt_is_waited_for(state, job) ||
           !preempt_could_resume(state, job);
}

size_t state_suspended_for_count(const struct state *state, uint32_t job_id)
{
    const struct suspended_for_list *list =
        state->suspended_for.len ? map_get_num(&state->suspended_for_jobs, job_id) : NULL;

    return list ? list->jobs.len : 0;
}

const struct job *state_suspended_for(const struct state *state, uint32_t job_id, size_t i)
{
    const struct suspended_for_list *list = map_get_num(&state->suspended_for_jobs, job_id);

    return list->jobs.items[i];
}
