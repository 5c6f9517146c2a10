/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_shocks.h - what happens rarely and touches everything: how long it holds up the loop
 */
#ifndef BENCH_SHOCKS_H
#define BENCH_SHOCKS_H

/* The rows whose names begin with `only`; `jobs` wait (0: a million). How many were over 5 ms. */
unsigned shocks_print(const char *only, unsigned jobs);

#endif
