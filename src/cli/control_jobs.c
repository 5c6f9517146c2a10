// SPDX-License-Identifier: Apache-2.0
/*
 * control_jobs.c - verbs of scontrol that act on jobs
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "cli/control.h"
#include "client/client.h"
#include "schema/job_view.h"
#include "schema/names.h"
#include "sys/files.h"

/* Slurm's words; what exactly is wrong comes before them, where more is known. */
static const char *text_of(const JobResult *result)
{
    return err_text((enum err_code)result->code);
}

static void say_why(const JobResult *result)
{
    const char *why = result->text ? result->text : "", *known = text_of(result);

    if (*why && strcmp(why, known) != 0)
        fprintf(stderr, "scontrol: error: %.*s\n", (int)strcspn(why, "\n"), why);
}

int control_results(const JobsReply *reply, const char *after)
{
    int code = 0;

    for (size_t i = 0; i < reply->n_results; i++) {
        const JobResult *result = reply->results[i];

        if (!result->code)
            continue;
        say_why(result);
        fprintf(stderr, "%s for job %s\n", text_of(result), result->id ? result->id : "?");
        if (after)
            fprintf(stderr, "%s:%s\n", after, text_of(result));
        code = 1;
    }
    return code;
}

/* The call itself failed: the same words for the first id. */
static int call_failed(const struct err *err, const char *id, const char *after)
{
    JobResult result = JOB_RESULT__INIT;
    JobResult *results[] = { &result };
    JobsReply reply = JOBS_REPLY__INIT;

    result.id = (char *)id;
    result.code = err->code;
    result.text = (char *)err->text;
    reply.n_results = 1;
    reply.results = results;
    return control_results(&reply, after);
}

/* All ids of the words that follow: "12 13,14". */
static char **ids_of(struct control *control, int argc, char **argv, size_t *count)
{
    char **ids = NULL;

    *count = 0;
    for (int i = 0; i < argc; i++)
        cli_split(&control->cli, argv[i], ", ", &ids, count);
    return ids;
}

static int update_one(struct control *control, const char *id, uint32_t hold, bool has_hold,
                      bool top, const char *after)
{
    UpdateJobRequest request = UPDATE_JOB_REQUEST__INIT;
    JobsReply *reply;
    struct err err = { 0 };

    if (strncasecmp(id, "jobname=", 8) == 0 || strncasecmp(id, "name=", 5) == 0)
        request.name = (char *)strchr(id, '=') + 1;
    else
        request.id = (char *)id;
    request.has_hold = has_hold;
    request.hold = hold;
    request.has_top = request.top = top;
    if (cli_call(&control->cli, "UpdateJob", &request.base, &jobs_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0)
        return call_failed(&err, id, after);
    return control_results(reply, after);
}

static int update_all(struct control *control, int argc, char **argv, uint32_t hold, bool has_hold,
                      bool top, const char *after)
{
    size_t count;
    char **ids = ids_of(control, argc, argv, &count);
    int code = 0;

    for (size_t i = 0; i < count; i++)
        code |= update_one(control, ids[i], hold, has_hold, top, after);
    return code;
}

int control_hold(struct control *control, int argc, char **argv)
{
    /* An administrator's hold can be ended by administrators only. */
    return update_all(control, argc, argv, geteuid() == 0 ? 2 : 1, true, false,
                      "slurm_suspend error");
}

int control_uhold(struct control *control, int argc, char **argv)
{
    return update_all(control, argc, argv, 1, true, false, "slurm_suspend error");
}

int control_release(struct control *control, int argc, char **argv)
{
    return update_all(control, argc, argv, 0, true, false, "slurm_suspend error");
}

/* The first of the list comes first: so the last is moved before the others. */
int control_top(struct control *control, int argc, char **argv)
{
    size_t count;
    char **ids = ids_of(control, argc, argv, &count);
    int code = 0;

    while (count-- > 0)
        code |= update_one(control, ids[count], 0, false, true, NULL);
    return code;
}

static int requeue(struct control *control, int argc, char **argv, bool hold)
{
    RequeueRequest request = REQUEUE_REQUEST__INIT;
    JobsReply *reply;
    struct err err = { 0 };

    request.has_hold = request.hold = hold;
    while (argc > 1 && argv[0][0] && !(argv[0][0] >= '0' && argv[0][0] <= '9')) {
        if (str_ieq(argv[0], "incomplete")) {
            request.has_incomplete_only = request.incomplete_only = true;
        } else if (hold && (str_ieq(argv[0], "State=SpecialExit") ||
                            str_ieq(argv[0], "SpecialExit") || str_ieq(argv[0], "State=SE"))) {
            request.has_special_exit = request.special_exit = true;
        } else {
            fprintf(stderr, "invalid option: %s\n", argv[0]);
            return 1;
        }
        argc--;
        argv++;
    }
    request.ids = ids_of(control, argc, argv, &request.n_ids);
    signal(SIGTERM, SIG_IGN); /* the job may be the one we are part of: the answer comes first */
    if (cli_call(&control->cli, "Requeue", &request.base, &jobs_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0)
        return call_failed(&err, argv[0], NULL);
    return control_results(reply, NULL);
}

int control_requeue(struct control *control, int argc, char **argv)
{
    return requeue(control, argc, argv, false);
}

int control_requeuehold(struct control *control, int argc, char **argv)
{
    return requeue(control, argc, argv, true);
}

static int suspend(struct control *control, int argc, char **argv, bool resume)
{
    SuspendRequest request = SUSPEND_REQUEST__INIT;
    JobsReply *reply;
    struct err err = { 0 };

    request.has_resume = request.resume = resume;
    request.ids = ids_of(control, argc, argv, &request.n_ids);
    if (cli_call(&control->cli, "Suspend", &request.base, &jobs_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0)
        return call_failed(&err, argv[0], NULL);
    return control_results(reply, NULL);
}

int control_suspend(struct control *control, int argc, char **argv)
{
    return suspend(control, argc, argv, false);
}

int control_resume(struct control *control, int argc, char **argv)
{
    return suspend(control, argc, argv, true);
}

/* Waits until the nodes of a job are prepared. */
int control_wait_job(struct control *control, int argc, char **argv)
{
    WatchJobRequest request = WATCH_JOB_REQUEST__INIT;
    struct client_stream *stream = NULL;
    struct err err = { 0 };
    ProtobufCMessage *message;
    bool ready = false, over = false;

    request.id = argv[0];
    if (cli_connect(&control->cli, &err) == 0)
        stream =
            client_stream_open(control->cli.client,
                               &(struct client_stream_options){ .path = "/spur.Controller/WatchJob",
                                                                .message = &request.base,
                                                                .reply_type = &job__descriptor },
                               &err);
    while (stream && !ready && !over &&
           client_stream_next(stream, &control->cli.arena, &message, &err) == CLIENT_MESSAGE) {
        const JobStatus *status = job_status((const Job *)message);

        ready = (status->state == JOB_RUNNING || status->state == JOB_SUSPENDED) &&
                !(status->flags & JOB_FLAG_CONFIGURING);
        over = job_state_ended(status->state);
    }
    client_stream_free(stream);
    cli_say(&control->cli, ready ? "Nodes are ready for job %s" : "Problem running job %s",
            argv[0]);
    return !ready;
}

static int write_script(struct control *control, const char *id, const char *path)
{
    GetJobRequest request = GET_JOB_REQUEST__INIT;
    GetJobReply *reply;
    struct err err = { 0 };
    char *name = path ? (char *)path : arena_printf(&control->cli.arena, "slurm-%s.sh", id);

    request.id = (char *)id;
    request.has_payload = request.payload = true;
    if (cli_call(&control->cli, "GetJob", &request.base, &get_job_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0 ||
        !reply->payload || !reply->payload->has_script) {
        fprintf(stderr, "job script retrieval failed: %s\n",
                err.text[0] ? err.text : "the job has no script");
        return err.code == ERR_PERMISSION; /* Slurm exits with 0 whatever it was */
    }
    if (strcmp(name, "-") == 0) {
        fwrite(reply->payload->script.data, 1, reply->payload->script.len, stdout);
        return fflush(stdout) != 0;
    }
    if (file_write_quick(name, reply->payload->script.data, reply->payload->script.len, 0700,
                         &err) < 0) {
        cli_error(&control->cli, "%s", err.text);
        return 1;
    }
    if (!control->quiet)
        printf("batch script for job %s written to %s\n", id, name);
    return 0;
}

int control_write(struct control *control, int argc, char **argv)
{
    if (str_istarts("batch_script", argv[0])) {
        if (argc < 2) {
            fprintf(stderr, "too few arguments for keyword:%s\n", argv[0]);
            return 1;
        }
        return write_script(control, argv[1], argc > 2 ? argv[2] : NULL);
    }
    if (str_istarts("config", argv[0])) {
        fprintf(stderr, "write config is not supported yet: spur config import writes one\n");
        return 1;
    }
    fprintf(stderr, "invalid write argument:%s\n", argv[0]);
    return 1;
}

int control_completing(struct control *control, int argc, char **argv)
{
    ListJobsRequest request = LIST_JOBS_REQUEST__INIT;
    struct client_stream *stream;
    struct field_ctx ctx = cli_field_ctx(0);
    struct err err = { 0 };
    struct str out = { 0 };
    ProtobufCMessage *message;

    request.has_flag_mask = true;
    request.flag_mask = JOB_FLAG_COMPLETING;
    request.has_all_states = request.all_states = true;
    if (cli_connect(&control->cli, &err) < 0)
        return 1;
    stream = client_stream_open(
        control->cli.client,
        &(struct client_stream_options){ .path = "/spur.Controller/ListJobs",
                                         .message = &request.base,
                                         .reply_type = &list_jobs_reply__descriptor },
        &err);
    while (stream &&
           client_stream_next(stream, &control->cli.arena, &message, &err) == CLIENT_MESSAGE) {
        const ListJobsReply *reply = (const ListJobsReply *)message;

        for (size_t i = 0; i < reply->n_jobs; i++) {
            const JobStatus *status = job_status(reply->jobs[i]);

            if (!(status->flags & JOB_FLAG_COMPLETING))
                continue;
            str_addf(&out, "JobId=%u EndTime=", reply->jobs[i]->id);
            field_add_moment(&out, &ctx, status->end_us);
            str_add(&out, " Nodes=");
            job_add_nodes(&out, reply->jobs[i]);
            str_add_char(&out, '\n');
        }
    }
    client_stream_free(stream);
    cli_flush(&out);
    str_done(&out);
    if (err.code)
        fprintf(stderr, "slurm_load_jobs error: %s\n", err.text);
    return err.code != ERR_OK;
}
