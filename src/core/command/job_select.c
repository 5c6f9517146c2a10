/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_select.c - the jobs that a command names
 */
#include "core/command/command.h"

#include <stdlib.h>
#include <string.h>

struct tally {
    size_t done;
    enum err_code first; /* of what was refused */
};

static void act_on(struct state *state, struct job *job, const struct job_select_act *act,
                   struct tally *tally, struct err *err, struct events *out)
{
    deps_catch_up(state, job, out);
    enum err_code code = act->each(state, job, act->arg, err, out);

    if (code == ERR_OK)
        tally->done++;
    else if (tally->first == ERR_OK)
        tally->first = code;
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Ids of the array's task records in order, from the scratch arena. */
static uint32_t *records_of(struct state *state, const struct array *array, size_t *count)
{
    uint32_t *ids = ARENA_ARRAY(&state->scratch, uint32_t, array->records + 1);

    *count = 0;
    for (size_t at = 0; (ids[*count] = slots_walk(&array->record_ids, &at));)
        ++*count;
    qsort(ids, *count, sizeof(*ids), by_id);
    return ids;
}

static void on_array(struct state *state, struct job *first, const struct job_select_act *act,
                     struct tally *tally, struct err *err, struct events *out)
{
    size_t count;
    uint32_t *ids = records_of(state, first->array, &count);

    act_on(state, first, act, tally, err, out);
    for (size_t i = 0; i < count; i++)
        act_on(state, job_at(state, ids[i]), act, tally, err, out);
}

static void on_waiting(struct state *state, struct job *first, const struct bitset *set,
                       const struct job_select_act *act, struct tally *tally, struct err *err,
                       struct events *out)
{
    size_t count = bitset_count(set);

    if (count == 0)
        return;
    if (job_phase(first) == PHASE_ENDED) { /* the array was cancelled: they wait for nothing */
        if (tally->first == ERR_OK)
            tally->first = ERR_ALREADY_DONE;
        return;
    }
    /* All that wait: the array's record can be treated as one job. */
    if (count == first->array->waiting) {
        act_on(state, first, act, tally, err, out);
        return;
    }
    if (act->tasks) {
        enum err_code code = act->tasks(state, first, set, act->arg, err, out);
        if (code == ERR_OK)
            tally->done++;
        else if (tally->first == ERR_OK)
            tally->first = code;
        return;
    }
    bitset_each (number, set) {
        if (!ids_left(state)) {
            tally->first = ERR_MAX_JOB_COUNT;
            return;
        }
        struct job *task = array_split(state, first, (uint32_t)number, out);
        act_on(state, task, act, tally, err, out);
    }
}

static void on_tasks(struct state *state, struct job *first, const char *text,
                     const struct job_select_act *act, struct tally *tally, struct err *err,
                     struct events *out)
{
    struct array *array = first->array;
    struct bitset set = { 0 }, waiting;
    struct err mine = { 0 };

    if (!array || array->id != first->id ||
        array_select(array, text, strlen(text), &set, &mine) < 0) {
        if (tally->first == ERR_OK)
            tally->first = ERR_INVALID_JOB_ID;
        return;
    }
    bitset_init(&waiting, array->count);
    bitset_each (number, &set) {
        uint32_t id = array_task_id(array, (uint32_t)number);
        if (array_task(array, (uint32_t)number) == TASK_WAITING) {
            bitset_add(&waiting, number);
            continue;
        }
        struct job *task =
            first->is_task && first->array_task_id == id ? first : array_record(state, array, id);
        if (task)
            act_on(state, task, act, tally, err, out);
        else if (tally->first == ERR_OK)
            tally->first = ERR_ALREADY_DONE;
    }
    on_waiting(state, first, &waiting, act, tally, err, out);
    bitset_done(&set);
    bitset_done(&waiting);
}

static void on_het(struct state *state, struct job *first, const struct job_select_act *act,
                   struct tally *tally, struct err *err, struct events *out)
{
    uint32_t id = first->id, count = first->more->het_count;

    for (uint32_t i = 0; i < count; i++) {
        struct job *job = job_at(state, id + i);
        if (job)
            act_on(state, job, act, tally, err, out);
    }
}

static enum err_code on_id(struct state *state, uint32_t id, const char *tasks, bool alone,
                           const struct job_select_act *act, struct err *err, struct events *out)
{
    struct tally tally = { 0 };
    struct job *job = job_at(state, id);

    *err = (struct err){ 0 };
    if (!job)
        tally.first = ERR_INVALID_JOB_ID;
    else if (!str_is_empty(tasks))
        on_tasks(state, job, tasks, act, &tally, err, out);
    else if (job->array && job->array->id == id && !alone)
        on_array(state, job, act, &tally, err, out);
    else if (job->more && job->more->het_count && job->more->het_offset == 0)
        on_het(state, job, act, &tally, err, out);
    else
        act_on(state, job, act, &tally, err, out);
    if (tally.done)
        return ERR_OK;
    enum err_code code = tally.first ? tally.first : ERR_INVALID_JOB_ID;
    reject(out, id, NO_TASK, code)->text =
        err->code == code && err->text[0] ? arena_strdup(&out->arena, err->text) : NULL;
    return code;
}

enum err_code job_select_each(struct state *state, const JobSelect *jobs,
                              const struct job_select_act *act, struct err *err, struct events *out)
{
    enum err_code first = ERR_OK;
    size_t done = 0;

    if (!jobs || jobs->n_job_ids == 0)
        return ERR_INVALID_JOB_ID;
    for (size_t i = 0; i < jobs->n_job_ids; i++) {
        const char *tasks = jobs->n_job_ids == 1 ? jobs->array_tasks : NULL;
        enum err_code code = on_id(state, jobs->job_ids[i], tasks, jobs->alone, act, err, out);
        if (code == ERR_OK)
            done++;
        else if (first == ERR_OK)
            first = code;
    }
    return done ? ERR_OK : first;
}
