/* SPDX-License-Identifier: Apache-2.0 */
/*
 * array.c - the tasks of a job array
 *
 * "0-99:2%5" is a few runs of task ids and two bits a task. Tasks have numbers from 0 in order of
 * their ids, whatever order they were written in.
 *
 * (1) runs do not overlap and are in order.
 * (2) waiting + active + ok + failed == count.
 */
#include "core/record/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "base/must.h"

/* A run of one task has step 1. */
struct given {
    uint64_t first, last, step;
};

static bool read_number(const char **at, uint64_t *out)
{
    uint64_t value = 0;
    const char *begin = *at;

    for (; **at >= '0' && **at <= '9'; (*at)++) {
        if (value > UINT32_MAX)
            return false;
        value = value * 10 + (uint64_t)(**at - '0');
    }
    *out = value;
    return *at > begin && value < UINT32_MAX;
}

/* "5", "5-9", "5-9:2" */
static bool read_given(const char **at, struct given *out)
{
    if (!read_number(at, &out->first))
        return false;
    out->last = out->first;
    out->step = 1;
    if (**at == '-') {
        (*at)++;
        if (!read_number(at, &out->last) || out->last < out->first)
            return false;
        if (**at == ':') {
            (*at)++;
            if (!read_number(at, &out->step) || out->step == 0)
                return false;
        }
    }
    return true;
}

static int bad_array(struct err *err, const char *text)
{
    return err_set(err, ERR_ARRAY, "Invalid job array specification '%.100s'", text);
}

typedef VEC(struct given) given_list;

static int read_list(const char *text, uint32_t max_size, given_list *list, uint32_t *max_running,
                     struct err *err)
{
    const char *at = text;
    uint64_t limit = 0, total = 0;

    *max_running = 0;
    for (;;) {
        struct given given;
        if (!read_given(&at, &given))
            return bad_array(err, text);
        if (given.last >= max_size)
            return err_set(err, ERR_ARRAY,
                           "Invalid job array specification '%.100s': the highest task id allowed "
                           "is %u",
                           text, max_size - 1);
        vec_push(list, given);
        total += (given.last - given.first) / given.step + 1;
        if (list->len > LIMIT_ARRAY_RUNS || total > UINT64_C(2) * LIMIT_ARRAY_TASKS)
            return bad_array(err, text);
        if (*at != ',')
            break;
        at++;
    }
    if (*at == '%') {
        at++;
        if (!read_number(&at, &limit) || limit == 0)
            return bad_array(err, text);
        *max_running = (uint32_t)limit;
    }
    return *at ? bad_array(err, text) : 0;
}

static int by_first(const void *a, const void *b)
{
    const struct given *x = a, *y = b;

    return x->first < y->first ? -1 : x->first > y->first;
}

static bool disjoint(const given_list *list)
{
    for (size_t i = 1; i < list->len; i++) {
        if (list->items[i].first <= list->items[i - 1].last)
            return false;
    }
    return true;
}

/* Overlapping or interleaved lists are put together by marking every task. */
static void flatten(given_list *list)
{
    uint64_t last = 0;
    struct bitset set;

    vec_each (struct given, given, list)
        last = MAX(last, given->last);
    bitset_init(&set, last + 1);
    vec_each (struct given, given, list) {
        for (uint64_t id = given->first; id <= given->last; id += given->step)
            bitset_add(&set, id);
    }
    vec_clear(list);
    for (size_t id = bitset_next(&set, 0); id < set.bits; id = bitset_next(&set, id + 1)) {
        struct given *end = list->len ? &list->items[list->len - 1] : NULL;
        if (end && end->last + 1 == id)
            end->last = id;
        else
            vec_push(list, (struct given){ id, id, 1 });
    }
    bitset_done(&set);
}

static struct array *from_list(const given_list *list)
{
    struct array *array = mem_new(sizeof(*array) + list->len * sizeof(array->runs[0]));
    uint32_t base = 0;

    array->run_count = list->len;
    for (size_t i = 0; i < list->len; i++) {
        const struct given *given = &list->items[i];
        array->runs[i] = (struct task_run){
            .first = (uint32_t)given->first,
            .step = (uint32_t)given->step,
            .count = (uint32_t)((given->last - given->first) / given->step + 1),
            .base = base,
        };
        base += array->runs[i].count;
    }
    array->count = array->waiting = base;
    array->bits = mem_new((base + 3) / 4);
    return array;
}

struct array *array_parse(const char *text, uint32_t max_size, uint32_t max_tasks, struct err *err)
{
    given_list list = { 0 };
    struct array *array = NULL;
    uint32_t max_running;

    max_size = MIN(max_size, LIMIT_ARRAY_TASKS);
    if (read_list(text, max_size, &list, &max_running, err) == 0) {
        if (list.len > 1)
            qsort(list.items, list.len, sizeof(list.items[0]), by_first);
        if (!disjoint(&list))
            flatten(&list);
        array = from_list(&list);
        array->max_running = max_running;
        if (array->count > max_tasks) {
            err_set(err, ERR_MAX_JOB_COUNT, "%u array tasks are more jobs than there is room for",
                    array->count);
            array_free(array);
            array = NULL;
        }
    }
    vec_done(&list);
    return array;
}

void array_free(struct array *array)
{
    if (!array)
        return;
    free(array->bits);
    slots_done(&array->record_ids);
    free(array);
}

uint32_t array_task_id(const struct array *array, uint32_t number)
{
    size_t lo = 0, hi = array->run_count;

    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (array->runs[mid].base <= number)
            lo = mid;
        else
            hi = mid;
    }
    const struct task_run *run = &array->runs[lo];
    return run->first + (number - run->base) * run->step;
}

bool array_find(const struct array *array, uint32_t task_id, uint32_t *number)
{
    size_t lo = 0, hi = array->run_count;

    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        if (array->runs[mid].first <= task_id)
            lo = mid;
        else
            hi = mid;
    }
    const struct task_run *run = &array->runs[lo];
    if (task_id < run->first || (task_id - run->first) % run->step != 0 ||
        (task_id - run->first) / run->step >= run->count)
        return false;
    *number = run->base + (task_id - run->first) / run->step;
    return true;
}

enum task_bits array_task(const struct array *array, uint32_t number)
{
    return array->bits[number / 4] >> number % 4 * 2 & 3;
}

static uint64_t task_hash(uint32_t number, enum task_bits bits)
{
    return bits == TASK_WAITING ? 0 : hash_mix((uint64_t)number << 2 | bits);
}

uint64_t array_hash_bits(const struct array *array)
{
    uint64_t sum = 0;

    for (uint32_t n = 0; n < array->count; n++)
        sum += task_hash(n, array_task(array, n));
    return sum;
}

void array_set(struct array *array, uint32_t number, enum task_bits bits)
{
    enum task_bits old = array_task(array, number);
    uint32_t *counts[] = { &array->waiting, &array->active, &array->ok, &array->failed };

    MUST(*counts[old] > 0);
    --*counts[old]; /* (2) */
    ++*counts[bits];
    array->bits_hash += task_hash(number, bits) - task_hash(number, old);
    uint8_t *byte = &array->bits[number / 4];
    *byte = (uint8_t)((*byte & ~(3U << number % 4 * 2)) | (unsigned)bits << number % 4 * 2);
    if (bits == TASK_WAITING)
        array->first_waiting = MIN(array->first_waiting, number);
    else
        array->first_waiting = array_next_waiting(array, array->first_waiting);
}

uint32_t array_next_waiting(const struct array *array, uint32_t number)
{
    number = MAX(number, array->first_waiting);
    while (number < array->count) {
        uint8_t byte = array->bits[number / 4];
        /* No pair of bits is 00: all four tasks have gone on. */
        if (number % 4 == 0 && ((byte | byte >> 1) & 0x55) == 0x55) {
            number += 4;
            continue;
        }
        if (!(byte >> number % 4 * 2 & 3))
            return number;
        number++;
    }
    return array->count;
}

uint32_t array_room(const struct array *array)
{
    if (!array->max_running)
        return UINT32_MAX;
    return array->running < array->max_running ? array->max_running - array->running : 0;
}

int array_select(const struct array *array, const char *text, size_t len, struct bitset *set,
                 struct err *err)
{
    CLEANUP(freep) char *copy = mem_strndup(text, len);
    given_list list = { 0 };
    uint32_t ignored, number;
    int bad = 0;

    if (copy[0] == '[' && len > 1 && copy[len - 1] == ']') {
        copy[len - 1] = '\0';
        memmove(copy, copy + 1, len - 1);
    }
    bitset_init(set, array->count);
    if (read_list(copy, UINT32_MAX, &list, &ignored, err) < 0) {
        bad = err_set(err, ERR_INVALID_JOB_ID, "Invalid job id specified: tasks '%.100s'", copy);
    }
    vec_each (struct given, given, &list) {
        for (uint64_t id = given->first; !bad && id <= given->last; id += given->step) {
            if (array_find(array, (uint32_t)id, &number))
                bitset_add(set, number);
            else
                bad = err_set(err, ERR_INVALID_JOB_ID, "Invalid job id specified: no task %u",
                              (unsigned)id);
        }
    }
    vec_done(&list);
    if (bad)
        bitset_done(set);
    return bad;
}

/* Task ids as Slurm writes them: steps are shown when all are the same. */
static void format_ids(const struct array *array, const struct bitset *set, struct str *out)
{
    uint32_t step = array->run_count == 1 && array->runs[0].step > 1 ? array->runs[0].step : 1;
    size_t number = bitset_next(set, 0);
    const char *comma = "";

    while (number < set->bits) {
        uint32_t first = array_task_id(array, (uint32_t)number), last = first;
        for (number = bitset_next(set, number + 1); number < set->bits;
             number = bitset_next(set, number + 1)) {
            uint32_t id = array_task_id(array, (uint32_t)number);
            if (id != last + step)
                break;
            last = id;
        }
        str_addf(out, "%s%u", comma, first);
        if (last > first)
            str_addf(out, "-%u", last);
        if (last > first && step > 1)
            str_addf(out, ":%u", step);
        comma = ",";
    }
}

void array_format_set(const struct array *array, const struct bitset *set, struct str *out)
{
    format_ids(array, set, out);
}

void array_format(const struct array *array, struct str *out)
{
    struct bitset waiting;

    bitset_init(&waiting, array->count);
    for (uint32_t n = array_next_waiting(array, 0); n < array->count;
         n = array_next_waiting(array, n + 1))
        bitset_add(&waiting, n);
    format_ids(array, &waiting, out);
    bitset_done(&waiting);
    if (array->max_running)
        str_addf(out, "%%%u", array->max_running);
}

/* Records of single tasks. */

static uint32_t task_hash_of(uint32_t task_id)
{
    return (uint32_t)hash_mix(task_id);
}

void array_index_put(struct array *array, const struct job *job)
{
    slots_put(&array->record_ids, task_hash_of(job->array_task_id), job->id);
    array->records++;
}

void array_index_del(struct array *array, const struct job *job)
{
    slots_del(&array->record_ids, task_hash_of(job->array_task_id), job->id);
    array->records--;
}

struct job *array_record(const struct state *state, const struct array *array, uint32_t task_id)
{
    uint32_t id;

    for (struct slots_at at = { 0 };
         (id = slots_next(&array->record_ids, task_hash_of(task_id), &at));) {
        struct job *job = job_at(state, id);
        if (job->array_task_id == task_id)
            return job;
    }
    return NULL;
}
