/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_freq.h - --gpu-freq: the GPUs of a step run at its frequencies while it lives
 */
#ifndef SPURSTEPD_GPU_FREQ_H
#define SPURSTEPD_GPU_FREQ_H

#include "spurstepd/containment.h"
#include "spurstepd/step_plugins.h"

/* Sets what task->gpu_freq asks for; what cannot be done is said, and the step goes on. */
void gpu_freq_set(struct containment *hold);
void gpu_freq_reset(const StepTask *task);

bool gpu_freq_wanted(const StepTask *task);
int gpu_freq_begin(struct tasks *tasks, struct err *err);
void gpu_freq_end(struct tasks *tasks);

#endif
