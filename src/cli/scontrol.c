// SPDX-License-Identifier: Apache-2.0
/*
 * scontrol.c - administration: `scontrol`, `spur show`
 *
 * Without a command it reads commands from standard input, one a line.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/timefmt.h"
#include "cli/commands.h"
#include "cli/control.h"
#include "cli/ping.h"
#include "schema/jsonw.h"
#include "schema/script.h"

struct scontrol_args {
    bool all, detail, future, help, usage, version, hide, one_line, quiet, has_json, yaml;
    uint32_t verbose;
    const char *json, *uid;
};

#define FLAG(member) OPTION_BOOL(struct scontrol_args, member)

static int read_json(const struct option_call *call, const char *value, struct err *err)
{
    struct scontrol_args *args = call->target;

    args->has_json = true;
    args->json = value;
    return 0;
}

static int read_yaml(const struct option_call *call, const char *value, struct err *err)
{
    struct scontrol_args *args = call->target;

    args->yaml = true;
    return read_json(call, value, err);
}

/* clang-format off */
static const struct option options[] = {
    { .name = "all", .key = 'a', .env = { "SCONTROL_ALL" }, .read = option_flag, .into = FLAG(all), .help = "Also hidden partitions and their jobs." },
    { .name = "cluster", .arg = "NAMES", .read = option_text, .later = "a command speaks to one cluster" },
    { .name = "clusters", .key = 'M', .arg = "NAMES", .read = option_text, .later = "a command speaks to one cluster", .help = "Another cluster." },
    { .name = "details", .key = 'd', .read = option_flag, .into = FLAG(detail), .help = "Show more." },
    { .name = "federation", .read = option_flag, .later = "there are no federations", .help = "All clusters of the federation." },
    { .name = "future", .key = 'F', .env = { "SCONTROL_FUTURE" }, .read = option_flag, .into = FLAG(future), .help = "Also nodes that are configured for later." },
    { .name = "autocomplete", .arg = "TEXT", .read = option_text, .later = "spur completion writes it for a shell" },
    { .name = "help", .key = 'h', .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "hide", .read = option_flag, .into = FLAG(hide), .help = "No hidden partitions." },
    { .name = "json", .arg = "[VERSION]", .read = read_json, .help = "As JSON." },
    { .name = "local", .env = { "SCONTROL_LOCAL" }, .read = option_ignored, .help = "This cluster, as always." },
    { .name = "oneliner", .key = 'o', .read = option_flag, .into = FLAG(one_line), .help = "Each record on one line." },
    { .name = "quiet", .key = 'Q', .read = option_flag, .into = FLAG(quiet), .help = "Say nothing but errors." },
    { .name = "sibling", .read = option_flag, .later = "there are no federations", .help = "Sibling jobs." },
    { .name = "uid", .key = 'u', .arg = "USER", .read = option_text, .later = "one acts as oneself", .help = "Act as another user." },
    { .name = "usage", .read = option_flag, .into = FLAG(usage) },
    { .name = "verbose", .key = 'v', .read = option_increase, .into = OPTION_U32(struct scontrol_args, verbose), .help = "Say more; may be repeated." },
    { .name = "version", .key = 'V', .read = option_flag, .into = FLAG(version), .help = "Show the version." },
    { .name = "yaml", .arg = "[VERSION]", .read = read_yaml, .help = "As YAML." },
};
/* clang-format on */

static int do_call(struct control *control, const char *method, const ProtobufCMessage *request,
                   const char *what)
{
    struct err err = { 0 };
    DoneReply *reply;

    if (cli_call(&control->cli, method, request, &done_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0) {
        fprintf(stderr, "%s error:%s\n", what, control_words(&err));
        return 1;
    }
    if (!str_is_empty(reply->message) && !control->quiet)
        printf("%s\n", reply->message);
    return 0;
}

static int do_reconfigure(struct control *control, int argc, char **argv)
{
    Empty request = EMPTY__INIT;

    return do_call(control, "Reconfigure", &request.base, "slurm_reconfigure");
}

static int do_shutdown(struct control *control, int argc, char **argv)
{
    ShutdownRequest request = SHUTDOWN_REQUEST__INIT;

    if (argc && !str_ieq(argv[0], "slurmctld") && !str_ieq(argv[0], "controller")) {
        fprintf(stderr, "invalid shutdown argument:%s\n", argv[0]);
        return 1;
    }
    request.has_nodes_too = request.nodes_too = argc == 0;
    return do_call(control, "Shutdown", &request.base, "slurm_shutdown");
}

static int do_ping(struct control *control, int argc, char **argv)
{
    return ping_print(&control->cli, control->json, control->yaml, control->argc, control->argv);
}

/* Which controller is to lead: the one with that number in the list, or the first that does not. */
static const char *successor(const PingReply *ping, const char *index)
{
    uint64_t at;

    if (index)
        return str_to_u64(index, UINT32_MAX, &at) && at < ping->n_controllers
                   ? ping->controllers[at]->name
                   : NULL;
    for (size_t i = 0; i < ping->n_controllers; i++) {
        if (!str_eq(ping->controllers[i]->name, ping->leader_name))
            return ping->controllers[i]->name;
    }
    return NULL;
}

static int do_takeover(struct control *control, int argc, char **argv)
{
    Empty request = EMPTY__INIT;
    PingReply *ping;
    struct err err = { 0 };

    if (cli_call(&control->cli, "Ping", &request.base, &ping_reply__descriptor,
                 (ProtobufCMessage **)&ping, &err) < 0) {
        fprintf(stderr, "slurm_takeover error: %s\n", err.text);
        return 1;
    }
    const char *name = successor(ping, argc ? argv[0] : NULL);
    if (!name) {
        fprintf(stderr, "slurm_takeover error: %s\n",
                argc ? "there is no controller of that number"
                     : "there is no other controller to take over");
        return 1;
    }
    char *words[] = { (char *)"spur controller", (char *)"transfer", (char *)name, NULL };
    return controller_main(3, words);
}

static int do_version(struct control *control, int argc, char **argv)
{
    cli_print_version();
    return 0;
}

static int do_errnumstr(struct control *control, int argc, char **argv)
{
    uint64_t number;
    enum err_code code;

    if (!str_to_u64(argv[0], 65535, &number)) {
        fprintf(stderr, "invalid error number: %s\n", argv[0]);
        return 1;
    }
    code = err_from_slurm((int)number);
    puts(code ? err_text(code) : strerror((int)number));
    return 0;
}

static int do_token(struct control *control, int argc, char **argv)
{
    TokenRequest request = TOKEN_REQUEST__INIT;
    struct err err = { 0 };
    TokenReply *reply;

    for (int i = 0; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        uint64_t seconds;

        if (value && str_istarts(argv[i], "username=")) {
            request.user = (char *)value + 1;
        } else if (value && str_istarts(argv[i], "lifespan=") &&
                   (str_ieq(value + 1, "infinite") ||
                    str_to_u64(value + 1, UINT32_MAX, &seconds))) {
            request.has_lifespan_s = true;
            request.lifespan_s = str_ieq(value + 1, "infinite") ? UINT32_MAX : (uint32_t)seconds;
        } else {
            fprintf(stderr, "invalid token argument: %s\n", argv[i]);
            return 1;
        }
    }
    if (cli_call(&control->cli, "Token", &request.base, &token_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0) {
        cli_error(&control->cli, "%s", err.text);
        return 1;
    }
    printf("SLURM_JWT=%s\n", reply->token ? reply->token : "");
    return 0;
}

static int do_switch(struct control *control, int argc, char **argv);
static int do_help(struct control *control, int argc, char **argv);

enum {
    SWITCH_ALL = 1,
    SWITCH_HIDE,
    SWITCH_DETAILS,
    SWITCH_ONELINER,
    SWITCH_QUIET,
    SWITCH_VERBOSE,
    SWITCH_LEAVE
};

static const char no_power[] = "nodes are not switched on and off";
static const char no_level[] = "log levels are set in the configuration";
static const char on_node[] = "the agent of a node does not answer it";

/* clang-format off */
static const struct control_row verbs[] = {
    { "abort", 5, 0, 0, NULL, .help = "stop the controller at once", .later = "shutdown stops it" },
    { "all", 3, 0, 0, do_switch, SWITCH_ALL, .help = "show hidden things too" },
    { "cancel_reboot", 8, 1, 1, control_cancel_reboot, .args = "NODES", .help = "undo a reboot that has not begun" },
    { "cluster", 2, 0, 1, NULL, .args = "NAME", .help = "choose a cluster", .later = "a command speaks to one cluster" },
    { "completing", 3, 0, 0, control_completing, .help = "jobs that are completing" },
    { "create", 2, 1, 99, control_create, .args = "KEY=VALUE...", .help = "make a partition or reservation" },
    { "delete", 1, 1, 2, control_delete, .args = "KEY=NAME", .help = "remove a partition or reservation" },
    { "details", 3, 0, 0, do_switch, SWITCH_DETAILS, .help = "show more" },
    { "errnumstr", 3, 1, 1, do_errnumstr, .args = "NUMBER", .help = "text of an error number" },
    { "exit", 2, 0, 0, do_switch, SWITCH_LEAVE, .help = "leave" },
    { "fsdampeningfactor", 2, 1, 1, NULL, .args = "N", .help = "damp fair share", .later = "priority.fairshare_damping sets it" },
    { "getaddrs", 4, 1, 1, control_getaddrs, .args = "NODES", .help = "addresses of nodes" },
    { "getent", 4, 0, 1, NULL, .args = "NODE", .help = "users known on a node", .later = on_node },
    { "help", 2, 0, 0, do_help, .help = "show this" },
    { "hide", 2, 0, 0, do_switch, SWITCH_HIDE, .help = "do not show hidden things" },
    { "hold", 3, 1, 9999, control_hold, .args = "JOBS", .help = "keep jobs from starting" },
    { "listjobs", 5, 0, 1, control_listjobs, .help = "jobs on this node" },
    { "listpids", 5, 0, 1, control_listpids, .args = "[JOB[.STEP]]", .help = "processes of jobs on this node" },
    { "liststeps", 5, 0, 0, control_liststeps, .help = "steps on this node" },
    { "notify", 1, 2, 9999, control_notify, .args = "JOB TEXT", .help = "write into a job's output" },
    { "oneliner", 1, 0, 0, do_switch, SWITCH_ONELINER, .help = "each record on one line" },
    { "pidinfo", 3, 1, 1, control_pidinfo, .args = "PID", .help = "job of a process" },
    { "ping", 3, 0, 0, do_ping, .help = "which controllers are up" },
    { "power", 3, 1, 9, NULL, .args = "up|down NODES", .help = "switch nodes", .later = no_power },
    { "quiet", 4, 0, 0, do_switch, SWITCH_QUIET, .help = "say less" },
    { "quit", 4, 0, 0, do_switch, SWITCH_LEAVE, .help = "leave" },
    { "reboot", 3, 0, 9, control_reboot, .args = "[ASAP|FORCE] [nextstate=RESUME|DOWN] [reason=TEXT] NODES|ALL", .help = "reboot nodes when they are idle" },
    { "reconfigure", 3, 0, 0, do_reconfigure, .help = "read the configuration again" },
    { "release", 3, 1, 9999, control_release, .args = "JOBS", .help = "let held jobs start" },
    { "requeue", 3, 1, 9999, control_requeue, .args = "[Incomplete] JOBS", .help = "put jobs back into the queue" },
    { "requeuehold", 8, 1, 9999, control_requeuehold, .args = "[State=SpecialExit] JOBS", .help = "put them back and hold them" },
    { "resume", 3, 1, 9999, control_resume, .args = "JOBS", .help = "go on with suspended jobs" },
    { "schedloglevel", 3, 1, 1, NULL, .args = "N", .help = "log of the scheduler", .later = no_level },
    { "setdebug", 9, 1, 2, NULL, .args = "LEVEL", .help = "log level", .later = no_level },
    { "setdebugflags", 9, 1, 9, NULL, .args = "FLAGS", .help = "debug flags", .later = no_level },
    { "show", 3, 1, 3, control_show, .args = "<ENTITY> [<ID>]", .help = "show jobs, nodes, partitions, reservations, config, hostnames, hostlist" },
    { "shutdown", 3, 0, 1, do_shutdown, .args = "[slurmctld]", .help = "stop the controller and its nodes, or it alone" },
    { "suspend", 3, 1, 9999, control_suspend, .args = "JOBS", .help = "stop the processes of jobs" },
    { "takeover", 4, 0, 1, do_takeover, .args = "[INDEX]", .help = "another controller leads" },
    { "token", 3, 0, 2, do_token, .args = "[lifespan=SECONDS] [username=NAME]", .help = "a token for this user" },
    { "top", 3, 1, 9999, control_top, .args = "JOBS", .help = "move jobs before the user's others" },
    { "uhold", 2, 1, 9999, control_uhold, .args = "JOBS", .help = "hold jobs so that their user can release them" },
    { "update", 2, 1, 999, control_update, .args = "KEY=VALUE...", .help = "change a job, node, partition or reservation" },
    { "verbose", 4, 0, 0, do_switch, SWITCH_VERBOSE, .help = "say more" },
    { "version", 4, 0, 0, do_version, .help = "show the version" },
    { "wait_job", 4, 1, 1, control_wait_job, .args = "JOB", .help = "wait until the nodes of a job are ready" },
    { "write", 5, 1, 3, control_write, .args = "batch_script JOB [FILE]", .help = "the script of a job" },
};
/* clang-format on */

const struct control_row *control_find(const struct control_row *rows, size_t count,
                                       const char *word, size_t len)
{
    const struct control_row *found = NULL;

    for (size_t i = 0; i < count; i++) {
        size_t name_len = strlen(rows[i].name);

        if (len > name_len || len < MIN(rows[i].least, name_len) ||
            strncasecmp(rows[i].name, word, len) != 0)
            continue;
        if (len == name_len)
            return &rows[i];
        if (!found)
            found = &rows[i];
    }
    return found;
}

static int do_switch(struct control *control, int argc, char **argv)
{
    const struct control_row *row =
        control_find(verbs, ARRAY_LEN(verbs), argv[-1], strlen(argv[-1]));

    switch (row->number) {
    case SWITCH_ALL:
        control->all = true;
        break;
    case SWITCH_HIDE:
        control->all = false;
        break;
    case SWITCH_DETAILS:
        control->detail = true;
        break;
    case SWITCH_ONELINER:
        control->one_line = true;
        break;
    case SWITCH_QUIET:
        control->quiet = true;
        break;
    case SWITCH_VERBOSE:
        control->quiet = false;
        break;
    case SWITCH_LEAVE:
        control->leave = true;
        break;
    default:
        break;
    }
    return 0;
}

static int do_help(struct control *control, int argc, char **argv)
{
    CLEANUP(str_done) struct str entities = { 0 };

    control_add_entities(&entities);
    if (str_starts(control->cli.name, "spur ")) {
        printf("Usage: %s [OPTIONS] <ENTITY> [<ID>]\n\n  <ENTITY> may be one of:\n     %s\n",
               control->cli.name, str_text(&entities));
        return 0;
    }
    puts("scontrol [<OPTION>] [<COMMAND>]\n    Valid <OPTION> values are:");
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        if (options[i].help && !options[i].later)
            printf("     %s%c%s--%-20s %s\n", options[i].key ? "-" : "",
                   options[i].key ? options[i].key : ' ', options[i].key ? " or " : "     ",
                   options[i].name, options[i].help);
    }
    puts("\n  Valid <COMMAND> values are:");
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        char form[128];

        if (verbs[i].later || !verbs[i].help)
            continue;
        snprintf(form, sizeof(form), "%s %s", verbs[i].name, verbs[i].args ? verbs[i].args : "");
        printf("     %-40s %s\n", form, verbs[i].help);
    }
    printf("\n  <ENTITY> may be one of:\n     %s\n", str_text(&entities));
    return 0;
}

static int run_words(struct control *control, int argc, char **argv)
{
    const struct control_row *row = control_find(verbs, ARRAY_LEN(verbs), argv[0], strlen(argv[0]));

    if (!row) {
        fprintf(stderr, "invalid keyword: %s\n", argv[0]);
        return 1;
    }
    if (row->later) {
        fprintf(stderr, "%s is not supported yet: %s\n", row->name, row->later);
        return 1;
    }
    if (argc - 1 < row->min) {
        fprintf(stderr, "too few arguments for %s keyword\n", row->name);
        return 1;
    }
    if (argc - 1 > row->max) {
        fprintf(stderr, "too many arguments for keyword:%s\n", row->name);
        return 1;
    }
    return row->run(control, argc - 1, argv + 1);
}

/* Commands from standard input, until its end or `exit`. */
static int run_prompt(struct control *control)
{
    char *line = NULL, **last = NULL;
    size_t room = 0;
    int code = 0, last_count = 0;

    control->interactive = true;
    while (!control->leave) {
        struct err err = { 0 };
        char **words;
        ssize_t len;
        int count;

        printf("%s: ", control->cli.name);
        fflush(stdout);
        len = getline(&line, &room, stdin);
        if (len < 0) {
            puts("");
            break;
        }
        if (script_split(&control->cli.arena, line, (size_t)len, &words, &count, &err) < 0) {
            cli_error(&control->cli, "%s", err.text);
            code = 1;
        } else if (count && strcmp(words[0], "!!") == 0) {
            if (!last) {
                cli_error(&control->cli, "no previous command");
                code = 1;
            } else {
                code = run_words(control, last_count, last);
            }
        } else if (count) {
            last = words; /* both live as long as we do */
            last_count = count;
            code = run_words(control, count, words);
        }
        fflush(stdout);
    }
    free(line);
    return code;
}

static int scontrol_run(struct control *control, const struct option_set *set, int argc,
                        char **argv, char **operands)
{
    struct option_ctx ctx = cli_option_ctx();
    struct scontrol_args args = { 0 };
    struct err err = { 0 };
    int count;

    if (option_read_env(set, &ctx, &args, &err) < 0 ||
        option_read_argv(set, &ctx, &args, argc, argv, OPTION_PERMUTE, operands, &count, &err) < 0)
        return cli_option_error(set, &err);
    if (args.help)
        return do_help(control, 0, NULL);
    if (cli_help(set, false, args.usage, args.version))
        return 0;
    control->all = args.all && !args.hide;
    control->detail = args.detail;
    control->future = args.future;
    control->one_line = args.one_line;
    control->quiet = args.quiet;
    control->json = args.has_json;
    control->yaml = args.yaml;
    control->verbose = args.verbose;
    return count ? run_words(control, count, operands) : run_prompt(control);
}

const struct option_set scontrol_options = {
    .command = "scontrol",
    .usage = "[OPTIONS...] [COMMAND...]",
    .about = "Shows and changes jobs, nodes and partitions.",
    .bit = 1,
    .usage_exit = 1,
    .rows = options,
    .count = ARRAY_LEN(options),
};

int scontrol_main(int argc, char **argv)
{
    struct control control = { .argc = argc, .argv = argv };
    struct option_set set = scontrol_options;
    char **operands = NEW_ARRAY(char *, argc + 1);
    int code;

    set.command = cli_name(argv);
    cli_init(&control.cli, set.command);
    code = scontrol_run(&control, &set, argc, argv, operands);
    cli_done(&control.cli);
    free(operands);
    return code;
}

/* `spur show job 12` is `scontrol show job 12`. */
int show_main(int argc, char **argv)
{
    char **words = NEW_ARRAY(char *, argc + 2);
    int code;

    words[0] = argv[0];
    words[1] = (char *)"show";
    for (int i = 1; i < argc; i++)
        words[i + 1] = argv[i];
    code = scontrol_main(argc + 1, words);
    free(words);
    return code;
}

void scontrol_add_verbs(struct str *out)
{
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        if (!verbs[i].later)
            str_addf(out, "%s\n", verbs[i].name);
    }
}
