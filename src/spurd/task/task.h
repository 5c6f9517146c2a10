/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task.h - from what the controller says of a job to what a supervisor needs to run it
 */
#ifndef SPURD_TASK_H
#define SPURD_TASK_H

#include "base/arena.h"
#include "base/err.h"
#include "proto/agent.pb-c.h"
#include "proto/step.pb-c.h"
#include "spurd/node/inventory.h"
#include "spurd/task/env.h"
#include "spurd/task/spank.h"

enum { TASK_STEP_BATCH = 0xfffffffb, TASK_KILL_WAIT_S = 30 };

/* The node that the task is for. */
struct task_node {
    const char *name;
    const char *cluster;
    const char *run_dir, *spool_dir;
    const char *socket; /* of spurd, for srun inside jobs; NULL: none */
    const char *cgroup; /* directory of this node's jobs; NULL: there are no cgroups */
    bool has_controllers, has_memory; /* the kernel limits what is in there; also memory */
    const char *sysroot;              /* NULL: this machine */
    const char *lease_file;
    const struct task_spank *spank; /* NULL: no plugins */
    const char *container;          /* the program spur-container; NULL: not installed */
    const char *pmix;               /* the program spurstepd-pmix; NULL: not installed */
    const Config *config;           /* NULL: none yet */
    const NodeSpec *spec;           /* NULL: none yet */
    const struct inventory *inventory;
    bool change_user;
    const char *display, *xauthority; /* of the script, when X11 is forwarded; NULL: not */
};

struct agent;
void agent_task_node(const struct agent *agent, struct task_node *out);
/* Programs of the site, or plugins, that run before and after each job? */
bool agent_has_prolog(const struct agent *agent);
bool agent_has_epilog(const struct agent *agent);

/* The user's login, looked up beforehand when the job wants its environment. */
struct task_login {
    const char *shell, *home;
};

/* --cpu-freq, or CpuFreqDef, for the CPUs of `out`; those of the job or step as the controller numbers them. */
void task_freq(const struct task_node *node, const char *asked, const char *cpu_ids,
               struct arena *arena, StepTask *out);
/* --acctg-freq of a step. */
void task_sample(const char *text, StepTask *out);
/* --gpu-freq of a step, for GPUs with these directories. */
void task_gpu_freq(const char *asked, char **dirs, size_t count, struct arena *arena,
                   StepTask *out);
/* Is the frequency one that may be asked for? */
int step_freq_check(const struct agent *agent, const StepRequest *request, struct err *err);
/* Is this word in LaunchParameters? */
bool task_launches(const Config *config, const char *wanted);

/* Launch or grant, whichever has it. */
const JobSpec *task_spec(const Grant *grant);
/* Whether it may run again elsewhere when this node's lease is over, and must stand still here by then. */
bool task_is_bound(const Grant *grant, const Config *config);
int64_t task_time_limit_s(const Grant *grant, const Config *config);

void task_env_job(const struct task_node *node, const Grant *grant, struct env_job *out);

/* The files of a job, absolute, in the arena; *std_err is NULL when it goes where std_out goes. */
int task_files(const struct task_node *node, const Grant *grant, struct arena *arena, char **std_in,
               char **std_out, char **std_err, struct err *err);

/* JOB.ATTEMPT below the run directory, and where its report is kept on disk. */
char *task_dir(const struct task_node *node, uint32_t job, uint32_t attempt, struct arena *arena);
char *task_keep_file(const struct task_node *node, uint32_t job, uint32_t attempt,
                     struct arena *arena);
char *task_cgroup(const struct task_node *node, uint32_t job, uint32_t attempt,
                  struct arena *arena);

/* Checks the bounds of the payload and fills `out`, all in the arena. `login` may be NULL. */
int task_build(const struct task_node *node, const Grant *grant, const JobPayload *payload,
               const struct task_login *login, struct arena *arena, StepTask *out, struct err *err);

/* Everything of a step of srun that follows from the grant: identity, limits, containment. */
void task_build_step(const struct task_node *node, const Grant *grant, uint32_t step,
                     struct arena *arena, StepTask *out);

/* VSizeFactor: the address space of each process; there is room for one more in out->rlimits. */
void task_limit_vsize(const struct task_node *node, const Grant *grant, struct arena *arena,
                      StepTask *out);

/* Does the node have devices of NVIDIA; is one of them the job's? */
bool task_node_has_nvidia(const NodeInventory *found);
bool task_has_nvidia(const struct task_node *node, const Grant *grant);

/* What the job may use of this node: time, memory, CPUs, devices. */
void task_limits(const struct task_node *node, const Grant *grant, struct arena *arena,
                 StepTask *out);

/* Programs of the site around each task, and those of srun's user between them; NULL: none. */
void task_hooks(const struct task_node *node, char *prolog, char *epilog, struct arena *arena,
                StepTask *out);

/* Are there devices that its processes cannot open? */
bool task_hides_devices(const struct task_node *node, const StepTask *task);

/* May a limit be taken over from the submit host? By PropagateResourceLimits(Except). */
bool task_keeps_rlimit(const Config *config, const char *name);

#endif
