// SPDX-License-Identifier: Apache-2.0
/*
 * queue_sort.c - order and selection of jobs in squeue
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/queue.h"
#include "schema/job_view.h"
#include "schema/names.h"

enum { KEYS_MAX = 16 };

const struct queue_states queue_states_default = {
    .states = 1u << JOB_PENDING | 1u << JOB_RUNNING | 1u << JOB_SUSPENDED,
    .flags = JOB_FLAG_COMPLETING | JOB_FLAG_CONFIGURING | JOB_FLAG_RESIZING | JOB_FLAG_REQUEUE |
             JOB_FLAG_SIGNALING,
};

int queue_read_states(const char *text, struct queue_states *out, struct err *err)
{
    const char *cursor = text;
    struct span word;

    *out = (struct queue_states){ 0 };
    while (str_next(&cursor, ",", &word)) {
        uint32_t value;
        bool is_flag;

        if (span_ieq(word, "all")) {
            out->all = true;
            continue;
        }
        if (!job_state_find(word.ptr, word.len, &value, &is_flag))
            return err_set(err, ERR_INVALID, "%.*s", (int)word.len, word.ptr);
        if (is_flag)
            out->flags |= value;
        else
            out->states |= 1u << value;
    }
    return 0;
}

bool queue_state_matches(const struct queue_states *states, const Job *job)
{
    const JobStatus *status = job_status(job);

    return states->all || (status->flags & states->flags) ||
           (status->state < 32 && (states->states >> status->state & 1));
}

/* "1-5:2,9%3" or "*" has the task. */
static bool has_task(const char *list, const char *end, uint32_t task)
{
    while (list < end && *list != '%') {
        char *at;
        unsigned long first = strtoul(list, &at, 10), last = first, step = 1;

        if (*list == '*')
            return true;
        if (at == list)
            return false;
        if (*at == '-')
            last = strtoul(at + 1, &at, 10);
        if (*at == ':')
            step = strtoul(at + 1, &at, 10);
        if (task >= first && task <= last && (task - first) % MAX(step, 1) == 0)
            return true;
        list = *at == ',' ? at + 1 : end;
    }
    return false;
}

static bool one_id_matches(const char *id, const char *end, const Job *job)
{
    const JobStatus *status = job_status(job);
    char *rest;
    unsigned long number = strtoul(id, &rest, 10);

    if (*rest == '+')
        return status->het_job_id == number && status->het_offset == strtoul(rest + 1, NULL, 10);
    if (*rest != '_' || rest >= end)
        return job->id == number || (status->has_array_job_id && status->array_job_id == number) ||
               (status->het_job_id && status->het_job_id == number);
    if (!status->has_array_job_id || status->array_job_id != number)
        return false;
    rest += rest[1] == '[' ? 2 : 1;
    return !status->has_array_task_id || has_task(rest, end, status->array_task_id);
}

bool queue_id_matches(const char *ids, const Job *job)
{
    while (*ids) {
        /* commas inside brackets belong to the id */
        const char *bracket = ids + strcspn(ids, "[, ");
        const char *end = *bracket == '[' ? bracket + strcspn(bracket, "]") : bracket;

        end += strcspn(end, ", ");
        if (one_id_matches(ids, end, job))
            return true;
        ids = end + strspn(end, ", ");
    }
    return false;
}

/* Letters that sort as numbers; all others sort as the text of their column. */
static bool number_of(char letter, const Job *job, int64_t now_us, int64_t *out)
{
    const JobStatus *status = job_status(job);
    const JobSpec *spec = job_spec(job);
    int64_t limit = job_limit_s(job), unlimited = INT64_MAX - 1;

    switch (letter) {
    case 'A':
    case 'i':
        *out = (int64_t)(status->has_array_job_id ? status->array_job_id
                         : status->het_job_id     ? status->het_job_id
                                                  : job->id)
               << 32;
        *out += status->has_array_task_id ? status->array_task_id
                : status->het_job_id      ? status->het_offset
                : status->array_tasks     ? UINT32_MAX
                                          : 0;
        return true;
    case 'c':
        *out = spec->min_cpus_per_node;
        return true;
    case 'C':
        *out = job_cpu_count(job);
        return true;
    case 'd':
        *out = (int64_t)spec->tmp_disk_mb;
        return true;
    case 'D':
        *out = job_node_count(job);
        return true;
    case 'e':
        *out = job_end_us(job, now_us);
        *out = *out ? *out : unlimited;
        return true;
    case 'G':
        *out = job_owner(job)->gid;
        return true;
    case 'l':
        *out = limit < 0 ? unlimited : limit;
        return true;
    case 'L':
        *out = limit < 0 ? unlimited : limit - job_used_s(job, now_us);
        return true;
    case 'm':
        *out = (int64_t)(spec->has_mem_per_cpu_mb ? spec->mem_per_cpu_mb : spec->mem_per_node_mb);
        return true;
    case 'M':
        *out = job_used_s(job, now_us);
        return true;
    case 'p':
    case 'Q':
        *out = status->priority;
        return true;
    case 'S':
        *out = job_start_us(job, now_us);
        *out = *out ? *out : unlimited;
        return true;
    case 'U':
        *out = job_owner(job)->uid;
        return true;
    case 'V':
        *out = status->submit_us;
        return true;
    case 'y':
        *out = spec->nice;
        return true;
    default:
        return false;
    }
}

struct key {
    char letter;
    bool down;
    const struct field *field;
};

struct sorting {
    struct key keys[KEYS_MAX];
    size_t count;
    const struct field_ctx *ctx;
};

static int read_keys(struct sorting *sorting, const char *spec, struct err *err)
{
    const char *cursor = spec;
    struct span word;

    while (str_next(&cursor, ",", &word)) {
        struct key key = { 0 };

        if (*word.ptr == '+' || *word.ptr == '-') {
            key.down = *word.ptr == '-';
            word.ptr++;
            word.len--;
        }
        key.letter = word.len ? *word.ptr : '\0';
        key.field =
            isalpha((unsigned char)key.letter) ? field_by_letter(&job_fields, key.letter) : NULL;
        if (word.len != 1 || !key.field || sorting->count == KEYS_MAX)
            return err_set(err, ERR_INVALID, "%c", key.letter ? key.letter : ' ');
        sorting->keys[sorting->count++] = key;
    }
    return 0;
}

static int compare_by(const struct key *key, const Job *a, const Job *b,
                      const struct field_ctx *ctx)
{
    struct str x = { 0 }, y = { 0 };
    struct field_call call = { key->field, a, ctx };
    int64_t m, n;
    int order;

    if (number_of(key->letter, a, ctx->now_us, &m) && number_of(key->letter, b, ctx->now_us, &n))
        return (m > n) - (m < n);
    key->field->write(&call, &x);
    call.object = b;
    key->field->write(&call, &y);
    order = strcmp(str_text(&x), str_text(&y));
    str_done(&x);
    str_done(&y);
    return order;
}

static int compare(const void *a, const void *b, void *ctx)
{
    const struct sorting *sorting = ctx;
    const Job *x = *(const Job *const *)a, *y = *(const Job *const *)b;
    int64_t m = 0, n = 0;

    for (size_t i = 0; i < sorting->count; i++) {
        int order = compare_by(&sorting->keys[i], x, y, sorting->ctx);

        if (order)
            return sorting->keys[i].down ? -order : order;
    }
    number_of('i', x, 0, &m);
    number_of('i', y, 0, &n);
    return (m > n) - (m < n);
}

int queue_sort(queue_jobs *jobs, const char *spec, const struct field_ctx *ctx, struct err *err)
{
    struct sorting sorting = { .ctx = ctx };
    int result = read_keys(&sorting, spec, err);

    if (result < 0)
        return result;
    if (jobs->len)
        qsort_r(jobs->items, jobs->len, sizeof(jobs->items[0]), compare, &sorting);
    return 0;
}
