// SPDX-License-Identifier: Apache-2.0
/*
 * submit_env.c - the environment and limits that a job takes along
 *
 * (1) Variables that begin with SLURM_ or SPANK_ always go, as in Slurm; all others only when asked.
 * (2) Without ALL the node starts from the user's login environment (get_user_env), except for NIL.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/vec.h"
#include "cli/submit.h"
#include "sys/files.h"

typedef VEC(char *) env_list;

static size_t name_len(const char *entry)
{
    return strcspn(entry, "=");
}

/* Sets or replaces. */
static void put(env_list *list, char *entry)
{
    size_t len = name_len(entry);

    vec_each (char *, old, list) {
        if (name_len(*old) == len && strncmp(*old, entry, len) == 0) {
            *old = entry;
            return;
        }
    }
    vec_push(list, entry);
}

static void drop(env_list *list, const char *name)
{
    size_t len = strlen(name), kept = 0;

    for (size_t i = 0; i < list->len; i++) {
        if (name_len(list->items[i]) != len || strncmp(list->items[i], name, len) != 0)
            list->items[kept++] = list->items[i];
    }
    list->len = kept;
}

static void put_all(env_list *list, char *const *from)
{
    for (; from && *from; from++) {
        if (strchr(*from, '='))
            vec_push(list, *from);
    }
}

static void put_ours(env_list *list, char *const *from)
{
    for (; from && *from; from++) {
        if (str_starts(*from, "SLURM_") || str_starts(*from, "SPANK_"))
            put(list, *from);
    }
}

static void put_named(env_list *list, char *const *from, const char *name, size_t len)
{
    for (; from && *from; from++) {
        if (name_len(*from) == len && strncmp(*from, name, len) == 0)
            put(list, *from);
    }
}

/* The next NAME or NAME=value; a value in quotes may hold commas. */
static char *next_export(const char **cursor, struct arena *arena)
{
    const char *at = *cursor;
    struct str word = { 0 };
    char *result, quote = '\0';

    while (*at == ',')
        at++;
    if (!*at)
        return NULL;
    for (; *at && (quote || *at != ','); at++) {
        if (quote ? *at == quote : *at == '\'' || *at == '"')
            quote = quote ? '\0' : *at;
        else if (*at == '\\' && at[1] == ',')
            str_add_char(&word, *++at);
        else
            str_add_char(&word, *at);
    }
    *cursor = at;
    result = arena_strdup(arena, str_text(&word));
    str_done(&word);
    return result;
}

static void put_listed(env_list *list, const char *export, char *const *from, struct arena *arena)
{
    const char *cursor = export;
    bool all = false;
    char *word;

    while ((word = next_export(&cursor, arena)))
        all |= strcasecmp(word, "ALL") == 0;
    if (all)
        put_all(list, from);
    put_ours(list, from); /* (1) */
    cursor = export;
    while ((word = next_export(&cursor, arena))) {
        if (strchr(word, '='))
            put(list, word);
        else if (strcasecmp(word, "ALL") != 0)
            put_named(list, from, word, strlen(word));
    }
}

/* A path, or the number of an open descriptor; entries end in NUL. */
static int put_file(env_list *list, const char *path, struct arena *arena, struct err *err)
{
    struct str text = { 0 };
    uint64_t number;
    int fd = str_to_u64(path, 1 << 20, &number) ? (int)number : open(path, O_RDONLY | O_CLOEXEC);
    int result = fd < 0 ? -1 : file_read_fd(fd, LIMIT_ENV_BYTES, &text, NULL);

    if (fd >= 0)
        close(fd);
    if (result < 0) {
        str_done(&text);
        return err_set(err, ERR_RANGE, "Could not open user environment file %s", path);
    }
    for (size_t at = 0; at < text.len; at += strlen(text.data + at) + 1) {
        if (strchr(text.data + at, '='))
            put(list, arena_strdup(arena, text.data + at));
    }
    str_done(&text);
    return 0;
}

static int take(env_list *list, struct arena *arena, JobPayload *payload, struct err *err)
{
    size_t bytes = 0;

    payload->n_env = list->len;
    payload->env = ARENA_ARRAY(arena, ProtobufCBinaryData, list->len + 1);
    for (size_t i = 0; i < list->len; i++) {
        payload->env[i].data = (uint8_t *)list->items[i];
        payload->env[i].len = strlen(list->items[i]);
        bytes += payload->env[i].len + 1;
    }
    if (list->len > LIMIT_ENV_COUNT || bytes > LIMIT_ENV_BYTES)
        return err_set(err, ERR_RANGE, "The environment is larger than %d variables or %d bytes",
                       LIMIT_ENV_COUNT, LIMIT_ENV_BYTES);
    return 0;
}

int submit_env(const struct submit_env *from, struct arena *arena, JobPayload *payload,
               struct err *err)
{
    const char *export = from->export;
    env_list list = { 0 };
    bool login = true; /* (2) */
    int result = 0;

    if (from->export_file) {
        result = put_file(&list, from->export_file, arena, err);
        login = false;
    } else if (str_is_empty(export) || str_ieq(export, "ALL")) {
        put_all(&list, from->env);
        login = false;
    } else if (str_ieq(export, "NIL")) {
        put_ours(&list, from->env);
        login = false;
    } else if (str_ieq(export, "NONE")) {
        put_ours(&list, from->env);
    } else {
        put_listed(&list, export, from->env, arena);
    }
    if (login) {
        payload->has_get_user_env = payload->get_user_env = true;
        put(&list, arena_strdup(arena, "SLURM_GET_USER_ENV=1"));
    }
    if (!str_is_empty(export) && !from->step)
        put(&list, arena_printf(arena, "SLURM_EXPORT_ENV=%s", export));
    if (from->step)
        drop(&list, "SLURM_EXPORT_ENV");
    if (from->submit_dir)
        put(&list, arena_printf(arena, "SLURM_SUBMIT_DIR=%s", from->submit_dir));
    if (from->submit_host)
        put(&list, arena_printf(arena, "SLURM_SUBMIT_HOST=%s", from->submit_host));
    if (result == 0)
        result = take(&list, arena, payload, err);
    vec_done(&list);
    return result;
}

static bool listed(const char *list, const char *name)
{
    const char *cursor = list;
    struct span word;

    while (str_next(&cursor, ",", &word)) {
        if (word.len > 7 && strncasecmp(word.ptr, "RLIMIT_", 7) == 0) {
            word.ptr += 7;
            word.len -= 7;
        }
        if (span_ieq(word, name) || span_ieq(word, "ALL"))
            return true;
    }
    return false;
}

void submit_rlimits(const char *propagate, struct arena *arena, JobPayload *payload)
{
    static const struct {
        const char *name;
        int number;
    } limits[] = {
        { "CPU", RLIMIT_CPU },     { "FSIZE", RLIMIT_FSIZE },   { "DATA", RLIMIT_DATA },
        { "STACK", RLIMIT_STACK }, { "CORE", RLIMIT_CORE },     { "RSS", RLIMIT_RSS },
        { "NPROC", RLIMIT_NPROC }, { "NOFILE", RLIMIT_NOFILE }, { "MEMLOCK", RLIMIT_MEMLOCK },
        { "AS", RLIMIT_AS },
    };

    payload->rlimits = ARENA_ARRAY(arena, Rlimit *, ARRAY_LEN(limits));
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        struct rlimit value;
        Rlimit *out;

        if (!listed(propagate ? propagate : "ALL", limits[i].name) ||
            getrlimit(limits[i].number, &value) < 0)
            continue;
        out = ARENA_NEW(arena, Rlimit);
        rlimit__init(out);
        out->name = (char *)limits[i].name;
        out->has_soft = out->has_hard = true;
        out->soft = value.rlim_cur;
        out->hard = value.rlim_max;
        payload->rlimits[payload->n_rlimits++] = out;
    }
}
