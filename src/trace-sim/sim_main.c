/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_main.c - `spur-sim`, which `spur sim` becomes
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/timefmt.h"
#include "cli/cli.h"
#include "client/conf_file.h"
#include "schema/jsonw.h"
#include "sys/files.h"
#include "trace-sim/sim.h"

enum { POLICIES_MOST = 16 };

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

bool sim_interrupted(void)
{
    return interrupted != 0;
}

/* ---- progress, on a terminal only ---- */

struct progress {
    const char *policy;
    bool shown, terminal;
    int last;
};

static bool tick(void *ctx, const struct sim_run *run)
{
    struct progress *progress = ctx;
    int percent = (int)(run->ended * 100 / MAX(run->trace->jobs.len, 1));

    if (progress->terminal && percent != progress->last) {
        char bar[41];
        memset(bar, '.', 40);
        memset(bar, '#', (size_t)percent * 40 / 100);
        bar[40] = '\0';
        fprintf(stderr, "\r%-16.16s [%s] %3d %%  %zu waiting  ", progress->policy, bar, percent,
                run->submitted - run->ended);
        fflush(stderr);
        progress->last = percent;
        progress->shown = true;
    }
    return !interrupted;
}

static void progress_end(struct progress *progress)
{
    if (progress->shown)
        fputs("\r\033[K", stderr);
}

/* ---- one policy after the other ---- */

struct job_of_it {
    struct cli *cli;
    const struct sim_args *args;
    struct sim_trace trace;
    struct conf *conf;
    struct str out;
    struct jsonw json;
    bool headed;
    int64_t checkpoint_s, restart_s;
};

static int draw(struct job_of_it *it, const struct sim_run *run, const char *policy,
                struct err *err)
{
    struct str svg = { 0 };
    CLEANUP(freep) char *title = mem_printf("%zu jobs, %s", run->trace->jobs.len, policy);
    int code = sim_svg(run, title, &svg, err);

    if (code >= 0)
        code = file_write_quick(it->args->timeline, str_text(&svg), svg.len, 0644, err);
    str_done(&svg);
    return code;
}

static void show(struct job_of_it *it, const struct sim_run *run, const char *policy)
{
    struct sim_figures figures;

    sim_measure(run, &figures);
    if (it->args->json) {
        sim_json(&it->json, policy, run, &figures, it->args->jobs);
    } else {
        if (!it->headed)
            sim_print_head(&it->out, run);
        if (!it->headed || it->args->users || it->args->jobs)
            sim_print_table_head(&it->out);
        sim_print_row(&it->out, policy, run, &figures);
        if (it->args->users)
            sim_print_users(&it->out, run, &figures);
        if (it->args->jobs)
            sim_print_jobs(&it->out, run);
        cli_flush(&it->out);
    }
    it->headed = true;
    sim_figures_done(&figures);
}

static int run_policy(struct job_of_it *it, const char *policy, struct err *err)
{
    Config config = *conf_config(it->conf);
    struct progress progress = { .policy = policy ? policy : "configured",
                                 .terminal = isatty(STDERR_FILENO),
                                 .last = -1 };
    struct sim_how how = { .config = &config,
                           .bars = it->args->timeline != NULL,
                           .checkpoint_s = it->checkpoint_s,
                           .restart_s = it->restart_s,
                           .tick = tick,
                           .ctx = &progress };
    struct sim_run run = { 0 };

    if (policy && sim_conf_policy(&config, policy, err) < 0)
        return -1;
    /* Jobs that ended are of no use here, and there may be many. */
    config.has_min_job_age_s = config.has_max_job_count = true;
    config.min_job_age_s = 2;
    config.max_job_count = (uint32_t)it->trace.jobs.len + 1000;
    int code = sim_run(&run, &how, &it->trace, err);
    progress_end(&progress);
    if (code >= 0) {
        show(it, &run, progress.policy);
        if (it->args->timeline)
            code = draw(it, &run, progress.policy, err);
    }
    sim_run_done(&run);
    return code;
}

static int run_all(struct job_of_it *it, struct err *err)
{
    const char *list = it->args->policy ? it->args->policy : it->args->config ? NULL : "backfill";
    const char *cursor = list;
    struct span word;
    int count = 0, code = 0;

    if (!list)
        return run_policy(it, NULL, err);
    if (it->args->timeline && strchr(list, ','))
        return err_set(err, ERR_SYNTAX, "--timeline draws one policy, not several");
    while (code >= 0 && !interrupted && str_next(&cursor, ",", &word)) {
        CLEANUP(freep) char *policy = mem_strndup(word.ptr, word.len);
        if (++count > POLICIES_MOST)
            return err_set(err, ERR_RANGE, "at most %d policies are compared", POLICIES_MOST);
        code = run_policy(it, policy, err);
    }
    return code;
}

/* It is drawn last; that it cannot be is better known before. */
static int check_timeline(const struct sim_args *args, struct err *err)
{
    if (!args->timeline)
        return 0;
    const char *slash = strrchr(args->timeline, '/');
    CLEANUP(freep)
    char *dir = slash ? mem_strndup(args->timeline, MAX((size_t)(slash - args->timeline), 1))
                      : mem_strdup(".");
    if (access(dir, W_OK | X_OK) < 0)
        return err_errno(err, errno, "--timeline %s: %s", args->timeline, dir);
    return 0;
}

/* What becomes of requeued jobs. */
static int read_restart(struct job_of_it *it, struct err *err)
{
    const struct sim_args *args = it->args;

    it->checkpoint_s = -1;
    it->restart_s = args->checkpoint ? 60 : 0;
    if (args->checkpoint && (timefmt_read_duration(args->checkpoint, &it->checkpoint_s, NULL) < 0 ||
                             it->checkpoint_s < 0))
        return err_set(err, ERR_SYNTAX, "--checkpoint %s is no time", args->checkpoint);
    if (args->restart && (timefmt_read_duration(args->restart, &it->restart_s, NULL) < 0 ||
                          it->restart_s < 0 || it->restart_s > LIMIT_SECONDS))
        return err_set(err, ERR_SYNTAX, "--restart %s is no time", args->restart);
    return 0;
}

static int run_trace(struct cli *cli, const struct sim_args *args, const char *path)
{
    struct job_of_it it = { .cli = cli, .args = args };
    struct err err = { 0 };
    int code;

    sim_trace_init(&it.trace);
    code = check_timeline(args, &err);
    if (code >= 0)
        code = read_restart(&it, &err);
    if (code >= 0)
        code = sim_trace_read(&it.trace, path, args->only, &err);
    if (code >= 0)
        code = sim_trace_limits(&it.trace, args->limits, &err);
    if (code >= 0) {
        it.conf = sim_conf_read(args, &it.trace, &err);
        code = it.conf ? 0 : -1;
    }
    if (code >= 0) {
        if (args->json) {
            jsonw_init(&it.json, &it.out);
            jsonw_list(&it.json, NULL);
        }
        code = run_all(&it, &err);
        if (args->json && code >= 0) {
            jsonw_list_end(&it.json);
            str_add_char(&it.out, '\n');
            cli_flush(&it.out);
        }
    }
    if (code < 0)
        cli_error(cli, "%s", err.text);
    conf_free(it.conf);
    str_done(&it.out);
    sim_trace_done(&it.trace);
    return code < 0 ? 1 : interrupted ? 130 : 0;
}

static bool misused(struct cli *cli, const struct sim_args *args, int count)
{
    const char *wrong = NULL;

    if (args->what_if &&
        (count || args->only || args->limits || args->timeline || args->nodes || args->checkpoint ||
         args->restart || args->cpus || args->gpus || args->users || args->jobs))
        wrong =
            "--what-if takes the queue of the controller: only --config, --policy and --json go "
            "with it";
    else if (args->what_if && !args->config && !args->policy)
        wrong = "--what-if needs --config or --policy: what is to be changed";
    else if (!args->what_if && count != 1)
        wrong = "one trace is needed";
    if (wrong)
        cli_error(cli, "%s", wrong);
    return wrong != NULL;
}

int main(int argc, char **argv)
{
    struct option_set set = sim_options;
    struct option_ctx ctx = cli_option_ctx();
    struct sim_args args = { 0 };
    struct err err = { 0 };
    char **operands = NEW_ARRAY(char *, argc + 1);
    struct cli cli;
    int count = 0, code;

    signal(SIGPIPE, SIG_IGN);
    sigaction(SIGINT, &(struct sigaction){ .sa_handler = on_interrupt }, NULL);
    cli_init(&cli, set.command);
    if (option_read_argv(&set, &ctx, &args, argc, argv, OPTION_PERMUTE, operands, &count, &err) < 0)
        code = cli_option_error(&set, &err);
    else if (cli_help(&set, args.help, false, false))
        code = 0;
    else if (misused(&cli, &args, count))
        code = 1;
    else
        code = args.what_if ? sim_what_if(&cli, &args) : run_trace(&cli, &args, operands[0]);
    cli_done(&cli);
    freep(&operands);
    return code;
}
