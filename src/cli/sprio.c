/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sprio.c - what the priorities of waiting jobs are made of: `sprio`, `spur priority`
 *
 * The parts of a job, less nice, add up to what squeue shows.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/sprio.h"
#include "client/client.h"
#include "schema/job_view.h"

struct sprio_args {
    const char *format, *jobs, *partitions, *sort, *users;
    bool help, help_format, long_form, no_header, norm, usage, version, weights;
    uint32_t verbose;
};

#define TEXT(member) OPTION_TEXT(struct sprio_args, member)
#define FLAG(member) OPTION_BOOL(struct sprio_args, member)

/* Its value comes after '=' or joined, and else it is whatever operand follows. */
static int read_jobs(const struct option_call *call, const char *value, struct err *err)
{
    struct sprio_args *args = call->target;

    if (value)
        args->jobs = value;
    return 0;
}

/* clang-format off */
static const struct option rows[] = {
    { .name = "cluster", .arg = "NAMES", .read = option_text, .later = "a command speaks to one cluster" },
    { .name = "clusters", .key = 'M', .arg = "NAMES", .env = { "SLURM_CLUSTERS" }, .read = option_text, .later = "a command speaks to one cluster", .help = "Jobs of other clusters." },
    { .name = "federation", .env = { "SPRIO_FEDERATION" }, .read = option_flag, .later = "there are no federations", .help = "Jobs of the federation." },
    { .name = "format", .key = 'o', .arg = "FORMAT", .env = { "SPRIO_FORMAT" }, .read = option_text, .into = TEXT(format), .help = "Columns by letter: \"%.15i %9r %.10Y\"; --helpformat lists them." },
    { .name = "autocomplete", .arg = "TEXT", .read = option_text, .later = "spur completion writes it for a shell" },
    { .name = "help", .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "helpformat", .read = option_flag, .into = FLAG(help_format), .help = "List the letters of --format." },
    { .name = "jobs", .key = 'j', .arg = "[IDS]", .read = read_jobs, .help = "Only these jobs." },
    { .name = "local", .env = { "SPRIO_LOCAL" }, .read = option_ignored, .help = "Jobs of this cluster, as always." },
    { .name = "long", .key = 'l', .read = option_flag, .into = FLAG(long_form), .help = "More columns." },
    { .name = "noheader", .key = 'h', .read = option_flag, .into = FLAG(no_header), .help = "No line with the names of columns." },
    { .name = "norm", .key = 'n', .read = option_flag, .into = FLAG(norm), .help = "Factors from 0 to 1 instead of their weighted parts." },
    { .name = "partition", .key = 'p', .arg = "NAMES", .read = option_text, .into = TEXT(partitions), .help = "Only jobs in these partitions." },
    { .name = "sib", .read = option_flag, .later = "there are no federations" },
    { .name = "sibling", .env = { "SPRIO_SIBLING" }, .read = option_flag, .later = "there are no federations", .help = "Siblings in the federation." },
    { .name = "sort", .key = 'S', .arg = "LETTERS", .read = option_text, .into = TEXT(sort), .help = "Order by columns: -Y,i." },
    { .name = "usage", .read = option_flag, .into = FLAG(usage), .help = "Show a short summary of options." },
    { .name = "user", .key = 'u', .arg = "NAMES", .read = option_text, .into = TEXT(users), .help = "Only jobs of these users." },
    { .name = "users", .arg = "NAMES", .read = option_text, .into = TEXT(users) },
    { .name = "verbose", .key = 'v', .read = option_increase, .into = OPTION_U32(struct sprio_args, verbose), .help = "Say what is asked for; may be repeated." },
    { .name = "version", .key = 'V', .read = option_flag, .into = FLAG(version), .help = "Show the version." },
    { .name = "weights", .key = 'w', .read = option_flag, .into = FLAG(weights), .help = "The weights instead of jobs." },
};
/* clang-format on */

const struct option_set sprio_options = {
    .command = "sprio",
    .usage = "[OPTIONS...]",
    .operands = "",
    .about = "Show what the priorities of waiting jobs are made of.",
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

/* ---- the command ---- */

struct sprio {
    struct cli cli;
    struct option_set set;
    struct sprio_args args;
    struct columns columns;
    const Config *config;
    struct arena arena;
    VEC(struct sprio_row) rows;
};

/* Columns of weights that are not 0, unless all are asked for. */
static void default_format(const struct sprio *sprio, struct str *out)
{
    const Config *config = sprio->config;
    const struct sprio_args *args = &sprio->args;
    const struct {
        bool has;
        const char *weighted, *norm;
    } columns[] = {
        { true, " %.10S", "" },
        { config->weight_age, " %.10A", " %10a" },
        { config->weight_assoc, " %.10B", " %10b" },
        { config->weight_fairshare, " %.10F", " %10f" },
        { config->weight_job_size, " %.10J", " %10j" },
        { config->weight_partition, " %.10P", " %10p" },
        { config->weight_qos, " %.10Q", " %10q" },
        { !str_is_empty(config->weight_tres), " %.20T", " %20t" },
    };

    if (args->long_form) {
        str_add(out, args->norm ? "%.15i %9r %.8u %.8o %10y %10a %10b %10f %10j %10p %.10n %10q "
                                  "%.11N %20t"
                                : "%.15i %9r %.8u %.8o %.10Y %.10S %.10A %.10B %.10F %.10J %.10P "
                                  "%.10n %.10Q %.11N %.20T");
        return;
    }
    str_addf(out, "%%.15i %%9r%s%s", args->users ? " %.8u" : "", args->norm ? " %10y" : " %.10Y");
    for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
        if (columns[i].has)
            str_add(out, args->norm ? columns[i].norm : columns[i].weighted);
    }
}

static int read_format(struct sprio *sprio)
{
    struct str unknown = { 0 }, format = { 0 };
    struct err err = { 0 };
    const char *cursor;
    struct span word;

    if (sprio->args.format)
        str_add(&format, sprio->args.format);
    else
        default_format(sprio, &format);
    int code =
        columns_read_letters(&sprio->columns, &sprio_fields, str_text(&format), &unknown, &err);
    cursor = str_text(&unknown);
    while (str_next(&cursor, "\n", &word))
        cli_error(&sprio->cli, "Invalid job format specification: %.*s", (int)word.len, word.ptr);
    if (code < 0)
        cli_error(&sprio->cli, "%s", err.text);
    str_done(&unknown);
    str_done(&format);
    return code < 0;
}

static int load_config(struct sprio *sprio, struct err *err)
{
    GetConfigRequest request = GET_CONFIG_REQUEST__INIT;
    GetConfigReply *reply;

    if (cli_call(&sprio->cli, "GetConfig", &request.base, &get_config_reply__descriptor,
                 (ProtobufCMessage **)&reply, err) < 0)
        return -1;
    sprio->config = reply->config;
    return 0;
}

static bool is_asked(const struct sprio *sprio, const char *partition)
{
    const char *list = sprio->args.partitions;
    struct span word;

    if (!list)
        return true;
    while (str_next(&list, ",", &word)) {
        if (strlen(partition) == word.len && memcmp(partition, word.ptr, word.len) == 0)
            return true;
    }
    return false;
}

/* A line for each partition of a job that names several. */
static void add_rows(struct sprio *sprio, const Job *job, const JobStatus *status)
{
    struct sprio_row row = { .job = job, .parts = status->priority_parts, .config = sprio->config };

    if (!status->n_partition_priorities)
        vec_push(&sprio->rows, row);
    for (; row.at < status->n_partition_priorities; row.at++) {
        row.parts = status->partition_priorities[row.at];
        if (is_asked(sprio, row.parts->partition_name))
            vec_push(&sprio->rows, row);
    }
}

static int load_jobs(struct sprio *sprio, struct err *err)
{
    ListJobsRequest request = LIST_JOBS_REQUEST__INIT;
    JobState pending = JOB_PENDING;
    ProtobufCMessage *message;
    int next;

    request.has_with_priority = request.with_priority = true;
    request.n_states = 1;
    request.states = &pending;
    cli_split(&sprio->cli, sprio->args.jobs, ",", &request.ids, &request.n_ids);
    cli_split(&sprio->cli, sprio->args.partitions, ",", &request.partitions, &request.n_partitions);
    cli_users(&sprio->cli, sprio->args.users, &request.users, &request.n_users);
    if (sprio->args.users && !request.n_users)
        return 0;
    struct client_stream *stream = client_stream_open(
        sprio->cli.client,
        &(struct client_stream_options){ .path = "/spur.Controller/ListJobs",
                                         .message = &request.base,
                                         .reply_type = &list_jobs_reply__descriptor },
        err);
    if (!stream)
        return -1;
    while ((next = client_stream_next(stream, &sprio->arena, &message, err)) == CLIENT_MESSAGE) {
        const ListJobsReply *reply = (const ListJobsReply *)message;
        for (size_t i = 0; i < reply->n_jobs; i++) {
            const JobStatus *status = job_status(reply->jobs[i]);
            if (status->priority_parts && status->priority)
                add_rows(sprio, reply->jobs[i], status);
        }
    }
    client_stream_free(stream);
    return next == CLIENT_ENDED ? 0 : -1;
}

static int check_sort(struct sprio *sprio)
{
    for (const char *at = sprio->args.sort; *at; at++) {
        if (!strchr("+-,", *at) && !field_by_letter(&sprio_fields, *at)) {
            cli_error(&sprio->cli, "Invalid sort specification: %c", *at);
            return 1;
        }
    }
    return 0;
}

static void print(struct sprio *sprio)
{
    struct field_ctx ctx = cli_field_ctx(0);
    struct sprio_row weights = { .config = sprio->config };
    struct str out = { 0 };

    if (!sprio->args.no_header)
        columns_add_header(&sprio->columns, &out);
    if (sprio->args.weights)
        columns_add_row(&sprio->columns, &weights, &ctx, &out);
    sprio_sort(sprio->rows.items, sprio->rows.len, sprio->args.sort ? sprio->args.sort : "i");
    vec_each (struct sprio_row, row, &sprio->rows) {
        columns_add_row(&sprio->columns, row, &ctx, &out);
        if (out.len > 60000 && !cli_flush(&out))
            break;
    }
    cli_flush(&out);
    str_done(&out);
}

static int show(struct sprio *sprio)
{
    struct err err = { 0 };

    if (sprio->args.sort && check_sort(sprio))
        return 1;
    if (load_config(sprio, &err) < 0)
        return cli_load_error(&sprio->cli, "Couldn't get priority factors from controller:", &err);
    if (sprio->config->priority_type && str_ieq(sprio->config->priority_type, "basic")) {
        fprintf(stderr, "You are not running a supported priority plugin\n(priority/basic).\n"
                        "Only 'priority/multifactor' is supported.\n");
        return 1;
    }
    if (read_format(sprio))
        return 1;
    if (!sprio->args.weights && load_jobs(sprio, &err) < 0)
        return cli_load_error(&sprio->cli, "Couldn't get priority factors from controller:", &err);
    print(sprio);
    return 0;
}

static int read_args(struct sprio *sprio, int argc, char **argv)
{
    struct option_ctx ctx = cli_option_ctx();
    char **operands = ARENA_ARRAY(&sprio->cli.arena, char *, (size_t)argc + 1);
    struct err err = { 0 };
    struct str list = { 0 };
    int count = 0;

    if (option_read_env(&sprio->set, &ctx, &sprio->args, &err) < 0 ||
        option_read_argv(&sprio->set, &ctx, &sprio->args, argc, argv, OPTION_PERMUTE, operands,
                         &count, &err) < 0)
        return cli_option_error(&sprio->set, &err);
    if (cli_help(&sprio->set, sprio->args.help, sprio->args.usage, sprio->args.version))
        return 0;
    if (sprio->args.help_format) {
        columns_add_letters(&sprio_fields, &list);
        cli_flush(&list);
        str_done(&list);
        return 0;
    }
    if (count && !sprio->args.jobs)
        sprio->args.jobs = operands[0];
    if (sprio->args.verbose)
        fprintf(stderr, "format = %s\njobs   = %s\nusers  = %s\n",
                sprio->args.format ? sprio->args.format : "(default)",
                sprio->args.jobs ? sprio->args.jobs : "all",
                sprio->args.users ? sprio->args.users : "all");
    return -1;
}

int sprio_main(int argc, char **argv)
{
    struct sprio sprio = { .set = sprio_options };

    sprio.set.command = cli_name(argv);
    cli_init(&sprio.cli, sprio.set.command);
    arena_init(&sprio.arena);
    int code = read_args(&sprio, argc, argv);
    if (code < 0)
        code = show(&sprio);
    columns_done(&sprio.columns);
    vec_done(&sprio.rows);
    arena_done(&sprio.arena);
    cli_done(&sprio.cli);
    return code;
}
