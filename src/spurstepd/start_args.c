/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start_args.c - arguments and environment of a process that is about to start
 */
#include "spurstepd/start_args.h"

#include <string.h>

#include "base/str.h"

static bool env_is(const char *entry, const char *name, size_t len)
{
    return strncmp(entry, name, len) == 0 && entry[len] == '=';
}

char **start_env(const StepTask *task, char pid_text[START_PID_BYTES], char *const *own_env,
                 char *const *login)
{
    size_t login_count = 0, own_count = 0, n = 0;

    while (login && login[login_count])
        login_count++;
    while (own_env && own_env[own_count])
        own_count++;
    char **env = NEW_ARRAY(char *, task->n_env + own_count + login_count + 2);
    strcpy(pid_text, "SLURM_TASK_PID=");
    env[n++] = pid_text;
    for (size_t i = 0; i < own_count; i++)
        env[n++] = own_env[i];
    size_t fixed = n;
    for (size_t i = 0; i < task->n_env; i++) {
        bool present = false;
        for (size_t k = 0; k < fixed && !present; k++)
            present = env_is(task->env[i], env[k], strcspn(env[k], "="));
        if (!present)
            env[n++] = task->env[i];
    }
    size_t own = n;
    for (size_t i = 0; i < login_count; i++) {
        const char *equals = strchr(login[i], '=');
        bool present = !equals;
        for (size_t k = 0; k < own && !present; k++)
            present = env_is(env[k], login[i], (size_t)(equals - login[i]));
        if (!present)
            env[n++] = login[i];
    }
    return env;
}

char **start_argv(const StepTask *task, const char *script, char *const *before)
{
    char **argv = NEW_ARRAY(char *, task->n_args + 4);
    size_t n = 0;

    for (; before && before[n]; n++)
        argv[n] = before[n];
    argv[n++] = (char *)script;
    for (size_t i = 0; i < task->n_args; i++)
        argv[n++] = task->args[i];
    return argv;
}

char **start_wrapped(const StepTask *task, const char *script, char *const *interpreter)
{
    CLEANUP(freep) char **inner = start_argv(task, script, interpreter);
    size_t count = 0;

    while (inner[count])
        count++;
    char **argv = NEW_ARRAY(char *, task->n_wrapper + count + 1);
    memcpy(argv, task->wrapper, task->n_wrapper * sizeof(char *));
    memcpy(argv + task->n_wrapper, inner, count * sizeof(char *));
    return argv;
}

bool start_shebang(const StepTask *task, char line[START_SHEBANG_BYTES], char *out[3])
{
    size_t len = MIN(task->script.len, (size_t)START_SHEBANG_BYTES - 1);

    memcpy(line, task->script.data, len);
    line[len] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "#!", 2) != 0)
        return false;
    out[0] = str_trim(line + 2);
    out[1] = out[0] + strcspn(out[0], " \t");
    if (*out[1])
        *out[1]++ = '\0';
    out[1] += strspn(out[1], " \t");
    out[1] = *out[1] ? out[1] : NULL;
    out[2] = NULL;
    return *out[0] != '\0';
}
