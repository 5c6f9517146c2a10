/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn.c - starting a program, fast and exactly as said
 *
 * (1) Between clone and execve the child runs in our memory while this thread waits. It therefore
 *     takes no lock, allocates nothing, and calls the kernel directly: glibc's setuid() would
 *     signal our other threads, its errno is ours and restored.
 * (2) All signals are blocked around the clone, so no handler of ours runs in the child.
 * (3) The child runs on a stack of its own, so ours is as it was when it is gone.
 */
#include "sys/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/files.h"
#include "sys/spawn_priv.h"

enum { STACK_BYTES = 64 * 1024, MAX_FDS = 64 };

struct child {
    const struct spawn *spec;
    bool join_cgroup;   /* by the child: the kernel could not do it at clone */
    const char *failed; /* the step, written by the child (1) */
    int error;
};

#define CHILD __attribute__((no_sanitize("address", "undefined"), noinline))

CHILD static bool fail(struct child *child, const char *step)
{
    child->error = errno;
    child->failed = step;
    return false;
}

CHILD static bool reset_signals(struct child *child)
{
    struct {
        void *handler;
        unsigned long flags;
        void *restorer;
        uint64_t mask;
    } action;

    memset(&action, 0, sizeof(action)); /* SIG_DFL */
    for (int sig = 1; sig <= 64; sig++) {
        if (sig != SIGKILL && sig != SIGSTOP)
            syscall(SYS_rt_sigaction, sig, &action, NULL, sizeof(action.mask));
    }
    if (syscall(SYS_rt_sigprocmask, SIG_SETMASK, &action.mask, NULL, sizeof(action.mask)) < 0)
        return fail(child, "signal mask");
    return true;
}

CHILD static bool write_text(int dir_fd, const char *path, const char *text)
{
    int fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) >= 0;
    int saved = errno;

    if (fd >= 0)
        close(fd);
    errno = saved;
    return ok;
}

/* Sources are lifted above every target first, so that "1 and 2 change places" works. */
CHILD static bool place_fds(struct child *child)
{
    const struct spawn *spec = child->spec;
    int lifted[MAX_FDS], floor = 3;
    bool named[3] = { false, false, false };

    for (size_t i = 0; i < spec->fd_count; i++)
        floor = MAX(floor, spec->fds[i].to + 1);
    for (size_t i = 0; i < spec->fd_count; i++) {
        lifted[i] = fcntl(spec->fds[i].from, F_DUPFD_CLOEXEC, floor);
        if (lifted[i] < 0)
            return fail(child, "descriptors");
    }
    if (syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) < 0 && errno != ENOSYS &&
        errno != EINVAL)
        return fail(child, "close_range");
    for (size_t i = 0; i < spec->fd_count; i++) {
        if (dup3(lifted[i], spec->fds[i].to, 0) < 0)
            return fail(child, "descriptors");
        if (spec->fds[i].to < 3)
            named[spec->fds[i].to] = true;
    }
    for (int fd = 0; fd < 3; fd++) {
        if (named[fd])
            continue;
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null < 0 || (null != fd && dup3(null, fd, 0) < 0))
            return fail(child, "/dev/null");
        if (null == fd && fcntl(fd, F_SETFD, 0) < 0)
            return fail(child, "/dev/null");
    }
    return true;
}

CHILD static bool drop_to(struct child *child, const struct spawn_user *user)
{
    if (syscall(SYS_setgroups, user->group_count, user->groups) < 0 &&
        (geteuid() == 0 || errno != EPERM))
        return fail(child, "setgroups");
    if (syscall(SYS_setresgid, user->gid, user->gid, user->gid) < 0)
        return fail(child, "setgid");
    if (syscall(SYS_setresuid, user->uid, user->uid, user->uid) < 0)
        return fail(child, "setuid");
    return true;
}

CHILD static bool set_process(struct child *child)
{
    const struct spawn *spec = child->spec;

    if (spec->new_session && syscall(SYS_setsid) < 0)
        return fail(child, "setsid");
    if (spec->new_group && !spec->new_session && syscall(SYS_setpgid, 0, 0) < 0)
        return fail(child, "setpgid");
    if (spec->set_umask)
        umask(spec->umask);
    if (spec->oom_score_adj &&
        !write_text(AT_FDCWD, "/proc/self/oom_score_adj", spec->oom_score_adj))
        return fail(child, "oom_score_adj");
    for (size_t i = 0; i < spec->limit_count; i++) {
        if (syscall(SYS_prlimit64, 0, spec->limits[i].resource, &spec->limits[i].limit, NULL) < 0)
            return fail(child, "setrlimit");
    }
    if (spec->nice) {
        long now = 20 - syscall(SYS_getpriority, PRIO_PROCESS, 0);
        if (syscall(SYS_setpriority, PRIO_PROCESS, 0, now + spec->nice) < 0)
            return fail(child, "nice");
    }
    return true;
}

CHILD static int child_main(void *arg)
{
    struct child *child = arg;
    const struct spawn *spec = child->spec;
    static char *const no_env[] = { NULL };

    if (child->join_cgroup && !write_text(spec->cgroup_fd, "cgroup.procs", "0"))
        fail(child, "cgroup");
    else if (!set_process(child) || !place_fds(child))
        ;
    else if (spec->user && !drop_to(child, spec->user))
        ;
    else if (spec->death_signal && prctl(PR_SET_PDEATHSIG, spec->death_signal) < 0)
        fail(child, "death signal");
    else if (spec->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        fail(child, "no_new_privs");
    else if (spec->cwd && chdir(spec->cwd) < 0)
        fail(child, "chdir");
    else if (reset_signals(child)) {
        execve(spec->path, spec->argv, spec->env ? spec->env : no_env);
        fail(child, "execve");
    }
    _exit(127);
}

#if defined(__x86_64__)
static long clone3_call(struct clone_args *args, int (*fn)(void *), void *arg)
{
    register int (*fn_reg)(void *) __asm__("r8") = fn;
    register void *arg_reg __asm__("r9") = arg;
    long ret;

    __asm__ volatile("syscall\n\t"
                     "test %%rax, %%rax\n\t"
                     "jnz 1f\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "mov %%r9, %%rdi\n\t"
                     "call *%%r8\n\t"
                     "hlt\n"
                     "1:"
                     : "=a"(ret)
                     : "0"((long)SYS_clone3), "D"(args), "S"(sizeof(*args)), "r"(fn_reg),
                       "r"(arg_reg)
                     : "rcx", "r11", "memory", "cc");
    return ret;
}
#elif defined(__aarch64__)
static long clone3_call(struct clone_args *args, int (*fn)(void *), void *arg)
{
    register long x8 __asm__("x8") = SYS_clone3;
    register long x0 __asm__("x0") = (long)args;
    register long x1 __asm__("x1") = sizeof(*args);
    register int (*x2)(void *) __asm__("x2") = fn;
    register void *x3 __asm__("x3") = arg;

    __asm__ volatile("svc #0\n\t"
                     "cbnz x0, 1f\n\t"
                     "mov x29, #0\n\t"
                     "mov x0, x3\n\t"
                     "blr x2\n\t"
                     "brk #0\n"
                     "1:"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3)
                     : "memory", "cc");
    return x0;
}
#else
static long clone3_call(struct clone_args *args, int (*fn)(void *), void *arg)
{
    (void)args, (void)fn, (void)arg;
    return -ENOSYS;
}
#endif

struct begun {
    int (*fn)(void *);
    void *arg;
    bool yes;
};

CHILD static int begin(void *arg)
{
    struct begun *begun = arg;

    begun->yes = true;
    return begun->fn(begun->arg);
}

/* Older kernels, filters that deny clone3, other machines: the child joins its cgroup itself. */
static long clone_call(int (*fn)(void *), void *arg, int cgroup_fd, int *pidfd, bool *must_join,
                       char *stack)
{
    int got = -1, flags = CLONE_VM | CLONE_VFORK | SIGCHLD | (pidfd ? CLONE_PIDFD : 0);
    *must_join = cgroup_fd > 0;
    int pid = clone(fn, stack + STACK_BYTES, flags, arg, &got);

    if (pidfd)
        *pidfd = got;
    return pid < 0 ? -errno : pid;
}

static long clone_child(int (*fn)(void *), void *arg, int cgroup_fd, int *pidfd, bool *must_join,
                        char *stack)
{
    int fd = -1;
    struct begun begun = { .fn = fn, .arg = arg };
    struct clone_args args = {
        .flags = CLONE_VM | CLONE_VFORK,
        .exit_signal = SIGCHLD,
        .stack = (uint64_t)(uintptr_t)stack,
        .stack_size = STACK_BYTES,
    };

    if (pidfd) {
        args.flags |= CLONE_PIDFD;
        args.pidfd = (uint64_t)(uintptr_t)&fd;
    }
    if (cgroup_fd > 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)cgroup_fd;
    }
    *must_join = false;
    long pid = clone3_call(&args, begin, &begun);
    bool again = pid == -ENOSYS || pid == -EINVAL || pid == -EPERM;
    /*
     * Linux 6.14 and later compare how often our cgroup was killed (cgroup.kill) with how often the
     * other was, and end the child before its first instruction when that is not the same.
     */
    if (pid > 0 && !begun.yes) {
        while (waitpid((pid_t)pid, NULL, 0) < 0 && errno == EINTR)
            ;
        if (fd >= 0)
            close(fd);
        again = true;
    } else if (pidfd) {
        *pidfd = fd;
    }
    return again ? clone_call(fn, arg, cgroup_fd, pidfd, must_join, stack) : pid;
}

long spawn_share(int (*fn)(void *), void *arg, int cgroup_fd, int *pidfd, bool *must_join)
{
    /* The child has left it when we go on, so the next may have it. */
    static __thread char *kept;
    sigset_t all, before;
    char *stack = TAKE(kept);

    if (!stack)
        stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED)
        return -errno;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    long pid = clone_child(fn, arg, cgroup_fd, pidfd, must_join, stack);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    kept = stack;
    return pid;
}

int spawn_start_real(const struct spawn *spec, pid_t *pid, int *pidfd, struct err *err)
{
    struct child child = { .spec = spec };
    CLEANUP(file_close) int got_fd = -1;

    if (spec->fd_count > MAX_FDS)
        return err_set(err, ERR_TOO_MANY, "spawn %s: more than %d descriptors", spec->path,
                       MAX_FDS);
    long got = spawn_share(child_main, &child, spec->cgroup_fd, &got_fd, &child.join_cgroup);
    if (got < 0)
        return err_errno(err, (int)-got, "spawn %s: clone", spec->path);
    if (child.failed) {
        while (waitpid((pid_t)got, NULL, 0) < 0 && errno == EINTR)
            ;
        return err_errno(err, child.error, "spawn %s: %s", spec->path, child.failed);
    }
    *pid = (pid_t)got;
    if (pidfd) {
        *pidfd = got_fd;
        got_fd = -1;
    }
    return 0;
}

int spawn_become(const struct spawn_user *user, struct err *err)
{
    struct child child = { 0 };

    if (!drop_to(&child, user))
        return err_errno(err, child.error, "become uid %u: %s", (unsigned)user->uid, child.failed);
    if (user->uid != 0 && syscall(SYS_setresuid, -1, 0, -1) == 0)
        return err_set(err, ERR_INTERNAL, "uid %u could become root again", (unsigned)user->uid);
    return 0;
}
