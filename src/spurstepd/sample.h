/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.h - what the processes of a step use now, by task
 */
#ifndef SPURSTEPD_SAMPLE_H
#define SPURSTEPD_SAMPLE_H

#include <sys/types.h>

#include "base/arena.h"
#include "proto/step.pb-c.h"
#include "spurstepd/contain.h"

struct sample_task {
    uint32_t number;
    pid_t pid;          /* of its first process; 0: gone */
    const Usage *ended; /* of processes that are gone; NULL: none */
};

/*
 * Fills usage and tasks of `out`, in the arena, from /proc and the step's cgroup. A process belongs to the
 * task it descends from, else to the one whose session it is in, else to the first. `sysroot` (may be NULL)
 * goes before /sys, where frequencies are.
 *
 * Returns the memory that is surely theirs: what none shares, and the largest shared part once.
 */
uint64_t sample_take(const struct contain *contain, const struct sample_task *tasks, size_t count,
                     const char *sysroot, struct arena *arena, StepHere *out);

#endif
