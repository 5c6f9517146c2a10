/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_view.h - what follows from a Node: columns, records and grouping ask here
 *
 * What is configured counts; what the agent found fills in what is not.
 */
#ifndef SCHEMA_NODE_VIEW_H
#define SCHEMA_NODE_VIEW_H

#include "base/arena.h"
#include "base/bitset.h"
#include "base/str.h"
#include "proto/controller.pb-c.h"
#include "proto/node.pb-c.h"

const NodeSpec *node_spec(const Node *node); /* never NULL */
const NodeStatus *node_status(const Node *node);
const NodeInventory *node_found(const Node *node);

uint32_t node_cpus(const Node *node);
uint32_t node_sockets(const Node *node);
uint32_t node_cores(const Node *node); /* per socket */
uint32_t node_threads(const Node *node);
/*
 * CPUs that are left to the system, as whole cores of a node that has so many: those of cpu_spec_list; else as
 * many cores as core_spec says, the last of each socket in turn, from the last socket. One core stays in any
 * case. False, and nothing in the set (which is of `cpus`): none.
 */
bool node_kept_cpus(const NodeSpec *spec, uint32_t cpus, uint32_t sockets, uint32_t threads,
                    struct bitset *out);
bool node_keeps_cpus(const Node *node, struct bitset *out); /* the same of a node */
uint32_t node_effective_cpus(const Node *node);             /* all but these */
uint64_t node_memory_mb(const Node *node);
uint64_t node_tmp_mb(const Node *node);
const char *node_address(const Node *node);
const char *node_hostname(const Node *node);
/* The release of Slurm that its agent stands for; "" before it registers. */
const char *node_version(const Node *node);

void node_add_gres(struct str *out, const Node *node);      /* "gpu:a100:2", nothing without */
void node_add_gres_used(struct str *out, const Node *node); /* "gpu:a100:1(IDX:0)" */
void node_add_features(struct str *out, const Node *node);  /* "a,b" */
void node_add_tres(struct str *out, const Node *node); /* "cpu=4,mem=8000M,billing=4,gres/gpu=2" */
void node_add_tres_used(struct str *out, const Node *node);

/* cpu=, mem=, node= and gres/ in Slurm's order; what is 0 is left out. */
struct tres_count {
    uint64_t cpus, mem_mb, nodes, billing;
};
void tres_add(struct str *out, const struct tres_count *count);
/* Adds ",gres/NAME=COUNT" for each kind, types added up. */
void tres_add_gres(struct str *out, GresInventory *const *gres, size_t count);

/* What all nodes of each partition have together, where the controller does not say; text in the arena. */
void partitions_fill_tres(ListPartitionsReply *partitions, const ListNodesReply *nodes,
                          struct arena *arena);

#endif
