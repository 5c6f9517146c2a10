/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_layout.h - which tasks of a step run on which nodes of an allocation (pure)
 */
#ifndef SPURD_STEP_LAYOUT_H
#define SPURD_STEP_LAYOUT_H

#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"
#include "proto/run.pb-c.h"
#include "spurd/step/step_share.h"

enum { STEP_TASKS_MAX = LIMIT_STEP_TASKS, STEP_TASKS_PER_NODE_MAX = 65535 };

/*
 * Fills nodes, ntasks and cpus_per_task of `out`, in the arena, and `picked` (one index into the
 * allocation for each node). ERR_NODES_BUSY: not now, but when other steps have ended. Anything else: never
 * in this allocation; the text is what srun prints.
 */
int step_layout(const Allocation *allocation, char *const *addresses, const struct step_used *used,
                const StepRequest *request, struct arena *arena, StepLayout *out, uint32_t *picked,
                struct err *err);

/* What scontrol calls the way its tasks were dealt out: Block, Cyclic, Plane, Arbitrary. */
const char *step_layout_word(const StepRequest *request, const StepLayout *layout);

#endif
