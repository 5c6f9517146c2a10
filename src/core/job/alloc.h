/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc.h - what alloc_check.c looks at and alloc.c takes
 */
#ifndef CORE_JOB_ALLOC_H
#define CORE_JOB_ALLOC_H

#include "core/job/jobs.h"

/* Numbers that a part names; nodes of a wide job name the same ones, which are read once. */
struct named {
    const char *text; /* that they were read from, or NULL */
    bool good;
    struct bitset set;
};
struct choice {
    struct named cpus, devices;
};
void choice_done(struct choice *choice);

/* The CPUs that it names, or the lowest free ones when only their number is; false: they are not free. */
bool alloc_choose_cpus(const struct node *node, const NodeAlloc *alloc, unsigned share,
                       struct choice *out);
/* The same of devices; *out is NULL where these are only counted. */
bool alloc_choose_devices(const struct node *node, const struct node_gres *gres,
                          const GresAlloc *alloc, struct choice *choice, const struct bitset **out);
bool alloc_cpu_is_free(const struct node *node, size_t cpu, unsigned share);

/* What the job needs in that partition, or NULL. */
const struct need *alloc_need(const struct state *state, const struct job *job,
                              const char *partition);
/* Of those that run there nobody minds the job, and it minds none of them. */
int alloc_check_others(const struct job *job, const struct partition *partition,
                       const struct node *node, struct err *err);

#endif
