/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_alloc.c - allocations without a script: who holds them, and how they end
 *
 * (1) srun and salloc watch their job with `hold`. When that stream breaks and no other comes within
 *     the time they asked for, nobody is left to end the job: it is cancelled here. Who holds what is
 *     soft: after a change of leader it is known again when the clients have come back.
 * (2) Only the owner finishes an allocation, and only one that has no script: that one has a node
 *     which reports its end.
 */
#include <string.h>

#include "schema/reasons.h"
#include "spurctld/ctl/ctl_priv.h"
#include "sys/log.h"

static const int64_t HOLD_DEFAULT_S = 30, SECOND_US = 1000000;

/* ---- the key that its nodes know each other's steps by ---- */

/* The managing node has all of them, every other node its own: none can speak for another. */
void ctl_step_key(const struct ctl *ctl, const struct job *job, const char *node,
                  uint8_t out[CTL_STEP_KEY_BYTES])
{
    struct str text = { 0 };

    str_add_len(&text, (const char *)ctl->self.step_secret, CTL_STEP_KEY_BYTES);
    str_addf(&text, "%u.%u.%s", job->id, job->attempt, node);
    ctl->io.digest(ctl->io.ctx, str_text(&text), text.len, out);
    str_done(&text);
}

size_t ctl_manager(const struct job *job)
{
    return run_manager(job->run);
}

/* ---- the end ---- */

void ctl_finish_job(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const FinishJobRequest *request = (const void *)message;
    const struct job *job = state_job(ctl->state, request->job_id);
    CmdFinish finish = CMD_FINISH__INIT;
    Command command = CTL_COMMAND(FINISH, .finish = &finish);
    DoneReply done = DONE_REPLY__INIT;
    struct request_seen seen;

    if (ctl_seen(ctl, ask, &seen)) {
        if (seen.code)
            ctl_fail(ask, seen.code);
        else
            ask->ops->reply(ask, &done.base);
        return;
    }
    if (!job || job->batch) {
        ctl_fail(ask, ERR_INVALID_JOB_ID);
        return;
    }
    if (job->owner->uid != ask->who->uid && !ask->who->is_admin) { /* (2) */
        ctl_fail(ask, ERR_PERMISSION);
        return;
    }
    if (!job->run || job_has_ended(job)) {
        ctl_fail(ask, ERR_ALREADY_DONE);
        return;
    }
    finish.has_job_id = finish.has_attempt = finish.has_exit_status = finish.has_ended_us = true;
    finish.job_id = job->id;
    finish.attempt = job->attempt;
    finish.exit_status = request->exit_status;
    finish.ended_us = ctl_now(ctl);
    ctl_propose_ask(ctl, ask, &command, ctl_done_reply, ask);
}

/* ---- holding ---- */

static bool is_held(const struct ctl *ctl, uint32_t job_id)
{
    for (size_t i = 0; i < ctl->asks.watchers.len; i++) {
        if (ctl->asks.watchers.items[i].job_id == job_id && ctl->asks.watchers.items[i].hold)
            return true;
    }
    return false;
}

static void set_timer(struct ctl *ctl)
{
    int64_t first = 0;

    vec_each (struct orphan, orphan, &ctl->asks.orphans)
        first = !first || orphan->at_us < first ? orphan->at_us : first;
    ctl->io.timer(ctl->io.ctx, CTL_TIMER_HOLD,
                  first ? ctl_now(ctl) + MAX(first - ctl_mono(ctl), 1) : 0);
}

/* As the job asked for, or as configured. */
static int64_t patience_s(const struct ctl *ctl, const struct job *job)
{
    const Config *config = state_config(ctl->state);
    JobSpec *spec = job_spec_unpack(job);
    int64_t out = config->inactive_limit_s ? config->inactive_limit_s : HOLD_DEFAULT_S;

    if (spec && spec->alloc_timeout_s)
        out = spec->alloc_timeout_s;
    if (spec)
        job_spec__free_unpacked(spec, NULL);
    return out;
}

void ctl_hold_lost(struct ctl *ctl, uint32_t job_id)
{
    const struct job *job = state_job(ctl->state, job_id);

    if (!job || job->batch || job_has_ended(job) || is_held(ctl, job_id))
        return;
    vec_push(&ctl->asks.orphans,
             (struct orphan){ job_id, ctl_mono(ctl) + patience_s(ctl, job) * SECOND_US });
    set_timer(ctl);
}

void ctl_hold_stalled(struct ctl *ctl, int64_t us)
{
    vec_each (struct orphan, orphan, &ctl->asks.orphans)
        orphan->at_us += us;
    set_timer(ctl);
}

void ctl_hold_timer(struct ctl *ctl)
{
    int64_t now = ctl_mono(ctl);

    for (size_t i = ctl->asks.orphans.len; i-- > 0;) {
        uint32_t job_id = ctl->asks.orphans.items[i].job_id;
        if (ctl->asks.orphans.items[i].at_us > now)
            continue;
        vec_remove(&ctl->asks.orphans, i);
        const struct job *job = state_job(ctl->state, job_id);
        if (!ctl->leading || !job || job_has_ended(job) || is_held(ctl, job_id))
            continue;
        CmdCancel cancel = CMD_CANCEL__INIT;
        JobSelect select = JOB_SELECT__INIT;
        Command command = CTL_COMMAND(CANCEL, .cancel = &cancel);
        select.n_job_ids = 1;
        select.job_ids = &job_id;
        cancel.jobs = &select;
        cancel.has_by_uid = true;
        cancel.by_uid = job->owner->uid;
        cancel.has_reason = true;
        cancel.reason = REASON_FAIL_INACTIVE_LIMIT;
        log_info("job.orphan", "job=%u", job_id);
        ctl_propose(ctl, &command, NULL, NULL);
    }
    set_timer(ctl);
}
