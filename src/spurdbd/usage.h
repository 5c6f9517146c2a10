/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage.h - parts of steps, as nodes report them, become steps
 *
 * (1) A part may come twice. A step names the nodes that have not reported (waits_for); a part of a node
 *     that is not among them is passed over.
 */
#ifndef SPURDBD_USAGE_H
#define SPURDBD_USAGE_H

#include "base/arena.h"
#include "proto/dbd.pb-c.h"

/* A step of which nothing is known yet but what its parts say of the whole. From the arena. */
AcctStep *usage_step_new(const StepPart *part, struct arena *arena);
/* False: the part of this node is in it already. What is added comes from the arena, or borrows from `part`. */
bool usage_step_add(AcctStep *step, const StepPart *part, struct arena *arena);

/* The batch script of a job that ran, as a step of one task. `usage` may be NULL. From the arena. */
AcctStep *usage_batch_step(const Job *job, const Usage *usage, JobState state, int64_t start_us,
                           int64_t end_us, struct arena *arena);

#endif
