/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.c - the job's environment and the job-control environment, as plugins change them
 */
#include <stdlib.h>
#include <string.h>

#include "spank/host_priv.h"

static size_t find(const struct spank_env *env, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < env->list.len; i++) {
        if (strncmp(env->list.items[i], name, len) == 0 && env->list.items[i][len] == '=')
            return i;
    }
    return env->list.len;
}

const char *spank_env_get(const struct spank_env *env, const char *name)
{
    size_t at = find(env, name);

    return at < env->list.len ? env->list.items[at] + strlen(name) + 1 : NULL;
}

void spank_env_set(struct spank_env *env, const char *name, const char *value)
{
    size_t at = find(env, name);
    char *entry = mem_printf("%s=%s", name, value);

    if (at == env->list.len) {
        vec_push(&env->list, entry);
        return;
    }
    free(env->list.items[at]);
    env->list.items[at] = entry;
}

bool spank_env_unset(struct spank_env *env, const char *name)
{
    size_t at = find(env, name);

    if (at == env->list.len)
        return false;
    free(env->list.items[at]);
    vec_remove(&env->list, at);
    return true;
}

void spank_env_copy(struct spank_env *env, char *const *from, size_t count)
{
    for (size_t i = 0; i < count; i++)
        vec_push(&env->list, mem_strdup(from[i]));
}

void spank_env_done(struct spank_env *env)
{
    vec_each (char *, entry, &env->list)
        free(*entry);
    vec_done(&env->list);
    *env = (struct spank_env){ 0 };
}

/* ---- what plugins call ---- */

static spank_err_t get(const struct spank_env *env, const char *name, char *buf, int len)
{
    const char *value = spank_env_get(env, name);

    if (!value)
        return ESPANK_ENV_NOEXIST;
    if (strlen(value) >= (size_t)len)
        return ESPANK_NOSPACE;
    strcpy(buf, value);
    return ESPANK_SUCCESS;
}

static spank_err_t set(struct spank_env *env, const char *name, const char *value, int overwrite)
{
    if (!overwrite && spank_env_get(env, name))
        return ESPANK_ENV_EXISTS;
    spank_env_set(env, name, value);
    return ESPANK_SUCCESS;
}

static bool good_name(const char *name)
{
    return !str_is_empty(name) && !strchr(name, '=');
}

/* The job's environment is there in the remote context. */
static spank_err_t check(spank_t handle)
{
    if (!spank_handle_valid(handle))
        return ESPANK_BAD_ARG;
    if (handle->host->where != SPANK_REMOTE)
        return ESPANK_NOT_REMOTE;
    return handle->host->env ? ESPANK_SUCCESS : ESPANK_BAD_ARG;
}

spank_err_t spank_getenv(spank_t handle, const char *var, char *buf, int len)
{
    spank_err_t bad = check(handle);

    if (bad != ESPANK_SUCCESS)
        return bad;
    if (!good_name(var) || !buf || len <= 0)
        return ESPANK_BAD_ARG;
    return get(handle->host->env, var, buf, len);
}

spank_err_t spank_setenv(spank_t handle, const char *var, const char *val, int overwrite)
{
    spank_err_t bad = check(handle);

    if (bad != ESPANK_SUCCESS)
        return bad;
    if (!good_name(var) || !val)
        return ESPANK_BAD_ARG;
    return set(handle->host->env, var, val, overwrite);
}

spank_err_t spank_unsetenv(spank_t handle, const char *var)
{
    spank_err_t bad = check(handle);

    if (bad != ESPANK_SUCCESS)
        return bad;
    if (!good_name(var))
        return ESPANK_BAD_ARG;
    spank_env_unset(handle->host->env, var);
    return ESPANK_SUCCESS;
}

/* The job-control environment is made where the job is asked for. */
static spank_err_t check_control(spank_t handle)
{
    if (!spank_handle_valid(handle))
        return ESPANK_BAD_ARG;
    return handle->host->where == SPANK_LOCAL || handle->host->where == SPANK_ALLOCATOR
               ? ESPANK_SUCCESS
               : ESPANK_NOT_LOCAL;
}

spank_err_t spank_job_control_getenv(spank_t handle, const char *name, char *buf, int len)
{
    spank_err_t bad = check_control(handle);

    if (bad != ESPANK_SUCCESS)
        return bad;
    if (!good_name(name) || !buf || len <= 0)
        return ESPANK_BAD_ARG;
    return get(&handle->host->control, name, buf, len);
}

spank_err_t spank_job_control_setenv(spank_t handle, const char *name, const char *value,
                                     int overwrite)
{
    spank_err_t bad = check_control(handle);

    if (bad != ESPANK_SUCCESS)
        return bad;
    if (!good_name(name) || !value)
        return ESPANK_BAD_ARG;
    return set(&handle->host->control, name, value, overwrite);
}

spank_err_t spank_job_control_unsetenv(spank_t handle, const char *name)
{
    spank_err_t bad = check_control(handle);

    if (bad != ESPANK_SUCCESS)
        return bad;
    if (!good_name(name))
        return ESPANK_BAD_ARG;
    spank_env_unset(&handle->host->control, name);
    return ESPANK_SUCCESS;
}

spank_err_t spank_prepend_task_argv(spank_t handle, int argc, const char *argv[])
{
    if (!spank_handle_valid(handle) || argc <= 0 || !argv)
        return ESPANK_BAD_ARG;
    if (handle->host->where != SPANK_REMOTE)
        return ESPANK_NOT_REMOTE;
    if (!handle->host->prepend ||
        (handle->call != SPANK_TASK_INIT && handle->call != SPANK_TASK_INIT_PRIVILEGED))
        return ESPANK_NOT_TASK;
    struct spank_env words = { 0 };
    spank_env_copy(&words, (char *const *)argv, (size_t)argc);
    spank_env_copy(&words, handle->host->prepend->list.items, handle->host->prepend->list.len);
    spank_env_done(handle->host->prepend);
    *handle->host->prepend = words;
    return ESPANK_SUCCESS;
}
