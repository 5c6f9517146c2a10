// SPDX-License-Identifier: Apache-2.0
/*
 * queue_sort.c - order and selection of jobs in squeue
 *
 * What is sorted by is worked out once for each job, texts as their place among all texts of the column:
 * with a million jobs comparing is most of the work.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
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

/* ---- texts as numbers ---- */

/* Of a column: each text once, and in which order they come. */
struct words {
    struct map places; /* text → place + 1 */
    VEC(char *) list;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The place of the job's text. */
static int64_t word_of(struct words *words, const struct field_call *call, struct str *text)
{
    str_clear(text);
    call->field->write(call, text);
    uintptr_t place = (uintptr_t)map_get(&words->places, str_text(text));
    if (!place) {
        char *copy = mem_strdup(str_text(text));
        vec_push(&words->list, copy);
        place = words->list.len;
        map_put(&words->places, copy, (void *)place);
    }
    return (int64_t)place - 1;
}

/* For each place, where its text comes among all. */
static int64_t *word_ranks(struct words *words)
{
    int64_t *ranks = NEW_ARRAY(int64_t, words->list.len + 1);
    char **sorted = NEW_ARRAY(char *, words->list.len + 1);

    for (size_t i = 0; i < words->list.len; i++)
        sorted[i] = words->list.items[i];
    qsort(sorted, words->list.len, sizeof(*sorted), by_text);
    for (size_t i = 0; i < words->list.len; i++)
        ranks[(uintptr_t)map_get(&words->places, sorted[i]) - 1] = (int64_t)i;
    free(sorted);
    return ranks;
}

static void words_done(struct words *words)
{
    vec_each (char *, text, &words->list)
        free(*text);
    vec_done(&words->list);
    map_done(&words->places);
}

/* ---- sorting ---- */

struct row {
    const Job *job;
    int64_t id;
    const int64_t *values; /* one for each key */
};

static void fill_column(struct sorting *sorting, const queue_jobs *jobs, size_t key,
                        int64_t *values)
{
    const struct key *of = &sorting->keys[key];
    struct words words = { 0 };
    struct str text = { 0 };
    bool is_text = false;

    map_init(&words.places);
    for (size_t i = 0; i < jobs->len; i++) {
        const Job *job = jobs->items[i];
        int64_t *value = &values[i * sorting->count + key];
        if (number_of(of->letter, job, sorting->ctx->now_us, value))
            continue;
        is_text = true;
        *value = word_of(&words, &(struct field_call){ of->field, job, sorting->ctx }, &text);
    }
    int64_t *ranks = is_text ? word_ranks(&words) : NULL;
    for (size_t i = 0; is_text && i < jobs->len; i++)
        values[i * sorting->count + key] = ranks[values[i * sorting->count + key]];
    free(ranks);
    str_done(&text);
    words_done(&words);
}

static int compare(const void *a, const void *b, void *ctx)
{
    const struct sorting *sorting = ctx;
    const struct row *x = a, *y = b;

    for (size_t i = 0; i < sorting->count; i++) {
        int order = (x->values[i] > y->values[i]) - (x->values[i] < y->values[i]);

        if (order)
            return sorting->keys[i].down ? -order : order;
    }
    return (x->id > y->id) - (x->id < y->id);
}

static void sort_rows(struct sorting *sorting, queue_jobs *jobs)
{
    int64_t *values = NEW_ARRAY(int64_t, jobs->len * sorting->count + 1);
    struct row *rows = NEW_ARRAY(struct row, jobs->len);

    for (size_t key = 0; key < sorting->count; key++)
        fill_column(sorting, jobs, key, values);
    for (size_t i = 0; i < jobs->len; i++) {
        rows[i] = (struct row){ .job = jobs->items[i], .values = values + i * sorting->count };
        number_of('i', jobs->items[i], 0, &rows[i].id);
    }
    qsort_r(rows, jobs->len, sizeof(*rows), compare, sorting);
    for (size_t i = 0; i < jobs->len; i++)
        jobs->items[i] = rows[i].job;
    free(rows);
    free(values);
}

int queue_sort(queue_jobs *jobs, const char *spec, const struct field_ctx *ctx, struct err *err)
{
    struct sorting sorting = { .ctx = ctx };
    int result = read_keys(&sorting, spec, err);

    if (result < 0)
        return result;
    if (jobs->len)
        sort_rows(&sorting, jobs);
    return 0;
}
