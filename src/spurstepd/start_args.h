/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start_args.h - arguments and environment of a process that is about to start
 *
 * Arrays end with NULL and are freed by the caller; their texts belong to what they were made from.
 */
#ifndef SPURSTEPD_START_ARGS_H
#define SPURSTEPD_START_ARGS_H

#include "base/util.h"
#include "proto/step.pb-c.h"

enum { START_PID_BYTES = 40, START_SHEBANG_BYTES = 256 };

/*
 * SLURM_TASK_PID= (in `pid_text`, where its number is put later), `own_env`, the task's own variables, then
 * those of the login that none of these sets. Both lists may be NULL.
 */
char **start_env(const StepTask *task, char pid_text[START_PID_BYTES], char *const *own_env,
                 char *const *login);

/* The script with its arguments, after what stands in `before` (at most two; may be NULL). */
char **start_argv(const StepTask *task, const char *script, char *const *before);

/* The same after the task's wrapper. */
char **start_wrapped(const StepTask *task, const char *script, char *const *interpreter);

/*
 * "#! /bin/sh -e -u" gives "/bin/sh" and "-e -u", as the kernel reads it: one argument at most.
 * False when there is no such line.
 */
bool start_shebang(const StepTask *task, char line[START_SHEBANG_BYTES], char *out[3]);

#endif
