/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay.h - the supervisors of a step's nodes talk to each other, by way of srun
 *
 * Every node has a stream from srun already, which survives broken connections; nodes need not reach
 * each other. A message is cut into frames of RELAY_FRAME_BYTES, which srun passes on in order and
 * keeps until they were taken. Nodes are numbered as in the step's layout.
 */
#ifndef SPURSTEPD_RELAY_H
#define SPURSTEPD_RELAY_H

#include "base/err.h"
#include "proto/run.pb-c.h"
#include "proto/step.pb-c.h"

struct tasks;

enum { RELAY_ALL = -1, RELAY_FRAME_BYTES = 12 * 1024, RELAY_ACK_BYTES = 24 * 1024 };

struct relay {
    StepLayout *layout;
    uint32_t here;        /* our node */
    uint64_t taken;       /* number of the last frame */
    size_t unacked_bytes; /* taken since we last said so */
    struct str *parts;    /* by node: the beginning of a message */
};

/* Rows of step_plugins.c. */
bool relay_wanted(const StepTask *task);
int relay_begin(struct tasks *tasks, struct err *err);
void relay_end(struct tasks *tasks);

/* To one node, or to every other. */
void relay_send(struct tasks *tasks, int64_t to, const void *bytes, size_t len);
/* From srun. */
void relay_take(struct tasks *tasks, const StepRelay *frame);
uint64_t relay_taken(const struct tasks *tasks);

#endif
