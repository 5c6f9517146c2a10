/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rand.c - xoshiro256**, filled by splitmix64
 */
#include "rand.h"

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void rand_seed(struct rand *rand, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        rand->s[i] = splitmix(&seed);
}

static uint64_t rotate(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

uint64_t rand_u64(struct rand *rand)
{
    uint64_t *s = rand->s, result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

uint64_t rand_below(struct rand *rand, uint64_t bound)
{
    return rand_u64(rand) % bound; /* bounds are small: the bias does not matter here */
}

int64_t rand_between(struct rand *rand, int64_t least, int64_t most)
{
    return least + (int64_t)rand_below(rand, (uint64_t)(most - least) + 1);
}

bool rand_chance(struct rand *rand, unsigned per_thousand)
{
    return rand_below(rand, 1000) < per_thousand;
}

int64_t rand_skewed(struct rand *rand, int64_t least, int64_t most)
{
    int64_t range = most - least;

    /* Each halving is as likely as not: 1/2 of the values lie in the lower part, and so on. */
    for (uint64_t bits = rand_u64(rand); bits & 1 && range > 8; bits >>= 1)
        range /= 2;
    for (uint64_t bits = rand_u64(rand); bits & 1 && range > 8; bits >>= 1)
        range /= 2;
    return rand_between(rand, least, least + range);
}
