/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_hooks.c - programs of the site that the leader runs: PrologSlurmctld, EpilogSlurmctld
 *
 * That one is due is in the state (core/site_hooks.c), so a leader that comes later runs it (again). One program
 * at a time runs for a job: an epilog waits for the prolog of a job that was cancelled meanwhile.
 *
 * (1) A prolog that fails puts a batch job back into the queue; an allocation ends.
 * (2) An epilog that fails is logged; the job ends all the same.
 */
#include <string.h>

#include "spurctld/ctl/ctl_priv.h"
#include "sys/log.h"

static const char prolog[] = "controller_prolog", epilog[] = "controller_epilog";

static unsigned timeout_s(const Config *config, bool before)
{
    unsigned own = before ? config->prolog_timeout_s : config->epilog_timeout_s;

    if (!own)
        own = config->prolog_epilog_timeout_s;
    return own ? own : CTL_HOOK_NO_LIMIT_S;
}

static void start(struct ctl *ctl, const struct job *job, bool before)
{
    const Config *config = state_config(ctl->state);
    char *path = before ? config->prolog_ctld : config->epilog_ctld;
    char *argv[] = { path, NULL };
    struct arena arena;

    map_put_num(&ctl->site.running, job->id, (void *)(uintptr_t)job->attempt);
    if (str_is_empty(path)) { /* it was taken out of the configuration */
        ctl_site_done(ctl, before ? prolog : epilog, job->id, job->attempt, 0);
        return;
    }
    arena_init(&arena);
    struct ctl_hook hook = { .what = before ? prolog : epilog,
                             .argv = argv,
                             .env = ctl_job_env(ctl, job, before ? CTL_ENV_PROLOG : CTL_ENV_EPILOG,
                                                &arena),
                             .timeout_s = timeout_s(config, before),
                             .must_run = true,
                             .job_id = job->id,
                             .attempt = job->attempt };
    ctl->io.hook(ctl->io.ctx, &hook);
    arena_done(&arena);
}

/* What is due for the job, if nothing runs for it. */
static void look_at(struct ctl *ctl, const struct job *job)
{
    const struct job_run *run = job->run;

    if (!run || map_get_num(&ctl->site.running, job->id))
        return;
    if (run->prolog == SITE_DUE)
        start(ctl, job, true);
    else if (run->epilog == SITE_DUE)
        start(ctl, job, false);
}

void ctl_site(struct ctl *ctl, const struct event *event)
{
    if (event->kind == EVENT_JOB_STARTED || event->kind == EVENT_JOB_ENDED ||
        event->kind == EVENT_JOB_REQUEUED)
        look_at(ctl, event->job);
}

static void look_again(void *ctx, const struct job *job)
{
    look_at(ctx, job);
}

void ctl_site_again(struct ctl *ctl)
{
    core_site_due(ctl->state, look_again, ctl);
}

void ctl_site_leading(struct ctl *ctl)
{
    map_clear(&ctl->site.running);
    ctl_site_again(ctl);
}

static void propose_prepared(struct ctl *ctl, const struct job *job)
{
    CmdReady ready = CMD_READY__INIT;
    Command command = CTL_COMMAND(READY, .ready = &ready);

    ready.has_job_id = ready.has_attempt = ready.has_controller = true;
    ready.job_id = job->id;
    ready.attempt = job->attempt;
    ready.controller = true;
    ctl_propose(ctl, &command, NULL, NULL);
}

static void propose_cleaned(struct ctl *ctl, const struct job *job)
{
    CmdRelease release = CMD_RELEASE__INIT;
    Command command = CTL_COMMAND(RELEASE, .release = &release);

    release.has_job_id = release.has_attempt = release.has_controller = true;
    release.job_id = job->id;
    release.attempt = job->attempt;
    release.controller = true;
    ctl_propose(ctl, &command, NULL, NULL);
}

void ctl_site_done(struct ctl *ctl, const char *what, uint32_t job_id, uint32_t attempt,
                   int exit_status)
{
    const struct job *job = state_job(ctl->state, job_id);
    bool before = strcmp(what, prolog) == 0, after = strcmp(what, epilog) == 0;

    if (exit_status != 0)
        log_warn("hook.failed", "what=%s job=%u attempt=%u status=%d%s", what, job_id, attempt,
                 exit_status, before ? "" : " ignored");
    if (strcmp(what, CTL_FENCE) == 0)
        ctl_fence_done(ctl, job_id, exit_status);
    if (!before && !after)
        return;
    if ((uintptr_t)map_get_num(&ctl->site.running, job_id) == attempt)
        map_del_num(&ctl->site.running, job_id);
    if (!ctl->leading || !job || !job->run || job->attempt != attempt)
        return;
    if (before && job->run->prolog == SITE_DUE && exit_status == 0)
        propose_prepared(ctl, job);
    else if (before && job->run->prolog == SITE_DUE)
        ctl_finish_lost(ctl, job, NULL, "PrologSlurmctld failed", true, false); /* (1) */
    else if (after && job->run->epilog == SITE_DUE)
        propose_cleaned(ctl, job); /* (2) */
    else
        look_at(ctl, job);
}
