/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submit.c - jobs that are submitted or allocated
 *
 * (1) Under /slurm the script's #SBATCH lines are not read, as slurmrestd does not; in the native API they are, and
 *     what the request says wins over them.
 * (2) Without an environment a native job gets that of a login, as with --export=NONE; under /slurm it is refused,
 *     as recorded.
 * (3) Without a directory it runs in the caller's home directory.
 */
#include <stdlib.h>
#include <string.h>

#include "proto/controller.pb-c.h"
#include "schema/script.h"
#include "spurrestd/answer.h"
#include "spurrestd/ask.h"
#include "spurrestd/body.h"
#include "spurrestd/job_desc.h"
#include "spurrestd/rest.h"
#include "spurrestd/routes.h"
#include "sys/clock.h"
#include "sys/host.h"
#include "sys/users.h"

struct submission {
    bool allocate;
    struct job_request requests[LIMIT_HET_COMPONENTS];
    size_t count;
    const char *script;
    SubmitJobRequest message;
    JobPayload payload;
    struct warning warnings[16];
    size_t warning_count;
    struct home *home; /* (3) while it is looked up */
};

static void submission_done(struct exchange *x)
{
    struct submission *submission = x->data;

    for (size_t i = 0; i < submission->count; i++)
        job_request_done(&submission->requests[i]);
    submission->count = 0;
    x->on_gone = NULL;
}

static void refuse(struct exchange *x, const struct err *err)
{
    submission_done(x);
    if (x->version)
        answer_failed(x, 422, err_slurm(err->code), err_text(err->code),
                      err_slurm(err->code) ? "Batch job submission failed" : err->text,
                      "slurm_submit_batch_job()");
    else
        answer_error(x, err, NULL);
}

static void on_submitted(struct exchange *x, const ProtobufCMessage *message, const struct err *err)
{
    const SubmitJobReply *reply = (const void *)message;
    struct submission *submission = x->data;

    if (err) {
        bool gone = err_http(err->code) == 503 || err->code == ERR_UNAUTHENTICATED ||
                    err->code == ERR_TOKEN_EXPIRED;
        if (gone) {
            submission_done(x);
            answer_error(x, err, NULL);
        } else {
            refuse(x, err);
        }
        return;
    }
    struct answer *answer = answer_new(x);
    struct jsonw *json = &answer->json;
    memcpy(answer->warnings, submission->warnings, sizeof(submission->warnings));
    answer->warning_count = submission->warning_count;
    jsonw_number(json, "job_id", reply->job_id);
    if (!submission->allocate)
        jsonw_text(json, "step_id", "batch");
    jsonw_text(json, "job_submit_user_msg", reply->message);
    submission_done(x);
    answer_send(answer);
}

static void send_job(struct exchange *x)
{
    struct submission *submission = x->data;
    SubmitJobRequest *message = &submission->message;

    submit_job_request__init(message);
    message->components = ARENA_ARRAY(&x->arena, JobComponent *, submission->count);
    for (size_t i = 0; i < submission->count; i++) {
        JobComponent *component = ARENA_NEW(&x->arena, JobComponent);
        job_component__init(component);
        component->spec = submission->requests[i].spec;
        component->payload = i == 0 ? &submission->payload : NULL;
        message->components[message->n_components++] = component;
    }
    const struct ask_call call = { .method = "SubmitJob",
                                   .message = &message->base,
                                   .reply = &submit_job_reply__descriptor,
                                   .change = true,
                                   .done = on_submitted };
    ask_start(x, &call);
}

/* ---- (3) ---- */

struct home {
    uv_work_t work;
    struct exchange *x; /* NULL: the caller has gone meanwhile */
    char *name;
    uint32_t uid;
    struct user *user;
    struct err err;
};

static void look_up(uv_work_t *work)
{
    struct home *home = work->data;

    if (home->name)
        users_by_name(home->name, &home->user, &home->err);
    else
        users_by_uid(home->uid, &home->user, &home->err);
}

static void looked_up(uv_work_t *work, int status)
{
    struct home *home = work->data;
    struct exchange *x = home->x;
    struct err err = { 0 };

    (void)status;
    if (x) {
        struct submission *submission = x->data;
        submission->home = NULL;
        for (size_t i = 0; home->user && i < submission->count; i++) {
            JobSpec *spec = submission->requests[i].spec;
            if (!spec->work_dir)
                spec->work_dir = mem_strdup(home->user->home);
        }
        if (home->user) {
            send_job(x);
        } else {
            err_code(&err, ERR_WORK_DIR);
            refuse(x, &err);
        }
    }
    user_free(home->user);
    free(home->name);
    free(home);
}

static void submission_gone(struct exchange *x)
{
    struct submission *submission = x->data;

    if (submission->home)
        submission->home->x = NULL;
    submission_done(x);
}

static void find_home(struct exchange *x)
{
    struct submission *submission = x->data;
    struct home *home = NEW(struct home);

    home->work.data = home;
    home->x = x;
    home->name = mem_strdup(x->user);
    home->uid = x->peer->uid;
    submission->home = home;
    uv_queue_work(x->rest->uv, &home->work, look_up, looked_up);
}

/* ---- reading ---- */

static int read_environment(struct exchange *x, const json_t *desc, struct err *err)
{
    struct submission *submission = x->data;
    JobPayload *payload = &submission->payload;
    const json_t *list = json_object_get(desc, "environment");
    json_t *item;
    size_t i;

    if (json_is_object(list)) /* {"NAME": "value"}, as old generations have it */
        return err_set(err, ERR_INVALID, "environment is a list of NAME=value");
    if (!json_array_size(list)) {
        if (x->version)
            return err_code(err, ERR_ENVIRONMENT); /* (2) */
        payload->has_get_user_env = payload->get_user_env = true;
    }
    payload->env = ARENA_ARRAY(&x->arena, ProtobufCBinaryData, json_array_size(list) + 1);
    if (!json_array_size(list)) {
        static char export[] = "SLURM_EXPORT_ENV=NONE";
        payload->env[payload->n_env++] =
            (ProtobufCBinaryData){ .data = (uint8_t *)export, .len = strlen(export) };
    }
    json_array_foreach((json_t *)(uintptr_t)list, i, item)
    {
        const char *text = json_string_value(item);
        if (!text || !strchr(text, '=') || text[0] == '=')
            return err_set(err, ERR_INVALID, "environment: '%.64s' is not NAME=value",
                           text ? text : "");
        if (payload->n_env == LIMIT_ENV_COUNT)
            return err_set(err, ERR_TOO_MANY, "the environment has more than %d variables",
                           LIMIT_ENV_COUNT);
        char *copy = arena_strdup(&x->arena, text);
        payload->env[payload->n_env++] =
            (ProtobufCBinaryData){ .data = (uint8_t *)copy, .len = strlen(copy) };
    }
    return 0;
}

static int read_arguments(struct exchange *x, const json_t *desc, struct err *err)
{
    struct submission *submission = x->data;
    const json_t *list = json_object_get(desc, "argv");
    json_t *item;
    size_t i;

    if (json_array_size(list) > LIMIT_ARGS_COUNT)
        return err_set(err, ERR_TOO_MANY, "argv has more than %d entries", LIMIT_ARGS_COUNT);
    submission->payload.args = ARENA_ARRAY(&x->arena, char *, json_array_size(list) + 1);
    json_array_foreach((json_t *)(uintptr_t)list, i, item)
    {
        const char *text = json_string_value(item);
        if (!text)
            return err_set(err, ERR_INVALID, "argv is a list of texts");
        if (i > 0) /* the first is the script itself, as in C */
            submission->payload.args[submission->payload.n_args++] = arena_strdup(&x->arena, text);
    }
    return 0;
}

static int read_component(struct exchange *x, const json_t *desc, size_t index, struct err *err)
{
    struct submission *submission = x->data;
    struct job_request *request = &submission->requests[submission->count++];
    static char *const no_env[] = { NULL };
    const struct option_ctx ctx = { .now_us = clock_wall_us(), .env = no_env };
    char host[HOST_NAME_BYTES];

    job_request_init(request);
    if (!json_is_object(desc))
        return err_set(err, ERR_INVALID, "the job is not an object");
    if (!x->version && submission->script && index == 0 && /* (1) */
        script_read_options(&sbatch_options, &ctx, request, submission->script,
                            strlen(submission->script), 0, NULL, err) < 0)
        return -(int)err->code;
    if (job_desc_read(x, desc, request, submission->warnings, ARRAY_LEN(submission->warnings),
                      &submission->warning_count, err) < 0 ||
        job_request_finish(request, err) < 0)
        return -(int)err->code;
    job_request_settle_counts(request, NULL);
    host_short(host);
    request->spec->alloc_node = mem_strdup(host);
    request->spec->has_batch = true;
    request->spec->batch = index == 0 && !submission->allocate;
    if (!request->spec->name)
        request->spec->name = mem_strdup(submission->allocate ? "allocation" : "sbatch");
    return 0;
}

/* The script stands beside the job, or in it. */
static const char *find_script(struct exchange *x, const json_t *body, const json_t *job)
{
    const char *inside = json_string_value(json_object_get(job, "script"));
    const char *beside = json_string_value(json_object_get(body, "script"));
    const char *text = inside ? inside : beside;

    return text ? arena_strdup(&x->arena, text) : NULL;
}

static int read_request(struct exchange *x, const json_t *body, struct err *err)
{
    struct submission *submission = x->data;
    const json_t *many = json_object_get(body, submission->allocate ? "hetjob" : "jobs");
    const json_t *job =
        json_array_size(many) ? json_array_get(many, 0) : json_object_get(body, "job");
    size_t count = json_array_size(many) ? json_array_size(many) : 1;

    if (count > LIMIT_HET_COMPONENTS)
        return err_set(err, ERR_TOO_MANY, "there are more than %d components",
                       LIMIT_HET_COMPONENTS);
    submission->script = find_script(x, body, job);
    job_payload__init(&submission->payload);
    for (size_t i = 0; i < count; i++) {
        if (read_component(x, i ? json_array_get(many, i) : job, i, err) < 0)
            return -(int)err->code;
    }
    if (read_environment(x, job, err) < 0 || read_arguments(x, job, err) < 0)
        return -(int)err->code;
    if (submission->allocate)
        return 0;
    if (script_check(submission->script, strlen(submission->script), err) < 0)
        return -(int)err->code;
    submission->payload.has_script = true;
    submission->payload.script =
        (ProtobufCBinaryData){ .data = (uint8_t *)(uintptr_t)submission->script,
                               .len = strlen(submission->script) };
    return 0;
}

static bool has_script(const json_t *body)
{
    const json_t *many = json_object_get(body, "jobs");
    const json_t *job =
        json_array_size(many) ? json_array_get(many, 0) : json_object_get(body, "job");
    const char *text = json_string_value(json_object_get(job, "script"));

    return !str_is_empty(text) || !str_is_empty(json_string_value(json_object_get(body, "script")));
}

static void submit(struct exchange *x, bool allocate)
{
    struct submission *submission = ARENA_NEW(&x->arena, struct submission);
    struct err err = { 0 };
    json_t *body = body_read(x);
    bool home = false;

    if (!body)
        return;
    x->data = submission;
    submission->allocate = allocate;
    if (!allocate && !has_script(body)) {
        struct job_request unused;
        job_request_init(&unused);
        if (x->version)
            job_desc_read(x, json_object_get(body, "job"), &unused, submission->warnings,
                          ARRAY_LEN(submission->warnings), &submission->warning_count, &err);
        job_request_done(&unused);
        json_decref(body);
        err_set(&err, ERR_NO_SCRIPT, "Populated \"script\" field is required for job submission");
        if (x->version)
            answer_failed_warned(x, 422, 9000, "Query empty or not RFC7320 compliant", err.text,
                                 "_job_post", submission->warnings, submission->warning_count);
        else
            answer_error(x, &err, NULL);
        return;
    }
    x->on_gone = submission_gone;
    int code = read_request(x, body, &err);
    json_decref(body);
    if (code < 0) {
        refuse(x, &err);
        return;
    }
    for (size_t i = 0; i < submission->count; i++)
        home = home || !submission->requests[i].spec->work_dir;
    if (home)
        find_home(x);
    else
        send_job(x);
}

void post_submit(struct exchange *x)
{
    submit(x, false);
}

void post_allocate(struct exchange *x)
{
    submit(x, true);
}
