/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - `spur report --html FILE`: one page about use, with plots, that needs nothing else
 *
 * Plots are SVG inside the page. Names come from users and are escaped (add_text()).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/map.h"
#include "base/timefmt.h"
#include "base/vec.h"
#include "cli/accounting.h"
#include "cli/commands.h"
#include "cli/rates.h"
#include "client/client.h"
#include "proto/controller.pb-c.h"
#include "proto/usage.pb-c.h"
#include "sys/clock.h"
#include "sys/files.h"

enum {
    SPANS_MOST = 62,
    BARS_MOST = 15,
    COLOURS = 8,
    DAY_S = 86400,
    WIDTH = 860,
    PLOT_HEIGHT = 220
};

struct report_args {
    const char *html, *since, *until;
    bool all_clusters, help;
};

#define TEXT(member) OPTION_TEXT(struct report_args, member)
#define FLAG(member) OPTION_BOOL(struct report_args, member)
/* clang-format off */
static const struct option rows[] = {
    { .name = "all-clusters", .key = 'a', .read = option_flag, .into = FLAG(all_clusters), .help = "All clusters of the database." },
    { .name = "help", .key = 'h', .read = option_flag, .into = FLAG(help), .help = "Show this text." },
    { .name = "html", .arg = "FILE", .read = option_text, .into = TEXT(html), .help = "Write one page to this file; it needs no other." },
    { .name = "since", .key = 'S', .arg = "TIME", .read = option_text, .into = TEXT(since), .help = "From this time on: 90days, or a date; default 30days." },
    { .name = "until", .key = 'E', .arg = "TIME", .read = option_text, .into = TEXT(until), .help = "Up to this time; default now." },
};
/* clang-format on */

const struct option_set report_options = {
    .command = "spur report",
    .usage = "--html FILE [OPTIONS]",
    .about =
        "Writes a page with plots of use by account, user and GPU type, of what the cluster did, "
        "of waiting times, and of cost (accounting.rates).",
    .bit = 1,
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

/* A name with a number for each span, and their sum. */
struct series {
    const char *name;
    double *values, sum;
};
struct plot {
    VEC(struct series) series;
};

struct page {
    struct cli cli;
    const struct report_args *args;
    struct client *client;
    int64_t now_s, from_s, to_s;
    int64_t edges[SPANS_MOST + 1];
    size_t spans;
    const UsageReply *usage;
    const char *rates;
    struct plot accounts, users, gpus, cluster, waits;
    double wait_sum[SPANS_MOST], wait_jobs[SPANS_MOST];
    struct str out;
};

/* ---- the window ---- */

static bool read_moment(struct page *p, const char *text, int64_t *out_s)
{
    struct err err = { 0 };
    char *past = arena_printf(&p->cli.arena, "now-%s", text);

    if (timefmt_read_point(past, p->now_s, TIMEFMT_PAST, out_s, &err) == 0 ||
        timefmt_read_point(text, p->now_s, TIMEFMT_PAST, out_s, &err) == 0)
        return true;
    cli_error(&p->cli, "'%s' is neither a time nor how long ago: %s", text, err.text);
    return false;
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

/* Days, or several days together, so that there are not too many. */
static bool find_spans(struct page *p)
{
    p->to_s = p->now_s;
    if (!read_moment(p, p->args->since ? p->args->since : "30days", &p->from_s) ||
        (p->args->until && !read_moment(p, p->args->until, &p->to_s)))
        return false;
    p->to_s = MIN(p->to_s, p->now_s);
    if (p->from_s >= p->to_s) {
        cli_error(&p->cli, "the time of the report ends before it begins");
        return false;
    }
    p->from_s = midnight(p->from_s, 0);
    int64_t days = (p->to_s - p->from_s) / DAY_S + 1;
    int step = (int)((days + SPANS_MOST - 1) / SPANS_MOST);
    p->edges[0] = p->from_s;
    while (p->edges[p->spans] < p->to_s && p->spans < SPANS_MOST) {
        p->edges[p->spans + 1] = midnight(p->edges[p->spans] + DAY_S / 2, step);
        p->spans++;
    }
    p->edges[p->spans] = MAX(p->to_s, p->edges[p->spans - 1] + 1);
    return true;
}

/* ---- numbers ---- */

static struct series *series_of(struct page *p, struct plot *plot, const char *name)
{
    for (size_t i = 0; i < plot->series.len; i++) {
        if (str_eq(plot->series.items[i].name, name))
            return &plot->series.items[i];
    }
    vec_push(&plot->series, (struct series){ arena_strdup(&p->cli.arena, name),
                                             ARENA_ARRAY(&p->cli.arena, double, SPANS_MOST), 0 });
    return &plot->series.items[plot->series.len - 1];
}

static void add_number(struct page *p, struct plot *plot, const char *name, size_t span,
                       double value)
{
    struct series *series = series_of(p, plot, name);

    series->values[span] += value;
    series->sum += value;
}

static int by_sum(const void *a, const void *b)
{
    const struct series *x = a, *y = b;

    if (x->sum != y->sum)
        return x->sum < y->sum ? 1 : -1;
    return strcmp(x->name, y->name);
}

/* The largest first; what is beyond `most` is "others". */
static void settle(struct page *p, struct plot *plot, size_t most)
{
    if (plot->series.len)
        qsort(plot->series.items, plot->series.len, sizeof(struct series), by_sum);
    if (plot->series.len <= most)
        return;
    struct series others = { "others", ARENA_ARRAY(&p->cli.arena, double, SPANS_MOST), 0 };
    for (size_t i = most - 1; i < plot->series.len; i++) {
        others.sum += plot->series.items[i].sum;
        for (size_t k = 0; k < p->spans; k++)
            others.values[k] += plot->series.items[i].values[k];
    }
    plot->series.items[most - 1] = others;
    plot->series.len = most;
}

static void add_use(struct page *p, size_t i)
{
    const UsageReply *usage = p->usage;
    const UsageWho *who = usage->who[usage->row_who[i]];
    const char *tres = usage->tres[usage->row_tres[i]];
    size_t span = usage->row_span[i];
    double hours = (double)usage->row_amount[i] / 3600;

    if (str_eq(tres, "cpu")) {
        add_number(p, &p->accounts, str_is_empty(who->account) ? "no account" : who->account, span,
                   hours);
        add_number(p, &p->users, who->user, span, hours);
    } else if (str_starts(tres, "gres/gpu:")) {
        add_number(p, &p->gpus, tres + strlen("gres/gpu:"), span, hours);
        add_number(p, &p->gpus, "without a type", span, -hours);
    } else if (str_eq(tres, "gres/gpu")) {
        add_number(p, &p->gpus, "without a type", span, hours);
    }
}

static void add_cluster(struct page *p, const UsageCluster *from)
{
    const struct {
        const char *name;
        int64_t value;
    } parts[] = { { "allocated", from->alloc },
                  { "reserved", from->reserved },
                  { "planned", from->planned },
                  { "down", from->down + from->planned_down },
                  { "idle", from->idle } };

    for (size_t i = 0; str_eq(from->tres, "cpu") && i < ARRAY_LEN(parts); i++)
        add_number(p, &p->cluster, parts[i].name, from->span, (double)parts[i].value / 3600);
}

static int ask_usage(struct page *p, struct err *err)
{
    UsageRequest request = USAGE_REQUEST__INIT;
    ProtobufCMessage *message = NULL;

    request.edges_s = p->edges;
    request.n_edges_s = p->spans + 1;
    request.has_all_clusters = true;
    request.all_clusters = p->args->all_clusters;
    if (client_call(p->client, "/spur.Reports/Sum", &request.base, &usage_reply__descriptor,
                    &p->cli.arena, &message, err) < 0)
        return -(int)err->code;
    p->usage = (const void *)message;
    for (size_t i = 0; i < p->usage->n_row_who; i++)
        add_use(p, i);
    for (size_t i = 0; i < p->usage->n_clusters; i++)
        add_cluster(p, p->usage->clusters[i]);
    return 0;
}

/* Mean waiting time of the jobs that began in each span, and by partition. */
static int ask_waits(struct page *p, struct err *err)
{
    struct plot jobs = { 0 };
    int code = 0;

    for (size_t span = 0; span < p->spans && code == 0; span++) {
        SizesRequest request = SIZES_REQUEST__INIT;
        ProtobufCMessage *message = NULL;
        request.has_start_s = request.has_end_s = request.has_all_clusters = true;
        request.start_s = p->edges[span];
        request.end_s = p->edges[span + 1];
        request.all_clusters = p->args->all_clusters;
        code = client_call(p->client, "/spur.Reports/Sizes", &request.base,
                           &sizes_reply__descriptor, &p->cli.arena, &message, err);
        const SizesReply *reply = (const void *)message;
        for (size_t i = 0; code == 0 && i < reply->n_rows; i++) {
            const SizesRow *row = reply->rows[i];
            p->wait_sum[span] += (double)row->waited_s / 60;
            p->wait_jobs[span] += (double)row->started;
            if (row->started) {
                add_number(p, &p->waits, row->partition, span, (double)row->waited_s / 60);
                add_number(p, &jobs, row->partition, span, (double)row->started);
            }
        }
    }
    for (size_t i = 0; i < p->waits.series.len; i++)
        p->waits.series.items[i].sum /=
            MAX(series_of(p, &jobs, p->waits.series.items[i].name)->sum, 1);
    vec_done(&jobs.series);
    return code;
}

static int ask_rates(struct page *p, struct err *err)
{
    GetConfigRequest request = GET_CONFIG_REQUEST__INIT;
    ProtobufCMessage *message = NULL;

    if (cli_call(&p->cli, "GetConfig", &request.base, &get_config_reply__descriptor, &message,
                 err) < 0)
        return -(int)err->code;
    const GetConfigReply *reply = (const void *)message;
    p->rates = reply->local ? reply->local->accounting_rates : NULL;
    return 0;
}

/* ---- the page ---- */

static const char *const colours[COLOURS] = { "#3465a4", "#e9962a", "#4e9a06", "#a03ea0",
                                              "#c0392b", "#16a085", "#8a6d3b", "#7f8c8d" };

static void add_text(struct str *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            str_add(out, "&lt;");
        else if (*text == '>')
            str_add(out, "&gt;");
        else if (*text == '&')
            str_add(out, "&amp;");
        else if (*text == '"')
            str_add(out, "&quot;");
        else
            str_add_char(out, *text);
    }
}

static void add_day(struct str *out, int64_t at_s)
{
    time_t at = (time_t)at_s;
    struct tm tm;
    char text[16];

    localtime_r(&at, &tm);
    strftime(text, sizeof(text), "%Y-%m-%d", &tm);
    str_add(out, text);
}

/* Horizontal bars, the longest first. */
static void add_bars(struct page *p, const char *title, const struct plot *plot, const char *unit)
{
    struct str *out = &p->out;
    double most = 0;
    int row = 0, count = 0;

    for (size_t i = 0; i < plot->series.len; i++) {
        most = MAX(most, plot->series.items[i].sum);
        count += plot->series.items[i].sum > 0.0005;
    }
    str_addf(out, "<section><h2>%s</h2>\n", title);
    if (!count) {
        str_add(out, "<p>Nothing.</p></section>\n");
        return;
    }
    str_addf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n", WIDTH,
             count * 26 + 4, title);
    for (size_t i = 0; i < plot->series.len; i++) {
        const struct series *series = &plot->series.items[i];
        if (series->sum <= 0.0005)
            continue;
        int y = row++ * 26 + 2;
        str_addf(out, "<text x=\"190\" y=\"%d\" text-anchor=\"end\">", y + 16);
        add_text(out, series->name);
        str_addf(out,
                 "</text><rect x=\"200\" y=\"%d\" width=\"%.1f\" height=\"20\" fill=\"%s\"/>"
                 "<text x=\"%.1f\" y=\"%d\">%.2f %s</text>\n",
                 y, MAX(series->sum / most * 500, 1), colours[0],
                 206 + MAX(series->sum / most * 500, 1), y + 16, series->sum, unit);
    }
    str_add(out, "</svg></section>\n");
}

static double tallest(const struct page *p, const struct plot *plot)
{
    double most = 0;

    for (size_t k = 0; k < p->spans; k++) {
        double sum = 0;
        for (size_t i = 0; i < plot->series.len; i++)
            sum += MAX(plot->series.items[i].values[k], 0);
        most = MAX(most, sum);
    }
    return most;
}

static void add_legend(struct str *out, const struct plot *plot)
{
    str_add(out, "<p class=\"legend\">");
    for (size_t i = 0; i < plot->series.len; i++) {
        str_addf(out, "<span><i style=\"background:%s\"></i>", colours[i % COLOURS]);
        add_text(out, plot->series.items[i].name);
        str_add(out, "</span> ");
    }
    str_add(out, "</p>");
}

/* A column for each span, the series on top of each other. */
static void add_columns(struct page *p, const char *title, const struct plot *plot,
                        const char *unit)
{
    struct str *out = &p->out;
    double most = tallest(p, plot), step = (double)(WIDTH - 60) / (double)p->spans;

    str_addf(out, "<section><h2>%s</h2>\n", title);
    if (most <= 0) {
        str_add(out, "<p>Nothing.</p></section>\n");
        return;
    }
    str_addf(out,
             "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"%s\">\n<text x=\"0\" y=\"12\">"
             "%.4g %s</text><line x1=\"50\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#999\"/>\n",
             WIDTH, PLOT_HEIGHT + 40, title, most, unit, PLOT_HEIGHT + 18, WIDTH, PLOT_HEIGHT + 18);
    for (size_t k = 0; k < p->spans; k++) {
        double y = PLOT_HEIGHT + 18;
        for (size_t i = 0; i < plot->series.len; i++) {
            double height = MAX(plot->series.items[i].values[k], 0) / most * PLOT_HEIGHT;
            if (height <= 0)
                continue;
            y -= height;
            str_addf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\">",
                     55 + step * (double)k, y, MAX(step - 2, 1), height, colours[i % COLOURS]);
            str_add(out, "<title>");
            add_day(out, p->edges[k]);
            str_add_char(out, ' ');
            add_text(out, plot->series.items[i].name);
            str_addf(out, " %.2f %s</title></rect>\n", plot->series.items[i].values[k], unit);
        }
    }
    str_addf(out, "<text x=\"55\" y=\"%d\">", PLOT_HEIGHT + 34);
    add_day(out, p->edges[0]);
    str_addf(out, "</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">", WIDTH, PLOT_HEIGHT + 34);
    add_day(out, p->edges[p->spans] - 1);
    str_add(out, "</text></svg>\n");
    add_legend(out, plot);
    str_add(out, "</section>\n");
}

/* A bill for each account. */
static void add_costs(struct page *p)
{
    const UsageReply *usage = p->usage;
    struct plot accounts = { 0 };

    if (str_is_empty(p->rates))
        return;
    struct rates_line *lines = ARENA_ARRAY(&p->cli.arena, struct rates_line, usage->n_tres + 1);
    str_add(&p->out,
            "<section><h2>Cost by account</h2><table><tr><th>account</th><th>cost</th></tr>\n");
    for (size_t i = 0; i < usage->n_who; i++)
        add_number(p, &accounts, usage->who[i]->account, 0, 0);
    for (size_t a = 0; a < accounts.series.len; a++) {
        for (size_t t = 0; t < usage->n_tres; t++)
            lines[t] = (struct rates_line){ usage->tres[t], 0 };
        for (size_t i = 0; i < usage->n_row_who; i++) {
            if (str_eq(usage->who[usage->row_who[i]]->account, accounts.series.items[a].name))
                lines[usage->row_tres[i]].amount += usage->row_amount[i];
        }
        str_add(&p->out, "<tr><td>");
        add_text(&p->out, accounts.series.items[a].name);
        str_addf(&p->out, "</td><td>%.2f</td></tr>\n", rates_cost(p->rates, lines, usage->n_tres));
    }
    str_add(&p->out, "</table></section>\n");
    vec_done(&accounts.series);
}

static void add_waiting(struct page *p)
{
    struct plot mean = { 0 };

    for (size_t k = 0; k < p->spans; k++) {
        if (p->wait_jobs[k] > 0)
            add_number(p, &mean, "mean of the jobs that began", k,
                       p->wait_sum[k] / p->wait_jobs[k]);
    }
    add_columns(p, "Waiting time", &mean, "minutes");
    vec_done(&mean.series);
    add_bars(p, "Mean waiting time by partition", &p->waits, "minutes");
}

static void write_page(struct page *p)
{
    struct str *out = &p->out;

    settle(p, &p->accounts, COLOURS);
    settle(p, &p->users, BARS_MOST);
    settle(p, &p->gpus, COLOURS);
    settle(p, &p->waits, BARS_MOST);
    str_add(out,
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Use of the "
            "cluster</title>\n<style>body{font:15px/1.4 sans-serif;max-width:900px;margin:2em auto;"
            "padding:0 1em;color:#222}svg{width:100%;font:13px sans-serif}h2{margin-top:2em}"
            "table{border-collapse:collapse}td,th{padding:.2em 1em;border-bottom:1px solid #ccc;"
            "text-align:left}td+td{text-align:right}.legend i{display:inline-block;width:.8em;"
            "height:.8em;margin:0 .3em 0 1em}</style></head><body>\n<h1>Use from ");
    add_day(out, p->from_s);
    str_add(out, " to ");
    add_day(out, p->to_s);
    str_add(out, "</h1>\n");
    if (p->usage->hidden)
        str_add(out, "<p>Only the own use is shown: PrivateData has 'usage'.</p>\n");
    add_columns(p, "What the cluster did", &p->cluster, "CPU hours");
    add_columns(p, "Use over time by account", &p->accounts, "CPU hours");
    add_bars(p, "Use by account", &p->accounts, "CPU hours");
    add_bars(p, "Use by user", &p->users, "CPU hours");
    add_bars(p, "Use by GPU type", &p->gpus, "GPU hours");
    add_waiting(p);
    add_costs(p);
    str_add(out, "</body></html>\n");
}

/* ---- the command ---- */

static int run(struct page *p)
{
    struct err err = { 0 };

    if (!p->args->html) {
        cli_error(&p->cli, "--html FILE says where the page goes");
        return 1;
    }
    p->now_s = clock_wall_us() / 1000000;
    if (!find_spans(p))
        return 1;
    if (ask_rates(p, &err) < 0)
        return cli_load_error(&p->cli, "spur report: error:", &err);
    p->client = accounting_connect(&p->cli, &err);
    if (!p->client || ask_usage(p, &err) < 0 || ask_waits(p, &err) < 0)
        return accounting_error(&p->cli, &err);
    write_page(p);
    if (file_write(p->args->html, p->out.data, p->out.len, 0644, &err) < 0) {
        cli_error(&p->cli, "%s", err.text);
        return 1;
    }
    return 0;
}

int report_main(int argc, char **argv)
{
    struct option_set set = report_options;
    struct option_ctx ctx = cli_option_ctx();
    struct report_args args = { 0 };
    struct page p = { .args = &args };
    struct err err = { 0 };
    char **operands = NEW_ARRAY(char *, argc + 1);
    int count = 0, code = 0;

    set.command = cli_name(argv);
    cli_init(&p.cli, set.command);
    if (option_read_argv(&set, &ctx, &args, argc, argv, OPTION_PERMUTE, operands, &count, &err) <
        0) {
        code = cli_option_error(&set, &err);
    } else if (count) {
        cli_error(&p.cli, "'%s' is not an option: --html FILE", operands[0]);
        code = 1;
    } else if (!cli_help(&set, args.help, false, false)) {
        code = run(&p);
    }
    struct plot *plots[] = { &p.accounts, &p.users, &p.gpus, &p.cluster, &p.waits };
    for (size_t i = 0; i < ARRAY_LEN(plots); i++)
        vec_done(&plots[i]->series);
    str_done(&p.out);
    if (p.client)
        client_free(p.client);
    cli_done(&p.cli);
    free(operands);
    return code;
}
