/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrapper.c - what the commands of PBS and LSF share
 */
#include "cli/wrapper.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/release.h"
#include "base/util.h"
#include "sys/files.h"

void wrapper_init(struct wrapper *wrapper, const char *name, const char *program)
{
    const char *slash = strrchr(name, '/');

    *wrapper = (struct wrapper){ .name = slash ? slash + 1 : name };
    arena_init(&wrapper->arena);
    wrapper_add(wrapper, "%s", program);
}

void wrapper_done(struct wrapper *wrapper)
{
    vec_done(&wrapper->words);
    arena_done(&wrapper->arena);
}

void wrapper_add(struct wrapper *wrapper, const char *fmt, ...)
{
    struct str text = { 0 };
    va_list args;

    va_start(args, fmt);
    str_vaddf(&text, fmt, args);
    va_end(args);
    vec_push(&wrapper->words, arena_strdup(&wrapper->arena, str_text(&text)));
    str_done(&text);
}

int wrapper_error(const struct wrapper *wrapper, const char *fmt, ...)
{
    va_list args;

    fprintf(stderr, "%s: error: ", wrapper->name);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    return 1;
}

/* ---- options ---- */

static void print_help(const struct wrapper *wrapper, const struct wrapper_table *table)
{
    printf("Usage: %s %s\n%s\n\n", wrapper->name, table->usage, table->about);
    for (size_t i = 0; i < table->count; i++) {
        const struct wrapper_option *row = &table->rows[i];
        printf("  %-6s %-7s %s%s\n", row->name, row->has_value ? "VALUE" : "",
               row->ours  ? "as "
               : row->why ? "refused: "
                          : "",
               row->ours  ? row->ours
               : row->why ? row->why
                          : "changes what is shown or done");
    }
}

static void add_ours(struct wrapper *wrapper, const char *ours, const char *value)
{
    const char *at = strstr(ours, "%s");

    if (at)
        wrapper_add(wrapper, "%.*s%s", (int)(at - ours), ours, value);
    else
        wrapper_add(wrapper, "%s", ours);
}

static int take(struct wrapper *wrapper, const struct wrapper_option *row, const char *value,
                const char *flags[128])
{
    if (row->why)
        return wrapper_error(wrapper, "%s is not supported: %s", row->name, row->why);
    if (row->flag)
        flags[(unsigned char)row->flag] = value;
    if (row->ours)
        add_ours(wrapper, row->ours, value);
    return -1;
}

static const struct wrapper_option *find(const struct wrapper_table *table, const char *word)
{
    for (size_t i = 0; i < table->count; i++) {
        if (str_eq(table->rows[i].name, word))
            return &table->rows[i];
    }
    return NULL;
}

int wrapper_read(struct wrapper *wrapper, const struct wrapper_table *table, int argc, char **argv,
                 int *used, const char *flags[128])
{
    int i = 0, code = -1;

    while (code < 0 && i < argc && argv[i][0] == '-' && argv[i][1]) {
        const struct wrapper_option *row = find(table, argv[i]);
        if (str_eq(argv[i], "--help")) {
            print_help(wrapper, table);
            return 0;
        }
        if (str_eq(argv[i], "--version")) {
            puts("slurm " SLURM_RELEASE);
            return 0;
        }
        if (!row)
            return wrapper_error(wrapper, "'%s' is not an option here; '%s --help' lists them",
                                 argv[i], wrapper->name);
        if (row->has_value && i + 1 == argc)
            return wrapper_error(wrapper, "%s needs a value", argv[i]);
        code = take(wrapper, row, row->has_value ? argv[i + 1] : "", flags);
        i += row->has_value ? 2 : 1;
    }
    *used = i;
    return code;
}

/* ---- calling ---- */

int wrapper_call(struct wrapper *wrapper, int (*run)(int argc, char **argv))
{
    int argc = (int)wrapper->words.len;

    vec_push(&wrapper->words, NULL);
    return run(argc, wrapper->words.items);
}

int wrapper_capture(struct wrapper *wrapper, int (*run)(int argc, char **argv), struct str *out)
{
    CLEANUP(file_close) int memory = memfd_create("list", MFD_CLOEXEC);
    CLEANUP(file_close) int kept = dup(STDOUT_FILENO);
    struct err err = { 0 };

    fflush(stdout);
    if (memory < 0 || kept < 0 || dup2(memory, STDOUT_FILENO) < 0)
        return wrapper_error(wrapper, "%s", strerror(errno));
    int code = wrapper_call(wrapper, run);
    fflush(stdout);
    dup2(kept, STDOUT_FILENO);
    lseek(memory, 0, SEEK_SET);
    if (file_read_fd(memory, INT32_MAX, out, &err) < 0)
        return wrapper_error(wrapper, "%s", err.text);
    return code;
}

int wrapper_give_input(struct wrapper *wrapper, const char *text, size_t len)
{
    CLEANUP(file_close) int memory = memfd_create("script", MFD_CLOEXEC);

    for (size_t done = 0; memory >= 0 && done < len;) {
        ssize_t wrote = write(memory, text + done, len - done);
        if (wrote < 0)
            return wrapper_error(wrapper, "%s", strerror(errno));
        done += (size_t)wrote;
    }
    if (memory < 0 || lseek(memory, 0, SEEK_SET) < 0 || dup2(memory, STDIN_FILENO) < 0)
        return wrapper_error(wrapper, "%s", strerror(errno));
    return -1;
}

/* ---- texts ---- */

const char *wrapper_job_id(struct wrapper *wrapper, const char *text)
{
    size_t len = strcspn(text, ".[");
    const char *task = text[len] == '[' ? text + len + 1 : "";
    size_t task_len = strcspn(task, "]");

    return task_len
               ? arena_printf(&wrapper->arena, "%.*s_%.*s", (int)len, text, (int)task_len, task)
               : arena_strndup(&wrapper->arena, text, len);
}

void wrapper_fields(char *line, char **fields, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        fields[i] = line;
        line += strcspn(line, "|");
        if (*line)
            *line++ = '\0';
    }
}
