/* SPDX-License-Identifier: Apache-2.0 */
/*
 * items.c - spank_get_item() and the questions that need no job
 */
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "base/release.h"
#include "spank/host_priv.h"

/* What an item is and where it may be asked for. */
enum kind {
    KIND_VERSION,
    KIND_JOB,
    KIND_TASK,
};

enum {
    IN_LOCAL = 1,
    IN_ALLOCATOR = 2,
    IN_JOB_SCRIPT = 4,
    IN_ALL = 7,
};

static const struct {
    enum kind kind;
    unsigned in; /* besides the remote context */
} items[] = {
    [S_JOB_UID] = { KIND_JOB, IN_ALL },
    [S_JOB_GID] = { KIND_JOB, IN_ALL },
    [S_JOB_ID] = { KIND_JOB, IN_LOCAL | IN_JOB_SCRIPT },
    [S_JOB_STEPID] = { KIND_JOB, IN_LOCAL },
    [S_JOB_NNODES] = { KIND_JOB, IN_LOCAL },
    [S_JOB_NODEID] = { KIND_JOB, 0 },
    [S_JOB_LOCAL_TASK_COUNT] = { KIND_JOB, 0 },
    [S_JOB_TOTAL_TASK_COUNT] = { KIND_JOB, IN_LOCAL },
    [S_JOB_NCPUS] = { KIND_JOB, 0 },
    [S_JOB_ARGV] = { KIND_JOB, IN_LOCAL },
    [S_JOB_ENV] = { KIND_JOB, IN_LOCAL },
    [S_TASK_ID] = { KIND_TASK, 0 },
    [S_TASK_GLOBAL_ID] = { KIND_TASK, 0 },
    [S_TASK_EXIT_STATUS] = { KIND_TASK, 0 },
    [S_TASK_PID] = { KIND_TASK, 0 },
    [S_JOB_PID_TO_GLOBAL_ID] = { KIND_JOB, 0 },
    [S_JOB_PID_TO_LOCAL_ID] = { KIND_JOB, 0 },
    [S_JOB_LOCAL_TO_GLOBAL_ID] = { KIND_JOB, 0 },
    [S_JOB_GLOBAL_TO_LOCAL_ID] = { KIND_JOB, 0 },
    [S_JOB_SUPPLEMENTARY_GIDS] = { KIND_JOB, 0 },
    [S_SLURM_VERSION] = { KIND_VERSION, IN_ALL },
    [S_SLURM_VERSION_MAJOR] = { KIND_VERSION, IN_ALL },
    [S_SLURM_VERSION_MINOR] = { KIND_VERSION, IN_ALL },
    [S_SLURM_VERSION_MICRO] = { KIND_VERSION, IN_ALL },
    [S_STEP_CPUS_PER_TASK] = { KIND_JOB, 0 },
    [S_JOB_ALLOC_CORES] = { KIND_JOB, 0 },
    [S_JOB_ALLOC_MEM] = { KIND_JOB, 0 },
    [S_STEP_ALLOC_CORES] = { KIND_JOB, 0 },
    [S_STEP_ALLOC_MEM] = { KIND_JOB, 0 },
    [S_SLURM_RESTART_COUNT] = { KIND_JOB, 0 },
    [S_JOB_ARRAY_ID] = { KIND_JOB, 0 },
    [S_JOB_ARRAY_TASK_ID] = { KIND_JOB, 0 },
};

/* ---- may it be asked for ---- */

static spank_err_t check(spank_t handle, spank_item_t item)
{
    const struct spank_host *host = handle->host;

    if (items[item].kind == KIND_VERSION)
        return ESPANK_SUCCESS;
    switch (host->where) {
    case SPANK_REMOTE:
        return host->job ? ESPANK_SUCCESS : ESPANK_NOT_AVAIL;
    case SPANK_LOCAL:
        if (!(items[item].in & IN_LOCAL))
            return ESPANK_NOT_REMOTE;
        return host->job ? ESPANK_SUCCESS : ESPANK_NOT_AVAIL;
    case SPANK_ALLOCATOR:
        if (!(items[item].in & IN_ALLOCATOR))
            return ESPANK_NOT_REMOTE;
        return host->job ? ESPANK_SUCCESS : ESPANK_BAD_ARG;
    case SPANK_JOB_SCRIPT:
        return items[item].in & IN_JOB_SCRIPT && host->job ? ESPANK_SUCCESS : ESPANK_NOT_AVAIL;
    case SPANK_SLURMD:
        break;
    }
    return ESPANK_NOT_AVAIL;
}

/* ---- what it is ---- */

static spank_err_t get_version(spank_item_t item, va_list args)
{
    static const char *const texts[] = { SLURM_RELEASE, SLURM_RELEASE_MAJOR, SLURM_RELEASE_MINOR,
                                         SLURM_RELEASE_MICRO };

    *va_arg(args, const char **) = texts[item - S_SLURM_VERSION];
    return ESPANK_SUCCESS;
}

static spank_err_t get_task(spank_t handle, spank_item_t item, va_list args)
{
    const struct spank_task *task =
        handle->task >= 0 && (size_t)handle->task < handle->host->job->task_count
            ? &handle->host->job->tasks[handle->task]
            : NULL;

    if (!task)
        return ESPANK_NOT_TASK;
    if (item == S_TASK_ID) {
        *va_arg(args, int *) = handle->task;
    } else if (item == S_TASK_GLOBAL_ID) {
        *va_arg(args, uint32_t *) = task->number;
    } else if (item == S_TASK_PID) {
        if (!task->pid)
            return ESPANK_NOT_EXECD;
        *va_arg(args, pid_t *) = task->pid;
    } else {
        if (!task->exited)
            return ESPANK_NOT_EXECD;
        *va_arg(args, int *) = task->status;
    }
    return ESPANK_SUCCESS;
}

/* From one name of a task to another. */
static spank_err_t get_other(const struct spank_job *job, spank_item_t item, va_list args)
{
    bool by_pid = item == S_JOB_PID_TO_GLOBAL_ID || item == S_JOB_PID_TO_LOCAL_ID;
    pid_t pid = by_pid ? va_arg(args, pid_t) : 0;
    uint32_t number = by_pid ? 0 : va_arg(args, uint32_t);
    uint32_t *out = va_arg(args, uint32_t *);

    if (!out)
        return ESPANK_BAD_ARG;
    *out = (uint32_t)-1;
    for (size_t i = 0; i < job->task_count; i++) {
        const struct spank_task *task = &job->tasks[i];
        if (by_pid                             ? task->pid != pid || !pid
            : item == S_JOB_LOCAL_TO_GLOBAL_ID ? i != number
                                               : task->number != number)
            continue;
        *out = item == S_JOB_PID_TO_GLOBAL_ID || item == S_JOB_LOCAL_TO_GLOBAL_ID ? task->number
                                                                                  : (uint32_t)i;
        return ESPANK_SUCCESS;
    }
    return ESPANK_NOEXIST;
}

/* The list of plugins' callers ends with NULL. */
static char **env_list(struct spank_env *env)
{
    vec_reserve(&env->list, env->list.len + 1);
    env->list.items[env->list.len] = NULL;
    return env->list.items;
}

static spank_err_t get_list(const struct spank_host *host, spank_item_t item, va_list args)
{
    const struct spank_job *job = host->job;

    if (item == S_JOB_ARGV) {
        *va_arg(args, int *) = job->argc;
        *va_arg(args, char ***) = job->argv;
    } else if (item == S_JOB_ENV) {
        if (!host->env)
            return ESPANK_NOT_AVAIL;
        *va_arg(args, char ***) = env_list(host->env);
    } else {
        *va_arg(args, gid_t **) = job->gids;
        *va_arg(args, int *) = job->gid_count;
    }
    return ESPANK_SUCCESS;
}

static spank_err_t get_number(const struct spank_job *job, spank_item_t item, va_list args)
{
    static const struct {
        spank_item_t item;
        size_t offset;
    } numbers[] = {
        { S_JOB_ID, offsetof(struct spank_job, job_id) },
        { S_JOB_STEPID, offsetof(struct spank_job, step_id) },
        { S_JOB_NNODES, offsetof(struct spank_job, nnodes) },
        { S_JOB_NODEID, offsetof(struct spank_job, node_id) },
        { S_JOB_TOTAL_TASK_COUNT, offsetof(struct spank_job, total_tasks) },
        { S_STEP_CPUS_PER_TASK, offsetof(struct spank_job, cpus_per_task) },
        { S_SLURM_RESTART_COUNT, offsetof(struct spank_job, restarts) },
        { S_JOB_ARRAY_ID, offsetof(struct spank_job, array_id) },
        { S_JOB_ARRAY_TASK_ID, offsetof(struct spank_job, array_task) },
    };

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (numbers[i].item != item)
            continue;
        memcpy(va_arg(args, uint32_t *), (const char *)job + numbers[i].offset, sizeof(uint32_t));
        return ESPANK_SUCCESS;
    }
    return ESPANK_BAD_ARG;
}

static spank_err_t get_job(spank_t handle, spank_item_t item, va_list args)
{
    const struct spank_job *job = handle->host->job;

    switch (item) {
    case S_JOB_UID:
        *va_arg(args, uid_t *) = job->uid;
        break;
    case S_JOB_GID:
        *va_arg(args, gid_t *) = job->gid;
        break;
    case S_JOB_LOCAL_TASK_COUNT:
        *va_arg(args, uint32_t *) = (uint32_t)job->task_count;
        break;
    case S_JOB_NCPUS:
        *va_arg(args, uint16_t *) = job->cpus;
        break;
    case S_JOB_ALLOC_CORES:
        *va_arg(args, const char **) = job->job_cores;
        break;
    case S_STEP_ALLOC_CORES:
        *va_arg(args, const char **) = job->step_cores;
        break;
    case S_JOB_ALLOC_MEM:
        *va_arg(args, uint64_t *) = job->job_mem_mb;
        break;
    case S_STEP_ALLOC_MEM:
        *va_arg(args, uint64_t *) = job->step_mem_mb;
        break;
    case S_JOB_ARGV:
    case S_JOB_ENV:
    case S_JOB_SUPPLEMENTARY_GIDS:
        return get_list(handle->host, item, args);
    case S_JOB_PID_TO_GLOBAL_ID:
    case S_JOB_PID_TO_LOCAL_ID:
    case S_JOB_LOCAL_TO_GLOBAL_ID:
    case S_JOB_GLOBAL_TO_LOCAL_ID:
        return get_other(job, item, args);
    default:
        return get_number(job, item, args);
    }
    return ESPANK_SUCCESS;
}

spank_err_t spank_get_item(spank_t handle, spank_item_t item, ...)
{
    va_list args;

    if (!spank_handle_valid(handle) || (unsigned)item >= ARRAY_LEN(items))
        return ESPANK_BAD_ARG;
    spank_err_t result = check(handle, item);
    if (result != ESPANK_SUCCESS)
        return result;
    va_start(args, item);
    result = items[item].kind == KIND_VERSION ? get_version(item, args)
             : items[item].kind == KIND_TASK  ? get_task(handle, item, args)
                                              : get_job(handle, item, args);
    va_end(args);
    return result;
}

/* ---- without a job ---- */

spank_context_t spank_context(void)
{
    return spank_host_only ? (spank_context_t)spank_host_only->where : S_CTX_ERROR;
}

int spank_remote(spank_t handle)
{
    if (!spank_handle_valid(handle))
        return -1;
    return handle->host->where == SPANK_REMOTE;
}

int spank_symbol_supported(const char *symbol)
{
    if (str_is_empty(symbol))
        return -1;
    for (int i = 0; i < SPANK_CALLS; i++) {
        if (strcmp(spank_host_call_name((enum spank_call)i), symbol) == 0)
            return 1;
    }
    return 0;
}

const char *spank_strerror(spank_err_t error)
{
    static const struct {
        int code;
        const char *text;
    } texts[] = {
        { ESPANK_SUCCESS, "Success" },
        { ESPANK_ERROR, "The call failed" },
        { ESPANK_BAD_ARG, "An argument is not valid" },
        { ESPANK_NOT_TASK, "There is no task in this callback" },
        { ESPANK_ENV_EXISTS, "The variable is already set" },
        { ESPANK_ENV_NOEXIST, "The variable is not set" },
        { ESPANK_NOSPACE, "The buffer is too small" },
        { ESPANK_NOT_REMOTE, "Only possible in the remote context" },
        { ESPANK_NOEXIST, "This node has no such task" },
        { ESPANK_NOT_EXECD, "The task has not started or not ended yet" },
        { ESPANK_NOT_AVAIL, "Not available in this callback" },
        { ESPANK_NOT_LOCAL, "Only possible where the job is asked for" },
        { ESPANK_NODE_FAILURE, "The node failed" },
        { ESPANK_JOB_FAILURE, "The job failed" },
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        if (texts[i].code == (int)error)
            return texts[i].text;
    }
    return "Unknown";
}
