/* SPDX-License-Identifier: Apache-2.0 */
/*
 * site_hooks.c - programs of the site that the leader runs before a job's nodes hear of it and after it ended
 *
 * Whether one is due is a fact of the attempt, so that a leader that comes later knows it. While the prolog
 * is due the job is configuring and no node gets a grant; while the epilog is due it is completing, though
 * its nodes may be free.
 */
#include "core/job/jobs.h"

static void set(struct state *state, enum run_site *what, enum run_site to)
{
    state->site_due -= *what == SITE_DUE;
    state->site_due += to == SITE_DUE;
    *what = to;
}

void site_hooks_begin(struct state *state, struct job *job)
{
    if (!str_is_empty(state->config->prolog_ctld))
        set(state, &job->run->prolog, SITE_DUE);
}

bool site_hooks_prepared(struct state *state, struct job *job)
{
    if (job->run->prolog != SITE_DUE)
        return false;
    set(state, &job->run->prolog, SITE_DONE);
    job_touch(state, job);
    return true;
}

void site_hooks_end(struct state *state, struct job *job)
{
    if (!job->run)
        return;
    if (job->run->prolog == SITE_DUE)
        set(state, &job->run->prolog, SITE_DONE);
    reboot_ends(job);
    if (job->run->epilog == SITE_NONE && !str_is_empty(state->config->epilog_ctld))
        set(state, &job->run->epilog, SITE_DUE);
}

bool site_hooks_cleaned(struct state *state, struct job *job)
{
    if (job->run->epilog != SITE_DUE)
        return false;
    set(state, &job->run->epilog, SITE_DONE);
    job_touch(state, job);
    return true;
}

void site_hooks_restored(struct state *state, const struct job *job)
{
    if (job->run)
        state->site_due += (job->run->prolog == SITE_DUE) + (job->run->epilog == SITE_DUE);
}

void core_site_due(const struct state *state, void (*each)(void *ctx, const struct job *job),
                   void *ctx)
{
    size_t left = state->site_due;

    for (const struct job *job = state_job_from(state, 0); job && left;
         job = state_job_from(state, (uint64_t)job->id + 1)) {
        if (!job->run || (job->run->prolog != SITE_DUE && job->run->epilog != SITE_DUE))
            continue;
        left--;
        each(ctx, job);
    }
}
