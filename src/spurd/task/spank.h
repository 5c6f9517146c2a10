/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spank.h - SPANK plugins of this node: whether there are any, and what a step with them needs
 */
#ifndef SPURD_TASK_SPANK_H
#define SPURD_TASK_SPANK_H

#include "base/arena.h"
#include "proto/agent.pb-c.h"
#include "proto/run.pb-c.h"
#include "proto/step.pb-c.h"
#include "spank/plugstack.h"

struct task_spank {
    char *program; /* spurstepd-spank; NULL: not installed */
    struct plugstack_place place;
    bool used;
    int64_t looked_us; /* boot time */
};

/* Has plugstack.conf a line? Looks again once in a second. */
bool task_spank_used(struct task_spank *spank);
void task_spank_done(struct task_spank *spank);

/* The step then runs in spurstepd-spank: of the batch script, or of srun on the node `here`. */
void task_spank_batch(const struct task_spank *spank, const Grant *grant, struct arena *arena,
                      StepTask *out);
void task_spank_step(const struct task_spank *spank, const Grant *grant, const StepLayout *layout,
                     size_t here, struct arena *arena, StepTask *out);

/* Words that have the plugins' callbacks run: --prolog, --epilog, --slurmd. On the heap with their ends. */
char **task_spank_words(const struct task_spank *spank, const char *what);

#endif
