/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmix_start.c - srun --mpi=pmix: spurstepd-pmix begins before the tasks; what it leaves goes when they are gone
 *
 * (1) It is a process of the step like any other: held, limited and ended with it. Nothing waits for it to
 *     clean up; its directory is removed here, as the user, when nobody is left.
 * (2) Memory that Open MPI's tasks share is in that directory too, where it is in memory and the user has said
 *     nothing else. In /dev/shm it would outlive a step that is killed, and its names, made of host, step
 *     and local rank, would be the same for two of our nodes on one machine.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "spurstepd/pmix_priv.h"
#include "spurstepd/relay.h"
#include "spurstepd/start.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/spawn.h"

enum { READY_WAIT_MS = 60000, REMOVE_WAIT_S = 20 };

static int make_dir(struct pmix *pmix, struct err *err)
{
    const StepTask *task = pmix->tasks->task;

    pmix->dir = mem_strdup(task->tasks->mpi_dir);
    if (mkdir(pmix->dir, 0700) < 0)
        return err_errno(err, errno, "directory '%s'", pmix->dir);
    if (task->change_user && chown(pmix->dir, task->owner->uid, task->owner->gid) < 0)
        return err_errno(err, errno, "directory '%s'", pmix->dir);
    return 0;
}

/* As a task is, but without the user's settings: which libraries it loads is the site's choice. */
static int start_program(struct pmix *pmix, int socket_fd, int err_fd, struct err *err)
{
    StepTask bare = *pmix->tasks->task;
    char number[16], root[] = "/", option[] = "--fd";
    char *argv[] = { bare.tasks->mpi_program, option, number, NULL };
    CLEANUP(file_close) int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct start_task what = {
        .argv = argv, .fds = { null_fd, null_fd, err_fd }, .keep = &socket_fd, .keep_count = 1
    };
    struct started started;

    bare.n_env = bare.n_rlimits = bare.n_task_prolog = 0;
    bare.work_dir = root;
    bare.umask = 077;
    snprintf(number, sizeof(number), "%d", socket_fd);
    return start_task(&bare, &pmix->tasks->hold.contain, &what, &started, err);
}

static int start(struct pmix *pmix, struct err *err)
{
    int ends[2], words[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_errno(err, errno, "socket");
    if (pipe2(words, O_CLOEXEC) < 0) {
        int error = errno;
        close(ends[0]);
        close(ends[1]);
        return err_errno(err, error, "pipe");
    }
    int ret = start_program(pmix, ends[1], words[1], err);
    close(ends[1]);
    close(words[1]);
    pmix->fd = ends[0];
    pmix->err_fd = words[0];
    fcntl(pmix->err_fd, F_SETFL, O_NONBLOCK);
    tasks_watch(pmix->tasks, pmix->fd, pmix, pmix_on_program);
    tasks_watch(pmix->tasks, pmix->err_fd, pmix, pmix_on_words);
    return ret;
}

static void send_setup(struct pmix *pmix)
{
    const StepTask *task = pmix->tasks->task;
    PmixIn in = PMIX_IN__INIT;
    PmixSetup setup = PMIX_SETUP__INIT;

    setup.has_layout = setup.has_here = setup.has_uid = setup.has_gid = true;
    setup.layout = task->tasks->has_whole ? task->tasks->whole : task->tasks->layout;
    setup.here = pmix->tasks->relay->here;
    setup.dir = pmix->dir;
    setup.uid = task->change_user ? task->owner->uid : geteuid();
    setup.gid = task->change_user ? task->owner->gid : getegid();
    in.what_case = PMIX_IN__WHAT_SETUP;
    in.setup = &setup;
    pmix_tell(pmix, &in);
}

/* What it said on its standard error before it ended. */
static const char *first_words(struct pmix *pmix)
{
    char bytes[200];
    ssize_t len = read(pmix->err_fd, bytes, sizeof(bytes) - 1);

    if (len <= 0)
        return "";
    str_add(&pmix->words, ": ");
    str_add_visible(&pmix->words, bytes, (size_t)len);
    return str_text(&pmix->words);
}

/* Tasks cannot start before: they need its answer. */
static int wait_ready(struct pmix *pmix, struct err *err)
{
    int64_t until_us = clock_boot_us() + READY_WAIT_MS * INT64_C(1000);

    while (pmix->fd >= 0 && !pmix->ready && !pmix->failed) {
        int64_t left_ms = (until_us - clock_boot_us()) / 1000;
        struct pollfd ready = { .fd = pmix->fd,
                                .events = (short)(POLLIN | (pmix->out.len ? POLLOUT : 0)) };
        if (left_ms <= 0)
            return err_set(err, ERR_IO, "spurstepd-pmix is not ready after %d s",
                           READY_WAIT_MS / 1000);
        if (poll(&ready, 1, (int)left_ms) > 0)
            pmix_on_program(pmix->tasks, pmix, ready.revents);
    }
    if (pmix->failed)
        return err_set(err, ERR_IO, "%s", pmix->failed);
    if (!pmix->ready)
        return err_set(err, ERR_IO, "spurstepd-pmix has ended%s", first_words(pmix));
    pmix->began = true;
    return 0;
}

int pmix_begin(struct tasks *tasks, struct err *err)
{
    struct pmix *pmix = tasks->pmix = NEW(struct pmix);

    pmix->tasks = tasks;
    pmix->fd = pmix->err_fd = -1;
    pmix->here = NEW_ARRAY(bool, tasks->count);
    if (str_is_empty(tasks->task->tasks->mpi_program) || str_is_empty(tasks->task->tasks->mpi_dir))
        return err_set(err, ERR_UNSUPPORTED, "node %s has no spurstepd-pmix", tasks->task->node);
    if (make_dir(pmix, err) < 0 || start(pmix, err) < 0)
        return -(int)err->code;
    send_setup(pmix);
    return wait_ready(pmix, err);
}

static bool is_set(const StepTask *task, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < task->n_env; i++) {
        if (strncmp(task->env[i], name, len) == 0 && task->env[i][len] == '=')
            return true;
    }
    return false;
}

/* (2) */
static void share_memory(const struct pmix *pmix, struct step_plugin_task *one, struct arena *arena)
{
    static const char *const names[] = { "OMPI_MCA_btl_vader_backing_directory",
                                         "OMPI_MCA_btl_sm_backing_directory",
                                         "OMPI_MCA_osc_sm_backing_directory",
                                         "OMPI_MCA_osc_rdma_backing_directory" };
    const StepTask *task = pmix->tasks->task;
    struct statfs where;

    if (statfs(pmix->dir, &where) < 0 || where.f_type != TMPFS_MAGIC)
        return;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!is_set(task, names[i]))
            vec_push(&one->env, arena_printf(arena, "%s=%s/shm", names[i], pmix->dir));
    }
}

int pmix_task(struct tasks *tasks, struct step_plugin_task *one, struct arena *arena,
              struct err *err)
{
    struct pmix *pmix = tasks->pmix;
    const PmixReady *ready = pmix->ready->ready;

    for (size_t i = 0; i < ready->n_tasks; i++) {
        const PmixTaskEnv *env = ready->tasks[i];
        if (env->task != one->number)
            continue;
        for (size_t k = 0; k < env->n_env; k++)
            vec_push(&one->env, arena_strdup(arena, env->env[k]));
        share_memory(pmix, one, arena);
        if (one->index + 1 == tasks->count)
            pmix_out__free_unpacked(TAKE(pmix->ready), NULL);
        return 0;
    }
    return err_set(err, ERR_BAD_MESSAGE, "spurstepd-pmix does not know task %u", one->number);
}

/* ---- the end ---- */

static void remove_content(const char *path)
{
    DIR *dir = chdir(path) == 0 ? opendir(".") : NULL;
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        if (!str_eq(entry->d_name, ".") && !str_eq(entry->d_name, ".."))
            file_remove_tree(entry->d_name, NULL);
    }
}

/* (1) */
static void remove_dir(const struct pmix *pmix)
{
    const StepTask *task = pmix->tasks->task;
    const JobOwner *owner = task->owner;
    struct spawn_user user = {
        .uid = owner->uid, .gid = owner->gid, .groups = owner->gids, .group_count = owner->n_gids
    };
    pid_t pid = fork();

    if (pid == 0) {
        alarm(REMOVE_WAIT_S);
        if (task->change_user && spawn_become(&user, NULL) < 0)
            _exit(1);
        remove_content(pmix->dir);
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    rmdir(pmix->dir);
}

void pmix_end(struct tasks *tasks)
{
    struct pmix *pmix = TAKE(tasks->pmix);

    if (!pmix)
        return;
    int *fds[] = { &pmix->fd, &pmix->err_fd };
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        if (*fds[i] >= 0)
            tasks_unwatch(tasks, *fds[i]);
        file_close(fds[i]);
    }
    if (pmix->dir)
        remove_dir(pmix);
    if (pmix->ready)
        pmix_out__free_unpacked(pmix->ready, NULL);
    str_done(&pmix->in);
    str_done(&pmix->out);
    str_done(&pmix->words);
    free(pmix->failed);
    free(pmix->here);
    free(pmix->dir);
    free(pmix);
}
