/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - reading the cluster
 *
 * Everything is in an order that is the same on all replicas: jobs by id, nodes by number,
 * partitions and reservations as configured or made.
 */
#ifndef CORE_STATE_H
#define CORE_STATE_H

#include "core/job.h"
#include "core/node.h"
#include "proto/command.pb-c.h"

struct state;

struct state *state_new(void);
void state_free(struct state *state);

const struct job *state_job(const struct state *state, uint32_t id);
/* Somebody will look at it soon: its memory is asked for, and not waited for. */
void state_fetch_job(const struct state *state, uint32_t id);
/* The job with the lowest id >= from, or NULL: for (job = state_job_from(s, 1); job; job = state_job_from(s, job->id + 1)) */
const struct job *state_job_from(const struct state *state, uint64_t from);
/* The record of a task: its own, or the array's while it has none. NULL when there is no such task. */
const struct job *state_task(const struct state *state, uint32_t array_id, uint32_t task_id);

/* Its nodes know that they must hold its present attempt still when their lease is over. */
bool job_is_bound(const struct state *state, const struct job *job);

const struct node *state_node(const struct state *state, const char *name);
const struct node *state_node_at(const struct state *state, size_t number);
size_t state_node_count(const struct state *state);

const struct partition *state_partition(const struct state *state, const char *name);
const struct partition *state_partition_at(const struct state *state, size_t number);
size_t state_partition_count(const struct state *state);
const struct partition *state_default_partition(const struct state *state);
/* Is its topology one of blocks? Only then nodes come in segments (--segment). */
bool state_has_blocks(const struct state *state);

const struct reservation *state_reservation(const struct state *state, const char *name);
const struct reservation *state_reservation_at(const struct state *state, size_t number);
size_t state_reservation_count(const struct state *state);

struct licence {
    const char *name;
    uint32_t total, used;
};
const struct licence *state_licence(const struct state *state, const char *name);
const struct licence *state_licence_at(const struct state *state, size_t number);
size_t state_licence_count(const struct state *state);
/* Jobs that are suspended for this one and lend it their CPUs. */
size_t state_suspended_for_count(const struct state *state, uint32_t job_id);
const struct job *state_suspended_for(const struct state *state, uint32_t job_id, size_t i);

const Config *state_config(const struct state *state); /* never NULL; empty before the first */
/* Who the controllers are; NULL when there is one alone. */
const CmdControllers *state_controllers(const struct state *state);
/* The public key a node joined with, or NULL. */
const ProtobufCBinaryData *state_node_key(const struct state *state, const char *node);
/* An administrator has said so: that key is refused from then on. */
bool state_node_is_forgotten(const struct state *state, const char *node);
/* Tokens of this user that were issued up to this Unix time are refused; 0: none is. */
int64_t state_revoked_s(const struct state *state, uint32_t uid);
size_t state_revoked_count(const struct state *state);
void state_each_revoked(const struct state *state,
                        void (*each)(void *ctx, uint32_t uid, int64_t issued_s), void *ctx);

/* Does any job refer to the payload with this SHA-256? */
bool state_has_payload(const struct state *state, const uint8_t *digest);

struct state_head {
    uint64_t index, epoch, journal_acked;
    uint64_t accounts; /* the last change of accounts by spurdbd; 0: they are the file's */
    int64_t time_us;
    uint32_t next_job_id;
    const char *leader, *leader_address; /* "" before the first */
    const uint8_t *cluster_id;           /* 16 bytes, or NULL before the first leader */
};
struct state_head state_head(const struct state *state);

struct state_counts {
    size_t records;            /* struct job */
    size_t jobs;               /* with array tasks that have no record */
    size_t pending, running;   /* tasks counted one by one */
    size_t payloads, requests; /* kept digests; remembered request ids */
};
struct state_counts state_counts(const struct state *state);

/* Set of the nodes that a hostlist names; unknown names are an error. `set` is made here. */
struct err;
int state_node_set(const struct state *state, const char *hostlist, struct bitset *set,
                   struct err *err);

#endif
