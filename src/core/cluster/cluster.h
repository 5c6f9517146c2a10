/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.h - nodes, partitions and licences
 */
#ifndef CORE_CLUSTER_CLUSTER_H
#define CORE_CLUSTER_CLUSTER_H

#include "core/record/record.h"

/* ---- node_use.c ---- */

/* Adds what one part of a job uses of the node: everything, its cores, its shares of devices. */
void node_use_add(struct node *node, const struct job_run *run, const struct job_part *part);
void node_use_cores(struct node *node, const struct job_run *run, const struct job_part *part);
void node_use_shares(struct node *node, struct node_gres *gres, const struct part_gres *part,
                     bool more);
void node_use_recount(struct node *node); /* after its totals were set again */

/* ---- licences.c ---- */

/* Counts the job's licences as used (1), or not any more (-1). */
void licences_count(struct state *state, const struct job *job, int sign);

/* ---- gres_locality.c ---- */

/* Works out where the devices of a node are. Call it after node_amounts(). */
void node_read_gres_locality(struct node *node);
void gres_locality_free(struct node_gres *gres);
uint64_t gres_hash(const struct node_gres *gres, uint64_t seed);

/* ---- nodes.c ---- */

struct node *node_new(const NodeSpec *spec);
void node_free(struct state *state, struct node *node);
/* The node's name as an interned word, which the node keeps; job.h (4). */
const char *node_word(struct state *state, struct node *node);
void node_set_spec(struct node *node, const NodeSpec *spec);
void node_set_found(struct node *node, const NodeInventory *found);
/* Works out totals from spec and inventory, and counts use again. True when something changed. */
bool node_amounts(struct node *node);
/* Notes whether jobs hold more than the node has. Call it after their use was counted. */
void node_see_shrunk(struct node *node);
void node_set_reason(struct state *state, struct node *node, const char *reason, const char *user,
                     uint32_t uid);
void node_set_key(struct state *state, const char *name, const ProtobufCBinaryData *key,
                  bool forgotten);
/* Gives a new node the state that the configuration says. */
void node_first_state(struct state *state, struct node *node);

/* ---- partitions.c ---- */

struct partition *partition_new(const PartitionSpec *spec);
void partition_free(struct partition *partition);
/* Works out its nodes from its spec; then what they add up to. */
int partition_resolve(const struct state *state, struct partition *partition, struct err *err);
void partition_count(const struct state *state, struct partition *partition);
void partition_settle(struct state *state,
                      struct partition *partition); /* brings its hash up to date */

#endif
