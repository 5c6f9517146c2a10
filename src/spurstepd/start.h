/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.h - the script becomes a process of its user
 *
 * Limits are set and files are opened with the user's whole effective identity (sys/identity.h), so
 * whatever a path leads through, it leads no further than the user could go. The real identity
 * changes last: before that the user can send the half-made process no signal.
 */
#ifndef SPURSTEPD_START_H
#define SPURSTEPD_START_H

#include <sys/types.h>

#include "base/err.h"
#include "proto/step.pb-c.h"
#include "spurstepd/contain.h"

/* Slurm's exit of a batch job whose files could not be opened: shown as 0:53. */
enum { START_STATUS_NO_FILES = 53, START_OPEN_WAIT_S = 20 };

struct started {
    pid_t pid;
    bool by_user;        /* failed because of what the job asked for, not because of this node */
    int rlimits_refused; /* how many limits could not be set */
    const char *refused; /* the first of them */
    int go_fd;           /* with plugins: the process waits for start_go(); else -1 */
};

/*
 * Starts `script` (a path the user can read) as the task says. `login_env` is put under the task's
 * environment. Outputs are set on failure too, so that the caller can tell whose fault it was.
 */
int start_script(const StepTask *task, struct contain *contain, const char *script,
                 char *const *login_env, struct started *out, struct err *err);

/* One process of a step of srun: its streams are ready, its program is the first argument. */
struct start_task {
    char *const *argv;
    char *const *env; /* before the task's own, without SLURM_TASK_PID; NULL-terminated */
    int fds[3];       /* not below 3 */
    bool no_prolog;
    bool terminal;   /* fds[0] becomes its controlling terminal */
    const int *keep; /* other descriptors that stay open in it */
    size_t keep_count;
    const StepTaskOne *one; /* its binding; may be NULL */
    size_t index;           /* on this node */
};
int start_task(const StepTask *task, struct contain *contain, const struct start_task *what,
               struct started *out, struct err *err);
/* Lets a process that waits go on to its program. -1 is allowed. */
void start_go(int *go_fd);

/* The job's error file, as the job's user: appends `text` if that can be done without waiting. */
void start_say(const StepTask *task, const char *text);

#endif
