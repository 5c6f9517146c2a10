/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sdiag.c - what the controller has been doing: `sdiag`, `spur diag`
 */
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "schema/diag.h"
#include "schema/option.h"
#include "sys/clock.h"

struct sdiag_args {
    bool help, usage, version, all, reset, json, yaml;
    enum diag_order order;
};

#define FLAG(member) OPTION_BOOL(struct sdiag_args, member)

static int read_order(const struct option_call *call, const char *value, struct err *err)
{
    struct sdiag_args *args = call->target;

    (void)value, (void)err;
    args->order = (enum diag_order)call->row->value;
    return 0;
}

static int read_json(const struct option_call *call, const char *value, struct err *err)
{
    struct sdiag_args *args = call->target;

    (void)value, (void)err;
    args->json = true;
    args->yaml = call->row->value;
    return 0;
}

/* clang-format off */
static const struct option rows[] = {
    { .name = "all", .key = 'a', .read = option_flag, .into = FLAG(all), .help = "Show all statistics (the default)." },
    { .name = "cluster", .arg = "NAMES", .read = option_text, .later = "a command speaks to one cluster" },
    { .name = "clusters", .key = 'M', .arg = "NAMES", .env = { "SLURM_CLUSTERS" }, .read = option_text, .later = "a command speaks to one cluster", .help = "Another cluster." },
    { .name = "help", .key = 'h', .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "json", .arg = "[VERSION]", .read = read_json, .help = "As JSON." },
    { .name = "no-trunc", .read = option_ignored, .help = "Do not cut names; Spur never does." },
    { .name = "reset", .key = 'r', .read = option_flag, .into = FLAG(reset), .help = "Set the counters to zero; for operators and administrators." },
    { .name = "sort-by-id", .key = 'i', .read = read_order, .value = DIAG_BY_ID, .help = "Sort calls by message number and uid." },
    { .name = "sort-by-time", .key = 't', .read = read_order, .value = DIAG_BY_TOTAL, .help = "Sort calls by their total time." },
    { .name = "sort-by-time2", .key = 'T', .read = read_order, .value = DIAG_BY_AVERAGE, .help = "Sort calls by their average time." },
    { .name = "usage", .read = option_flag, .into = FLAG(usage), .help = "Show a short summary of options." },
    { .name = "version", .key = 'V', .read = option_flag, .into = FLAG(version), .help = "Show the version." },
    { .name = "yaml", .arg = "[VERSION]", .read = read_json, .value = true, .help = "As YAML." },
};
/* clang-format on */

const struct option_set sdiag_options = {
    .command = "sdiag",
    .usage = "[OPTIONS...]",
    .about =
        "Show what the controller has been doing: jobs, the planner, calls by method and user.",
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

/* What 1,000 calls cost here: a slow clock slows every log line of every program. */
static int64_t clock_latency_us(void)
{
    int64_t begin = clock_mono_us();
    struct timeval tv;

    for (int i = 0; i < 1000; i++)
        gettimeofday(&tv, NULL);
    return clock_mono_us() - begin;
}

static void print(DiagReply *reply, const struct sdiag_args *args, int argc, char **argv)
{
    struct str out = { 0 };
    struct jsonw json;

    diag_sort(reply, args->order);
    if (!args->json) {
        diag_add_text(reply, clock_latency_us(), &out);
    } else {
        cli_json_begin(&json, &out, args->yaml, argv, "openapi_diag_resp");
        diag_add_json(reply, clock_latency_us(), &json);
        cli_json_end(&json, argc, argv, NULL);
    }
    cli_flush(&out);
    str_done(&out);
}

static int show(struct cli *cli, const struct sdiag_args *args, int argc, char **argv)
{
    DiagRequest request = DIAG_REQUEST__INIT;
    struct err err = { 0 };
    DiagReply *reply;

    request.has_reset = true;
    request.reset = args->reset;
    if (cli_call(cli, "Diag", &request.base, &diag_reply__descriptor, (ProtobufCMessage **)&reply,
                 &err) < 0)
        return cli_load_error(
            cli, args->reset ? "slurm_reset_statistics:" : "slurm_get_statistics:", &err);
    if (args->reset)
        puts("Reset scheduling statistics");
    else
        print(reply, args, argc, argv);
    return 0;
}

int sdiag_main(int argc, char **argv)
{
    struct option_set set = sdiag_options;
    struct option_ctx ctx = cli_option_ctx();
    struct sdiag_args args = { 0 };
    struct err err = { 0 };
    struct cli cli;
    int count = 0, code;

    set.command = cli_name(argv);
    cli_init(&cli, set.command);
    char **operands = ARENA_ARRAY(&cli.arena, char *, (size_t)argc + 1);
    if (option_read_env(&set, &ctx, &args, &err) < 0 ||
        option_read_argv(&set, &ctx, &args, argc, argv, OPTION_PERMUTE, operands, &count, &err) < 0)
        code = cli_option_error(&set, &err);
    else if (cli_help(&set, args.help, args.usage, args.version))
        code = 0;
    else
        code = show(&cli, &args, argc, argv);
    cli_done(&cli);
    return code;
}
