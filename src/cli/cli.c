// SPDX-License-Identifier: Apache-2.0
/*
 * cli.c - what every command does
 */
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/release.h"
#include "client/client.h"
#include "schema/jsonw.h"
#include "schema/request.h"
#include "sys/clock.h"
#include "sys/users.h"

extern char **environ;

void cli_init(struct cli *cli, const char *name)
{
    *cli = (struct cli){ .name = name };
    arena_init(&cli->arena);
}

void cli_done(struct cli *cli)
{
    client_free(cli->client);
    arena_done(&cli->arena);
}

const char *cli_name(char **argv)
{
    const char *slash = strrchr(argv[0], '/');

    return slash ? slash + 1 : argv[0];
}

static void complain(const char *name, const char *kind, const char *fmt, va_list args)
{
    struct str text = { 0 };
    const char *cursor;
    struct span line;

    str_vaddf(&text, fmt, args);
    cursor = str_text(&text);
    fflush(stdout);
    while (str_next(&cursor, "\n", &line)) {
        struct str visible = { 0 };

        str_add_visible(&visible, line.ptr, line.len);
        fprintf(stderr, "%s: %s%s\n", name, kind, str_text(&visible));
        str_done(&visible);
    }
    str_done(&text);
}

void cli_error(const struct cli *cli, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    complain(cli->name, "error: ", fmt, args);
    va_end(args);
}

void cli_fatal(const struct cli *cli, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    complain(cli->name, "fatal: ", fmt, args);
    va_end(args);
}

void cli_say(const struct cli *cli, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    complain(cli->name, "", fmt, args);
    va_end(args);
}

void cli_settle_counts(const struct cli *cli, struct job_request *request)
{
    CLEANUP(str_done) struct str warning = { 0 };

    if (job_request_settle_counts(request, &warning) && !request->quiet)
        cli_say(cli, "warning: %s", str_text(&warning));
}

int cli_load_error(const struct cli *cli, const char *before, const struct err *err)
{
    bool transport = err->code == ERR_UNREACHABLE || err->code == ERR_CONNECTION_LOST ||
                     err->code == ERR_DEADLINE || err->code == ERR_NOT_LEADER;

    if (transport && strcmp(err->text, err_text(err->code)) != 0)
        cli_error(cli, "%s", err->text);
    fflush(stdout);
    fprintf(stderr, "%s %s\n", before,
            transport || !err->text[0] ? err_text(err->code) : err->text);
    return 1;
}

int cli_option_error(const struct option_set *set, const struct err *err)
{
    const char *last = strrchr(err->text, '\n');
    struct cli cli = { .name = set->command };

    if (last)
        fprintf(stderr, "%.*s\n", (int)(last - err->text), err->text);
    last = last ? last + 1 : err->text;
    switch (err->code) {
    case ERR_UNKNOWN_OPTION:
        cli_say(&cli, "%s", last);
        fprintf(stderr, "Try \"%s --help\" for more information\n", set->command);
        return set->usage_exit;
    case ERR_SYNTAX:
        cli_fatal(&cli, "%s", last);
        return 1;
    case ERR_RANGE:
    case ERR_UNSUPPORTED:
        cli_error(&cli, "%s", last);
        return 1;
    default:
        cli_error(&cli, "%s", last);
        return set->usage_exit;
    }
}

struct option_ctx cli_option_ctx(void)
{
    return (struct option_ctx){ .now_us = clock_wall_us(), .env = environ };
}

/* How much of an array's list of tasks is shown. */
static size_t array_chars(void)
{
    const char *text = getenv("SLURM_BITSTR_LEN");
    uint64_t chars;

    return text && str_to_u64(text, LIMIT_COMMENT_BYTES, &chars) ? (size_t)chars : 64;
}

struct field_ctx cli_field_ctx(int64_t now_us)
{
    return (struct field_ctx){ .now_us = now_us > 0 ? now_us : clock_wall_us(),
                               .array_chars = array_chars(),
                               .time_format = getenv("SLURM_TIME_FORMAT") };
}

void cli_print_version(void)
{
    puts("slurm " SLURM_RELEASE);
}

bool cli_help(const struct option_set *set, bool help, bool usage, bool version)
{
    struct str out = { 0 };

    if (!help && !usage && !version)
        return false;
    if (version) {
        cli_print_version();
        return true;
    }
    if (help)
        option_add_help(set, &out);
    else
        option_add_usage(set, &out);
    cli_flush(&out);
    str_done(&out);
    return true;
}

bool cli_help_job(const struct option_set *set, const struct job_request *request)
{
    CLEANUP(str_done) struct str out = { 0 };

    if (cli_help(set, request->help, request->usage, request->version))
        return true;
    if (!job_request_add_topic(request, &out))
        return false;
    cli_flush(&out);
    return true;
}

bool cli_flush(struct str *out)
{
    bool good = fwrite(str_text(out), 1, out->len, stdout) == out->len;

    str_clear(out);
    return fflush(stdout) == 0 && good;
}

int cli_connect(struct cli *cli, struct err *err)
{
    if (!cli->client)
        cli->client = client_new(&(struct client_options){ .timeout_ms = cli->timeout_ms }, err);
    return cli->client ? 0 : -(int)ERR_UNREACHABLE;
}

int cli_call(struct cli *cli, const char *method, const ProtobufCMessage *request,
             const ProtobufCMessageDescriptor *reply_type, ProtobufCMessage **reply,
             struct err *err)
{
    char path[64];
    int result = cli_connect(cli, err);

    if (result < 0)
        return result;
    snprintf(path, sizeof(path), "/spur.Controller/%s", method);
    return client_call(cli->client, path, request, reply_type, &cli->arena, reply, err);
}

/* The next word of a list. What is in brackets belongs together: "4_[1,3],5" has two words. */
static bool next_word(const char **cursor, const char *separators, struct span *word)
{
    const char *p = *cursor + strspn(*cursor, separators), *start = p;
    unsigned depth = 0;

    for (; *p && (depth || !strchr(separators, *p)); p++)
        depth = *p == '[' ? depth + 1 : *p == ']' && depth ? depth - 1 : depth;
    *word = (struct span){ start, (size_t)(p - start) };
    *cursor = p;
    return word->len > 0;
}

void cli_split(struct cli *cli, const char *text, const char *separators, char ***list,
               size_t *count)
{
    const char *cursor = text;
    struct span word;
    size_t more = 0;
    char **longer;

    if (!text)
        return;
    while (next_word(&cursor, separators, &word))
        more++;
    longer = ARENA_ARRAY(&cli->arena, char *, *count + more + 1);
    if (*count)
        memcpy(longer, *list, *count * sizeof(char *));
    cursor = text;
    while (next_word(&cursor, separators, &word))
        longer[(*count)++] = arena_strndup(&cli->arena, word.ptr, word.len);
    *list = longer;
}

/* Digits, not more than a job id has. */
static size_t number_len(const char *text, size_t len)
{
    size_t digits = 0;

    while (digits < len && isdigit((unsigned char)text[digits]))
        digits++;
    return digits > 10 ? 0 : digits;
}

bool cli_is_job_id(const char *text, size_t len)
{
    size_t digits = number_len(text, len);

    if (!digits)
        return false;
    text += digits;
    len -= digits;
    if (!len)
        return true;
    if (*text == '+')
        return len > 1 && number_len(text + 1, len - 1) == len - 1;
    if (*text != '_' || len < 2)
        return false;
    text++;
    len--;
    if (len == 1 && *text == '*')
        return true;
    if (*text != '[')
        return strspn(text, "0123456789-,:%") >= len && isdigit((unsigned char)*text);
    return len >= 3 && text[len - 1] == ']' && strspn(text + 1, "0123456789-,:%") >= len - 2;
}

bool cli_is_step_id(const char *text, size_t *job_len, const char **step)
{
    const char *dot = strchr(text, '.');

    *job_len = dot ? (size_t)(dot - text) : strlen(text);
    *step = dot ? dot + 1 : NULL;
    return cli_is_job_id(text, *job_len) && (!dot || dot[1]);
}

bool cli_user(const char *text, uint32_t *uid)
{
    struct user *user = NULL;
    uint64_t number;

    if (str_to_u64(text, UINT32_MAX - 1, &number)) {
        *uid = (uint32_t)number;
        return true;
    }
    if (users_by_name(text, &user, NULL) < 0)
        return false;
    *uid = user->uid;
    user_free(user);
    return true;
}

void cli_users(struct cli *cli, const char *text, char ***list, size_t *count)
{
    char **names = NULL;
    size_t name_count = 0;

    cli_split(cli, text, ",", &names, &name_count);
    for (size_t i = 0; i < name_count; i++) {
        uint32_t uid;

        if (cli_user(names[i], &uid))
            cli_split(cli, arena_printf(&cli->arena, "%u", uid), ",", list, count);
        else
            cli_error(cli, "Invalid user: %s", names[i]);
    }
}

void cli_json_begin(struct jsonw *json, struct str *out, bool yaml, char **argv, const char *object)
{
    unsigned version = 0;

    for (char **word = argv; *word && strcmp(*word, "--") != 0; word++) {
        bool names = str_starts(*word, "--json=") || str_starts(*word, "--yaml=");
        if (names && (*word)[7]) {
            version = api_version_read(*word + 7);
            if (!version) {
                fprintf(stderr, "%s: fatal: there is no data_parser '%s': v0.0.%d to v0.0.%d\n",
                        argv[0], *word + 7, API_FIRST, API_LAST);
                exit(1);
            }
        }
    }
    (yaml ? jsonw_init_yaml : jsonw_init)(json, out);
    if (version)
        jsonw_expect(json, version, object ? api_object(version, object) : NULL);
    jsonw_object(json, NULL);
}

void cli_json_end(struct jsonw *json, int argc, char **argv, const char *cluster)
{
    struct passwd *who = getpwuid(geteuid());
    char parser[32];

    snprintf(parser, sizeof(parser), "data_parser/v0.0.%u",
             json->version ? json->version : (unsigned)API_DEFAULT);
    jsonw_object(json, "meta");
    jsonw_object(json, "plugin");
    jsonw_text(json, "type", "");
    jsonw_text(json, "name", "");
    jsonw_text(json, "data_parser", parser);
    jsonw_text(json, "accounting_storage", "");
    jsonw_object_end(json);
    jsonw_object(json, "client");
    jsonw_text(json, "source", "");
    jsonw_text(json, "user", who ? who->pw_name : "");
    jsonw_object_end(json);
    jsonw_list(json, "command");
    for (int i = 0; i < argc; i++)
        jsonw_text(json, NULL, argv[i]);
    jsonw_list_end(json);
    jsonw_object(json, "slurm");
    jsonw_object(json, "version");
    jsonw_text(json, "major", SLURM_RELEASE_MAJOR);
    jsonw_text(json, "micro", SLURM_RELEASE_MICRO);
    jsonw_text(json, "minor", SLURM_RELEASE_MINOR);
    jsonw_object_end(json);
    jsonw_text(json, "release", SLURM_RELEASE);
    jsonw_text(json, "cluster", cluster);
    jsonw_object_end(json);
    jsonw_object_end(json);
    jsonw_list(json, "errors");
    jsonw_list_end(json);
    jsonw_list(json, "warnings");
    jsonw_list_end(json);
    jsonw_object_end(json);
    str_add_char(json->out, '\n');
}
