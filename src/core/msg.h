/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msg.h - records as messages, for replies, launches and snapshots
 *
 * Messages are filled from an arena and borrow from the state: they are valid until either goes.
 */
#ifndef CORE_MSG_H
#define CORE_MSG_H

#include "base/arena.h"
#include "base/str.h"
#include "core/state.h"
#include "proto/controller.pb-c.h"

/* Everything but the spec (which stays packed; job_pack splices it). */
void job_status_msg(const struct state *state, const struct job *job, struct arena *arena,
                    JobStatus *out);
void job_owner_msg(const struct owner *owner, JobOwner *out);
/* The job with its whole spec unpacked from the arena. */
Job *job_msg(const struct state *state, const struct job *job, struct arena *arena);

enum job_parts {
    JOB_PACK_BRIEF, /* of the spec only name and partition: what default columns need */
    JOB_PACK_FULL,
    JOB_PACK_PRIORITY, /* brief, with priority_parts */
};
/* What core does not know of a job that waits. Zero-initialised: nothing but the record. */
struct job_words {
    unsigned reason;          /* the planner's, for when core has none; 0 */
    const char *reason_text;  /* that goes with it; NULL */
    int64_t planned_start_us; /* 0 unknown */
    const char *planned_nodes;
    int64_t looked_us; /* when the planner last looked at it; 0 */
    bool as_task;      /* show the array's record as this one task */
    uint32_t task;
};
/* Puts what only the planner knows into what is shown of a job; borrows from `words`. */
void job_words_msg(const struct job *job, const struct job_words *words, JobStatus *out);
/* Appends the packed Job message to `out` without unpacking the spec. `words` may be NULL. */
void job_pack(const struct state *state, const struct job *job, enum job_parts parts,
              const struct job_words *words, struct str *out);

void alloc_msg(const struct job *job, struct arena *arena, Allocation *out);
/* With the parts that have left, in their places. */
void alloc_all_msg(const struct job *job, struct arena *arena, Allocation *out);
void alloc_node_msg(const struct job *job, size_t part, struct arena *arena, NodeAlloc *out);

void node_msg(const struct state *state, const struct node *node, struct arena *arena, Node *out);
void partition_msg(const struct state *state, const struct partition *partition,
                   struct arena *arena, Partition *out);
void reservation_msg(const struct state *state, const struct reservation *reservation,
                     struct arena *arena, Reservation *out);

#endif
