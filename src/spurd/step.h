/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.h - steps of srun on this node: NodeAccess.RunStep
 *
 * step_run.c     the streams of srun and what goes through them
 * step_book.c    on the managing node: numbers, shares of the allocation, who waits
 * step_layout.c  which task runs where (pure)
 * step_task.c    from a launch to what a supervisor needs
 */
#ifndef SPURD_STEP_H
#define SPURD_STEP_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "proto/run.pb-c.h"
#include "rpc/rpc.h"
#include "spurd/agent_priv.h"

enum { STEP_PROOF_BYTES = 32, STEP_RUNS_MAX = 4096, STEP_DATA_MAX = 16 * 1024 };

struct step_run;

/* What the agent keeps of steps; its member `steps`. */
struct steps {
    VEC(struct step_run *) runs;
    struct map books; /* held_key() to the manager's book of an attempt */
};

/* ---- for the agent ---- */

extern const struct rpc_method step_methods[];
extern const size_t step_method_count;

/* Makes the directory of supervisors. */
int steps_open(struct agent *agent, struct err *err);
/* Every stream ends; their supervisors end the tasks. */
void steps_close(struct agent *agent);

/* To every step of an attempt, or to one. */
void steps_kill(struct agent *agent, const struct held *held, unsigned wait_s, JobState why);
void steps_signal(struct agent *agent, const struct held *held, uint32_t signal, bool one,
                  uint32_t step);
void steps_order(struct agent *agent, const struct held *held, const StepOrder *order);
/* Those that an earlier spurd left behind, and end now because of that. */
bool steps_left_behind(const struct agent *agent, uint32_t job, uint32_t attempt);

/* ---- step_run.c ---- */

/* One stream of srun. */
struct step_run {
    struct agent *agent;
    struct rpc_call *call; /* NULL: srun is gone, or was answered */
    uint32_t job, attempt, step;
    struct step_chan *chan; /* to the supervisor; NULL: none (any more) */
    StepRequest *waiting;   /* manager: not yet granted */
    bool said_waiting;
    bool manages;   /* holds a share of the allocation */
    bool launched;  /* had a supervisor */
    bool over;      /* it said so */
    bool half_done; /* srun says nothing more */
    bool paused;    /* srun does not read as fast as the tasks write */

    uint32_t *nodes; /* of the share: indexes into the allocation */
    StepLayout *layout;
    bool overlap;
};

void step_run_fail(struct step_run *run, const struct err *err);
void step_run_send(struct step_run *run, RunStepOut *out);
/* Ends it when nothing is left to do. */
void step_run_settle(struct step_run *run);

/* ---- step_book.c ---- */

/* Grants the request, or makes it wait, or fails it. */
void step_book_ask(struct step_run *run, const StepRequest *request);
/* Gives the share back; others may go on. */
void step_book_leave(struct step_run *run);
/* The attempt has gone from this node: `for_good`, or we stop. */
void step_book_forget(struct agent *agent, uint32_t job, uint32_t attempt, bool for_good);
void step_prove(const Grant *grant, const void *bytes, size_t len, uint8_t out[STEP_PROOF_BYTES]);

/* ---- step_task.c ---- */

int step_task(struct agent *agent, const struct held *held, const StepLaunch *launch,
              const StepLayout *layout, struct arena *arena, StepTask *out, struct err *err);

#endif
