/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acct_fields.c - fields of the history, one row each
 *
 * (1) Names, widths, words and forms of numbers are Slurm's: programs read them.
 * (2) What only jobs have is empty in lines of steps, and the other way round.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/timefmt.h"
#include "base/vec.h"
#include "schema/acct.h"
#include "schema/freq.h"
#include "schema/job_view.h"
#include "schema/names.h"
#include "schema/pattern.h"
#include "schema/reasons.h"

enum { SECOND_US = 1000000 };

/* ---- what several columns need ---- */

static const JobStatus *status_of(const struct acct_line *line)
{
    return job_status(line->job->job);
}

static const JobSpec *spec_of(const struct acct_line *line)
{
    return job_spec(line->job->job);
}

static bool is_batch(const struct acct_line *line)
{
    return line->step && line->step->step == ACCT_STEP_BATCH;
}

int64_t acct_start_us(const struct acct_line *line)
{
    int64_t start = line->step ? line->step->start_us : line->job->start_us;

    return line->ctx->truncate && start && start < line->ctx->from_us ? line->ctx->from_us : start;
}

int64_t acct_end_us(const struct acct_line *line)
{
    int64_t end = line->step ? line->step->end_us : line->job->end_us;

    if (line->ctx->truncate && line->ctx->upto_us && (!end || end > line->ctx->upto_us))
        return line->ctx->upto_us;
    return end;
}

int64_t acct_elapsed_s(const struct acct_line *line)
{
    int64_t start = acct_start_us(line), end = acct_end_us(line);

    if (!start)
        return 0;
    if (!end)
        end = line->ctx->now_us;
    /* Whole seconds of either end, as the columns of both show them. */
    int64_t elapsed = end / SECOND_US - start / SECOND_US;
    if (!line->step && !line->ctx->truncate)
        elapsed -= line->job->suspended_us / SECOND_US;
    return MAX(elapsed, 0);
}

uint64_t acct_tres(const char *tres, const char *name)
{
    const char *cursor = tres;
    struct span word;
    size_t len = strlen(name);

    while (cursor && str_next(&cursor, ",", &word)) {
        if (word.len <= len || strncmp(word.ptr, name, len) != 0 || word.ptr[len] != '=')
            continue;
        char *unit;
        double number = strtod(word.ptr + len + 1, &unit);
        double factor = *unit == 'K'   ? 1.0 / 1024
                        : *unit == 'G' ? 1024
                        : *unit == 'T' ? 1024.0 * 1024
                                       : 1;
        return (uint64_t)(number * factor);
    }
    return 0;
}

uint32_t acct_cpus(const struct acct_line *line)
{
    if (line->step)
        return line->step->cpus;
    return line->job->start_us ? job_cpu_count(line->job->job) : 0;
}

static uint32_t asked(const struct acct_line *line, const char *name)
{
    CLEANUP(str_done) struct str tres = { 0 };

    job_add_tres(&tres, line->job->job, false);
    return (uint32_t)acct_tres(str_text(&tres), name);
}

void acct_cpu_us(const struct acct_line *line, int64_t *user_us, int64_t *system_us)
{
    *user_us = *system_us = 0;
    for (size_t i = 0; i < (line->step ? 1 : line->job->n_steps); i++) {
        const AcctStep *step = line->step ? line->step : line->job->steps[i];
        if (step->usage) {
            *user_us += step->usage->user_us;
            *system_us += step->usage->system_us;
        }
    }
}

/* ---- sizes ---- */

static const char unit_letters[] = "\0KMGTP";

static void add_scaled(struct str *out, double value, char unit)
{
    if (value == (double)(int64_t)value)
        str_addf(out, "%" PRId64, (int64_t)value);
    else
        str_addf(out, "%.2f", value);
    if (unit)
        str_add_char(out, unit);
}

/* `from` is the unit that the value has: 0 bytes, 1 K, 2 M. A larger one is taken while that loses nothing. */
static void add_size(const struct acct_line *line, uint64_t value, unsigned from, struct str *out)
{
    const char *wanted = line->ctx->units ? strchr("KMGTP", line->ctx->units) : NULL;
    double number = (double)value;
    unsigned unit = from;

    if (wanted) {
        unsigned to = (unsigned)(wanted - "KMGTP") + 1;
        for (; unit < to; unit++)
            number /= 1024;
        for (; unit > to; unit--)
            number *= 1024;
    } else if (!line->ctx->noconvert) {
        uint64_t whole = value;
        while (unit + 1 < sizeof(unit_letters) - 1 && whole >= 1024 && whole % 1024 == 0) {
            whole /= 1024;
            unit++;
        }
        number = (double)whole;
        if (whole >= 1024 && whole % 512 == 0 && unit + 1 < sizeof(unit_letters) - 1) {
            number = (double)whole / 1024;
            unit++;
        }
    }
    add_scaled(out, number, unit_letters[unit]);
}

/* 1500 is 1.50K: what is not a size counts by thousands. */
static void add_thousands(const struct acct_line *line, uint64_t value, struct str *out)
{
    double number = (double)value;
    unsigned unit = 0;

    while (!line->ctx->noconvert && number >= 1000 && unit + 1 < sizeof(unit_letters) - 1) {
        number /= 1000;
        unit++;
    }
    if (unit)
        str_addf(out, "%.2f%c", number, unit_letters[unit]);
    else
        str_add_u64(out, value);
}

static void add_megabytes(const struct acct_line *line, uint64_t bytes, struct str *out)
{
    if (line->ctx->noconvert)
        str_add_u64(out, bytes);
    else if (line->ctx->units)
        add_size(line, bytes, 0, out);
    else
        str_addf(out, "%.2fM", (double)bytes / (1024 * 1024));
}

/* ---- TRES ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In the order of their names, memory in the largest unit that fits. */
static void add_sorted_tres(const struct acct_line *line, const char *tres, struct str *out)
{
    VEC(char *) words = { 0 };
    const char *cursor = tres;
    struct span word;

    while (cursor && str_next(&cursor, ",", &word))
        vec_push(&words, mem_strndup(word.ptr, word.len));
    if (words.len)
        qsort(words.items, words.len, sizeof(char *), by_text);
    for (size_t i = 0; i < words.len; i++) {
        str_add(out, i ? "," : "");
        if (str_starts(words.items[i], "mem=")) {
            str_add(out, "mem=");
            add_size(line, acct_tres(words.items[i], "mem"), 2, out);
        } else {
            str_add(out, words.items[i]);
        }
        free(words.items[i]);
    }
    vec_done(&words);
}

void acct_add_tres(const struct acct_line *line, bool given, struct str *out)
{
    CLEANUP(str_done) struct str tres = { 0 };

    if (line->step)
        str_add(&tres, given && line->step->tres ? line->step->tres : "");
    else if (!given || line->job->start_us)
        job_add_tres(&tres, line->job->job, given);
    add_sorted_tres(line, str_text(&tres), out);
}

static void add_tres(const struct acct_line *line, unsigned given, struct str *out)
{
    acct_add_tres(line, given, out);
}

/* ---- usage ---- */

enum what { CPU, ENERGY, DISK_IN, DISK_OUT, GPU_MEM, GPU_UTIL, RSS, PAGES, VM };
enum part { AVE, MAX_OF, MAX_NODE, MAX_TASK, MIN_OF, MIN_NODE, MIN_TASK, TOTAL };

static const AcctPeak *peak_of(const AcctUsage *usage, enum what what)
{
    const AcctPeak *const peaks[] = { [CPU] = usage->cpu_us,
                                      [ENERGY] = usage->energy_j,
                                      [DISK_IN] = usage->read_bytes,
                                      [DISK_OUT] = usage->write_bytes,
                                      [GPU_MEM] = usage->gpu_mem_bytes,
                                      [GPU_UTIL] = usage->gpu_percent,
                                      [RSS] = usage->rss_bytes,
                                      [PAGES] = usage->pages,
                                      [VM] = usage->vm_bytes };

    return peaks[what];
}

static void add_amount(const struct acct_line *line, enum what what, uint64_t value,
                       struct str *out)
{
    switch (what) {
    case CPU:
        timefmt_write_duration(out, (int64_t)(value / SECOND_US), TIMEFMT_LONG);
        break;
    case ENERGY:
        add_thousands(line, value, out);
        break;
    case RSS:
    case VM:
    case GPU_MEM:
        if (line->ctx->noconvert)
            str_add_u64(out, value);
        else
            add_size(line, value, 0, out);
        break;
    default:
        str_add_u64(out, value);
    }
}

static bool has_part(const AcctPeak *peak, enum part part)
{
    if (part == AVE || part == TOTAL)
        return peak->has_total;
    return part == MAX_OF || part == MAX_NODE || part == MAX_TASK ? peak->has_max : peak->has_min;
}

static void add_part(const struct acct_line *line, enum what what, enum part part, bool column,
                     struct str *out)
{
    const AcctUsage *usage = line->step->usage;
    const AcctPeak *peak = peak_of(usage, what);
    bool disk = column && (what == DISK_IN || what == DISK_OUT);
    uint64_t tasks = MAX(usage->tasks, 1u);
    uint64_t value = part == AVE      ? peak->total / (what == ENERGY ? 1 : tasks)
                     : part == TOTAL  ? peak->total
                     : part == MAX_OF ? peak->max
                                      : peak->min;

    if (part == MAX_NODE || part == MIN_NODE)
        str_add(out, part == MAX_NODE ? peak->max_node : peak->min_node);
    else if (part == MAX_TASK || part == MIN_TASK)
        str_add_u64(out, part == MAX_TASK ? peak->max_task : peak->min_task);
    else if (disk)
        add_megabytes(line, value, out);
    else
        add_amount(line, what, value, out);
}

/* "MaxRSS": one part of one thing. */
static void add_usage(const struct acct_line *line, unsigned number, struct str *out)
{
    enum what what = number >> 8;
    enum part part = number & 0xff;

    if (!line->step || !line->step->usage)
        return;
    const AcctPeak *peak = peak_of(line->step->usage, what);
    if (peak && has_part(peak, part))
        add_part(line, what, part, true, out);
}

enum { OUTWARD = 64 };

/* "cpu=00:00:00,energy=0,fs/disk=53301,…": one part of everything. */
static void add_usage_tres(const struct acct_line *line, unsigned number, struct str *out)
{
    static const struct {
        const char *name;
        enum what in, out;
        bool has_in, has_out, of_node;
    } rows[] = {
        { "cpu", CPU, CPU, true, false, false },
        { "energy", ENERGY, ENERGY, true, true, true },
        { "fs/disk", DISK_IN, DISK_OUT, true, true, false },
        { "gres/gpumem", GPU_MEM, GPU_MEM, true, false, true },
        { "gres/gpuutil", GPU_UTIL, GPU_UTIL, true, false, true },
        { "mem", RSS, RSS, true, false, false },
        { "pages", PAGES, PAGES, true, false, false },
        { "vmem", VM, VM, true, false, false },
    };
    bool outward = number & OUTWARD;
    enum part part = number & (OUTWARD - 1);
    bool any = false;

    for (size_t i = 0; line->step && line->step->usage && i < ARRAY_LEN(rows); i++) {
        enum what what = outward ? rows[i].out : rows[i].in;
        const AcctPeak *peak = peak_of(line->step->usage, what);
        bool of_task = part == MAX_TASK || part == MIN_TASK;
        if (!(outward ? rows[i].has_out : rows[i].has_in) || !peak || !has_part(peak, part) ||
            (of_task && rows[i].of_node))
            continue;
        str_addf(out, "%s%s=", any ? "," : "", rows[i].name);
        add_part(line, what, part, false, out);
        any = true;
    }
}

static void add_energy(const struct acct_line *line, unsigned raw, struct str *out)
{
    uint64_t total = 0;

    for (size_t i = 0; i < (line->step ? 1 : line->job->n_steps); i++) {
        const AcctStep *step = line->step ? line->step : line->job->steps[i];
        if (step->usage && step->usage->energy_j)
            total += step->usage->energy_j->total;
    }
    if (raw)
        str_add_u64(out, total);
    else
        add_thousands(line, total, out);
}

static void add_frequency(const struct acct_line *line, unsigned number, struct str *out)
{
    (void)number;
    if (line->step && line->step->usage)
        add_thousands(line, line->step->usage->cpu_khz, out);
}

/* Of the frequency that was asked for: 0 lowest, 1 highest, 2 governor, 3 all of it. */
static void add_asked_frequency(const struct acct_line *line, unsigned part, struct str *out)
{
    const char *text = line->step ? line->step->cpu_freq : spec_of(line)->cpu_freq;
    struct freq freq;

    if (str_is_empty(text) || freq_read(text, &freq, NULL) < 0) {
        str_add(out, is_batch(line) ? "0" : "Unknown");
        return;
    }
    if (part == 0 && freq.min)
        freq_add_one(freq.min, out);
    else if (part == 1 && freq.max)
        freq_add_one(freq.max, out);
    else if (part == 2 && freq.governor)
        str_add(out, freq.governor);
    else if (part == 3)
        freq_add(&freq, out);
    else
        str_add(out, "0");
}

/* ---- ids and words ---- */

void acct_add_step_name(struct str *out, uint32_t step)
{
    if (step == ACCT_STEP_BATCH)
        str_add(out, "batch");
    else if (step == ACCT_STEP_EXTERN)
        str_add(out, "extern");
    else if (step == ACCT_STEP_INTERACTIVE)
        str_add(out, "interactive");
    else
        str_add_u64(out, step);
}

static void add_id(const struct acct_line *line, unsigned raw, struct str *out)
{
    if (raw)
        str_add_u64(out, line->job->job->id);
    else
        job_add_id(out, line->job->job);
    if (line->step) {
        str_add_char(out, '.');
        acct_add_step_name(out, line->step->step);
    }
}

static void add_name(const struct acct_line *line, unsigned number, struct str *out)
{
    const char *name = line->step ? line->step->name : spec_of(line)->name;

    (void)number;
    str_add(out, name ? name : "");
}

void acct_add_state(const struct acct_line *line, struct str *out)
{
    if (!line->step && line->job->requeued)
        str_add(out, "REQUEUED");
    else
        str_add(out, name_of(&job_state_names, line->step ? line->step->state : line->job->state));
    if (!line->step && !line->job->requeued && line->job->state == JOB_CANCELLED &&
        line->job->has_cancelled_by)
        str_addf(out, " by %u", line->job->cancelled_by);
}

static void add_state(const struct acct_line *line, unsigned number, struct str *out)
{
    (void)number;
    acct_add_state(line, out);
}

static void add_status(uint32_t status, struct str *out)
{
    str_addf(out, "%u:%u", status >> 8 & 0xff, status & 0x7f);
}

static void add_exit(const struct acct_line *line, unsigned number, struct str *out)
{
    (void)number;
    add_status(line->step ? line->step->exit_status : status_of(line)->exit_status, out);
}

static uint32_t derived_of(const struct acct_line *line)
{
    uint32_t worst = 0;

    if (status_of(line)->has_derived_status)
        return status_of(line)->derived_status;
    for (size_t i = 0; i < line->job->n_steps; i++) {
        if (line->job->steps[i]->step != ACCT_STEP_BATCH)
            worst = MAX(worst, line->job->steps[i]->exit_status);
    }
    return worst;
}

static void add_derived(const struct acct_line *line, unsigned number, struct str *out)
{
    (void)number;
    if (!line->step)
        add_status(derived_of(line), out);
}

/* ---- times ---- */

enum when { SUBMIT, ELIGIBLE, START, END };

static int64_t moment_of(const struct acct_line *line, enum when when)
{
    switch (when) {
    case SUBMIT:
        return status_of(line)->submit_us;
    case ELIGIBLE:
        return status_of(line)->eligible_us;
    case START:
        return acct_start_us(line);
    case END:
        return acct_end_us(line);
    }
    return 0;
}

static void add_moment(const struct acct_line *line, unsigned when, struct str *out)
{
    int64_t us = moment_of(line, when);

    if (us > 0)
        timefmt_write_point(out, us / SECOND_US, line->ctx->now_us / SECOND_US,
                            line->ctx->time_format);
    else
        str_add(out, "Unknown");
}

static int64_t planned_s(const struct acct_line *line)
{
    int64_t from = status_of(line)->eligible_us;
    int64_t upto = line->job->start_us ? line->job->start_us
                   : line->job->end_us ? line->job->end_us
                                       : line->ctx->now_us;

    return from ? MAX(upto / SECOND_US - from / SECOND_US, 0) : 0;
}

enum seconds { ELAPSED, CPU_TIME, PLANNED, PLANNED_CPU, SUSPENDED };

static int64_t seconds_of(const struct acct_line *line, enum seconds what)
{
    switch (what) {
    case ELAPSED:
        return acct_elapsed_s(line);
    case CPU_TIME:
        return acct_elapsed_s(line) * acct_cpus(line);
    case PLANNED:
        return planned_s(line);
    case PLANNED_CPU:
        return planned_s(line) * asked(line, "cpu");
    case SUSPENDED:
        return line->job->suspended_us / SECOND_US;
    }
    return 0;
}

static void add_seconds(const struct acct_line *line, unsigned what, struct str *out)
{
    if (!line->step || (what != PLANNED && what != PLANNED_CPU))
        timefmt_write_duration(out, seconds_of(line, what), TIMEFMT_LONG);
}

static void add_raw_seconds(const struct acct_line *line, unsigned what, struct str *out)
{
    if (!line->step || (what != PLANNED && what != PLANNED_CPU))
        str_add_i64(out, seconds_of(line, what));
}

enum cpu_part { CPU_USER, CPU_SYSTEM, CPU_TOTAL };

static void add_cpu(const struct acct_line *line, unsigned part, struct str *out)
{
    int64_t user_us, system_us;

    acct_cpu_us(line, &user_us, &system_us);
    timefmt_write_cpu(out, part == CPU_USER     ? user_us
                           : part == CPU_SYSTEM ? system_us
                                                : user_us + system_us);
}

static void add_limit(const struct acct_line *line, unsigned raw, struct str *out)
{
    int64_t limit_s = job_limit_s(line->job->job);

    if (line->step)
        return;
    if (limit_s == -1)
        str_add(out, "UNLIMITED");
    else if (limit_s < 0)
        str_add(out, "Partition_Limit");
    else if (raw)
        str_add_i64(out, timefmt_minutes(limit_s));
    else
        timefmt_write_duration(out, limit_s, TIMEFMT_LONG);
}

/* ---- numbers ---- */

enum count { ALLOC_CPUS, ALLOC_NODES, N_NODES, REQ_CPUS, REQ_NODES, NTASKS };

static void add_count(const struct acct_line *line, unsigned what, struct str *out)
{
    const AcctStep *step = line->step;
    bool given = line->job->start_us != 0;

    switch ((enum count)what) {
    case ALLOC_CPUS:
        str_add_u64(out, acct_cpus(line));
        break;
    case ALLOC_NODES:
        str_add_u64(out, step ? step->node_count : given ? job_node_count(line->job->job) : 0);
        break;
    case N_NODES:
        str_add_u64(out, step ? step->node_count : job_node_count(line->job->job));
        break;
    case REQ_CPUS:
        str_add_u64(out, step ? step->cpus : asked(line, "cpu"));
        break;
    case REQ_NODES:
        str_add_u64(out, step ? step->node_count : asked(line, "node"));
        break;
    case NTASKS:
        if (step)
            str_add_u64(out, step->ntasks);
        break;
    }
}

enum number { DB_INDEX, ASSOC_ID, UID, GID, PRIORITY, RESTARTS, WCKEY_ID };

static void add_number(const struct acct_line *line, unsigned what, struct str *out)
{
    const JobOwner *owner = job_owner(line->job->job);

    if (what == DB_INDEX)
        str_add_u64(out, line->job->db_id);
    else if (what == ASSOC_ID)
        str_add_u64(out, line->job->assoc_id);
    else if (!line->step)
        str_add_u64(out, what == UID        ? owner->uid
                         : what == GID      ? owner->gid
                         : what == PRIORITY ? status_of(line)->priority
                         : what == RESTARTS ? line->job->run - 1
                                            : 0);
}

static void add_req_mem(const struct acct_line *line, unsigned number, struct str *out)
{
    CLEANUP(str_done) struct str tres = { 0 };

    (void)number;
    if (line->step)
        return;
    job_add_tres(&tres, line->job->job, false);
    uint64_t mb = acct_tres(str_text(&tres), "mem");
    if (mb)
        add_size(line, mb, 2, out);
    else
        str_add_char(out, '0');
}

/* ---- texts ---- */

enum text {
    ACCOUNT,
    ADMIN_COMMENT,
    CLUSTER,
    COMMENT,
    CONSTRAINTS,
    CONTAINER,
    EXTRA,
    FAILED_NODE,
    GROUP,
    LICENSES,
    MCS_LABEL,
    PARTITION,
    QOS,
    QOS_REQ,
    RESERVATION,
    REQ_RESERVATION,
    SYSTEM_COMMENT,
    USER,
    WCKEY,
    WORK_DIR,
    NOTHING,
};

static const char *job_text(const struct acct_line *line, enum text what)
{
    const JobStatus *status = status_of(line);
    const JobSpec *spec = spec_of(line);
    const JobOwner *owner = job_owner(line->job->job);
    const char *in = status->allocation ? status->allocation->reservation : NULL;
    const char *const texts[] = {
        [ADMIN_COMMENT] = status->admin_comment,
        [COMMENT] = spec->comment,
        [CONSTRAINTS] = spec->features,
        [CONTAINER] = spec->container ? spec->container : spec->container_image,
        [EXTRA] = spec->extra,
        [FAILED_NODE] = status->failed_node,
        [GROUP] = owner->group,
        [LICENSES] = spec->licenses,
        [MCS_LABEL] = spec->mcs_label,
        [PARTITION] = status->partition,
        [QOS] = status->qos,
        [QOS_REQ] = spec->qos,
        [RESERVATION] = in ? in : spec->reservation,
        [REQ_RESERVATION] = spec->reservation,
        [SYSTEM_COMMENT] = status->system_comment,
        [USER] = owner->user,
        [WCKEY] = spec->wckey,
        [WORK_DIR] = spec->work_dir,
        [NOTHING] = NULL,
    };

    return texts[what];
}

static void add_text(const struct acct_line *line, unsigned what, struct str *out)
{
    const char *text = what == ACCOUNT   ? status_of(line)->account
                       : what == CLUSTER ? line->job->cluster
                       : line->step      ? NULL
                                         : job_text(line, what);

    str_add(out, text ? text : "");
}

static void add_exclusive(const struct acct_line *line, unsigned number, struct str *out)
{
    (void)number;
    if (!line->step)
        str_add(out, name_of(&exclusive_names, spec_of(line)->exclusive));
}

static void add_oversubscribe(const struct acct_line *line, unsigned number, struct str *out)
{
    (void)number;
    if (!line->step)
        str_add(out, spec_of(line)->oversubscribe ? "YES" : "NO");
}

static void add_flags(const struct acct_line *line, unsigned number, struct str *out)
{
    (void)number;
    if (!line->step)
        str_add(out, line->job->start_us ? "StartReceived" : "None");
}

static void add_layout(const struct acct_line *line, unsigned number, struct str *out)
{
    (void)number;
    if (line->step)
        str_add(out, line->step->distribution ? line->step->distribution : "Unknown");
}

static void add_nodes(const struct acct_line *line, unsigned number, struct str *out)
{
    (void)number;
    if (line->step)
        str_add(out, line->step->nodes ? line->step->nodes : "");
    else if (line->job->start_us)
        job_add_nodes(out, line->job->job);
    else
        str_add(out, "None assigned");
}

static void add_reason(const struct acct_line *line, unsigned number, struct str *out)
{
    (void)number;
    if (!line->step)
        str_add(out, reason_word(status_of(line)->reason));
}

static void add_segment(const struct acct_line *line, unsigned number, struct str *out)
{
    (void)number;
    if (!line->step && spec_of(line)->has_segment)
        str_add_u64(out, spec_of(line)->segment);
}

static void add_submit_line(const struct acct_line *line, unsigned number, struct str *out)
{
    const char *text = line->step ? line->step->submit_line : spec_of(line)->submit_line;

    (void)number;
    str_add(out, text ? text : "");
}

enum file { STD_OUT, STD_ERR, STD_IN };

/* Relative to where the job works, patterns as they are. */
static void add_file(const struct acct_line *line, unsigned which, struct str *out)
{
    const JobSpec *spec = spec_of(line);
    const char *given = which == STD_OUT   ? spec->std_out
                        : which == STD_ERR ? spec->std_err
                                           : spec->std_in;

    if (line->step || !spec->batch)
        return;
    if (str_is_empty(given) && which == STD_ERR)
        return;
    if (line->ctx->expand && which != STD_IN &&
        pattern_output_path(line->job->job, which == STD_ERR, out, NULL) == 0)
        return;
    if (str_is_empty(given))
        given = which == STD_IN                 ? "/dev/null"
                : status_of(line)->array_job_id ? "slurm-%A_%a.out"
                                                : "slurm-%j.out";
    if (*given != '/' && spec->work_dir)
        str_addf(out, "%s/", spec->work_dir);
    str_add(out, given);
}

/* ---- the rows: (1) ---- */

#define USAGE(what, part) add_usage, ((what) << 8 | (part))
#define PEAK(name, thing, widths_max, widths_node, widths_task)     \
    { "Max" name, widths_max, USAGE(thing, MAX_OF) },               \
        { "Max" name "Node", widths_node, USAGE(thing, MAX_NODE) }, \
    {                                                               \
        "Max" name "Task", widths_task, USAGE(thing, MAX_TASK)      \
    }

/* clang-format off */
const struct acct_field acct_fields[] = {
    { "Account", 10, add_text, ACCOUNT },
    { "AdminComment", 15, add_text, ADMIN_COMMENT },
    { "AllocCPUS", 10, add_count, ALLOC_CPUS },
    { "AllocNodes", 10, add_count, ALLOC_NODES },
    { "AllocTRES", 10, add_tres, 1 },
    { "AssocID", 7, add_number, ASSOC_ID },
    { "AveCPU", 10, USAGE(CPU, AVE) },
    { "AveCPUFreq", 10, add_frequency, 0 },
    { "AveDiskRead", 14, USAGE(DISK_IN, AVE) },
    { "AveDiskWrite", 14, USAGE(DISK_OUT, AVE) },
    { "AvePages", 10, USAGE(PAGES, AVE) },
    { "AveRSS", 10, USAGE(RSS, AVE) },
    { "AveVMSize", 10, USAGE(VM, AVE) },
    { "BlockID", 16, add_text, NOTHING },
    { "Cluster", 10, add_text, CLUSTER },
    { "Comment", 14, add_text, COMMENT },
    { "Constraints", 19, add_text, CONSTRAINTS },
    { "ConsumedEnergy", 14, add_energy, 0 },
    { "ConsumedEnergyRaw", 17, add_energy, 1 },
    { "Container", 19, add_text, CONTAINER },
    { "CPUTime", 10, add_seconds, CPU_TIME },
    { "CPUTimeRAW", 10, add_raw_seconds, CPU_TIME },
    { "DBIndex", -21, add_number, DB_INDEX },
    { "DerivedExitCode", 15, add_derived, 0 },
    { "Elapsed", 10, add_seconds, ELAPSED },
    { "ElapsedRaw", 10, add_raw_seconds, ELAPSED },
    { "Eligible", 19, add_moment, ELIGIBLE },
    { "End", 19, add_moment, END },
    { "Exclusive", 14, add_exclusive, 0 },
    { "ExitCode", 8, add_exit, 0 },
    { "Extra", 14, add_text, EXTRA },
    { "FailedNode", 8, add_text, FAILED_NODE },
    { "Flags", 19, add_flags, 0 },
    { "GID", 6, add_number, GID },
    { "Group", 9, add_text, GROUP },
    { "JobID", -12, add_id, 0 },
    { "JobIDRaw", -12, add_id, 1 },
    { "JobName", 10, add_name, 0 },
    { "Layout", 9, add_layout, 0 },
    { "Licenses", 10, add_text, LICENSES },
    PEAK("DiskRead", DISK_IN, 12, 15, 15),
    PEAK("DiskWrite", DISK_OUT, 12, 16, 16),
    PEAK("Pages", PAGES, 8, 12, 14),
    PEAK("RSS", RSS, 10, 10, 10),
    PEAK("VMSize", VM, 10, 14, 14),
    { "McsLabel", 12, add_text, MCS_LABEL },
    { "MinCPU", 10, USAGE(CPU, MIN_OF) },
    { "MinCPUNode", 10, USAGE(CPU, MIN_NODE) },
    { "MinCPUTask", 10, USAGE(CPU, MIN_TASK) },
    { "NCPUS", 10, add_count, ALLOC_CPUS },
    { "NNodes", 8, add_count, N_NODES },
    { "NodeList", 15, add_nodes, 0 },
    { "NTasks", 8, add_count, NTASKS },
    { "OriginalSLUID", 14, add_text, NOTHING },
    { "OverSubscribe", 14, add_oversubscribe, 0 },
    { "Partition", 10, add_text, PARTITION },
    { "Planned", 10, add_seconds, PLANNED },
    { "PlannedCPU", 10, add_seconds, PLANNED_CPU },
    { "PlannedCPURAW", 13, add_raw_seconds, PLANNED_CPU },
    { "Priority", 10, add_number, PRIORITY },
    { "QOS", 10, add_text, QOS },
    { "QOSRAW", 6, add_text, NOTHING },
    { "QOSREQ", 10, add_text, QOS_REQ },
    { "Reason", 22, add_reason, 0 },
    { "ReqCPUFreq", 10, add_asked_frequency, 3 },
    { "ReqCPUFreqGov", 13, add_asked_frequency, 2 },
    { "ReqCPUFreqMax", 13, add_asked_frequency, 1 },
    { "ReqCPUFreqMin", 13, add_asked_frequency, 0 },
    { "ReqCPUS", 8, add_count, REQ_CPUS },
    { "ReqMem", 10, add_req_mem, 0 },
    { "ReqNodes", 8, add_count, REQ_NODES },
    { "ReqTRES", 10, add_tres, 0 },
    { "Reservation", 20, add_text, RESERVATION },
    { "ReservationId", 8, add_text, NOTHING },
    { "ReqReservation", 20, add_text, REQ_RESERVATION },
    { "Restarts", 8, add_number, RESTARTS },
    { "SegmentSize", 11, add_segment, 0 },
    { "SLUID", 14, add_text, NOTHING },
    { "Start", 19, add_moment, START },
    { "State", 10, add_state, 0 },
    { "StdErr", 20, add_file, STD_ERR },
    { "StdIn", 20, add_file, STD_IN },
    { "StdOut", 20, add_file, STD_OUT },
    { "Submit", 19, add_moment, SUBMIT },
    { "SubmitLine", 20, add_submit_line, 0 },
    { "Suspended", 10, add_seconds, SUSPENDED },
    { "SystemComment", 15, add_text, SYSTEM_COMMENT },
    { "SystemCPU", 10, add_cpu, CPU_SYSTEM },
    { "Timelimit", 10, add_limit, 0 },
    { "TimelimitRaw", 10, add_limit, 1 },
    { "TotalCPU", 10, add_cpu, CPU_TOTAL },
    { "TRESUsageInAve", 14, add_usage_tres, AVE },
    { "TRESUsageInMax", 14, add_usage_tres, MAX_OF },
    { "TRESUsageInMaxNode", 18, add_usage_tres, MAX_NODE },
    { "TRESUsageInMaxTask", 18, add_usage_tres, MAX_TASK },
    { "TRESUsageInMin", 14, add_usage_tres, MIN_OF },
    { "TRESUsageInMinNode", 18, add_usage_tres, MIN_NODE },
    { "TRESUsageInMinTask", 18, add_usage_tres, MIN_TASK },
    { "TRESUsageInTot", 14, add_usage_tres, TOTAL },
    { "TRESUsageOutAve", 15, add_usage_tres, OUTWARD | AVE },
    { "TRESUsageOutMax", 15, add_usage_tres, OUTWARD | MAX_OF },
    { "TRESUsageOutMaxNode", 19, add_usage_tres, OUTWARD | MAX_NODE },
    { "TRESUsageOutMaxTask", 19, add_usage_tres, OUTWARD | MAX_TASK },
    { "TRESUsageOutMin", 15, add_usage_tres, OUTWARD | MIN_OF },
    { "TRESUsageOutMinNode", 19, add_usage_tres, OUTWARD | MIN_NODE },
    { "TRESUsageOutMinTask", 19, add_usage_tres, OUTWARD | MIN_TASK },
    { "TRESUsageOutTot", 15, add_usage_tres, OUTWARD | TOTAL },
    { "UID", 6, add_number, UID },
    { "User", 9, add_text, USER },
    { "UserCPU", 10, add_cpu, CPU_USER },
    { "WCKey", 10, add_text, WCKEY },
    { "WCKeyID", 10, add_number, WCKEY_ID },
    { "WorkDir", 20, add_text, WORK_DIR },
    /* of Slurm before 23.02: what Planned, PlannedCPU and PlannedCPURAW are now */
    { "Reserved", 10, add_seconds, PLANNED },
    { "ResvCPU", 10, add_seconds, PLANNED_CPU },
    { "ResvCPURAW", 10, add_raw_seconds, PLANNED_CPU },
};
/* clang-format on */
const size_t acct_field_count = ARRAY_LEN(acct_fields);

const struct acct_field *acct_field_find(const char *name, size_t len)
{
    const struct acct_field *begins = NULL;

    for (size_t i = 0; i < acct_field_count && len; i++) {
        const struct acct_field *field = &acct_fields[i];
        CLEANUP(freep) char *wanted = mem_strndup(name, len);
        if (str_ieq(field->name, wanted))
            return field;
        if (!begins && str_istarts(field->name, wanted))
            begins = field;
    }
    return begins;
}
