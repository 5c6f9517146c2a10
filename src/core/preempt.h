/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt.h - who may push aside whom
 *
 * By partition tier, by QOS or by size, as preemption.type says. The planner asks before it names victims,
 * and core asks again when it applies CmdPreempt: both go by these rules and nothing else.
 */
#ifndef CORE_PREEMPT_H
#define CORE_PREEMPT_H

#include <stdbool.h>
#include <stdint.h>

struct job;
struct partition;
struct state;

/* What happens to the victim, the mildest first. */
enum preempt_mode {
    PREEMPT_OFF,
    PREEMPT_SUSPEND,
    PREEMPT_REQUEUE,
    PREEMPT_CANCEL,
};

/* By size: the planner says who goes before whom. */
bool preempt_by_size(const struct state *state);

/* Is anything ever preempted? */
bool preempt_is_on(const struct state *state);

/*
 * What would happen to `victim`, which runs, if `job` were to start in `partition` in its place.
 * PREEMPT_OFF when it may not. Exempt time is not looked at.
 */
enum preempt_mode preempt_mode(const struct state *state, const struct job *job,
                               const struct partition *partition, const struct job *victim);

/* From when on a running job may be preempted. */
int64_t preempt_from_us(const struct state *state, const struct job *victim);

/* How dear a running job is to those who choose victims: the tier or QOS priority it runs with. */
uint32_t preempt_worth(const struct state *state, const struct job *victim);

#endif
