/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.h - the supervisor of one step, from the task to the acknowledged report
 *
 * Read step.c for what happens when; this header is what the zygote needs.
 */
#ifndef SPURSTEPD_STEP_H
#define SPURSTEPD_STEP_H

#include "base/util.h"
#include "proto/step.pb-c.h"

/*
 * Runs the task to its end and to the end of its report; returns the exit status of the supervisor.
 * dir_fd is the spool directory of the attempt, open and locked: the lock says that we live.
 * chan_fd is connected to spurd. `clean` says that nothing is left of the step, below this process or in it,
 * but the task and descriptors: another step may follow.
 */
int step_run(StepTask *task, int dir_fd, int chan_fd, bool *clean);

/* Can this task be run at all? What the supervisor relies on is present. */
bool step_task_valid(const StepTask *task);

#endif
