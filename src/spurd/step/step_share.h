/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_share.h - what a step takes of one node of an allocation: CPUs, memory, devices (pure)
 */
#ifndef SPURD_STEP_SHARE_H
#define SPURD_STEP_SHARE_H

#include "base/arena.h"
#include "base/vec.h"
#include "proto/run.pb-c.h"

/* What other steps have of one node of the allocation, and how the node is built. */
struct step_used {
    uint32_t cpus;
    uint64_t mem_mb;
    VEC(const StepNode *) steps; /* those that do not overlap */
    uint32_t sockets, threads;   /* 0: one */
    uint32_t per_socket;         /* CPUs of each; 0: all */
};

/* One node of the allocation and a step that may go there. */
struct step_share {
    const NodeAlloc *alloc;
    const struct step_used *used;
    const StepRequest *request;
};

/* Tasks that its devices allow: ever (now false), or beside the steps that run there. */
uint32_t step_share_tasks(const struct step_share *share, bool now);

/* How many devices of this request the node has. */
uint64_t step_share_count(const struct step_share *share, const GresRequest *gres, bool now);

/* Tasks that its cores and sockets allow, of those that the job has there. */
uint32_t step_share_places(const struct step_share *share);

/* CPUs that a task keeps others from using. */
uint32_t step_share_cpus_per_task(const struct step_share *share);

/*
 * Fills cpus, cpu_ids, gres and mem_mb of `out`, in the arena. `left` is what is to be had of each
 * request for the whole step, and is lessened; `after` nodes follow. False: the memory is not there, ever or now.
 */
bool step_share_take(const struct step_share *share, uint32_t tasks, size_t after, uint64_t *left,
                     bool now, struct arena *arena, StepNode *out);

#endif
