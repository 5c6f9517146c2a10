/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - a figure beside its floor
 *
 * A floor is the least that the work could cost, measured in the same run on the same machine, so
 * that "x of floor" means something on any of them. Best of several rounds: other load only adds.
 *
 *     double floor = BENCH_BEST(7, copy_all(names));
 *     bench_print("hostlist.compress", BENCH_BEST(7, compress(names)), "ms", floor);
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdio.h>
#include <time.h>

static inline double bench_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

#define BENCH_BEST(rounds, work)                   \
    ({                                             \
        double best_ = 1e300;                      \
        for (int r_ = 0; r_ < (rounds); r_++) {    \
            double begin_ = bench_ms();            \
            work;                                  \
            double took_ = bench_ms() - begin_;    \
            best_ = took_ < best_ ? took_ : best_; \
        }                                          \
        best_;                                     \
    })

static inline void bench_print(const char *name, double value, const char *unit, double floor)
{
    printf("%-32s %10.3f %-4s (%.1f of floor)\n", name, value, unit, value / floor);
}

#endif
