// SPDX-License-Identifier: Apache-2.0
/*
 * convert.c - numbers as Slurm's words, and the other way round
 *
 * What returns a text that the client does not free returns one of this thread, or a constant.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/timefmt.h"
#include "compat/compat.h"
#include "schema/names.h"
#include "schema/reasons.h"
#include "sys/clock.h"

enum { WORD_BYTES = 128 };

time_t compat_seconds(int64_t us)
{
    return (time_t)(us / 1000000);
}

uint32_t compat_minutes(int64_t seconds)
{
    if (seconds == -1)
        return INFINITE;
    return seconds < 0 ? NO_VAL : (uint32_t)timefmt_minutes(seconds) / 1;
}

int32_t *compat_no_index(void)
{
    int32_t *index = compat_alloc(sizeof(*index));

    index[0] = -1;
    return index;
}

/* ---- states ---- */

char *slurm_job_state_string(uint32_t inx)
{
    return (char *)job_state_text(inx & JOB_STATE_BASE, inx & JOB_STATE_FLAGS);
}

char *slurm_job_state_string_compact(uint32_t inx)
{
    return (char *)job_state_code(inx & JOB_STATE_BASE, inx & JOB_STATE_FLAGS);
}

uint32_t slurm_job_state_num(const char *state_name)
{
    uint32_t value;
    bool is_flag;

    if (!state_name || !job_state_find(state_name, strlen(state_name), &value, &is_flag))
        return NO_VAL;
    return value;
}

#if EXPORTS_slurm_job_reason_string
char *slurm_job_reason_string(enum job_state_reason inx)
{
    return (char *)reason_word((uint32_t)inx);
}
#endif

const char *slurm_job_state_reason_string(enum job_state_reason inx)
{
    return reason_word((uint32_t)inx);
}

char *slurm_job_share_string(uint16_t shared)
{
    static const char *const words[] = { "NO", "YES", "USER", "MCS", "TOPO" };

    return (char *)(shared < ARRAY_LEN(words) ? words[shared] : "OK");
}

typedef void state_writer(struct str *out, uint32_t state, uint32_t flags);

static char *node_state(uint32_t inx, state_writer *write)
{
    static _Thread_local char text[WORD_BYTES];
    struct str out = { 0 };

    write(&out, inx & NODE_STATE_BASE, inx & NODE_STATE_FLAGS);
    snprintf(text, sizeof(text), "%s", str_text(&out));
    str_done(&out);
    return text;
}

char *slurm_node_state_string(uint32_t inx)
{
    GUARD(NULL);

    return node_state(inx, node_state_add_text);
}

char *slurm_node_state_string_compact(uint32_t inx)
{
    GUARD(NULL);

    return node_state(inx, node_state_add_code);
}

/* The client frees this one. */
char *slurm_node_state_string_complete(uint32_t inx)
{
    GUARD(NULL);

    return compat_text_kept(node_state(inx, node_state_add_full));
}

static const struct {
    uint16_t mode;
    const char *word;
} preempt_modes[] = {
    { PREEMPT_MODE_OFF, "OFF" },         { PREEMPT_MODE_SUSPEND, "SUSPEND" },
    { PREEMPT_MODE_REQUEUE, "REQUEUE" }, { PREEMPT_MODE_CANCEL, "CANCEL" },
    { PREEMPT_MODE_GANG, "GANG" },       { PREEMPT_MODE_WITHIN, "WITHIN" },
};

const char *slurm_preempt_mode_string(uint16_t preempt_mode)
{
    static _Thread_local char text[WORD_BYTES];
    uint16_t base = preempt_mode & (uint16_t) ~(PREEMPT_MODE_GANG | PREEMPT_MODE_WITHIN);

    snprintf(text, sizeof(text), "%s%s", preempt_mode & PREEMPT_MODE_GANG ? "GANG" : "",
             preempt_mode & PREEMPT_MODE_WITHIN
                 ? (preempt_mode & PREEMPT_MODE_GANG ? ",WITHIN" : "WITHIN")
                 : "");
    if (text[0] && !base)
        return text;
    for (size_t i = 0; i < ARRAY_LEN(preempt_modes); i++) {
        if (preempt_modes[i].mode == base) {
            size_t len = strlen(text);
            snprintf(text + len, sizeof(text) - len, "%s%s", len ? "," : "", preempt_modes[i].word);
            return text;
        }
    }
    return "INVALID";
}

uint16_t slurm_preempt_mode_num(const char *preempt_mode)
{
    const char *cursor = preempt_mode ? preempt_mode : "";
    struct span word;
    uint16_t mode = 0;

    if (!preempt_mode)
        return 0;
    while (str_next(&cursor, ",", &word)) {
        size_t i = 0;
        while (i < ARRAY_LEN(preempt_modes) && !span_ieq(word, preempt_modes[i].word))
            i++;
        if (i == ARRAY_LEN(preempt_modes))
            return NO_VAL16;
        mode |= preempt_modes[i].mode;
    }
    return mode;
}

/* ---- flags as words ---- */

struct flag_word {
    uint32_t flag;
    const char *word;
};

static void write_flags(const struct flag_word *rows, size_t count, uint32_t flags, char *str,
                        int str_len)
{
    size_t at = 0, room = str_len > 0 ? (size_t)str_len : 0;

    if (!str || !room)
        return;
    str[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        if (!(flags & rows[i].flag))
            continue;
        int more = snprintf(str + at, room - at, "%s%s", at ? "," : "", rows[i].word);
        at = MIN(at + (size_t)MAX(more, 0), room - 1);
    }
    if (!at)
        snprintf(str, room, "none");
}

void slurm_private_data_string(uint16_t private_data, char *str, int str_len)
{
    static const struct flag_word rows[] = {
        { PRIVATE_DATA_ACCOUNTS, "accounts" },
        { PRIVATE_DATA_EVENTS, "events" },
        { PRIVATE_DATA_JOBS, "jobs" },
        { PRIVATE_DATA_NODES, "nodes" },
        { PRIVATE_DATA_PARTITIONS, "partitions" },
        { PRIVATE_DATA_RESERVATIONS, "reservations" },
        { PRIVATE_DATA_USAGE, "usage" },
        { PRIVATE_DATA_USERS, "users" },
    };

    write_flags(rows, ARRAY_LEN(rows), private_data, str, str_len);
}

void slurm_accounting_enforce_string(uint16_t enforce, char *str, int str_len)
{
    static const struct flag_word rows[] = {
        { 0x1, "associations" }, { 0x2, "limits" },  { 0x4, "wckeys" },   { 0x8, "qos" },
        { 0x10, "safe" },        { 0x20, "nojobs" }, { 0x40, "nosteps" },
    };

    write_flags(rows, ARRAY_LEN(rows), enforce, str, str_len);
}

/* ---- times ---- */

static void put(char *string, int size, struct str *text)
{
    if (string && size > 0)
        snprintf(string, (size_t)size, "%s", str_text(text));
    str_done(text);
}

void slurm_make_time_str(time_t *time_, char *string_, int size)
{
    GUARD();
    struct str text = { 0 };

    if (!time_ || *time_ == 0 || (uint32_t)*time_ == NO_VAL)
        str_add(&text, "Unknown");
    else if ((uint32_t)*time_ == INFINITE)
        str_add(&text, "N/A");
    else
        timefmt_write_point(&text, *time_, clock_wall_us() / 1000000, getenv("SLURM_TIME_FORMAT"));
    put(string_, size, &text);
}

void slurm_secs2time_str(time_t time_, char *string_, int size)
{
    GUARD();
    struct str text = { 0 };

    timefmt_write_duration(&text, (uint32_t)time_ == INFINITE ? TIMEFMT_UNLIMITED : time_,
                           TIMEFMT_LONG);
    put(string_, size, &text);
}

void slurm_mins2time_str(uint32_t time_, char *string_, int size)
{
    GUARD();
    struct str text = { 0 };

    timefmt_write_duration(&text, time_ == INFINITE ? TIMEFMT_UNLIMITED : (int64_t)time_ * 60,
                           TIMEFMT_LONG);
    put(string_, size, &text);
}

time_t slurm_parse_time(const char *time_str, int past)
{
    GUARD(0);
    struct err err = { 0 };
    int64_t point;

    if (!time_str || timefmt_read_point(time_str, clock_wall_us() / 1000000,
                                        past ? TIMEFMT_PAST : TIMEFMT_COMING, &point, &err) < 0) {
        errno = ESLURM_INVALID_TIME_VALUE;
        return 0;
    }
    return (time_t)point;
}

int slurm_time_str2secs(const char *string_)
{
    struct err err = { 0 };
    int64_t seconds;

    if (!string_ || timefmt_read_duration(string_, &seconds, &err) < 0)
        return (int)NO_VAL;
    return seconds == TIMEFMT_UNLIMITED ? (int)INFINITE : (int)MIN(seconds, INT_MAX);
}

int slurm_time_str2mins(const char *string_)
{
    int seconds = slurm_time_str2secs(string_);

    if (seconds == (int)NO_VAL || seconds == (int)INFINITE)
        return seconds;
    return (seconds + 59) / 60;
}

/* ---- where tasks go ---- */

char *slurm_step_layout_type_name(task_dist_states_t task_dist)
{
    static _Thread_local char text[WORD_BYTES];
    static const char *const nodes[] = { "", "Cyclic", "Block", "Arbitrary", "Plane" };
    static const char *const below[] = { "", "Cyclic", "Block", "CFull" };
    unsigned node = (unsigned)task_dist & 0xf, sock = (unsigned)task_dist >> 4 & 0xf,
             core = (unsigned)task_dist >> 8 & 0xf;
    int at = snprintf(text, sizeof(text), "%s",
                      node && node < ARRAY_LEN(nodes) ? nodes[node] : "Unknown");

    if (sock && sock < ARRAY_LEN(below))
        at += snprintf(text + at, sizeof(text) - (size_t)at, ",%s", below[sock]);
    if (core && core < ARRAY_LEN(below))
        at += snprintf(text + at, sizeof(text) - (size_t)at, ",%s", below[core]);
    if ((unsigned)task_dist & SLURM_DIST_PACK_NODES)
        at += snprintf(text + at, sizeof(text) - (size_t)at, ",Pack");
    else if ((unsigned)task_dist & SLURM_DIST_NO_PACK_NODES)
        at += snprintf(text + at, sizeof(text) - (size_t)at, ",NoPack");
    return text;
}

/* The client's buffer has room for all of the words. */
void slurm_sprint_cpu_bind_type(char *str, cpu_bind_type_t cpu_bind_type)
{
    static const struct flag_word rows[] = {
        { CPU_BIND_VERBOSE, "verbose" },  { CPU_BIND_TO_THREADS, "threads" },
        { CPU_BIND_TO_CORES, "cores" },   { CPU_BIND_TO_SOCKETS, "sockets" },
        { CPU_BIND_TO_LDOMS, "ldoms" },   { CPU_BIND_NONE, "none" },
        { CPU_BIND_MAP, "map_cpu" },      { CPU_BIND_MASK, "mask_cpu" },
        { CPU_BIND_LDRANK, "rank_ldom" }, { CPU_BIND_LDMAP, "map_ldom" },
        { CPU_BIND_LDMASK, "mask_ldom" }, { CPU_BIND_ONE_THREAD_PER_CORE, "one_thread" },
        { CPU_BIND_OFF, "off" },
    };

    if (!str)
        return;
    write_flags(rows, ARRAY_LEN(rows), (uint32_t)cpu_bind_type, str, WORD_BYTES);
    if (strcmp(str, "none") == 0 && !((uint32_t)cpu_bind_type & CPU_BIND_NONE))
        snprintf(str, WORD_BYTES, "(null type)");
}
