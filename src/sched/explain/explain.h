/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_priv.h - what the parts of an explanation share
 */
#ifndef SCHED_EXPLAIN_EXPLAIN_H
#define SCHED_EXPLAIN_EXPLAIN_H

#include "sched/sched_priv.h"

/* ---- explain_nodes.c: which nodes, and why not the others ---- */

/* Hosts that could serve the family, and those of them that may now; counted once an epoch. */
void explain_count(const struct sched *sched, struct family *family);
/* "nodes of debug: 1 down (n2: bad disk), 2 too small (n[3-4])", nothing when all are free. */
void explain_nodes(const struct sched *sched, struct family *family, const struct job *job,
                   struct str *out);
/* What a host has free now, less what reservations keep of it for others. */
void explain_room(const struct sched *sched, const struct shape *shape, const struct host *host,
                  struct room_at *out);
/* Which reservations keep parts of its hosts. */
void explain_kept(const struct sched *sched, const struct family *family, int64_t now_us,
                  struct str *out);
/* The hosts that could run a part of it if they were empty; bitset_done() it. */
void explain_hosts(const struct sched *sched, const struct family *family, struct bitset *out);

/* ---- explain.c ---- */

/* For a job that may start as soon as there is room. */
void explain_waiting(struct sched *sched, const struct job *job, int64_t now_us,
                     struct arena *arena, struct explanation *out);
/* Names of the hosts, each once. */
const char *explain_node_list(const struct sched *sched, const struct parts *parts,
                              struct arena *arena);
/* They find no room beside each other, even on empty nodes. */
bool explain_never_together(const struct sched *sched, const struct job *const *jobs,
                            uint32_t count);

/* When and where it starts if nothing but room is missing from then on; INT64_MAX: that is not foreseen. */
void explain_from(struct sched *sched, const struct job *job, int64_t from_us, int64_t now_us,
                  struct arena *arena, struct explanation *out);

/* ---- foresee.c: from when on nothing but room is missing ---- */

/* There is room within its limits; INT64_MAX: that is not foreseen. `out`: because of whom. */
int64_t foresee_limit(struct sched *sched, const struct job *job, const struct limit_hit *hit,
                      int64_t now_us, struct str *out);
/* What it depends on is there at the latest, and its time has come; INT64_MAX: that is not foreseen. */
int64_t foresee_eligible(struct sched *sched, const struct job *job);

/* ---- explain_jobs.c: which other jobs ---- */

/* How many go before it in its partitions. `out`: the first of them in words. */
uint32_t explain_ahead(const struct sched *sched, const struct family *family,
                       const struct job *job, struct str *out);
/* Which jobs on its hosts end first. */
void explain_ends(const struct sched *sched, const struct family *family, int64_t now_us,
                  struct str *out);
/* Which jobs use up the limit. */
void explain_holders(const struct sched *sched, const struct limit_hit *hit, struct str *out);

/* ---- explain_rules.c: which rule ---- */

/* One more line of details, unless it is empty or there are enough; `text` is empty afterwards. */
void explain_add(struct explanation *out, struct arena *arena, struct str *text);
/* How long it still waits for few switches; false: it does not. */
bool explain_switches(const struct sched *sched, const struct job *job, int64_t now_us,
                      struct str *out);
/* Of a job that is not waiting: for whom it made room, or has to. */
void explain_gone(const struct job *job, struct arena *arena, struct explanation *out);
/* How far the job's array is; nothing when it is of none. */
void explain_array(const struct job *job, struct str *out);
/* A limit is in the way: which, how much, whose. False: none is. */
bool explain_limit(struct sched *sched, const struct job *job, int64_t now_us, struct arena *arena,
                   struct explanation *out);
/* Its age does not count: which limit. */
void explain_age(const struct sched *sched, const struct job *job, struct str *out);
/* What its partitions have against it; says nothing when they have not. */
void explain_partitions(const struct sched *sched, const struct job *job, struct arena *arena,
                        struct explanation *out);
/* Holds, dependencies, begin times. */
void explain_not_eligible(struct sched *sched, const struct job *job, unsigned reason,
                          int64_t now_us, struct arena *arena, struct explanation *out);
/* As many tasks of its array run as may. */
void explain_throttle(struct sched *sched, const struct job *job, int64_t now_us,
                      struct arena *arena, struct explanation *out);
/* Its reservation has not begun, or is not there any more. */
void explain_reservation(const struct sched *sched, const struct job *job, int64_t now_us,
                         struct arena *arena, struct explanation *out);

#endif
