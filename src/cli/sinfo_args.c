// SPDX-License-Identifier: Apache-2.0
/*
 * sinfo_args.c - options of sinfo, and how its lines are printed
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/commands.h"
#include "cli/sinfo.h"
#include "schema/jsonw.h"
#include "schema/names.h"

#define FORMAT_DEFAULT      "%#P %.5a %.10l %.6D %.6t %N"
#define FORMAT_SUMMARY      "%#P %.5a %.10l %.16F %N"
#define FORMAT_LONG         "%#P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %.11i %N"
#define FORMAT_NODE         "%#N %.6D %.#P %6t"
#define FORMAT_NODE_LONG    "%#N %.6D %.#P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E"
#define FORMAT_REASONS      "%20E %9u %19H %N"
#define FORMAT_REASONS_LONG "%20E %12U %19H %6t %N"

enum { FIT_LEAST = 9 }; /* no narrower than this, as Slurm */

#define TEXT(member) OPTION_TEXT(struct sinfo_args, member)
#define FLAG(member) OPTION_BOOL(struct sinfo_args, member)

static int read_json(const struct option_call *call, const char *value, struct err *err)
{
    struct sinfo_args *args = call->target;

    args->has_json = true;
    args->json = value;
    return 0;
}

static int read_yaml(const struct option_call *call, const char *value, struct err *err)
{
    struct sinfo_args *args = call->target;

    args->yaml = true;
    return read_json(call, value, err);
}

/* clang-format off */
static const struct option rows[] = {
    { .name = "all", .key = 'a', .env = { "SINFO_ALL" }, .read = option_flag, .into = FLAG(all), .help = "Also hidden partitions." },
    { .name = "cluster", .arg = "NAMES", .read = option_text, .later = "a command speaks to one cluster" },
    { .name = "clusters", .key = 'M', .arg = "NAMES", .read = option_text, .later = "a command speaks to one cluster", .help = "Other clusters." },
    { .name = "dead", .key = 'd', .read = option_flag, .into = FLAG(dead), .help = "Only nodes that do not answer." },
    { .name = "exact", .key = 'e', .read = option_flag, .into = FLAG(exact), .help = "Nodes of different size never share a line." },
    { .name = "federation", .read = option_flag, .later = "there are no federations", .help = "All clusters of the federation." },
    { .name = "format", .key = 'o', .arg = "FORMAT", .env = { "SINFO_FORMAT" }, .read = option_text, .into = TEXT(format), .help = "Columns by letter: \"%P %.5a %N\"; --helpformat lists them." },
    { .name = "Format", .key = 'O', .arg = "FIELDS", .read = option_text, .into = TEXT(names_format), .help = "Columns by name: NodeList:30,CPUs; --helpFormat lists them." },
    { .name = "future", .key = 'F', .env = { "SCONTROL_FUTURE" }, .read = option_flag, .into = FLAG(future), .help = "Also nodes that are configured for later." },
    { .name = "autocomplete", .arg = "TEXT", .read = option_text, .later = "spur completion writes it for a shell" },
    { .name = "help", .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "helpformat", .read = option_flag, .into = FLAG(help_letters), .help = "List the letters of --format." },
    { .name = "helpFormat", .read = option_flag, .into = FLAG(help_names), .help = "List the names of --Format." },
    { .name = "helpstate", .read = option_flag, .into = FLAG(help_states), .help = "List the states." },
    { .name = "hide", .read = option_flag, .into = FLAG(hide), .help = "No hidden partitions." },
    { .name = "iterate", .key = 'i', .arg = "SECONDS", .read = option_positive, .into = OPTION_U32(struct sinfo_args, iterate_s), .help = "Show it again after so long." },
    { .name = "json", .arg = "[VERSION]", .read = read_json, .help = "As JSON." },
    { .name = "list-reasons", .key = 'R', .read = option_flag, .into = FLAG(reasons), .help = "Why nodes are down or drained." },
    { .name = "local", .env = { "SINFO_LOCAL" }, .read = option_ignored, .help = "This cluster, as always." },
    { .name = "long", .key = 'l', .read = option_flag, .into = FLAG(long_form), .help = "More columns." },
    { .name = "noconvert", .read = option_flag, .into = FLAG(noconvert), .help = "Sizes stay in MB." },
    { .name = "Node", .key = 'N', .read = option_flag, .into = FLAG(by_node), .help = "A line for each node." },
    { .name = "nodes", .key = 'n', .arg = "HOSTS", .read = option_text, .into = TEXT(nodes), .help = "Only these nodes." },
    { .name = "noheader", .key = 'h', .read = option_flag, .into = FLAG(no_header), .help = "No line with the names of columns." },
    { .name = "partition", .key = 'p', .arg = "NAMES", .env = { "SINFO_PARTITION" }, .read = option_text, .into = TEXT(partition), .help = "Only these partitions." },
    { .name = "reservation", .key = 'T', .read = option_flag, .into = FLAG(reservations), .help = "Reservations instead." },
    { .name = "responding", .key = 'r', .read = option_flag, .into = FLAG(responding), .help = "Only nodes that answer." },
    { .name = "sort", .key = 'S', .arg = "LETTERS", .env = { "SINFO_SORT" }, .read = option_text, .into = TEXT(sort), .help = "Order by columns: #P,-t." },
    { .name = "stale", .read = option_flag, .into = FLAG(stale), .help = "Ask whichever controller answers, also one that does not lead or cannot tell; its answer may be old." },
    { .name = "states", .key = 't', .arg = "STATES", .read = option_text, .into = TEXT(states), .help = "Only nodes in these states; all for every one." },
    { .name = "summarize", .key = 's', .read = option_flag, .into = FLAG(summary), .help = "One line for each partition." },
    { .name = "usage", .read = option_flag, .into = FLAG(usage), .help = "Show a short summary of options." },
    { .name = "verbose", .key = 'v', .read = option_increase, .into = OPTION_U32(struct sinfo_args, verbose), .help = "Say how much there is; may be repeated." },
    { .name = "version", .key = 'V', .read = option_flag, .into = FLAG(version), .help = "Show the version." },
    { .name = "yaml", .arg = "[VERSION]", .read = read_yaml, .help = "As YAML." },
};
/* clang-format on */

static void add_states(struct str *out, const char *separator)
{
    size_t from = out->len;

    for (size_t i = 0; i < node_state_names.count; i++) {
        if (node_state_names.rows[i].value != NODE_ERROR)
            str_addf(out, "%s%s", out->len > from ? separator : "", node_state_names.rows[i].name);
    }
    str_addf(out, "%sDRAINED%sDRAINING", separator, separator);
    for (size_t i = 0; i < node_flag_names.count; i++)
        str_addf(out, "%s%s", separator, node_flag_names.rows[i].name);
    for (size_t i = from; i < out->len; i++)
        out->data[i] = (char)tolower((unsigned char)out->data[i]);
}

static bool help_wanted(struct sinfo *sinfo)
{
    const struct sinfo_args *args = &sinfo->args;
    struct str out = { 0 };

    if (cli_help(&sinfo->set, args->help, args->usage, args->version))
        return true;
    if (args->help_letters)
        columns_add_letters(&sinfo_fields, &out);
    else if (args->help_names)
        columns_add_names(&sinfo_fields, &out);
    else if (args->help_states)
        add_states(&out, "\n");
    else
        return false;
    cli_flush(&out);
    str_done(&out);
    return true;
}

static const char *default_format(const struct sinfo_args *args)
{
    if (args->reasons)
        return args->long_form ? FORMAT_REASONS_LONG : FORMAT_REASONS;
    if (args->summary)
        return FORMAT_SUMMARY;
    if (args->by_node)
        return args->long_form ? FORMAT_NODE_LONG : FORMAT_NODE;
    return args->long_form ? FORMAT_LONG : FORMAT_DEFAULT;
}

/* %all of sinfo has a blank after capital letters; programs cut at " |" or "|". */
static void space_capitals(struct columns *columns)
{
    vec_each (struct column, column, &columns->list) {
        bool last = column + 1 == columns->list.items + columns->list.len;

        if (isupper((unsigned char)column->field->column.letter)) {
            free(column->after);
            column->after = mem_strdup(last ? " " : " |");
        }
    }
}

static int read_format(struct sinfo *sinfo)
{
    const struct sinfo_args *args = &sinfo->args;
    struct str unknown = { 0 };
    struct err err = { 0 };
    const char *cursor;
    struct span word;
    int result;

    if (args->names_format && !args->format) {
        result =
            columns_read_names(&sinfo->columns, &sinfo_fields, args->names_format, &unknown, &err);
        cursor = str_text(&unknown);
        while (str_next(&cursor, "\n", &word))
            cli_error(&sinfo->cli, "Invalid job format specification: %.*s", (int)word.len,
                      word.ptr);
    } else {
        result = columns_read_letters(&sinfo->columns, &sinfo_fields,
                                      args->format ? args->format : default_format(args), &unknown,
                                      &err);
        cursor = str_text(&unknown);
        while (str_next(&cursor, "\n", &word))
            fprintf(stderr, "Invalid node format specification: %.*s\n", (int)word.len, word.ptr);
        if (args->format && str_starts(args->format, "%all"))
            space_capitals(&sinfo->columns);
    }
    if (result < 0)
        cli_error(&sinfo->cli, "%s", err.text);
    str_done(&unknown);
    return result < 0;
}

static int prepare(struct sinfo *sinfo)
{
    const struct sinfo_args *args = &sinfo->args;
    struct err err = { 0 };

    sinfo->filter = (struct sinfo_filter){
        .nodes = args->nodes && !str_ieq(args->nodes, "all") ? args->nodes : NULL,
        .partitions = args->partition && !str_ieq(args->partition, "all") ? args->partition : NULL,
        .dead = args->dead,
        .responding = args->responding,
        .reasons = args->reasons,
        .future = args->future,
    };
    if (args->states && sinfo_read_states(args->states, &sinfo->filter, &err) < 0) {
        struct str list = { 0 };

        add_states(&list, ",");
        cli_error(&sinfo->cli, "Bad state string: \"%s\"", err.text);
        cli_error(&sinfo->cli, "valid states: %s", str_text(&list));
        str_done(&list);
        return 1;
    }
    sinfo->sort = args->sort      ? args->sort
                  : args->reasons ? "E,u,H,N"
                  : args->by_node ? "N"
                                  : "#P,-t";
    return read_format(sinfo);
}

static void print_date(int64_t now_us)
{
    time_t now = (time_t)(now_us / 1000000);
    struct tm parts;
    char text[64];

    localtime_r(&now, &parts);
    if (strftime(text, sizeof(text), "%a %b %d %H:%M:%S %Y", &parts))
        puts(text);
}

static int print_table(struct sinfo *sinfo, sinfo_groups *groups, const struct field_ctx *ctx)
{
    struct str out = { 0 };
    struct err err = { 0 };

    if (sinfo_sort(groups, sinfo->sort, ctx, &err) < 0) {
        cli_error(&sinfo->cli, "Invalid sort specification: %s", err.text);
        return 1;
    }
    if (sinfo->args.long_form || sinfo->args.iterate_s)
        print_date(ctx->now_us);
    columns_fit(&sinfo->columns, NULL, ctx, FIT_LEAST);
    vec_each (const struct sinfo_group, group, groups)
        columns_fit(&sinfo->columns, group, ctx, FIT_LEAST);
    if (!sinfo->args.no_header)
        columns_add_header(&sinfo->columns, &out);
    vec_each (const struct sinfo_group, group, groups) {
        columns_add_row(&sinfo->columns, group, ctx, &out);
        if (out.len > 1 << 16 && !cli_flush(&out))
            break;
    }
    cli_flush(&out);
    str_done(&out);
    return 0;
}

static void print_json(struct sinfo *sinfo, const sinfo_groups *groups, const struct field_ctx *ctx)
{
    struct str out = { 0 };
    struct jsonw json;

    (sinfo->args.yaml ? jsonw_init_yaml : jsonw_init)(&json, &out);
    jsonw_object(&json, NULL);
    sinfo_add_json(&json, groups, ctx);
    cli_json_end(&json, sinfo->argc, sinfo->argv, ctx->cluster);
    cli_flush(&out);
    str_done(&out);
}

int sinfo_print(struct sinfo *sinfo, const ListPartitionsReply *partitions,
                const ListNodesReply *nodes, struct field_ctx ctx)
{
    sinfo_groups groups = { 0 };
    struct err err = { 0 };
    int code = 0;

    if (sinfo->args.verbose)
        printf("records: %zu partitions, %zu nodes\n", partitions->n_partitions, nodes->n_nodes);
    if (sinfo_group(partitions, nodes, &sinfo->columns, &sinfo->filter, sinfo->args.by_node,
                    sinfo->args.exact, &groups, &err) < 0) {
        cli_error(&sinfo->cli, "%s", err.text);
        code = 1;
    } else if (sinfo->args.has_json) {
        print_json(sinfo, &groups, &ctx);
    } else {
        code = print_table(sinfo, &groups, &ctx);
    }
    sinfo_groups_done(&groups);
    return code;
}

int sinfo_read(struct sinfo *sinfo)
{
    struct option_ctx ctx = cli_option_ctx();
    char **operands = NEW_ARRAY(char *, sinfo->argc + 1);
    struct err err = { 0 };
    int count, code = -1;

    if (option_read_env(&sinfo->set, &ctx, &sinfo->args, &err) < 0 ||
        option_read_argv(&sinfo->set, &ctx, &sinfo->args, sinfo->argc, sinfo->argv, OPTION_PERMUTE,
                         operands, &count, &err) < 0)
        code = cli_option_error(&sinfo->set, &err);
    else if (help_wanted(sinfo))
        code = 0;
    else if (prepare(sinfo))
        code = 1;
    free(operands); /* sinfo takes none, and Slurm's does not mind them */
    return code;
}

const struct option_set sinfo_options = { .command = "sinfo",
                                          .usage = "[OPTIONS...]",
                                          .operands = "",
                                          .about = "Lists partitions and nodes.",
                                          .bit = 1,
                                          .usage_exit = 1,
                                          .rows = rows,
                                          .count = ARRAY_LEN(rows) };

void sinfo_init(struct sinfo *sinfo, int argc, char **argv)
{
    *sinfo = (struct sinfo){ .argc = argc, .argv = argv };
    sinfo->set = sinfo_options;
    sinfo->set.command = cli_name(argv);
    cli_init(&sinfo->cli, sinfo->set.command);
}

void sinfo_done(struct sinfo *sinfo)
{
    columns_done(&sinfo->columns);
    cli_done(&sinfo->cli);
}
