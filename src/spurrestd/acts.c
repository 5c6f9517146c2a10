/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acts.c - what is done to jobs: cancelled, held, released, requeued, suspended, updated
 */
#include <string.h>

#include "proto/controller.pb-c.h"
#include "schema/names.h"
#include "spurrestd/answer.h"
#include "spurrestd/ask.h"
#include "spurrestd/body.h"
#include "spurrestd/job_desc.h"
#include "spurrestd/params.h"
#include "spurrestd/routes.h"

/* ---- answers ---- */

static const JobResult *first_failure(const JobsReply *reply)
{
    for (size_t i = 0; i < reply->n_results; i++) {
        if (reply->results[i]->code)
            return reply->results[i];
    }
    return NULL;
}

static const char *result_text(const JobResult *result)
{
    return !str_is_empty(result->text) ? result->text : err_text(result->code);
}

static void add_status(struct jsonw *json, const JobResult *result)
{
    uint64_t id = 0;
    char number[16] = "";

    snprintf(number, sizeof(number), "%.*s",
             (int)strspn(result->id ? result->id : "", "0123456789"), result->id ? result->id : "");
    str_to_u64(number, UINT32_MAX, &id);
    jsonw_object(json, NULL);
    jsonw_object(json, "error");
    jsonw_text(json, "string", result->code ? err_text(result->code) : "");
    jsonw_number(json, "code", result->slurm);
    jsonw_text(json, "message", result->code ? result_text(result) : "");
    jsonw_object_end(json);
    jsonw_text(json, "step_id", result->id);
    jsonw_set(json, "job_id", id > 0, false, (int64_t)id);
    jsonw_object(json, "federation");
    jsonw_text(json, "sibling", "");
    jsonw_object_end(json);
    jsonw_object_end(json);
}

/* One job was meant: its failure is the answer's. */
static bool failed_alone(struct exchange *x, const JobsReply *reply)
{
    const JobResult *failure = first_failure(reply);
    struct err err = { 0 };

    if (!failure || reply->n_results > 1)
        return false;
    err_set(&err, failure->code, "%s", result_text(failure));
    answer_error(x, &err, NULL);
    return true;
}

static void add_results(struct jsonw *json, const JobsReply *reply)
{
    jsonw_list(json, "results");
    for (size_t i = 0; i < reply->n_results; i++) {
        const JobResult *result = reply->results[i];
        jsonw_object(json, NULL);
        jsonw_text(json, "job_id", result->id);
        jsonw_number(json, "error_code", result->slurm);
        jsonw_text(json, "error", result->code ? result_text(result) : "");
        jsonw_object_end(json);
    }
    jsonw_list_end(json);
}

static void on_native(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const JobsReply *reply = (const void *)message;

    if (err) {
        answer_error(x, err, NULL);
        return;
    }
    if (failed_alone(x, reply))
        return;
    struct answer *answer = answer_new(x);
    add_results(&answer->json, reply);
    answer_send(answer);
}

/* Slurm answers 200 and names what could not be ended. */
static void on_killed(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const JobsReply *reply = (const void *)message;
    bool one = x->args[0] != NULL;

    if (err && !(one && err->code == ERR_INVALID_JOB_ID)) {
        answer_error(x, err, NULL);
        return;
    }
    if (err || (one && first_failure(reply) && first_failure(reply)->code == ERR_INVALID_JOB_ID)) {
        answer_failed(
            x, 404, err_slurm(ERR_INVALID_JOB_ID), err_text(ERR_INVALID_JOB_ID),
            arena_printf(&x->arena, "Unable to kill JobId=%s", x->args[0] ? x->args[0] : ""), NULL);
        return;
    }
    struct answer *answer = answer_new(x);
    jsonw_list(&answer->json, "status");
    for (size_t i = 0; i < reply->n_results; i++) {
        if (reply->results[i]->code || !one)
            add_status(&answer->json, reply->results[i]);
    }
    jsonw_list_end(&answer->json);
    answer_send(answer);
}

/* ---- cancel ---- */

static bool read_signal(struct exchange *x, const char *text, CancelJobsRequest *request)
{
    struct err err = { 0 };

    if (str_is_empty(text))
        return true;
    request->has_signal = signal_find(text, &request->signal);
    if (request->has_signal)
        return true;
    err_set(&err, ERR_INVALID, "'%.32s' is not a signal", text);
    answer_error(x, &err, NULL);
    return false;
}

static void send_cancel(struct exchange *x, CancelJobsRequest *request)
{
    const struct ask_call call = { .method = "CancelJobs",
                                   .message = &request->base,
                                   .reply = &jobs_reply__descriptor,
                                   .change = true,
                                   .done = x->version ? on_killed : on_native };
    ask_start(x, &call);
}

void delete_job(struct exchange *x)
{
    CancelJobsRequest *request = ARENA_NEW(&x->arena, CancelJobsRequest);
    const char *flags = exchange_query(x, "flags");

    cancel_jobs_request__init(request);
    if (params_bad_job(x) || !read_signal(x, exchange_query(x, "signal"), request))
        return;
    request->ids = (char **)(uintptr_t)&x->args[0];
    request->n_ids = 1;
    if (flags && strstr(flags, "BATCH_JOB"))
        request->has_batch_only = request->batch_only = true;
    if (flags && strstr(flags, "FULL_JOB"))
        request->has_full = request->full = true;
    send_cancel(x, request);
}

static char **one_of(struct exchange *x, const json_t *body, const char *name, size_t *count)
{
    const char *text = json_string_value(json_object_get(body, name));

    return params_list(x, text && *text ? arena_strdup(&x->arena, text) : NULL, count);
}

static void read_ids(struct exchange *x, const json_t *list, char ***ids, size_t *count)
{
    json_t *item;
    size_t i;

    *ids = ARENA_ARRAY(&x->arena, char *, json_array_size(list) + 1);
    json_array_foreach((json_t *)(uintptr_t)list, i, item)
    {
        if (json_is_string(item))
            (*ids)[(*count)++] = arena_strdup(&x->arena, json_string_value(item));
        else if (json_is_integer(item))
            (*ids)[(*count)++] =
                arena_printf(&x->arena, "%lld", (long long)json_integer_value(item));
    }
}

void delete_jobs(struct exchange *x)
{
    CancelJobsRequest *request = ARENA_NEW(&x->arena, CancelJobsRequest);
    json_t *body = body_read(x);
    json_t *item;
    size_t i;

    if (!body)
        return;
    cancel_jobs_request__init(request);
    const char *signal = json_string_value(json_object_get(body, "signal"));
    signal = signal ? arena_strdup(&x->arena, signal) : NULL;
    read_ids(x, json_object_get(body, "jobs"), &request->ids, &request->n_ids);
    request->accounts = one_of(x, body, "account", &request->n_accounts);
    request->names = one_of(x, body, "job_name", &request->n_names);
    request->partitions = one_of(x, body, "partition", &request->n_partitions);
    request->qos = one_of(x, body, "qos", &request->n_qos);
    request->reservations = one_of(x, body, "reservation", &request->n_reservations);
    request->wckeys = one_of(x, body, "wckey", &request->n_wckeys);
    request->nodes = one_of(x, body, "nodes", &request->n_nodes);
    request->users = one_of(x, body, json_object_get(body, "user_name") ? "user_name" : "user_id",
                            &request->n_users);
    const json_t *states = json_object_get(body, "job_state");
    request->states = ARENA_ARRAY(&x->arena, JobState, json_array_size(states) + 1);
    json_array_foreach((json_t *)(uintptr_t)states, i, item)
    {
        const char *word = json_string_value(item);
        uint32_t value;
        bool is_flag;
        if (word && job_state_find(word, strlen(word), &value, &is_flag) && !is_flag)
            request->states[request->n_states++] = (JobState)value;
    }
    json_decref(body);
    if (read_signal(x, signal, request))
        send_cancel(x, request);
}

/* ---- hold, release, requeue, suspend ---- */

static void update(struct exchange *x, UpdateJobRequest *request, ask_done *done)
{
    const struct ask_call call = { .method = "UpdateJob",
                                   .message = &request->base,
                                   .reply = &jobs_reply__descriptor,
                                   .change = true,
                                   .done = done };
    ask_start(x, &call);
}

static void hold(struct exchange *x, bool held)
{
    UpdateJobRequest *request = ARENA_NEW(&x->arena, UpdateJobRequest);

    if (params_bad_job(x))
        return;
    update_job_request__init(request);
    request->id = (char *)(uintptr_t)x->args[0];
    request->has_hold = true;
    request->hold = held;
    update(x, request, on_native);
}

void post_hold(struct exchange *x)
{
    hold(x, true);
}

void post_release(struct exchange *x)
{
    hold(x, false);
}

static void suspend(struct exchange *x, bool resume)
{
    SuspendRequest *request = ARENA_NEW(&x->arena, SuspendRequest);

    if (params_bad_job(x))
        return;
    suspend_request__init(request);
    request->ids = (char **)(uintptr_t)&x->args[0];
    request->n_ids = 1;
    request->has_resume = request->resume = resume;
    const struct ask_call call = { .method = "Suspend",
                                   .message = &request->base,
                                   .reply = &jobs_reply__descriptor,
                                   .change = true,
                                   .done = on_native };
    ask_start(x, &call);
}

void post_suspend(struct exchange *x)
{
    suspend(x, false);
}

void post_resume(struct exchange *x)
{
    suspend(x, true);
}

static void on_requeued(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const JobsReply *reply = (const void *)message;

    if (err || failed_alone(x, reply)) {
        if (err)
            answer_error(x, err, NULL);
        return;
    }
    struct answer *answer = answer_new(x);
    jsonw_list(&answer->json, x->args[0] ? "status" : "jobs");
    for (size_t i = 0; !x->args[0] && i < reply->n_results; i++)
        add_status(&answer->json, reply->results[i]);
    jsonw_list_end(&answer->json);
    answer_send(answer);
}

static void requeue(struct exchange *x, RequeueRequest *request)
{
    const struct ask_call call = { .method = "Requeue",
                                   .message = &request->base,
                                   .reply = &jobs_reply__descriptor,
                                   .change = true,
                                   .done = x->version ? on_requeued : on_native };
    ask_start(x, &call);
}

void post_requeue(struct exchange *x)
{
    RequeueRequest *request = ARENA_NEW(&x->arena, RequeueRequest);

    if (params_bad_job(x))
        return;
    requeue_request__init(request);
    request->ids = (char **)(uintptr_t)&x->args[0];
    request->n_ids = 1;
    request->has_hold = request->has_incomplete_only = request->has_special_exit = true;
    request->hold = exchange_query_bool(x, x->version ? "Hold" : "hold") == 1;
    request->incomplete_only =
        exchange_query_bool(x, x->version ? "Incomplete" : "incomplete") == 1;
    request->special_exit =
        exchange_query_bool(x, x->version ? "SpecialExit" : "special_exit") == 1;
    requeue(x, request);
}

void post_jobs_requeue(struct exchange *x)
{
    RequeueRequest *request = ARENA_NEW(&x->arena, RequeueRequest);
    json_t *body = body_read(x);

    if (!body)
        return;
    requeue_request__init(request);
    read_ids(x, json_object_get(body, "jobs"), &request->ids, &request->n_ids);
    json_decref(body);
    requeue(x, request);
}

/* ---- update ---- */

static void on_updated(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const JobsReply *reply = (const void *)message;

    job_request_done(x->data);
    x->on_gone = NULL;
    if (!x->version) {
        on_native(x, message, err);
        return;
    }
    if (err) {
        answer_error(x, err, NULL);
        return;
    }
    if (failed_alone(x, reply))
        return;
    struct answer *answer = answer_new(x);
    add_results(&answer->json, reply);
    answer_send(answer);
}

static void update_gone(struct exchange *x)
{
    job_request_done(x->data);
}

/* What is no option of sbatch. */
static int read_special(struct exchange *x, json_t *desc, UpdateJobRequest *request,
                        struct err *err)
{
    const json_t *hold = json_object_get(desc, "hold");
    const json_t *comment = json_object_get(desc, "admin_comment");
    const json_t *factor = json_object_get(desc, "site_factor");
    const json_t *end = json_object_get(desc, "end_time");

    if (json_is_boolean(hold)) {
        request->has_hold = true;
        request->hold = json_is_true(hold);
        json_object_del(desc, "hold");
    }
    if (json_is_string(comment)) {
        request->admin_comment = arena_strdup(&x->arena, json_string_value(comment));
        json_object_del(desc, "admin_comment");
    }
    if (json_is_integer(factor)) {
        request->has_site_factor = true;
        request->site_factor = (int32_t)json_integer_value(factor);
        json_object_del(desc, "site_factor");
    }
    if (json_is_integer(end)) {
        request->has_end_us = true;
        request->end_us = json_integer_value(end) * 1000000;
        json_object_del(desc, "end_time");
    }
    const char *dropped[] = { "job_id", "environment", "script", "argv" };
    for (size_t i = 0; i < ARRAY_LEN(dropped); i++) {
        if (i && json_object_get(desc, dropped[i]))
            return err_set(err, ERR_UNSUPPORTED, "job.%s cannot be changed", dropped[i]);
        json_object_del(desc, dropped[i]);
    }
    return 0;
}

void post_job(struct exchange *x)
{
    UpdateJobRequest *request = ARENA_NEW(&x->arena, UpdateJobRequest);
    struct job_request *job = ARENA_NEW(&x->arena, struct job_request);
    struct warning warnings[16];
    size_t warned = 0;
    struct err err = { 0 };

    if (params_bad_job(x))
        return;
    json_t *body = body_read(x);
    if (!body)
        return;
    /* The native form is that of a submit; Slurm's is the description itself. */
    json_t *desc = json_object_get(body, "job") ? json_object_get(body, "job") : body;
    update_job_request__init(request);
    request->id = (char *)(uintptr_t)x->args[0];
    job_request_init(job);
    int code = json_is_object(desc) ? read_special(x, desc, request, &err)
                                    : err_set(&err, ERR_INVALID, "the job is not an object");
    if (code == 0)
        code = job_desc_read(x, desc, job, warnings, ARRAY_LEN(warnings), &warned, &err);
    if (code == 0)
        code = job_request_finish(job, &err);
    json_decref(body);
    if (code < 0) {
        job_request_done(job);
        answer_error(x, &err, NULL);
        return;
    }
    request->change = job->spec;
    x->data = job;
    x->on_gone = update_gone;
    update(x, request, on_updated);
}
