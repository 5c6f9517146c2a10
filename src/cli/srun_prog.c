// SPDX-License-Identifier: Apache-2.0
/*
 * srun_prog.c - which program each task of a step runs
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "cli/srun.h"
#include "sys/files.h"

enum { WORDS_MAX = 1024 };

static bool is_program(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISREG(about.st_mode) && access(path, X_OK) == 0;
}

/* As a shell here would find it (without work_dir: as it is, to be found in an image); what is not found goes as it is, and the node says so. */
char *srun_find_program(const char *name, const char *work_dir, struct arena *arena)
{
    const char *path = getenv("PATH"), *cursor = path ? path : "";
    struct span dir;

    if (name[0] == '/' || !work_dir)
        return arena_strdup(arena, name);
    if (strchr(name, '/'))
        return arena_printf(arena, "%s/%s", work_dir, name);
    while (str_next(&cursor, ":", &dir)) {
        char *full = arena_printf(arena, "%.*s/%s", (int)dir.len, dir.ptr, name);
        if (is_program(full))
            return full;
    }
    return arena_strdup(arena, name);
}

/* Words apart by blanks; quotes and backslashes as a shell has them. */
static size_t split_words(const char *line, char **words, struct arena *arena)
{
    size_t count = 0;

    while (count < WORDS_MAX) {
        struct str word = { 0 };
        char quote = '\0';
        bool any = false;

        while (isspace((unsigned char)*line))
            line++;
        for (; *line && (quote || !isspace((unsigned char)*line)); line++) {
            any = true;
            if (quote ? *line == quote : *line == '\'' || *line == '"')
                quote = quote ? '\0' : *line;
            else if (*line == '\\' && line[1] && quote != '\'')
                str_add_char(&word, *++line);
            else
                str_add_char(&word, *line);
        }
        if (any)
            words[count++] = arena_strdup(arena, str_text(&word));
        str_done(&word);
        if (!any)
            break;
    }
    return count;
}

/* %t is the task, %o its place among the tasks of the line. */
static char *fill_in(const char *word, uint32_t task, uint32_t offset, struct arena *arena)
{
    struct str out = { 0 };

    for (; *word; word++) {
        if (word[0] == '%' && word[1] == 't')
            str_add_u64(&out, task), word++;
        else if (word[0] == '%' && word[1] == 'o')
            str_add_u64(&out, offset), word++;
        else if (word[0] == '%' && word[1] == '%')
            str_add_char(&out, '%'), word++;
        else
            str_add_char(&out, *word);
    }
    char *text = arena_strdup(arena, str_text(&out));
    str_done(&out);
    return text;
}

struct reading {
    const char *work_dir;
    uint32_t ntasks;
    char **args; /* after the file's name, for every task */
    size_t arg_count;
    struct arena *arena;
    StepProgram **programs; /* by task; NULL: none so far */
};

static void set_program(struct reading *reading, uint32_t task, uint32_t offset, char **words,
                        size_t count)
{
    StepProgram *program = ARENA_NEW(reading->arena, StepProgram);

    step_program__init(program);
    program->n_tasks = 1;
    program->tasks = ARENA_ARRAY(reading->arena, uint32_t, 1);
    program->tasks[0] = task;
    program->args = ARENA_ARRAY(reading->arena, char *, count + reading->arg_count + 1);
    for (size_t i = 0; i < count; i++)
        program->args[program->n_args++] = fill_in(words[i], task, offset, reading->arena);
    for (size_t i = 0; i < reading->arg_count; i++)
        program->args[program->n_args++] = reading->args[i];
    program->args[0] = srun_find_program(program->args[0], reading->work_dir, reading->arena);
    reading->programs[task] = program;
}

static int read_line(struct reading *reading, const char *line, unsigned number, struct err *err)
{
    char **words = ARENA_ARRAY(reading->arena, char *, WORDS_MAX + 1);
    size_t count = split_words(line, words, reading->arena);
    const char *cursor;
    struct span part;
    uint32_t offset = 0;

    if (count == 0 || words[0][0] == '#')
        return 0;
    if (count == 1)
        return err_set(err, ERR_RANGE, "Line %u of the configuration file has no program", number);
    if (strcmp(words[0], "*") == 0) {
        for (uint32_t task = 0; task < reading->ntasks; task++) {
            if (!reading->programs[task])
                set_program(reading, task, offset++, words + 1, count - 1);
        }
        return 0;
    }
    cursor = words[0];
    while (str_next(&cursor, ",", &part)) {
        char *text = arena_strndup(reading->arena, part.ptr, part.len), *dash = strchr(text, '-');
        uint64_t first, last;
        if (dash)
            *dash = '\0';
        if (!str_to_u64(text, UINT32_MAX, &first) ||
            !str_to_u64(dash ? dash + 1 : text, UINT32_MAX, &last) || last < first)
            return err_set(err, ERR_RANGE, "Line %u of the configuration file: \"%s\" is no task",
                           number, words[0]);
        for (uint64_t task = first; task <= last && task < reading->ntasks; task++)
            set_program(reading, (uint32_t)task, offset++, words + 1, count - 1);
    }
    return 0;
}

int srun_read_programs(const char *path, const char *work_dir, uint32_t ntasks, char **args,
                       size_t arg_count, struct arena *arena, StepProgram ***out, size_t *count,
                       struct err *err)
{
    struct reading reading = { .work_dir = work_dir,
                               .ntasks = ntasks,
                               .args = args,
                               .arg_count = arg_count,
                               .arena = arena,
                               .programs = ARENA_ARRAY(arena, StepProgram *, ntasks + 1) };
    CLEANUP(str_done) struct str text = { 0 };
    unsigned number = 0;
    char *at, *line, *save = NULL;

    if (file_read(path, LIMIT_SCRIPT_BYTES, &text, NULL) < 0)
        return err_set(err, ERR_RANGE, "Could not open multi_prog config file %s", path);
    at = str_take(&text);
    for (char *join; (join = strstr(at, "\\\n"));)
        join[0] = join[1] = ' ';
    int ret = 0;
    for (line = strtok_r(at, "\n", &save); line && ret == 0; line = strtok_r(NULL, "\n", &save))
        ret = read_line(&reading, line, ++number, err);
    free(at);
    for (uint32_t task = 0; ret == 0 && task < ntasks; task++) {
        if (!reading.programs[task])
            ret = err_set(err, ERR_RANGE, "Configuration file %s invalid, no record for task id %u",
                          path, task);
    }
    *out = reading.programs;
    *count = ntasks;
    return ret;
}
