// SPDX-License-Identifier: Apache-2.0
/*
 * token.c - `spur token`: a token for this user, or for a machine that joins
 */
#include <stdio.h>
#include <string.h>

#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "proto/controller.pb-c.h"

struct token_args {
    const char *user, *node;
    int64_t lifespan_s;
    bool join, help;
};

static const struct option rows[] = {
    { .name = "join",
      .read = option_flag,
      .into = OPTION_BOOL(struct token_args, join),
      .help = "A token with which a new machine becomes a node; for administrators." },
    { .name = "lifespan",
      .key = 'l',
      .arg = "TIME",
      .read = option_duration,
      .into = OPTION_I64(struct token_args, lifespan_s),
      .help =
          "How long it is valid: 30 (minutes, the default), 2:00:00, 7-0. The cluster's own join "
          "token has no end." },
    { .name = "node",
      .arg = "NAME",
      .read = option_text,
      .into = OPTION_TEXT(struct token_args, node),
      .help = "With --join: only for the node of this name, or these: n[1-4]." },
    { .name = "user",
      .key = 'u',
      .arg = "NAME",
      .read = option_text,
      .into = OPTION_TEXT(struct token_args, user),
      .help = "For another user; for administrators." },
    { .name = "help",
      .key = 'h',
      .read = option_flag,
      .into = OPTION_BOOL(struct token_args, help),
      .help = "Show this text." },
};

static int get_token(struct cli *cli, const struct token_args *args, TokenReply **reply,
                     struct err *err)
{
    TokenRequest token = TOKEN_REQUEST__INIT;
    JoinTokenRequest join = JOIN_TOKEN_REQUEST__INIT;

    token.has_lifespan_s = join.has_lifespan_s = args->lifespan_s > 0;
    token.lifespan_s = join.lifespan_s = (uint32_t)MIN(args->lifespan_s, UINT32_MAX);
    token.user = (char *)args->user;
    join.node = (char *)args->node;
    return cli_call(cli, args->join ? "JoinToken" : "Token", args->join ? &join.base : &token.base,
                    &token_reply__descriptor, (ProtobufCMessage **)reply, err);
}

const struct option_set token_options = {
    .command = "spur token",
    .usage = "[--user NAME] [--lifespan TIME] | --join [--node NAME] [--lifespan TIME]",
    .about = "Makes a token and prints it.",
    .bit = 1,
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

int token_main(int argc, char **argv)
{
    struct option_set set = token_options;
    struct option_ctx ctx = cli_option_ctx();
    struct token_args args = { 0 };
    struct err err = { 0 };
    char **operands = NEW_ARRAY(char *, argc + 1);
    TokenReply *reply;
    struct cli cli;
    int count = 0, code = 0;

    set.command = cli_name(argv);
    cli_init(&cli, set.command);
    if (option_read_argv(&set, &ctx, &args, argc, argv, OPTION_PERMUTE, operands, &count, &err) <
        0) {
        code = cli_option_error(&set, &err);
    } else if (cli_help(&set, args.help, false, false)) {
        code = 0;
    } else if (count || (args.node && !args.join) || (args.user && args.join)) {
        cli_error(&cli, "%s",
                  count ? "no argument is taken" : "--node goes with --join, --user without");
        code = 1;
    } else if (get_token(&cli, &args, &reply, &err) < 0) {
        cli_error(&cli, "%s", err.text);
        code = 1;
    } else {
        /* scontrol token's form, so that `eval` and `export $(...)` work; a join token stands alone */
        printf("%s%s\n", args.join ? "" : "SLURM_JWT=", reply->token ? reply->token : "");
    }
    cli_done(&cli);
    freep(&operands);
    return code;
}
