/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tasks.h - the supervisor of a step of srun: several tasks, whose streams go to srun
 *
 * Read tasks.c. The other supervisor, step.h, runs a batch script.
 */
#ifndef SPURSTEPD_TASKS_H
#define SPURSTEPD_TASKS_H

#include "base/util.h"
#include "proto/step.pb-c.h"

/* Can this task be run at all? */
bool tasks_valid(const StepTask *task);

/* Runs the tasks to their end; returns the exit status of the supervisor. Takes all three. */
int tasks_run(StepTask *task, int dir_fd, int chan_fd);

#endif
