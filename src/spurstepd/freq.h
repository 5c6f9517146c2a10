/* SPDX-License-Identifier: Apache-2.0 */
/*
 * freq.h - --cpu-freq: the CPUs of a step run at its frequency while it lives
 */
#ifndef SPURSTEPD_FREQ_H
#define SPURSTEPD_FREQ_H

#include "spurstepd/containment.h"
#include "spurstepd/step_plugins.h"

/* Sets what task->freq asks for; what cannot be done is said, once, and the step goes on. */
void freq_set(struct containment *hold);
/* As it was before, where no later step has set it again. */
void freq_reset(const StepTask *task);

bool freq_wanted(const StepTask *task);
int freq_begin(struct tasks *tasks, struct err *err);
void freq_end(struct tasks *tasks);

#endif
