/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugstack.c - reads plugstack.conf
 */
#include "spank/plugstack.h"

#include <ctype.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "sys/files.h"

#ifndef SPANK_PLUGIN_DIR
#define SPANK_PLUGIN_DIR "/usr/local/lib/spur/spank"
#endif

enum { WORDS_MAX = 128, CONF_LINES_BYTES = 4096 };

struct reading {
    struct plugstack *out;
    const char *dirs;
    unsigned depth;
};

static int read_one(struct reading *reading, const char *path, struct err *err);

/* ---- where it is ---- */

/* `key = "value"` or `Key=value`: true, with the value in *value, to be freed. */
static bool read_setting(char *line, char **key, char **value)
{
    char *equals = strchr(line, '=');

    *key = str_trim(line);
    if (**key == '#' || !equals)
        return false;
    *equals = '\0';
    *key = str_trim(*key);
    char *text = str_trim(equals + 1);
    char *end = *text == '"' || *text == '\'' ? strchr(text + 1, *text) : NULL;
    *value = end ? mem_strndup(text + 1, (size_t)(end - text - 1))
                 : mem_strndup(text, strcspn(text, " \t#"));
    return true;
}

static void scan_conf(const char *path, struct plugstack_place *out)
{
    FILE *file = fopen(path, "re");
    char *line = NULL, *key, *value;
    size_t room = 0;

    while (file && getline(&line, &room, file) >= 0) {
        if (!strcasestr(line, "plug")) /* most lines */
            continue;
        line[strcspn(line, "\r\n")] = '\0';
        if (!read_setting(line, &key, &value))
            continue;
        char **to = strcmp(key, "plugstack") == 0 || str_ieq(key, "PlugStackConfig") ? &out->file
                    : strcmp(key, "plugin_dir") == 0 || str_ieq(key, "PluginDir")    ? &out->dirs
                                                                                     : NULL;
        if (to) {
            free(*to);
            *to = TAKE(value);
        }
        free(value);
    }
    free(line);
    if (file)
        fclose(file);
}

void plugstack_find(const char *conf_path, struct plugstack_place *out)
{
    const char *env = getenv("SPUR_PLUGSTACK"), *slash = strrchr(conf_path, '/');

    *out = (struct plugstack_place){ 0 };
    scan_conf(conf_path, out);
    if (!str_is_empty(env)) {
        free(out->file);
        out->file = mem_strdup(env);
    }
    if (!out->file)
        out->file = slash ? mem_printf("%.*s/plugstack.conf", (int)(slash - conf_path), conf_path)
                          : mem_strdup("plugstack.conf");
    if (!out->dirs)
        out->dirs = mem_strdup(SPANK_PLUGIN_DIR ":/usr/lib64/slurm:/usr/lib/slurm");
}

void plugstack_place_done(struct plugstack_place *place)
{
    free(place->file);
    free(place->dirs);
    *place = (struct plugstack_place){ 0 };
}

/* ---- lines ---- */

static size_t split(struct arena *arena, const char *line, char **words)
{
    const char *cursor = line;
    struct span word;
    size_t count = 0;

    while (count < WORDS_MAX && str_next(&cursor, " \t\r", &word)) {
        if (word.ptr[0] == '#')
            break;
        words[count++] = arena_strndup(arena, word.ptr, word.len);
    }
    return count;
}

static const char *find_plugin(struct reading *reading, const char *name)
{
    const char *cursor = reading->dirs;
    struct span dir;

    if (name[0] == '/')
        return name;
    while (cursor && str_next(&cursor, ":", &dir)) {
        char *path = arena_printf(&reading->out->arena, "%.*s/%s", (int)dir.len, dir.ptr, name);
        if (access(path, F_OK) == 0)
            return path;
    }
    return NULL;
}

static int add_plugin(struct reading *reading, bool required, char **words, size_t count,
                      struct err *err)
{
    struct plugstack_entry entry = { .required = required, .name = words[1] };
    struct arena *arena = &reading->out->arena;

    if (reading->out->list.len == PLUGSTACK_MAX)
        return err_set(err, ERR_TOO_MANY, "more than %d plugins", PLUGSTACK_MAX);
    entry.path = find_plugin(reading, words[1]);
    entry.argc = (int)count - 2;
    entry.argv = ARENA_ARRAY(arena, char *, count);
    memcpy(entry.argv, words + 2, (count - 2) * sizeof(char *));
    vec_push(&reading->out->list, entry);
    return 0;
}

static int include(struct reading *reading, const char *from, const char *pattern, bool quiet,
                   struct err *err)
{
    const char *slash = strrchr(from, '/');
    glob_t found = { 0 };
    CLEANUP(freep)
    char *path = pattern[0] == '/' || !slash
                     ? mem_strdup(pattern)
                     : mem_printf("%.*s/%s", (int)(slash - from), from, pattern);
    int ret = 0;

    if (reading->depth >= PLUGSTACK_DEPTH_MAX)
        return err_set(err, ERR_CONFIG, "files include each other more than %d deep",
                       PLUGSTACK_DEPTH_MAX);
    if (glob(path, 0, NULL, &found) != 0 && !quiet && !strpbrk(pattern, "*?["))
        ret = err_set(err, ERR_CONFIG, "include: there is no file '%s'", path);
    for (size_t i = 0; ret == 0 && i < found.gl_pathc; i++)
        ret = read_one(reading, found.gl_pathv[i], err);
    globfree(&found);
    return ret;
}

static int read_line(struct reading *reading, const char *path, const char *line, struct err *err)
{
    char *words[WORDS_MAX];
    size_t count = split(&reading->out->arena, line, words);

    if (count == 0)
        return 0;
    if (count == WORDS_MAX)
        return err_set(err, ERR_TOO_MANY, "more than %d words", WORDS_MAX - 1);
    if (strcmp(words[0], "include") == 0 && count == 2)
        return include(reading, path, words[1], false, err);
    bool required = strcmp(words[0], "required") == 0;
    if (count >= 2 && (required || strcmp(words[0], "optional") == 0))
        return add_plugin(reading, required, words, count, err);
    return err_set(
        err, ERR_SYNTAX,
        "'%s' is not 'required PLUGIN [ARGUMENT...]', 'optional PLUGIN [ARGUMENT...]' or "
        "'include FILE'",
        line);
}

static int read_lines(struct reading *reading, const char *path, char *text, struct err *err)
{
    unsigned number = 0;
    char *line;

    while ((line = strsep(&text, "\n"))) {
        number++;
        if (read_line(reading, path, line, err) < 0)
            return err_wrap(err, "%s:%u", path, number);
    }
    return 0;
}

static int read_one(struct reading *reading, const char *path, struct err *err)
{
    CLEANUP(str_done) struct str text = { 0 };
    int ret = plugstack_check_owner(path, err);

    if (ret == 0)
        ret = file_read(path, PLUGSTACK_FILE_BYTES, &text, err);
    if (ret < 0)
        return err_wrap(err, "plugstack '%s'", path);
    CLEANUP(freep) char *lines = str_take(&text);
    reading->depth++;
    ret = read_lines(reading, path, lines, err);
    reading->depth--;
    return ret;
}

/* ---- the whole ---- */

int plugstack_read(const struct plugstack_place *place, struct plugstack *out, struct err *err)
{
    struct reading reading = { .out = out, .dirs = place->dirs };
    CLEANUP(freep) char *more = mem_printf("%s.d/*.conf", place->file);
    int ret = 0;

    *out = (struct plugstack){ 0 };
    arena_init(&out->arena);
    if (access(place->file, F_OK) == 0 || errno != ENOENT)
        ret = read_one(&reading, place->file, err);
    if (ret == 0)
        ret = include(&reading, place->file, more, true, err);
    if (ret < 0)
        plugstack_done(out);
    return ret;
}

void plugstack_done(struct plugstack *stack)
{
    vec_done(&stack->list);
    arena_done(&stack->arena);
}

bool plugstack_is_used(const struct plugstack_place *place)
{
    CLEANUP(freep) char *more = mem_printf("%s.d", place->file);
    struct plugstack stack;
    struct err err = { 0 };

    if (access(place->file, F_OK) < 0 && errno == ENOENT && access(more, F_OK) < 0 &&
        errno == ENOENT)
        return false;
    if (plugstack_read(place, &stack, &err) < 0)
        return true;
    bool used = stack.list.len > 0;
    plugstack_done(&stack);
    return used;
}
