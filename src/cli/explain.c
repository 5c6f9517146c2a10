// SPDX-License-Identifier: Apache-2.0
/*
 * explain.c - `spur explain JOB`: what it waits for, in words with numbers, and until when
 */
#include <stdio.h>
#include <string.h>

#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "proto/controller.pb-c.h"
#include "schema/job_view.h"
#include "schema/names.h"
#include "schema/reasons.h"

/* "in 3 hours" says more than a date alone. */
static void add_when(struct str *out, const struct field_ctx *ctx, int64_t us)
{
    int64_t seconds = (us - ctx->now_us) / 1000000;

    field_add_moment(out, ctx, us);
    if (seconds > 0) {
        str_add(out, " (in ");
        timefmt_write_duration(out, seconds, TIMEFMT_SHORT);
        str_add_char(out, ')');
    }
}

static void add_pending(struct str *out, const ExplainReply *reply, const struct field_ctx *ctx)
{
    const JobStatus *status = job_status(reply->job);
    const char *help = reason_help(status->reason);

    str_add(out, "  reason: ");
    reason_add(out, status->reason, status->reason_text, 0);
    if (help && status->reason)
        str_addf(out, " - %s", help);
    str_add_char(out, '\n');
    if (reply->never) {
        str_add(out, "  expected start: never, as things stand\n");
    } else if (reply->planned_start_us > 0) {
        str_add(out, "  expected start: ");
        add_when(out, ctx, reply->planned_start_us);
        if (!str_is_empty(reply->planned_nodes))
            str_addf(out, " on %s", reply->planned_nodes);
        str_add_char(out, '\n');
    } else {
        str_add(out, "  expected start: not known\n");
    }
}

/* What became of it, by its end state; NULL: the state says it all. */
static const char *const ends[] = {
    [JOB_COMPLETED] = "ended by itself",
    [JOB_CANCELLED] = "was cancelled",
    [JOB_FAILED] = "failed",
    [JOB_TIMEOUT] = "reached its time limit and was ended",
    [JOB_NODE_FAIL] = "lost a node",
    [JOB_PREEMPTED] = "had to make room for another job",
    [JOB_BOOT_FAIL] = "could not start because a node did not boot",
    [JOB_DEADLINE] = "could not end by its deadline and was removed",
    [JOB_OUT_OF_MEMORY] = "used more memory than it was given and was ended",
};

static void add_duration_of(struct str *out, const Job *job, const struct field_ctx *ctx)
{
    timefmt_write_duration(out, job_used_s(job, ctx->now_us), TIMEFMT_SHORT);
    if (job_limit_s(job) >= -1) {
        str_add(out, " of ");
        timefmt_write_duration(out, job_limit_s(job), TIMEFMT_SHORT);
    }
}

/* The rest of "job 12 is FAILED". */
static void add_fate(struct str *out, const Job *job, const struct field_ctx *ctx)
{
    const JobStatus *status = job_status(job);
    uint32_t exit_code = status->exit_status >> 8 & 0xff, sig = status->exit_status & 0x7f;
    bool ran = status->start_us > 0;

    if (!job_state_ended(status->state)) {
        str_add(out, ": it has run for ");
        add_duration_of(out, job, ctx);
        return;
    }
    if (status->state < ARRAY_LEN(ends) && ends[status->state])
        str_addf(out, ": it %s", ends[status->state]);
    if (!ran)
        str_add(out, " before it started");
    else if (sig)
        str_addf(out, " (signal %u, %s)", sig, strsignal((int)sig));
    else
        str_addf(out, " with exit code %u", exit_code);
    if (!str_is_empty(status->failed_node))
        str_addf(out, " (node %s)", status->failed_node);
    if (ran) {
        str_add(out, " after ");
        add_duration_of(out, job, ctx);
    }
}

static void add_started(struct str *out, const Job *job, const struct field_ctx *ctx)
{
    const JobStatus *status = job_status(job);

    if (status->start_us > 0) {
        str_add(out, "  nodes: ");
        job_add_nodes(out, job);
        str_add(out, "\n  started: ");
        field_add_moment(out, ctx, status->start_us);
        str_add_char(out, '\n');
    }
    if (status->restarts)
        str_addf(out, "  restarts: %u\n", status->restarts);
    if (job_state_ended(status->state)) {
        str_add(out, "  ended: ");
        field_add_moment(out, ctx, status->end_us);
        str_addf(out, "\n  exit code: %u:%u\n", status->exit_status >> 8 & 0xff,
                 status->exit_status & 0x7f);
        if (status->reason) {
            str_add(out, "  reason: ");
            reason_add(out, status->reason, status->reason_text, status->exit_status);
            str_add_char(out, '\n');
        }
    } else if (job_end_us(job, ctx->now_us) > 0) {
        str_add(out, "  ends at the latest: ");
        add_when(out, ctx, job_end_us(job, ctx->now_us));
        str_add_char(out, '\n');
    }
}

static int explain(struct cli *cli, const char *id, struct str *out, struct err *err)
{
    ExplainRequest request = EXPLAIN_REQUEST__INIT;
    struct field_ctx ctx = cli_field_ctx(0);
    ExplainReply *reply;
    const JobStatus *status;
    int result;

    request.id = (char *)id;
    result = cli_call(cli, "Explain", &request.base, &explain_reply__descriptor,
                      (ProtobufCMessage **)&reply, err);
    if (result < 0)
        return result;
    if (!reply->job)
        return err_code(err, ERR_INVALID_JOB_ID);
    status = job_status(reply->job);
    str_add(out, "job ");
    job_add_id(out, reply->job);
    str_addf(out, " is %s", job_state_text(status->state, status->flags));
    if (!str_is_empty(reply->sentence))
        str_addf(out, ": %s", reply->sentence);
    if (status->state != JOB_PENDING)
        add_fate(out, reply->job, &ctx);
    str_add_char(out, '\n');
    for (size_t i = 0; i < reply->n_details; i++)
        str_addf(out, "  %s\n", reply->details[i]);
    if (status->state == JOB_PENDING)
        add_pending(out, reply, &ctx);
    else
        add_started(out, reply->job, &ctx);
    return 0;
}

int explain_main(int argc, char **argv)
{
    struct cli cli;
    struct str out = { 0 };
    int code = 0;

    cli_init(&cli, cli_name(argv));
    if (argc < 2 || argv[1][0] == '-') {
        FILE *to = argc > 1 && str_starts(argv[1], "--h") ? stdout : stderr;

        fprintf(to, "Usage: %s JOB...\nSays what a job waits for and when it will start.\n",
                cli.name);
        code = to == stderr;
        argc = 1;
    }
    for (int i = 1; i < argc; i++) {
        struct err err = { 0 };

        if (explain(&cli, argv[i], &out, &err) < 0) {
            cli_error(&cli, "job %s: %s", argv[i], err.text);
            code = 1;
        }
        cli_flush(&out);
    }
    str_done(&out);
    cli_done(&cli);
    return code;
}
