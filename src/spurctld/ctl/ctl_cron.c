/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_cron.c - scrontab: jobs that are put back into the queue when they have ended, for their next time
 *
 * (1) Which jobs these are is in the state (core/crontab.h). The leader proposes to put one back when it has ended, and
 *     names the attempt that did: a second proposal, of whichever leader, changes nothing. So a job runs once for each
 *     of its times, or once for all that passed while it could not.
 * (2) A job that was cancelled does not come back: its line in the crontab becomes a comment.
 * (3) Times are local ones of the leader's host.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "core/crontab.h"
#include "schema/cron.h"
#include "spurctld/ctl/ctl_priv.h"
#include "sys/log.h"

enum { FIELD_SPEC_CRON = 148 }; /* of proto/job.proto */

/* The first moment of the text after `after_us`; 0: it is not a time. */
static int64_t next_us(struct span text, int64_t after_us)
{
    char copy[LIMIT_NAME_BYTES];
    const char *end;
    struct cron cron;
    struct err err;

    if (text.len >= sizeof(copy))
        return 0;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    if (cron_read(copy, &cron, &end, &err) < 0)
        return 0;
    int64_t next = cron_next(&cron, after_us / 1000000);
    return next == INT64_MAX ? 0 : next * 1000000;
}

static void put_back(struct ctl *ctl, const struct job *job)
{
    CmdRequeue requeue = CMD_REQUEUE__INIT;
    JobSelect jobs = JOB_SELECT__INIT;
    Command command = CTL_COMMAND(REQUEUE, .requeue = &requeue);
    uint32_t id = job->id;
    struct span text;

    if (!job_spec_field(job, FIELD_SPEC_CRON, &text))
        return;
    jobs.n_job_ids = 1;
    jobs.job_ids = &id;
    requeue.jobs = &jobs;
    requeue.has_begin_us = requeue.has_attempt = true;
    requeue.begin_us = next_us(text, ctl_now(ctl));
    requeue.attempt = job->attempt; /* (1) */
    if (requeue.begin_us)
        ctl_propose(ctl, &command, NULL, NULL);
}

/* (2) */
static void disable(struct ctl *ctl, const struct job *job)
{
    CmdCrontab msg = CMD_CRONTAB__INIT;
    Command command = CTL_COMMAND(CRONTAB, .crontab = &msg);

    msg.has_disable = true;
    msg.disable = job->id;
    log_info("cron.disabled", "job=%u uid=%u", job->id, job->owner->uid);
    ctl_propose(ctl, &command, NULL, NULL);
}

void ctl_cron_ended(struct ctl *ctl, const struct job *job)
{
    if (job_phase(job) != PHASE_ENDED || !state_is_cron_job(ctl->state, job))
        return;
    if (job->state == JOB_CANCELLED)
        disable(ctl, job);
    else
        put_back(ctl, job);
}

void ctl_cron_leading(struct ctl *ctl)
{
    for (size_t i = 0; i < state_crontab_count(ctl->state); i++) {
        const Crontab *crontab = state_crontab_at(ctl->state, i);
        for (size_t k = 0; k < crontab->n_job_ids; k++) {
            const struct job *job = state_job(ctl->state, crontab->job_ids[k]);
            if (job)
                ctl_cron_ended(ctl, job);
        }
    }
}

/* ---- what people ask ---- */

void ctl_get_crontab(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const GetCrontabRequest *request = (const void *)message;
    GetCrontabReply reply = GET_CRONTAB_REPLY__INIT;
    uint32_t uid = request->has_uid ? request->uid : ask->who->uid;

    if (uid != ask->who->uid && !ask->who->is_admin) {
        ctl_fail(ask, ERR_PERMISSION);
        return;
    }
    reply.crontab = (Crontab *)(uintptr_t)state_crontab(ctl->state, uid);
    ask->ops->reply(ask, &reply.base);
}

static void answered(struct ctl *ctl, void *arg, const struct events *events, const struct err *err)
{
    struct ctl_ask *ask = arg;
    const struct event *answer = events ? ctl_answer(events) : NULL;
    const Crontab *crontab = state_crontab(ctl->state, ask->who->uid);
    JobsReply reply = JOBS_REPLY__INIT;
    struct err refused = { 0 };

    if (err || answer->code != ERR_OK) {
        if (!err)
            err_set(&refused, answer->code, "%s", answer->text);
        ask->ops->fail(ask, err ? err : &refused);
        return;
    }
    reply.results = ARENA_ARRAY(ask->arena, JobResult *, LIMIT_CRON_JOBS);
    for (size_t i = 0; crontab && i < crontab->n_job_ids; i++) {
        JobResult *one = ARENA_NEW(ask->arena, JobResult);
        job_result__init(one);
        one->id = arena_printf(ask->arena, "%u", crontab->job_ids[i]);
        reply.results[reply.n_results++] = one;
    }
    ask->ops->reply(ask, &reply.base);
}

void ctl_set_crontab(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const SetCrontabRequest *request = (const void *)message;
    CmdCrontab msg = CMD_CRONTAB__INIT;
    Command command = CTL_COMMAND(CRONTAB, .crontab = &msg);
    JobOwner owner = JOB_OWNER__INIT;
    size_t count = request->n_jobs;
    struct err err = { 0 };

    if (count > LIMIT_CRON_JOBS || count != request->n_lines) {
        ctl_fail(ask, ERR_TOO_MANY);
        return;
    }
    ctl_submit_owner(ask->who, &owner);
    PackedComponent *packed = ARENA_ARRAY(ask->arena, PackedComponent, count + 1);
    msg.jobs = ARENA_ARRAY(ask->arena, PackedComponent *, count + 1);
    struct log_payload *payloads = ARENA_ARRAY(ask->arena, struct log_payload, count + 1);
    for (size_t i = 0; i < count; i++) {
        JobSpec *spec = request->jobs[i]->spec;
        if (ctl_submit_check(ctl, ask, request->jobs[i], &err) == 0 && spec->cron) {
            spec->has_begin_us = true;
            spec->begin_us = next_us((struct span){ spec->cron, strlen(spec->cron) }, ctl_now(ctl));
            if (!spec->begin_us)
                err_set(&err, ERR_SYNTAX, "line %u: '%s' names no time", request->lines[i],
                        spec->cron);
        } else if (!err.code) {
            err_code(&err, ERR_BAD_MESSAGE);
        }
        if (err.code) {
            ask->ops->fail(ask, &err);
            return;
        }
        ctl_submit_pack(ctl, ask->arena, request->jobs[i], &packed[i], &payloads[i]);
        msg.jobs[i] = &packed[i];
    }
    msg.owner = &owner;
    msg.text = request->text;
    msg.n_jobs = msg.n_lines = count;
    msg.lines = request->lines;
    ctl_stamp_ask(ask, &command);
    ctl_propose_payloads(ctl, &command, payloads, (uint32_t)count, answered, ask);
}
