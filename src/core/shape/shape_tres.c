/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape_tres.c - generic resources and licences that a job asks for
 */
#include <string.h>

#include "core/shape/shapes.h"

/* The same is asked for again: what was said first holds. With and without a type is nothing. */
static int find_same(const struct shape *shape, const GresRequest *from, bool *same,
                     struct err *err)
{
    bool typed = !str_is_empty(from->type);

    *same = false;
    for (size_t i = 0; i < shape->gres_count; i++) {
        const struct shape_gres *gres = &shape->gres[i];
        if (gres->scope != from->scope || !str_eq(gres->name, from->name))
            continue;
        if (typed != (gres->type != NULL))
            return err_set(err, ERR_GRES, "%s is asked for with a type and without one\n%s",
                           from->name, err_text(ERR_GRES));
        *same = *same || !typed || str_eq(gres->type, from->type);
    }
    return 0;
}

static int read_listed(struct shape *shape, const JobSpec *spec, struct err *err)
{
    if (spec->n_gres > TAKE_GRES)
        return err_set(err, ERR_GRES, "%zu kinds of generic resources are more than %d",
                       spec->n_gres, TAKE_GRES);
    shape->gres = ARENA_ARRAY(shape->arena, struct shape_gres, TAKE_GRES);
    for (size_t i = 0; i < spec->n_gres; i++) {
        const GresRequest *from = spec->gres[i];
        uint64_t count = from->has_count ? from->count : 1;
        if (str_is_empty(from->name) || from->scope < GRES_PER_NODE || from->scope > GRES_PER_TASK)
            return err_code(err, ERR_GRES);
        if (count > UINT32_MAX)
            return err_set(err, ERR_GRES, "%llu of %s are too many", (unsigned long long)count,
                           from->name);
        bool same;
        int code = find_same(shape, from, &same, err);
        if (code < 0)
            return code;
        if (count == 0 || same)
            continue;
        shape->gres[shape->gres_count++] = (struct shape_gres){
            .name = arena_strdup(shape->arena, from->name),
            .type = str_is_empty(from->type) ? NULL : arena_strdup(shape->arena, from->type),
            .count = count,
            .scope = from->scope,
        };
    }
    return 0;
}

/* "mem=2G" of a task, in megabytes. */
static bool read_megabytes(const char *text, uint64_t *out)
{
    char number[24];
    size_t len = strlen(text);
    uint64_t shift = 0;

    if (len == 0 || len >= sizeof(number))
        return false;
    memcpy(number, text, len + 1);
    const char *units = "MGTP", *unit = strchr(units, number[len - 1] & ~0x20);
    if (unit && len > 1) {
        shift = (uint64_t)(unit - units) * 10;
        number[len - 1] = '\0';
    }
    if (!str_to_u64(number, UINT32_MAX, out))
        return false;
    *out <<= shift;
    return *out > 0;
}

/* Each task was asked another number of it for: by --cpus-per-task, --gpus-per-task, or before. */
static bool contradicts(const struct shape *shape, const JobSpec *spec, const char *name,
                        const char *type, uint64_t count)
{
    if (str_eq(name, "cpu"))
        return spec->has_cpus_per_task && spec->cpus_per_task != count;
    for (size_t i = 0; i < shape->gres_count; i++) {
        const struct shape_gres *gres = &shape->gres[i];
        if (gres->scope == GRES_PER_TASK && str_eq(gres->name, name) &&
            (!type || !gres->type || str_eq(gres->type, type)))
            return true;
    }
    return false;
}

/* One entry of --tres-per-task, without licences. */
static bool add_task_tres(struct shape *shape, const JobSpec *spec, char *name, const char *text)
{
    uint64_t count;

    if (str_eq(name, "mem"))
        return read_megabytes(text, &shape->mem_per_task_mb);
    if (!str_to_u64(text, UINT32_MAX, &count) || count == 0)
        return false;
    if (str_eq(name, "cpu")) {
        shape->cpus_per_task = (uint32_t)count;
        return !contradicts(shape, spec, name, NULL, count);
    }
    if (!str_istarts(name, "gres/") || shape->gres_count == TAKE_GRES)
        return false;
    char *type = strpbrk(name + strlen("gres/"), ":/");
    if (type)
        *type++ = '\0';
    if (contradicts(shape, spec, name + strlen("gres/"), type, count))
        return false;
    shape->gres[shape->gres_count++] = (struct shape_gres){
        .name = name + strlen("gres/"), .type = type, .count = count, .scope = GRES_PER_TASK
    };
    return true;
}

/* The next of "cpu=4,gres/gpu:h100=2,mem=1G"; a colon before the count does too, as in Slurm. */
static bool next_tres(const char **cursor, struct arena *arena, char **name, const char **count)
{
    struct span word;

    if (!*cursor || !str_next(cursor, ",", &word))
        return false;
    *name = arena_strndup(arena, word.ptr, word.len);
    char *sign = strchr(*name, '=');
    if (!sign)
        sign = strrchr(*name, ':');
    *count = sign ? sign + 1 : "";
    if (sign)
        *sign = '\0';
    return true;
}

int shape_read_gres(struct shape *shape, const JobSpec *spec, struct err *err)
{
    const char *cursor = spec->tres_per_task, *count;
    char *name;
    int code = read_listed(shape, spec, err);

    while (code == 0 && next_tres(&cursor, shape->arena, &name, &count)) {
        if (str_istarts(name, "license/") || add_task_tres(shape, spec, name, count))
            continue;
        code = err_set(err, ERR_TRES, "%s: --tres-per-task=%.100s", err_text(ERR_TRES),
                       spec->tres_per_task);
        err_option(err, "tres-per-task");
    }
    return code;
}

/* One licence that is named twice is asked for as often, unless one of several will do. */
static void add_licence(struct shape *shape, const char *name, uint64_t count)
{
    size_t at = 0;

    while (at < shape->licence_count &&
           (shape->licence_any || !str_eq(shape->licences[at].name, name)))
        at++;
    if (at == shape->licence_count)
        shape->licences[shape->licence_count++] = (struct shape_licence){ .name = name };
    shape->licences[at].count = (uint32_t)MIN(shape->licences[at].count + count, UINT32_MAX);
}

/* "matlab:2,comsol" are all, "matlab|comsol" one of them. */
static int add_licences(struct shape *shape, const char *text, struct err *err)
{
    const char *cursor = text;
    struct span word;
    size_t count = 0;

    if (str_is_empty(text))
        return 0;
    if (!shape->licences)
        shape->licences = ARENA_ARRAY(shape->arena, struct shape_licence, LIMIT_GRES_KINDS);
    shape->licence_any = strchr(text, '|') != NULL;
    if (shape->licence_any && strpbrk(text, ",;"))
        return err_set(err, ERR_LICENSES, "Invalid license specification: %.100s has both , and |",
                       text);
    while (str_next(&cursor, ",;|", &word))
        count++;
    if (count + LIMIT_GRES_KINDS / 2 > LIMIT_GRES_KINDS)
        return err_code(err, ERR_LICENSES);
    cursor = text;
    while (str_next(&cursor, ",;|", &word)) {
        const char *colon = memchr(word.ptr, ':', word.len);
        if (!colon)
            colon = memchr(word.ptr, '=', word.len);
        size_t len = colon ? (size_t)(colon - word.ptr) : word.len;
        uint64_t many = 1;
        if (colon) {
            char *number = arena_strndup(shape->arena, colon + 1, word.len - len - 1);
            if (!str_to_u64(number, UINT32_MAX, &many) || many == 0)
                return err_code(err, ERR_LICENSES);
        }
        if (len == 0)
            return err_code(err, ERR_LICENSES);
        add_licence(shape, arena_strndup(shape->arena, word.ptr, len), many);
    }
    return 0;
}

/* Licences are of the job, so those of its tasks are added up. */
int shape_read_licences(struct shape *shape, const JobSpec *spec, struct err *err)
{
    const char *cursor = spec->tres_per_task, *text;
    char *name;
    int code = add_licences(shape, spec->licenses, err);

    while (code == 0 && next_tres(&cursor, shape->arena, &name, &text)) {
        uint64_t count;
        if (!str_istarts(name, "license/"))
            continue;
        if (!str_to_u64(text, UINT32_MAX, &count) || count == 0 || shape->licence_any ||
            shape->licence_count == LIMIT_GRES_KINDS)
            return err_code(err, ERR_LICENSES);
        if (!shape->licences)
            shape->licences = ARENA_ARRAY(shape->arena, struct shape_licence, LIMIT_GRES_KINDS);
        add_licence(shape, name + strlen("license/"), count * shape->tasks);
    }
    return code;
}
