/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_jobs.c - what people do with jobs: cancel, update, requeue, suspend
 */
#include "core/accounts.h"
#include "core/job.h"
#include "core/query.h"
#include "spurctld/ctl/ctl_bulk.h"

void ctl_fail(struct ctl_ask *ask, enum err_code code)
{
    struct err err = { 0 };

    err_code(&err, code);
    ask->ops->fail(ask, &err);
}

bool ctl_may_change(const struct ctl_ask *ask, const struct job *job)
{
    return job->owner->uid == ask->who->uid || ask->who->is_operator || ask->who->is_admin;
}

bool ctl_may_see_payload(const struct ctl_ask *ask, const struct job *job)
{
    return job->owner->uid == ask->who->uid || ask->who->is_admin;
}

static void fail_text(struct ctl_ask *ask, enum err_code code, const char *text)
{
    struct err err = { 0 };

    err_set(&err, code, "%s", text);
    ask->ops->fail(ask, &err);
}

static Command *new_command(struct ctl_ask *ask, Command__WhatCase what)
{
    Command *command = ARENA_NEW(ask->arena, Command);

    command__init(command);
    command->what_case = what;
    return command;
}

/* ---- cancel ---- */

static bool has_filter(const CancelJobsRequest *r)
{
    return r->n_users || r->n_accounts || r->n_partitions || r->n_qos || r->n_names ||
           r->n_states || r->n_nodes || r->n_reservations || r->me;
}

static void cancel_filter(const CancelJobsRequest *r, const struct ctl_ask *ask,
                          ListJobsRequest *filter)
{
    char **me = ARENA_ARRAY(ask->arena, char *, 1);

    filter->n_users = r->n_users;
    filter->users = r->users;
    if (r->me) {
        me[0] = arena_printf(ask->arena, "%u", ask->who->uid);
        filter->n_users = 1;
        filter->users = me;
    }
    filter->n_accounts = r->n_accounts;
    filter->accounts = r->accounts;
    filter->n_partitions = r->n_partitions;
    filter->partitions = r->partitions;
    filter->n_qos = r->n_qos;
    filter->qos = r->qos;
    filter->n_names = r->n_names;
    filter->names = r->names;
    filter->n_states = r->n_states;
    filter->states = r->states;
    filter->n_nodes = r->n_nodes;
    filter->nodes = r->nodes;
    filter->n_reservations = r->n_reservations;
    filter->reservations = r->reservations;
    filter->n_ids = r->n_ids;
    filter->ids = r->ids;
    filter->has_hidden_too = filter->hidden_too = true;
}

void ctl_cancel(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const CancelJobsRequest *request = (const void *)message;
    CmdCancel *cancel = ARENA_NEW(ask->arena, CmdCancel);
    Command *command = new_command(ask, COMMAND__WHAT_CANCEL);

    cmd_cancel__init(command->cancel = cancel);
    cancel->has_by_uid = true;
    cancel->by_uid = ask->who->uid;
    cancel->has_signal = request->has_signal;
    cancel->signal = request->signal;
    cancel->has_batch_only = cancel->has_full = true;
    cancel->batch_only = request->batch_only;
    cancel->full = request->full;
    if (request->n_wckeys) { /* keys are not among what jobs are found by */
        struct err err = { 0 };
        err_set(&err, ERR_UNSUPPORTED, "wckeys: list the jobs with this key and name them");
        ask->ops->fail(ask, &err);
        return;
    }
    if (has_filter(request)) {
        ListJobsRequest *filter = ARENA_NEW(ask->arena, ListJobsRequest);
        list_jobs_request__init(filter);
        cancel_filter(request, ask, filter);
        ctl_bulk_filter(ctl, ask, command, filter);
    } else if (request->n_ids) {
        cancel->has_component = cancel->component = !state_config(ctl->state)->whole_hetjob;
        ctl_bulk_ids(ctl, ask, command, request->ids, request->n_ids);
    } else {
        fail_text(ask, ERR_INVALID, "No job identification provided");
    }
}

/* ---- update, hold, release ---- */

/* The job that an id names alone; NULL: a list of tasks, or none. */
static const struct job *job_named(const struct ctl *ctl, const char *id)
{
    struct job_ref ref;
    uint64_t task;

    if (!id || job_ref_parse(id, &ref, NULL) < 0)
        return NULL;
    if (!ref.has_tasks)
        return state_job(ctl->state, ref.has_offset ? ref.id + ref.offset : ref.id);
    CLEANUP(freep) char *text = mem_strndup(ref.tasks, ref.tasks_len);
    return str_to_u64(text, UINT32_MAX, &task) ? state_task(ctl->state, ref.id, (uint32_t)task)
                                               : NULL;
}

static JobSpec *own_change(struct ctl_ask *ask, CmdUpdateJob *update)
{
    JobSpec *change = ARENA_NEW(ask->arena, JobSpec);

    job_spec__init(change);
    if (update->change)
        *change = *update->change;
    return update->change = change;
}

/*
 * scontrol top: before all other waiting jobs of its owner. Its priority is raised by its nice value, as
 * far as need be and no further. False: there is nothing to do, or it is not this one's to change.
 */
static bool move_to_top(const struct ctl *ctl, struct ctl_ask *ask, const struct job *job,
                        CmdUpdateJob *update)
{
    uint32_t own = job_priority(ctl->state, job), highest = 0;

    for (const struct job *at = state_job_from(ctl->state, 0); at;
         at = state_job_from(ctl->state, (uint64_t)at->id + 1)) {
        if (at != job && at->owner->uid == job->owner->uid && job_phase(at) == PHASE_PENDING)
            highest = MAX(highest, job_priority(ctl->state, at));
    }
    update->has_top = update->top = false;
    if (own > highest || highest >= UINT32_MAX - 2)
        return false;
    JobSpec *change = own_change(ask, update);
    if (job->direct_priority) {
        change->has_priority = true;
        change->priority = highest + 1;
    } else {
        int64_t nice = (int64_t)job->nice - ((int64_t)highest + 1 - own);
        change->has_nice = true;
        change->nice = (int32_t)MAX(nice, -(INT32_MAX - 2));
    }
    update->by_admin = true; /* who may do so was asked before */
    return true;
}

void ctl_update_job(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const UpdateJobRequest *request = (const void *)message;
    CmdUpdateJob *update = ARENA_NEW(ask->arena, CmdUpdateJob);
    Command *command = new_command(ask, COMMAND__WHAT_UPDATE_JOB);
    bool privileged = ask->who->is_operator || ask->who->is_admin;

    if ((request->admin_comment || request->has_site_factor || request->reset_accrue) &&
        !privileged) {
        ctl_fail(ask, ERR_PERMISSION);
        return;
    }
    if (request->top && !privileged && !state_config(ctl->state)->enable_user_top) {
        ctl_fail(ask, ERR_DISABLED);
        return;
    }
    struct err err = { 0 };
    if ((request->change && ctl_check_texts(request->change, &err) < 0) ||
        ctl_check_text("AdminComment", request->admin_comment, &err) < 0) {
        ask->ops->fail(ask, &err);
        return;
    }
    cmd_update_job__init(command->update_job = update);
    update->has_by_uid = update->has_by_admin = true;
    update->by_uid = ask->who->uid;
    update->by_admin = privileged;
    update->change = request->change;
    update->n_clear = request->n_clear;
    update->clear = request->clear;
    update->has_hold = request->has_hold;
    update->hold = request->hold;
    update->admin_comment = request->admin_comment;
    update->has_site_factor = request->has_site_factor;
    update->site_factor = request->site_factor;
    update->has_num_cpus = request->has_num_cpus;
    update->num_cpus = request->num_cpus;
    update->has_end_us = request->has_end_us;
    update->end_us = request->end_us;
    update->has_reset_accrue = update->reset_accrue = request->reset_accrue;
    if (request->has_num_nodes) { /* another word for the same */
        update->change = ARENA_NEW(ask->arena, JobSpec);
        job_spec__init(update->change);
        if (request->change)
            *update->change = *request->change;
        update->change->has_min_nodes = update->change->has_max_nodes = true;
        update->change->min_nodes = update->change->max_nodes = request->num_nodes;
    }
    update->has_top = request->has_top;
    update->top = request->top;
    const struct job *named = job_named(ctl, request->id);
    if (request->top && named && job_phase(named) == PHASE_PENDING && ctl_may_change(ask, named) &&
        !move_to_top(ctl, ask, named, update)) {
        JobsReply none = JOBS_REPLY__INIT;
        ask->ops->reply(ask, &none.base);
        return;
    }
    /* A held job that is given a priority is released with it. */
    if (request->change && request->change->has_priority && request->change->priority > 0 &&
        !request->has_hold && named && named->hold && job_phase(named) == PHASE_PENDING) {
        update->has_hold = true;
        update->hold = 0;
    }
    if (request->id) {
        ctl_bulk_ids(ctl, ask, command, (char **)&request->id, 1);
    } else if (request->name) {
        ListJobsRequest *filter = ARENA_NEW(ask->arena, ListJobsRequest);
        list_jobs_request__init(filter);
        filter->n_names = 1;
        filter->names = (char **)&request->name;
        filter->n_users = request->user ? 1 : 0;
        filter->users = (char **)&request->user;
        filter->has_hidden_too = filter->hidden_too = true;
        ctl_bulk_filter(ctl, ask, command, filter);
    } else {
        fail_text(ask, ERR_INVALID_JOB_ID, "no job is named");
    }
}

/* ---- requeue, suspend ---- */

void ctl_requeue(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const RequeueRequest *request = (const void *)message;
    CmdRequeue *requeue = ARENA_NEW(ask->arena, CmdRequeue);
    Command *command = new_command(ask, COMMAND__WHAT_REQUEUE);

    cmd_requeue__init(command->requeue = requeue);
    requeue->has_hold = requeue->has_special_exit = requeue->has_by_uid = true;
    requeue->hold = request->hold;
    requeue->special_exit = request->special_exit;
    requeue->has_incomplete_only = request->has_incomplete_only;
    requeue->incomplete_only = request->incomplete_only;
    requeue->by_uid = ask->who->uid;
    ctl_bulk_ids(ctl, ask, command, request->ids, request->n_ids);
}

void ctl_suspend(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const SuspendRequest *request = (const void *)message;
    CmdSuspend *suspend = ARENA_NEW(ask->arena, CmdSuspend);
    Command *command = new_command(ask, COMMAND__WHAT_SUSPEND);

    if (!ask->who->is_operator && !ask->who->is_admin) { /* as in Slurm: not for plain users */
        ctl_fail(ask, ERR_PERMISSION);
        return;
    }
    cmd_suspend__init(command->suspend = suspend);
    suspend->has_resume = suspend->has_by_uid = true;
    suspend->resume = request->resume;
    suspend->by_uid = ask->who->uid;
    ctl_bulk_ids(ctl, ask, command, request->ids, request->n_ids);
}
