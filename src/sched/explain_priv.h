/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_priv.h - what the parts of an explanation share
 */
#ifndef SCHED_EXPLAIN_PRIV_H
#define SCHED_EXPLAIN_PRIV_H

#include "sched/sched_priv.h"

/* ---- explain_nodes.c: which nodes, and why not the others ---- */

/* Hosts that could serve the family, and those of them that may now; counted once an epoch. */
void explain_count(const struct sched *sched, struct family *family);
/* "nodes of debug: 1 down (n2: bad disk), 2 too small (n[3-4])", nothing when all are free. */
void explain_nodes(const struct sched *sched, struct family *family, struct str *out);
/* The hosts that could run a part of it if they were empty; bitset_done() it. */
void explain_hosts(const struct sched *sched, const struct family *family, struct bitset *out);

/* ---- explain_jobs.c: which other jobs ---- */

/* How many go before it in its partitions. `out`: the first of them in words. */
uint32_t explain_ahead(const struct sched *sched, const struct family *family,
                       const struct job *job, struct str *out);
/* Which jobs on its hosts end first. */
void explain_ends(const struct sched *sched, const struct family *family, int64_t now_us,
                  struct str *out);
/* Which jobs use up the limit. */
void explain_holders(const struct sched *sched, const struct limit_hit *hit, struct str *out);

#endif
