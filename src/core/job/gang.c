/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gang.c - jobs that share CPUs take turns
 *
 * With GANG among the modes of preemption, of jobs that were given the same CPUs (OverSubscribe) one
 * runs and the others are suspended, all nodes of a job at once. At every multiple of the time slice
 * those that waited longest have their turn.
 *
 * (1) A job that begins to run has the first turn: who has its CPUs is suspended before.
 * (2) What is due follows from the time of the last command, so nothing is kept but who is suspended
 *     (run->gang) and since when (run->suspend_us).
 * (3) Suspended for its turn, a job keeps all that it has. Components of heterogeneous jobs and jobs
 *     that somebody suspended by hand take no turns.
 */
#include <string.h>

#include "core/job/jobs.h"

enum { DEFAULT_SLICE_S = 30 };

static int64_t slice_us(const struct state *state)
{
    int64_t seconds = state->config->scheduler_time_slice_s;

    return (seconds > 0 ? seconds : DEFAULT_SLICE_S) * US_PER_S;
}

static bool is_on(const struct state *state)
{
    const char *at = state->config->preempt_mode;

    for (; at && *at; at = strchr(at, ',') ? strchr(at, ',') + 1 : "") {
        if (strncasecmp(at, "GANG", 4) == 0 && (at[4] == ',' || at[4] == '\0'))
            return true;
    }
    return false;
}

/* (3) */
static bool takes_turns(const struct job *job)
{
    return job->run && job->run->shared && !job->run->lent &&
           !(job->more && job->more->het_count) &&
           (job_phase(job) == PHASE_RUNNING || job->run->gang);
}

static bool clash(const struct job *a, const struct job *b)
{
    for (unsigned i = 0; i < a->run->count; i++) {
        const struct job_part *part = &a->run->parts[i];
        for (unsigned k = 0; part->node && k < b->run->count; k++) {
            if (b->run->parts[k].node == part->node &&
                bitset_meets(&b->run->parts[k].cpu_ids, &part->cpu_ids))
                return true;
        }
    }
    return false;
}

/* ---- stop and go ---- */

static void stop(struct state *state, struct job *job, struct events *out)
{
    job_move(state, job, JOB_ON_SUSPEND, 0);
    job->run->suspend_us = state->time_us;
    job->run->gang = true;
    gang_add(state, job);
    timers_update(state, job);
    job_touch(state, job);
    emit_job(out, EVENT_JOB_SUSPENDED, job);
}

static void go(struct state *state, struct job *job, struct events *out)
{
    job->run->gang = false;
    gang_drop(state, job);
    job_move(state, job, JOB_ON_RESUME, 0);
    job->run->suspended_total_us += state->time_us - job->run->suspend_us;
    timers_update(state, job);
    job_touch(state, job);
    emit_job(out, EVENT_JOB_RESUMED, job);
}

/* Those who run and have CPUs of the job. */
static void stop_others(struct state *state, const struct job *job, struct events *out)
{
    for (unsigned i = 0; i < job->run->count; i++) {
        const struct node *node = job->run->parts[i].node;
        for (size_t k = 0; node && k < node->jobs.len; k++) {
            struct job *other = node->jobs.items[k];
            if (other != job && takes_turns(other) && !other->run->gang && clash(job, other))
                stop(state, other, out);
        }
    }
}

static bool is_free(const struct job *job)
{
    for (unsigned i = 0; i < job->run->count; i++) {
        const struct node *node = job->run->parts[i].node;
        for (size_t k = 0; node && k < node->jobs.len; k++) {
            const struct job *other = node->jobs.items[k];
            if (other != job && takes_turns(other) && !other->run->gang && clash(job, other))
                return false;
        }
    }
    return true;
}

/* ---- who is suspended for others ---- */

void gang_add(struct state *state, struct job *job)
{
    size_t at = state->gang.len;

    vec_push(&state->gang, job);
    for (; at > 0 && (state->gang.items[at - 1]->run->suspend_us > job->run->suspend_us ||
                      (state->gang.items[at - 1]->run->suspend_us == job->run->suspend_us &&
                       state->gang.items[at - 1]->id > job->id));
         at--)
        state->gang.items[at] = state->gang.items[at - 1];
    state->gang.items[at] = job;
}

void gang_drop(struct state *state, const struct job *job)
{
    for (size_t i = 0; i < state->gang.len; i++) {
        if (state->gang.items[i] == job) {
            vec_remove(&state->gang, i);
            return;
        }
    }
}

/* (1) */
void gang_runs(struct state *state, const struct job *job, struct events *out)
{
    if (takes_turns(job) && is_on(state))
        stop_others(state, job, out);
}

/* The first in line, and who can run beside them. */
static void turn(struct state *state, struct events *out)
{
    size_t count = state->gang.len, chosen = 0;
    struct job **list = ARENA_ARRAY(&state->scratch, struct job *, count + 1);

    for (size_t i = 0; i < count; i++) {
        struct job *job = state->gang.items[i];
        bool fits = true;
        for (size_t k = 0; k < chosen && fits; k++)
            fits = !clash(job, list[k]);
        if (fits)
            list[chosen++] = job;
    }
    for (size_t i = 0; i < chosen; i++)
        stop_others(state, list[i], out);
    for (size_t i = 0; i < chosen; i++)
        go(state, list[i], out);
}

void gang_settle(struct state *state, int64_t before_us, bool freed, struct events *out)
{
    int64_t slice = slice_us(state);
    bool on = is_on(state);

    if (on && before_us / slice != state->time_us / slice)
        turn(state, out);
    else if (on && !freed)
        return;
    for (size_t i = 0; i < state->gang.len;) {
        if (!on || is_free(state->gang.items[i]))
            go(state, state->gang.items[i], out);
        else
            i++;
    }
}

/* (2) */
int64_t gang_next_us(const struct state *state)
{
    int64_t slice = slice_us(state);

    return state->gang.len ? (state->time_us / slice + 1) * slice : NEVER;
}
