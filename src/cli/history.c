// SPDX-License-Identifier: Apache-2.0
/*
 * history.c - `spur history`: my jobs of the last days, short and in words
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/timefmt.h"
#include "base/vec.h"
#include "cli/accounting.h"
#include "cli/commands.h"
#include "schema/acct.h"
#include "schema/job_view.h"
#include "schema/names.h"
#include "sys/clock.h"

struct history_args {
    const char *account, *name, *partition, *since, *state, *until, *user;
    bool all_users, help, json;
    uint32_t limit;
};

#define FLAG(member) OPTION_BOOL(struct history_args, member)
#define TEXT(member) OPTION_TEXT(struct history_args, member)

/* clang-format off */
static const struct option rows[] = {
    { .name = "account", .key = 'A', .arg = "LIST", .read = option_text, .into = TEXT(account), .help = "Only jobs of these accounts." },
    { .name = "all-users", .key = 'a', .read = option_flag, .into = FLAG(all_users), .help = "Jobs of all users." },
    { .name = "help", .key = 'h', .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "json", .read = option_flag, .into = FLAG(json), .help = "Print JSON, as sacct does." },
    { .name = "limit", .key = 'n', .arg = "N", .read = option_positive, .into = OPTION_U32(struct history_args, limit), .help = "Only the last N." },
    { .name = "name", .arg = "LIST", .read = option_text, .into = TEXT(name), .help = "Only jobs with these names." },
    { .name = "partition", .key = 'p', .arg = "LIST", .read = option_text, .into = TEXT(partition), .help = "Only jobs of these partitions." },
    { .name = "since", .key = 'S', .arg = "TIME", .read = option_text, .into = TEXT(since), .help = "From this time on: 3days, 12hours, or a date; default 7days." },
    { .name = "state", .key = 's', .arg = "LIST", .read = option_text, .into = TEXT(state), .help = "Only jobs that ended so: failed, timeout, completed." },
    { .name = "until", .key = 'E', .arg = "TIME", .read = option_text, .into = TEXT(until), .help = "Up to this time; default now." },
    { .name = "user", .key = 'u', .arg = "LIST", .read = option_text, .into = TEXT(user), .help = "Only jobs of these users." },
};
/* clang-format on */

const struct option_set history_options = {
    .command = "spur history",
    .usage = "[OPTIONS] [JOB...]",
    .about = "Shows the jobs of the last days and how they ended.",
    .bit = 1,
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

/* ---- printing ---- */

struct line {
    char *id, *name, *user, *state, *when, *ran, *what;
};

struct view {
    struct cli *cli;
    const struct history_args *args;
    struct jsonw json;
    struct str out;
    VEC(struct line) lines;
    bool users;
};

/* "3h ago": how long ago matters more than the date. */
static char *ago(struct cli *cli, int64_t us, int64_t now_us)
{
    int64_t seconds = MAX((now_us - us) / 1000000, 0);

    if (seconds < 90)
        return arena_printf(&cli->arena, "%" PRId64 "s ago", seconds);
    if (seconds < 90 * 60)
        return arena_printf(&cli->arena, "%" PRId64 "m ago", (seconds + 30) / 60);
    if (seconds < 36 * 3600)
        return arena_printf(&cli->arena, "%" PRId64 "h ago", (seconds + 1800) / 3600);
    return arena_printf(&cli->arena, "%" PRId64 "d ago", (seconds + 43200) / 86400);
}

static char *shown(struct cli *cli, const char *text)
{
    CLEANUP(str_done) struct str visible = { 0 };

    str_add_visible(&visible, text ? text : "", text ? strlen(text) : 0);
    return arena_strdup(&cli->arena, str_text(&visible));
}

static char *state_of(struct cli *cli, const struct acct_line *line)
{
    uint32_t status = job_status(line->job->job)->exit_status;
    const char *name =
        line->job->requeued ? "REQUEUED" : name_of(&job_state_names, line->job->state);

    if (status & 0x7f)
        return arena_printf(&cli->arena, "%s (signal %u)", name, status & 0x7f);
    if (status >> 8 & 0xff)
        return arena_printf(&cli->arena, "%s (%u)", name, status >> 8 & 0xff);
    return arena_strdup(&cli->arena, name);
}

static char *resources_of(struct cli *cli, const struct acct_line *line)
{
    CLEANUP(str_done) struct str tres = { 0 };
    uint32_t nodes = job_node_count(line->job->job);

    job_add_tres(&tres, line->job->job, line->job->start_us != 0);
    uint64_t gpus = acct_tres(str_text(&tres), "gres/gpu");
    uint64_t cpus = acct_tres(str_text(&tres), "cpu");
    if (gpus)
        return arena_printf(&cli->arena, "%" PRIu64 " CPUs, %" PRIu64 " GPUs, %u nodes", cpus, gpus,
                            nodes);
    return arena_printf(&cli->arena, "%" PRIu64 " CPUs, %u nodes", cpus, nodes);
}

static void take(void *ctx, const AcctJob *job, int64_t now_us)
{
    struct view *view = ctx;
    struct cli *cli = view->cli;
    struct acct_ctx world = { .now_us = now_us };
    struct acct_line line = { &world, job, NULL };
    CLEANUP(str_done) struct str id = { 0 }, ran = { 0 };

    if (view->args->json) {
        acct_add_json(&world, job, &view->json);
        cli_flush(&view->out);
        return;
    }
    job_add_id(&id, job->job);
    if (job->start_us)
        timefmt_write_duration(&ran, acct_elapsed_s(&line), TIMEFMT_SHORT);
    int64_t when = job->has_end_us ? job->end_us
                   : job->start_us ? job->start_us
                                   : job_status(job->job)->submit_us;
    vec_push(&view->lines, (struct line){ .id = arena_strdup(&cli->arena, str_text(&id)),
                                          .name = shown(cli, job_spec(job->job)->name),
                                          .user = shown(cli, job_owner(job->job)->user),
                                          .state = state_of(cli, &line),
                                          .when = ago(cli, when, now_us),
                                          .ran = arena_strdup(&cli->arena, str_text(&ran)),
                                          .what = resources_of(cli, &line) });
}

static size_t longest(size_t so_far, const char *text)
{
    return MAX(so_far, strlen(text));
}

static void print_lines(struct view *view)
{
    size_t limit = view->args->limit ? view->args->limit : SIZE_MAX;
    size_t first = view->lines.len > limit ? view->lines.len - limit : 0;
    size_t id = 5, name = 4, user = 4, state = 5, when = 4, ran = 3;

    for (size_t i = first; i < view->lines.len; i++) {
        const struct line *line = &view->lines.items[i];
        id = longest(id, line->id);
        name = longest(name, line->name);
        user = longest(user, line->user);
        state = longest(state, line->state);
        when = longest(when, line->when);
        ran = longest(ran, line->ran);
    }
    name = MIN(name, 24);
    for (size_t i = first; i <= view->lines.len; i++) {
        static const struct line head = { (char *)"JOBID", (char *)"NAME", (char *)"USER",
                                          (char *)"STATE", (char *)"WHEN", (char *)"RAN",
                                          (char *)"WITH" };
        const struct line *line = i == first ? &head : &view->lines.items[i - 1];
        str_addf(&view->out, "%-*s  %-*.*s  ", (int)id, line->id, (int)name, (int)name, line->name);
        if (view->users)
            str_addf(&view->out, "%-*s  ", (int)user, line->user);
        str_addf(&view->out, "%-*s  %*s  %*s  %s\n", (int)state, line->state, (int)when, line->when,
                 (int)ran, line->ran, line->what);
    }
    if (view->lines.len == 0)
        str_clear(&view->out), str_add(&view->out, "no jobs\n");
    cli_flush(&view->out);
}

/* ---- the request ---- */

/* "3days" is so long ago; everything else is a moment. */
static int read_moment(struct cli *cli, const char *text, int64_t now_us, int64_t *out_us)
{
    struct err err = { 0 };
    int64_t seconds;
    char *past = arena_printf(&cli->arena, "now-%s", text);

    if (timefmt_read_point(past, now_us / 1000000, TIMEFMT_PAST, &seconds, &err) < 0 &&
        timefmt_read_point(text, now_us / 1000000, TIMEFMT_PAST, &seconds, &err) < 0) {
        cli_error(cli, "'%s' is neither a time nor how long ago: %s", text, err.text);
        return 1;
    }
    *out_us = seconds * 1000000;
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
        if (!job_state_find(word.ptr, word.len, &value, &is_flag) || is_flag) {
            cli_error(cli, "'%.*s' is not a state of a job; sacct --helpstate lists them",
                      (int)word.len, word.ptr);
            return 1;
        }
        request->states[request->n_states++] = value;
    }
    return 0;
}

static int read_users(struct cli *cli, const struct history_args *args, ListHistoryRequest *request)
{
    char **names = NULL;
    size_t count = 0;

    cli_split(cli, args->user, ",", &names, &count);
    request->uids = ARENA_ARRAY(&cli->arena, uint32_t, count + 1);
    if (!args->user && !args->all_users && !request->n_ids)
        request->uids[request->n_uids++] = (uint32_t)geteuid();
    for (size_t i = 0; i < count; i++) {
        if (!cli_user(names[i], &request->uids[request->n_uids++])) {
            cli_error(cli, "there is no user '%s'", names[i]);
            return 1;
        }
    }
    return 0;
}

static int read_request(struct view *view, char **ids, int count, ListHistoryRequest *request)
{
    const struct history_args *args = view->args;
    struct cli *cli = view->cli;
    int64_t now_us = clock_wall_us();

    for (int i = 0; i < count; i++) {
        if (!accounting_read_id(cli, ids[i], request)) {
            cli_error(cli, "'%s' is not a job id", ids[i]);
            return 1;
        }
    }
    request->end_us = now_us;
    if (!count || args->since) {
        request->has_start_us = request->has_end_us = true;
        if (read_moment(cli, args->since ? args->since : "7days", now_us, &request->start_us))
            return 1;
    }
    if (args->until && read_moment(cli, args->until, now_us, &request->end_us))
        return 1;
    cli_split(cli, args->account, ",", &request->accounts, &request->n_accounts);
    cli_split(cli, args->partition, ",", &request->partitions, &request->n_partitions);
    cli_split(cli, args->name, ",", &request->names, &request->n_names);
    request->has_no_steps = true;
    request->no_steps = !args->json;
    return read_users(cli, args, request) || read_states(cli, args->state, request);
}

static int run(struct cli *cli, const struct history_args *args, int argc, char **argv, char **ids,
               int count)
{
    struct view view = { .cli = cli, .args = args, .users = args->all_users || args->user };
    ListHistoryRequest request = LIST_HISTORY_REQUEST__INIT;
    struct err err = { 0 };
    char *cluster = NULL;
    int code = read_request(&view, ids, count, &request);

    if (code == 0) {
        if (args->json) {
            jsonw_init(&view.json, &view.out);
            jsonw_object(&view.json, NULL);
            jsonw_list(&view.json, "jobs");
        }
        if (accounting_list(cli, &request, take, &view, &cluster, &err) < 0) {
            code = accounting_error(cli, &err);
        } else if (args->json) {
            jsonw_list_end(&view.json);
            cli_json_end(&view.json, argc, argv, cluster ? cluster : "");
            cli_flush(&view.out);
        } else {
            print_lines(&view);
        }
    }
    vec_done(&view.lines);
    str_done(&view.out);
    return code;
}

int history_main(int argc, char **argv)
{
    struct option_set set = history_options;
    struct option_ctx ctx = cli_option_ctx();
    struct history_args args = { 0 };
    struct err err = { 0 };
    struct cli cli;
    char **operands = NEW_ARRAY(char *, argc + 1);
    int count = 0, code = 0;

    set.command = cli_name(argv);
    cli_init(&cli, set.command);
    if (option_read_argv(&set, &ctx, &args, argc, argv, OPTION_PERMUTE, operands, &count, &err) < 0)
        code = cli_option_error(&set, &err);
    else if (!cli_help(&set, args.help, false, false))
        code = run(&cli, &args, argc, argv, operands, count);
    cli_done(&cli);
    free(operands);
    return code;
}
