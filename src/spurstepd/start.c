/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.c - the script becomes a process of its user
 *
 * (1) The child shares our memory until it executes: it writes only to struct child, takes nothing
 *     from the heap and calls the kernel by system calls that keep no state in the C library.
 * (2) We wait for it, so it may not wait for ever: a timer ends an open() that hangs.
 * (3) Where there are plugins (step_spank.h) the child has memory of its own, because they may do anything. It then sends
 *     us its struct child when it is ready, or has failed, and waits to be told to go on.
 */
#include "spurstepd/start.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "base/vec.h"
#include "spurstepd/private.h"
#include "spurstepd/prolog.h"
#include "spurstepd/rlimits.h"
#include "spurstepd/start_args.h"
#include "spurstepd/start_bind.h"
#include "spurstepd/step_spank.h"
#include "sys/files.h"
#include "sys/identity.h"
#include "sys/spawn.h"

#define CHILD __attribute__((no_sanitize("address", "undefined"), noinline))

enum { ROOT_GROUPS_MAX = 256, SAY_WAIT_MS = 200, OPEN_AGAIN_MS = 50, OPEN_TRIES = 60 };

struct child {
    const StepTask *task;
    const char *script;
    int cgroup_fd;
    bool must_join;
    char **argv, **env;
    bool has_fds; /* a task of srun: `fds` are open */
    bool terminal;
    const int *keep; /* descriptors that stay open */
    size_t keep_count;
    char **with_prolog; /* argv of what runs the prolog first; NULL: there is none */
    char **by_hand;     /* argv with the interpreter before it; NULL: the script names none */
    gid_t *groups;
    struct start_bind bind;
    const StepTaskOne *one; /* NULL: a script */
    int mem_error;
    struct private_dirs dirs;
    char pid_text[START_PID_BYTES]; /* SLURM_TASK_PID=… */
    int fds[3];
    const char *failed; /* what, when it failed */
    const char *path;   /* on which file */
    int error;
    bool by_user;
    bool no_dir; /* went to /tmp */
    int rlimits_refused;
    const char *refused;
    size_t index;        /* of the task on this node */
    int ready_fd, go_fd; /* with plugins: where it says that it waits, and for what; else -1 */
    gid_t root_gid, *root_groups;
    size_t root_group_count;
};

CHILD static bool fail(struct child *child, const char *what, const char *path, bool by_user)
{
    child->error = errno;
    child->failed = what;
    child->path = path;
    child->by_user = by_user;
    return false;
}

CHILD static bool join_cgroup(struct child *child)
{
    int fd = openat(child->cgroup_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, "0", 1) == 1;

    if (fd >= 0)
        close(fd);
    return ok || fail(child, "cgroup", NULL, false);
}

/*
 * As the user, so a hard limit of this node is never raised. A soft limit that fits under it is set;
 * one that does not is refused, which the caller warns of.
 */
CHILD static bool set_rlimit(int resource, const Rlimit *limit)
{
    struct rlimit now, value = { .rlim_cur = limit->soft, .rlim_max = limit->hard };

    if (!limit->has_hard)
        value.rlim_max = limit->soft;
    if (syscall(SYS_prlimit64, 0, resource, &value, NULL) == 0)
        return true;
    if (syscall(SYS_prlimit64, 0, resource, NULL, &now) < 0 || value.rlim_cur > now.rlim_max)
        return false;
    value.rlim_max = now.rlim_max;
    return syscall(SYS_prlimit64, 0, resource, &value, NULL) == 0;
}

CHILD static void set_rlimits(struct child *child)
{
    for (size_t i = 0; i < child->task->n_rlimits; i++) {
        const Rlimit *limit = child->task->rlimits[i];
        int resource = rlimits_number(limit->name);

        if (resource >= 0 && set_rlimit(resource, limit))
            continue;
        if (child->rlimits_refused++ == 0)
            child->refused = limit->name;
    }
}

/* Effective only: see start.h. */
CHILD static bool take_identity(struct child *child)
{
    const JobOwner *owner = child->task->owner;

    if (!child->task->change_user)
        return true;
    errno = identity_take(owner->uid, owner->gid, child->groups, owner->n_gids);
    return errno == 0 || fail(child, "could not take the identity of the job's user", NULL, false);
}

/* For good: real and saved too. Nothing of root is needed for it. */
CHILD static bool set_identity(struct child *child)
{
    const JobOwner *owner = child->task->owner;

    if (!child->task->change_user)
        return true;
    if (syscall(SYS_setresgid, owner->gid, owner->gid, owner->gid) < 0)
        return fail(child, "setgid", NULL, false);
    if (syscall(SYS_setresuid, owner->uid, owner->uid, owner->uid) < 0)
        return fail(child, "setuid", NULL, false);
    return true;
}

CHILD static bool enter_dir(const char *path)
{
    int fd = identity_open(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    bool ok = fd >= 0 && syscall(SYS_fchdir, fd) == 0;
    int error = errno;

    if (fd >= 0)
        syscall(SYS_close, fd);
    errno = error;
    return ok;
}

/* A FIFO without a reader or a dead file server ends us here instead of holding the step (2). */
CHILD static void watch_open(bool on)
{
    struct itimerval timer = { .it_value.tv_sec = on ? START_OPEN_WAIT_S : 0 };
    uint64_t alarm_only = UINT64_C(1) << (SIGALRM - 1);

    syscall(SYS_setitimer, ITIMER_REAL, &timer, NULL);
    syscall(SYS_rt_sigprocmask, on ? SIG_UNBLOCK : SIG_BLOCK, &alarm_only, NULL,
            sizeof(alarm_only));
}

/* The folder of a batch job's output may be made just after sbatch returned: tried for some seconds. */
CHILD static int open_soon(const char *path, int flags)
{
    const struct timespec pause = { .tv_nsec = OPEN_AGAIN_MS * 1000000 };

    for (int tries = 0;; tries++) {
        int fd = identity_open(AT_FDCWD, path, flags, 0666);
        if (fd >= 0 || errno != ENOENT || tries == OPEN_TRIES)
            return fd;
        syscall(SYS_nanosleep, &pause, NULL);
        errno = ENOENT;
    }
}

CHILD static bool open_files(struct child *child)
{
    const StepTask *task = child->task;
    int out_flags = O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_CLOEXEC;
    const char *in = task->std_in ? task->std_in : "/dev/null";

    if (!task->open_append)
        out_flags |= O_TRUNC;
    child->failed = "Could not open a file in time"; /* until proven wrong */
    child->by_user = true;
    child->error = ETIMEDOUT;
    if (!enter_dir(task->work_dir)) {
        child->no_dir = true;
        child->error = errno;
        if (chdir("/tmp") < 0)
            return fail(child, "chdir", "/tmp", false);
    }
    if (child->has_fds) {
        if (child->one && child->one->std_in) {
            child->fds[0] =
                identity_open(AT_FDCWD, child->one->std_in, O_RDONLY | O_NOCTTY | O_CLOEXEC, 0);
            if (child->fds[0] < 0)
                return fail(child, "Could not open stdin file", child->one->std_in, true);
        }
        child->failed = NULL;
        return true;
    }
    child->fds[0] = identity_open(AT_FDCWD, in, O_RDONLY | O_NOCTTY | O_CLOEXEC, 0);
    if (child->fds[0] < 0)
        return fail(child, "Could not open stdin file", in, true);
    child->fds[1] = open_soon(task->std_out, out_flags);
    if (child->fds[1] < 0)
        return fail(child, "Could not open stdout file", task->std_out, true);
    child->fds[2] = child->fds[1];
    if (task->std_err) {
        child->fds[2] = open_soon(task->std_err, out_flags);
        if (child->fds[2] < 0)
            return fail(child, "Could not open stderr file", task->std_err, true);
    }
    child->failed = NULL;
    return true;
}

/* None of the three is below 3: we keep 0, 1, 2 open. */
CHILD static bool place_files(struct child *child)
{
    for (int fd = 0; fd < 3; fd++) {
        if (syscall(SYS_dup3, child->fds[fd], fd, 0) < 0)
            return fail(child, "dup", NULL, false);
    }
    if (child->terminal)
        syscall(SYS_ioctl, 0, TIOCSCTTY, 0);
    syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC);
    for (size_t i = 0; i < child->keep_count; i++)
        syscall(SYS_fcntl, child->keep[i], F_SETFD, 0);
    return true;
}

CHILD static void say(const char *text)
{
    ssize_t ignored = write(2, text, strlen(text));

    (void)ignored;
}

CHILD static void say_error(const char *before, const char *path, const char *between, int error,
                            const char *after)
{
    const char *text = strerrordesc_np(error);

    say("slurmstepd: error: ");
    say(before);
    say(path);
    say(between);
    say(text ? text : "Unknown error");
    say(after);
}

/* Handlers go with execve; what the zygote ignores is this one alone. */
CHILD static void reset_signals(void)
{
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } action;

    memset(&action, 0, sizeof(action));
    syscall(SYS_rt_sigaction, SIGPIPE, &action, NULL, sizeof(action.mask));
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &action.mask, NULL, sizeof(action.mask));
}

CHILD static void write_pid(struct child *child)
{
    char digits[16];
    int count = 0;
    char *at = child->pid_text + strlen("SLURM_TASK_PID=");

    for (long pid = syscall(SYS_getpid); pid > 0; pid /= 10)
        digits[count++] = (char)('0' + pid % 10);
    while (count > 0)
        *at++ = digits[--count];
    *at = '\0';
}

/* More than ours; the system call answers 20 - nice. */
CHILD static void set_nice(int more)
{
    long before = 20 - syscall(SYS_getpriority, PRIO_PROCESS, 0);

    syscall(SYS_setpriority, PRIO_PROCESS, 0, before + more);
}

CHILD static void say_with_pid(const struct child *child, const char *before, const char *after)
{
    if (before)
        say(before);
    if (!before || !after)
        return;
    say(child->pid_text + strlen("SLURM_TASK_PID="));
    say(after);
}

CHILD static void say_binding(const struct child *child)
{
    const StepTaskOne *one = child->one;

    if (!one)
        return;
    say_with_pid(child, one->bind_before, one->bind_after);
    say_with_pid(child, one->mem_before, one->mem_after);
    if (one->mem_after)
        say(!one->mem_nodes ? "\n" : child->mem_error ? " FAILED\n" : " set\n");
    else if (child->mem_error)
        say_error("mem-bind: NUMA node ", one->mem_nodes, ": ", child->mem_error, "\n");
}

CHILD static void set_memory(struct child *child)
{
    if (child->bind.mem_mode && syscall(SYS_set_mempolicy, child->bind.mem_mode, child->bind.nodes,
                                        LIMIT_NUMA_NODES + 1) < 0)
        child->mem_error = errno;
}

/* ---- plugins: in a process with memory of its own (3) ---- */

static void copy_task(struct child *child, const struct step_spank_task *task)
{
    child->env = task->env;
    if (!task->argv_changed)
        return;
    child->argv = task->argv;
    child->script = task->argv[0];
    child->by_hand = NULL;
    if (child->with_prolog)
        child->with_prolog = prolog_argv(child->task, child->argv);
}

/* Root again for the plugins, the user again after them. */
static bool call_privileged(struct child *child)
{
    struct step_spank_task task = {
        .index = child->index, .argv = child->argv, .env = child->env, .say_fd = child->fds[2]
    };

    if (child->task->change_user)
        identity_return(child->root_gid, child->root_groups, child->root_group_count);
    errno = 0;
    if (!step_spank->privileged(&task))
        return fail(child, "a SPANK plugin refused the task", NULL, true);
    copy_task(child, &task);
    if (!take_identity(child))
        return false;
    if (!child->no_dir) /* what it was may have another name now */
        enter_dir(child->task->work_dir);
    return true;
}

/* Says that all is ready, waits until every task of the step is, and calls the plugins as the user. */
static void wait_and_call(struct child *child)
{
    struct step_spank_task task = {
        .index = child->index, .argv = child->argv, .env = child->env, .say_fd = 2
    };
    char byte;
    ssize_t got;

    if (write(child->ready_fd, child, sizeof(*child)) != sizeof(*child))
        _exit(127);
    while ((got = read(child->go_fd, &byte, 1)) < 0 && errno == EINTR)
        ;
    if (got != 1) /* a plugin refused the step */
        _exit(1);
    if (!step_spank->user(&task))
        _exit(1);
    copy_task(child, &task);
}

/* ---- the child ---- */

CHILD static bool prepare(struct child *child)
{
    if (child->must_join && !join_cgroup(child))
        return false;
    syscall(SYS_setsid);
    if ((errno = private_enter(&child->dirs, &child->path)) != 0)
        return fail(child, "private directory", child->path, false);
    umask(child->task->umask);
    if (child->bind.cpus)
        syscall(SYS_sched_setaffinity, 0, child->bind.cpus_bytes, child->bind.cpus);
    set_memory(child);
    if (!take_identity(child))
        return false;
    set_rlimits(child);
    if (child->task->has_nice)
        set_nice(child->task->nice);
    watch_open(true);
    bool opened = open_files(child);
    watch_open(false);
    if (!opened)
        return false;
    write_pid(child);
    if (child->ready_fd >= 0 && !call_privileged(child))
        return false;
    return place_files(child) && set_identity(child);
}

CHILD static int child_main(void *arg)
{
    struct child *child = arg;

    if (!prepare(child)) {
        if (child->ready_fd >= 0 && write(child->ready_fd, child, sizeof(*child)) < 0)
            _exit(126);
        _exit(127);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (child->no_dir)
        say_error("couldn't chdir to `", child->task->work_dir, "': ", child->error,
                  ": going to /tmp instead\n");
    say_binding(child);
    reset_signals();
    if (child->ready_fd >= 0)
        wait_and_call(child);
    if (child->with_prolog)
        execve(PROLOG_PROGRAM, child->with_prolog, child->env);
    else
        execve(child->script, child->argv, child->env);
    int error = errno;
    if (error == EACCES && child->by_hand) /* a directory in memory is often mounted noexec */
        execve(child->by_hand[0], child->by_hand, child->env);
    say_error("execve(): ", child->script, ": ", error, "\n");
    _exit(error);
}

static void put_prolog(struct child *child)
{
    child->with_prolog = prolog_argv(child->task, child->argv);
    if (!child->with_prolog)
        return;
    free(child->by_hand);
    child->by_hand = NULL;
}

static int judge(const struct child *child, pid_t pid, struct started *out, struct err *err)
{
    out->rlimits_refused = child->rlimits_refused;
    out->refused = child->refused;
    if (!child->failed) {
        out->pid = pid;
        return 0;
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    out->by_user = child->by_user;
    if (!child->error)
        return err_set(err, ERR_INTERNAL, "%s", child->failed);
    if (child->path)
        return err_errno(err, child->error, "%s %s", child->failed, child->path);
    return err_errno(err, child->error, "%s", child->failed);
}

/* (3): the process id, or -errno. */
static long fork_child(struct child *child)
{
    gid_t groups[ROOT_GROUPS_MAX];
    int count = getgroups(ROOT_GROUPS_MAX, groups), ready[2], go[2];
    struct child told;
    sigset_t all, before;

    if (count < 0 || pipe2(ready, O_CLOEXEC) < 0)
        return -errno;
    if (pipe2(go, O_CLOEXEC) < 0) {
        int saved = errno;
        close(ready[0]);
        close(ready[1]);
        return -saved;
    }
    child->root_gid = getegid();
    child->root_groups = groups;
    child->root_group_count = (size_t)count;
    child->ready_fd = ready[1];
    child->go_fd = go[0];
    child->must_join = child->cgroup_fd >= 0;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ready[0]);
        close(go[1]);
        child_main(child);
    }
    int saved = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(ready[1]);
    close(go[0]);
    ssize_t got = -1;
    while (pid > 0 && (got = read(ready[0], &told, sizeof(told))) < 0 && errno == EINTR)
        ;
    close(ready[0]);
    if (pid > 0 && got == sizeof(told)) {
        *child = told;
    } else if (pid > 0) {
        errno = 0;
        fail(child, "a SPANK plugin ended the process of the task", NULL, true);
    }
    child->go_fd = go[1];
    return pid > 0 ? pid : -saved;
}

void start_go(int *go_fd)
{
    ssize_t ignored = *go_fd >= 0 ? write(*go_fd, "", 1) : 0;

    (void)ignored;
    file_close(go_fd);
}

static int spawn(struct child *child, struct contain *contain, struct started *out, struct err *err)
{
    int ret = private_plan(child->task, &child->dirs, err);

    if (ret < 0)
        return ret;
    start_bind_init(&child->bind, child->task, child->one, contain->has_cpuset);
    child->ready_fd = child->go_fd = -1;
    long pid = step_spank
                   ? fork_child(child)
                   : spawn_share(child_main, child, contain->cgroup_fd, NULL, &child->must_join);
    ret = pid < 0 ? err_errno(err, (int)-pid, "clone") : judge(child, (pid_t)pid, out, err);
    out->go_fd = ret == 0 ? child->go_fd : -1;
    if (ret < 0)
        file_close(&child->go_fd);
    start_bind_done(&child->bind);
    return ret;
}

int start_script(const StepTask *task, struct contain *contain, const char *script,
                 char *const *login_env, struct started *out, struct err *err)
{
    struct child child = {
        .task = task, .script = script, .cgroup_fd = contain->cgroup_fd, .groups = task->owner->gids
    };

    char line[START_SHEBANG_BYTES], *interpreter[3];

    *out = (struct started){ 0 };
    child.env = start_env(task, child.pid_text, NULL, login_env);
    bool named = start_shebang(task, line, interpreter);
    if (task->n_wrapper) { /* what runs the script is looked for inside, so it is said by hand */
        child.argv = start_wrapped(task, script, named ? interpreter : NULL);
        child.script = child.argv[0];
    } else if (task->n_task_prolog && named) {
        child.argv = start_argv(task, script, interpreter);
    } else {
        child.argv = start_argv(task, script, NULL);
        child.by_hand = named ? start_argv(task, script, interpreter) : NULL;
    }
    put_prolog(&child);
    char **env = child.env, **argv = child.argv, **by_hand = child.by_hand,
         **with_prolog = child.with_prolog;
    int ret = spawn(&child, contain, out, err);
    if (ret == 0 && step_spank && (ret = step_spank->post_fork(0, out->pid, err)) == 0)
        start_go(&out->go_fd);
    else if (step_spank)
        file_close(&out->go_fd);
    out->by_user = out->by_user || (step_spank && ret < 0);
    free(env);
    free(argv);
    free(by_hand);
    free(with_prolog);
    return ret;
}

int start_task(const StepTask *task, struct contain *contain, const struct start_task *what,
               struct started *out, struct err *err)
{
    struct child child = { .task = task,
                           .script = what->argv[0],
                           .cgroup_fd = contain->cgroup_fd,
                           .groups = task->owner->gids,
                           .argv = (char **)what->argv,
                           .has_fds = true,
                           .terminal = what->terminal,
                           .keep = what->keep,
                           .keep_count = what->keep_count,
                           .one = what->one,
                           .index = what->index,
                           .fds = { what->fds[0], what->fds[1], what->fds[2] } };

    *out = (struct started){ 0 };
    child.env = start_env(task, child.pid_text, what->env, NULL);
    if (!what->no_prolog)
        put_prolog(&child);
    char **env = child.env, **with_prolog = child.with_prolog;
    int ret = spawn(&child, contain, out, err);
    free(env);
    free(with_prolog);
    return ret;
}

/* So that the text stands before what the job says to the signal that follows. */
static void wait_briefly(pid_t pid)
{
    for (int i = 0; pid > 0 && i < SAY_WAIT_MS * 2; i++) {
        if (waitpid(pid, NULL, WNOHANG) != 0)
            return;
        usleep(500);
    }
}

void start_say(const StepTask *task, const char *text)
{
    const JobOwner *owner = task->owner;
    pid_t pid = fork();

    if (pid != 0) {
        wait_briefly(pid);
        return;
    }
    struct spawn_user user = {
        .uid = owner->uid, .gid = owner->gid, .groups = owner->gids, .group_count = owner->n_gids
    };
    alarm(START_OPEN_WAIT_S);
    int dir_fd;
    char *path = private_path(task, task->std_err ? task->std_err : task->std_out, &dir_fd);
    if (task->change_user && spawn_become(&user, NULL) < 0)
        _exit(1);
    int fd =
        identity_open(dir_fd, path, O_WRONLY | O_APPEND | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0);
    if (fd >= 0) {
        ssize_t ignored = write(fd, text, strlen(text));
        (void)ignored;
    }
    _exit(0);
}
