/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_bind.h - which CPUs each task of a step is bound to on one node (pure)
 */
#ifndef SPURD_STEP_BIND_H
#define SPURD_STEP_BIND_H

#include "base/bitset.h"
#include "base/err.h"
#include "schema/bind.h"

/* The node: CPUs are numbered by socket, core, thread; `map` gives the kernel's number of each. */
struct bind_node {
    uint32_t cpus, cores_per_socket, threads;
    const unsigned *map; /* NULL: the same numbers */
    char *const *ldoms;  /* NUMA nodes as lists of the kernel's CPUs; none: sockets */
    size_t ldom_count;
};

struct bind_ask {
    const char *cpu_ids; /* of the step; empty: all of the node */
    const char *cpu_bind, *distribution, *hint;
    uint32_t threads_per_core;     /* 0: not said */
    uint32_t cpus_per_task;        /* 0: one */
    uint32_t tasks;                /* on this node */
    uint32_t per_core, per_socket; /* at most so many tasks on each; 0: any number */
    bool affinity;                 /* tasks that do not ask are bound too */
    enum bind_kind otherwise;      /* when nothing fits; BIND_DEFAULT: all of the step's CPUs */
};

/* Masks are of the kernel's CPUs, one for each task; none when nothing is bound. */
struct bind_plan {
    struct bitset *masks;
    size_t count;
    bool verbose;
    const char *word; /* "MASK", "RANK", … for messages */
};

/* ERR_CPU_BIND: a map or mask leads outside of the step's CPUs. bind_done() in any case. */
int bind_plan(const struct bind_node *node, const struct bind_ask *ask, struct bind_plan *out,
              struct err *err);
void bind_done(struct bind_plan *plan);

/* TaskPluginParam: "autobind=cores" and the like. */
enum bind_kind bind_autobind(const char *task_plugin_param);

#endif
