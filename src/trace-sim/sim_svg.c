/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_svg.c - the schedule as a drawing: nodes from top to bottom, time from left to right
 *
 * A node is a band with one row per GPU (or CPU, several to a row when there are many); a job is a
 * bar over the rows it had. Colours go by job number, neighbours apart; a bar that is wide enough
 * has its job's number in it, and every bar says more when pointed at.
 */
#include <string.h>

#include "base/limits.h"
#include "base/timefmt.h"
#include "trace-sim/sim.h"

enum {
    WIDTH = 1600, /* of the time axis */
    LEFT = 110,   /* for names */
    TOP = 48,     /* for the title and the axis */
    NODES_MOST = 512,
    HEIGHT_MOST = 12000,
    GAP = 4, /* between nodes */
};

struct frame {
    const struct sim_run *run;
    int64_t end_s;
    double row; /* height of one unit */
    double node_height;
};

static double x_of(const struct frame *frame, int64_t s)
{
    return LEFT + (double)s * WIDTH / (double)MAX(frame->end_s, 1);
}

static double y_of(const struct frame *frame, uint32_t node, double unit)
{
    return TOP + node * (frame->node_height + GAP) + unit * frame->row;
}

static void add_xml(struct str *out, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<':
            str_add(out, "&lt;");
            break;
        case '>':
            str_add(out, "&gt;");
            break;
        case '&':
            str_add(out, "&amp;");
            break;
        case '"':
            str_add(out, "&quot;");
            break;
        default:
            str_add_char(out, (unsigned char)*text < 0x20 ? ' ' : *text);
        }
    }
}

/* The golden angle keeps consecutive numbers apart. */
static unsigned hue(uint32_t number)
{
    return (unsigned)((uint64_t)number * 137508 / 1000 % 360);
}

/* Steps of the axis: the first that gives no more than twelve. */
static int64_t axis_step(int64_t end_s)
{
    static const int64_t steps[] = { 1,       2,        5,        10,        30,
                                     60,      120,      300,      600,       1800,
                                     3600,    7200,     14400,    21600,     43200,
                                     86400,   172800,   604800,   1209600,   2592000,
                                     7776000, 15552000, 31536000, 157680000, 315360000 };

    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        if (end_s / steps[i] <= 12)
            return steps[i];
    }
    return end_s;
}

static void axis(const struct frame *frame, struct str *out)
{
    double bottom = y_of(frame, (uint32_t)frame->run->nodes.len, 0);

    for (int64_t s = 0, step = axis_step(frame->end_s); s <= frame->end_s; s += step) {
        struct str text = { 0 };
        timefmt_write_duration(&text, s, TIMEFMT_SHORT);
        str_addf(out,
                 "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>"
                 "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                 x_of(frame, s), TOP - 4, x_of(frame, s), bottom, x_of(frame, s), TOP - 8,
                 str_text(&text));
        str_done(&text);
    }
    for (uint32_t i = 0; i < frame->run->nodes.len; i++) {
        str_addf(out,
                 "<rect x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\" fill=\"#f4f4f4\"/>"
                 "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">",
                 LEFT, y_of(frame, i, 0), WIDTH, frame->node_height, LEFT - 6,
                 y_of(frame, i, 0) + frame->node_height / 2 + 4);
        add_xml(out, frame->run->nodes.items[i]);
        str_add(out, "</text>\n");
    }
}

static void tell(const struct frame *frame, const struct sim_job *job, struct str *out)
{
    const struct sim_trace *trace = frame->run->trace;

    str_addf(out, "<title>job %u", job->number);
    if (*trace->users.items[job->user]) {
        str_add(out, " of ");
        add_xml(out, trace->users.items[job->user]);
    }
    if (*trace->names.items[job->name]) {
        str_add(out, ", ");
        add_xml(out, trace->names.items[job->name]);
    }
    str_add(out, ": waited ");
    timefmt_write_duration(out, job->start_s - job->submit_s, TIMEFMT_SHORT);
    str_add(out, ", ran ");
    timefmt_write_duration(out, job->run_s, TIMEFMT_SHORT);
    if (job->preempted)
        str_addf(out, ", preempted %u times", job->preempted);
    str_add(out, "</title>");
}

static void draw(const struct frame *frame, const struct sim_bar *bar, struct str *out)
{
    const struct sim_job *job = &frame->run->trace->jobs.items[bar->job];
    int64_t end = bar->end_s >= 0 ? bar->end_s : frame->end_s;
    double x = x_of(frame, bar->start_s), width = MAX(x_of(frame, end) - x, 0.4);
    double y = y_of(frame, bar->node, bar->first + bar->from_milli / (double)SIM_MILLI);
    double height = (bar->milli ? bar->milli / (double)SIM_MILLI : bar->count) * frame->row;

    str_addf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>", x, y, width,
             height);
    if (width > 28 && height > 9)
        str_addf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" fill=\"#000\">%u</text>",
                 x + width / 2, y + height / 2 + 4, job->number);
}

/* Bars of a job that begin together are one group. */
static void draw_all(const struct frame *frame, struct str *out)
{
    const struct sim_run *run = frame->run;

    for (size_t i = 0; i < run->bars.len;) {
        const struct sim_bar *first = &run->bars.items[i];
        const struct sim_job *job = &run->trace->jobs.items[first->job];
        str_addf(out, "<g fill=\"hsl(%u,65%%,%u%%)\">", hue(job->number), 58 + job->number % 3 * 8);
        tell(frame, job, out);
        for (; i < run->bars.len && run->bars.items[i].job == first->job; i++)
            draw(frame, &run->bars.items[i], out);
        str_add(out, "</g>\n");
    }
}

int sim_svg(const struct sim_run *run, const char *title, struct str *out, struct err *err)
{
    struct frame frame = { .run = run, .end_s = run->now_s };

    if (run->nodes.len > NODES_MOST || run->bars.len > LIMIT_TIMELINE_BARS)
        return err_set(err, ERR_TOO_LARGE,
                       "a timeline of %zu nodes and %zu bars would not be readable: at most %d and "
                       "%d are drawn",
                       run->nodes.len, run->bars.len, NODES_MOST, LIMIT_TIMELINE_BARS);
    double room = (double)HEIGHT_MOST / (double)MAX(run->nodes.len, 1) - GAP;
    frame.row = MIN(12.0, room / MAX(run->unit_per_node, 1));
    if (run->unit_per_node > 8)
        frame.row = MIN(frame.row, 96.0 / run->unit_per_node);
    frame.node_height = frame.row * run->unit_per_node;
    str_addf(out,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
             "font-family=\"sans-serif\" font-size=\"10\">\n"
             "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
             "<text x=\"%d\" y=\"18\" font-size=\"14\">",
             LEFT + WIDTH + 30, y_of(&frame, (uint32_t)run->nodes.len, 0) + 10, LEFT);
    add_xml(out, title);
    str_add(out, "</text>\n");
    axis(&frame, out);
    draw_all(&frame, out);
    str_add(out, "</svg>\n");
    return 0;
}
