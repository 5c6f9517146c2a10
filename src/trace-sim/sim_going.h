/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_going.h - a simulation while it goes on: what sim_run.c, sim_use.c and sim_ask.c share
 */
#ifndef TRACE_SIM_SIM_GOING_H
#define TRACE_SIM_SIM_GOING_H

#include "trace-sim/sim.h"

struct sim_ending {
    int64_t s;
    uint32_t index, turn; /* of the job; in another turn it is out of date */
};

struct sim_going {
    struct sim_run *run;
    struct sim_cluster cluster;
    VEC(struct sim_ending) endings; /* a heap */
    VEC(uint32_t) by_id;            /* id - first id → index of the job */
    uint32_t first_id;
    size_t running;       /* jobs */
    unsigned idle;        /* turns since something ran */
    uint32_t *used, *has; /* by node: thousandths of GPUs, or CPUs */
    uint64_t in_use, stranded;
    uint32_t gpus_most, scale; /* of a node; what a unit is in `used` */
    const char *share;         /* what parts of GPUs are called; NULL: there are none */
    uint32_t share_per;        /* of a GPU */
};

/* ---- sim_use.c: what nodes have, how much of it is in use, and where jobs are ---- */

void sim_use_read(struct sim_going *going);
void sim_use_done(struct sim_going *going);
/* The job runs from now on, or no longer; it has its nodes in both cases. */
void sim_use_begin(struct sim_going *going, struct sim_job *line, const struct job *job);
void sim_use_end(struct sim_going *going, struct sim_job *line, const struct job *job);
/* What the job has: thousandths of GPUs, or CPUs. */
uint64_t sim_use_of(const struct sim_going *going, const struct job *job);

/* ---- sim_ask.c: what a job of the trace asks for ---- */

struct sim_asked {
    JobSpec spec;
    GresRequest gres, *gres_list[1];
};
void sim_ask(struct sim_going *going, const struct sim_job *line, struct sim_asked *asked);

#endif
