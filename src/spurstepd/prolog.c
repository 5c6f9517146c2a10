/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prolog.c - task prolog and task epilog
 */
#include "spurstepd/prolog.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/limits.h"
#include "base/str.h"
#include "spurstepd/rlimits.h"
#include "spurstepd/start.h"
#include "sys/files.h"
#include "sys/spawn.h"

enum { SECOND_US = 1000000 };

char **prolog_argv(const StepTask *task, char *const *argv)
{
    size_t count = 0, n = 0;

    if (task->n_task_prolog == 0)
        return NULL;
    while (argv[count])
        count++;
    char **list = NEW_ARRAY(char *, task->n_task_prolog + count + 4);
    list[n++] = (char *)"spurstepd";
    list[n++] = (char *)"--task";
    for (size_t i = 0; i < task->n_task_prolog; i++)
        list[n++] = task->task_prolog[i];
    list[n++] = (char *)"--";
    memcpy(list + n, argv, count * sizeof(*list));
    return list;
}

/* ---- what a prolog says ---- */

static char **find(char **env, const char *name, size_t len)
{
    for (; *env; env++) {
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            break;
    }
    return env;
}

static void put(char ***env, const char *entry)
{
    char **at = find(*env, entry, strcspn(entry, "="));

    if (!*at) {
        size_t count = (size_t)(at - *env);
        char **more = NEW_ARRAY(char *, count + 2);
        memcpy(more, *env, count * sizeof(*more));
        free(*env);
        *env = more;
        at = more + count;
    }
    free(*at);
    *at = mem_strdup(entry);
}

static void take_away(char **env, const char *name)
{
    char **at = find(env, name, strlen(name));

    free(*at);
    for (; *at; at++)
        *at = at[1];
}

const char *prolog_line(char *line, char ***env)
{
    char *word = line + strspn(line, " \t");
    char *rest = word + strcspn(word, " \t");

    if (!*rest)
        return NULL;
    *rest++ = '\0';
    if (strcmp(word, "print") == 0)
        return rest;
    rest = str_trim(rest);
    if (strcmp(word, "export") == 0 && strchr(rest, '=') && *rest != '=')
        put(env, rest);
    else if (strcmp(word, "unset") == 0 && *rest)
        take_away(*env, rest);
    return NULL;
}

static void obey(struct str *said, char ***env)
{
    char *cursor = said->data;

    while (cursor && *cursor) {
        char *line = cursor, *end = cursor + strcspn(cursor, "\n");
        cursor = *end ? end + 1 : end;
        *end = '\0';
        const char *text = prolog_line(line, env);
        if (text)
            printf("%s\n", text);
    }
    fflush(stdout);
}

/* ---- in the task's process ---- */

static void complain(const char *path, const char *text)
{
    fprintf(stderr, "slurmstepd: error: task_prolog %s: %s\n", path, text);
}

/* Until the prolog ends: what it left in the background may hold the pipe. */
static int read_all(int fd, int pidfd, struct str *out, struct err *err)
{
    char part[4096];

    for (bool ended = false;;) {
        struct pollfd ready[] = { { .fd = fd, .events = POLLIN },
                                  { .fd = pidfd, .events = POLLIN } };
        if (!ended && poll(ready, ARRAY_LEN(ready), -1) < 0 && errno != EINTR)
            return err_errno(err, errno, "poll");
        ended = ended || ready[1].revents;
        ssize_t len = read(fd, part, sizeof(part));
        if (len == 0 || (len < 0 && errno == EAGAIN && ended))
            return 0;
        if (len < 0 && errno != EINTR && errno != EAGAIN)
            return err_errno(err, errno, "read");
        if (len > 0 && out->len + (size_t)len > LIMIT_ENV_BYTES)
            return err_set(err, ERR_TOO_LARGE, "it writes more than %d bytes", LIMIT_ENV_BYTES);
        if (len > 0)
            str_add_len(out, part, (size_t)len);
    }
}

/* The task's number under another name, and its limits; `task`: it is not us. */
static void add_numbers(char *const *env, const StepTask *task, struct arena *arena, char **out)
{
    char *const *number = find((char **)env, "SLURM_PROCID", strlen("SLURM_PROCID"));
    const char *name;
    struct rlimit limit;

    if (*number)
        *out++ = arena_printf(arena, "SLURM_GTID=%s", *number + strlen("SLURM_PROCID="));
    for (size_t i = 0; (name = rlimits_name(i)); i++) {
        if (getrlimit((__rlimit_resource_t)rlimits_number(name), &limit) < 0)
            continue;
        for (size_t k = 0; task && k < task->n_rlimits; k++) { /* which it got, and we have not */
            if (strcmp(task->rlimits[k]->name, name) == 0)
                limit.rlim_cur = task->rlimits[k]->soft;
        }
        *out++ = limit.rlim_cur == RLIM_INFINITY ? arena_printf(arena, "SLURM_RLIMIT_%s=-1", name)
                                                 : arena_printf(arena, "SLURM_RLIMIT_%s=%llu", name,
                                                                (unsigned long long)limit.rlim_cur);
    }
}

static int run_one(char *path, char **env, struct str *said, int *status, struct err *err)
{
    CLEANUP(freep) char **own = NULL;
    char *argv[] = { path, NULL }, context[] = "SLURM_SCRIPT_CONTEXT=prolog_task";
    size_t count = 0;
    int ends[2], pidfd = -1;
    struct arena arena;
    pid_t pid;

    while (env[count])
        count++;
    arena_init(&arena);
    own = NEW_ARRAY(char *, count + RLIMITS_MAX + 3);
    memcpy(own, env, count * sizeof(*own));
    own[count++] = context;
    add_numbers(env, NULL, &arena, own + count);
    if (pipe2(ends, O_CLOEXEC) < 0) {
        arena_done(&arena);
        return err_errno(err, errno, "pipe");
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    const struct spawn_fd fds[] = { { .from = ends[1], .to = 1 }, { .from = 2, .to = 2 } };
    const struct spawn spec = {
        .path = path, .argv = argv, .env = own, .fds = fds, .fd_count = ARRAY_LEN(fds)
    };
    int ret = spawn_start(&spec, &pid, &pidfd, err);
    close(ends[1]);
    if (ret == 0) {
        ret = read_all(ends[0], pidfd, said, err);
        if (ret < 0)
            kill(pid, SIGKILL);
        while (waitpid(pid, status, 0) < 0 && errno == EINTR)
            ;
        close(pidfd);
    }
    close(ends[0]);
    arena_done(&arena);
    return ret;
}

static int code_of(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static char **copy_env(void)
{
    extern char **environ;
    size_t count = 0;

    while (environ[count])
        count++;
    char **env = NEW_ARRAY(char *, count + 1);
    for (size_t i = 0; i < count; i++)
        env[i] = mem_strdup(environ[i]);
    return env;
}

static void free_env(char ***env)
{
    for (char **at = *env; *at; at++)
        free(*at);
    free(*env);
}

int prolog_main(int argc, char **argv)
{
    CLEANUP(free_env) char **env = copy_env();
    int at = 0;

    for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
        CLEANUP(str_done) struct str said = { 0 };
        struct err err = { 0 };
        int status = 0;
        if (run_one(argv[at], env, &said, &status, &err) < 0) {
            complain(argv[at], err.text);
            return 1;
        }
        obey(&said, &env);
        if (status != 0) {
            CLEANUP(str_done) struct str words = { 0 };
            spawn_describe(status, &words);
            complain(argv[at], str_text(&words));
            return code_of(status);
        }
    }
    if (at + 1 >= argc)
        return 2;
    execve(argv[at + 1], argv + at + 1, env);
    int error = errno;
    fprintf(stderr, "slurmstepd: error: execve(): %s: %s\n", argv[at + 1], strerror(error));
    return error;
}

/* ---- epilogs ---- */

bool epilog_start(struct epilog *epilog, const StepTask *task, struct contain *contain,
                  char *const *own_env, int64_t now_us)
{
    char context[] = "SLURM_SCRIPT_CONTEXT=epilog_task";
    size_t count = 0;

    epilog->pid = 0;
    if (epilog->next >= task->n_task_epilog)
        return false;
    while (own_env[count])
        count++;
    CLEANUP(freep) char **env = NEW_ARRAY(char *, count + RLIMITS_MAX + 3);
    CLEANUP(arena_done) struct arena arena;
    CLEANUP(file_close) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    env[0] = context;
    memcpy(env + 1, own_env, count * sizeof(*env));
    arena_init(&arena);
    add_numbers(own_env, task, &arena, env + count + 1);
    while (epilog->next < task->n_task_epilog) {
        char *path = task->task_epilog[epilog->next++], *argv[] = { path, NULL };
        const struct start_task what = {
            .argv = argv, .env = env, .no_prolog = true, .fds = { null_fd, null_fd, null_fd }
        };
        struct started started;
        struct err err = { 0 };
        epilog->kill_at_us = now_us + EPILOG_WAIT_S * (int64_t)SECOND_US;
        if (start_task(task, contain, &what, &started, &err) == 0) {
            epilog->pid = started.pid;
            return true;
        }
        fprintf(stderr, "spurstepd: %u.%s: task_epilog %s: %s\n", task->id->job_id, task->name,
                path, err.text);
    }
    return false;
}

void epilog_check(struct epilog *epilog, int64_t now_us)
{
    if (epilog->pid && now_us >= epilog->kill_at_us) {
        kill(-epilog->pid, SIGKILL);
        epilog->kill_at_us = now_us + SECOND_US;
    }
}
