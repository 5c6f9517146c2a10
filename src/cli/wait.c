/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait.c - `spur wait JOB...`: stays until jobs have ended, and ends as they did
 */
#include "cli/commands.h"
#include "cli/submit.h"

struct wait_args {
    bool help;
};

static const struct option rows[] = {
    { .name = "help",
      .key = 'h',
      .read = option_flag,
      .into = OPTION_BOOL(struct wait_args, help),
      .help = "Show this text." },
};

const struct option_set wait_options = {
    .command = "spur wait",
    .usage = "JOB[_TASK]...",
    .about = "Waits until every job has ended. The exit code is the job's, the highest of several; "
             "1 when a job was cancelled, ended by a signal or at its time limit, or is not known.",
    .bit = 1,
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

static int wait_for_all(struct cli *cli, char **ids, int count)
{
    int highest = 0;

    for (int i = 0; i < count; i++) {
        int code = submit_wait_id(cli, ids[i]);
        highest = MAX(highest, code);
    }
    return highest;
}

int wait_main(int argc, char **argv)
{
    struct option_ctx ctx = cli_option_ctx();
    struct wait_args args = { 0 };
    struct err err = { 0 };
    struct cli cli;
    int count = 0, code;

    cli_init(&cli, "spur wait");
    char **ids = ARENA_ARRAY(&cli.arena, char *, argc + 1);
    if (option_read_argv(&wait_options, &ctx, &args, argc, argv, OPTION_PERMUTE, ids, &count,
                         &err) < 0) {
        code = cli_option_error(&wait_options, &err);
    } else if (cli_help(&wait_options, args.help, false, false)) {
        code = 0;
    } else if (!count) {
        cli_error(&cli, "a job id is needed");
        code = 1;
    } else {
        code = wait_for_all(&cli, ids, count);
    }
    cli_done(&cli);
    return code;
}
