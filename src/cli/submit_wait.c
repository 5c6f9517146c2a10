// SPDX-License-Identifier: Apache-2.0
/*
 * submit_wait.c - stays with a job until it has ended: sbatch --wait, spur submit --watch, spur wait
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "cli/submit.h"
#include "client/client.h"
#include "schema/job_view.h"
#include "schema/names.h"
#include "schema/reasons.h"

static struct client_stream *open_watch(struct cli *cli, const char *job, bool ends,
                                        struct err *err)
{
    WatchJobRequest request = WATCH_JOB_REQUEST__INIT;

    request.id = (char *)job;
    request.has_ends = request.ends = ends;
    if (cli_connect(cli, err) < 0)
        return NULL;
    return client_stream_open(cli->client,
                              &(struct client_stream_options){ .path = "/spur.Controller/WatchJob",
                                                               .message = &request.base,
                                                               .reply_type = &job__descriptor },
                              err);
}

/* What a shell would see of it: the exit code, 1 for a signal or any other bad end. */
static int code_of(const Job *job)
{
    const JobStatus *status = job_status(job);
    int code = WIFEXITED((int)status->exit_status) ? WEXITSTATUS((int)status->exit_status) : 1;

    if (!job_state_ended(status->state))
        return 0;
    return code == 0 && status->state != JOB_COMPLETED ? 1 : code;
}

/*
 * Calls `each` with every record that comes, or without it waits for ends alone. The stream may break while controllers change: it is
 * then opened again, for the job is still there.
 */
static int watch(struct cli *cli, const char *id, bool (*each)(void *ctx, const Job *job),
                 void *ctx)
{
    int highest = 0;

    for (;;) {
        struct err err = { 0 };
        struct client_stream *stream = open_watch(cli, id, !each, &err);
        int next = -1;

        while (stream) {
            struct arena arena;
            ProtobufCMessage *message;

            arena_init(&arena);
            next = client_stream_next(stream, &arena, &message, &err);
            if (next == CLIENT_MESSAGE) {
                const Job *job = (const Job *)message;

                highest = MAX(highest, code_of(job));
                if (each && !each(ctx, job))
                    next = CLIENT_ENDED;
            }
            arena_done(&arena);
            if (next != CLIENT_MESSAGE)
                break;
        }
        client_stream_free(stream);
        if (next == CLIENT_ENDED)
            return highest;
        if (!stream || (err.code != ERR_CONNECTION_LOST && err.code != ERR_SHUTTING_DOWN &&
                        err.code != ERR_NOT_LEADER)) {
            cli_error(cli, "Unable to wait for job %s: %s", id, err.text);
            return 1;
        }
    }
}

int submit_wait_id(struct cli *cli, const char *id)
{
    return watch(cli, id, NULL, NULL);
}

int submit_wait(struct cli *cli, uint32_t job_id)
{
    return submit_wait_id(cli, arena_printf(&cli->arena, "%u", job_id));
}

struct watching {
    struct cli *cli;
    char last[256];
    uint32_t shown;   /* attempt whose output has been shown; attempts begin at 1 */
    bool has_started; /* the attempt after it runs */
};

/* Says what changed. Stops at the start of a job, so that its output can be shown. */
static bool on_change(void *ctx, const Job *job)
{
    struct watching *watching = ctx;
    const JobStatus *status = job_status(job);
    struct str line = { 0 };

    str_add(&line, "job ");
    job_add_id(&line, job);
    str_addf(&line, " %s", job_state_text(status->state, status->flags));
    if (status->state == JOB_PENDING && status->reason) {
        str_add(&line, " (");
        reason_add(&line, status->reason, status->reason_text, 0);
        str_add_char(&line, ')');
    } else if (status->state == JOB_RUNNING && status->allocation) {
        str_add(&line, " on ");
        job_add_nodes(&line, job);
    } else if (job_state_ended(status->state)) {
        str_addf(&line, ", exit code %u:%u", status->exit_status >> 8 & 0xff,
                 status->exit_status & 0x7f);
    }
    if (strncmp(str_text(&line), watching->last, sizeof(watching->last) - 1) != 0) {
        snprintf(watching->last, sizeof(watching->last), "%s", str_text(&line));
        cli_say(watching->cli, "%s", str_text(&line));
    }
    str_done(&line);
    watching->has_started = status->state == JOB_RUNNING && !status->has_array_task_id &&
                            !(status->flags & JOB_FLAG_CONFIGURING) &&
                            status->attempt != watching->shown;
    if (watching->has_started)
        watching->shown = status->attempt;
    return !watching->has_started;
}

int submit_watch(struct cli *cli, uint32_t job_id)
{
    struct watching watching = { .cli = cli };
    char *id = arena_printf(&cli->arena, "%u", job_id);

    for (;;) {
        struct err err = { 0 };
        int code = watch(cli, id, on_change, &watching);

        if (!watching.has_started)
            return code;
        if (logs_copy(cli, id, false, true, 0, &err) < 0)
            cli_error(cli, "cannot show the output of job %u: %s", job_id, err.text);
    }
}
