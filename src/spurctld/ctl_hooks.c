/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_hooks.c - programs of the site that the controller runs: EpilogSlurmctld
 *
 * They run beside the loop and their failure is logged, never acted on.
 */
#include "spurctld/ctl_priv.h"
#include "sys/log.h"

enum { EPILOG_MAX_S = 300 };

void ctl_epilog(struct ctl *ctl, const struct event *event)
{
    const Config *config = state_config(ctl->state);
    const struct job *job = event->job;

    if ((event->kind != EVENT_JOB_ENDED && event->kind != EVENT_JOB_REQUEUED) ||
        str_is_empty(config->epilog_ctld) || !event->start_us)
        return;
    unsigned wait_s = config->epilog_timeout_s ? config->epilog_timeout_s : EPILOG_MAX_S;
    char *argv[] = { config->epilog_ctld, NULL };
    struct arena arena;

    arena_init(&arena);
    struct ctl_hook hook = { .what = "controller_epilog",
                             .argv = argv,
                             .env = ctl_job_env(ctl, job, CTL_ENV_EPILOG, &arena),
                             .timeout_s = MIN(wait_s, EPILOG_MAX_S),
                             .job_id = job->id,
                             .attempt = job->attempt };
    ctl->io.hook(ctl->io.ctx, &hook);
    arena_done(&arena);
}

void ctl_hook_done(struct ctl *ctl, const char *what, uint32_t job_id, uint32_t attempt,
                   int exit_status)
{
    (void)ctl;
    if (exit_status != 0)
        log_warn("hook.failed", "what=%s job=%u attempt=%u status=%d ignored", what, job_id,
                 attempt, exit_status);
}
