/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deps_text.c - dependencies as text: "afterok:1:2,afterany:3", "after:4+5?singleton"
 *
 * What is left of one is written with marks, "afterok:1(failed)?afterok:2(unfulfilled)", and read
 * back by a restore.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "core/record/record.h"

static const char *const type_words[] = {
    [DEP_AFTER] = "after",
    [DEP_AFTER_ANY] = "afterany",
    [DEP_AFTER_BURST_BUFFER] = "afterburstbuffer",
    [DEP_AFTER_CORR] = "aftercorr",
    [DEP_AFTER_NOT_OK] = "afternotok",
    [DEP_AFTER_OK] = "afterok",
    [DEP_SINGLETON] = "singleton",
};

typedef VEC(struct dep) dep_list;

static bool read_u32(const char **at, uint32_t *out)
{
    uint64_t value = 0;
    const char *begin = *at;

    for (; **at >= '0' && **at <= '9' && value <= UINT32_MAX; (*at)++)
        value = value * 10 + (uint64_t)(**at - '0');
    *out = (uint32_t)value;
    return *at > begin && value < UINT32_MAX;
}

/* "12", "12_3", "12_*", "12+5", each with an optional "(unfulfilled)" or "(failed)" as shown. */
static bool read_target(const char **at, struct dep *dep)
{
    if (!read_u32(at, &dep->job_id) || dep->job_id == 0)
        return false;
    if (**at == '_') {
        (*at)++;
        dep->array = **at == '*';
        if (dep->array)
            (*at)++;
        else if (!read_u32(at, &dep->task))
            return false;
    }
    if (**at == '+' && dep->type == DEP_AFTER) {
        (*at)++;
        if (!read_u32(at, &dep->minutes) || dep->minutes > 60 * 24 * 366)
            return false;
    }
    return true;
}

static void read_mark(const char **at, struct dep *dep)
{
    if (str_starts(*at, "(unfulfilled)")) {
        *at += strlen("(unfulfilled)");
    } else if (str_starts(*at, "(failed)")) {
        *at += strlen("(failed)");
        dep->failed = true;
    }
}

static bool read_type(const char **at, uint8_t *type)
{
    size_t len = strcspn(*at, ":,?(");

    for (size_t i = 0; i < ARRAY_LEN(type_words); i++) {
        if (strlen(type_words[i]) == len && strncmp(type_words[i], *at, len) == 0) {
            *type = (uint8_t)i;
            *at += len;
            return true;
        }
    }
    return false;
}

/* One word: "afterok:1:2", "singleton". A bare id is afterany, as in Slurm. */
static bool read_word(const char **at, dep_list *list)
{
    struct dep dep = { .type = DEP_AFTER_ANY, .task = NO_TASK };

    if (**at >= '0' && **at <= '9') {
        if (!read_target(at, &dep))
            return false;
        read_mark(at, &dep);
        vec_push(list, dep);
        return true;
    }
    if (!read_type(at, &dep.type))
        return false;
    if (dep.type == DEP_SINGLETON) {
        read_mark(at, &dep);
        vec_push(list, dep);
        return true;
    }
    if (**at != ':')
        return false;
    while (**at == ':') {
        struct dep one = { .type = dep.type, .task = NO_TASK };
        (*at)++;
        if (!read_target(at, &one))
            return false;
        read_mark(at, &one);
        vec_push(list, one);
        if (list->len > LIMIT_DEPENDENCIES)
            return false;
    }
    return true;
}

static struct deps *from_list(const dep_list *list, bool any)
{
    struct deps *deps = mem_new(sizeof(*deps) + list->len * sizeof(deps->items[0]));

    deps->any = any;
    deps->count = list->len;
    memcpy(deps->items, list->items, list->len * sizeof(deps->items[0]));
    return deps;
}

struct deps *deps_read(const char *text)
{
    dep_list list = { 0 };
    const char *at = text;
    char joiner = '\0';
    bool good;

    for (;;) {
        good = read_word(&at, &list);
        if (!good || !*at)
            break;
        good = (*at == ',' || *at == '?') && (!joiner || *at == joiner);
        if (!good)
            break;
        joiner = *at++;
    }
    struct deps *deps = good ? from_list(&list, joiner == '?') : NULL;
    vec_done(&list);
    return deps;
}

struct deps *deps_copy(const struct deps *deps)
{
    if (!deps)
        return NULL;
    size_t size = sizeof(*deps) + deps->count * sizeof(deps->items[0]);
    struct deps *copy = mem_new(size);
    memcpy(copy, deps, size);
    return copy;
}

void deps_free(struct deps *deps)
{
    free(deps);
}

void deps_format(const struct deps *deps, struct str *out)
{
    for (size_t i = 0; i < deps->count; i++) {
        const struct dep *dep = &deps->items[i];
        if (i)
            str_add_char(out, deps->any ? '?' : ',');
        str_add(out, type_words[dep->type]);
        if (dep->job_id)
            str_addf(out, ":%u", dep->job_id);
        if (dep->task != NO_TASK)
            str_addf(out, "_%u", dep->task);
        else if (dep->array)
            str_add(out, "_*");
        if (dep->minutes)
            str_addf(out, "+%u", dep->minutes);
        str_add(out, dep->failed ? "(failed)" : "(unfulfilled)");
    }
}

uint64_t deps_hash(const struct deps *deps)
{
    uint64_t hash = deps->any;

    for (size_t i = 0; i < deps->count; i++) {
        const struct dep *dep = &deps->items[i];
        uint64_t words[] = { dep->type, dep->failed, dep->job_id, dep->task, dep->minutes };
        hash = hash_bytes(words, sizeof(words), hash);
    }
    return hash;
}
