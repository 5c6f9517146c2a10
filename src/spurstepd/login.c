/* SPDX-License-Identifier: Apache-2.0 */
/*
 * login.c - the environment a user's login would give (--get-user-env, --export=NONE)
 *
 * The shell is asked for it by its name with a dash before, which makes every shell a login shell.
 * The answer comes on a descriptor of its own, so profiles may print what they like. The shell and
 * what it starts are processes of the step: in its cgroup, with its limits, ended with it.
 */
#include "spurstepd/login.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "spurstepd/rlimits.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/spawn.h"

enum { WAIT_DEFAULT_S = 8, ANSWER_FD = 3, LIMITS_MAX = RLIM_NLIMITS };

static const char *const inherited[] = { "HOME", "USER", "LOGNAME", "SHELL", "TZ" };

/* What the task will have too, under our own hard limits. */
static size_t task_limits(const StepTask *task, struct spawn_limit *out)
{
    size_t count = 0;
    struct rlimit now;

    for (size_t i = 0; i < task->n_rlimits && count < LIMITS_MAX; i++) {
        const Rlimit *limit = task->rlimits[i];
        int resource = rlimits_number(limit->name);
        if (resource < 0 || getrlimit((__rlimit_resource_t)resource, &now) < 0)
            continue;
        rlim_t hard = MIN(limit->has_hard ? limit->hard : limit->soft, now.rlim_max);
        out[count++] = (struct spawn_limit){
            .resource = resource,
            .limit = { .rlim_cur = MIN(limit->soft, hard), .rlim_max = hard },
        };
    }
    return count;
}

static int start_shell(const StepTask *task, int cgroup_fd, int answer_fd, pid_t *pid,
                       struct err *err)
{
    const char *base = strrchr(task->login_shell, '/');
    CLEANUP(freep) char *name = mem_printf("-%s", base ? base + 1 : task->login_shell);
    char command[] = "exec /bin/sh -c 'exec env -0 >&3'", flag[] = "-c";
    char path[] = "PATH=/usr/local/bin:/usr/bin:/bin", term[] = "TERM=dumb";
    char *argv[] = { name, flag, command, NULL };
    char *env[ARRAY_LEN(inherited) + 3] = { path, term };
    size_t count = 2;
    const JobOwner *owner = task->owner;
    const struct spawn_user user = {
        .uid = owner->uid, .gid = owner->gid, .groups = owner->gids, .group_count = owner->n_gids
    };
    struct spawn_limit limits[LIMITS_MAX];
    const struct spawn_fd fds[] = { { .from = answer_fd, .to = ANSWER_FD } };

    for (size_t i = 0; i < task->n_env; i++) {
        for (size_t k = 0; k < ARRAY_LEN(inherited); k++) {
            size_t len = strlen(inherited[k]);
            if (count < ARRAY_LEN(env) - 1 && strncmp(task->env[i], inherited[k], len) == 0 &&
                task->env[i][len] == '=')
                env[count++] = task->env[i];
        }
    }
    const struct spawn spec = { .path = task->login_shell,
                                .argv = argv,
                                .env = env,
                                .cwd = "/",
                                .user = task->change_user ? &user : NULL,
                                .fds = fds,
                                .fd_count = 1,
                                .limits = limits,
                                .limit_count = task_limits(task, limits),
                                .cgroup_fd = cgroup_fd,
                                .new_session = true };
    return spawn_start(&spec, pid, NULL, err);
}

static int read_answer(int fd, int64_t deadline_us, struct str *out, struct err *err)
{
    char part[4096];

    for (;;) {
        int64_t left_ms = (deadline_us - clock_mono_us()) / 1000;
        struct pollfd ready = { .fd = fd, .events = POLLIN };
        if (left_ms <= 0)
            return err_set(err, ERR_DEADLINE, "the login shell took too long");
        int count = poll(&ready, 1, (int)MIN(left_ms, 60000));
        if (count <= 0)
            continue;
        ssize_t len = read(fd, part, sizeof(part));
        if (len < 0 && errno != EINTR)
            return err_errno(err, errno, "login environment");
        if (len == 0)
            return 0;
        if (len > 0)
            str_add_len(out, part, (size_t)len);
        if (out->len > LIMIT_ENV_BYTES)
            return err_set(err, ERR_TOO_LARGE, "login environment");
    }
}

static char **split(const struct str *text)
{
    size_t count = 0, at = 0;

    for (size_t i = 0; i < text->len; i++)
        count += text->data[i] == '\0';
    char **env = NEW_ARRAY(char *, count + 1);
    for (const char *p = str_text(text), *end = p + text->len; p < end; p += strlen(p) + 1) {
        if (strchr(p, '=') && at < count)
            env[at++] = mem_strdup(p);
    }
    return env;
}

void login_free(char **env)
{
    for (size_t i = 0; env && env[i]; i++)
        free(env[i]);
    free(env);
}

int login_env(const StepTask *task, const struct contain *contain, char ***out, struct err *err)
{
    int pipe_fds[2];
    pid_t pid;
    struct str text = { 0 };
    unsigned wait_s = task->login_wait_s ? task->login_wait_s : WAIT_DEFAULT_S;

    if (pipe2(pipe_fds, O_CLOEXEC) < 0)
        return err_errno(err, errno, "pipe");
    int ret = start_shell(task, contain->cgroup_fd, pipe_fds[1], &pid, err);
    close(pipe_fds[1]);
    if (ret == 0) {
        ret = read_answer(pipe_fds[0], clock_mono_us() + wait_s * INT64_C(1000000), &text, err);
        kill(-pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close(pipe_fds[0]);
    if (ret == 0 && text.len == 0)
        ret = err_set(err, ERR_NOT_FOUND, "the login shell gave no environment");
    if (ret == 0)
        *out = split(&text);
    str_done(&text);
    return ret;
}
