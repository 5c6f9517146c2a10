/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.c - `spur explain`: what jobs wait for, in words with numbers, and until when
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/timefmt.h"
#include "base/vec.h"
#include "cli/accounting.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "client/client.h"
#include "proto/controller.pb-c.h"
#include "schema/job_view.h"
#include "schema/jsonw.h"
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

/* The rest of "job 12 is FAILED: ". */
static void add_fate(struct str *out, const Job *job, const struct field_ctx *ctx)
{
    const JobStatus *status = job_status(job);
    uint32_t exit_code = status->exit_status >> 8 & 0xff, sig = status->exit_status & 0x7f;
    bool ran = status->start_us > 0;

    if (!job_state_ended(status->state)) {
        str_add(out, "it has run for ");
        add_duration_of(out, job, ctx);
        return;
    }
    if (status->state < ARRAY_LEN(ends) && ends[status->state])
        str_addf(out, "it %s", ends[status->state]);
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

static void add_text(struct str *out, const ExplainReply *reply, const struct field_ctx *ctx)
{
    const JobStatus *status = job_status(reply->job);

    str_add(out, "job ");
    job_add_id(out, reply->job);
    str_addf(out, " is %s", job_state_text(status->state, status->flags));
    if (!str_is_empty(reply->sentence))
        str_addf(out, ": %s", reply->sentence);
    if (status->state != JOB_PENDING) {
        str_add(out, ": ");
        add_fate(out, reply->job, ctx);
    }
    str_add_char(out, '\n');
    for (size_t i = 0; i < reply->n_details; i++)
        str_addf(out, "  %s\n", reply->details[i]);
    if (status->state == JOB_PENDING)
        add_pending(out, reply, ctx);
    else
        add_started(out, reply->job, ctx);
}

/* ---- for programs ---- */

/* What a writer of text writes, as a value. */
#define JSON_WRITTEN(json, key, call)                \
    do {                                             \
        struct str value = { 0 };                    \
        call;                                        \
        jsonw_text((json), (key), str_text(&value)); \
        str_done(&value);                            \
    } while (0)

static void add_json(struct jsonw *json, const ExplainReply *reply, const struct field_ctx *ctx)
{
    const Job *job = reply->job;
    const JobStatus *status = job_status(job);
    bool waits = status->state == JOB_PENDING;

    jsonw_object(json, NULL);
    jsonw_number(json, "job_id", job->id);
    JSON_WRITTEN(json, "name", job_add_id(&value, job));
    jsonw_text(json, "state", job_state_text(status->state, status->flags));
    JSON_WRITTEN(json, "reason",
                 reason_add(&value, status->reason, status->reason_text, status->exit_status));
    if (waits)
        jsonw_text(json, "sentence", reply->sentence);
    else
        JSON_WRITTEN(json, "sentence", add_fate(&value, job, ctx));
    jsonw_list(json, "details");
    for (size_t i = 0; i < reply->n_details; i++)
        jsonw_text(json, NULL, reply->details[i]);
    jsonw_list_end(json);
    jsonw_number(json, "jobs_ahead", reply->jobs_ahead);
    jsonw_bool(json, "never", reply->never);
    jsonw_set(json, "expected_start", waits && reply->planned_start_us > 0, false,
              reply->planned_start_us / 1000000);
    jsonw_text(json, "expected_nodes", waits ? reply->planned_nodes : NULL);
    jsonw_object_end(json);
}

/* ---- the command ---- */

struct explain_args {
    bool all, me, help, json, yaml;
    const char *users;
    uint32_t most;
};

enum { MOST = 100 }; /* of those that nobody named */

#define FLAG(member) OPTION_BOOL(struct explain_args, member)

/* clang-format off */
static const struct option rows[] = {
    { .name = "all", .key = 'a', .read = option_flag, .into = FLAG(all), .help = "All waiting jobs that you may see." },
    { .name = "help", .key = 'h', .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "json", .read = option_flag, .into = FLAG(json), .help = "The same as JSON." },
    { .name = "me", .read = option_flag, .into = FLAG(me), .help = "Your waiting jobs, as without any job." },
    { .name = "most", .key = 'n', .arg = "N", .read = option_number, .into = OPTION_U32(struct explain_args, most), .help = "With --all, --me, --user: the N of highest priority (100)." },
    { .name = "user", .key = 'u', .arg = "NAMES", .read = option_text, .into = OPTION_TEXT(struct explain_args, users), .help = "Waiting jobs of these users." },
    { .name = "yaml", .read = option_flag, .into = FLAG(yaml), .help = "The same as YAML." },
};
/* clang-format on */

const struct option_set explain_options = {
    .command = "spur explain",
    .usage = "[OPTIONS...] [JOB...]",
    .about =
        "Says what jobs wait for and when they will start, and what became of others. Without a job: "
        "your waiting jobs.",
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

struct explain {
    struct cli cli;
    struct explain_args args;
    struct field_ctx ctx;
    struct jsonw json;
    struct str out;
    int argc;
    char **argv;
};

/* The controller has forgotten it; the history has not. What the controller said holds when there is no history. */
static int explain_past(struct explain *explain, const char *id, struct err *err)
{
    ExplainReply reply = EXPLAIN_REPLY__INIT;
    const AcctJob *past;
    struct err ignored = { 0 };

    if (accounting_find(&explain->cli, id, &past, &ignored) < 0)
        return -(int)err->code;
    reply.job = past->job;
    if (explain->json.out)
        add_json(&explain->json, &reply, &explain->ctx);
    else
        add_text(&explain->out, &reply, &explain->ctx);
    cli_flush(&explain->out);
    return 0;
}

static int explain_one(struct explain *explain, const char *id, struct err *err)
{
    ExplainRequest request = EXPLAIN_REQUEST__INIT;
    ExplainReply *reply;

    request.id = (char *)id;
    int ret = cli_call(&explain->cli, "Explain", &request.base, &explain_reply__descriptor,
                       (ProtobufCMessage **)&reply, err);
    if (ret == -(int)ERR_INVALID_JOB_ID)
        return explain_past(explain, id, err);
    if (ret < 0)
        return ret;
    if (!reply->job)
        return err_code(err, ERR_INVALID_JOB_ID);
    if (explain->json.out)
        add_json(&explain->json, reply, &explain->ctx);
    else
        add_text(&explain->out, reply, &explain->ctx);
    cli_flush(&explain->out);
    return 0;
}

/* One of the waiting jobs that nobody named. */
struct waiting {
    uint32_t id, priority;
};

static int by_priority(const void *a, const void *b)
{
    const struct waiting *x = a, *y = b;

    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

struct waiting_list {
    VEC(struct waiting) jobs;
};

static int read_waiting(struct client_stream *stream, struct waiting_list *out, struct err *err)
{
    ProtobufCMessage *message;
    struct arena arena;
    int next;

    arena_init(&arena);
    while ((next = client_stream_next(stream, &arena, &message, err)) == CLIENT_MESSAGE) {
        const ListJobsReply *reply = (const ListJobsReply *)message;
        for (size_t i = 0; i < reply->n_jobs; i++)
            vec_push(&out->jobs,
                     (struct waiting){ reply->jobs[i]->id, job_status(reply->jobs[i])->priority });
        arena_reset(&arena);
    }
    arena_done(&arena);
    return next == CLIENT_ENDED ? 0 : -(int)err->code;
}

static int list_waiting(struct explain *explain, struct waiting_list *out, struct err *err)
{
    const struct explain_args *args = &explain->args;
    ListJobsRequest request = LIST_JOBS_REQUEST__INIT;
    JobState pending = JOB_PENDING;
    char own[16];

    snprintf(own, sizeof(own), "%u", (unsigned)getuid());
    request.n_states = 1;
    request.states = &pending;
    if (!args->all)
        cli_users(&explain->cli, args->users ? args->users : own, &request.users, &request.n_users);
    if (!args->all && !request.n_users)
        return err_set(err, ERR_INVALID, "no user of these: %s", args->users);
    if (cli_connect(&explain->cli, err) < 0)
        return -(int)err->code;
    struct client_stream *stream = client_stream_open(
        explain->cli.client,
        &(struct client_stream_options){ .path = "/spur.Controller/ListJobs",
                                         .message = &request.base,
                                         .reply_type = &list_jobs_reply__descriptor },
        err);
    if (!stream)
        return -(int)err->code;
    int ret = read_waiting(stream, out, err);
    client_stream_free(stream);
    if (out->jobs.len)
        qsort(out->jobs.items, out->jobs.len, sizeof(struct waiting), by_priority);
    return ret;
}

static int explain_named(struct explain *explain, char **ids, int count)
{
    int code = 0;

    for (int i = 0; i < count; i++) {
        struct err err = { 0 };
        if (explain_one(explain, ids[i], &err) < 0) {
            cli_error(&explain->cli, "job %s: %s", ids[i], err.text);
            code = 1;
        }
    }
    return code;
}

static int explain_waiting(struct explain *explain)
{
    struct waiting_list list = { 0 };
    struct err err = { 0 };
    size_t most = explain->args.most ? explain->args.most : MOST;

    int ret = list_waiting(explain, &list, &err);
    if (ret == 0 && !list.jobs.len && !explain->json.out)
        str_add(&explain->out, "no job waits\n");
    for (size_t i = 0; ret == 0 && i < list.jobs.len && i < most; i++) {
        char id[16];
        snprintf(id, sizeof(id), "%u", list.jobs.items[i].id);
        ret = explain_one(explain, id, &err);
        if (ret < 0 && err.code == ERR_INVALID_JOB_ID)
            ret = 0; /* it ended meanwhile */
    }
    if (ret == 0 && list.jobs.len > most && !explain->json.out)
        str_addf(&explain->out, "%zu more wait: name them, or say --most\n", list.jobs.len - most);
    if (ret < 0)
        cli_error(&explain->cli, "%s", err.text);
    vec_done(&list.jobs);
    return ret < 0;
}

static int run(struct explain *explain, char **ids, int count)
{
    const struct explain_args *args = &explain->args;

    if (count && (args->all || args->me || args->users)) {
        cli_error(&explain->cli, "'%s': either jobs, or --all, --me or --user", ids[0]);
        return 1;
    }
    explain->ctx = cli_field_ctx(0);
    if (args->json || args->yaml) {
        (args->yaml ? jsonw_init_yaml : jsonw_init)(&explain->json, &explain->out);
        jsonw_object(&explain->json, NULL);
        jsonw_list(&explain->json, "jobs");
    }
    int code = count ? explain_named(explain, ids, count) : explain_waiting(explain);
    if (explain->json.out) {
        jsonw_list_end(&explain->json);
        cli_json_end(&explain->json, explain->argc, explain->argv, explain->ctx.cluster);
    }
    cli_flush(&explain->out);
    return code;
}

int explain_main(int argc, char **argv)
{
    struct explain explain = { .argc = argc, .argv = argv };
    struct option_set set = explain_options;
    struct option_ctx ctx = cli_option_ctx();
    char **operands = NEW_ARRAY(char *, argc + 1);
    struct err err = { 0 };
    int count = 0, code = 0;

    set.command = cli_name(argv);
    cli_init(&explain.cli, set.command);
    if (option_read_argv(&set, &ctx, &explain.args, argc, argv, OPTION_PERMUTE, operands, &count,
                         &err) < 0)
        code = cli_option_error(&set, &err);
    else if (!cli_help(&set, explain.args.help, false, false))
        code = run(&explain, operands, count);
    str_done(&explain.out);
    cli_done(&explain.cli);
    freep(&operands);
    return code;
}
