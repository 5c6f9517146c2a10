/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spank_step.c - calls SPANK plugins in a step: the remote context; of spurstepd-spank alone
 *
 * The stack is loaded in the supervisor and inherited by the process of each task, where it is called with a copy of its
 * memory: what a plugin notes there, the supervisor and other tasks do not see. That is as in Slurm.
 *
 * Options come as variables of the step's environment (cli/plugins.c). Those named _SPUR... are taken out of it.
 */
#include "spurstepd/spank_step.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "spank/host.h"
#include "spurstepd/step_spank.h"
#include "sys/identity.h"

#define OWN_PREFIX "_SPUR"

enum { GROUPS_MAX = 1024, DEBUG_ERROR = 2 };

static struct {
    struct spank_host *host;
    struct spank_job job;
    struct spank_env env;
    StepTask *task;
    void (*say)(void *owner, const char *text);
    void *owner;
    int say_fd;     /* in the process of a task; -1: use `say` */
    bool started;   /* of a script: its output file is there */
    struct str due; /* lines from before */
} now = { .say_fd = -1 };

/* ---- what plugins say ---- */

static void flush_due(void)
{
    char *line, *rest = now.due.len ? now.due.data : NULL;

    while (rest && (line = strsep(&rest, "\n")))
        if (*line)
            now.say(now.owner, line);
    str_done(&now.due);
    now.due = (struct str){ 0 };
}

static void say(void *ctx, enum spank_log_level level, const char *text)
{
    unsigned shown = now.task && now.task->tasks ? now.task->tasks->debug : DEBUG_ERROR;
    char line[4200];

    (void)ctx;
    if (level == SPANK_LOG_PLAIN)
        snprintf(line, sizeof(line), "%s", text);
    else
        snprintf(line, sizeof(line), "slurmstepd: %s%s", level == SPANK_LOG_ERROR ? "error: " : "",
                 text);
    if (level != SPANK_LOG_PLAIN && level > MAX(shown, (unsigned)DEBUG_ERROR)) {
        if (level <= SPANK_LOG_INFO && now.task && now.say_fd < 0)
            fprintf(stderr, "spurstepd-spank: %u.%s: %s\n", now.task->id->job_id, now.task->name,
                    text);
        return;
    }
    if (now.say_fd >= 0)
        dprintf(now.say_fd, "%s\n", line);
    else if (!now.task->tasks && !now.started)
        str_addf(&now.due, "%s\n", line);
    else
        now.say(now.owner, line);
}

/* ---- the beginning ---- */

static void fill_job(StepTask *task)
{
    const StepSpank *more = task->spank;
    static char *script[LIMIT_ARGS_COUNT + 2];
    struct spank_job *job = &now.job;

    *job = (struct spank_job){
        .uid = task->owner->uid,
        .gid = task->owner->gid,
        .job_id = task->id->job_id,
        .step_id = task->id->step,
        .nnodes = more->nnodes,
        .node_id = more->node_id,
        .total_tasks = more->ntasks,
        .cpus = (uint16_t)MIN(more->cpus, (uint32_t)UINT16_MAX),
        .cpus_per_task = more->cpus_per_task,
        .gids = task->owner->gids,
        .gid_count = (int)task->owner->n_gids,
        .job_cores = more->job_cores,
        .step_cores = more->step_cores,
        .job_mem_mb = more->job_mem_mb,
        .step_mem_mb = more->step_mem_mb,
        .restarts = more->restarts,
        .array_id = more->array_job,
        .array_task = more->array_task,
        .task_count = task->tasks ? task->tasks->n_list : 1,
    };
    job->tasks = NEW_ARRAY(struct spank_task, job->task_count);
    for (size_t i = 0; task->tasks && i < job->task_count; i++)
        job->tasks[i].number = task->tasks->list[i]->number;
    if (task->tasks) {
        const StepTaskOne *first = task->tasks->list[0];
        memcpy(script, first->args, first->n_args * sizeof(char *));
        job->argc = (int)first->n_args;
    } else {
        script[0] = mem_printf("%s/slurm_script", task->dir);
        for (size_t i = 0; i < task->n_args && i < LIMIT_ARGS_COUNT; i++)
            script[i + 1] = task->args[i];
        job->argc = (int)task->n_args + 1;
    }
    job->argv = script;
}

static void drop_own(void)
{
    for (size_t i = 0; i < spank_host_option_count(now.host); i++) {
        CLEANUP(freep)
        char *name = mem_printf(OWN_PREFIX "%s", spank_host_option(now.host, i)->variable);
        spank_env_unset(&now.env, name);
    }
}

/* As the user, in the job's directory, and back again. */
static int call_as_user(StepTask *task, struct err *err)
{
    static gid_t groups[GROUPS_MAX];
    int count = getgroups(GROUPS_MAX, groups);
    gid_t gid = getegid();

    if (count < 0)
        return err_errno(err, errno, "groups");
    if (task->change_user) {
        int failed = identity_take(task->owner->uid, task->owner->gid, task->owner->gids,
                                   task->owner->n_gids);
        if (failed) {
            identity_return(gid, groups, (size_t)count);
            return err_errno(err, failed, "the identity of the job's user");
        }
    }
    if (chdir(task->work_dir) < 0)
        spank_host_log(say, NULL); /* the task says so itself; plugins run in / */
    int ret = spank_host_call(now.host, SPANK_USER_INIT, -1, err);
    if (chdir("/") < 0)
        ret = ret < 0 ? ret : err_errno(err, errno, "/");
    if (task->change_user)
        identity_return(gid, groups, (size_t)count);
    return ret;
}

static int begin(StepTask *task, void (*say_line)(void *owner, const char *text), void *owner,
                 struct err *err)
{
    struct plugstack_place place = { .file = task->spank->plugstack,
                                     .dirs = task->spank->plugin_dirs };

    now.task = task;
    now.say = say_line;
    now.owner = owner;
    spank_host_log(say, NULL);
    fill_job(task);
    spank_env_copy(&now.env, task->env, task->n_env);
    now.host = spank_host_open(SPANK_REMOTE, &place, NULL, &now.job, &now.env, err);
    if (!now.host)
        return -(int)err->code;
    int ret = spank_host_set_options_from(now.host, &now.env, OWN_PREFIX, err);
    if (ret == 0)
        ret = spank_host_set_options_from(now.host, &now.env, "", err);
    drop_own();
    if (ret == 0)
        ret = spank_host_call(now.host, SPANK_INIT_POST_OPT, -1, err);
    if (ret == 0)
        ret = call_as_user(task, err);
    task->env = now.env.list.items;
    task->n_env = now.env.list.len;
    return ret;
}

/* ---- a task ---- */

static char **ended_copy(const struct spank_env *list)
{
    char **copy = NEW_ARRAY(char *, list->list.len + 1);

    if (list->list.len)
        memcpy(copy, list->list.items, list->list.len * sizeof(char *));
    return copy;
}

static size_t length(char *const *list)
{
    size_t count = 0;

    while (list[count])
        count++;
    return count;
}

/* Its own environment and program, which plugins may change. */
static bool call_task(struct step_spank_task *task, enum spank_call call)
{
    struct spank_env env = { 0 }, words = { 0 };
    struct err err = { 0 };

    now.say_fd = task->say_fd;
    now.job.tasks[task->index].pid = getpid();
    spank_env_copy(&env, task->env, length(task->env));
    spank_host_set_job(now.host, &now.job, &env);
    spank_host_set_prepend(now.host, &words);
    bool good = spank_host_call(now.host, call, (int)task->index, &err) == 0;
    if (!good)
        say(NULL, SPANK_LOG_ERROR, err.text);
    task->env = ended_copy(&env);
    if (words.list.len) {
        spank_env_copy(&words, task->argv, length(task->argv));
        task->argv = ended_copy(&words);
        task->argv_changed = true;
    }
    return good;
}

static bool privileged(struct step_spank_task *task)
{
    return call_task(task, SPANK_TASK_INIT_PRIVILEGED);
}

static bool user(struct step_spank_task *task)
{
    return call_task(task, SPANK_TASK_INIT);
}

static int post_fork(size_t index, pid_t pid, struct err *err)
{
    now.job.tasks[index].pid = pid;
    if (!now.started && !now.task->tasks)
        flush_due();
    now.started = true;
    return spank_host_call(now.host, SPANK_TASK_POST_FORK, (int)index, err);
}

static void exited(size_t index, int status)
{
    struct err err = { 0 };

    if (!now.host)
        return;
    now.job.tasks[index].exited = true;
    now.job.tasks[index].status = status;
    if (spank_host_call(now.host, SPANK_TASK_EXIT, (int)index, &err) < 0)
        say(NULL, SPANK_LOG_ERROR, err.text);
}

static void end(void)
{
    struct err err = { 0 };

    if (!now.host)
        return;
    if (spank_host_call(now.host, SPANK_EXIT, -1, &err) < 0)
        say(NULL, SPANK_LOG_ERROR, err.text);
    spank_host_close(TAKE(now.host));
}

static const struct step_spank hooks = {
    .begin = begin,
    .privileged = privileged,
    .post_fork = post_fork,
    .user = user,
    .exited = exited,
    .end = end,
};

void spank_step_use(void)
{
    step_spank = &hooks;
}
