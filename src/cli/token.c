// SPDX-License-Identifier: Apache-2.0
/*
 * token.c - `spur token`: a token for this user, or for a machine that joins; `spur web`: a link
 * that logs in to the web page with one
 */
#include <stdio.h>
#include <string.h>

#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "proto/controller.pb-c.h"
#include "sys/users.h"

struct token_args {
    const char *user, *node, *revoke;
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
    { .name = "revoke",
      .arg = "USER",
      .read = option_text,
      .into = OPTION_TEXT(struct token_args, revoke),
      .help =
          "Refuse every token of this user that was made until now, also those of sessions under "
          "way; your own, or another's for administrators." },
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

static int revoke(struct cli *cli, const char *name, struct err *err)
{
    RevokeTokensRequest request = REVOKE_TOKENS_REQUEST__INIT;
    DoneReply *reply = NULL;
    struct user *user = NULL;
    uint64_t uid;

    request.has_uid = true;
    if (str_to_u64(name, UINT32_MAX - 1, &uid)) {
        request.uid = (uint32_t)uid; /* also one without an account */
    } else {
        if (users_parse(name, &user, err) < 0)
            return -(int)err->code;
        request.uid = user->uid;
        user_free(user);
    }
    return cli_call(cli, "RevokeTokens", &request.base, &done_reply__descriptor,
                    (ProtobufCMessage **)&reply, err);
}

const struct option_set token_options = {
    .command = "spur token",
    .usage = "[--user NAME] [--lifespan TIME] | --join [--node NAME] [--lifespan TIME] | "
             "--revoke USER",
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
    } else if (args.revoke && (args.join || args.user || args.lifespan_s)) {
        cli_error(&cli, "--revoke goes with no other option");
        code = 1;
    } else if (args.revoke) {
        code = revoke(&cli, args.revoke, &err) < 0;
        if (code)
            cli_error(&cli, "%s", err.text);
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

/* ---- spur web ---- */

enum { WEB_LIFESPAN_S = 12 * 3600 };

struct web_args {
    struct token_args token; /* its lifespan */
    const char *address;
    bool help;
};

static const struct option web_rows[] = {
    { .name = "address",
      .arg = "URL",
      .env = { "SPUR_REST_ADDR" },
      .read = option_text,
      .into = OPTION_TEXT(struct web_args, address),
      .help = "Where spurrestd listens; http://localhost:6820 when not given." },
    { .name = "lifespan",
      .key = 'l',
      .arg = "TIME",
      .read = option_duration,
      .into = OPTION_I64(struct web_args, token.lifespan_s),
      .help = "How long one stays logged in; 12 hours when not given." },
    { .name = "help",
      .key = 'h',
      .read = option_flag,
      .into = OPTION_BOOL(struct web_args, help),
      .help = "Show this text." },
};

const struct option_set web_options = {
    .command = "spur web",
    .usage = "[--address URL] [--lifespan TIME]",
    .about = "Prints a link that opens the web page and logs in. Whoever has the link is you.",
    .bit = 1,
    .usage_exit = 1,
    .rows = web_rows,
    .count = ARRAY_LEN(web_rows),
};

/* A browser does not send what stands behind '#', so the token reaches no server's log. */
static int print_link(struct cli *cli, const struct web_args *args)
{
    const char *address = args->address ? args->address : "http://localhost:6820";
    size_t len = strlen(address);
    struct err err = { 0 };
    TokenReply *reply;

    if (get_token(cli, &args->token, &reply, &err) < 0) {
        cli_error(cli, "%s", err.text);
        return 1;
    }
    while (len && address[len - 1] == '/')
        len--;
    printf("%.*s/#token=%s\n", (int)len, address, reply->token ? reply->token : "");
    return 0;
}

int web_main(int argc, char **argv)
{
    struct option_set set = web_options;
    struct option_ctx ctx = cli_option_ctx();
    struct web_args args = { .token.lifespan_s = WEB_LIFESPAN_S };
    struct err err = { 0 };
    struct cli cli;
    int count = 0, code;

    set.command = cli_name(argv);
    cli_init(&cli, set.command);
    char **operands = ARENA_ARRAY(&cli.arena, char *, (size_t)argc + 1);
    if (option_read_env(&set, &ctx, &args, &err) < 0 ||
        option_read_argv(&set, &ctx, &args, argc, argv, OPTION_PERMUTE, operands, &count, &err) <
            0) {
        code = cli_option_error(&set, &err);
    } else if (cli_help(&set, args.help, false, false)) {
        code = 0;
    } else if (count) {
        cli_error(&cli, "'%s': no argument is taken", operands[0]);
        code = 1;
    } else {
        code = print_link(&cli, &args);
    }
    cli_done(&cli);
    return code;
}
