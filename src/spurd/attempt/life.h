/* SPDX-License-Identifier: Apache-2.0 */
/*
 * life.h - what becomes of a grant: prolog, launch, end, report, and finding it again
 */
#ifndef SPURD_ATTEMPT_LIFE_H
#define SPURD_ATTEMPT_LIFE_H

#include "spurd/root.h"

/* ---- agent_job.c: what becomes of a grant ---- */
/* Does whatever is due for it; may drop it. Safe to call at any time. */
void agent_advance(struct agent *agent, struct attempt *held);
void agent_step_news(void *agent, void *held, const StepNews *news);
void agent_step_lost(void *agent, void *held);
bool agent_write_record(struct agent *agent, const SpoolRecord *record, struct err *err);
/* What a late answer is for: the attempt is found by number, it may have gone meanwhile. */
struct agent_ref {
    struct agent *agent;
    uint32_t job, attempt;
};
struct agent_ref *agent_ref_new(struct agent *agent, const struct attempt *held);

/* ---- agent_hook.c ---- */
/* Private directories of its own, if it gets some; false: it was refused and is gone. */
bool agent_prepare(struct agent *agent, struct attempt *held);
void agent_start_prolog(struct agent *agent, struct attempt *held);
void agent_start_epilog(struct agent *agent, struct attempt *held);
/* One program at a time is wanted and another runs: agent_advance() comes when it is done. */
bool agent_hook_waits(struct agent *agent, struct attempt *held);
/* Processes of it outlive SIGKILL: has the node drained and the site's program run. */
void agent_unkillable(struct agent *agent, struct attempt *held, uint32_t step);
void agent_unkillable_stop(struct agent *agent);

/* agent_extern.c: a cgroup of the job for what is none of its steps. */
bool agent_prolog_flag(const struct agent *agent, const char *flag);
void agent_extern_open(struct agent *agent, struct attempt *held);
void agent_extern_kill(struct agent *agent, struct attempt *held);
void agent_extern_close(struct agent *agent, struct attempt *held);
void agent_extern_run(struct agent *agent, struct attempt *held, struct hook *hook);

/* gpu_watch.c: starts or stops what looks at GPUs of NVIDIA, when that is due. */
void agent_gpu_watch(struct agent *agent);
void agent_gpu_watch_stop(struct agent *agent);
/* agent_spank.c: callbacks of plugins that are of no job */
void agent_spank_start(struct agent *agent);
void agent_spank_stop(struct agent *agent);

/* ---- agent_launch.c ---- */
/* Nothing ran, or the supervisor died: a report of our own. */
void agent_fail_step(struct agent *agent, struct attempt *held, bool launch_failed,
                     const char *text);
/* The grant, unless it is there, and the launch, unless NULL. */
bool agent_write_grant(struct agent *agent, struct attempt *held, const SpoolLaunched *launched,
                       struct err *err);
/* The next thing on the way to the zygote, when there is a script. */
void agent_launch(struct agent *agent, struct attempt *held);

/* ---- agent_end.c ---- */
void agent_kill(struct agent *agent, struct attempt *held);
/* Holds back or lets go on; said again to a supervisor that is reached only later. */
void agent_freeze(struct agent *agent, struct attempt *held, FreezeCause cause, bool thaw);
/* agent_gang.c: stops or goes on; later, when who has its CPUs has stopped. */
void agent_gang_turn(struct agent *agent, struct attempt *held, bool go);
bool agent_launch_waits(struct agent *agent, struct attempt *held);
void agent_gang_turns(struct agent *agent); /* somebody stopped or ended */
void agent_freeze_again(struct attempt *held);
/* Others may have waited for it. */
void agent_forget(struct agent *agent, struct attempt *held);
/* A report came: synced to disk in a while, unless it is acknowledged before. */
void agent_keep_later(struct agent *agent, struct attempt *held);

/* ---- agent_find.c: after a restart, and when a channel breaks ---- */
/* Finds out what became of a launched step and makes `held` say so. */
void agent_find_step(struct agent *agent, struct attempt *held);
void agent_keep_ends(struct agent *agent);
void agent_recover(struct agent *agent);

/* ---- agent_lease.c ---- */
/* A controller has answered what we sent then. */
void agent_heard(struct agent *agent, int64_t sent_us);
void agent_heard_beat(struct agent *agent, uint64_t seq);
/* Frozen for a lease that has begun anew: asks what is current. */
void agent_lease_again(struct agent *agent);
void agent_set_lease(struct agent *agent, uint32_t lease_ms);
void agent_lease_init(struct agent *agent);

#endif
