/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_whole.h - a srun over several components of a heterogeneous job, as its tasks see it
 *
 * Each component has a step of its own, with a layout that its managing node proved. srun adds the sum of
 * them; it decides nothing here but what the user's own tasks are told of each other.
 */
#ifndef SPURD_STEP_WHOLE_H
#define SPURD_STEP_WHOLE_H

#include "spurd/step/step_resources.h"

/* Sets give->whole and whole_node, and what the supervisor needs of it. `index`: our node of the layout. */
int step_whole(struct step_resources *give, size_t index, struct arena *arena, StepTasks *out,
               struct err *err);

/*
 * Where each node of a layout is in a list that has every name once; returns how many those are. Two
 * components may share a node.
 */
size_t step_whole_places(const StepLayout *layout, size_t *places);

/* What the variables of the job say of all components: nodes and their CPUs. */
void step_whole_env(const StepLayout *whole, struct env *env);

#endif
