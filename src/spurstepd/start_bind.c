/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start_bind.c - the CPUs and the memory that a process is bound to, as the kernel wants them
 */
#include "spurstepd/start_bind.h"

#include <linux/mempolicy.h>

#include "base/bitset.h"
#include "base/str.h"

/* A task's own; and where the kernel has no cpuset controller for us, those of the step. */
static void set_cpus(struct start_bind *bind, const char *cpus)
{
    struct bitset set;

    bitset_init(&set, LIMIT_CPU_NUMBER);
    if (bitset_parse(&set, cpus) && !bitset_is_empty(&set)) {
        bind->cpus_bytes = CPU_ALLOC_SIZE(LIMIT_CPU_NUMBER);
        bind->cpus = CPU_ALLOC(LIMIT_CPU_NUMBER);
        CPU_ZERO_S(bind->cpus_bytes, bind->cpus);
        bitset_each (cpu, &set)
            CPU_SET_S(cpu, bind->cpus_bytes, bind->cpus);
    }
    bitset_done(&set);
}

/* Only the first can be preferred. */
static void set_nodes(struct start_bind *bind, const char *nodes, bool prefer)
{
    const size_t bits = 8 * sizeof(unsigned long);
    struct bitset set;

    bitset_init(&set, LIMIT_NUMA_NODES);
    if (bitset_parse(&set, nodes)) {
        bitset_each (id, &set) {
            if (!bind->mem_mode || !prefer)
                bind->nodes[id / bits] |= 1UL << id % bits;
            bind->mem_mode = prefer ? MPOL_PREFERRED : MPOL_BIND;
        }
    }
    bitset_done(&set);
}

void start_bind_init(struct start_bind *bind, const StepTask *task, const StepTaskOne *one,
                     bool has_cpuset)
{
    const char *cpus = task->step_cpuset ? task->step_cpuset : task->cpuset;

    *bind = (struct start_bind){ 0 };
    if (has_cpuset)
        cpus = NULL;
    if (one && one->cpus)
        cpus = one->cpus;
    if (!str_is_empty(cpus))
        set_cpus(bind, cpus);
    if (one && !str_is_empty(one->mem_nodes))
        set_nodes(bind, one->mem_nodes, one->mem_prefer);
}

void start_bind_done(struct start_bind *bind)
{
    if (bind->cpus)
        CPU_FREE(bind->cpus);
    bind->cpus = NULL;
}
