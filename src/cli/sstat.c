// SPDX-License-Identifier: Apache-2.0
/*
 * sstat.c - what running steps use, asked of their supervisors
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/timefmt.h"
#include "cli/commands.h"
#include "cli/steps.h"

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
                                          .about = "Shows what running steps use.",
                                          .bit = 1,
                                          .usage_exit = 1,
                                          .rows = rows,
                                          .count = ARRAY_LEN(rows) };

/* One task of the step, wherever it runs. */
struct task {
    const char *node;
    const StepTaskUsage *usage;
};

/* What is known of one step; `node` is set while a row is of one node only. */
struct stat {
    struct cli *cli;
    bool noconvert;
    uint32_t job;
    const StepHere *here;
    const StepLayout *layout; /* NULL: a batch script */
    VEC(struct task) tasks;
    VEC(const char *) nodes;
    const char *node;
};

enum what { CPU, RSS, VM, PAGES, READ, WRITE };

static uint64_t value_of(const Usage *usage, enum what what)
{
    switch (what) {
    case CPU:
        return (uint64_t)(usage->user_us + usage->system_us) / 1000000;
    case RSS:
        return usage->max_rss_bytes;
    case VM:
        return usage->max_vm_bytes;
    case PAGES:
        return usage->page_faults;
    case READ:
        return usage->read_bytes;
    case WRITE:
        return usage->write_bytes;
    }
    return 0;
}

struct sum {
    uint64_t min, max, total, count;
    const struct task *min_task, *max_task;
};

static struct sum sum_of(const struct stat *stat, enum what what)
{
    struct sum sum = { .min = UINT64_MAX };

    for (size_t i = 0; i < stat->tasks.len; i++) {
        const struct task *task = &stat->tasks.items[i];
        uint64_t value = value_of(task->usage->usage, what);
        if (value < sum.min || !sum.min_task)
            sum.min = value, sum.min_task = task;
        if (value > sum.max || !sum.max_task)
            sum.max = value, sum.max_task = task;
        sum.total += value;
        sum.count++;
    }
    if (!sum.count)
        sum.min = 0;
    return sum;
}

static void add_value(const struct stat *stat, enum what what, uint64_t value, struct str *out)
{
    if (what == CPU)
        timefmt_write_duration(out, (int64_t)value, TIMEFMT_LONG);
    else if (what == PAGES || stat->noconvert)
        str_add_u64(out, value);
    else if ((what == READ || what == WRITE) && value >= 1024 * 1024)
        str_addf(out, "%.2fM", (double)value / (1024 * 1024));
    else if (what == READ || what == WRITE)
        str_add_u64(out, value);
    else
        str_addf(out, "%" PRIu64 "K", value / 1024);
}

enum part { AVE, MAX_OF, MAX_NODE, MAX_TASK, MIN_OF, MIN_NODE, MIN_TASK };

static void add_part(const struct stat *stat, enum what what, enum part part, struct str *out)
{
    struct sum sum = sum_of(stat, what);
    const struct task *task = part == MIN_NODE || part == MIN_TASK ? sum.min_task : sum.max_task;

    if (!sum.count)
        return;
    if (part == AVE)
        add_value(stat, what, sum.total / sum.count, out);
    else if (part == MAX_OF || part == MIN_OF)
        add_value(stat, what, part == MAX_OF ? sum.max : sum.min, out);
    else if (part == MAX_NODE || part == MIN_NODE)
        str_add(out, task->node);
    else
        str_add_u64(out, task->usage->task);
}

static void add_tres(const struct stat *stat, unsigned number, struct str *out);
static void add_id(const struct stat *stat, unsigned number, struct str *out);
static void add_alloc(const struct stat *stat, unsigned number, struct str *out);
static void add_ntasks(const struct stat *stat, unsigned number, struct str *out);
static void add_nodelist(const struct stat *stat, unsigned number, struct str *out);
static void add_pids(const struct stat *stat, unsigned number, struct str *out);

static void add_zero(const struct stat *stat, unsigned number, struct str *out)
{
    (void)stat, (void)number;
    str_add_char(out, '0');
}

static void add_unknown(const struct stat *stat, unsigned number, struct str *out)
{
    (void)number;
    str_add(out, stat->layout ? "Unknown" : "0");
}

static void add_usage(const struct stat *stat, unsigned number, struct str *out)
{
    add_part(stat, number >> 8, number & 0xff, out);
}

#define USAGE(what, part) add_usage, ((what) << 8 | (part))
enum { TRES_OUT = 16, TRES_TOT = 8 };

static const struct stat_field {
    const char *name;
    int width; /* negative: to the left */
    void (*write)(const struct stat *stat, unsigned number, struct str *out);
    unsigned number;
} fields[] = {
    { "JobID", -12, add_id, 0 },
    { "AllocTRES", 10, add_alloc, 0 },
    { "MaxVMSize", 10, USAGE(VM, MAX_OF) },
    { "MaxVMSizeNode", 14, USAGE(VM, MAX_NODE) },
    { "MaxVMSizeTask", 14, USAGE(VM, MAX_TASK) },
    { "AveVMSize", 10, USAGE(VM, AVE) },
    { "MaxRSS", 10, USAGE(RSS, MAX_OF) },
    { "MaxRSSNode", 10, USAGE(RSS, MAX_NODE) },
    { "MaxRSSTask", 10, USAGE(RSS, MAX_TASK) },
    { "AveRSS", 10, USAGE(RSS, AVE) },
    { "MaxPages", 8, USAGE(PAGES, MAX_OF) },
    { "MaxPagesNode", 12, USAGE(PAGES, MAX_NODE) },
    { "MaxPagesTask", 14, USAGE(PAGES, MAX_TASK) },
    { "AvePages", 10, USAGE(PAGES, AVE) },
    { "MinCPU", 10, USAGE(CPU, MIN_OF) },
    { "MinCPUNode", 10, USAGE(CPU, MIN_NODE) },
    { "MinCPUTask", 10, USAGE(CPU, MIN_TASK) },
    { "AveCPU", 10, USAGE(CPU, AVE) },
    { "NTasks", 8, add_ntasks, 0 },
    { "AveCPUFreq", 10, add_zero, 0 },
    { "ReqCPUFreqMin", 13, add_unknown, 0 },
    { "ReqCPUFreqMax", 13, add_unknown, 0 },
    { "ReqCPUFreqGov", 13, add_unknown, 0 },
    { "ConsumedEnergy", 14, add_zero, 0 },
    { "MaxDiskRead", 12, USAGE(READ, MAX_OF) },
    { "MaxDiskReadNode", 15, USAGE(READ, MAX_NODE) },
    { "MaxDiskReadTask", 15, USAGE(READ, MAX_TASK) },
    { "AveDiskRead", 12, USAGE(READ, AVE) },
    { "MaxDiskWrite", 12, USAGE(WRITE, MAX_OF) },
    { "MaxDiskWriteNode", 16, USAGE(WRITE, MAX_NODE) },
    { "MaxDiskWriteTask", 16, USAGE(WRITE, MAX_TASK) },
    { "AveDiskWrite", 12, USAGE(WRITE, AVE) },
    { "TRESUsageInAve", 14, add_tres, AVE },
    { "TRESUsageInMax", 14, add_tres, MAX_OF },
    { "TRESUsageInMaxNode", 18, add_tres, MAX_NODE },
    { "TRESUsageInMaxTask", 18, add_tres, MAX_TASK },
    { "TRESUsageInMin", 14, add_tres, MIN_OF },
    { "TRESUsageInMinNode", 18, add_tres, MIN_NODE },
    { "TRESUsageInMinTask", 18, add_tres, MIN_TASK },
    { "TRESUsageInTot", 14, add_tres, TRES_TOT },
    { "TRESUsageOutAve", 15, add_tres, TRES_OUT | AVE },
    { "TRESUsageOutMax", 15, add_tres, TRES_OUT | MAX_OF },
    { "TRESUsageOutMaxNode", 19, add_tres, TRES_OUT | MAX_NODE },
    { "TRESUsageOutMaxTask", 19, add_tres, TRES_OUT | MAX_TASK },
    { "TRESUsageOutMin", 15, add_tres, TRES_OUT | MIN_OF },
    { "TRESUsageOutMinNode", 19, add_tres, TRES_OUT | MIN_NODE },
    { "TRESUsageOutMinTask", 19, add_tres, TRES_OUT | MIN_TASK },
    { "TRESUsageOutTot", 15, add_tres, TRES_OUT | TRES_TOT },
    { "ConsumedEnergyRaw", 17, add_zero, 0 },
    { "Nodelist", 20, add_nodelist, 0 },
    { "Pids", 20, add_pids, 0 },
    { "ReqCPUFreq", 10, add_unknown, 0 },
};
enum { DEFAULT_FIELDS = 48 };

static void add_id(const struct stat *stat, unsigned number, struct str *out)
{
    (void)number;
    str_addf(out, "%u.%s", stat->job, stat->here->name);
}

static void add_alloc(const struct stat *stat, unsigned number, struct str *out)
{
    uint64_t cpus = 0, mem_mb = 0;

    (void)number;
    for (size_t i = 0; stat->layout && i < stat->layout->n_nodes; i++) {
        cpus += stat->layout->nodes[i]->cpus;
        mem_mb += stat->layout->nodes[i]->mem_mb;
    }
    if (!stat->layout)
        return;
    str_addf(out, "cpu=%" PRIu64, cpus);
    if (mem_mb)
        str_addf(out, ",mem=%" PRIu64 "M", mem_mb);
    str_addf(out, ",node=%zu", stat->layout->n_nodes);
}

static void add_ntasks(const struct stat *stat, unsigned number, struct str *out)
{
    (void)number;
    str_add_u64(out, stat->tasks.len);
}

static void add_nodelist(const struct stat *stat, unsigned number, struct str *out)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };

    (void)number;
    if (stat->node) {
        str_add(out, stat->node);
        return;
    }
    vec_each (const char *const, node, &stat->nodes)
        hostlist_push(&hosts, *node, NULL);
    hostlist_format(&hosts, out);
}

static void add_pids(const struct stat *stat, unsigned number, struct str *out)
{
    size_t before = out->len;

    (void)number;
    for (size_t i = 0; i < stat->tasks.len; i++) {
        const struct task *task = &stat->tasks.items[i];
        for (size_t k = 0; k < task->usage->n_pids; k++) {
            if (!stat->node || strcmp(stat->node, task->node) == 0)
                str_addf(out, "%s%u", out->len > before ? "," : "", task->usage->pids[k]);
        }
    }
}

/* "cpu=00:00:00,fs/disk=0,mem=0,…" */
static void add_tres(const struct stat *stat, unsigned number, struct str *out)
{
    static const struct {
        const char *name;
        enum what in, out;
        bool only_in;
    } parts[] = { { "cpu", CPU, CPU, true },
                  { "fs/disk", READ, WRITE, false },
                  { "mem", RSS, RSS, true },
                  { "pages", PAGES, PAGES, true },
                  { "vmem", VM, VM, true } };
    bool outward = number & TRES_OUT;
    size_t before = out->len;

    for (size_t i = 0; i < ARRAY_LEN(parts) && stat->tasks.len; i++) {
        enum what what = outward ? parts[i].out : parts[i].in;
        if (outward && parts[i].only_in)
            continue;
        str_addf(out, "%s%s=", out->len > before ? "," : "", parts[i].name);
        if (number & TRES_TOT)
            add_value(stat, what, sum_of(stat, what).total, out);
        else
            add_part(stat, what, number & 7, out);
    }
}

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
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (strlen(fields[i].name) == word.len &&
            strncasecmp(fields[i].name, word.ptr, word.len) == 0)
            return &fields[i];
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
    if (layout)
        step_layout__free_unpacked(layout, NULL);
}

/* Without a step: the one with the lowest number, as in Slurm; with -a all of them. */
static int show_id(const struct table *table, struct cli *cli, const char *text)
{
    JobAccessReply *access;
    JobStepsReply *reply;
    struct err err = { 0 };
    bool has_step, any = false;
    uint32_t job, step = 0;

    if (!steps_read_id(text, &job, &has_step, &step)) {
        cli_error(cli, "Invalid job id: %s", text);
        return 1;
    }
    if (steps_ask_manager(cli, job, has_step, step, true, &access, &reply, &err) < 0) {
        cli_error(cli, "couldn't get steps for job %u: %s", job, err.text);
        return 1;
    }
    for (int batch = 1; batch >= 0; batch--) {
        for (size_t i = 0; i < reply->n_steps; i++) {
            const StepHere *here = reply->steps[i];
            bool is_batch = here->id->step == STEPS_BATCH;
            if (is_batch != (batch != 0) || (!has_step && !table->args->all && (is_batch || any)))
                continue;
            any = true;
            show_step(table, cli, job, access->node, here);
        }
    }
    if (!any) {
        cli_error(cli, "no steps running for job %u", job);
        return 1;
    }
    return 0;
}

static int go(struct cli *cli, struct sstat_args *args, char **ids, int count)
{
    struct table table = { .args = args };
    char **listed = NULL;
    size_t listed_count = 0;
    int code = 0;

    if (args->helpformat) {
        for (size_t i = 0; i < ARRAY_LEN(fields); i++)
            printf("%-19s%s", fields[i].name, i % 4 == 3 ? "\n" : " ");
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
        for (size_t i = 0; i < DEFAULT_FIELDS; i++)
            vec_push(&table.columns, (struct column){ &fields[i], fields[i].width });
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
