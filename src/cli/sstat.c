// SPDX-License-Identifier: Apache-2.0
/*
 * sstat.c - what running steps use, asked of their supervisors
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/sstat.h"

struct sstat_args {
    bool all, help, usage, version, no_header, parsable, parsable2, noconvert, pids, helpformat;
    uint32_t verbose;
    const char *jobs, *format;
};

#define FLAG(member) OPTION_BOOL(struct sstat_args, member)
#define TEXT(member) OPTION_TEXT(struct sstat_args, member)

/* clang-format off */
static const struct option rows[] = {
    { .name = "allsteps", .key = 'a', .read = option_flag, .into = FLAG(all), .help = "All steps of the jobs, the batch script too." },
    { .name = "fields", .arg = "LIST", .read = option_text, .into = TEXT(format) },
    { .name = "format", .key = 'o', .arg = "LIST", .read = option_text, .into = TEXT(format), .help = "Fields to show: NAME[%[-]WIDTH],..." },
    { .name = "autocomplete", .arg = "TEXT", .read = option_text, .later = "spur completion writes it for a shell" },
    { .name = "help", .key = 'h', .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "helpformat", .key = 'e', .read = option_flag, .into = FLAG(helpformat), .help = "List the fields." },
    { .name = "jobs", .key = 'j', .arg = "IDS", .read = option_text, .into = TEXT(jobs), .help = "Jobs or steps: JOB[.STEP],..." },
    { .name = "noconvert", .read = option_flag, .into = FLAG(noconvert), .help = "Sizes in their own unit." },
    { .name = "noheader", .key = 'n', .read = option_flag, .into = FLAG(no_header), .help = "No header." },
    { .name = "parsable", .key = 'p', .read = option_flag, .into = FLAG(parsable), .help = "Fields end with '|'." },
    { .name = "parsable2", .key = 'P', .read = option_flag, .into = FLAG(parsable2), .help = "Fields are separated by '|'." },
    { .name = "pidformat", .key = 'i', .read = option_flag, .into = FLAG(pids), .help = "Processes on each node." },
    { .name = "usage", .read = option_flag, .into = FLAG(usage), .help = "Show a short summary of options." },
    { .name = "verbose", .key = 'v', .read = option_increase, .into = OPTION_U32(struct sstat_args, verbose), .help = "Say more; may be repeated." },
    { .name = "version", .key = 'V', .read = option_flag, .into = FLAG(version), .help = "Show the version." },
};
/* clang-format on */

const struct option_set sstat_options = { .command = "sstat",
                                          .usage = "[OPTIONS...] JOB[.STEP]...",
                                          .operands = "[<OPTION>] <job(.stepid)>",
                                          .first_heading = "    Valid <OPTION> values are:",
                                          .about = "Shows what running steps use.",
                                          .bit = 1,
                                          .usage_exit = 1,
                                          .rows = rows,
                                          .count = ARRAY_LEN(rows) };

/* ---- columns ---- */

struct column {
    const struct stat_field *field;
    int width;
};
struct table {
    const struct sstat_args *args;
    VEC(struct column) columns;
};

static const struct stat_field *find_field(struct span word)
{
    for (size_t i = 0; i < stat_field_count; i++) {
        if (strlen(stat_fields[i].name) == word.len &&
            strncasecmp(stat_fields[i].name, word.ptr, word.len) == 0)
            return &stat_fields[i];
    }
    return NULL;
}

static int read_format(struct cli *cli, struct table *table, const char *format)
{
    const char *cursor = format;
    struct span word;

    while (str_next(&cursor, ", ", &word)) {
        const char *percent = memchr(word.ptr, '%', word.len);
        struct span name = { word.ptr, percent ? (size_t)(percent - word.ptr) : word.len };
        const struct stat_field *field = find_field(name);
        if (!field) {
            cli_error(cli, "Invalid field requested: \"%.*s\"", (int)name.len, name.ptr);
            return 1;
        }
        int width = percent ? atoi(percent + 1) : field->width;
        vec_push(&table->columns, (struct column){ field, width ? width : field->width });
    }
    return 0;
}

static void put_cell(const struct table *table, const struct column *column, const char *text,
                     bool last)
{
    int width = abs(column->width), len = (int)strlen(text);

    if (table->args->parsable || table->args->parsable2) {
        printf("%s%s", text, table->args->parsable2 && last ? "" : "|");
        return;
    }
    if (len > width)
        printf("%.*s+ ", width - 1, text);
    else if (column->width < 0)
        printf("%-*s ", width, text);
    else
        printf("%*s ", width, text);
}

static void print_header(const struct table *table)
{
    if (table->args->no_header)
        return;
    for (size_t i = 0; i < table->columns.len; i++)
        put_cell(table, &table->columns.items[i], table->columns.items[i].field->name,
                 i + 1 == table->columns.len);
    puts("");
    if (table->args->parsable || table->args->parsable2)
        return;
    for (size_t i = 0; i < table->columns.len; i++) {
        for (int k = abs(table->columns.items[i].width); k > 0; k--)
            putchar('-');
        putchar(' ');
    }
    puts("");
}

static void print_row(const struct table *table, const struct stat *stat)
{
    for (size_t i = 0; i < table->columns.len; i++) {
        const struct column *column = &table->columns.items[i];
        CLEANUP(str_done) struct str text = { 0 };
        column->field->write(stat, column->field->number, &text);
        put_cell(table, column, str_text(&text), i + 1 == table->columns.len);
    }
    puts("");
}

/* ---- steps ---- */

static void add_here(struct stat *stat, const char *node, const StepHere *here)
{
    vec_push(&stat->nodes, node);
    vec_push(&stat->totals, here->usage);
    for (size_t i = 0; i < here->n_tasks; i++) {
        if (here->tasks[i]->usage)
            vec_push(&stat->tasks, (struct task){ node, here->tasks[i] });
    }
}

static void ask_others(struct stat *stat, const char *asked)
{
    for (size_t i = 0; stat->layout && i < stat->layout->n_nodes; i++) {
        const StepNode *node = stat->layout->nodes[i];
        JobStepsReply *reply;
        struct err err = { 0 };
        if (strcmp(node->name, asked) == 0 || str_is_empty(node->address))
            continue;
        if (steps_ask_node(stat->cli, node->address, stat->here, i, &reply, &err) < 0) {
            cli_error(stat->cli, "%s: %s", node->name, err.text);
            continue;
        }
        for (size_t k = 0; k < reply->n_steps; k++)
            add_here(stat, node->name, reply->steps[k]);
    }
}

static void show_step(const struct table *table, struct cli *cli, uint32_t job, const char *node,
                      const StepHere *here)
{
    struct stat stat = {
        .cli = cli, .noconvert = table->args->noconvert, .job = job, .here = here
    };
    StepLayout *layout =
        here->has_layout ? step_layout__unpack(NULL, here->layout.len, here->layout.data) : NULL;

    stat.layout = layout;
    if (here->here)
        add_here(&stat, node, here);
    ask_others(&stat, node);
    if (!table->args->pids) {
        print_row(table, &stat);
    } else {
        for (size_t i = 0; i < stat.nodes.len; i++) {
            stat.node = stat.nodes.items[i];
            print_row(table, &stat);
        }
    }
    vec_done(&stat.tasks);
    vec_done(&stat.nodes);
    vec_done(&stat.totals);
    if (layout)
        step_layout__free_unpacked(layout, NULL);
}

/* Of one job; how many were shown, or -1. */
static int show_job(const struct table *table, struct cli *cli, uint32_t job, bool has_step,
                    uint32_t step, struct err *err)
{
    JobAccessReply *access;
    JobStepsReply *reply;
    int shown = 0;

    if (steps_ask_manager(cli, job, has_step, step, true, &access, &reply, err) < 0)
        return -1;
    for (int batch = 1; batch >= 0; batch--) {
        for (size_t i = 0; i < reply->n_steps; i++) {
            const StepHere *here = reply->steps[i];
            bool is_batch = here->id->step == STEPS_BATCH;
            if (is_batch != (batch != 0) || (!has_step && !table->args->all && (is_batch || shown)))
                continue;
            shown++;
            show_step(table, cli, job, access->node, here);
        }
    }
    return shown;
}

/*
 * Without a step: the one with the lowest number, as in Slurm; with -a all of them. Of a heterogeneous job
 * those of each component.
 */
static int show_id(const struct table *table, struct cli *cli, const char *text)
{
    steps_jobs jobs = { 0 };
    struct err err = { 0 };
    bool has_step;
    uint32_t job, step = 0;
    int shown = 0, failed = 0;

    if (!steps_read_id(text, &job, &has_step, &step)) {
        cli_error(cli, "Invalid job id: %s", text);
        return 1;
    }
    if (steps_find_jobs(cli, text, &jobs, &err) < 0 || jobs.len == 0)
        vec_push(&jobs, job); /* asked about it, the controller says what is wrong */
    for (size_t i = 0; i < jobs.len; i++) {
        int count = show_job(table, cli, jobs.items[i], has_step, step, &err);
        failed += count < 0;
        shown += MAX(count, 0);
    }
    if (!shown && failed)
        cli_error(cli, "couldn't get steps for JobId=%u: %s", job, err.text);
    else if (!shown)
        cli_error(cli, "no steps running for job %u", job);
    vec_done(&jobs);
    return shown || (failed && err.code == ERR_INVALID_JOB_ID) ? 0 : 1;
}

static int go(struct cli *cli, struct sstat_args *args, char **ids, int count)
{
    struct table table = { .args = args };
    char **listed = NULL;
    size_t listed_count = 0;
    int code = 0;

    if (args->helpformat) {
        for (size_t i = 0; i < stat_field_count; i++)
            printf("%-19s%s", stat_fields[i].name, i % 4 == 3 ? "\n" : " ");
        puts("");
        return 0;
    }
    cli_split(cli, args->jobs, ",", &listed, &listed_count);
    for (int i = 0; i < count; i++)
        cli_split(cli, ids[i], ",", &listed, &listed_count);
    if (!listed_count) {
        cli_error(cli, "You didn't give me any jobs to stat.");
        return 1;
    }
    if (args->pids)
        code = read_format(cli, &table, "JobID,Nodelist,Pids");
    else if (args->format)
        code = read_format(cli, &table, args->format);
    else
        for (size_t i = 0; i < STAT_DEFAULT_FIELDS; i++)
            vec_push(&table.columns, (struct column){ &stat_fields[i], stat_fields[i].width });
    if (code == 0) {
        print_header(&table);
        for (size_t i = 0; i < listed_count; i++)
            code |= show_id(&table, cli, listed[i]);
    }
    vec_done(&table.columns);
    return code;
}

int sstat_main(int argc, char **argv)
{
    struct option_set set = sstat_options;
    struct option_ctx ctx = cli_option_ctx();
    struct sstat_args args = { 0 };
    struct err err = { 0 };
    char **operands = NEW_ARRAY(char *, argc + 1);
    struct cli cli;
    int count = 0, code = 0;

    set.command = cli_name(argv);
    cli_init(&cli, set.command);
    if (option_read_argv(&set, &ctx, &args, argc, argv, OPTION_PERMUTE, operands, &count, &err) < 0)
        code = cli_option_error(&set, &err);
    else if (!cli_help(&set, args.help, args.usage, args.version))
        code = go(&cli, &args, operands, count);
    cli_done(&cli);
    free(operands);
    return code;
}
