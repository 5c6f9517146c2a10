/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hook.c - programs of the site that run as the agent
 */
#include "spurd/task/hook.h"

#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "spurd/task/env.h"
#include "sys/files.h"
#include "sys/spawn.h"

/* One program that runs. */
struct run {
    uv_poll_t poll;
    int pidfd;
    pid_t pid;
    struct hook *hook; /* NULL: nobody wants to know any more */
};

struct hook {
    uv_loop_t *uv;
    glob_t paths;
    size_t at;
    char **env;
    unsigned timeout_s;
    hook_done_fn done;
    void *ctx;
    struct run *run; /* NULL: between two */
    uv_timer_t timer;
    bool timed_out, cancelled;
    int cgroup_fd; /* -1: ours */
    char **first;  /* what runs before the paths; NULL: nothing, or it has run */
    char *name;    /* of what runs */
};

static void hook_closed(uv_handle_t *handle)
{
    struct hook *hook = handle->data;

    if (hook->paths.gl_pathv)
        globfree(&hook->paths);
    if (hook->first)
        env_list_free(hook->first);
    free(hook->name);
    file_close(&hook->cgroup_fd);
    env_list_free(hook->env);
    free(hook->ctx);
    free(hook);
}

static void run_closed(uv_handle_t *handle)
{
    struct run *run = handle->data;

    file_close(&run->pidfd);
    free(run);
}

static void close_hook(struct hook *hook)
{
    uv_timer_stop(&hook->timer);
    uv_close((uv_handle_t *)&hook->timer, hook_closed);
}

static void finish(struct hook *hook, int status, const struct err *err)
{
    hook->done(hook->ctx, status, err);
    close_hook(hook);
}

static void start_next(uv_timer_t *timer);

static void judge(struct hook *hook, int status)
{
    struct err err = { 0 };
    CLEANUP(str_done) struct str words = { 0 };
    const char *path = hook->name;

    if (hook->cancelled) {
        err_set(&err, ERR_CANCELLED, "%s was stopped", path);
    } else if (hook->timed_out) {
        err_set(&err, ERR_DEADLINE, "%s took longer than %u s", path, hook->timeout_s);
    } else if (status != 0) {
        spawn_describe(status, &words);
        err_set(&err, ERR_INTERNAL, "%s: %s", path, str_text(&words));
    } else if (hook->at < hook->paths.gl_pathc) {
        uv_timer_start(&hook->timer, start_next, 0, 0);
        return;
    }
    finish(hook, status, err.code ? &err : NULL);
}

static void on_exit_of(uv_poll_t *poll, int status, int events)
{
    struct run *run = poll->data;
    struct hook *hook = run->hook;
    int wait_status = 0;

    (void)status, (void)events;
    if (waitpid(run->pid, &wait_status, WNOHANG) == 0)
        return;
    kill(-run->pid, SIGKILL); /* what it left behind in its session */
    uv_poll_stop(poll);
    uv_close((uv_handle_t *)poll, run_closed);
    if (!hook)
        return;
    hook->run = NULL;
    uv_timer_stop(&hook->timer);
    judge(hook, wait_status);
}

static void on_timeout(uv_timer_t *timer)
{
    struct hook *hook = timer->data;

    hook->timed_out = true;
    if (hook->run)
        kill(-hook->run->pid, SIGKILL);
}

static void start_next(uv_timer_t *timer)
{
    struct hook *hook = timer->data;
    struct err err = { 0 };
    char **first = TAKE(hook->first);
    char *argv[] = { first ? first[0] : hook->paths.gl_pathv[hook->at++], NULL };
    const struct spawn spec = { .path = argv[0],
                                .argv = first ? first : argv,
                                .env = hook->env,
                                .cwd = "/",
                                .cgroup_fd = hook->cgroup_fd,
                                .new_session = true };
    struct run *run = NEW(struct run);

    free(hook->name);
    hook->name = mem_strdup(argv[0]);
    if (hook->cancelled)
        err_set(&err, ERR_CANCELLED, "%s was stopped", hook->name);
    bool started = !hook->cancelled && spawn_start(&spec, &run->pid, &run->pidfd, &err) == 0;
    if (first)
        env_list_free(first);
    if (!started) {
        free(run);
        finish(hook, 127 << 8, &err);
        return;
    }
    run->hook = hook;
    hook->run = run;
    uv_poll_init(hook->uv, &run->poll, run->pidfd);
    run->poll.data = run;
    uv_poll_start(&run->poll, UV_READABLE, on_exit_of);
    if (hook->timeout_s)
        uv_timer_start(&hook->timer, on_timeout, hook->timeout_s * UINT64_C(1000), 0);
}

struct hook *hook_start(uv_loop_t *uv, const char *path, char **env, unsigned timeout_s,
                        hook_done_fn done, void *ctx)
{
    struct hook *hook = NEW(struct hook);

    hook->uv = uv;
    hook->cgroup_fd = -1;
    hook->env = env;
    hook->timeout_s = timeout_s;
    hook->done = done;
    hook->ctx = ctx;
    /* A pattern that matches nothing stands for itself, and then fails as a missing program does. */
    if (!str_is_empty(path))
        glob(path, GLOB_NOCHECK, NULL, &hook->paths);
    uv_timer_init(uv, &hook->timer);
    hook->timer.data = hook;
    uv_timer_start(&hook->timer, start_next, 0, 0);
    return hook;
}

void hook_first(struct hook *hook, char **words)
{
    hook->first = words;
}

void hook_in_cgroup(struct hook *hook, int fd)
{
    file_close(&hook->cgroup_fd);
    hook->cgroup_fd = fd;
}

void hook_cancel(struct hook *hook)
{
    hook->cancelled = true;
    if (hook->run)
        kill(-hook->run->pid, SIGKILL);
}

void hook_abandon(struct hook *hook)
{
    if (hook->run) {
        kill(-hook->run->pid, SIGKILL);
        hook->run->hook = NULL;
    }
    close_hook(hook);
}
