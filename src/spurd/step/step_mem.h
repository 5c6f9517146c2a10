/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_mem.h - the memory of which NUMA nodes each task of a step uses (pure)
 */
#ifndef SPURD_STEP_MEM_H
#define SPURD_STEP_MEM_H

#include "base/bitset.h"
#include "base/err.h"
#include "schema/bind.h"

/* The NUMA nodes of a machine. */
struct mem_node {
    char *const *cpus;   /* of each, as a list of the kernel's CPUs; "" when it has none */
    const unsigned *ids; /* the kernel's number of each; NULL: 0, 1, … */
    size_t count;
};

/* Every NUMA node there is, into `out`, which has LIMIT_NUMA_NODES bits. */
void mem_all(const struct mem_node *node, struct bitset *out);

/*
 * Those that task number `task` of this machine is bound to; `cpus` is what it may run on, NULL: everything.
 * ERR_INVALID: one of them is not there; the text names it.
 */
int mem_plan(const struct mem_node *node, const struct bind_mem *bind, size_t task,
             const struct bitset *cpus, struct bitset *out, struct err *err);

/* "LOC", "RANK", … for messages. */
const char *mem_word(const struct bind_mem *bind);

#endif
