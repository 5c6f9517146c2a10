/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.h - steps of jobs as commands ask for them: of the controller, and of the nodes themselves
 */
#ifndef CLI_STEPS_H
#define CLI_STEPS_H

#include "base/vec.h"
#include "cli/cli.h"
#include "proto/agent.pb-c.h"
#include "proto/controller.pb-c.h"
#include "proto/run.pb-c.h"

enum { STEPS_BATCH = 0xfffffffb, STEPS_INTERACTIVE = 0xfffffffa, STEPS_NAME_BYTES = 16 };

/* "0", "batch", "interactive" */
void steps_name(uint32_t step, char out[STEPS_NAME_BYTES]);
bool steps_read_name(const char *text, uint32_t *step);
/* "12.0", "12.batch", "12": *has_step says which. False: it is neither. */
bool steps_read_id(const char *text, uint32_t *job, bool *has_step, uint32_t *step);

/*
 * The numbers of the jobs that "12", "12+1", "12_3" or one of them with a step stands for: all components of
 * a heterogeneous job, when it is named without one. None when there is none.
 */
typedef VEC(uint32_t) steps_jobs;
int steps_find_jobs(struct cli *cli, const char *text, steps_jobs *out, struct err *err);

/* What the controller knows, in the arena of `cli`; jobs NULL: of all. */
int steps_list(struct cli *cli, const uint32_t *jobs, size_t count, ListStepsReply **out,
               struct err *err);

/*
 * What the node that manages a job says of its steps: layouts and proofs, and with `usage` what they use
 * there. *access is who was asked.
 */
int steps_ask_manager(struct cli *cli, uint32_t job, bool has_step, uint32_t step, bool usage,
                      JobAccessReply **access, JobStepsReply **out, struct err *err);

/* Inside this job, on the node that manages it: the socket of its agent; else NULL. */
const char *steps_own_socket(uint32_t job);

/* What another node of the step says, shown the layout and its proof. */
int steps_ask_node(struct cli *cli, const char *address, const StepHere *step, size_t index,
                   JobStepsReply **out, struct err *err);

#endif
