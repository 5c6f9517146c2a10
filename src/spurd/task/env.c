/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.c - an environment under construction
 */
#include "spurd/task/env.h"

#include <stdlib.h>
#include <string.h>

#include "base/bitset.h"
#include "base/hash.h"
#include "base/limits.h"
#include "spurd/task/env_priv.h"

enum { SLOTS_FIRST = 256 };

void env_init(struct env *env, struct arena *arena)
{
    *env = (struct env){ .arena = arena };
}

void env_done(struct env *env)
{
    vec_done(&env->list);
    free(env->slots);
    env->slots = NULL;
}

static bool has_name(const char *entry, const char *name, size_t len)
{
    return strncmp(entry, name, len) == 0 && entry[len] == '=';
}

/* The slot of a name: where it is, or where it would go. */
static uint32_t *slot_of(const struct env *env, const char *name, size_t len)
{
    size_t at = hash_bytes(name, len, 0) & (env->slot_count - 1);

    while (env->slots[at] && !has_name(env->list.items[env->slots[at] - 1], name, len))
        at = (at + 1) & (env->slot_count - 1);
    return &env->slots[at];
}

static void grow(struct env *env)
{
    size_t count = env->slot_count ? env->slot_count * 2 : SLOTS_FIRST;

    free(env->slots);
    env->slots = NEW_ARRAY(uint32_t, count);
    env->slot_count = count;
    for (size_t i = 0; i < env->list.len; i++) {
        const char *entry = env->list.items[i];
        *slot_of(env, entry, strcspn(entry, "=")) = (uint32_t)i + 1;
    }
}

static void place(struct env *env, const char *name, size_t name_len, char *entry)
{
    if ((env->list.len + 1) * 2 > env->slot_count)
        grow(env);
    uint32_t *slot = slot_of(env, name, name_len);
    if (*slot) {
        env->list.items[*slot - 1] = entry;
        return;
    }
    vec_push(&env->list, entry);
    *slot = (uint32_t)env->list.len;
}

void env_put(struct env *env, const char *entry, size_t len)
{
    const char *equals = memchr(entry, '=', len);

    if (!equals || equals == entry || memchr(entry, '\0', len))
        return;
    place(env, entry, (size_t)(equals - entry), arena_strndup(env->arena, entry, len));
}

void env_set(struct env *env, const char *name, const char *value)
{
    size_t name_len = strlen(name), value_len = strlen(value);
    char *entry = arena_alloc(env->arena, name_len + value_len + 2);

    memcpy(entry, name, name_len);
    entry[name_len] = '=';
    memcpy(entry + name_len + 1, value, value_len);
    place(env, name, name_len, entry);
}

const char *env_get(const struct env *env, const char *name)
{
    size_t len = strlen(name);
    uint32_t at = env->slot_count ? *slot_of(env, name, len) : 0;

    return at ? env->list.items[at - 1] + len + 1 : NULL;
}

char **env_copy(const struct env *env)
{
    char **list = NEW_ARRAY(char *, env->list.len + 1);

    for (size_t i = 0; i < env->list.len; i++)
        list[i] = mem_strdup(env->list.items[i]);
    return list;
}

void env_list_free(char **list)
{
    for (size_t i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

void env_fill(struct env *env, const struct env_job *job, enum env_where where)
{
    CLEANUP(str_done) struct str value = { 0 };
    struct env_job full = *job;

    if (job->status && job->status->has_array_task_id && job->spec->array)
        env_read_array(job->spec->array, &full.array);
    for (size_t i = 0; i < env_row_count; i++) {
        if (!(env_rows[i].where & where))
            continue;
        str_clear(&value);
        if (env_rows[i].write(&full, &value))
            env_set(env, env_rows[i].name, str_text(&value));
    }
}

void env_add_counts(struct str *out, const uint32_t *counts, size_t len)
{
    for (size_t i = 0, same; i < len; i += same) {
        for (same = 1; i + same < len && counts[i + same] == counts[i];)
            same++;
        str_addf(out, "%s%u", i ? "," : "", counts[i]);
        if (same > 1)
            str_addf(out, "(x%zu)", same);
    }
}

/* One word of an array specification. */
static bool read_range(struct span word, uint32_t *low, uint32_t *high, uint32_t *step)
{
    CLEANUP(freep) char *text = mem_strndup(word.ptr, word.len);
    char *colon = strchr(text, ':');
    int64_t value;

    *step = 1;
    if (colon) {
        *colon = '\0';
        if (!str_to_i64(colon + 1, 1, LIMIT_ARRAY_TASKS, &value))
            return false;
        *step = (uint32_t)value;
    }
    char *dash = strchr(text, '-');
    if (dash)
        *dash = '\0';
    if (!str_to_i64(text, 0, LIMIT_ARRAY_TASKS, &value))
        return false;
    *low = *high = (uint32_t)value;
    if (dash && !str_to_i64(dash + 1, *low, LIMIT_ARRAY_TASKS, &value))
        return false;
    if (dash)
        *high = (uint32_t)value;
    return true;
}

static uint32_t common_step(const struct bitset *set, uint64_t count, uint32_t min, uint32_t max)
{
    if (count < 2)
        return 1;
    size_t step = bitset_next(set, min + 1) - min, before = min;
    bitset_each (task, set) {
        if (task != min && task - before != step)
            return 1;
        before = task;
    }
    return (uint32_t)(max > min ? step : 1);
}

/* Several ranges may overlap, so they are put into a set. */
static void count_ranges(const char *list, struct env_array *out)
{
    struct bitset set;
    struct span word;
    uint32_t low, high, step;

    bitset_init(&set, (size_t)out->max + 1);
    while (str_next(&list, ",", &word) && read_range(word, &low, &high, &step)) {
        for (uint32_t task = low; task <= high; task += step)
            bitset_add(&set, task);
    }
    out->count = bitset_count(&set);
    out->step = common_step(&set, out->count, out->min, out->max);
    bitset_done(&set);
}

bool env_read_array(const char *text, struct env_array *out)
{
    CLEANUP(freep) char *list = mem_strdup(text);
    const char *cursor = list;
    struct span word;
    uint32_t low, high, step, ranges = 0;
    struct env_array info = { .min = UINT32_MAX };

    list[strcspn(list, "%")] = '\0';
    while (str_next(&cursor, ",", &word)) {
        if (!read_range(word, &low, &high, &step))
            return false;
        info.count = (high - low) / step + 1;
        info.step = info.count > 1 ? step : 1;
        info.min = MIN(info.min, low);
        info.max = MAX(info.max, low + (high - low) / step * step);
        ranges++;
    }
    if (ranges > 1)
        count_ranges(list, &info);
    if (ranges)
        *out = info;
    return ranges > 0;
}

bool env_oom_kill_step(const JobSpec *spec, const Config *config)
{
    const char *cursor = config ? config->task_plugin_param : NULL;
    struct span word;

    if (spec && spec->has_oom_kill_step)
        return spec->oom_kill_step;
    while (cursor && str_next(&cursor, ",", &word)) {
        if (span_ieq(word, "OOMKillStep"))
            return true;
    }
    return false;
}
