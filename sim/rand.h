/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rand.h - the seed decides everything: numbers that follow from it and from nothing else
 */
#ifndef SIM_RAND_H
#define SIM_RAND_H

#include <stdbool.h>
#include <stdint.h>

struct rand {
    uint64_t s[4];
};

void rand_seed(struct rand *rand, uint64_t seed);
uint64_t rand_u64(struct rand *rand);
uint64_t rand_below(struct rand *rand, uint64_t bound);               /* 0 … bound - 1 */
int64_t rand_between(struct rand *rand, int64_t least, int64_t most); /* both included */
bool rand_chance(struct rand *rand, unsigned per_thousand);
/* Mostly near `least`, sometimes up to `most`: delays, sizes, durations. */
int64_t rand_skewed(struct rand *rand, int64_t least, int64_t most);

#endif
