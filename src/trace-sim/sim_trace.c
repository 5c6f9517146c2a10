/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_trace.c - traces of jobs: files, lines, tables with named columns
 *
 * A line is at most LIMIT_TRACE_LINE bytes, a file LIMIT_TRACE_JOBS jobs; what is beyond is refused
 * before memory is taken for it.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/hash.h"
#include "base/limits.h"
#include "trace-sim/sim.h"

void sim_trace_init(struct sim_trace *trace)
{
    *trace = (struct sim_trace){ 0 };
    map_init(&trace->user_index);
    map_init(&trace->name_index);
}

void sim_trace_done(struct sim_trace *trace)
{
    vec_each (char *, name, &trace->users)
        free(*name);
    vec_each (char *, name, &trace->names)
        free(*name);
    vec_done(&trace->users);
    vec_done(&trace->names);
    vec_done(&trace->jobs);
    map_done(&trace->user_index);
    map_done(&trace->name_index);
}

uint32_t sim_trace_user(struct sim_trace *trace, const char *name)
{
    uintptr_t at = (uintptr_t)map_get(&trace->user_index, name);

    if (!at) {
        vec_push(&trace->users, mem_strdup(name));
        at = trace->users.len;
        map_put(&trace->user_index, name, (void *)at);
    }
    return (uint32_t)(at - 1);
}

uint32_t sim_trace_name(struct sim_trace *trace, const char *name)
{
    uintptr_t at = (uintptr_t)map_get(&trace->name_index, name);

    if (!at) {
        vec_push(&trace->names, mem_strdup(name));
        at = trace->names.len;
        map_put(&trace->name_index, name, (void *)at);
    }
    return (uint32_t)(at - 1);
}

int sim_trace_error(const struct sim_reader *reader, uint32_t line, struct err *err,
                    const char *fmt, ...)
{
    struct str text = { 0 };
    va_list args;

    va_start(args, fmt);
    str_vaddf(&text, fmt, args);
    va_end(args);
    int code = err_set(err, ERR_SYNTAX, "%s:%u: %s", reader->path, line, str_text(&text));
    str_done(&text);
    return code;
}

int sim_trace_add(struct sim_reader *reader, const struct sim_job *job, struct err *err)
{
    if (reader->trace->jobs.len >= LIMIT_TRACE_JOBS)
        return err_set(err, ERR_TOO_LARGE, "%s:%u: there are more than %d jobs", reader->path,
                       job->line, LIMIT_TRACE_JOBS);
    vec_push(&reader->trace->jobs, *job);
    return 0;
}

/* ---- tables ---- */

enum sim_column {
    COLUMN_SUBMIT,
    COLUMN_RUN,
    COLUMN_GPUS,
    COLUMN_GPU_MILLI,
    COLUMN_CPUS,
    COLUMN_CPU_MILLI,
    COLUMN_NODES,
    COLUMN_MEM,
    COLUMN_LIMIT,
    COLUMN_ID,
    COLUMN_USER,
    COLUMN_NAME,
    COLUMN_PART,
    COLUMN_PARTITION,
    COLUMN_QOS,
    COLUMNS,
};

static const struct {
    const char *name;
    enum sim_column column;
    int64_t min, max;
    bool text, blank; /* no number; "-1" and "-" say nothing */
} columns[] = {
    { "submit_s", COLUMN_SUBMIT, 0, LIMIT_SECONDS, false, false },
    { "duration_s", COLUMN_RUN, 0, LIMIT_SECONDS, false, true },
    { "run_s", COLUMN_RUN, 0, LIMIT_SECONDS, false, true },
    { "gpus", COLUMN_GPUS, 0, 1000000, false, true },
    { "gpu_milli", COLUMN_GPU_MILLI, 0, SIM_MILLI, false, true },
    { "cpu_milli", COLUMN_CPU_MILLI, 0, INT64_C(100000000000), false, true },
    { "cpus", COLUMN_CPUS, 0, 100000000, false, true },
    { "nodes", COLUMN_NODES, 0, LIMIT_NODES, false, true },
    { "mem_mb", COLUMN_MEM, 0, INT64_C(1) << 40, false, true },
    { "mem_mib", COLUMN_MEM, 0, INT64_C(1) << 40, false, true },
    { "limit_s", COLUMN_LIMIT, 1, LIMIT_SECONDS, false, true },
    { "job_id", COLUMN_ID, 0, UINT32_MAX, false, true },
    { "user", COLUMN_USER, 0, 0, true, true },
    { "name", COLUMN_NAME, 0, 0, true, true },
    { "model", COLUMN_NAME, 0, 0, true, true },
    { "trace", COLUMN_PART, 0, 0, true, true },
    { "partition", COLUMN_PARTITION, 0, 0, true, true },
    { "qos", COLUMN_QOS, 0, 0, true, true },
};

static char *next_cell(char **cursor)
{
    char *cell = *cursor, *tab = cell ? strchr(cell, '\t') : NULL;

    if (tab)
        *tab = '\0';
    *cursor = tab ? tab + 1 : NULL;
    return cell;
}

static int tsv_header(struct sim_reader *reader, char *line, uint32_t number, struct err *err)
{
    const char *equals = reader->only ? strchr(reader->only, '=') : NULL;
    int count = 0;

    for (int i = 0; i < COLUMNS; i++)
        reader->columns[i] = -1;
    reader->only_column = -1;
    if (reader->only && !equals)
        return err_set(err, ERR_SYNTAX, "--only takes COLUMN=VALUE, not '%s'", reader->only);
    for (char *cell; (cell = next_cell(&line)); count++) {
        for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
            if (strcmp(columns[i].name, cell) == 0 && reader->columns[columns[i].column] < 0)
                reader->columns[columns[i].column] = count;
        }
        if (equals && strlen(cell) == (size_t)(equals - reader->only) &&
            strncmp(cell, reader->only, strlen(cell)) == 0)
            reader->only_column = count;
    }
    reader->column_count = count;
    reader->header = true;
    if (equals && reader->only_column < 0)
        return sim_trace_error(reader, number, err, "no column is called '%.*s'",
                               (int)(equals - reader->only), reader->only);
    reader->only_value = equals ? mem_strdup(equals + 1) : NULL;
    if (reader->columns[COLUMN_SUBMIT] < 0 || reader->columns[COLUMN_RUN] < 0)
        return sim_trace_error(reader, number, err,
                               "the first line names the columns, separated by tabs, and "
                               "submit_s and duration_s must be among them");
    return 0;
}

/* -1 when it says nothing. */
static int number_of(const struct sim_reader *reader, char **cells, enum sim_column column,
                     uint32_t line, int64_t *out, struct err *err)
{
    int at = reader->columns[column];

    *out = -1;
    for (size_t i = 0; at >= 0 && i < ARRAY_LEN(columns); i++) {
        if (columns[i].column != column)
            continue;
        const char *text = cells[at];
        if (columns[i].blank && (!*text || strcmp(text, "-") == 0 || strcmp(text, "-1") == 0))
            return 0;
        if (!str_to_i64(text, columns[i].min, columns[i].max, out)) {
            struct str shown = { 0 };
            str_add_visible(&shown, text, MIN(strlen(text), 40));
            int code = sim_trace_error(reader, line, err,
                                       "%s is '%s': a whole number from %lld to %lld is wanted",
                                       columns[i].name, str_text(&shown), (long long)columns[i].min,
                                       (long long)columns[i].max);
            str_done(&shown);
            return code;
        }
        return 0;
    }
    return 0;
}

static const char *text_of(const struct sim_reader *reader, char **cells, enum sim_column column)
{
    const char *text = reader->columns[column] < 0 ? "" : cells[reader->columns[column]];

    return strcmp(text, "-") == 0 ? "" : text;
}

/* A file of several traces is read only when it is said which. */
static int check_part(struct sim_reader *reader, char **cells, uint32_t line, struct err *err)
{
    const char *part = text_of(reader, cells, COLUMN_PART);

    if (!reader->part)
        reader->part = mem_strdup(part);
    if (strcmp(reader->part, part) == 0)
        return 0;
    return sim_trace_error(reader, line, err,
                           "there are several traces in it, '%s' and '%s' among them: choose one "
                           "with --only trace=%s",
                           reader->part, part, reader->part);
}

static int tsv_row(struct sim_reader *reader, char **cells, uint32_t line, struct err *err)
{
    static const struct {
        enum sim_column column;
        size_t at; /* in values */
    } wanted[] = {
        { COLUMN_SUBMIT, 0 },    { COLUMN_RUN, 1 },       { COLUMN_GPUS, 2 },  { COLUMN_CPUS, 3 },
        { COLUMN_NODES, 4 },     { COLUMN_MEM, 5 },       { COLUMN_LIMIT, 6 }, { COLUMN_ID, 7 },
        { COLUMN_CPU_MILLI, 8 }, { COLUMN_GPU_MILLI, 9 },
    };
    int64_t v[ARRAY_LEN(wanted)];

    if (reader->only_column >= 0 && strcmp(cells[reader->only_column], reader->only_value) != 0)
        return 0;
    if (check_part(reader, cells, line, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        if (number_of(reader, cells, wanted[i].column, line, &v[i], err) < 0)
            return -1;
    }
    if (v[3] < 0 && v[8] >= 0)
        v[3] = (v[8] + 999) / 1000;
    /* A part of a GPU is said of one; what is said of several is that each is used whole. */
    if (v[2] < 0 && v[9] > 0)
        v[2] = 1;
    bool part = v[2] == 1 && v[9] > 0 && v[9] < SIM_MILLI;
    bool sized = reader->columns[COLUMN_GPUS] < 0 || v[2] > 0 || v[3] > 0 || v[4] > 0;
    if (v[1] < 0 || !sized) {
        reader->trace->skipped++;
        return 0;
    }
    struct sim_job job = {
        .submit_s = v[0],
        .run_s = MAX(v[1], 1),
        .limit_s = v[6],
        .gpus = (uint32_t)MAX(v[2], 0),
        .gpu_milli = part ? (uint32_t)v[9] : 0,
        .cpus = (uint32_t)MAX(v[3], 0),
        .nodes = (uint32_t)MAX(v[4], 0),
        .mem_mb = (uint64_t)MAX(v[5], 0),
        .number = v[7] >= 0 ? (uint32_t)v[7] : line - 1,
        .line = line,
        .user = sim_trace_user(reader->trace, text_of(reader, cells, COLUMN_USER)),
        .name = sim_trace_name(reader->trace, text_of(reader, cells, COLUMN_NAME)),
        .partition = sim_trace_name(reader->trace, text_of(reader, cells, COLUMN_PARTITION)),
        .qos = sim_trace_name(reader->trace, text_of(reader, cells, COLUMN_QOS)),
    };
    reader->trace->parts = reader->trace->parts || part;
    return sim_trace_add(reader, &job, err);
}

int sim_tsv_line(struct sim_reader *reader, char *line, uint32_t number, struct err *err)
{
    enum { CELLS_MOST = 256 };
    char *cells[CELLS_MOST];
    int count = 0;

    if (!*line || *line == '#')
        return 0;
    if (!reader->header)
        return tsv_header(reader, line, number, err);
    for (char *cell; (cell = next_cell(&line)); count++) {
        if (count == CELLS_MOST)
            return sim_trace_error(reader, number, err, "there are more than %d columns",
                                   CELLS_MOST);
        cells[count] = cell;
    }
    if (count != reader->column_count)
        return sim_trace_error(reader, number, err,
                               "there are %d columns where the first line has %d", count,
                               reader->column_count);
    return tsv_row(reader, cells, number, err);
}

/* ---- files ---- */

static bool is_swf(const char *path, const char *first)
{
    const char *at = strstr(path, ".swf");

    while (*first == ' ' || *first == '\t')
        first++;
    return (at && (!at[4] || strcmp(at + 4, ".gz") == 0)) || *first == ';' ||
           (*first >= '0' && *first <= '9');
}

static int by_submit(const void *a, const void *b)
{
    const struct sim_job *x = a, *y = b;

    if (x->submit_s != y->submit_s)
        return x->submit_s < y->submit_s ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* What the decompressor has to say; 0: nothing. */
static int check_file(const struct sim_reader *reader, gzFile file, struct err *err)
{
    int fault = Z_OK;
    const char *why = gzerror(file, &fault);

    if (fault == Z_OK || fault == Z_STREAM_END)
        return 0;
    return err_set(err, ERR_IO, "%s: %s", reader->path,
                   fault == Z_BUF_ERROR ? "the compressed file ends too early" : why);
}

static int read_lines(struct sim_reader *reader, gzFile file, struct err *err)
{
    CLEANUP(freep) char *line = mem_new(LIMIT_TRACE_LINE);
    sim_line_fn *each = NULL;
    int code = 0;

    for (uint32_t number = 1; code >= 0 && gzgets(file, line, LIMIT_TRACE_LINE); number++) {
        size_t len = strlen(line);
        bool ended = len && line[len - 1] == '\n';
        if (!ended && !gzeof(file))
            return sim_trace_error(reader, number, err,
                                   "the line is longer than %d bytes, or has a NUL in it",
                                   LIMIT_TRACE_LINE - 2);
        if (!ended && check_file(reader, file, err) < 0) /* before what is left of it is judged */
            return -(int)err->code;
        reader->trace->cut = !ended;
        while (len && (line[len - 1] == '\n' || line[len - 1] == '\r'))
            line[--len] = '\0';
        if (!each)
            each = is_swf(reader->path, line) ? sim_swf_line : sim_tsv_line;
        code = each(reader, line, number, err);
    }
    return code >= 0 ? check_file(reader, file, err) : code;
}

int sim_trace_read(struct sim_trace *trace, const char *path, const char *only, struct err *err)
{
    struct sim_reader reader = { .trace = trace, .path = path, .only = only };
    gzFile file = gzopen(path, "rbe");

    if (!file)
        return err_errno(err, errno ? errno : ENOMEM, "%s", path);
    gzbuffer(file, 1 << 17);
    int code = read_lines(&reader, file, err);
    gzclose_r(file);
    freep(&reader.only_value);
    freep(&reader.part);
    if (code < 0)
        return code;
    if (!trace->jobs.len)
        return err_set(err, ERR_SYNTAX, "%s: there is no job in it%s%s", path, only ? " with " : "",
                       only ? only : "");
    qsort(trace->jobs.items, trace->jobs.len, sizeof(struct sim_job), by_submit);
    int64_t first = trace->jobs.items[0].submit_s;
    vec_each (struct sim_job, job, &trace->jobs)
        job->submit_s -= first;
    return 0;
}

/* ---- time limits ---- */

static int64_t padded(int64_t run_s, int64_t milli)
{
    return MIN(MAX((run_s * milli + 999) / 1000, 1), LIMIT_SECONDS);
}

static bool read_milli(const char *text, int64_t *milli)
{
    char *end;
    double value = strtod(text, &end);

    *milli = value >= 1 && value <= 1000 ? (int64_t)(value * 1000 + 0.5) : 0;
    return end != text && !*end && *milli;
}

int sim_trace_limits(struct sim_trace *trace, const char *rule, struct err *err)
{
    bool random = rule && str_starts(rule, "random:");
    bool times = rule && rule[0] == 'x';
    int64_t most = 1000;

    if ((random && !read_milli(rule + 7, &most)) || (times && !read_milli(rule + 1, &most)) ||
        (rule && !random && !times && strcmp(rule, "trace") != 0 && strcmp(rule, "exact") != 0 &&
         strcmp(rule, "none") != 0))
        return err_set(err, ERR_SYNTAX,
                       "--limits takes trace, exact, none, xFACTOR or random:FACTOR with a factor "
                       "from 1 to 1000, not '%s'",
                       rule);
    vec_each (struct sim_job, job, &trace->jobs) {
        uint64_t dice = hash_mix(job->line * UINT64_C(0x9e3779b97f4a7c15));
        if (rule && strcmp(rule, "none") == 0)
            job->limit_s = -1;
        else if (random)
            job->limit_s = padded(job->run_s, 1000 + (int64_t)(dice % (uint64_t)(most - 999)));
        else if (times || (rule && strcmp(rule, "exact") == 0) || job->limit_s < 0)
            job->limit_s = padded(job->run_s, most);
        if (job->limit_s >= 0 && job->limit_s < job->run_s) {
            job->limit_s = job->run_s;
            trace->raised++;
        }
    }
    return 0;
}
