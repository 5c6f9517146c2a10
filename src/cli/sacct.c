// SPDX-License-Identifier: Apache-2.0
/*
 * sacct.c - `sacct`: the history of jobs and steps, in Slurm's columns
 *
 * (1) Without a window it is today; of jobs that are named, all time; with states and no window, now.
 * (2) Others' jobs are shown to whoever asks for all users, names jobs or nodes, or is root.
 */
#include <grp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/timefmt.h"
#include "cli/accounting.h"
#include "cli/commands.h"
#include "schema/acct.h"
#include "schema/names.h"
#include "schema/reasons.h"
#include "sys/clock.h"

struct sacct_args {
    struct str jobs;
    const char *accounts, *assocs, *clusters, *constraints, *delimiter, *end, *format, *gids,
        *names;
    const char *ncpus, *nnodes, *nodes, *partitions, *qos, *reasons, *start, *states, *units,
        *users;
    const char *wckeys, *limit_min, *limit_max, *whole, *json_style, *yaml_style;
    bool allocations, all_clusters, all_users, batch_script, brief, duplicates, env_vars, expand;
    bool helpformat, helpreason, helpstate, json, long_list, noconvert, noheader, parsable;
    bool parsable2, truncate, yaml, help, usage, version;
    uint32_t verbose;
};

#define FLAG(member) OPTION_BOOL(struct sacct_args, member)
#define TEXT(member) OPTION_TEXT(struct sacct_args, member)

static option_reader read_jobs, read_json, read_yaml;

/* clang-format off */
static const struct option rows[] = {
    { .name = "accounts", .key = 'A', .arg = "LIST", .read = option_text, .into = TEXT(accounts), .help = "Only jobs of these accounts." },
    { .name = "allclusters", .key = 'L', .read = option_flag, .into = FLAG(all_clusters), .help = "Jobs of all clusters in the database." },
    { .name = "allocations", .key = 'X', .read = option_flag, .into = FLAG(allocations), .help = "Jobs only, not their steps." },
    { .name = "allusers", .key = 'a', .read = option_flag, .into = FLAG(all_users), .help = "Jobs of all users." },
    { .name = "array", .read = option_ignored, .help = "One line for each task of an array, as it is always." },
    { .name = "associations", .key = 'x', .arg = "LIST", .read = option_text, .into = TEXT(assocs), .help = "Only jobs of these association ids." },
    { .name = "autocomplete", .arg = "PREFIX", .read = option_text, .later = "completion comes from 'spur completion'" },
    { .name = "batch-script", .key = 'B', .read = option_flag, .into = FLAG(batch_script), .help = "Print the batch script of the jobs, when it was kept ([accounting] store)." },
    { .name = "brief", .key = 'b', .read = option_flag, .into = FLAG(brief), .help = "Only id, state and exit code." },
    { .name = "cluster", .key = 0, .arg = "LIST", .read = option_text, .into = TEXT(clusters) },
    { .name = "clusters", .key = 'M', .arg = "LIST", .read = option_text, .into = TEXT(clusters), .help = "Only jobs of these clusters." },
    { .name = "completion", .key = 'c', .read = option_flag, .later = "there is no completion log; the history has every job", .help = "Of the completion log." },
    { .name = "constraints", .key = 'C', .arg = "LIST", .read = option_text, .into = TEXT(constraints), .help = "Only jobs that asked for these features." },
    { .name = "delimiter", .arg = "TEXT", .read = option_text, .into = TEXT(delimiter), .help = "Between columns of -p and -P, instead of '|'." },
    { .name = "duplicates", .key = 'D', .read = option_flag, .into = FLAG(duplicates), .help = "All runs of a job that was requeued, not only the last." },
    { .name = "endtime", .key = 'E', .arg = "TIME", .read = option_text, .into = TEXT(end), .help = "Jobs that were there before this time; default now." },
    { .name = "env-vars", .read = option_flag, .into = FLAG(env_vars), .help = "Print the environment of batch jobs, when it was kept." },
    { .name = "expand-patterns", .read = option_flag, .into = FLAG(expand), .help = "Show names of files with their patterns filled in." },
    { .name = "federation", .read = option_flag, .later = "there are no federations", .help = "Jobs of the federation." },
    { .name = "fields", .arg = "LIST", .read = option_text, .into = TEXT(format) },
    { .name = "file", .key = 'f', .arg = "FILE", .read = option_text, .later = "there is no completion log; the history has every job", .help = "Read a completion log." },
    { .name = "flags", .key = 'F', .arg = "LIST", .read = option_text, .later = "what scheduled a job is not recorded", .help = "Only jobs with these flags." },
    { .name = "format", .key = 'o', .arg = "LIST", .env = { "SACCT_FORMAT" }, .read = option_text, .into = TEXT(format), .help = "Columns to print: NAME[%[-]WIDTH], or ALL." },
    { .name = "gid", .key = 'g', .arg = "LIST", .read = option_text, .into = TEXT(gids), .help = "Only jobs of these groups." },
    { .name = "group", .arg = "LIST", .read = option_text, .into = TEXT(gids) },
    { .name = "help", .key = 'h', .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "help-fields", .read = option_flag, .into = FLAG(helpformat) },
    { .name = "helpformat", .key = 'e', .read = option_flag, .into = FLAG(helpformat), .help = "List the columns." },
    { .name = "helpreason", .read = option_flag, .into = FLAG(helpreason), .help = "List the reasons." },
    { .name = "helpstate", .read = option_flag, .into = FLAG(helpstate), .help = "List the states." },
    { .name = "jobs", .key = 'j', .arg = "LIST", .read = read_jobs, .help = "Only these jobs or steps: 12, 12_3, 12_[1-5], 12+1, 12.batch; may be repeated." },
    { .name = "json", .arg = "[VERSION]", .read = read_json, .help = "Print JSON." },
    { .name = "local", .env = { "SACCT_LOCAL" }, .read = option_ignored, .help = "Of this cluster only, as it is always." },
    { .name = "long", .key = 'l', .read = option_flag, .into = FLAG(long_list), .help = "Many columns." },
    { .name = "name", .arg = "LIST", .read = option_text, .into = TEXT(names), .help = "Only jobs with these names." },
    { .name = "ncpus", .key = 'I', .arg = "N[-M]", .read = option_text, .into = TEXT(ncpus), .help = "Only jobs that had so many CPUs." },
    { .name = "nnodes", .key = 'i', .arg = "N[-M]", .read = option_text, .into = TEXT(nnodes), .help = "Only jobs that had so many nodes." },
    { .name = "noconvert", .read = option_flag, .into = FLAG(noconvert), .help = "Sizes as they are, without a unit." },
    { .name = "nodelist", .key = 'N', .arg = "LIST", .read = option_text, .into = TEXT(nodes), .help = "Only jobs that ran on one of these nodes." },
    { .name = "noheader", .key = 'n', .read = option_flag, .into = FLAG(noheader), .help = "Without the header." },
    { .name = "parsable", .key = 'p', .read = option_flag, .into = FLAG(parsable), .help = "Columns with '|' behind each." },
    { .name = "parsable2", .key = 'P', .read = option_flag, .into = FLAG(parsable2), .help = "Columns with '|' between them." },
    { .name = "partition", .key = 'r', .arg = "LIST", .read = option_text, .into = TEXT(partitions), .help = "Only jobs of these partitions." },
    { .name = "qos", .key = 'q', .arg = "LIST", .read = option_text, .into = TEXT(qos), .help = "Only jobs of these QOS." },
    { .name = "reason", .key = 'R', .arg = "LIST", .read = option_text, .into = TEXT(reasons), .help = "Only jobs with these reasons." },
    { .name = "starttime", .key = 'S', .arg = "TIME", .read = option_text, .into = TEXT(start), .help = "Jobs that were there after this time; default midnight." },
    { .name = "state", .key = 's', .arg = "LIST", .read = option_text, .into = TEXT(states), .help = "Only jobs that were in one of these states within the window." },
    { .name = "timelimit-max", .key = 'K', .arg = "TIME", .read = option_text, .into = TEXT(limit_max), .help = "Only jobs with at most this time limit; with -k." },
    { .name = "timelimit-min", .key = 'k', .arg = "TIME", .read = option_text, .into = TEXT(limit_min), .help = "Only jobs with this time limit, or with -K at least this one." },
    { .name = "truncate", .key = 'T', .read = option_flag, .into = FLAG(truncate), .help = "Count only what lies within the window: starts and ends outside of it are its own." },
    { .name = "uid", .arg = "LIST", .read = option_text, .into = TEXT(users) },
    { .name = "units", .arg = "[KMGTP]", .read = option_text, .into = TEXT(units), .help = "Sizes in this unit." },
    { .name = "usage", .key = 'U', .read = option_flag, .into = FLAG(usage), .help = "Show a short text." },
    { .name = "use-local-uid", .read = option_ignored, .help = "Names of users as this host has them." },
    { .name = "user", .key = 'u', .arg = "LIST", .read = option_text, .into = TEXT(users), .help = "Only jobs of these users." },
    { .name = "verbose", .key = 'v', .read = option_increase, .into = OPTION_U32(struct sacct_args, verbose), .help = "Say more; may be repeated." },
    { .name = "version", .key = 'V', .read = option_flag, .into = FLAG(version), .help = "Show the version." },
    { .name = "wckeys", .key = 'W', .arg = "LIST", .read = option_text, .into = TEXT(wckeys), .help = "Only jobs with these workload characterisation keys." },
    { .name = "whole-hetjob", .arg = "[yes|no]", .read = option_text, .into = TEXT(whole), .help = "All components of a heterogeneous job of which one is named." },
    { .name = "yaml", .arg = "[VERSION]", .read = read_yaml, .help = "Print YAML." },
};
/* clang-format on */

const struct option_set sacct_options = {
    .command = "sacct",
    .usage = "[OPTIONS]",
    .about = "Shows the history of jobs and steps, also of those that run.",
    .bit = 1,
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

static int read_jobs(const struct option_call *call, const char *value, struct err *err)
{
    struct sacct_args *args = call->target;

    (void)err;
    str_addf(&args->jobs, "%s%s", args->jobs.len ? "," : "", value);
    return 0;
}

static int read_json(const struct option_call *call, const char *value, struct err *err)
{
    struct sacct_args *args = call->target;

    (void)err;
    args->json = true;
    args->json_style = value;
    return 0;
}

static int read_yaml(const struct option_call *call, const char *value, struct err *err)
{
    struct sacct_args *args = call->target;

    (void)err;
    args->json = args->yaml = true;
    args->yaml_style = value;
    return 0;
}

/* ---- the table ---- */

struct column {
    const struct acct_field *field;
    int width; /* negative: to the left */
};

struct table {
    struct cli *cli;
    const struct sacct_args *args;
    struct acct_ctx ctx;
    VEC(struct column) columns;
    struct str out, cell;
    struct jsonw json;
    const char *delimiter;
};

static const char default_format[] = "jobid,jobname,partition,account,alloccpus,state,exitcode";
static const char brief_format[] = "jobid,state,exitcode";
static const char long_format[] =
    "jobid,jobidraw,jobname,partition,maxvmsize,maxvmsizenode,maxvmsizetask,avevmsize,maxrss,"
    "maxrssnode,maxrsstask,averss,maxpages,maxpagesnode,maxpagestask,avepages,mincpu,mincpunode,"
    "mincputask,avecpu,ntasks,alloccpus,elapsed,state,exitcode,avecpufreq,reqcpufreqmin,"
    "reqcpufreqmax,reqcpufreqgov,reqmem,consumedenergy,maxdiskread,maxdiskreadnode,"
    "maxdiskreadtask,avediskread,maxdiskwrite,maxdiskwritenode,maxdiskwritetask,avediskwrite,"
    "reqtres,alloctres,tresusageinave,tresusageinmax,tresusageinmaxnode,tresusageinmaxtask,"
    "tresusageinmin,tresusageinminnode,tresusageinmintask,tresusageintot,tresusageoutmax,"
    "tresusageoutmaxnode,tresusageoutmaxtask,tresusageoutave,tresusageouttot";

enum { LISTED_FIELDS = 123 }; /* without those of old versions behind them */

static int read_format(struct table *table, const char *format)
{
    const char *cursor = format;
    struct span word;

    while (str_next(&cursor, ", ", &word)) {
        const char *percent = memchr(word.ptr, '%', word.len);
        struct span name = { word.ptr, percent ? (size_t)(percent - word.ptr) : word.len };
        if (span_ieq(name, "ALL")) {
            for (size_t i = 0; i < LISTED_FIELDS; i++)
                vec_push(&table->columns, (struct column){ &acct_fields[i], acct_fields[i].width });
            continue;
        }
        const struct acct_field *field = acct_field_find(name.ptr, name.len);
        if (!field) {
            cli_error(table->cli, "Invalid field requested: \"%.*s\"", (int)name.len, name.ptr);
            return 1;
        }
        int width = percent ? atoi(percent + 1) : field->width;
        vec_push(&table->columns, (struct column){ field, width ? width : field->width });
    }
    return 0;
}

static void put_cell(struct table *table, const struct column *column, const char *text, bool last)
{
    const struct sacct_args *args = table->args;
    int width = abs(column->width);
    size_t len = strlen(text);

    if (args->parsable || args->parsable2) {
        str_add(&table->out, text);
        if (!args->parsable2 || !last)
            str_add(&table->out, table->delimiter);
        return;
    }
    if (len > (size_t)width)
        str_addf(&table->out, "%.*s+ ", width - 1, text);
    else
        str_addf(&table->out, column->width < 0 ? "%-*s " : "%*s ", width, text);
}

static void print_header(struct table *table)
{
    const struct sacct_args *args = table->args;
    size_t count = table->columns.len;

    if (args->noheader)
        return;
    for (size_t i = 0; i < count; i++)
        put_cell(table, &table->columns.items[i], table->columns.items[i].field->name,
                 i + 1 == count);
    str_add_char(&table->out, '\n');
    if (args->parsable || args->parsable2)
        return;
    for (size_t i = 0; i < count; i++) {
        str_add_fill(&table->out, '-', (size_t)abs(table->columns.items[i].width));
        str_add_char(&table->out, ' ');
    }
    str_add_char(&table->out, '\n');
}

static void print_line(struct table *table, const AcctJob *job, const AcctStep *step)
{
    struct acct_line line = { &table->ctx, job, step };
    CLEANUP(str_done) struct str shown = { 0 };
    size_t count = table->columns.len;

    for (size_t i = 0; i < count; i++) {
        const struct column *column = &table->columns.items[i];
        str_clear(&table->cell);
        str_clear(&shown);
        column->field->write(&line, column->field->number, &table->cell);
        str_add_visible(&shown, str_text(&table->cell), table->cell.len);
        put_cell(table, column, str_text(&shown), i + 1 == count);
    }
    str_add_char(&table->out, '\n');
}

/* A step was asked for by name: its job's line is not wanted. */
static bool only_steps(const struct table *table, const ListHistoryRequest *request)
{
    (void)table;
    for (size_t i = 0; i < request->n_ids; i++) {
        if (!request->ids[i]->has_step)
            return false;
    }
    return request->n_ids > 0;
}

struct printing {
    struct table *table;
    const ListHistoryRequest *request;
};

static void add_bytes(struct str *out, const JobPayload *payload, bool env)
{
    bool any = payload && (env ? payload->n_env > 0 : payload->has_script);

    if (!any) {
        str_add(out, "NONE\n");
        return;
    }
    for (size_t i = 0; env && i < payload->n_env; i++) {
        str_add_len(out, payload->env[i].data, payload->env[i].len);
        str_add_char(out, '\n');
    }
    if (!env)
        str_add_len(out, payload->script.data, payload->script.len);
    if (out->len && out->data[out->len - 1] != '\n')
        str_add_char(out, '\n');
}

static void print_payload(struct table *table, const AcctJob *job)
{
    struct acct_line line = { &table->ctx, job, NULL };
    const struct acct_field *id = acct_field_find("JobID", 5);
    bool env = table->args->env_vars;

    str_clear(&table->cell);
    id->write(&line, id->number, &table->cell);
    str_addf(&table->out,
             env ? "Environment used for %s (must be batch to display)\n" : "Batch Script for %s\n",
             str_text(&table->cell));
    str_add_fill(&table->out, '-', 80);
    str_add_char(&table->out, '\n');
    add_bytes(&table->out, job->payload, env);
}

static void print_job(void *ctx, const AcctJob *job, int64_t now_us)
{
    struct printing *printing = ctx;
    struct table *table = printing->table;

    if (now_us)
        table->ctx.now_us = now_us;
    if (table->args->json) {
        acct_add_json(&table->ctx, job, &table->json);
    } else if (table->args->batch_script || table->args->env_vars) {
        print_payload(table, job);
    } else {
        if (!only_steps(table, printing->request))
            print_line(table, job, NULL);
        for (size_t i = 0; i < job->n_steps && !table->args->allocations; i++)
            print_line(table, job, job->steps[i]);
    }
    cli_flush(&table->out);
}

/* ---- the request ---- */

static int read_time(const char *text, int64_t now_us, int64_t *out_us)
{
    struct err err = { 0 };
    int64_t seconds;

    if (timefmt_read_point(text, now_us / 1000000, TIMEFMT_PAST, &seconds, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    *out_us = seconds * 1000000;
    return 0;
}

/* (1) */
static int read_window(struct table *table, ListHistoryRequest *request)
{
    const struct sacct_args *args = table->args;
    int64_t now_us = table->ctx.now_us;

    request->start_us = 0;
    request->end_us = now_us;
    if (args->start && read_time(args->start, now_us, &request->start_us) != 0)
        return 1;
    if (args->end && read_time(args->end, now_us, &request->end_us) != 0)
        return 1;
    if (!args->start && !request->n_ids) {
        if (args->states)
            request->start_us = args->end ? request->end_us : now_us;
        else if (read_time("midnight", now_us, &request->start_us) != 0)
            return 1;
    }
    request->has_start_us = request->start_us > 0;
    request->has_end_us = request->has_start_us || args->end;
    if (request->has_end_us && request->start_us > request->end_us) {
        cli_error(table->cli, "The end of the window (%s) is before its start.",
                  args->end ? args->end : "now");
        return 1;
    }
    table->ctx.truncate = args->truncate && request->has_start_us;
    table->ctx.from_us = request->start_us;
    table->ctx.upto_us = request->end_us;
    return 0;
}

static int read_states(struct cli *cli, const char *text, ListHistoryRequest *request)
{
    const char *cursor = text;
    struct span word;

    request->states = ARENA_ARRAY(&cli->arena, uint32_t, text ? strlen(text) + 1 : 1);
    while (text && str_next(&cursor, ",", &word)) {
        uint32_t value;
        bool is_flag = false;
        if (span_ieq(word, "REQUEUED") || span_ieq(word, "RQ")) {
            request->has_requeued = request->requeued = true;
        } else if (job_state_find(word.ptr, word.len, &value, &is_flag)) {
            /* What is COMPLETING and its like is recorded as running. */
            request->states[request->n_states++] = is_flag ? (uint32_t)JOB_RUNNING : value;
        } else {
            cli_fatal(cli, "unrecognized job state value '%.*s'", (int)word.len, word.ptr);
            return 1;
        }
    }
    return 0;
}

/* Names that this host does not know are looked for by name, as the clusters recorded them. */
static int read_users(struct cli *cli, const struct sacct_args *args, ListHistoryRequest *request)
{
    char **names = NULL;
    size_t count = 0;
    uint32_t own = (uint32_t)geteuid();
    bool all = args->all_users || (!args->users && (request->n_ids || args->nodes || own == 0));

    cli_split(cli, args->users, ",", &names, &count);
    request->uids = ARENA_ARRAY(&cli->arena, uint32_t, count + 1);
    if (!all && !args->users) /* (2) */
        request->uids[request->n_uids++] = own;
    for (size_t i = 0; i < count && !args->all_users; i++) {
        if (!cli_user(names[i], &request->uids[request->n_uids])) {
            cli_error(cli, "Invalid user id: %s", names[i]);
            return 1;
        }
        request->n_uids++;
    }
    return 0;
}

static int read_groups(struct cli *cli, const char *text, ListHistoryRequest *request)
{
    char **names = NULL;
    size_t count = 0;

    cli_split(cli, text, ",", &names, &count);
    request->gids = ARENA_ARRAY(&cli->arena, uint32_t, count + 1);
    for (size_t i = 0; i < count; i++) {
        uint64_t number;
        struct group *group = getgrnam(names[i]);
        if (group) {
            number = group->gr_gid;
        } else if (!str_to_u64(names[i], UINT32_MAX, &number)) {
            cli_fatal(cli, "Invalid group id: %s", names[i]);
            return 1;
        }
        request->gids[request->n_gids++] = (uint32_t)number;
    }
    return 0;
}

/* "4" or "2-8". */
static bool read_range(const char *text, protobuf_c_boolean *has_min, uint32_t *min,
                       protobuf_c_boolean *has_max, uint32_t *max)
{
    char *end;

    if (!text)
        return true;
    *min = *max = (uint32_t)strtoul(text, &end, 10);
    if (end == text)
        return false;
    if (*end == '-')
        *max = (uint32_t)strtoul(end + 1, &end, 10);
    *has_min = *has_max = true;
    return *end == '\0' && *max >= *min;
}

static int read_limits(struct cli *cli, const struct sacct_args *args, ListHistoryRequest *request)
{
    struct err err = { 0 };

    if (args->limit_max && !args->limit_min) {
        cli_fatal(cli, "Can't use --timelimit-max without --timelimit-min");
        return 1;
    }
    if ((args->limit_min &&
         timefmt_read_duration(args->limit_min, &request->min_limit_s, &err) < 0) ||
        (args->limit_max &&
         timefmt_read_duration(args->limit_max, &request->max_limit_s, &err) < 0)) {
        cli_fatal(cli, "Invalid time limit: %s", err.text);
        return 1;
    }
    request->has_min_limit_s = request->has_max_limit_s = args->limit_min != NULL;
    if (args->limit_min && !args->limit_max)
        request->max_limit_s = request->min_limit_s;
    return 0;
}

static int read_ids(struct cli *cli, const struct sacct_args *args, ListHistoryRequest *request)
{
    char **words = NULL;
    size_t count = 0;
    /* Commas inside of brackets belong to an id. */
    struct str list = { 0 };
    bool inside = false;

    for (const char *at = str_text(&args->jobs); *at; at++) {
        inside = *at == '[' || (inside && *at != ']');
        str_add_char(&list, *at == ',' && !inside ? '\n' : *at);
    }
    cli_split(cli, str_text(&list), "\n ", &words, &count);
    str_done(&list);
    for (size_t i = 0; i < count; i++) {
        if (!accounting_read_id(cli, words[i], request)) {
            cli_fatal(cli, "Invalid job id specified: %s", words[i]);
            return 1;
        }
    }
    return 0;
}

static int read_whole(struct cli *cli, const struct sacct_args *args, ListHistoryRequest *request)
{
    bool yes = args->whole && !str_ieq(args->whole, "no");

    if (args->whole && *args->whole && !str_ieq(args->whole, "no") &&
        !str_ieq(args->whole, "yes")) {
        cli_fatal(cli, "Invalid --whole-hetjob: '%s' is neither yes nor no", args->whole);
        return 1;
    }
    for (size_t i = 0; i < request->n_ids && yes; i++)
        request->ids[i]->has_offset = false;
    return 0;
}

static int read_assocs(struct cli *cli, const char *text, ListHistoryRequest *request)
{
    char **words = NULL;
    size_t count = 0;
    uint64_t number;

    cli_split(cli, text, ",", &words, &count);
    request->assocs = ARENA_ARRAY(&cli->arena, uint32_t, count + 1);
    for (size_t i = 0; i < count; i++) {
        if (!str_to_u64(words[i], UINT32_MAX, &number)) {
            cli_fatal(cli, "Invalid association id: %s", words[i]);
            return 1;
        }
        request->assocs[request->n_assocs++] = (uint32_t)number;
    }
    return 0;
}

static int read_request(struct table *table, ListHistoryRequest *r)
{
    const struct sacct_args *args = table->args;
    struct cli *cli = table->cli;

    if (read_ids(cli, args, r) || read_whole(cli, args, r) || read_users(cli, args, r) ||
        read_groups(cli, args->gids, r) || read_states(cli, args->states, r) ||
        read_limits(cli, args, r) || read_assocs(cli, args->assocs, r) || read_window(table, r))
        return 1;
    if (!read_range(args->ncpus, &r->has_min_cpus, &r->min_cpus, &r->has_max_cpus, &r->max_cpus) ||
        !read_range(args->nnodes, &r->has_min_nodes, &r->min_nodes, &r->has_max_nodes,
                    &r->max_nodes)) {
        cli_fatal(cli, "Invalid number of %s: expected N or N-M",
                  args->ncpus && !r->has_min_cpus ? "CPUs" : "nodes");
        return 1;
    }
    cli_split(cli, args->accounts, ",", &r->accounts, &r->n_accounts);
    cli_split(cli, args->partitions, ",", &r->partitions, &r->n_partitions);
    cli_split(cli, args->qos, ",", &r->qos, &r->n_qos);
    cli_split(cli, args->names, ",", &r->names, &r->n_names);
    cli_split(cli, args->wckeys, ",", &r->wckeys, &r->n_wckeys);
    cli_split(cli, args->constraints, ",&", &r->constraints, &r->n_constraints);
    cli_split(cli, args->reasons, ",", &r->reasons, &r->n_reasons);
    if (args->clusters && !str_ieq(args->clusters, "all"))
        cli_split(cli, args->clusters, ",", &r->clusters, &r->n_clusters);
    r->nodes = (char *)args->nodes;
    r->has_all_clusters = r->all_clusters = args->all_clusters || str_ieq(args->clusters, "all");
    r->has_duplicates = r->duplicates = args->duplicates;
    r->has_payload = r->payload = args->batch_script || args->env_vars;
    r->has_no_steps = true;
    /* CPU times of a job are those of its steps. */
    r->no_steps = r->payload;
    return 0;
}

/* ---- the command ---- */

static void print_fields(void)
{
    for (size_t i = 0; i < LISTED_FIELDS; i++)
        printf("%-19s%s", acct_fields[i].name, i % 4 == 3 ? "\n" : " ");
    puts("");
}

static void print_names(const struct name_table *names)
{
    for (size_t i = 0; i < names->count; i++)
        puts(names->rows[i].name);
}

static void print_reasons(void)
{
    for (uint32_t i = 0; i < REASON_COUNT; i++) {
        const char *word = reason_word(i);
        if (strcmp(word, "InvalidReason") != 0)
            puts(word);
    }
}

static int run(struct cli *cli, const struct sacct_args *args, int argc, char **argv)
{
    struct table table = { .cli = cli, .args = args };
    ListHistoryRequest request = LIST_HISTORY_REQUEST__INIT;
    struct printing printing = { &table, &request };
    struct field_ctx shown = cli_field_ctx(0);
    struct err err = { 0 };
    char *cluster = NULL;
    const char *format = args->brief       ? brief_format
                         : args->long_list ? long_format
                         : args->format    ? args->format
                                           : default_format;

    table.ctx = (struct acct_ctx){ .now_us = clock_wall_us(),
                                   .time_format = shown.time_format,
                                   .units = args->units ? *args->units : 0,
                                   .noconvert = args->noconvert,
                                   .expand = args->expand,
                                   .array_chars = shown.array_chars };
    table.delimiter = args->delimiter ? args->delimiter : "|";
    if (args->units && (strlen(args->units) != 1 || !strchr("KMGTP", *args->units))) {
        cli_fatal(cli, "Invalid unit '%s': expected K, M, G, T or P", args->units);
        return 1;
    }
    int code = read_format(&table, format) || read_request(&table, &request);
    if (code == 0) {
        bool plain = !args->json && !args->batch_script && !args->env_vars;
        if (args->json) {
            cli_json_begin(&table.json, &table.out, args->yaml, argv, "openapi_slurmdbd_jobs_resp");
            jsonw_list(&table.json, "jobs");
        } else if (plain) {
            print_header(&table);
        }
        if (accounting_list(cli, &request, print_job, &printing, &cluster, &err) < 0) {
            code = accounting_error(cli, &err);
        } else if (args->json) {
            jsonw_list_end(&table.json);
            cli_json_end(&table.json, argc, argv, cluster ? cluster : "");
        }
        if (code == 0)
            cli_flush(&table.out);
    }
    vec_done(&table.columns);
    str_done(&table.out);
    str_done(&table.cell);
    return code;
}

int sacct_main(int argc, char **argv)
{
    struct option_set set = sacct_options;
    struct option_ctx ctx = cli_option_ctx();
    struct sacct_args args = { 0 };
    struct err err = { 0 };
    char **operands = NEW_ARRAY(char *, argc + 1);
    struct cli cli;
    int count = 0, code = 0;

    set.command = cli_name(argv);
    cli_init(&cli, set.command);
    if (option_read_env(&set, &ctx, &args, &err) < 0 ||
        option_read_argv(&set, &ctx, &args, argc, argv, OPTION_PERMUTE, operands, &count, &err) < 0)
        code = cli_option_error(&set, &err);
    else if (args.helpformat)
        print_fields();
    else if (args.helpstate)
        print_names(&job_state_names);
    else if (args.helpreason)
        print_reasons();
    else if (!cli_help(&set, args.help, args.usage, args.version))
        code = run(&cli, &args, argc, argv);
    str_done(&args.jobs);
    cli_done(&cli);
    free(operands);
    return code;
}
