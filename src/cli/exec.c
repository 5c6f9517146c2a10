// SPDX-License-Identifier: Apache-2.0
/*
 * exec.c - `spur exec`: a command or a shell inside a running job
 *
 * A step of one task that shares what the job has. Without a command it is the user's shell, with a
 * terminal when there is one here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/commands.h"

struct exec_args {
    bool pty, help;
    const char *node;
};

/* clang-format off */
static const struct option rows[] = {
    { .name = "help", .key = 'h', .read = option_flag, .into = OPTION_BOOL(struct exec_args, help), .help = "Show this text." },
    { .name = "node", .key = 'w', .arg = "NODE", .read = option_text, .into = OPTION_TEXT(struct exec_args, node), .help = "On this node of the job, instead of its first." },
    { .name = "pty", .key = 't', .read = option_flag, .into = OPTION_BOOL(struct exec_args, pty), .help = "With a terminal." },
};
/* clang-format on */

const struct option_set exec_options = {
    .command = "spur exec",
    .usage = "[--pty] [-w NODE] JOB [COMMAND [ARGUMENT...]]",
    .about = "Runs a command, or a shell, inside a running job.",
    .bit = 1,
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

int exec_main(int argc, char **argv)
{
    struct option_ctx ctx = cli_option_ctx();
    struct exec_args args = { 0 };
    struct err err = { 0 };
    struct cli cli;
    int count = 0, n = 0, code = 1;

    cli_init(&cli, "spur exec");
    char **operands = ARENA_ARRAY(&cli.arena, char *, argc + 2);
    char **words = ARENA_ARRAY(&cli.arena, char *, argc + 12);
    size_t len = 0;
    const char *step = NULL;
    if (option_read_argv(&exec_options, &ctx, &args, argc, argv, OPTION_STOP, operands, &count,
                         &err) < 0) {
        code = cli_option_error(&exec_options, &err);
    } else if (cli_help(&exec_options, args.help, false, false)) {
        code = 0;
    } else if (count == 0 || !cli_is_step_id(operands[0], &len, &step) || step) {
        cli_error(&cli, "a job id is needed");
    } else {
        const char *shell = getenv("SHELL");
        words[n++] = arena_strdup(&cli.arena, "srun");
        words[n++] = arena_printf(&cli.arena, "--jobid=%s", operands[0]);
        words[n++] = arena_strdup(&cli.arena, "--overlap");
        words[n++] = arena_strdup(&cli.arena, "-N1");
        words[n++] = arena_strdup(&cli.arena, "-n1");
        if (args.node)
            words[n++] = arena_printf(&cli.arena, "--nodelist=%s", args.node);
        if (args.pty || (count == 1 && isatty(STDIN_FILENO)))
            words[n++] = arena_strdup(&cli.arena, "--pty");
        for (int i = 1; i < count; i++)
            words[n++] = operands[i];
        if (count == 1)
            words[n++] = arena_strdup(&cli.arena, shell && *shell ? shell : "/bin/sh");
        code = srun_main(n, words);
    }
    cli_done(&cli);
    return code;
}
