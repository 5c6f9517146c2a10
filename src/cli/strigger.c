/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strigger.c - programs that the controller runs when something happens: `strigger`, `spur trigger`
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "proto/controller.pb-c.h"
#include "schema/option.h"
#include "schema/trigger.h"

struct strigger_args {
    bool help, usage, version, set, get, clear, no_header, quiet, permanent, has_nodes;
    const char *flags, *id, *job, *nodes, *offset, *program, *user;
    uint32_t verbose, types;
};

#define TEXT(member) OPTION_TEXT(struct strigger_args, member)
#define FLAG(member) OPTION_BOOL(struct strigger_args, member)

static int read_event(const struct option_call *call, const char *value, struct err *err)
{
    struct strigger_args *args = call->target;

    (void)value, (void)err;
    args->types |= (uint32_t)call->row->value;
    return 0;
}

static int read_nodes(const struct option_call *call, const char *value, struct err *err)
{
    struct strigger_args *args = call->target;

    (void)err;
    args->has_nodes = true;
    args->nodes = value && !str_ieq(value, "*") ? value : "";
    return 0;
}

static int read_flags(const struct option_call *call, const char *value, struct err *err)
{
    struct strigger_args *args = call->target;

    if (!str_ieq(value, "PERM"))
        return err_set(err, ERR_INVALID, "Invalid flags %s", value);
    args->permanent = true;
    return 0;
}

/* clang-format off */
#define EVENT(long_name, letter, type, words) \
    { .name = long_name, .key = letter, .read = read_event, .value = type, .help = words }
static const struct option rows[] = {
    { .name = "autocomplete", .arg = "TEXT", .read = option_text, .later = "spur completion writes it for a shell" },
    EVENT("backup_slurmctld_assumed_control", 'C', TRIGGER_BACKUP_CONTROLS, "When a controller other than the first of the list leads."),
    EVENT("backup_slurmctld_failure", 'B', TRIGGER_BACKUP_FAIL, "When a controller other than the first of the list is not heard any more."),
    EVENT("backup_slurmctld_resumed_operation", 'c', TRIGGER_BACKUP_OPERATES, "When such a controller is heard again."),
    { .name = "burst_buffer", .read = option_flag, .later = "there are no burst buffers", .help = "When a burst buffer has an error." },
    { .name = "clear", .read = option_flag, .into = FLAG(clear), .help = "Remove triggers; --id, --jobid or --user says which." },
    { .name = "cluster", .arg = "NAMES", .read = option_text, .later = "a command speaks to one cluster" },
    { .name = "clusters", .key = 'M', .arg = "NAMES", .read = option_text, .later = "a command speaks to one cluster", .help = "Another cluster." },
    EVENT("down", 'd', TRIGGER_DOWN, "When a node, or a node of the job, goes down."),
    EVENT("drained", 'D', TRIGGER_DRAINED, "When a node is drained: nothing runs there any more."),
    EVENT("draining", 0, TRIGGER_DRAINING, "When a node with jobs begins to drain."),
    EVENT("fail", 'F', TRIGGER_FAIL, "When a node is set to FAIL."),
    EVENT("fini", 'f', TRIGGER_FINI, "When the job has ended."),
    { .name = "flags", .arg = "FLAGS", .read = read_flags, .help = "PERM: the trigger stays when its program was run." },
    { .name = "front_end", .read = option_flag, .later = "there are no front-end nodes" },
    { .name = "get", .read = option_flag, .into = FLAG(get), .help = "List triggers; the other options choose which." },
    { .name = "help", .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "id", .key = 'i', .arg = "ID", .read = option_text, .into = TEXT(id), .help = "The number of a trigger." },
    EVENT("idle", 'I', TRIGGER_IDLE, "When a node has been idle for --offset seconds."),
    { .name = "jobid", .key = 'j', .arg = "ID", .read = option_text, .into = TEXT(job), .help = "About this job." },
    { .name = "node", .key = 'n', .arg = "[NODES]", .read = read_nodes, .help = "About these nodes; without a value: about any." },
    { .name = "noheader", .key = 'N', .read = option_flag, .into = FLAG(no_header), .help = "No line with the names of columns." },
    { .name = "offset", .key = 'o', .arg = "SECONDS", .read = option_text, .into = TEXT(offset), .help = "Run the program so long after the event; with --time also before it (negative)." },
    { .name = "primary_database_failure", .key = 'h', .read = option_flag, .later = "controllers do not see the database behind spurdbd; use --primary_slurmdbd_failure", .help = "When the database fails." },
    { .name = "primary_database_resumed_operation", .key = 'H', .read = option_flag, .later = "controllers do not see the database behind spurdbd; use --primary_slurmdbd_resumed_operation", .help = "When the database works again." },
    EVENT("primary_slurmctld_acct_buffer_full", 'e', TRIGGER_JOURNAL_FULL, "When history was dropped that accounting had not taken."),
    EVENT("primary_slurmctld_failure", 'a', TRIGGER_PRIMARY_FAIL, "When the first controller of the list led and another has taken over."),
    EVENT("primary_slurmctld_resumed_control", 'b', TRIGGER_PRIMARY_CONTROLS, "When the first controller of the list leads again."),
    EVENT("primary_slurmctld_resumed_operation", 'A', TRIGGER_PRIMARY_OPERATES, "When the first controller, or the only one, works again."),
    EVENT("primary_slurmdbd_failure", 'g', TRIGGER_DBD_FAIL, "When the connection to spurdbd is lost."),
    EVENT("primary_slurmdbd_resumed_operation", 'G', TRIGGER_DBD_OPERATES, "When spurdbd is there again."),
    { .name = "program", .key = 'p', .arg = "PATH", .read = option_text, .into = TEXT(program), .help = "An absolute path; words after it are arguments. The job or the nodes follow as the last one." },
    { .name = "quiet", .key = 'Q', .read = option_flag, .into = FLAG(quiet), .help = "Say nothing when a trigger cannot be set or removed." },
    EVENT("reconfig", 'r', TRIGGER_RECONFIG, "When the configuration has changed."),
    EVENT("resume", 'R', TRIGGER_RESUME, "When a node that was drained is used again."),
    { .name = "set", .read = option_flag, .into = FLAG(set), .help = "Make a trigger." },
    EVENT("time", 't', TRIGGER_TIME, "When the job reaches its time limit."),
    EVENT("up", 'u', TRIGGER_UP, "When a node comes back from DOWN."),
    { .name = "usage", .read = option_flag, .into = FLAG(usage), .help = "Show a short summary of options." },
    { .name = "user", .arg = "NAME", .read = option_text, .into = TEXT(user), .help = "Triggers of this user." },
    { .name = "verbose", .key = 'v', .read = option_increase, .into = OPTION_U32(struct strigger_args, verbose), .help = "Say what was done." },
    { .name = "version", .key = 'V', .read = option_flag, .into = FLAG(version), .help = "Show the version." },
};
/* clang-format on */

const struct option_set strigger_options = {
    .command = "strigger",
    .usage = "[--set | --get | --clear] [OPTIONS...]",
    .about = "Run a program on the controller's host when something happens to a job, a node or a "
             "daemon.",
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

struct strigger {
    struct cli cli;
    struct strigger_args args;
    uint32_t id, job_id, uid;
    int32_t offset_s;
};

static bool read_number(const char *text, long low, long high, long *out)
{
    char *end;

    *out = strtol(text, &end, 10);
    return *text && !*end && *out >= low && *out <= high;
}

static int read_values(struct strigger *strigger)
{
    const struct strigger_args *args = &strigger->args;
    long number;

    if (args->id && !read_number(args->id, 1, UINT32_MAX, &number)) {
        cli_error(&strigger->cli, "Invalid trigger id '%s'", args->id);
        return 1;
    }
    strigger->id = args->id ? (uint32_t)number : 0;
    if (args->job && !read_number(args->job, 1, UINT32_MAX, &number)) {
        cli_error(&strigger->cli, "Invalid jobid %s", args->job);
        return 1;
    }
    strigger->job_id = args->job ? (uint32_t)number : 0;
    if (args->user && !cli_user(args->user, &strigger->uid)) {
        cli_error(&strigger->cli, "Invalid user %s", args->user);
        return 1;
    }
    if (args->offset &&
        !read_number(args->offset, -TRIGGER_OFFSET_MOST, TRIGGER_OFFSET_MOST, &number)) {
        cli_error(&strigger->cli, "The --offset parameter must be between +/-%d",
                  (int)TRIGGER_OFFSET_MOST);
        return 1;
    }
    strigger->offset_s = args->offset ? (int32_t)number : 0;
    return 0;
}

static const char *program_fault(const char *program, struct arena *arena)
{
    size_t len = strcspn(program, " ");
    struct stat info;

    if (program[0] != '/')
        return "The --program value must start with \"/\"";
    if (stat(arena_printf(arena, "%.*s", (int)len, program), &info) < 0)
        return "Invalid --program value, file not found";
    return S_ISREG(info.st_mode) ? NULL : "Invalid --program value, not regular file";
}

static const char *set_fault(struct strigger *strigger)
{
    const struct strigger_args *args = &strigger->args;
    bool of_job = args->types & (TRIGGER_TIME | TRIGGER_FINI);

    if (!args->types)
        return "You must specify a trigger (--down, --up, --reconfig, --time, --fini, ...)";
    if (!args->program)
        return "You must specify a --program value";
    if (of_job && !args->job)
        return "You must specify a --jobid value";
    if (args->job && args->has_nodes)
        return "--jobid and --node cannot be used together";
    if (args->job && args->types & ~(unsigned)TRIGGERS_OF_JOBS)
        return "With --jobid only --down, --fail, --fini, --time and --up can be used";
    if (args->has_nodes && args->types & ~(unsigned)TRIGGERS_OF_NODES)
        return "--node is for events of nodes";
    if (strigger->offset_s < 0 && !(args->types & TRIGGER_TIME))
        return "A negative --offset is for --time: nothing else is known before it happens";
    return program_fault(args->program, &strigger->cli.arena);
}

static int set_trigger(struct strigger *strigger)
{
    const struct strigger_args *args = &strigger->args;
    SetTriggerRequest request = SET_TRIGGER_REQUEST__INIT;
    TriggerSpec spec = TRIGGER_SPEC__INIT;
    const char *fault = set_fault(strigger);
    struct err err = { 0 };
    DoneReply *reply;

    if (fault) {
        cli_error(&strigger->cli, "%s", fault);
        return 1;
    }
    spec.has_types = true;
    spec.types = args->types;
    spec.has_job_id = args->job != NULL;
    spec.job_id = strigger->job_id;
    if (!args->job && args->types & TRIGGERS_OF_NODES)
        spec.nodes = (char *)(uintptr_t)(args->nodes ? args->nodes : "");
    spec.has_offset_s = strigger->offset_s != 0;
    spec.offset_s = strigger->offset_s;
    spec.has_permanent = spec.permanent = args->permanent;
    spec.program = (char *)(uintptr_t)args->program;
    request.trigger = &spec;
    if (cli_call(&strigger->cli, "SetTrigger", &request.base, &done_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0) {
        if (args->quiet)
            return 0;
        return cli_load_error(&strigger->cli, "slurm_set_trigger:", &err);
    }
    if (args->verbose)
        cli_say(&strigger->cli, "trigger set");
    return 0;
}

static int clear(struct strigger *strigger)
{
    const struct strigger_args *args = &strigger->args;
    ClearTriggersRequest request = CLEAR_TRIGGERS_REQUEST__INIT;
    struct err err = { 0 };
    DoneReply *reply;

    if (!args->id && !args->job && !args->user) {
        cli_error(&strigger->cli, "You must specify a --id, --jobid, or --user to clear");
        return 1;
    }
    request.has_id = args->id != NULL;
    request.id = strigger->id;
    request.has_job_id = args->job != NULL;
    request.job_id = strigger->job_id;
    request.has_uid = args->user != NULL;
    request.uid = strigger->uid;
    if (cli_call(&strigger->cli, "ClearTriggers", &request.base, &done_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0) {
        if (args->quiet)
            return 0;
        return cli_load_error(&strigger->cli, "slurm_clear_trigger:", &err);
    }
    if (args->verbose && args->job)
        cli_say(&strigger->cli, "triggers for job %s cleared", args->job);
    else if (args->verbose && args->user)
        cli_say(&strigger->cli, "triggers for user %u cleared", strigger->uid);
    else if (args->verbose)
        cli_say(&strigger->cli, "trigger %u cleared", strigger->id);
    return 0;
}

/* ---- listing ---- */

static const char *resource(const TriggerSpec *spec)
{
    if (spec->has_job_id)
        return "job";
    if (spec->nodes)
        return "node";
    if (spec->types & TRIGGERS_OF_ACCOUNTING)
        return "slurmdbd";
    if (spec->types & TRIGGERS_OF_DATABASE)
        return "database";
    return spec->types & TRIGGERS_OF_CONTROLLERS ? "slurmctld" : "other";
}

static bool is_asked(const struct strigger *strigger, const TriggerSpec *spec)
{
    const struct strigger_args *args = &strigger->args;

    return (!args->id || spec->id == strigger->id) &&
           (!args->job || (spec->has_job_id && spec->job_id == strigger->job_id)) &&
           (!args->user || spec->uid == strigger->uid) &&
           (!args->types || spec->types & args->types) &&
           (!args->has_nodes ||
            (spec->nodes && (!*args->nodes || str_eq(spec->nodes, args->nodes))));
}

static void print_one(const TriggerSpec *spec)
{
    char job[16];
    struct str types = { 0 };

    snprintf(job, sizeof(job), "%u", spec->job_id);
    name_add_mask(&trigger_names, spec->types, ",", &types);
    const char *id = spec->has_job_id ? job : str_is_empty(spec->nodes) ? "*" : spec->nodes;
    printf("%7u %-9s %7s %-35s %6d %-8s %-5s %s\n", spec->id, resource(spec), id, str_text(&types),
           spec->offset_s, spec->user, spec->permanent ? "PERM" : "", spec->program);
    str_done(&types);
}

static int get(struct strigger *strigger)
{
    Empty request = EMPTY__INIT;
    struct err err = { 0 };
    ListTriggersReply *reply;

    if (cli_call(&strigger->cli, "ListTriggers", &request.base, &list_triggers_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0)
        return cli_load_error(&strigger->cli, "slurm_get_triggers:", &err);
    if (strigger->args.verbose)
        cli_say(&strigger->cli, "Read %zu trigger records", reply->n_triggers);
    if (!strigger->args.no_header)
        printf("TRIG_ID RES_TYPE   RES_ID TYPE                                OFFSET USER     "
               "FLAGS PROGRAM\n");
    for (size_t i = 0; i < reply->n_triggers; i++) {
        if (is_asked(strigger, reply->triggers[i]))
            print_one(reply->triggers[i]);
    }
    return 0;
}

static int act(struct strigger *strigger)
{
    const struct strigger_args *args = &strigger->args;

    if (args->set + args->get + args->clear != 1) {
        cli_error(&strigger->cli,
                  "You must use exactly one of the following options: --set, --get or --clear");
        return 1;
    }
    if (read_values(strigger))
        return 1;
    return args->set ? set_trigger(strigger) : args->get ? get(strigger) : clear(strigger);
}

int strigger_main(int argc, char **argv)
{
    struct option_set set = strigger_options;
    struct option_ctx ctx = cli_option_ctx();
    struct strigger strigger = { 0 };
    struct err err = { 0 };
    int count = 0, code;

    set.command = cli_name(argv);
    cli_init(&strigger.cli, set.command);
    char **operands = ARENA_ARRAY(&strigger.cli.arena, char *, (size_t)argc + 1);
    if (option_read_env(&set, &ctx, &strigger.args, &err) < 0 ||
        option_read_argv(&set, &ctx, &strigger.args, argc, argv, OPTION_PERMUTE, operands, &count,
                         &err) < 0)
        code = cli_option_error(&set, &err);
    else if (count > 1 || (count && (!strigger.args.has_nodes || *strigger.args.nodes))) {
        cli_error(&strigger.cli, "'%s' is not an option", operands[0]);
        code = 1;
    } else if (cli_help(&set, strigger.args.help, strigger.args.usage, strigger.args.version))
        code = 0;
    else {
        if (count) /* -n NODES: its value need not be joined to it */
            strigger.args.nodes = operands[0];
        code = act(&strigger);
    }
    cli_done(&strigger.cli);
    return code;
}
