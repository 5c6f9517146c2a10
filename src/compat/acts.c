// SPDX-License-Identifier: Apache-2.0
/*
 * acts.c - what is done to jobs and steps: end, signal, suspend, requeue, notify, complete
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "compat/compat.h"
#include "schema/job_view.h"
#include "schema/names.h"
#include "sys/clock.h"
#include "sys/files.h"

/* ---- ending and signalling ---- */

struct kill {
    uint32_t job_id;
    const char *id;
    uint16_t signal, flags;
};

static int kill_work(struct session *session, void *args, struct err *err)
{
    const struct kill *asked = args;
    CancelJobsRequest request = CANCEL_JOBS_REQUEST__INIT;
    char *id = asked->id ? (char *)asked->id : arena_printf(&session->arena, "%u", asked->job_id);
    JobsReply *reply;

    request.ids = &id;
    request.n_ids = 1;
    request.has_signal = asked->signal && asked->signal != SIGKILL;
    request.signal = asked->signal;
    request.has_batch_only = request.batch_only = (asked->flags & KILL_JOB_BATCH) != 0;
    request.has_full = request.full = (asked->flags & KILL_FULL_JOB) != 0;
    if (compat_call(session, "CancelJobs", &request.base, &jobs_reply__descriptor,
                    (ProtobufCMessage **)&reply, err) < 0)
        return -1;
    return compat_first_error(reply, err);
}

int slurm_kill_job(JOB_PARAM, uint16_t signal_, uint16_t flags)
{
    return compat_run(kill_work,
                      &(struct kill){ .job_id = JOB_ID, .signal = signal_, .flags = flags });
}

int slurm_kill_job2(const char *job_id, uint16_t signal_, uint16_t flags, const char *sibling)
{
    if (str_is_empty(job_id)) {
        errno = EINVAL;
        return SLURM_ERROR;
    }
    return compat_run(kill_work, &(struct kill){ .id = job_id, .signal = signal_, .flags = flags });
}

int slurm_signal_job(JOB_PARAM, uint16_t signal_)
{
    return compat_run(kill_work, &(struct kill){ .job_id = JOB_ID, .signal = signal_ });
}

struct step_act {
    uint32_t job_id, step;
    uint32_t signal; /* 0: end it */
};

static int step_work(struct session *session, void *args, struct err *err)
{
    const struct step_act *asked = args;
    SignalStepRequest request = SIGNAL_STEP_REQUEST__INIT;
    DoneReply *reply;

    request.id = arena_printf(&session->arena, "%u", asked->job_id);
    request.has_step = true;
    request.step = asked->step;
    request.has_signal = asked->signal && asked->signal != SIGKILL;
    request.signal = asked->signal;
    return compat_call(session, "SignalStep", &request.base, &done_reply__descriptor,
                       (ProtobufCMessage **)&reply, err);
}

#if COMPAT_API == 38
int slurm_kill_job_step(uint32_t job_id, uint32_t step_id, uint16_t signal_)
{
    return compat_run(step_work, &(struct step_act){ job_id, step_id, signal_ });
}
#elif COMPAT_API == 42
int slurm_kill_job_step(uint32_t job_id, uint32_t step_id, uint16_t signal_, uint16_t flags)
{
    return compat_run(step_work, &(struct step_act){ job_id, step_id, signal_ });
}
#else
int slurm_kill_job_step(slurm_step_id_t *step_id, uint16_t signal_, uint16_t flags)
{
    NEED(step_id, SLURM_ERROR);
    return compat_run(step_work, &(struct step_act){ step_id->job_id, step_id->step_id, signal_ });
}
#endif

#if COMPAT_API < 45
int slurm_signal_job_step(uint32_t job_id, uint32_t step_id, uint32_t signal_)
{
    return compat_run(step_work, &(struct step_act){ job_id, step_id, signal_ });
}

int slurm_terminate_job_step(uint32_t job_id, uint32_t step_id)
{
    return compat_run(step_work, &(struct step_act){ job_id, step_id, 0 });
}
#else
int slurm_signal_job_step(slurm_step_id_t *step_id, uint32_t signal_)
{
    NEED(step_id, SLURM_ERROR);
    return compat_run(step_work, &(struct step_act){ step_id->job_id, step_id->step_id, signal_ });
}

int slurm_terminate_job_step(slurm_step_id_t *step_id)
{
    NEED(step_id, SLURM_ERROR);
    return compat_run(step_work, &(struct step_act){ step_id->job_id, step_id->step_id, 0 });
}
#endif

/* ---- suspending, requeueing ---- */

struct act {
    uint32_t job_id;
    char *id;
    uint32_t flags;
    bool resume;
    job_array_resp_msg_t **out;
};

static int finish(const struct act *asked, const JobsReply *reply, struct err *err)
{
    if (!asked->out)
        return compat_first_error(reply, err);
    *asked->out = compat_results(reply);
    return 0;
}

static int suspend_work(struct session *session, void *args, struct err *err)
{
    const struct act *asked = args;
    SuspendRequest request = SUSPEND_REQUEST__INIT;
    char *id = asked->id ? asked->id : arena_printf(&session->arena, "%u", asked->job_id);
    JobsReply *reply;

    request.ids = &id;
    request.n_ids = 1;
    request.has_resume = request.resume = asked->resume;
    if (compat_call(session, "Suspend", &request.base, &jobs_reply__descriptor,
                    (ProtobufCMessage **)&reply, err) < 0)
        return -1;
    return finish(asked, reply, err);
}

int slurm_suspend(JOB_PARAM)
{
    return compat_run(suspend_work, &(struct act){ .job_id = JOB_ID });
}

int slurm_resume(JOB_PARAM)
{
    return compat_run(suspend_work, &(struct act){ .job_id = JOB_ID, .resume = true });
}

int slurm_suspend2(char *job_id, job_array_resp_msg_t **resp)
{
    NEED(job_id && resp, SLURM_ERROR);
    return compat_run(suspend_work, &(struct act){ .id = job_id, .out = resp });
}

int slurm_resume2(char *job_id, job_array_resp_msg_t **resp)
{
    NEED(job_id && resp, SLURM_ERROR);
    return compat_run(suspend_work, &(struct act){ .id = job_id, .resume = true, .out = resp });
}

static int requeue_work(struct session *session, void *args, struct err *err)
{
    const struct act *asked = args;
    RequeueRequest request = REQUEUE_REQUEST__INIT;
    char *id = asked->id ? asked->id : arena_printf(&session->arena, "%u", asked->job_id);
    JobsReply *reply;

    request.ids = &id;
    request.n_ids = 1;
    request.has_hold = request.hold = (asked->flags & JOB_REQUEUE_HOLD) != 0;
    request.has_special_exit = request.special_exit = (asked->flags & JOB_SPECIAL_EXIT) != 0;
    if (compat_call(session, "Requeue", &request.base, &jobs_reply__descriptor,
                    (ProtobufCMessage **)&reply, err) < 0)
        return -1;
    return finish(asked, reply, err);
}

int slurm_requeue(JOB_PARAM, uint32_t flags)
{
    return compat_run(requeue_work, &(struct act){ .job_id = JOB_ID, .flags = flags });
}

int slurm_requeue2(char *job_id, uint32_t flags, job_array_resp_msg_t **resp)
{
    NEED(job_id && resp, SLURM_ERROR);
    return compat_run(requeue_work, &(struct act){ .id = job_id, .flags = flags, .out = resp });
}

static int top_work(struct session *session, void *args, struct err *err)
{
    UpdateJobRequest request = UPDATE_JOB_REQUEST__INIT;
    JobsReply *reply;

    request.id = args;
    request.has_top = request.top = true;
    if (compat_call(session, "UpdateJob", &request.base, &jobs_reply__descriptor,
                    (ProtobufCMessage **)&reply, err) < 0)
        return -1;
    return compat_first_error(reply, err);
}

int slurm_top_job(char *job_id_str)
{
    NEED(job_id_str, SLURM_ERROR);
    return compat_run(top_work, job_id_str);
}

/* ---- completing ---- */

struct complete {
    uint32_t job_id, code;
};

static int complete_work(struct session *session, void *args, struct err *err)
{
    const struct complete *asked = args;
    FinishJobRequest request = FINISH_JOB_REQUEST__INIT;
    DoneReply *reply;

    request.has_job_id = request.has_exit_status = true;
    request.job_id = asked->job_id;
    request.exit_status = asked->code;
    return compat_call(session, "FinishJob", &request.base, &done_reply__descriptor,
                       (ProtobufCMessage **)&reply, err);
}

#if COMPAT_API < 45
int slurm_complete_job(uint32_t job_id, uint32_t job_return_code)
{
    return compat_run(complete_work, &(struct complete){ job_id, job_return_code });
}
#else
int slurm_complete_job(slurm_step_id_t *step_id, uint32_t job_return_code)
{
    NEED(step_id, SLURM_ERROR);
    return compat_run(complete_work, &(struct complete){ step_id->job_id, job_return_code });
}
#endif

/* ---- questions about one job ---- */

struct ask {
    uint32_t job_id;
    int64_t end_us;
    uint32_t state, flags;
    FILE *out;
};

static int ask_work(struct session *session, void *args, struct err *err)
{
    struct ask *asked = args;
    GetJobReply *reply;

    if (compat_get_job(session, asked->job_id, &reply, err) < 0)
        return -1;
    if (!reply->n_jobs)
        return err_code(err, ERR_INVALID_JOB_ID);
    asked->end_us = job_end_us(reply->jobs[0], clock_wall_us());
    asked->state = job_status(reply->jobs[0])->state;
    asked->flags = job_status(reply->jobs[0])->flags;
    return 0;
}

int slurm_job_node_ready(JOB_PARAM)
{
    struct ask asked = { .job_id = JOB_ID };

    if (compat_run(ask_work, &asked) != SLURM_SUCCESS)
        return errno == ESLURM_INVALID_JOB_ID ? READY_JOB_FATAL : READY_JOB_ERROR;
    if (asked.state == JOB_PENDING)
        return 0;
    if (asked.state != JOB_RUNNING && asked.state != JOB_SUSPENDED)
        return READY_JOB_FATAL;
    return READY_JOB_STATE | (asked.flags & JOB_FLAG_CONFIGURING ? 0 : READY_NODE_STATE);
}

static uint32_t job_or_own(uint32_t job_id)
{
    const char *own = getenv("SLURM_JOB_ID");

    return job_id == 0 && own ? (uint32_t)strtoul(own, NULL, 10) : job_id;
}

/* Without a number: the job that this process is in. */
int slurm_get_end_time(JOB_PARAM, time_t *end_time_ptr)
{
    struct ask asked = { .job_id = job_or_own(JOB_ID) };

    if (!end_time_ptr) {
        errno = EINVAL;
        return SLURM_ERROR;
    }
    if (compat_run(ask_work, &asked) != SLURM_SUCCESS)
        return SLURM_ERROR;
    *end_time_ptr = compat_seconds(asked.end_us);
    return SLURM_SUCCESS;
}

long slurm_get_rem_time(JOB_PARAM)
{
    struct ask asked = { .job_id = job_or_own(JOB_ID) };

    if (compat_run(ask_work, &asked) != SLURM_SUCCESS)
        return -1;
    if (!asked.end_us)
        return INFINITE;
    return (long)MAX((asked.end_us - clock_wall_us()) / 1000000, 0);
}

static int script_work(struct session *session, void *args, struct err *err)
{
    const struct ask *asked = args;
    GetJobRequest request = GET_JOB_REQUEST__INIT;
    GetJobReply *reply;

    request.id = arena_printf(&session->arena, "%u", asked->job_id);
    request.has_payload = request.payload = true;
    if (compat_call(session, "GetJob", &request.base, &get_job_reply__descriptor,
                    (ProtobufCMessage **)&reply, err) < 0)
        return -1;
    if (!reply->payload || !reply->payload->has_script)
        return err_code(err, ERR_NO_SCRIPT);
    const ProtobufCBinaryData *script = &reply->payload->script;
    if (script->len && fwrite(script->data, 1, script->len, asked->out) != script->len)
        return err_errno(err, errno, "batch script");
    return 0;
}

int slurm_job_batch_script(FILE *out, JOB_PARAM)
{
    if (!out) {
        errno = EINVAL;
        return SLURM_ERROR;
    }
    return compat_run(script_work, &(struct ask){ .job_id = JOB_ID, .out = out });
}

/* ---- which job a process is in ---- */

/* Spur's cgroups are called job_NUMBER, as Slurm's. */
static bool job_of_cgroup(const char *text, uint32_t *job_id)
{
    const char *at = text;

    while ((at = strstr(at, "job_"))) {
        char *end;
        unsigned long number = strtoul(at + 4, &end, 10);
        if (end != at + 4 && number) {
            *job_id = (uint32_t)number;
            return true;
        }
        at += 4;
    }
    return false;
}

static bool job_of_environment(pid_t pid, uint32_t *job_id)
{
    static const char name[] = "SLURM_JOB_ID=";
    struct str text = { 0 };
    char path[64];
    bool found = false;

    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    if (file_read(path, LIMIT_ENV_BYTES, &text, NULL) == 0) {
        for (size_t at = 0; !found && at < text.len; at += strlen(text.data + at) + 1) {
            if (str_starts(text.data + at, name)) {
                *job_id = (uint32_t)strtoul(text.data + at + sizeof(name) - 1, NULL, 10);
                found = *job_id != 0;
            }
        }
    }
    str_done(&text);
    return found;
}

int slurm_pid2jobid(pid_t job_pid, JOB_POINTER)
{
    GUARD(SLURM_ERROR);
    struct str text = { 0 };
    char path[64];
    uint32_t found = 0;

    snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)job_pid);
    bool there =
        file_read(path, 1 << 16, &text, NULL) == 0 && job_of_cgroup(str_text(&text), &found);
    str_done(&text);
    if (!there && !job_of_environment(job_pid, &found)) {
        errno = ESLURM_INVALID_JOB_ID;
        return SLURM_ERROR;
    }
    JOB_ID_AT = found;
    return SLURM_SUCCESS;
}

/* ---- messages to a job ---- */

struct notify {
    uint32_t job_id;
    char *text;
};

static int notify_work(struct session *session, void *args, struct err *err)
{
    const struct notify *asked = args;
    SignalStepRequest request = SIGNAL_STEP_REQUEST__INIT;
    ProtobufCMessage *reply;

    request.id = arena_printf(&session->arena, "%u", asked->job_id);
    request.text = asked->text;
    return compat_call(session, "SignalStep", &request.base, &done_reply__descriptor, &reply, err);
}

/* Written where the job writes its errors. */
int slurm_notify_job(JOB_PARAM, char *message)
{
    NEED(message, SLURM_ERROR);
    return compat_run(notify_work, &(struct notify){ JOB_ID, message });
}
