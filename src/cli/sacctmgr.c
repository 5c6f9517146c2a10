/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sacctmgr.c - `sacctmgr`: accounts, users, associations and QOS in the accounting database
 */
#include "cli/sacctmgr.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/accounting.h"
#include "cli/commands.h"
#include "client/client.h"
#include "proto/usage.pb-c.h"

enum { DECIDE_S = 30, LINE_WORDS = 256 };

struct sacctmgr_args {
    bool associations, help, immediate, json, no_header, oneliner, parsable, parsable2, quiet;
    bool readonly, usage, version, yaml;
    uint32_t verbose;
};

#define FLAG(member) OPTION_BOOL(struct sacctmgr_args, member)
/* clang-format off */
static const struct option rows[] = {
    { .name = "associations", .key = 's', .read = option_flag, .into = FLAG(associations), .help = "Show associations with what is listed." },
    { .name = "help", .key = 'h', .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "immediate", .key = 'i', .read = option_flag, .into = FLAG(immediate), .help = "Commit without asking." },
    { .name = "json", .arg = "[VERSION]", .read = option_text, .later = "sacctmgr does not write JSON" },
    { .name = "noheader", .key = 'n', .read = option_flag, .into = FLAG(no_header), .help = "No line with the names of columns." },
    { .name = "oneliner", .key = 'o', .read = option_flag, .into = FLAG(oneliner), .help = "Each thing on one line, as always." },
    { .name = "parsable", .key = 'p', .read = option_flag, .into = FLAG(parsable), .help = "Values apart by '|', also at the end." },
    { .name = "parsable2", .key = 'P', .read = option_flag, .into = FLAG(parsable2), .help = "Values apart by '|'." },
    { .name = "quiet", .key = 'Q', .read = option_flag, .into = FLAG(quiet), .help = "Say nothing but errors." },
    { .name = "readonly", .key = 'r', .read = option_flag, .into = FLAG(readonly), .help = "Change nothing." },
    { .name = "usage", .read = option_flag, .into = FLAG(usage), .help = "Show a short summary of options." },
    { .name = "verbose", .key = 'v', .read = option_increase, .into = OPTION_U32(struct sacctmgr_args, verbose), .help = "Say who is asked; may be repeated." },
    { .name = "version", .key = 'V', .read = option_flag, .into = FLAG(version), .help = "Show the version." },
    { .name = "yaml", .arg = "[VERSION]", .read = option_text, .later = "sacctmgr does not write YAML" },
};
/* clang-format on */

const struct option_set sacctmgr_options = {
    .command = "sacctmgr",
    .usage = "[OPTIONS...] COMMAND [ENTITY] [SPECS]",
    .about =
        "Show and change accounts, users, associations and QOS: list, add, modify, delete, dump, load.",
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

/* ---- committing ---- */

/* A line that begins with y within the time. */
bool manager_agrees(const char *question)
{
    struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
    char line[64] = "";

    printf("%s(You have %d seconds to decide)\n(N/y): ", question, DECIDE_S);
    fflush(stdout);
    ssize_t len =
        poll(&in, 1, DECIDE_S * 1000) > 0 ? read(STDIN_FILENO, line, sizeof(line) - 1) : 0;
    if (!isatty(STDIN_FILENO))
        puts("");
    return len > 0 && (line[0] == 'y' || line[0] == 'Y');
}

int manager_commit(struct manager *m)
{
    ChangeTablesRequest request = CHANGE_TABLES_REQUEST__INIT;
    ProtobufCMessage *message;
    struct err err = { 0 };

    if (m->quiet)
        str_clear(&m->out);
    cli_flush(&m->out);
    if (!m->edits.len)
        return 0;
    if (m->read_only) {
        cli_error(&m->cli, "Can't run this command in readonly mode.");
        return 1;
    }
    if (!m->immediate && !manager_agrees("Would you like to commit changes? ")) {
        puts(" Changes Discarded");
        return 0;
    }
    request.has_revision = true;
    request.revision = m->tables->revision;
    request.edits = m->edits.items;
    request.n_edits = m->edits.len;
    if (client_call(m->client, "/spur.Accounts/Change", &request.base,
                    &change_tables_reply__descriptor, &m->cli.arena, &message, &err) < 0) {
        if (err.code == ERR_UNREACHABLE)
            return accounting_error(&m->cli, &err);
        cli_error(&m->cli, "%s", err.text);
        return 1;
    }
    return 0;
}

/* ---- words ---- */

static struct word word_of(struct manager *m, const char *text)
{
    struct word word = { .how = '=' };
    const char *equal = strchr(text, '=');

    if (!equal || equal == text) {
        word.key = arena_strdup(&m->cli.arena, text);
        return word;
    }
    size_t len = (size_t)(equal - text);
    if (len > 1 && (text[len - 1] == '+' || text[len - 1] == '-'))
        word.how = text[--len];
    word.key = arena_strndup(&m->cli.arena, text, len);
    char *value = arena_strdup(&m->cli.arena, equal + 1);
    size_t end = strlen(value);
    if (end > 1 && (*value == '"' || *value == '\'') && value[end - 1] == *value) {
        value[end - 1] = '\0';
        value++;
    }
    word.value = value;
    return word;
}

static void split_set(struct manager *m, char **argv, int argc, words *where, words *set)
{
    words *into = where;

    for (int i = 0; i < argc; i++) {
        if (str_ieq(argv[i], "set"))
            into = set;
        else if (str_ieq(argv[i], "where"))
            into = where;
        else
            vec_push(into, word_of(m, argv[i]));
    }
}

/* ---- verbs ---- */

static const struct {
    const char *entity, *why;
} not_here[] = {
    { "federation", "there are no federations" },
    { "resource", "licences of the database are not known here: use the controller's 'licenses'" },
    { "reservation", "reservations are made and changed with scontrol" },
    { "event", "events follow from what happens to nodes: they are shown, not changed" },
    { "instance", "the history has no cloud instances" },
    { "runawayjobs", "they are shown, and fixed then: 'sacctmgr show runawayjobs'" },
    { "job", "records of jobs are not changed afterwards" },
};

static int no_entity(const struct manager *m, const char *entity)
{
    for (size_t i = 0; i < ARRAY_LEN(not_here); i++) {
        if (word_is(entity, not_here[i].entity)) {
            cli_error(&m->cli, "%s: %s", not_here[i].entity, not_here[i].why);
            return 1;
        }
    }
    cli_error(&m->cli, "\"%s\" is not something that sacctmgr knows here", entity);
    return 1;
}

enum verb {
    VERB_ADD,
    VERB_ARCHIVE,
    VERB_DELETE,
    VERB_DUMP,
    VERB_EXIT,
    VERB_HELP,
    VERB_LIST,
    VERB_LOAD,
    VERB_MODIFY,
    VERB_OTHER,
    VERB_PING,
    VERB_VERSION
};
static const struct {
    const char *name;
    enum verb verb;
} verbs[] = {
    { "add", VERB_ADD },         { "create", VERB_ADD },        { "archive", VERB_ARCHIVE },
    { "clear", VERB_OTHER },     { "delete", VERB_DELETE },     { "remove", VERB_DELETE },
    { "dump", VERB_DUMP },       { "exit", VERB_EXIT },         { "quit", VERB_EXIT },
    { "help", VERB_HELP },       { "list", VERB_LIST },         { "show", VERB_LIST },
    { "load", VERB_LOAD },       { "modify", VERB_MODIFY },     { "update", VERB_MODIFY },
    { "ping", VERB_PING },       { "reconfigure", VERB_OTHER }, { "shutdown", VERB_OTHER },
    { "version", VERB_VERSION },
};

static int run_change(struct manager *m, enum verb verb, char **argv, int argc)
{
    words where = { 0 }, set = { 0 };
    const char *entity = argc > 1 ? argv[1] : "";
    int code;

    if (verb == VERB_MODIFY)
        split_set(m, argv + 2, argc - 2, &where, &set);
    for (int i = 2; verb != VERB_MODIFY && i < argc; i++)
        vec_push(&where, word_of(m, argv[i]));
    code = verb == VERB_ADD      ? manager_add(m, entity, &where)
           : verb == VERB_MODIFY ? manager_modify(m, entity, &where, &set)
           : verb == VERB_DELETE ? manager_delete(m, entity, &where)
                                 : manager_records(m, entity, &where);
    if (code < 0 && verb == VERB_LIST)
        code = manager_list(m, entity, &where);
    vec_done(&where);
    vec_done(&set);
    if (code < 0)
        return no_entity(m, entity);
    if (code > 0 || verb == VERB_LIST) {
        cli_flush(&m->out);
        return code;
    }
    return manager_commit(m);
}

static int run_file(struct manager *m, enum verb verb, char **argv, int argc)
{
    words specs = { 0 };

    for (int i = 1; i < argc; i++)
        vec_push(&specs, word_of(m, argv[i]));
    int code = verb == VERB_DUMP ? manager_dump(m, &specs) : manager_load_file(m, &specs);
    vec_done(&specs);
    if (code == 0 && verb == VERB_LOAD)
        return manager_commit(m);
    cli_flush(&m->out);
    return code;
}

static int run_verb(struct manager *m, char **argv, int argc)
{
    enum verb verb = VERB_OTHER;
    bool known = false;

    vec_clear(&m->edits);
    str_clear(&m->out);
    for (size_t i = 0; i < ARRAY_LEN(verbs) && !known; i++) {
        known = str_ieq(argv[0], verbs[i].name) ||
                (strlen(argv[0]) >= 3 && str_istarts(verbs[i].name, argv[0]));
        verb = verbs[i].verb;
    }
    if (!known) {
        cli_error(&m->cli,
                  "\"%s\" is not a command of sacctmgr: list, add, modify, delete, dump, "
                  "load",
                  argv[0]);
        return 1;
    }
    switch (verb) {
    case VERB_ARCHIVE:
        cli_error(&m->cli, "archive: history is not archived yet; back the database up instead");
        return 1;
    case VERB_OTHER:
        cli_error(&m->cli, "%s: spurdbd is managed by its service (systemctl), not from here",
                  argv[0]);
        return 1;
    case VERB_HELP:
        cli_help(&sacctmgr_options, true, false, false);
        return 0;
    case VERB_VERSION:
        cli_print_version();
        return 0;
    case VERB_PING:
        if (manager_load(m, false, false))
            return 1;
        printf("spurdbd at %s is UP\n", client_peer(m->client));
        return 0;
    case VERB_EXIT:
        return 0;
    case VERB_DUMP:
    case VERB_LOAD:
        return run_file(m, verb, argv, argc);
    default:
        if (argc < 2) {
            cli_error(&m->cli, "%s what? account, user, association, qos, cluster, coordinator",
                      argv[0]);
            return 1;
        }
        return run_change(m, verb, argv, argc);
    }
}

/* Lines from standard input, until it ends or says so. */
static int run_lines(struct manager *m)
{
    char *line = NULL;
    size_t size = 0;
    int code = 0;

    for (;;) {
        char *argv[LINE_WORDS], *save = NULL;
        int argc = 0;
        if (isatty(STDIN_FILENO)) {
            printf("sacctmgr: ");
            fflush(stdout);
        }
        if (getline(&line, &size, stdin) < 0)
            break;
        for (char *word = strtok_r(line, " \t\n", &save); word && argc < LINE_WORDS;
             word = strtok_r(NULL, " \t\n", &save))
            argv[argc++] = word;
        if (argc && (str_ieq(argv[0], "exit") || str_ieq(argv[0], "quit")))
            break;
        if (argc)
            code = run_verb(m, argv, argc);
    }
    free(line);
    return code;
}

int sacctmgr_main(int argc, char **argv)
{
    struct option_set set = sacctmgr_options;
    struct option_ctx ctx = cli_option_ctx();
    struct sacctmgr_args args = { 0 };
    struct manager m = { 0 };
    struct err err = { 0 };
    char **operands = NEW_ARRAY(char *, argc + 1);
    int count = 0, code = 0;

    set.command = cli_name(argv);
    cli_init(&m.cli, set.command);
    if (option_read_env(&set, &ctx, &args, &err) < 0 ||
        option_read_argv(&set, &ctx, &args, argc, argv, OPTION_PERMUTE, operands, &count, &err) <
            0) {
        code = cli_option_error(&set, &err);
    } else if (!cli_help(&set, args.help, args.usage, args.version)) {
        m.immediate = args.immediate;
        m.no_header = args.no_header;
        m.quiet = args.quiet;
        m.read_only = args.readonly;
        m.with_assocs = args.associations;
        m.parsable = args.parsable;
        m.parsable2 = args.parsable2;
        code = count ? run_verb(&m, operands, count) : run_lines(&m);
    }
    vec_done(&m.edits);
    str_done(&m.out);
    if (m.client)
        client_free(m.client);
    cli_done(&m.cli);
    free(operands);
    return code;
}
