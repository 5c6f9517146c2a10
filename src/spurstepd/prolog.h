/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prolog.h - programs of the site and of srun's user around each task: task prolog and task epilog
 *
 * A task with a prolog begins as `spurstepd --task PROLOG... -- PROGRAM...`, already as its user, in its
 * directory, with its streams: that runs the prologs one after the other, does what they say, and becomes
 * the program. So a prolog is ended, limited and bound as the task is, and the supervisor waits for nothing.
 * Epilogs are started by the supervisor when the task has ended, and have some seconds.
 */
#ifndef SPURSTEPD_PROLOG_H
#define SPURSTEPD_PROLOG_H

#include <sys/types.h>

#include "base/err.h"
#include "proto/step.pb-c.h"
#include "spurstepd/contain.h"

/* What a task that has prologs executes instead of itself. */
#define PROLOG_PROGRAM "/proc/self/exe"

/* Arguments of PROLOG_PROGRAM for a task; NULL: it has no prolog. On the heap. */
char **prolog_argv(const StepTask *task, char *const *argv);

/* `spurstepd --task`, from the argument after it. Returns an exit code when it does not become the task. */
int prolog_main(int argc, char **argv);

/*
 * One line that a prolog wrote: "export NAME=value", "unset NAME" change *env (on the heap, NULL at its end),
 * "print TEXT" gives the text; NULL: nothing to print.
 */
const char *prolog_line(char *line, char ***env);

enum { EPILOG_WAIT_S = 5 };

/* The epilogs of one task. All zero: none has run. */
struct epilog {
    pid_t pid;          /* 0: none runs */
    size_t next;        /* of the task's list */
    int64_t kill_at_us; /* boot time */
};

/* Starts the next one; false: there is none. One that cannot be started is said and passed over. */
bool epilog_start(struct epilog *epilog, const StepTask *task, struct contain *contain,
                  char *const *own_env, int64_t now_us);
/* Its time is over when that has come. */
void epilog_check(struct epilog *epilog, int64_t now_us);

#endif
