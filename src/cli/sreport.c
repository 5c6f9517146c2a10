/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sreport.c - `sreport`: reports of use from the accounting database
 *
 * A report is named by two words and followed by words like start=now-7days. Without any the command reads lines
 * of such words from standard input.
 */
#include "cli/sreport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/timefmt.h"
#include "cli/commands.h"
#include "client/client.h"
#include "sys/clock.h"

enum { LINE_WORDS = 256, TOP_DEFAULT = 10, HOUR_S = 3600 };

struct sreport_args {
    const char *cluster, *time, *tres;
    bool all_clusters, help, local, no_header, parsable, parsable2, quiet, sort, usage;
    bool version;
    uint32_t verbose;
};

#define FLAG(member) OPTION_BOOL(struct sreport_args, member)
#define TEXT(member) OPTION_TEXT(struct sreport_args, member)
/* clang-format off */
static const struct option rows[] = {
    { .name = "all_clusters", .key = 'a', .read = option_flag, .into = FLAG(all_clusters), .help = "Report on all clusters of the database." },
    { .name = "autocomplete", .arg = "TEXT", .read = option_text, .later = "spur completion writes it for a shell" },
    { .name = "cluster", .key = 'M', .arg = "LIST", .read = option_text, .into = TEXT(cluster), .env = { "SREPORT_CLUSTER" }, .help = "Report on these clusters." },
    { .name = "federation", .read = option_flag, .env = { "SREPORT_FEDERATION" }, .later = "there are no federations; --all_clusters or --cluster names several" },
    { .name = "help", .key = 'h', .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "immediate", .key = 'i', .read = option_ignored, .help = "Nothing is asked, as always." },
    { .name = "local", .read = option_flag, .into = FLAG(local), .env = { "SREPORT_LOCAL" }, .help = "Report on the cluster of this host only, as without options." },
    { .name = "noheader", .key = 'n', .read = option_flag, .into = FLAG(no_header), .help = "No title and no names of columns." },
    { .name = "parsable", .key = 'p', .read = option_flag, .into = FLAG(parsable), .help = "Values apart by '|', also at the end." },
    { .name = "parsable2", .key = 'P', .read = option_flag, .into = FLAG(parsable2), .help = "Values apart by '|'." },
    { .name = "quiet", .key = 'Q', .read = option_flag, .into = FLAG(quiet), .help = "Say nothing but errors." },
    { .name = "sort", .key = 's', .read = option_flag, .into = FLAG(sort), .help = "Users by name and not by what they used." },
    { .key = 't', .name = "time", .arg = "FORMAT", .read = option_text, .into = TEXT(time), .help = "Seconds, Minutes (default), Hours, Percent, SecPer, MinPer or HourPer." },
    { .name = "tres", .key = 'T', .arg = "LIST", .read = option_text, .into = TEXT(tres), .env = { "SREPORT_TRES" }, .help = "These TRES instead of cpu: node, gres/gpu, gres/gpu:a100, billing, all." },
    { .name = "usage", .read = option_flag, .into = FLAG(usage), .help = "Show a short summary of options." },
    { .name = "verbose", .key = 'v', .read = option_increase, .into = OPTION_U32(struct sreport_args, verbose), .help = "Say what is asked for; may be repeated." },
    { .name = "version", .key = 'V', .read = option_flag, .into = FLAG(version), .help = "Show the version." },
};
/* clang-format on */

const struct option_set sreport_options = {
    .command = "sreport",
    .usage = "[OPTIONS...] [cluster|job|reservation|user REPORT [WORDS...]]",
    .about = "Report what clusters, accounts and users used: cluster AccountUtilizationByUser, "
             "AccountUtilizationByQOS, UserUtilizationByAccount, UserUtilizationByWckey, "
             "Utilization, WCKeyUtilizationByUser; job SizesByAccount, SizesByAccountAndWckey, "
             "SizesByWckey; reservation Utilization; user TopUsage. Words: start=TIME end=TIME "
             "format=COLUMNS clusters=LIST all_clusters accounts=LIST users=LIST wckeys=LIST tree; "
             "of jobs also grouping=LIST partitions=LIST nodes=LIST gid=LIST jobs=LIST flatview "
             "acctasparent printjobcount; of users also group topcount=N.",
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

/* ---- reports and words ---- */

static const struct report {
    const char *type, *name;
    enum report_id id;
} reports[] = {
    { "cluster", "AccountUtilizationByUser", REPORT_ACCOUNT_BY_USER },
    { "cluster", "AccountUtilizationByQOS", REPORT_ACCOUNT_BY_QOS },
    { "cluster", "UserUtilizationByAccount", REPORT_USER_BY_ACCOUNT },
    { "cluster", "UserUtilizationByWckey", REPORT_USER_BY_WCKEY },
    { "cluster", "Utilization", REPORT_CLUSTER },
    { "cluster", "WCKeyUtilizationByUser", REPORT_WCKEY_BY_USER },
    { "job", "SizesByAccount", REPORT_SIZES_ACCOUNT },
    { "job", "SizesByAccountAndWckey", REPORT_SIZES_BOTH },
    { "job", "SizesByWckey", REPORT_SIZES_WCKEY },
    { "reservation", "Utilization", REPORT_RESERVATION },
    { "user", "TopUsage", REPORT_TOP },
};

static const struct report *find_report(const char *type, const char *name)
{
    const struct report *found = NULL;

    for (size_t i = 0; i < ARRAY_LEN(reports); i++) {
        if (!str_istarts(reports[i].type, type) || !str_istarts(reports[i].name, name))
            continue;
        if (str_ieq(reports[i].name, name))
            return &reports[i];
        if (!found)
            found = &reports[i];
    }
    return found;
}

enum { OF_CLUSTER = 1, OF_JOB = 2, OF_RESERVATION = 4, OF_USER = 8, OF_ALL = 15 };

struct sreport_word {
    const char *name;
    unsigned reports;
    bool (*take)(struct sreport *r, const char *value); /* NULL: a flag */
    size_t flag;                                        /* its place in struct sreport */
    size_t list;
};

static void split(struct sreport *r, const char *text, struct report_list *out)
{
    out->count = 0;
    cli_split(&r->cli, text, ",", &out->items, &out->count);
}

static bool take_point(struct sreport *r, const char *value, int64_t *out)
{
    struct err err = { 0 };

    if (timefmt_read_point(value, r->now_s, TIMEFMT_PAST, out, &err) == 0)
        return true;
    cli_error(&r->cli, "Invalid time specification: %s", err.text);
    return false;
}

static bool take_start(struct sreport *r, const char *value)
{
    return take_point(r, value, &r->start_s);
}

static bool take_end(struct sreport *r, const char *value)
{
    return take_point(r, value, &r->end_s);
}

static bool take_format(struct sreport *r, const char *value)
{
    r->format = value;
    return true;
}

static bool take_grouping(struct sreport *r, const char *value)
{
    r->grouping = value;
    return true;
}

static bool take_nodes(struct sreport *r, const char *value)
{
    r->nodes = value;
    return true;
}

static bool take_top(struct sreport *r, const char *value)
{
    char *end;
    unsigned long number = strtoul(value, &end, 10);

    if (*end || end == value || !number || number > UINT32_MAX) {
        cli_error(&r->cli, "TopCount=%s: expected a number of users from 1 on", value);
        return false;
    }
    r->top = (unsigned)number;
    return true;
}

#define AT(member) offsetof(struct sreport, member)
static const struct sreport_word words[] = {
    { .name = "accounts", .reports = OF_CLUSTER | OF_JOB | OF_USER, .list = AT(accounts) },
    { .name = "acctasparent", .reports = OF_JOB, .flag = AT(as_parent) },
    { .name = "all_clusters", .reports = OF_ALL, .flag = AT(all_clusters) },
    { .name = "clusters", .reports = OF_ALL, .list = AT(clusters) },
    { .name = "end", .reports = OF_ALL, .take = take_end },
    { .name = "flatview", .reports = OF_JOB, .flag = AT(flat) },
    { .name = "format", .reports = OF_ALL, .take = take_format },
    { .name = "gid", .reports = OF_JOB, .list = AT(gids) },
    { .name = "group", .reports = OF_USER, .flag = AT(group) },
    { .name = "grouping", .reports = OF_JOB, .take = take_grouping },
    { .name = "jobs", .reports = OF_JOB, .list = AT(jobs) },
    { .name = "names", .reports = OF_RESERVATION, .list = AT(names) },
    { .name = "nodes", .reports = OF_JOB | OF_RESERVATION, .take = take_nodes },
    { .name = "partitions", .reports = OF_JOB, .list = AT(partitions) },
    { .name = "printjobcount", .reports = OF_JOB, .flag = AT(job_count) },
    { .name = "start", .reports = OF_ALL, .take = take_start },
    { .name = "topcount", .reports = OF_USER, .take = take_top },
    { .name = "tree", .reports = OF_CLUSTER, .flag = AT(tree) },
    { .name = "users", .reports = OF_CLUSTER | OF_JOB | OF_USER, .list = AT(users) },
    { .name = "wckeys", .reports = OF_CLUSTER | OF_JOB, .list = AT(wckeys) },
};

static unsigned kind_of(const struct report *report)
{
    return str_eq(report->type, "cluster") ? OF_CLUSTER
           : str_eq(report->type, "job")   ? OF_JOB
           : str_eq(report->type, "user")  ? OF_USER
                                           : OF_RESERVATION;
}

static const struct sreport_word *find_word(unsigned kind, const char *text, size_t len)
{
    const struct sreport_word *found = NULL;

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (!(words[i].reports & kind) || strlen(words[i].name) < len ||
            strncasecmp(words[i].name, text, len) != 0)
            continue;
        if (strlen(words[i].name) == len)
            return &words[i];
        if (!found)
            found = &words[i];
    }
    return found;
}

static bool take_word(struct sreport *r, unsigned kind, const char *text)
{
    const char *equal = strchr(text, '=');
    size_t len = equal ? (size_t)(equal - text) : strlen(text);
    const struct sreport_word *word = len ? find_word(kind, text, len) : NULL;

    if (!word || (!equal && !word->flag) || (equal && word->flag)) {
        cli_error(&r->cli, "Unknown condition: %s", text);
        return false;
    }
    if (word->flag)
        *(bool *)((char *)r + word->flag) = true;
    else if (word->list)
        split(r, equal + 1, (struct report_list *)((char *)r + word->list));
    else
        return word->take(r, arena_strdup(&r->cli.arena, equal + 1));
    return true;
}

/* ---- the window ---- */

/* The nearest full hour, as Slurm has it. */
static int64_t nearest_hour(int64_t at_s)
{
    time_t at = (time_t)(at_s + HOUR_S / 2);
    struct tm tm;

    localtime_r(&at, &tm);
    return at - tm.tm_min * 60 - tm.tm_sec;
}

static int64_t midnight(int64_t at_s, int days)
{
    time_t at = (time_t)at_s;
    struct tm tm;

    localtime_r(&at, &tm);
    tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
    tm.tm_mday += days;
    tm.tm_isdst = -1;
    return mktime(&tm);
}

/* Yesterday, unless something else is said; at least an hour; not beyond the hour that it is now. */
static void settle_window(struct sreport *r)
{
    int64_t next_hour = nearest_hour(r->now_s - HOUR_S / 2) + HOUR_S;

    r->start_s = r->start_s ? nearest_hour(r->start_s) : midnight(r->now_s, -1);
    r->end_s = r->end_s ? MIN(nearest_hour(r->end_s), next_hour) : midnight(r->now_s, 0);
    r->end_s = MAX(r->end_s, r->start_s + HOUR_S);
}

/* ---- one report ---- */

static const struct {
    const char *name;
    enum report_time time;
} times[] = {
    { "Seconds", TIME_SECONDS },
    { "Minutes", TIME_MINUTES },
    { "Hours", TIME_HOURS },
    { "Percent", TIME_PERCENT },
    { "SecPer", TIME_SECONDS_PERCENT },
    { "MinPer", TIME_MINUTES_PERCENT },
    { "HourPer", TIME_HOURS_PERCENT },
};

static bool set_time(struct sreport *r, const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        if (str_ieq(times[i].name, text)) {
            r->time = times[i].time;
            return true;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        if (*text && str_istarts(times[i].name, text)) {
            r->time = times[i].time;
            return true;
        }
    }
    cli_error(
        &r->cli,
        "'%s' is not a time format: Seconds, Minutes, Hours, Percent, SecPer, MinPer, HourPer",
        text);
    return false;
}

static bool set_tres(struct sreport *r, const char *text)
{
    static const char *const types[] = { "cpu",   "mem", "energy", "node",     "billing", "vmem",
                                         "pages", "fs/", "gres/",  "license/", "bb/",     "ic/" };

    r->tres_text = text;
    split(r, text ? text : "cpu", &r->tres);
    for (size_t i = 0; i < r->tres.count; i++) {
        bool known = str_ieq(r->tres.items[i], "all");
        for (size_t k = 0; k < ARRAY_LEN(types); k++)
            known = known || (strchr(types[k], '/') ? str_istarts(r->tres.items[i], types[k])
                                                    : str_ieq(r->tres.items[i], types[k]));
        if (!known) {
            cli_error(&r->cli, "'%s' is not a TRES: cpu, mem, node, billing, gres/NAME, all",
                      r->tres.items[i]);
            return false;
        }
    }
    if (!r->tres.count)
        cli_error(&r->cli, "--tres names nothing");
    return r->tres.count > 0;
}

/* What words of an earlier report said is forgotten. */
static void begin_report(struct sreport *r)
{
    struct report_list none = { 0 };

    r->now_s = clock_wall_us() / 1000000;
    r->start_s = r->end_s = 0;
    r->accounts = r->users = r->wckeys = r->partitions = r->jobs = r->gids = r->names = none;
    r->nodes = r->format = r->grouping = NULL;
    r->tree = r->group = r->flat = r->as_parent = r->job_count = false;
    r->top = TOP_DEFAULT;
    vec_clear(&r->rows);
    str_clear(&r->out);
}

static int run_report(struct sreport *r, char **argv, int argc)
{
    const struct report *report = argc > 1 ? find_report(argv[0], argv[1]) : NULL;
    struct report_list clusters = r->clusters;
    bool all = r->all_clusters;

    if (!report) {
        cli_error(&r->cli, "Not valid report %s. Valid reports are in 'sreport --help'",
                  argc > 1 ? argv[1] : "");
        return 1;
    }
    begin_report(r);
    r->id = report->id;
    for (int i = 2; i < argc; i++) {
        if (!take_word(r, kind_of(report), argv[i]))
            return 1;
    }
    settle_window(r);
    int code = report_fill(r);
    if (code == 0)
        code = report_print(r);
    r->clusters = clusters;
    r->all_clusters = all;
    return code;
}

static bool is_type(const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(reports); i++) {
        if (str_istarts(reports[i].type, word))
            return true;
    }
    return false;
}

static int run_words(struct sreport *r, char **argv, int argc)
{
    if (str_ieq(argv[0], "help")) {
        cli_help(&sreport_options, true, false, false);
    } else if (str_ieq(argv[0], "version")) {
        cli_print_version();
    } else if (str_ieq(argv[0], "parsable")) {
        r->parsable = true;
    } else if (str_ieq(argv[0], "nonparsable")) {
        r->parsable = r->parsable2 = false;
    } else if (str_ieq(argv[0], "time")) {
        return argc > 1 && set_time(r, argv[1]) ? 0 : 1;
    } else if (is_type(argv[0])) {
        return run_report(r, argv, argc);
    } else {
        cli_error(&r->cli, "\"%s\" is not a kind of report: cluster, job, reservation, user",
                  argv[0]);
        return 1;
    }
    return 0;
}

/* Lines from standard input, until it ends or says so. */
static int run_lines(struct sreport *r)
{
    char *line = NULL;
    size_t size = 0;
    int code = 0;

    for (;;) {
        char *argv[LINE_WORDS], *save = NULL;
        int argc = 0;
        if (isatty(STDIN_FILENO)) {
            printf("sreport: ");
            fflush(stdout);
        }
        if (getline(&line, &size, stdin) < 0)
            break;
        for (char *word = strtok_r(line, " \t\n", &save); word && argc < LINE_WORDS;
             word = strtok_r(NULL, " \t\n", &save))
            argv[argc++] = arena_strdup(&r->cli.arena, word);
        if (argc && (str_ieq(argv[0], "exit") || str_ieq(argv[0], "quit")))
            break;
        if (argc)
            code = run_words(r, argv, argc);
    }
    free(line);
    return code;
}

static int run(struct sreport *r, const struct sreport_args *args, char **operands, int count)
{
    r->time = TIME_MINUTES;
    r->no_header = args->no_header;
    r->parsable = args->parsable;
    r->parsable2 = args->parsable2;
    r->all_clusters = args->all_clusters && !args->local;
    r->by_name = args->sort;
    split(r, args->cluster, &r->clusters);
    if ((args->time && !set_time(r, args->time)) || !set_tres(r, args->tres))
        return 1;
    return count ? run_words(r, operands, count) : run_lines(r);
}

int sreport_main(int argc, char **argv)
{
    struct option_set set = sreport_options;
    struct option_ctx ctx = cli_option_ctx();
    struct sreport_args args = { 0 };
    struct sreport r = { 0 };
    struct err err = { 0 };
    char **operands = NEW_ARRAY(char *, argc + 1);
    int count = 0, code = 0;

    set.command = cli_name(argv);
    cli_init(&r.cli, set.command);
    if (option_read_env(&set, &ctx, &args, &err) < 0 ||
        option_read_argv(&set, &ctx, &args, argc, argv, OPTION_PERMUTE, operands, &count, &err) < 0)
        code = cli_option_error(&set, &err);
    else if (!cli_help(&set, args.help, args.usage, args.version))
        code = run(&r, &args, operands, count);
    vec_done(&r.rows);
    vec_done(&r.groups);
    str_done(&r.out);
    if (r.client)
        client_free(r.client);
    cli_done(&r.cli);
    free(operands);
    return code;
}
