/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_load.h - a full cluster and a long queue, for bench_sched.c and bench_shocks.c
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include "base/vec.h"
#include "sched/test/rig.h"

#define US_PER_S INT64_C(1000000)
enum { PLAN_BUDGET = 512 }; /* as ctl_plan.c, at most */

/* One run: how long the queue is, on what, and what is asked. */
struct setting {
    const char *name;
    unsigned jobs, nodes, shapes, users;
    unsigned times;    /* different time limits */
    unsigned bookings; /* 0: the default */
    bool limits, switches, blocks, preempts;
    bool wide; /* nodes have features, for bench_wide.c */
};

struct ending {
    int64_t us;
    uint32_t job_id;
};

struct load {
    struct rig *rig;
    VEC(struct ending) heap;
    const struct setting *of;
    struct str toml; /* the configuration */
};

void load_begin(struct load *load, const struct setting *of);
void load_done(struct load *load);
/* The cluster first, then the queue. */
void load_fill(struct load *load);
void load_submit(struct load *load);
/* Which job ends next. */
struct ending load_pop(struct load *load);

#endif
