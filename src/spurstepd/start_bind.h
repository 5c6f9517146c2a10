/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start_bind.h - the CPUs and the memory that a process is bound to, as the kernel wants them
 */
#ifndef SPURSTEPD_START_BIND_H
#define SPURSTEPD_START_BIND_H

#include <sched.h>
#include <stdbool.h>

#include "base/limits.h"
#include "proto/step.pb-c.h"

enum { START_NODE_WORDS = LIMIT_NUMA_NODES / (8 * sizeof(unsigned long)) };

struct start_bind {
    cpu_set_t *cpus; /* NULL: as they are */
    size_t cpus_bytes;
    int mem_mode; /* of set_mempolicy(2); 0: any memory */
    unsigned long nodes[START_NODE_WORDS];
};

/* `one` is NULL for a script. `has_cpuset`: the kernel holds the step to its CPUs already. */
void start_bind_init(struct start_bind *bind, const StepTask *task, const StepTaskOne *one,
                     bool has_cpuset);
void start_bind_done(struct start_bind *bind);

#endif
