// SPDX-License-Identifier: Apache-2.0
/*
 * resv_due.c - what becomes of reservations with time, and when their nodes change
 *
 * (1) The CmdTime that its end makes due removes a reservation, or moves it to its next time. Jobs
 *     that run in it end with it, after ResvOverRun.
 * (2) What becomes due follows from the record alone: a restored state has the same moments.
 */
#include "core/command/command.h"

#include <stdlib.h>

static void take_out(struct state *state, struct reservation *reservation)
{
    for (size_t i = 0; i < state->reservations.len; i++) {
        if (state->reservations.items[i] == reservation) {
            vec_remove(&state->reservations, i);
            break;
        }
    }
    state->digest -= reservation->hash;
    reservation_free(reservation);
}

/* Of the reservations that the job names, is any left? */
static bool has_another(const struct state *state, const struct job *job)
{
    size_t at = 0;

    return resv_next_for(state, job, &at) != NULL;
}

static void go_on_without(struct state *state, struct job *job, struct events *out)
{
    CmdUpdateJob cmd = CMD_UPDATE_JOB__INIT;
    JobSelect jobs = JOB_SELECT__INIT;
    char *clear[1] = { (char *)"reservation" };
    struct err err;
    uint32_t id = job->id;

    jobs.n_job_ids = 1;
    jobs.job_ids = &id;
    cmd.jobs = &jobs;
    cmd.has_by_admin = cmd.by_admin = true;
    cmd.n_clear = 1;
    cmd.clear = clear;
    apply_update_job(state, &cmd, &err, out);
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Those that wait for some reservation, in order of their ids, from the scratch arena. */
static const uint32_t *waiting_ids(struct state *state, size_t *count)
{
    uint32_t *ids = ARENA_ARRAY(&state->scratch, uint32_t, map_len(&state->resv_jobs) + 1);

    *count = 0;
    map_each (entry, &state->resv_jobs)
        ids[(*count)++] = (uint32_t)entry->num;
    qsort(ids, *count, sizeof(*ids), by_id);
    return ids;
}

/* Jobs that would wait for ever for it are held, as Slurm does, or go on without it. */
static void release_waiting(struct state *state, bool hold, struct events *out)
{
    size_t count;
    const uint32_t *ids = waiting_ids(state, &count);

    for (size_t i = 0; i < count; i++) {
        struct job *job = job_at(state, ids[i]);
        if (!job || job_phase(job) != PHASE_PENDING || !job->shape->reservation ||
            has_another(state, job))
            continue;
        if (!hold) {
            go_on_without(state, job, out);
            continue;
        }
        if (job->flags & JOB_FLAG_RESV_DEL_HOLD)
            continue;
        job->hold = 2;
        job->reason = REASON_RESV_DELETED;
        job->flags |= JOB_FLAG_RESV_DEL_HOLD;
        job_refresh(state, job, out);
    }
}

void resv_remove(struct state *state, struct reservation *resv, bool hold, struct events *out)
{
    emit_named(out, EVENT_RESV_GONE, resv->spec->name);
    take_out(state, resv);
    release_waiting(state, hold, out);
}

static void end_jobs(struct state *state, const struct reservation *resv, struct events *out)
{
    bitset_each (number, &resv->nodes) {
        const struct node *node = state->nodes.items[number];
        for (size_t i = 0; i < node->jobs.len; i++) {
            struct job *job = node->jobs.items[i];
            if (!str_eq(job->run->reservation, resv->spec->name) || job_has_ended(job) ||
                !job_can(job, JOB_ON_EXIT) || job_phase(job) == PHASE_REQUEUING)
                continue;
            job_end(state, job, JOB_TIMEOUT, REASON_FAIL_TIMEOUT, state->time_us, NULL, out);
            if (job_holds(job))
                emit_job(out, EVENT_JOB_ENDING, job);
        }
    }
}

/* To its next time. */
static void advance(struct state *state, struct reservation *resv)
{
    resv_time_after(resv->flags, state->time_us, &resv->spec->start_us, &resv->spec->end_us);
    resv->active = resv->spec->start_us <= state->time_us;
    resv->over = false;
    resv->idle_us = state->time_us;
    reservation_settle(state, resv);
}

/* True when it is no more. */
static bool over(struct state *state, struct reservation *resv, struct events *out)
{
    bool hold = !(resv->flags & RESV_NO_HOLD);

    if (resv->flags & RESV_REPEATS) {
        advance(state, resv);
        emit_named(out, EVENT_RESV_CHANGED, resv->spec->name);
        return false;
    }
    resv_remove(state, resv, hold, out);
    return true;
}

static bool resv_due(struct state *state, struct reservation *resv, struct events *out)
{
    ReservationSpec *spec = resv->spec;
    int64_t over_us = resv_over_run_us(state, resv);

    if (resv->flags & RESV_TIME_FLOAT) {
        int64_t length = spec->end_us - spec->start_us;
        spec->start_us = state->time_us + spec->float_s * US_PER_S;
        spec->end_us = spec->start_us + length;
        reservation_settle(state, resv);
        return false;
    }
    if (!resv->active && spec->start_us <= state->time_us) {
        resv->active = true;
        resv->idle_us = state->time_us;
        reservation_settle(state, resv);
    }
    if (spec->end_us > state->time_us) {
        if (resv_due_us(state, resv) <= state->time_us) /* unused for long enough */
            return over(state, resv, out);
        return false;
    }
    if (resv_is_used(resv) && over_us != NEVER && state->time_us < spec->end_us + over_us) {
        resv->over = true;
        reservation_settle(state, resv);
        return false;
    }
    if (over_us != NEVER)
        end_jobs(state, resv, out);
    return over(state, resv, out);
}

void reservations_due(struct state *state, struct events *out)
{
    bool changed = false;

    for (size_t i = 0; i < state->reservations.len;) {
        struct reservation *resv = state->reservations.items[i];
        if (resv_due_us(state, resv) > state->time_us) {
            i++;
            continue;
        }
        changed = true;
        if (!resv_due(state, resv, out))
            i++;
    }
    if (changed) {
        reservations_next(state);
        emit(out, EVENT_RESERVATION);
    }
}

/* ---- REPLACE, PART_NODES ---- */

static void refit(struct state *state, bool (*fit)(struct state *, struct reservation *),
                  struct events *out)
{
    bool changed = false;

    vec_each (struct reservation *, at, &state->reservations) {
        if (!fit(state, *at))
            continue;
        reservation_settle(state, *at);
        emit_named(out, EVENT_RESV_CHANGED, (*at)->spec->name);
        changed = true;
    }
    if (changed)
        emit(out, EVENT_RESERVATION);
}

void reservations_replace(struct state *state, struct events *out)
{
    refit(state, resv_replace, out);
}

void reservations_follow(struct state *state, struct events *out)
{
    refit(state, resv_follow, out);
}
