/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_jobs.c - what people do with jobs: submit, cancel, update, requeue, suspend
 *
 * (1) The owner of a job is who asked, as rpc proved it; nothing in a request says so.
 * (2) Who may change a job: its owner, operators, administrators.
 * (3) A request about many jobs becomes few commands; each job gets a result of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "spurctld/ctl_priv.h"

enum { IDS_PER_COMMAND = 1000 };

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

/* ---- submit ---- */

static void submit_done(struct ctl *ctl, void *arg, const struct events *events,
                        const struct err *err)
{
    struct ctl_ask *ask = arg;
    SubmitJobReply reply = SUBMIT_JOB_REPLY__INIT;

    (void)ctl;
    if (err) {
        ask->ops->fail(ask, err);
        return;
    }
    const struct event *answer = ctl_answer(events);
    if (answer->code) {
        struct err refused = { 0 };
        err_set(&refused, answer->code, "%s", answer->text ? answer->text : err_text(answer->code));
        ask->ops->fail(ask, &refused);
        return;
    }
    reply.has_job_id = true;
    reply.job_id = answer->job_id;
    ask->ops->reply(ask, &reply.base);
}

static void test_only(struct ctl *ctl, struct ctl_ask *ask, const JobOwner *owner,
                      const JobSpec *asked)
{
    SubmitJobReply reply = SUBMIT_JOB_REPLY__INIT;
    const struct partition *fallback = state_default_partition(ctl->state);
    JobSpec filled = *asked, *spec = &filled;
    struct explanation about = { 0 };
    struct err err = { 0 };

    if (str_is_empty(spec->partition) && fallback) /* as a submission would */
        spec->partition = fallback->spec->name;
    if (sched_test(ctl->sched, owner, spec, ctl_now(ctl), ask->arena, &about, &err) < 0) {
        ask->ops->fail(ask, &err);
        return;
    }
    if (about.never) {
        err_set(&err, ERR_NODE_CONFIG_UNAVAILABLE, "%s", about.sentence);
        ask->ops->fail(ask, &err);
        return;
    }
    reply.has_job_id = true;
    reply.job_id = state_head(ctl->state).next_job_id;
    reply.has_planned_start_us = true;
    reply.planned_start_us = about.planned_start_us ? about.planned_start_us : ctl_now(ctl);
    reply.planned_nodes = (char *)about.planned_nodes;
    reply.message = (char *)about.sentence;
    reply.partition = spec->partition;
    ask->ops->reply(ask, &reply.base);
}

static void fill_owner(const struct ctl_who *who, JobOwner *owner)
{
    owner->has_uid = owner->has_gid = true;
    owner->uid = who->uid;
    owner->gid = who->gid;
    owner->user = (char *)who->user;
    owner->group = (char *)who->group;
    owner->n_gids = who->gid_count;
    owner->gids = (uint32_t *)who->gids;
}

/* What a payload may be is checked here once; the node trusts it. */
static int check_payload(const SubmitJobPackedComponent *component, struct err *err)
{
    bool batch = component->spec->batch;

    if (component->payload.len > LIMIT_SCRIPT_BYTES + LIMIT_ENV_BYTES + 65536)
        return err_set(err, ERR_TOO_LARGE, "script and environment have %zu bytes, at most %d",
                       component->payload.len, LIMIT_SCRIPT_BYTES + LIMIT_ENV_BYTES);
    if (batch && !component->payload.len)
        return err_code(err, ERR_NO_SCRIPT);
    return 0;
}

void ctl_submit(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const SubmitJobPacked *request = (const void *)message;
    size_t count = request->n_components;
    JobOwner owner = JOB_OWNER__INIT;
    struct err err = { 0 };

    if (count == 0 || count > LIMIT_HET_COMPONENTS) {
        ctl_fail(ask, count ? ERR_TOO_MANY : ERR_NO_SCRIPT);
        return;
    }
    fill_owner(ask->who, &owner); /* (1) */
    const JobSpec **specs = ARENA_ARRAY(ask->arena, const JobSpec *, count);
    PackedComponent *packed = ARENA_ARRAY(ask->arena, PackedComponent, count);
    PackedComponent **list = ARENA_ARRAY(ask->arena, PackedComponent *, count);
    struct log_payload *payloads = ARENA_ARRAY(ask->arena, struct log_payload, count);
    uint32_t payload_count = 0;
    for (size_t i = 0; i < count; i++) {
        SubmitJobPackedComponent *component = request->components[i];
        if (!component->spec)
            err_set(&err, ERR_BAD_MESSAGE, "component %zu has no spec", i);
        else
            check_payload(component, &err);
        if (err.code) {
            ask->ops->fail(ask, &err);
            return;
        }
        specs[i] = component->spec;
    }
    if (core_admit_submit(ctl->state, &owner, specs, count, ctl_now(ctl), &err) < 0) {
        ask->ops->fail(ask, &err);
        return;
    }
    if (request->test_only) {
        test_only(ctl, ask, &owner, specs[0]);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        ProtobufCBinaryData payload = request->components[i]->payload;
        size_t len = job_spec__get_packed_size(specs[i]);
        packed_component__init(list[i] = &packed[i]);
        packed[i].has_spec = true;
        packed[i].spec.len = len;
        packed[i].spec.data = arena_alloc(ask->arena, len + 1);
        job_spec__pack(specs[i], packed[i].spec.data);
        if (!payload.len)
            continue;
        packed[i].has_payload_digest = true;
        packed[i].payload_digest.len = LOG_DIGEST_BYTES;
        packed[i].payload_digest.data = arena_alloc(ask->arena, LOG_DIGEST_BYTES);
        ctl->io.digest(ctl->io.ctx, payload.data, payload.len, packed[i].payload_digest.data);
        payloads[payload_count++] =
            (struct log_payload){ packed[i].payload_digest.data,
                                  { (const char *)payload.data, payload.len } };
    }
    CmdSubmit submit = CMD_SUBMIT__INIT;
    submit.owner = &owner;
    submit.n_components = count;
    submit.components = list;
    Command command = CTL_COMMAND(SUBMIT, .submit = &submit);
    ctl_stamp_ask(ask, &command);
    ctl_propose_payloads(ctl, &command, payloads, payload_count, submit_done, ask);
}

/* ---- requests about many jobs ---- */

/* One request, several commands, one result a job; (3). */
struct many {
    struct ctl_ask *ask;
    unsigned waiting; /* commands not yet applied, and one while they are still being made */
    VEC(JobResult *) results;
    /* what becomes a command: exactly one is set */
    const CmdCancel *cancel;
    const CmdUpdateJob *update;
    const CmdRequeue *requeue;
    const CmdSuspend *suspend;
};

static void add_result(struct many *many, const char *id, enum err_code code, const char *text)
{
    JobResult *result = ARENA_NEW(many->ask->arena, JobResult);

    job_result__init(result);
    result->id = arena_strdup(many->ask->arena, id);
    result->has_code = result->has_slurm = true;
    result->code = code;
    result->slurm = (uint32_t)err_slurm(code);
    result->text = arena_strdup(many->ask->arena, text ? text : code ? err_text(code) : NULL);
    vec_push(&many->results, result);
}

static void many_step(struct many *many)
{
    JobsReply reply = JOBS_REPLY__INIT;

    if (--many->waiting)
        return;
    reply.n_results = many->results.len;
    reply.results = many->results.items;
    struct ctl_ask *ask = many->ask;
    JobResult **items = many->results.items;
    ask->ops->reply(ask, &reply.base); /* the arena, and `many` in it, are gone now */
    free(items);
}

struct many_command {
    struct many *many;
    const char *id;
};

static void many_done(struct ctl *ctl, void *arg, const struct events *events,
                      const struct err *err)
{
    struct many_command *one = arg;
    bool any = false;

    (void)ctl;
    if (err) {
        add_result(one->many, one->id, err->code, err->text);
    } else {
        char id[32];
        events_each(event, events)
        {
            if (event->kind != EVENT_REJECTED)
                continue;
            snprintf(id, sizeof(id), "%u", event->job_id);
            add_result(one->many, one->id ? one->id : id, event->code, event->text);
            any = true;
        }
        const struct event *answer = ctl_answer(events);
        if (!any && one->id)
            add_result(one->many, one->id, answer->code, answer->text);
    }
    many_step(one->many);
}

static void many_propose(struct ctl *ctl, struct many *many, const char *id, JobSelect *select)
{
    struct many_command *one = ARENA_NEW(many->ask->arena, struct many_command);
    Command command = COMMAND__INIT;
    CmdCancel cancel;
    CmdUpdateJob update;
    CmdRequeue requeue;
    CmdSuspend suspend;

    *one = (struct many_command){ many, id };
    if (many->cancel) {
        cancel = *many->cancel;
        cancel.jobs = select;
        command.what_case = COMMAND__WHAT_CANCEL;
        command.cancel = &cancel;
    } else if (many->update) {
        update = *many->update;
        update.jobs = select;
        command.what_case = COMMAND__WHAT_UPDATE_JOB;
        command.update_job = &update;
    } else if (many->requeue) {
        requeue = *many->requeue;
        requeue.jobs = select;
        command.what_case = COMMAND__WHAT_REQUEUE;
        command.requeue = &requeue;
    } else {
        suspend = *many->suspend;
        suspend.jobs = select;
        command.what_case = COMMAND__WHAT_SUSPEND;
        command.suspend = &suspend;
    }
    many->waiting++;
    command.has_uid = true;
    command.uid = many->ask->who->uid;
    ctl_propose(ctl, &command, many_done, one);
}

/* One id as a person wrote it. */
static void many_id(struct ctl *ctl, struct many *many, const char *id)
{
    struct job_ref ref;
    struct err err = { 0 };
    JobSelect select = JOB_SELECT__INIT;

    if (job_ref_parse(id, &ref, &err) < 0) {
        add_result(many, id, ERR_INVALID_JOB_ID, NULL);
        return;
    }
    uint32_t job_id = ref.has_offset ? ref.id + ref.offset : ref.id;
    const struct job *job = state_job(ctl->state, job_id);
    if (!job) {
        add_result(many, id, ERR_INVALID_JOB_ID, NULL);
        return;
    }
    if (!ctl_may_change(many->ask, job)) { /* (2) */
        add_result(many, id, ERR_PERMISSION, NULL);
        return;
    }
    select.n_job_ids = 1;
    select.job_ids = &job_id;
    if (ref.has_tasks)
        select.array_tasks = arena_strndup(many->ask->arena, ref.tasks, ref.tasks_len);
    many_propose(ctl, many, arena_strdup(many->ask->arena, id), &select);
}

static void many_flush(struct ctl *ctl, struct many *many, uint32_t *ids, size_t *count)
{
    JobSelect select = JOB_SELECT__INIT;

    if (!*count)
        return;
    select.n_job_ids = *count;
    select.job_ids = ids;
    many_propose(ctl, many, NULL, &select);
    *count = 0;
}

/* Every job that a filter matches and the asker may change. */
static int many_filter(struct ctl *ctl, struct many *many, const ListJobsRequest *filter,
                       struct err *err)
{
    struct query *query;
    struct query_cursor cursor = { 0 };
    uint32_t task, ids[IDS_PER_COMMAND];
    size_t count = 0;
    const struct job *job;

    if (query_new(ctl->state, filter, &query, err) < 0)
        return -(int)err->code;
    while ((job = query_next(query, ctl->state, &cursor, NULL, &task))) {
        if (!ctl_may_change(many->ask, job))
            continue;
        ids[count++] = job->id;
        if (count == IDS_PER_COMMAND)
            many_flush(ctl, many, ids, &count);
    }
    many_flush(ctl, many, ids, &count);
    query_free(query);
    return 0;
}

static struct many *many_new(struct ctl_ask *ask)
{
    struct many *many = ARENA_NEW(ask->arena, struct many);

    many->ask = ask;
    many->waiting = 1;
    return many;
}

/* ---- cancel ---- */

static bool has_filter(const CancelJobsRequest *r)
{
    return r->n_users || r->n_accounts || r->n_partitions || r->n_qos || r->n_names ||
           r->n_states || r->n_nodes || r->n_reservations || r->n_wckeys || r->me;
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
    struct many *many = many_new(ask);
    CmdCancel cancel = CMD_CANCEL__INIT;
    ListJobsRequest filter = LIST_JOBS_REQUEST__INIT;
    struct err err = { 0 };

    if (!request->n_ids && !has_filter(request)) {
        err_set(&err, ERR_INVALID, "No job identification provided");
        ask->ops->fail(ask, &err);
        return;
    }
    cancel.has_by_uid = true;
    cancel.by_uid = ask->who->uid;
    cancel.has_signal = request->has_signal;
    cancel.signal = request->signal;
    cancel.has_batch_only = cancel.has_full = true;
    cancel.batch_only = request->batch_only;
    cancel.full = request->full;
    many->cancel = &cancel;
    if (has_filter(request)) {
        cancel_filter(request, ask, &filter);
        if (many_filter(ctl, many, &filter, &err) < 0) {
            ask->ops->fail(ask, &err);
            return;
        }
    } else {
        for (size_t i = 0; i < request->n_ids; i++)
            many_id(ctl, many, request->ids[i]);
    }
    many_step(many);
}

/* ---- update, hold, release ---- */

void ctl_update_job(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const UpdateJobRequest *request = (const void *)message;
    struct many *many = many_new(ask);
    CmdUpdateJob update = CMD_UPDATE_JOB__INIT;
    struct err err = { 0 };
    bool privileged = ask->who->is_operator || ask->who->is_admin;

    if (request->admin_comment && !privileged) {
        ctl_fail(ask, ERR_PERMISSION);
        return;
    }
    update.has_by_uid = update.has_by_admin = true;
    update.by_uid = ask->who->uid;
    update.by_admin = privileged;
    update.change = request->change;
    update.n_clear = request->n_clear;
    update.clear = request->clear;
    update.has_hold = request->has_hold;
    update.hold = request->hold;
    update.admin_comment = request->admin_comment;
    update.has_num_nodes = request->has_num_nodes;
    update.num_nodes = request->num_nodes;
    update.has_top = request->has_top;
    update.top = request->top;
    many->update = &update;
    if (request->id) {
        many_id(ctl, many, request->id);
    } else if (request->name) {
        ListJobsRequest filter = LIST_JOBS_REQUEST__INIT;
        char *names[] = { request->name };
        filter.n_names = 1;
        filter.names = names;
        filter.has_hidden_too = filter.hidden_too = true;
        if (many_filter(ctl, many, &filter, &err) < 0) {
            ask->ops->fail(ask, &err);
            return;
        }
    } else {
        err_set(&err, ERR_INVALID_JOB_ID, "no job is named");
        ask->ops->fail(ask, &err);
        return;
    }
    many_step(many);
}

void ctl_requeue(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const RequeueRequest *request = (const void *)message;
    struct many *many = many_new(ask);
    CmdRequeue requeue = CMD_REQUEUE__INIT;

    requeue.has_hold = requeue.has_special_exit = requeue.has_by_uid = true;
    requeue.hold = request->hold;
    requeue.special_exit = request->special_exit;
    requeue.by_uid = ask->who->uid;
    many->requeue = &requeue;
    for (size_t i = 0; i < request->n_ids; i++)
        many_id(ctl, many, request->ids[i]);
    many_step(many);
}

void ctl_suspend(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const SuspendRequest *request = (const void *)message;
    struct many *many = many_new(ask);
    CmdSuspend suspend = CMD_SUSPEND__INIT;

    if (!ask->who->is_operator && !ask->who->is_admin) { /* as in Slurm: not for plain users */
        ctl_fail(ask, ERR_PERMISSION);
        return;
    }
    suspend.has_resume = suspend.has_by_uid = true;
    suspend.resume = request->resume;
    suspend.by_uid = ask->who->uid;
    many->suspend = &suspend;
    for (size_t i = 0; i < request->n_ids; i++)
        many_id(ctl, many, request->ids[i]);
    many_step(many);
}
