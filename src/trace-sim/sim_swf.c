/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_swf.c - the Standard Workload Format: 18 numbers a line, comments after ';'
 *
 * Of the numbers those count that say when, how large and how long; -1 is "not known". What was
 * asked for goes before what was given. A job that never ran, or has no size, is skipped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "trace-sim/sim.h"

enum { FIELDS = 18 };
enum field {
    SWF_JOB,
    SWF_SUBMIT,
    SWF_WAIT,
    SWF_RUN,
    SWF_PROCS,
    SWF_CPU_TIME,
    SWF_MEM_KB,
    SWF_ASKED_PROCS,
    SWF_ASKED_TIME,
    SWF_ASKED_MEM_KB,
    SWF_STATUS,
    SWF_USER,
    SWF_GROUP,
    SWF_PROGRAM,
    SWF_QUEUE,
    SWF_PARTITION,
    SWF_AFTER,
    SWF_THINK,
};

/* "; MaxNodes: 128" */
static void comment(struct sim_trace *trace, const char *line)
{
    static const struct {
        const char *key;
        size_t offset;
        int64_t most;
    } known[] = {
        { "MaxNodes:", offsetof(struct sim_trace, max_nodes), LIMIT_NODES },
        { "MaxProcs:", offsetof(struct sim_trace, max_procs), 100000000 },
    };

    line += strspn(line, "; \t");
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (!str_istarts(line, known[i].key))
            continue;
        long long value = strtoll(line + strlen(known[i].key), NULL, 10);
        if (value > 0 && value <= known[i].most)
            *(uint32_t *)((char *)trace + known[i].offset) = (uint32_t)value;
    }
}

static int read_fields(struct sim_reader *reader, const char *line, uint32_t number,
                       int64_t fields[FIELDS], struct err *err)
{
    const char *at = line;
    int count = 0;

    for (at += strspn(at, " \t"); *at && count < FIELDS; at += strspn(at, " \t"), count++) {
        char *end;
        double value = strtod(at, &end); /* some logs have fractions of seconds */
        if (end == at || (*end && *end != ' ' && *end != '\t') || !(value > -9e15 && value < 9e15))
            return sim_trace_error(reader, number, err, "field %d is no number", count + 1);
        fields[count] = (int64_t)value;
        at = end;
    }
    if (count < 5 || *at)
        return sim_trace_error(reader, number, err, "a line of SWF has %d numbers; here are %s%d",
                               FIELDS, *at ? "more than " : "", count);
    for (; count < FIELDS; count++)
        fields[count] = -1;
    return 0;
}

static int64_t between(int64_t value, int64_t min, int64_t max)
{
    return MIN(MAX(value, min), max);
}

/* Users and programs are numbers; "" when not known. */
static void number_name(char *out, size_t size, char letter, int64_t number)
{
    if (number < 0)
        *out = '\0';
    else
        snprintf(out, size, "%c%lld", letter, (long long)number);
}

int sim_swf_line(struct sim_reader *reader, char *line, uint32_t number, struct err *err)
{
    int64_t f[FIELDS];
    char text[32];

    line += strspn(line, " \t");
    if (*line == ';')
        comment(reader->trace, line);
    if (!*line || *line == ';')
        return 0;
    if (reader->only)
        return sim_trace_error(reader, number, err, "--only is for tables with named columns");
    if (read_fields(reader, line, number, f, err) < 0)
        return -1;
    if (f[SWF_SUBMIT] < 0 || f[SWF_SUBMIT] > LIMIT_SECONDS || f[SWF_RUN] > LIMIT_SECONDS)
        return sim_trace_error(reader, number, err, "submit or run time is out of range");
    int64_t procs = f[SWF_ASKED_PROCS] > 0 ? f[SWF_ASKED_PROCS] : f[SWF_PROCS];
    if (f[SWF_RUN] <= 0 || procs <= 0 || procs > 100000000) {
        reader->trace->skipped++;
        return 0;
    }
    struct sim_job job = {
        .submit_s = f[SWF_SUBMIT],
        .run_s = f[SWF_RUN],
        .limit_s = f[SWF_ASKED_TIME] > 0 ? between(f[SWF_ASKED_TIME], 1, LIMIT_SECONDS) : -1,
        .cpus = (uint32_t)procs,
        .number = (uint32_t)between(f[SWF_JOB], 0, UINT32_MAX),
        .line = number,
    };
    number_name(text, sizeof(text), 'u', f[SWF_USER]);
    job.user = sim_trace_user(reader->trace, text);
    number_name(text, sizeof(text), 'p', f[SWF_PROGRAM]);
    job.name = sim_trace_name(reader->trace, text);
    job.partition = job.qos = sim_trace_name(reader->trace, "");
    return sim_trace_add(reader, &job, err);
}
