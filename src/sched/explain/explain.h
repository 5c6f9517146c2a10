/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.h - why a job waits: what the files of this folder share
 */
#ifndef SCHED_EXPLAIN_EXPLAIN_H
#define SCHED_EXPLAIN_EXPLAIN_H

#include "sched/plan.h"

/* ---- explain_nodes.c: which nodes, and why not the others ---- */

/* Counts the hosts that could serve the family, and those of them that may now; once an epoch. */
void explain_count(const struct sched *sched, struct family *family);
/* Writes "nodes of debug: 1 down (n2: bad disk), 2 too small (n[3-4])", nothing when all are free. */
void explain_nodes(const struct sched *sched, struct family *family, const struct job *job,
                   struct str *out);
/* What a host has free now, without what reservations keep for others. */
void explain_room(const struct sched *sched, const struct shape *shape, const struct host *host,
                  struct room_at *out);
/* Writes which reservations keep parts of the family's hosts. */
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
/* Would the jobs find no room beside each other even on empty nodes? */
bool explain_never_together(const struct sched *sched, const struct job *const *jobs,
                            uint32_t count);

/* When and where the job starts if only room is missing from `from_us` on; INT64_MAX: not foreseen. */
void explain_from(struct sched *sched, const struct job *job, int64_t from_us, int64_t now_us,
                  struct arena *arena, struct explanation *out);

/* ---- foresee.c: from when on only room is missing ---- */

/* When its limits have room; INT64_MAX: not foreseen. Writes because of which jobs. */
int64_t foresee_limit(struct sched *sched, const struct job *job, const struct limit_hit *hit,
                      int64_t now_us, struct str *out);
/* When its dependencies are fulfilled at the latest and its begin time has come; INT64_MAX: not foreseen. */
int64_t foresee_eligible(struct sched *sched, const struct job *job);

/* ---- explain_jobs.c: which other jobs ---- */

/* How many jobs go before it in its partitions. Writes the first of them. */
uint32_t explain_ahead(const struct sched *sched, const struct family *family,
                       const struct job *job, struct str *out);
/* Writes which jobs on its hosts end first. */
void explain_ends(const struct sched *sched, const struct family *family, int64_t now_us,
                  struct str *out);
/* Writes which jobs use up the limit. */
void explain_holders(const struct sched *sched, const struct limit_hit *hit, struct str *out);

/* ---- explain_rules.c: which rule ---- */

/* Adds a line of details, unless it is empty or there are enough; empties `text`. */
void explain_add(struct explanation *out, struct arena *arena, struct str *text);
/* Writes how long it still waits for few switches; false: it does not. */
bool explain_switches(const struct sched *sched, const struct job *job, int64_t now_us,
                      struct str *out);
/* Of a job that does not wait: for which job it made room, or has to. */
void explain_gone(const struct job *job, struct arena *arena, struct explanation *out);
/* Writes how far the job's array is; nothing for other jobs. */
void explain_array(const struct job *job, struct str *out);
/* If a limit keeps the job waiting: which, how much, whose. False: none does. */
bool explain_limit(struct sched *sched, const struct job *job, int64_t now_us, struct arena *arena,
                   struct explanation *out);
/* Writes which limit keeps its age from counting. */
void explain_age(const struct sched *sched, const struct job *job, struct str *out);
/* Why its partitions refuse it; nothing when they do not. */
void explain_partitions(const struct sched *sched, const struct job *job, struct arena *arena,
                        struct explanation *out);
/* Holds, dependencies, begin times. */
void explain_not_eligible(struct sched *sched, const struct job *job, unsigned reason,
                          int64_t now_us, struct arena *arena, struct explanation *out);
/* Its array runs as many tasks as it may. */
void explain_throttle(struct sched *sched, const struct job *job, int64_t now_us,
                      struct arena *arena, struct explanation *out);
/* Its reservation has not begun, or is gone. */
void explain_reservation(const struct sched *sched, const struct job *job, int64_t now_us,
                         struct arena *arena, struct explanation *out);

#endif
