/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_resources.h - what the tasks of a step get of this node: limits, CPUs, GPUs, a nice value
 */
#ifndef SPURD_STEP_RESOURCES_H
#define SPURD_STEP_RESOURCES_H

#include "proto/run.pb-c.h"
#include "spurd/task/task.h"

/* One step on this node. */
struct step_resources {
    const struct task_node *node;
    const Grant *grant;
    const StepLaunch *launch;
    const StepLayout *layout;
    const StepNode *here;
    const StepLayout *whole; /* what the tasks see: the layout, or several (step_whole.h) */
    size_t whole_node;       /* which of its nodes this is */
    char **gpus;             /* directories of its GPUs, set there too */
    size_t gpu_count;
    NodeAlloc alloc; /* what the step has of the grant, set by step_resources_limits() */
};

/* The step's part of what the grant gave to `out` before: CPUs, memory, devices. */
void step_resources_limits(struct step_resources *give, struct arena *arena, StepTask *out);

/* --mem-bind, after CPUs were given. */
int step_resources_memory(const struct step_resources *give, struct arena *arena, struct env *env,
                          StepTask *out, struct err *err);
/* After the job's variables are in `env`: bindings of each task of `out`, and their variables. */
int step_resources_tasks(const struct step_resources *give, struct arena *arena, struct env *env,
                         StepTask *out, struct err *err);

#endif
