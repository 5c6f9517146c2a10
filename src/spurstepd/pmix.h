/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmix.h - srun --mpi=pmix: tasks find each other by PMIx
 *
 * libpmix, with its threads and libraries, is in a program of its own, spurstepd-pmix, one for each node of the
 * step, which runs as the user and among the step's processes. We give it the step's layout, tasks get
 * the environment it answers, and what it wants said to the other nodes goes by relay.h.
 */
#ifndef SPURSTEPD_PMIX_H
#define SPURSTEPD_PMIX_H

#include "spurstepd/step_plugins.h"

/* Rows of step_plugins.c. */
bool pmix_wanted(const StepTask *task);
int pmix_begin(struct tasks *tasks, struct err *err);
int pmix_task(struct tasks *tasks, struct step_plugin_task *one, struct arena *arena,
              struct err *err);
void pmix_relay(struct tasks *tasks, uint32_t from, const uint8_t *bytes, size_t len);
void pmix_exited(struct tasks *tasks, size_t index);
void pmix_stop(struct tasks *tasks);
void pmix_end(struct tasks *tasks);

#endif
