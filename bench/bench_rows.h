/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_rows.h - what the rows of bench_shocks.c have in common
 */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include <stdio.h>
#include <stdlib.h>

#include "wire/set.h"

static inline _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench-sched: %s\n", what);
    exit(1);
}

#endif
