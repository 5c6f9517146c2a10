/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.h - steps of srun on this node: NodeAccess.RunStep and JobSteps
 *
 * step_run.c     the streams of srun and sattach, and what goes through them
 * step_proc.c    the supervisors of steps here: what they say, how they are found again, their end
 * step_link.c    streams meet supervisors: launch, attachment, parting
 * step_order.c   what the agent tells steps
 * step_ask.c     on the managing node: numbers of steps, who gets a share, who waits
 * step_book.c    its book: shares of the allocation, kept over a restart
 * step_layout.c  which task runs where (pure)
 * step_share.c   what a step takes of a node: CPUs, memory, devices (pure)
 * step_bind.c    which CPUs a task is bound to (pure)
 * step_mem.c     the memory of which NUMA nodes a task uses (pure)
 * step_resources.c    what the tasks of a step get of this node
 * step_task.c    from a launch to what a supervisor needs
 * step_mpi.c     which process manager a step gets
 * step_ports.c   ports that a step reserves
 * step_report.c  what the controller hears of steps, in batches
 * step_query.c   what is asked about them: usage, processes, layouts
 */
#ifndef SPURD_STEP_H
#define SPURD_STEP_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "proto/run.pb-c.h"
#include "rpc/rpc.h"
#include "spurd/access/access.h"
#include "spurd/root.h"

enum {
    STEP_RUNS_MAX = 4096,
    STEP_DATA_MAX = 16 * 1024,
    STEP_INTERACTIVE = 0xfffffffa,
    STEP_AWAY_MS = 5000,        /* how long srun may be away before its step is ended */
    STEP_FOUND_AWAY_MS = 30000, /* the same after we were away ourselves */
};

struct step_run;
struct step_proc;
struct share;
struct reports;
struct query;
struct port_hold;

/* What steps tell the attempt that they belong to. */
struct steps_ops {
    void (*counted)(struct agent *agent); /* one more, or one fewer, is alive here */
    void (*frozen)(struct agent *agent);  /* the tasks of one stopped or went on */
    void (*unkillable)(struct agent *agent, struct attempt *held, uint32_t step);
    void (*ended)(struct agent *agent, struct attempt *held);
};

/* What the agent keeps of steps; its member `steps`. */
struct steps {
    const struct steps_ops *ops;
    VEC(struct step_run *) runs;
    VEC(struct step_proc *) procs;
    struct map books; /* attempt_key() to the manager's book of an attempt */
    struct reports *reports;
    VEC(struct query *) queries;
    VEC(struct port_hold *) holds; /* ports of steps that are to come */
    uint32_t last_stream;
    bool recovered; /* what an earlier spurd left is known */
};

/* ---- for the agent ---- */

extern const struct rpc_method step_methods[];
extern const size_t step_method_count;

/* Makes the directories. */
int steps_open(struct agent *agent, const struct steps_ops *ops, struct err *err);
/* Finds the steps that an earlier spurd left running. After agent_recover(). */
void steps_recover(struct agent *agent);
/* Every stream ends; supervisors and tasks go on. */
void steps_close(struct agent *agent);

/* To every step of an attempt, or to one. */
void steps_end_lost(struct agent *agent, const struct attempt *held); /* with another grant */
/* The node is prepared for the job, or will not be: requests that came before are answered. */
void steps_prepared(struct agent *agent, uint32_t job);
void steps_kill(struct agent *agent, const struct attempt *held, unsigned wait_s, JobState why);
void steps_signal(struct agent *agent, const struct attempt *held, const SignalJob *order);
void steps_order(struct agent *agent, const struct attempt *held, const StepOrder *order);
void steps_freeze(struct agent *agent, const struct attempt *held, FreezeCause cause, bool thaw);
void steps_limit(struct agent *agent, const struct attempt *held, int64_t job_limit_s);

/* ---- step_run.c ---- */

/* One stream of srun or sattach. */
struct step_run {
    struct agent *agent;
    struct rpc_call *call; /* NULL: it was answered */
    uint32_t job, attempt, step;
    uint32_t number;        /* of the stream, for those who watch */
    struct step_proc *proc; /* NULL: none (any more) */
    bool watches;           /* sattach */
    bool over;              /* nothing more comes from the supervisor */
    bool half_done;         /* it says nothing more */
    struct share *share;    /* manager: of the allocation */
    StepRequest *waiting;   /* manager: not yet granted */
    StepRequest *early;     /* manager: came while the node is prepared for the job */
};

void step_run_fail(struct step_run *run, const struct err *err);
void step_run_send(struct step_run *run, const RunStepOut *out);
/* Ends it when nothing is left to do. */
void step_run_settle(struct step_run *run);

/* ---- step_proc.c ---- */

/* A supervisor of a step here. */
struct step_proc {
    struct agent *agent;
    uint32_t job, attempt, step;
    StepLayout *layout;         /* NULL: found, and it has not said so yet */
    ProtobufCBinaryData packed; /* the layout as it was proved */
    struct step_chan *chan;     /* NULL: looked for */
    struct step_run *run;       /* of srun; NULL: away */
    VEC(struct step_run *) watchers;
    uv_timer_t *timer;
    int64_t launched_us; /* when we asked for it; 0: it was found */
    int64_t started_us;
    unsigned frozen;
    uint64_t over_seq; /* of the last frame; 0: not seen */
    bool ended;        /* no process is left */
    bool counted;      /* in held->steps */
    bool paused;       /* somebody does not read as fast as the tasks write */
    bool dismissed;
    JobState killed; /* why it was told to end, until it says so itself */
    unsigned kill_wait_s;
    bool kill_due;
};

struct step_proc *step_proc_find(const struct agent *agent, uint32_t job, uint32_t attempt,
                                 uint32_t step);
int step_proc_launch(struct step_run *run, const StepLaunch *launch, struct err *err);
void step_proc_attach(struct step_proc *proc, struct step_run *run, const StepAttach *attach);
/* The stream has gone; srun's is waited for. */
void step_proc_detach(struct step_proc *proc, struct step_run *run);
/* Passes on what srun or sattach said. */
void step_proc_pass(struct step_proc *proc, struct step_run *run, const RunStepIn *in);
void step_proc_kill(struct step_proc *proc, unsigned wait_s, JobState why);
void step_proc_writable(struct step_proc *proc);

/* For those who drive it: step_link.c, step_order.c. */
extern const struct step_chan_ops step_proc_ops;
struct step_proc *step_proc_new(struct agent *agent, uint32_t job, uint32_t attempt, uint32_t step);
void step_proc_free(struct step_proc *proc);
void step_proc_set_layout(struct step_proc *proc, const ProtobufCBinaryData *bytes);
void step_proc_count(struct step_proc *proc, bool on); /* in held->steps */
void step_proc_order(struct step_proc *proc, const StepOrder *words);
/* Nobody wants more of it: its output is dropped, and it goes when its step has ended. */
void step_proc_dismiss(struct step_proc *proc);
void step_proc_wait(struct step_proc *proc, unsigned ms); /* for srun to come back */
unsigned step_kill_wait_s(const struct agent *agent);
/* This node of the layout; NULL: none. */
const StepNode *step_layout_here(const StepLayout *layout, const char *node);

/* ---- step_ask.c ---- */

/* Grants the request, or makes it wait, or fails it. */
void step_ask(struct step_run *run, const StepRequest *request);
/* srun is here again: the share is its. */
void step_ask_attach(struct step_run *run, const StepAttach *attach);
/* The stream ends: the share is given back, or kept for a while when srun may come again. */
void step_ask_leave(struct step_run *run, bool for_good);
/* ---- step_book.c ---- */

/* The attempt has gone from this node: `for_good`, or we stop. */
void step_book_forget(struct agent *agent, uint32_t job, uint32_t attempt, bool for_good);
/* Shares that an earlier spurd gave. */
void step_book_recover(struct agent *agent);
/* Layouts and proofs of the open steps of an attempt, in the arena. */
void step_book_list(struct agent *agent, const struct attempt *held, bool one, uint32_t step,
                    struct arena *arena, JobStepsReply *out);

/* ---- step_task.c ---- */

int step_task(struct agent *agent, const struct attempt *held, const StepLaunch *launch,
              const StepLayout *layout, struct arena *arena, StepTask *out, struct err *err);

/* ---- step_mpi.c ---- */

/* What a step's tasks get; NULL: nothing. */
int step_mpi(const struct agent *agent, const StepRequest *request, const char **out,
             struct err *err);

/* ---- step_ports.c ---- */

/*
 * The ports that a step gets, in the arena; nothing when it asks for none. `others`: steps of the same job
 * that run.
 */
int step_ports(struct agent *agent, const StepRequest *request, const StepLayout *layout,
               StepLayout *const *others, size_t count, uint32_t step, struct arena *arena,
               char **out, struct err *err);
/* The step is launched, or will not be. */
void step_ports_release(struct agent *agent, uint32_t job, uint32_t attempt, uint32_t step);
void step_ports_close(struct agent *agent);
void step_on_hold_ports(struct rpc_call *call, const ProtobufCMessage *message);

/* ---- step_report.c ---- */

void step_reports_open(struct agent *agent);
void step_reports_close(struct agent *agent);
void step_report_started(struct step_proc *proc);
void step_report_ended(struct step_proc *proc, const StepEnded *ended);
/* A new leader, or the same again: everything. */
void step_report_all(struct agent *agent);
void step_report_acked(struct agent *agent, uint64_t number);

/* ---- step_query.c ---- */

void step_on_query(struct rpc_call *call, const ProtobufCMessage *message);
void step_query_sample(struct agent *agent, uint32_t job, uint32_t attempt, uint32_t step,
                       const StepHere *sample);
void step_queries_close(struct agent *agent);

#endif
