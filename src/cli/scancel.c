// SPDX-License-Identifier: Apache-2.0
/*
 * scancel.c - ends or signals jobs: `scancel`, `spur cancel`
 *
 * With ids alone one call is enough. With filters, -i or -v the jobs are listed first, so that the
 * user can be told or asked about each of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/queue.h"
#include "cli/steps.h"
#include "client/client.h"
#include "schema/job_view.h"
#include "schema/names.h"

enum { IDS_AT_ONCE = 5000 }; /* in one request: see LIMIT_REQUEST_IDS */

struct scancel_args {
    const char *account, *name, *nodelist, *partition, *qos, *reservation, *state, *user, *wckey,
        *signal_text;
    bool batch, full, hurry, interactive, me, quiet, help, usage, version, ctld;
    uint32_t verbose;
};

#define TEXT(member) OPTION_TEXT(struct scancel_args, member)
#define FLAG(member) OPTION_BOOL(struct scancel_args, member)

/* clang-format off */
static const struct option rows[] = {
    { .name = "account", .key = 'A', .arg = "NAME", .env = { "SCANCEL_ACCOUNT" }, .read = option_text, .into = TEXT(account), .help = "Only jobs of this account." },
    { .name = "admin-comment", .arg = "TEXT", .read = option_text, .later = "a comment is set with scontrol update", .help = "Comment to set on the jobs." },
    { .name = "batch", .key = 'b', .env = { "SCANCEL_BATCH" }, .read = option_flag, .into = FLAG(batch), .help = "Signal only the batch script." },
    { .name = "cluster", .arg = "NAMES", .read = option_text, .later = "a command speaks to one cluster" },
    { .name = "clusters", .key = 'M', .arg = "NAMES", .read = option_text, .later = "a command speaks to one cluster", .help = "Jobs of other clusters." },
    { .name = "cron", .key = 'c', .env = { "SCANCEL_CRON" }, .read = option_ignored, .help = "Confirm that a cron job is meant; it is not asked for." },
    { .name = "ctld", .env = { "SCANCEL_CTLD" }, .read = option_flag, .into = FLAG(ctld), .help = "Signal through the controller, as is always done here." },
    { .name = "full", .key = 'f', .env = { "SCANCEL_FULL" }, .read = option_flag, .into = FLAG(full), .help = "Signal the script and all its steps." },
    { .name = "autocomplete", .arg = "TEXT", .read = option_text, .later = "spur completion writes it for a shell" },
    { .name = "help", .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "hurry", .key = 'H', .env = { "SCANCEL_HURRY" }, .read = option_flag, .into = FLAG(hurry), .help = "Do not stage out burst buffers, of which there are none." },
    { .name = "interactive", .key = 'i', .env = { "SCANCEL_INTERACTIVE" }, .read = option_flag, .into = FLAG(interactive), .help = "Ask before each job." },
    { .name = "jobname", .arg = "NAME", .read = option_text, .into = TEXT(name) },
    { .name = "me", .read = option_flag, .into = FLAG(me), .help = "Only my jobs." },
    { .name = "name", .key = 'n', .arg = "NAMES", .env = { "SCANCEL_NAME" }, .read = option_text, .into = TEXT(name), .help = "Only jobs with this name." },
    { .name = "nodelist", .key = 'w', .arg = "HOSTS", .read = option_text, .into = TEXT(nodelist), .help = "Only jobs on these nodes." },
    { .name = "partition", .key = 'p', .arg = "NAME", .env = { "SCANCEL_PARTITION" }, .read = option_text, .into = TEXT(partition), .help = "Only jobs in this partition." },
    { .name = "qos", .key = 'q', .arg = "NAME", .env = { "SCANCEL_QOS" }, .read = option_text, .into = TEXT(qos), .help = "Only jobs of this QOS." },
    { .name = "quiet", .key = 'Q', .read = option_flag, .into = FLAG(quiet), .help = "Say nothing about jobs that are over." },
    { .name = "reservation", .key = 'R', .arg = "NAME", .read = option_text, .into = TEXT(reservation), .help = "Only jobs in this reservation." },
    { .name = "sibling", .arg = "NAME", .read = option_text, .later = "there are no federations", .help = "Sibling job of a federation." },
    { .name = "signal", .key = 's', .arg = "SIGNAL", .read = option_text, .into = TEXT(signal_text), .help = "Send this signal instead of ending the job." },
    { .name = "state", .key = 't', .arg = "STATE", .env = { "SCANCEL_STATE" }, .read = option_text, .into = TEXT(state), .help = "Only jobs that are PENDING, RUNNING or SUSPENDED." },
    { .name = "usage", .read = option_flag, .into = FLAG(usage), .help = "Show a short summary of options." },
    { .name = "user", .key = 'u', .arg = "NAME", .env = { "SCANCEL_USER" }, .read = option_text, .into = TEXT(user), .help = "Only jobs of this user." },
    { .name = "verbose", .key = 'v', .env = { "SCANCEL_VERBOSE" }, .read = option_increase, .into = OPTION_U32(struct scancel_args, verbose), .help = "Say what is done; may be repeated." },
    { .name = "version", .key = 'V', .read = option_flag, .into = FLAG(version), .help = "Show the version." },
    { .name = "wckey", .arg = "KEY", .env = { "SCANCEL_WCKEY" }, .read = option_text, .into = TEXT(wckey), .help = "Only jobs with this key." },
};
/* clang-format on */

struct scancel {
    struct cli cli;
    struct option_set set;
    struct scancel_args args;
    char **ids;
    int id_count;
    uint32_t signal; /* 0: end the job */
    JobState state;
    bool has_state;
    char **users;
    size_t user_count;
};

static bool has_filter(const struct scancel *scancel)
{
    const struct scancel_args *args = &scancel->args;

    return args->account || args->name || args->nodelist || args->partition || args->qos ||
           args->reservation || args->state || args->user || args->wckey || args->me;
}

static int check_state(struct scancel *scancel)
{
    static const JobState allowed[] = { JOB_PENDING, JOB_RUNNING, JOB_SUSPENDED };
    const struct name_row *row;

    if (!scancel->args.state)
        return 0;
    row = name_find(&job_state_names, scancel->args.state, strlen(scancel->args.state));
    for (size_t i = 0; row && i < ARRAY_LEN(allowed); i++) {
        if (row->value == (uint32_t)allowed[i]) {
            scancel->state = allowed[i];
            scancel->has_state = true;
            return 0;
        }
    }
    fprintf(stderr,
            "Invalid job state specified: %s\n"
            "Valid job states are PENDING, RUNNING, and SUSPENDED\n",
            scancel->args.state);
    return 1;
}

static int check_user(struct scancel *scancel)
{
    char **users = NULL;
    size_t count = 0;

    if (scancel->args.me) {
        cli_split(&scancel->cli, arena_printf(&scancel->cli.arena, "%u", geteuid()), ",",
                  &scancel->users, &scancel->user_count);
        return 0;
    }
    if (!scancel->args.user)
        return 0;
    cli_split(&scancel->cli, scancel->args.user, ",", &users, &count);
    for (size_t i = 0; i < count; i++) {
        uint32_t uid;

        if (!cli_user(users[i], &uid)) {
            cli_error(&scancel->cli, "Invalid user name: %s", users[i]);
            return 1;
        }
        cli_split(&scancel->cli, arena_printf(&scancel->cli.arena, "%u", uid), ",", &scancel->users,
                  &scancel->user_count);
    }
    return 0;
}

static int check_ids(struct scancel *scancel)
{
    for (int i = 0; i < scancel->id_count; i++) {
        const char *step;
        uint32_t number;
        size_t len;

        if (!cli_is_step_id(scancel->ids[i], &len, &step) ||
            strtoul(scancel->ids[i], NULL, 10) == 0) {
            cli_error(&scancel->cli, "Invalid job id %s", scancel->ids[i]);
            return 1;
        }
        if (step && !steps_read_name(step, &number)) {
            cli_error(&scancel->cli, "Invalid job id %s", scancel->ids[i]);
            return 1;
        }
    }
    if (!scancel->id_count && !has_filter(scancel)) {
        cli_error(&scancel->cli, "No job identification provided");
        return 1;
    }
    return 0;
}

/* The jobs that all filters leave, in order of their ids. */
static int find_jobs(struct scancel *scancel, queue_jobs *jobs, struct err *err)
{
    static const JobState active[] = { JOB_PENDING, JOB_RUNNING, JOB_SUSPENDED };
    const struct scancel_args *args = &scancel->args;
    ListJobsRequest request = LIST_JOBS_REQUEST__INIT;
    struct cli *cli = &scancel->cli;
    struct client_stream *stream;
    ProtobufCMessage *message;
    int next;

    request.ids = scancel->ids;
    request.n_ids = (size_t)scancel->id_count;
    request.users = scancel->users;
    request.n_users = scancel->user_count;
    cli_split(cli, args->account, ",", &request.accounts, &request.n_accounts);
    cli_split(cli, args->partition, ",", &request.partitions, &request.n_partitions);
    cli_split(cli, args->qos, ",", &request.qos, &request.n_qos);
    cli_split(cli, args->name, ",", &request.names, &request.n_names);
    cli_split(cli, args->reservation, ",", &request.reservations, &request.n_reservations);
    if (args->nodelist) {
        request.nodes = ARENA_ARRAY(&cli->arena, char *, 1);
        request.nodes[request.n_nodes++] = (char *)args->nodelist;
    }
    request.states = (JobState *)(scancel->has_state ? &scancel->state : active);
    request.n_states = scancel->has_state ? 1 : ARRAY_LEN(active);
    request.has_hidden_too = request.hidden_too = true;
    request.has_with_spec = request.with_spec = args->wckey != NULL;
    if (cli_connect(cli, err) < 0)
        return -1;
    stream = client_stream_open(
        cli->client,
        &(struct client_stream_options){ .path = "/spur.Controller/ListJobs",
                                         .message = &request.base,
                                         .reply_type = &list_jobs_reply__descriptor },
        err);
    if (!stream)
        return -1;
    while ((next = client_stream_next(stream, &cli->arena, &message, err)) == CLIENT_MESSAGE) {
        const ListJobsReply *reply = (const ListJobsReply *)message;

        for (size_t i = 0; i < reply->n_jobs; i++) {
            if (!args->wckey || str_eq(job_spec(reply->jobs[i])->wckey, args->wckey))
                vec_push(jobs, reply->jobs[i]);
        }
    }
    client_stream_free(stream);
    return next == CLIENT_ENDED ? 0 : -1;
}

static bool confirmed(const struct scancel *scancel, const Job *job, const char *id)
{
    const JobSpec *spec = job_spec(job);
    const char *partition = job_status(job)->partition;
    char answer[64];

    for (;;) {
        printf("%s %s=%s name=%s partition=%s [y/n]? ", scancel->signal ? "Signal" : "Cancel",
               strchr(id, '.') ? "step_id" : "job_id", id, spec->name ? spec->name : "",
               partition         ? partition
               : spec->partition ? spec->partition
                                 : "");
        fflush(stdout);
        if (!fgets(answer, sizeof(answer), stdin))
            return false;
        if (str_istarts(answer, "y"))
            return true;
        if (str_istarts(answer, "n"))
            return false;
    }
}

static void announce(const struct scancel *scancel, const char *id)
{
    if (!scancel->args.verbose)
        return;
    if (!scancel->signal)
        cli_say(&scancel->cli, "Terminating %s %s", strchr(id, '.') ? "step" : "job", id);
    else if (scancel->args.batch)
        cli_say(&scancel->cli, "Signal %u to batch job %s", scancel->signal, id);
    else
        cli_say(&scancel->cli, "Signal %u to %s %s", scancel->signal,
                strchr(id, '.') ? "step" : "job", id);
}

/* What one result means: silence for what is over anyway, else the text and Slurm's number. */
static int judge(const struct scancel *scancel, const JobResult *result)
{
    const char *text =
        result->text && *result->text ? result->text : err_text((enum err_code)result->code);
    bool gone = result->code == ERR_ALREADY_DONE || result->code == ERR_INVALID_JOB_ID ||
                result->code == ERR_JOB_FINISHED;
    int number = result->slurm ? (int)result->slurm : err_slurm((enum err_code)result->code);

    if (!result->code)
        return 0;
    if (scancel->args.quiet ? !gone : !gone || scancel->args.verbose)
        cli_error(&scancel->cli, "Kill job error on job id %s: %s", result->id ? result->id : "?",
                  text);
    if (gone && !scancel->signal)
        return 0;
    return number ? number & 0xff : 1;
}

static int send_ids(struct scancel *scancel, char **ids, size_t count);

static int send_step(struct scancel *scancel, const char *id)
{
    SignalStepRequest request = SIGNAL_STEP_REQUEST__INIT;
    JobResult failed = JOB_RESULT__INIT;
    ProtobufCMessage *reply;
    const char *step = strchr(id, '.');
    struct err err = { 0 };

    request.id = arena_strndup(&scancel->cli.arena, id, (size_t)(step - id));
    request.has_step = true;
    steps_read_name(step + 1, &request.step);
    request.has_signal = scancel->signal != 0;
    request.signal = scancel->signal;
    if (cli_call(&scancel->cli, "SignalStep", &request.base, &done_reply__descriptor, &reply,
                 &err) == 0)
        return 0;
    failed.id = (char *)id;
    failed.code = err.code;
    failed.text = err.text;
    return judge(scancel, &failed);
}

/* Jobs in one call; each step in its own. */
static int send_all(struct scancel *scancel)
{
    char **jobs = ARENA_ARRAY(&scancel->cli.arena, char *, (size_t)scancel->id_count + 1);
    size_t count = 0;
    int code = 0;

    for (int i = 0; i < scancel->id_count; i++) {
        if (!strchr(scancel->ids[i], '.')) {
            jobs[count++] = scancel->ids[i];
            continue;
        }
        int one = send_step(scancel, scancel->ids[i]);
        code = one ? one : code;
    }
    int one = count ? send_ids(scancel, jobs, count) : 0;
    return one ? one : code;
}

static int send_some(struct scancel *scancel, char **ids, size_t count)
{
    CancelJobsRequest request = CANCEL_JOBS_REQUEST__INIT;
    JobsReply *reply;
    struct err err = { 0 };
    int code = 0;

    request.ids = ids;
    request.n_ids = count;
    request.has_signal = scancel->signal != 0;
    request.signal = scancel->signal;
    request.has_batch_only = request.batch_only = scancel->args.batch;
    request.has_full = request.full = scancel->args.full;
    if (cli_call(&scancel->cli, "CancelJobs", &request.base, &jobs_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0) {
        JobResult failed = JOB_RESULT__INIT;

        failed.id = count ? ids[0] : NULL;
        failed.code = err.code;
        failed.text = err.text;
        return judge(scancel, &failed);
    }
    for (size_t i = 0; i < reply->n_results; i++) {
        int one = judge(scancel, reply->results[i]);

        code = one ? one : code;
    }
    return code;
}

static int send_ids(struct scancel *scancel, char **ids, size_t count)
{
    int code = 0;

    for (size_t i = 0; i < count; i += IDS_AT_ONCE) {
        int one = send_some(scancel, ids + i, MIN(count - i, (size_t)IDS_AT_ONCE));
        code = one ? one : code;
    }
    return code;
}

/* "account=nosuch user=x ", as Slurm lists them. */
static void nothing_matches(struct scancel *scancel)
{
    const struct scancel_args *args = &scancel->args;
    const struct {
        const char *name, *value;
    } filters[] = {
        { "account", args->account },   { "name", args->name },
        { "nodelist", args->nodelist }, { "partition", args->partition },
        { "qos", args->qos },           { "reservation", args->reservation },
        { "state", args->state },       { "user", args->user },
        { "wckey", args->wckey },
    };
    struct str list = { 0 };

    for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
        if (filters[i].value)
            str_addf(&list, "%s=%s ", filters[i].name, filters[i].value);
    }
    if (args->verbose)
        cli_error(&scancel->cli, "No active jobs match ALL job filters, including: %s",
                  str_text(&list));
    str_done(&list);
}

/* Steps that were named: each is asked about with its job's name, and ended. */
static int cancel_steps(struct scancel *scancel)
{
    int kept = 0, code = 0;

    for (int i = 0; i < scancel->id_count; i++) {
        char *id = scancel->ids[i];
        const char *dot = strchr(id, '.');
        GetJobRequest request = GET_JOB_REQUEST__INIT;
        GetJobReply *reply;
        struct err err = { 0 };

        if (!dot) {
            scancel->ids[kept++] = id;
            continue;
        }
        request.id = arena_strndup(&scancel->cli.arena, id, (size_t)(dot - id));
        if (cli_call(&scancel->cli, "GetJob", &request.base, &get_job_reply__descriptor,
                     (ProtobufCMessage **)&reply, &err) < 0 ||
            !reply->n_jobs) {
            cli_error(&scancel->cli, "Kill job error on job id %s: %s", id, err.text);
            code = 1;
            continue;
        }
        if (scancel->args.interactive && !confirmed(scancel, reply->jobs[0], id))
            continue;
        announce(scancel, id);
        int one = send_step(scancel, id);
        code = one ? one : code;
    }
    scancel->id_count = kept;
    return code;
}

static int cancel_listed(struct scancel *scancel)
{
    queue_jobs jobs = { 0 };
    struct err err = { 0 };
    char **ids;
    size_t count = 0;
    int named = scancel->id_count, code = cancel_steps(scancel);

    if (named && !scancel->id_count)
        return code;
    if (find_jobs(scancel, &jobs, &err) < 0) {
        vec_done(&jobs);
        return cli_load_error(&scancel->cli, "slurm_load_jobs error:", &err);
    }
    ids = ARENA_ARRAY(&scancel->cli.arena, char *, jobs.len + 1);
    vec_each (const Job *, job, &jobs) {
        struct str id = { 0 };

        job_add_id(&id, *job);
        if (!scancel->args.interactive || confirmed(scancel, *job, str_text(&id))) {
            ids[count] = arena_strdup(&scancel->cli.arena, str_text(&id));
            announce(scancel, ids[count++]);
        }
        str_done(&id);
    }
    if (!jobs.len && has_filter(scancel))
        nothing_matches(scancel);
    else if (!jobs.len && scancel->args.interactive && scancel->id_count)
        code = send_ids(scancel, scancel->ids, (size_t)scancel->id_count);
    if (count)
        code = send_ids(scancel, ids, count);
    vec_done(&jobs);
    return code;
}

static int scancel_run(struct scancel *scancel, int argc, char **argv)
{
    struct option_ctx ctx = cli_option_ctx();
    struct scancel_args *args = &scancel->args;
    struct err err = { 0 };

    if (option_read_env(&scancel->set, &ctx, args, &err) < 0 ||
        option_read_argv(&scancel->set, &ctx, args, argc, argv, OPTION_PERMUTE, scancel->ids,
                         &scancel->id_count, &err) < 0)
        return cli_option_error(&scancel->set, &err);
    if (cli_help(&scancel->set, args->help, args->usage, args->version))
        return 0;
    if (args->signal_text && !signal_find(args->signal_text, &scancel->signal)) {
        fprintf(stderr, "Unknown job signal: %s\n", args->signal_text);
        return 1;
    }
    if (check_state(scancel) || check_user(scancel) || check_ids(scancel))
        return 1;
    if (has_filter(scancel) || args->interactive)
        return cancel_listed(scancel);
    for (int i = 0; i < scancel->id_count; i++)
        announce(scancel, scancel->ids[i]);
    return send_all(scancel);
}

const struct option_set scancel_options = { .command = "scancel",
                                            .usage = "[OPTIONS...] [JOB[_TASK][.STEP]...]",
                                            .operands = "[job_id[_array_id][.step_id]]",
                                            .about = "Ends or signals jobs.",
                                            .bit = 1,
                                            .usage_exit = 1,
                                            .rows = rows,
                                            .count = ARRAY_LEN(rows) };

int scancel_main(int argc, char **argv)
{
    struct scancel scancel = { .ids = NEW_ARRAY(char *, argc + 1) };
    char **ids = scancel.ids;
    int code;

    scancel.set = scancel_options;
    scancel.set.command = cli_name(argv);
    cli_init(&scancel.cli, scancel.set.command);
    code = scancel_run(&scancel, argc, argv);
    cli_done(&scancel.cli);
    free(ids);
    return code;
}
