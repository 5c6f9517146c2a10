// SPDX-License-Identifier: Apache-2.0
/*
 * squeue_args.c - options of squeue, and the request that follows from them
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/squeue.h"
#include "schema/names.h"

#define FORMAT_DEFAULT "%.18i %.9P %.8j %.8u %.2t %.10M %.6D %R"
#define FORMAT_LONG    "%.18i %.9P %.8j %.8u %.8T %.10M %.9l %.6D %R"
#define FORMAT_START   "%.18i %.9P %.8j %.8u %.2t %.19S %.6D %20Y %R"
#define FORMAT_STATE   "%.18i %.2t"
#define FORMAT_STEPS   "%.15i %.8j %.9P %.8u %.9M %N"

#define TEXT(member) OPTION_TEXT(struct squeue_args, member)
#define FLAG(member) OPTION_BOOL(struct squeue_args, member)

/* -j and -s take their value after '=' or joined, and else whatever operand follows. */
static int read_jobs(const struct option_call *call, const char *value, struct err *err)
{
    struct squeue_args *args = call->target;

    args->job_flag = true;
    if (value)
        args->jobs = value;
    return 0;
}

static int read_steps(const struct option_call *call, const char *value, struct err *err)
{
    struct squeue_args *args = call->target;

    args->step_flag = true;
    if (value)
        args->steps = value;
    return 0;
}

static int read_json(const struct option_call *call, const char *value, struct err *err)
{
    struct squeue_args *args = call->target;

    args->has_json = true;
    args->json = value;
    return 0;
}

static int read_yaml(const struct option_call *call, const char *value, struct err *err)
{
    struct squeue_args *args = call->target;

    args->yaml = true;
    return read_json(call, value, err);
}

/* clang-format off */
static const struct option rows[] = {
    { .name = "account", .key = 'A', .arg = "NAMES", .env = { "SQUEUE_ACCOUNT" }, .read = option_text, .into = TEXT(accounts), .help = "Only jobs of these accounts." },
    { .name = "accounts", .arg = "NAMES", .read = option_text, .into = TEXT(accounts) },
    { .name = "all", .key = 'a', .env = { "SQUEUE_ALL" }, .read = option_flag, .into = FLAG(all), .help = "Also jobs in hidden partitions." },
    { .name = "array", .key = 'r', .env = { "SQUEUE_ARRAY" }, .read = option_flag, .into = FLAG(array), .help = "One line for each task of an array." },
    { .name = "cluster", .arg = "NAMES", .read = option_text, .later = "a command speaks to one cluster" },
    { .name = "clusters", .key = 'M', .arg = "NAMES", .read = option_text, .later = "a command speaks to one cluster", .help = "Jobs of other clusters." },
    { .name = "expand-patterns", .read = option_flag, .into = FLAG(expand), .help = "Show file names with their patterns filled in." },
    { .name = "federation", .read = option_flag, .later = "there are no federations", .help = "Jobs of the federation." },
    { .name = "format", .key = 'o', .arg = "FORMAT", .env = { "SQUEUE_FORMAT" }, .read = option_text, .into = TEXT(format), .help = "Columns by letter: \"%.18i %9P %j\"; --helpformat lists them." },
    { .name = "Format", .key = 'O', .arg = "FIELDS", .env = { "SQUEUE_FORMAT2" }, .read = option_text, .into = TEXT(names_format), .help = "Columns by name: JobID:10,Name:.20; --helpFormat lists them." },
    { .name = "autocomplete", .arg = "TEXT", .read = option_text, .later = "spur completion writes it for a shell" },
    { .name = "help", .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "helpformat", .read = option_flag, .into = FLAG(help_letters), .help = "List the letters of --format." },
    { .name = "helpFormat", .read = option_flag, .into = FLAG(help_names), .help = "List the names of --Format." },
    { .name = "helpstate", .read = option_flag, .into = FLAG(help_states), .help = "List the states." },
    { .name = "hide", .read = option_flag, .into = FLAG(hide), .help = "No jobs in hidden partitions." },
    { .name = "iterate", .key = 'i', .arg = "SECONDS", .read = option_positive, .into = OPTION_U32(struct squeue_args, iterate_s), .help = "Show it again after so long." },
    { .name = "jobs", .key = 'j', .arg = "[IDS]", .read = read_jobs, .help = "Only these jobs." },
    { .name = "json", .arg = "[VERSION]", .read = read_json, .help = "As JSON." },
    { .name = "licenses", .key = 'L', .arg = "NAMES", .env = { "SQUEUE_LICENSES" }, .read = option_text, .into = TEXT(licenses), .help = "Only jobs that use these licences." },
    { .name = "local", .env = { "SQUEUE_LOCAL" }, .read = option_ignored, .help = "Jobs of this cluster, as always." },
    { .name = "long", .key = 'l', .read = option_flag, .into = FLAG(long_form), .help = "More columns." },
    { .name = "me", .read = option_flag, .into = FLAG(me), .help = "Only my jobs." },
    { .name = "name", .key = 'n', .arg = "NAMES", .env = { "SQUEUE_NAMES" }, .read = option_text, .into = TEXT(names), .help = "Only jobs with these names." },
    { .name = "noconvert", .read = option_flag, .into = FLAG(noconvert), .help = "Sizes stay in MB." },
    { .name = "node", .arg = "HOSTS", .read = option_text, .into = TEXT(nodes) },
    { .name = "nodelist", .key = 'w', .arg = "HOSTS", .read = option_text, .into = TEXT(nodes), .help = "Only jobs on these nodes." },
    { .name = "nodes", .arg = "HOSTS", .read = option_text, .into = TEXT(nodes) },
    { .name = "noheader", .key = 'h', .read = option_flag, .into = FLAG(no_header), .help = "No line with the names of columns." },
    { .name = "notme", .read = option_flag, .into = FLAG(not_me), .help = "Only jobs of others." },
    { .name = "only-job-state", .read = option_flag, .into = FLAG(only_state), .help = "Only ids and states." },
    { .name = "partition", .key = 'p', .arg = "NAMES", .env = { "SQUEUE_PARTITION" }, .read = option_text, .into = TEXT(partitions), .help = "Only jobs in these partitions." },
    { .name = "partitions", .arg = "NAMES", .read = option_text, .into = TEXT(partitions) },
    { .name = "priority", .key = 'P', .env = { "SQUEUE_PRIORITY" }, .read = option_flag, .into = FLAG(priority), .help = "One line for each partition a job waits in." },
    { .name = "qos", .key = 'q', .arg = "NAMES", .env = { "SQUEUE_QOS" }, .read = option_text, .into = TEXT(qos), .help = "Only jobs of these QOS." },
    { .name = "reservation", .key = 'R', .arg = "NAME", .read = option_text, .into = TEXT(reservation), .help = "Only jobs in this reservation." },
    { .name = "running-over", .arg = "TIME", .read = option_duration, .into = OPTION_I64(struct squeue_args, over_s), .help = "Only jobs that have run longer than this." },
    { .name = "running-under", .arg = "TIME", .read = option_duration, .into = OPTION_I64(struct squeue_args, under_s), .help = "Only jobs that have run less than this." },
    { .name = "sib", .read = option_flag, .later = "there are no federations" },
    { .name = "sibling", .read = option_flag, .later = "there are no federations", .help = "Siblings in the federation." },
    { .name = "sort", .key = 'S', .arg = "LETTERS", .env = { "SQUEUE_SORT" }, .read = option_text, .into = TEXT(sort), .help = "Order by columns: P,t,-p." },
    { .name = "stale", .read = option_flag, .into = FLAG(stale), .help = "Ask whichever controller answers, also one that does not lead or cannot tell; its answer may be old." },
    { .name = "start", .read = option_flag, .into = FLAG(start), .help = "When waiting jobs are expected to start." },
    { .name = "states", .key = 't', .arg = "STATES", .env = { "SQUEUE_STATES" }, .read = option_text, .into = TEXT(states), .help = "Only jobs in these states; all for every one." },
    { .name = "steps", .key = 's', .arg = "[IDS]", .read = read_steps, .help = "Steps instead of jobs." },
    { .name = "usage", .read = option_flag, .into = FLAG(usage), .help = "Show a short summary of options." },
    { .name = "user", .key = 'u', .arg = "NAMES", .env = { "SQUEUE_USERS" }, .read = option_text, .into = TEXT(users), .help = "Only jobs of these users." },
    { .name = "users", .arg = "NAMES", .read = option_text, .into = TEXT(users) },
    { .name = "verbose", .key = 'v', .read = option_increase, .into = OPTION_U32(struct squeue_args, verbose), .help = "Say what is asked for; may be repeated." },
    { .name = "version", .key = 'V', .read = option_flag, .into = FLAG(version), .help = "Show the version." },
    { .name = "yaml", .arg = "[VERSION]", .read = read_yaml, .help = "As YAML." },
};
/* clang-format on */

static void help_states(void)
{
    for (size_t i = 0; i < job_state_names.count; i++)
        printf("%s\n", job_state_names.rows[i].name);
    for (size_t i = 0; i < job_flag_names.count; i++)
        printf("%s\n", job_flag_names.rows[i].name);
}

static bool help_wanted(struct squeue *squeue)
{
    const struct squeue_args *args = &squeue->args;
    struct str out = { 0 };

    if (cli_help(&squeue->set, args->help, args->usage, args->version))
        return true;
    if (args->help_letters)
        columns_add_letters(&job_fields, &out);
    else if (args->help_names)
        columns_add_names(&job_fields, &out);
    else if (args->help_states)
        help_states();
    else
        return false;
    cli_flush(&out);
    str_done(&out);
    return true;
}

/* Slurm's own table of the words, in its order. */
static void bad_state(struct squeue *squeue, const char *word)
{
    struct str list = { 0 };

    for (size_t i = 0; i < job_state_names.count; i++)
        str_addf(&list, "%s%s", i ? "," : "", job_state_names.rows[i].name);
    str_add(&list, ",completing,configuring,expediting,resizing,resv_del_hold,requeued,requeue_fed,"
                   "requeue_hold,revoked,signaling,special_exit,stage_out,stopped");
    for (size_t i = 0; i < list.len; i++)
        list.data[i] = (char)tolower((unsigned char)list.data[i]);
    cli_error(&squeue->cli, "Invalid job state specified: %s", word);
    cli_error(&squeue->cli, "Valid job states include: %s", str_text(&list));
    fputc('\n', stderr);
    str_done(&list);
}

/* Commas inside brackets belong to the id. */
static int check_ids(struct squeue *squeue)
{
    const char *at = squeue->args.jobs;

    while (at && *at) {
        size_t len = strcspn(at, "[, ");

        len += at[len] == '[' ? strcspn(at + len, "]") : 0;
        len += strcspn(at + len, ", ");
        if (len && !cli_is_job_id(at, len)) {
            cli_error(&squeue->cli, "Invalid job id: %.*s", (int)len, at);
            return 1;
        }
        at += len + (at[len] != '\0');
    }
    return 0;
}

static const struct field_table *table_of(const struct squeue *squeue)
{
    return squeue->args.step_flag ? &step_fields : &job_fields;
}

static int read_format(struct squeue *squeue)
{
    const struct squeue_args *args = &squeue->args;
    struct str unknown = { 0 };
    struct err err = { 0 };
    const char *cursor, *letters = args->step_flag    ? FORMAT_STEPS
                                   : args->only_state ? FORMAT_STATE
                                   : args->start      ? FORMAT_START
                                   : args->long_form  ? FORMAT_LONG
                                                      : FORMAT_DEFAULT;
    struct span word;
    int result;

    if (args->names_format && !args->format)
        result = columns_read_names(&squeue->columns, table_of(squeue), args->names_format,
                                    &unknown, &err);
    else
        result = columns_read_letters(&squeue->columns, table_of(squeue),
                                      args->format ? args->format : letters, &unknown, &err);
    cursor = str_text(&unknown);
    while (str_next(&cursor, "\n", &word))
        cli_error(&squeue->cli, "Invalid job format specification: %.*s", (int)word.len, word.ptr);
    if (result < 0)
        cli_error(&squeue->cli, "%s", err.text);
    str_done(&unknown);
    return result < 0;
}

static bool wants_spec(const struct squeue *squeue)
{
    if (squeue->args.has_json || squeue->args.priority)
        return true;
    vec_each (const struct column, column, &squeue->columns.list) {
        if (column->field && !column->field->brief)
            return !squeue->args.step_flag;
    }
    return squeue->sort && strpbrk(squeue->sort, "cdmySenvwxzfkoWXYZHIJO");
}

static void split_ids(struct squeue *squeue, ListJobsRequest *request)
{
    const char *at = squeue->args.jobs;

    request->ids = ARENA_ARRAY(&squeue->cli.arena, char *, at ? strlen(at) + 1 : 1);
    while (at && *at) {
        size_t len = strcspn(at, "[, ");

        len += at[len] == '[' ? strcspn(at + len, "]") : 0;
        len += strcspn(at + len, ", ");
        if (len)
            request->ids[request->n_ids++] = arena_strndup(&squeue->cli.arena, at, len);
        at += len + (at[len] != '\0');
    }
}

/* Fills the request; the lists live in the arena. */
static void fill_request(struct squeue *squeue, ListJobsRequest *request)
{
    const struct squeue_args *args = &squeue->args;
    struct cli *cli = &squeue->cli;

    split_ids(squeue, request);
    cli_split(cli, args->accounts, ",", &request->accounts, &request->n_accounts);
    cli_split(cli, args->partitions, ",", &request->partitions, &request->n_partitions);
    cli_split(cli, args->qos, ",", &request->qos, &request->n_qos);
    cli_split(cli, args->names, ",", &request->names, &request->n_names);
    cli_split(cli, args->licenses, ",", &request->licenses, &request->n_licenses);
    cli_split(cli, args->reservation, ",", &request->reservations, &request->n_reservations);
    request->users = squeue->users;
    request->n_users = squeue->user_count;
    if (args->nodes) {
        request->nodes = ARENA_ARRAY(&cli->arena, char *, 1);
        request->nodes[request->n_nodes++] = (char *)args->nodes;
    }
    /* A task that was named is shown by itself, also when it waits with others as one record. */
    request->has_array_expand = true;
    request->array_expand = args->array || (args->jobs && strchr(args->jobs, '_'));
    request->has_stale = request->stale = args->stale;
    request->has_hidden_too = request->hidden_too = args->all && !args->hide;
    request->has_with_spec = request->with_spec = args->step_flag || wants_spec(squeue);
    request->has_with_priority = request->with_priority = args->priority;
    /* A job that is named and over is known, though not shown: ask for all, choose here. */
    if (squeue->states.all || request->n_ids) {
        request->has_all_states = request->all_states = true;
        return;
    }
    request->states = ARENA_ARRAY(&cli->arena, JobState, 32);
    for (unsigned i = 0; i < 32; i++) {
        if (squeue->states.states >> i & 1)
            request->states[request->n_states++] = (JobState)i;
    }
    request->has_flag_mask = squeue->states.flags != 0;
    request->flag_mask = squeue->states.flags;
}

/* Everything that can be wrong before the controller is asked; 0 or an exit code. */
static int prepare(struct squeue *squeue)
{
    struct squeue_args *args = &squeue->args;
    struct err err = { 0 };

    squeue->states = queue_states_default;
    if (args->start) {
        squeue->states = (struct queue_states){ .states = 1u << JOB_PENDING };
        squeue->sort = "S";
    }
    if (args->states && queue_read_states(args->states, &squeue->states, &err) < 0) {
        bad_state(squeue, err.text);
        return 1;
    }
    if (args->sort)
        squeue->sort = args->sort;
    if (args->users) {
        cli_users(&squeue->cli, args->users, &squeue->users, &squeue->user_count);
        squeue->nobody = squeue->user_count == 0;
    }
    if (args->me)
        cli_split(&squeue->cli, arena_printf(&squeue->cli.arena, "%u", geteuid()), ",",
                  &squeue->users, &squeue->user_count);
    if (check_ids(squeue) || read_format(squeue))
        return 1;
    fill_request(squeue, &squeue->request);
    return 0;
}

/* The value of -j and -s may stand apart, and -j may be repeated. */
static void take_ids(struct squeue *squeue, char ***operands, int *count)
{
    struct squeue_args *args = &squeue->args;
    const char **at = args->job_flag ? &args->jobs : args->step_flag ? &args->steps : NULL;

    while (at && *count) {
        const char *word = (*operands)[0];

        if (*at && !isdigit((unsigned char)word[0]))
            break;
        *at = *at ? arena_printf(&squeue->cli.arena, "%s,%s", *at, word) : word;
        (*operands)++;
        (*count)--;
    }
}

int squeue_read(struct squeue *squeue)
{
    struct option_ctx ctx = cli_option_ctx();
    struct squeue_args *args = &squeue->args;
    char **operands = ARENA_ARRAY(&squeue->cli.arena, char *, squeue->argc + 1);
    struct err err = { 0 };
    int count = 0;

    if (option_read_env(&squeue->set, &ctx, args, &err) < 0 ||
        option_read_argv(&squeue->set, &ctx, args, squeue->argc, squeue->argv, OPTION_PERMUTE,
                         operands, &count, &err) < 0)
        return cli_option_error(&squeue->set, &err);
    if (help_wanted(squeue))
        return 0;
    take_ids(squeue, &operands, &count);
    if (count) {
        struct str usage = { 0 };

        cli_error(&squeue->cli, "Unrecognized option: %s", operands[0]);
        option_add_usage(&squeue->set, &usage);
        cli_flush(&usage);
        str_done(&usage);
        return 1;
    }
    return prepare(squeue) ? 1 : -1;
}

const struct option_set squeue_options = { .command = "squeue",
                                           .usage = "[OPTIONS...]",
                                           .operands = "",
                                           .about = "Lists jobs that wait or run.",
                                           .bit = 1,
                                           .usage_exit = 1,
                                           .rows = rows,
                                           .count = ARRAY_LEN(rows) };

void squeue_init(struct squeue *squeue, int argc, char **argv)
{
    *squeue = (struct squeue){ .sort = "P,t,-p", .argc = argc, .argv = argv };
    squeue->set = squeue_options;
    squeue->set.command = cli_name(argv);
    cli_init(&squeue->cli, squeue->set.command);
    list_jobs_request__init(&squeue->request);
    arena_init(&squeue->round);
}

void squeue_done(struct squeue *squeue)
{
    columns_done(&squeue->columns);
    arena_done(&squeue->round);
    cli_done(&squeue->cli);
}
