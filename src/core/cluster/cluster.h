/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster.h - nodes, partitions and licences
 */
#ifndef CORE_CLUSTER_CLUSTER_H
#define CORE_CLUSTER_CLUSTER_H

#include "core/record/record.h"

/* ---- node_use.c ---- */

/* Adds what one part of a job uses; its cores; its shares of devices. */
void node_use_add(struct node *node, const struct job_run *run, const struct job_part *part);
void node_use_cores(struct node *node, const struct job_run *run, const struct job_part *part);
void node_use_shares(struct node *node, struct node_gres *gres, const struct part_gres *part,
                     bool more);
void node_use_recount(struct node *node); /* after its totals were set anew */

/* ---- licences.c ---- */

void licences_count(struct state *state, const struct job *job, int sign);

/* ---- gres_locality.c ---- */

/* Where devices are, once a node has its amounts */
void node_read_gres_locality(struct node *node);
void gres_locality_free(struct node_gres *gres);
uint64_t gres_hash(const struct node_gres *gres, uint64_t seed);

/* ---- nodes.c ---- */

struct node *node_new(const NodeSpec *spec);
void node_free(struct state *state, struct node *node);
const char *node_word(struct state *state, struct node *node); /* the node keeps it: (4) of job.h */
void node_set_spec(struct node *node, const NodeSpec *spec);
void node_set_found(struct node *node, const NodeInventory *found);
/* Totals from spec and inventory; use is counted again. True when something changed. */
bool node_amounts(struct node *node);
void node_see_shrunk(struct node *node); /* after what jobs hold was counted by itself */
void node_set_reason(struct state *state, struct node *node, const char *reason, const char *user,
                     uint32_t uid);
void node_set_key(struct state *state, const char *name, const ProtobufCBinaryData *key);
/* The state that a configuration gives a node that is new. */
void node_first_state(struct state *state, struct node *node);

/* ---- partitions.c ---- */

struct partition *partition_new(const PartitionSpec *spec);
void partition_free(struct partition *partition);
int partition_resolve(const struct state *state, struct partition *partition, struct err *err);
void partition_count(const struct state *state, struct partition *partition);
void partition_settle(struct state *state, struct partition *partition); /* its hash */

#endif
