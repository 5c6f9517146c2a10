/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sshare.c - shares and usage of associations: `sshare`
 *
 * The fractions are those of schema/shares.h.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "cli/accounting.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "client/client.h"
#include "proto/acct.pb-c.h"
#include "schema/field.h"
#include "schema/shares.h"
#include "sys/users.h"

struct sshare_args {
    const char *accounts, *format, *users;
    bool all, help, help_format, long_form, no_header, parsable, parsable2, partition, usage;
    bool users_only, version, json, yaml;
    uint32_t verbose;
};

static option_reader read_json, read_yaml;

#define TEXT(member) OPTION_TEXT(struct sshare_args, member)
#define FLAG(member) OPTION_BOOL(struct sshare_args, member)
/* clang-format off */
static const struct option rows[] = {
    { .name = "Users", .key = 'U', .read = option_flag, .into = FLAG(users_only), .help = "Only users, without accounts." },
    { .name = "accounts", .key = 'A', .arg = "NAMES", .read = option_text, .into = TEXT(accounts), .help = "Only these accounts." },
    { .name = "all", .key = 'a', .read = option_flag, .into = FLAG(all), .help = "All users." },
    { .name = "cluster", .arg = "NAMES", .read = option_text, .later = "a command speaks to one cluster" },
    { .name = "clusters", .key = 'M', .arg = "NAMES", .env = { "SLURM_CLUSTERS" }, .read = option_text, .later = "a command speaks to one cluster", .help = "Shares of other clusters." },
    { .name = "format", .key = 'o', .arg = "NAMES", .read = option_text, .into = TEXT(format), .help = "Columns: Account%30,User; --helpformat lists them." },
    { .name = "help", .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "helpformat", .key = 'e', .read = option_flag, .into = FLAG(help_format), .help = "List the names of columns." },
    { .name = "json", .arg = "[VERSION]", .read = read_json, .help = "As JSON." },
    { .name = "long", .key = 'l', .read = option_flag, .into = FLAG(long_form), .help = "More columns." },
    { .name = "noheader", .key = 'n', .read = option_flag, .into = FLAG(no_header), .help = "No line with the names of columns." },
    { .name = "parsable", .key = 'p', .read = option_flag, .into = FLAG(parsable), .help = "Values apart by '|', also at the end." },
    { .name = "parsable2", .key = 'P', .read = option_flag, .into = FLAG(parsable2), .help = "Values apart by '|'." },
    { .name = "partition", .key = 'm', .read = option_flag, .into = FLAG(partition), .help = "Show the partition of associations." },
    { .name = "usage", .read = option_flag, .into = FLAG(usage), .help = "Show a short summary of options." },
    { .name = "users", .key = 'u', .arg = "NAMES", .read = option_text, .into = TEXT(users), .help = "Only these users." },
    { .name = "verbose", .key = 'v', .read = option_increase, .into = OPTION_U32(struct sshare_args, verbose), .help = "Say what is asked for; may be repeated." },
    { .name = "version", .key = 'V', .read = option_flag, .into = FLAG(version), .help = "Show the version." },
    { .name = "yaml", .arg = "[VERSION]", .read = read_yaml, .help = "As YAML." },
};
/* clang-format on */

const struct option_set sshare_options = {
    .command = "sshare",
    .usage = "[OPTIONS...]",
    .about = "Show shares and usage of accounts and users.",
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

static int read_json(const struct option_call *call, const char *value, struct err *err)
{
    struct sshare_args *args = call->target;

    (void)value, (void)err;
    args->json = true;
    return 0;
}

static int read_yaml(const struct option_call *call, const char *value, struct err *err)
{
    struct sshare_args *args = call->target;

    args->yaml = true;
    return read_json(call, value, err);
}

struct sshare {
    int argc;
    char **argv;
    struct cli cli;
    struct sshare_args args;
    const ListSharesReply *reply;
    const ListTablesReply *tables; /* when ids are shown */
};

/* The number that the database knows the association by; empty: it knows none. */
static void add_id(const struct sshare *s, const ShareRow *row, struct str *out)
{
    for (size_t i = 0; s->tables && i < s->tables->n_assocs; i++) {
        const AcctAssoc *assoc = s->tables->assocs[i];
        const char *partition = assoc->limits->partition ? assoc->limits->partition : "";
        if (str_eq(assoc->cluster, s->reply->cluster) &&
            str_eq(assoc->limits->account, row->account) &&
            str_eq(assoc->limits->name, row->user) &&
            str_eq(partition, row->partition ? row->partition : ""))
            str_addf(out, "%u", assoc->id);
    }
}

/* ---- columns ---- */

static void add_tres(const ShareRow *row, bool running, struct str *out)
{
    for (size_t i = 0; i < row->n_tres; i++)
        str_addf(
            out, "%s%s=%llu", i ? "," : "", row->tres[i]->name,
            (unsigned long long)((running ? row->tres[i]->run_secs : row->tres[i]->used) / 60));
}

static void add_cell(const struct sshare *s, const char *name, const ShareRow *row, unsigned base,
                     struct str *out)
{
    const ShareRow *parent = share_parent(s->reply, row);
    bool is_user = *row->user;

    if (str_eq(name, "Account")) {
        str_add_fill(out, ' ', row->depth > base ? row->depth - base : 0);
        str_add(out, row->account);
    } else if (str_eq(name, "User")) {
        str_add(out, row->user);
    } else if (str_eq(name, "Partition")) {
        str_add(out, row->partition ? row->partition : "");
    } else if (str_eq(name, "Cluster")) {
        str_add(out, s->reply->cluster ? s->reply->cluster : "");
    } else if (str_eq(name, "RawShares") && parent) {
        if (row->shares == SHARE_OF_PARENT)
            str_add(out, "parent");
        else
            str_addf(out, "%u", row->shares);
    } else if (str_eq(name, "NormShares")) {
        str_addf(out, "%.6f", share_norm(s->reply, row));
    } else if (str_eq(name, "RawUsage")) {
        str_addf(out, "%llu", (unsigned long long)row->usage);
    } else if (str_eq(name, "NormUsage") && parent) {
        str_addf(out, "%.6f", share_used(row, s->reply->rows[0]));
    } else if (str_eq(name, "EffectvUsage")) {
        str_addf(out, "%.6f", share_effective(s->reply, row));
    } else if (str_eq(name, "ID")) {
        add_id(s, row, out);
    } else if (str_eq(name, "FairShare") && (is_user || s->reply->classic)) {
        str_addf(out, "%.6f", share_factor(row));
    } else if (str_eq(name, "LevelFS") && parent && !s->reply->classic) {
        double used = share_used(row, parent);
        if (used > 0)
            str_addf(out, "%.6f", share_norm(s->reply, row) / used);
        else
            str_add(out, "inf");
    } else if (str_eq(name, "GrpTRESMins")) {
        str_add(out, row->grp_tres_mins ? row->grp_tres_mins : "");
    } else if (str_eq(name, "GrpTRESRaw") || str_eq(name, "TRESRunMins")) {
        add_tres(row, *name == 'T', out);
    }
}

static const struct {
    const char *name;
    int width;
} columns[] = {
    { "Account", -20 },  { "Cluster", 10 },     { "EffectvUsage", 13 },
    { "FairShare", 10 }, { "GrpTRESMins", 30 }, { "GrpTRESRaw", 30 },
    { "ID", 6 },         { "LevelFS", 10 },     { "NormShares", 11 },
    { "NormUsage", 11 }, { "Partition", 12 },   { "RawShares", 10 },
    { "RawUsage", 11 },  { "TRESRunMins", 30 }, { "User", 10 },
};

struct shown {
    const char *name;
    int width;
};
typedef VEC(struct shown) shown_list;

static bool read_format(struct sshare *s, const char *format, shown_list *out)
{
    struct span word;

    while (str_next(&format, ",", &word)) {
        char *name = arena_strndup(&s->cli.arena, word.ptr, word.len);
        char *percent = strchr(name, '%');
        struct shown shown = { 0 };
        if (percent)
            *percent = '\0';
        for (size_t i = 0; i < ARRAY_LEN(columns) && !shown.name; i++) {
            if (str_istarts(columns[i].name, name))
                shown = (struct shown){ columns[i].name, columns[i].width };
        }
        if (!shown.name) {
            cli_error(&s->cli, "Invalid field requested: \"%s\"", name);
            return false;
        }
        if (percent)
            shown.width = atoi(percent + 1);
        vec_push(out, shown);
    }
    return true;
}

static void put_cell(const struct sshare *s, const struct shown *at, const char *text, bool last,
                     bool header, struct str *out)
{
    size_t width = (size_t)abs(at->width), len = strlen(text);

    if (s->args.parsable || s->args.parsable2) {
        str_addf(out, "%s%s", text, last && !s->args.parsable ? "" : "|");
        return;
    }
    if (at->width > 0)
        str_add_fill(out, ' ', width - MIN(len, width));
    str_add_len(out, text, MIN(len, width));
    if (len > width && width && !header)
        out->data[out->len - 1] = '+';
    if (at->width < 0)
        str_add_fill(out, ' ', width - MIN(len, width));
    str_add_char(out, ' ');
}

static void put_header(const struct sshare *s, const shown_list *shown, struct str *out)
{
    for (size_t i = 0; i < shown->len; i++)
        put_cell(s, &shown->items[i], shown->items[i].name, i + 1 == shown->len, true, out);
    str_add_char(out, '\n');
    if (s->args.parsable || s->args.parsable2)
        return;
    for (size_t i = 0; i < shown->len; i++) {
        str_add_fill(out, '-', (size_t)abs(shown->items[i].width));
        str_add_char(out, ' ');
    }
    str_add_char(out, '\n');
}

/* ---- rows ---- */

static bool is_named(const char *list, const char *name)
{
    struct span word;

    while (list && str_next(&list, ",", &word)) {
        if (span_eq(word, name))
            return true;
    }
    return false;
}

static bool picks(const struct sshare *s, const ShareRow *row, const char *me)
{
    const struct sshare_args *args = &s->args;

    if (args->accounts && !is_named(args->accounts, row->account))
        return false;
    if (!*row->user)
        return !args->users_only;
    if (row->partition && *row->partition && !args->partition)
        return false;
    return args->users ? is_named(args->users, row->user) : args->all || str_eq(row->user, me);
}

static int load_tables(struct sshare *s)
{
    ListTablesRequest request = LIST_TABLES_REQUEST__INIT;
    ProtobufCMessage *message = NULL;
    struct err err = { 0 };
    struct client *client = accounting_connect(&s->cli, &err);
    int code = -1;

    if (client)
        code = client_call(client, "/spur.Accounts/List", &request.base,
                           &list_tables_reply__descriptor, &s->cli.arena, &message, &err);
    client_free(client);
    if (code < 0)
        return accounting_error(&s->cli, &err);
    s->tables = (const void *)message;
    return 0;
}

static int print(struct sshare *s)
{
    const struct sshare_args *args = &s->args;
    const char *format =
        args->format ? args->format
        : args->long_form
            ? "Account,User,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS,"
              "GrpTRESMins,TRESRunMins"
        : args->partition
            ? "Account,User,Partition,RawShares,NormShares,RawUsage,EffectvUsage,FairShare"
            : "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare";
    struct user *user = NULL;
    struct err err = { 0 };
    shown_list shown = { 0 };
    struct str out = { 0 }, cell = { 0 };
    unsigned base = UINT32_MAX;
    bool good = read_format(s, format, &shown);

    for (size_t i = 0; good && i < shown.len; i++) {
        if (str_eq(shown.items[i].name, "ID") && !s->tables)
            good = load_tables(s) == 0;
    }
    users_by_uid(getuid(), &user, &err);
    if (good && !args->no_header)
        put_header(s, &shown, &out);
    for (size_t i = 0; good && i < s->reply->n_rows; i++) {
        const ShareRow *row = s->reply->rows[i];
        if (!picks(s, row, user ? user->name : ""))
            continue;
        if (base == UINT32_MAX)
            base = args->users_only ? 64 : row->depth;
        for (size_t k = 0; k < shown.len; k++) {
            str_clear(&cell);
            add_cell(s, shown.items[k].name, row, base, &cell);
            put_cell(s, &shown.items[k], str_text(&cell), k + 1 == shown.len, false, &out);
        }
        str_add_char(&out, '\n');
    }
    cli_flush(&out);
    str_done(&out);
    str_done(&cell);
    vec_done(&shown);
    user_free(user);
    return good ? 0 : 1;
}

static int print_json(struct sshare *s)
{
    struct user *user = NULL;
    struct err err = { 0 };
    struct str out = { 0 };
    struct jsonw json;

    users_by_uid(getuid(), &user, &err);
    cli_json_begin(&json, &out, s->args.yaml, s->argv, "openapi_shares_resp");
    jsonw_object(&json, "shares");
    jsonw_list(&json, "shares");
    for (size_t i = 0; i < s->reply->n_rows; i++) {
        if (picks(s, s->reply->rows[i], user ? user->name : ""))
            share_add_json(s->reply, s->reply->rows[i], (uint32_t)(i + 1), &json);
    }
    jsonw_list_end(&json);
    jsonw_number(&json, "total_shares", (int64_t)shares_total(s->reply));
    jsonw_object_end(&json);
    cli_json_end(&json, s->argc, s->argv, s->reply->cluster);
    cli_flush(&out);
    str_done(&out);
    user_free(user);
    return 0;
}

static int ask(struct sshare *s)
{
    ListSharesRequest request = LIST_SHARES_REQUEST__INIT;
    ProtobufCMessage *message;
    struct err err = { 0 };

    if (cli_connect(&s->cli, &err) < 0 ||
        client_call(s->cli.client, "/spur.Shares/List", &request.base,
                    &list_shares_reply__descriptor, &s->cli.arena, &message, &err) < 0)
        return cli_load_error(&s->cli, "sshare: error:", &err);
    s->reply = (const void *)message;
    return s->args.json ? print_json(s) : print(s);
}

int sshare_main(int argc, char **argv)
{
    struct option_set set = sshare_options;
    struct option_ctx ctx = cli_option_ctx();
    struct sshare s = { .argc = argc, .argv = argv };
    struct err err = { 0 };
    char **operands = NEW_ARRAY(char *, argc + 1);
    int count = 0, code = 0;

    set.command = cli_name(argv);
    cli_init(&s.cli, set.command);
    if (option_read_env(&set, &ctx, &s.args, &err) < 0 ||
        option_read_argv(&set, &ctx, &s.args, argc, argv, OPTION_PERMUTE, operands, &count, &err) <
            0) {
        code = cli_option_error(&set, &err);
    } else if (s.args.help_format) {
        for (size_t i = 0; i < ARRAY_LEN(columns); i++)
            puts(columns[i].name);
    } else if (!cli_help(&set, s.args.help, s.args.usage, s.args.version)) {
        code = ask(&s);
    }
    cli_done(&s.cli);
    free(operands);
    return code;
}
