/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_wide.h - jobs of thousands of nodes: rows of bench_shocks.c
 */
#ifndef BENCH_WIDE_H
#define BENCH_WIDE_H

#include "bench_load.h"

/* 64 jobs of 20 whole nodes go before all that follows: they are promised starts. */
void wide_before(struct load *load);
void wide_het3(struct load *load);     /* three components of 1,000 whole nodes */
void wide_uneven(struct load *load);   /* tasks that nodes have no equal room for */
void wide_all(struct load *load);      /* every node */
void wide_contig(struct load *load);   /* neighbours */
void wide_named(struct load *load);    /* 2,000 nodes by name */
void wide_either(struct load *load);   /* all nodes must have the same one of eight features */
void wide_features(struct load *load); /* each one of 200 */
void wide_switch(struct load *load);   /* below one leaf, if it has to wait for that */
void wide_leaves(struct load *load);   /* as few leaves as there can be */
void wide_explain(struct load *load);  /* why the first of these wait */
void wide_start(struct load *load);    /* when each job starts */
void wide_begins(struct load *load);
void wide_widest(struct load *load);
void wide_test(struct load *load); /* when a heterogeneous one would, were it submitted */

#endif
