/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn.h - starting a program, fast and exactly as said
 *
 * The child shares our memory until it executes (clone3 with CLONE_VFORK), so the cost does not
 * grow with the size of the caller, and an error of any step comes back as a return value. The
 * child gets default signal handlers, an empty signal mask, no descriptor but those named, and
 * starts inside its cgroup. Callable from any thread.
 */
#ifndef SYS_SPAWN_H
#define SYS_SPAWN_H

#include <sys/resource.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

struct spawn_user {
    uid_t uid;
    gid_t gid;
    const gid_t *groups; /* supplementary */
    size_t group_count;
};

struct spawn_fd {
    int from, to; /* the child's descriptor `to` is a copy of our `from` */
};

struct spawn_limit {
    int resource; /* RLIMIT_NOFILE, … */
    struct rlimit limit;
};

struct spawn {
    const char *path; /* what to execute; no search in PATH */
    char *const *argv;
    char *const *env; /* NULL: empty */
    const char *cwd;  /* entered as the user; NULL: stay */
    const struct spawn_user *user;
    const struct spawn_fd *fds; /* 0, 1, 2 that are not named become /dev/null */
    size_t fd_count;
    const struct spawn_limit *limits; /* set before privileges are dropped */
    size_t limit_count;
    int cgroup_fd;    /* a cgroup v2 directory; 0 or less: stay in ours */
    bool new_session; /* setsid: no terminal, a process group of its own */
    bool new_group;   /* setpgid only */
    bool set_umask;   /* to `umask` */
    mode_t umask;
    int nice;         /* added to ours */
    int death_signal; /* when our thread ends; 0: none */
    bool no_new_privs;
    const char *oom_score_adj; /* "-1000" … "1000"; NULL: as ours */
    int stop_fd;               /* spawn_run(): once it can be read, time is over; 0 or less: none */
};

/*
 * Starts it. *pidfd (when asked for) is close-on-exec and the caller's to close; wait for the
 * process with waitid(P_PIDFD) or waitpid. On failure nothing is left running, and the text says
 * which step failed.
 */
int spawn_start(const struct spawn *spec, pid_t *pid, int *pidfd, struct err *err);

/*
 * The step below, for a caller whose child does something of its own: fn(arg) runs in a new process
 * that shares our memory, on a stack of 64 KB, while this thread waits until it executes or calls
 * _exit(). It takes no lock, allocates nothing, returns never, and is marked like CHILD in spawn.c.
 * Signals are blocked in it. *must_join is set before fn runs when the kernel could not place the
 * child: it then writes "0" to cgroup.procs itself. pidfd may be NULL. Returns the process id or
 * -errno.
 */
long spawn_share(int (*fn)(void *), void *arg, int cgroup_fd, int *pidfd, bool *must_join);

struct spawn_result {
    int status;     /* as waitpid gives it */
    bool timed_out; /* the process group was killed */
    bool truncated; /* it wrote more than out_max; the rest was read and dropped */
};

/*
 * Runs a helper to its end: `input` to its stdin, stdout and stderr together into `out` (appended,
 * at most out_max bytes; NULL to drop). It gets a session of its own, which is killed when
 * timeout_ms has passed (negative: never), and when it ended, so nothing it left behind holds the
 * pipe. Blocks: for worker threads. fds, new_session of spec are set here.
 */
int spawn_run(const struct spawn *spec, struct span input, int timeout_ms, struct str *out,
              size_t out_max, struct spawn_result *result, struct err *err);

/* Becomes the user for good; for processes with one thread. Checks that there is no way back. */
int spawn_become(const struct spawn_user *user, struct err *err);

/* "exit 3", "signal 9 (KILL)": for texts. */
void spawn_describe(int status, struct str *out);

/* Both calls go here instead: simulations. NULL ends it. */
struct spawn_ops {
    int (*start)(void *ctx, const struct spawn *spec, pid_t *pid, int *pidfd, struct err *err);
    int (*run)(void *ctx, const struct spawn *spec, struct span input, int timeout_ms,
               struct str *out, size_t out_max, struct spawn_result *result, struct err *err);
};
void spawn_use(const struct spawn_ops *ops, void *ctx);

#endif
