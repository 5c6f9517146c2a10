/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.h - the state as messages: answers, snapshots, and back
 */
#ifndef CORE_VIEW_VIEW_H
#define CORE_VIEW_VIEW_H

#include "core/apply.h"

/* ---- restore_job.c ---- */

int restore_job(struct state *state, const SnapshotJob *msg, struct err *err);

/* ---- msg_node.c ---- */

/* What a snapshot holds of a node. */
void node_fact_msg(const struct node *node, NodeStatus *out);

#endif
