/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rig.h - a cluster and its planner on made-up time, for tests and figures
 *
 * The configuration is a TOML text; every node says hello with what it is configured to have. A job
 * is words: "N=2 n=8 c=2 t=60 mem=100 gres=gpu:h100:2". Starts are applied as the controller does
 * it, without a log between.
 */
#ifndef SCHED_TEST_RIG_H
#define SCHED_TEST_RIG_H

#include "core/core.h"
#include "core/shape.h"
#include "sched/sched.h"

/* The controller feeds the planner in the next turn when applying took longer (ctl_apply.c). */
#define RIG_LONG_MS 1.0

struct rig {
    struct state *state;
    struct sched *sched;
    struct events events;
    uint64_t index;
    int64_t now_us;
    bool check;                       /* every invariant of core and planner after every step */
    double core_ms, feed_ms, plan_ms; /* spent so far */
    double slice_ms, fed_ms; /* the longest sched_plan(), sched_feed_all(), in time of the CPU */
    uint64_t started, refused, preempts;
    unsigned budget;    /* of a slice */
    void (*turn)(void); /* before each slice and command, not counted; NULL: nothing */
    double applied_ms;  /* the longest core_apply(), in time of the CPU */
    double turn_ms;     /* the longest of both together, as the controller has them in a turn */
    double unpack_ms;   /* of the command that is applied next */
    bool watch;         /* fed_ms, applied_ms and turn_ms are worked out */
    void (*on_start)(struct rig *rig, const struct job *job);
    void *ctx;
};

struct rig *rig_new(const char *toml); /* stops the program when the text is no configuration */
struct rig *rig_new_config(const Config *config);
void rig_free(struct rig *rig);

/*
 * Another configuration, as the controller proposes it: in commands that change at most `most`
 * sections, each of them unpacked. The code of the first that was refused.
 */
enum err_code rig_configure(struct rig *rig, const Config *config, bool reconfigure, size_t most);

/* Applies and feeds. The code of its answer. */
enum err_code rig_apply(struct rig *rig, Command *cmd);

/*
 * Words: N=min[-max] n= c= t=SECONDS|inf mem= mpc= tpn= gres=NAME[:TYPE]:COUNT gpus=COUNT (of the
 * job) p= w= x= C= prefer= array= prio= nice= lic= resv= uid= cpg= hint= ex (exclusive) exuser share
 * contig spread over (overcommit) hold name= switches= swait= segment= corespec= threadspec= tres=
 * mcs= exmcs extopo bound spreadseg fewnodes (use-min-nodes) spare= gps= (of a socket) spn= (sockets). ":" begins the next component. 0 when it was refused.
 */
uint32_t rig_submit(struct rig *rig, const char *words);
/* What a submission would be answered, without it. */
enum err_code rig_admit(struct rig *rig, const char *words);
/* sched_test(): when it would start; 0 not known, INT64_MAX never. */
int64_t rig_test(struct rig *rig, const char *words);
uint32_t rig_submit_spec(struct rig *rig, uint32_t uid, const JobSpec *spec);

/* Asks for plans and applies them until nothing more starts; how many jobs started. */
size_t rig_plan(struct rig *rig);
/* One slice. */
size_t rig_slice(struct rig *rig, bool *more);
void rig_end(struct rig *rig, uint32_t job_id);
/* Its nodes say that nothing of it is left. */
void rig_release(struct rig *rig, uint32_t job_id);
/* Of all jobs that end. */
void rig_release_all(struct rig *rig);
void rig_cancel(struct rig *rig, uint32_t job_id);
void rig_node(struct rig *rig, const char *name, const char *state); /* scontrol update node */
/* scontrol update partition. */
void rig_partition(struct rig *rig, const char *name, int64_t max_time_s);
/* Nodes are kept for a user from then on, for an hour; twice the same name: something about it changes. */
void rig_reserve(struct rig *rig, const char *name, const char *nodes, int64_t in_s, bool change);
void rig_wait(struct rig *rig, int64_t seconds); /* time passes */
void rig_inventory(struct rig *rig, const char *name, NodeInventory *found);

const struct job *rig_job(const struct rig *rig, uint32_t id);
bool rig_runs(const struct rig *rig, uint32_t id);
/* "n1:0-3 gpu=0-1;n2:..." of a running job, in a buffer of its own. */
const char *rig_where(const struct rig *rig, uint32_t id);

#endif
