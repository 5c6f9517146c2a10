/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rng.c - random bytes
 */
#include "sys/rng.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/hash.h"

static bool seeded;
static uint64_t state;

void rng_seed(uint64_t seed)
{
    seeded = true;
    state = seed;
}

void rng_unseed(void)
{
    seeded = false;
}

static uint64_t next_seeded(void)
{
    state += UINT64_C(0x9e3779b97f4a7c15);
    return hash_mix(state);
}

void rng_bytes(void *out, size_t len)
{
    unsigned char *at = out;

    while (len) {
        ssize_t got;

        if (seeded) {
            uint64_t word = next_seeded();
            got = (ssize_t)MIN(len, sizeof(word));
            memcpy(at, &word, (size_t)got);
        } else {
            got = getrandom(at, len, 0);
            if (got < 0 && errno == EINTR)
                continue;
            if (got <= 0) {
                fprintf(stderr, "rng: the kernel gives no random bytes: %s\n", strerror(errno));
                abort();
            }
        }
        at += got;
        len -= (size_t)got;
    }
}

uint64_t rng_u64(void)
{
    uint64_t word;

    rng_bytes(&word, sizeof(word));
    return word;
}

uint64_t rng_below(uint64_t bound)
{
    /* Values in the last, incomplete round would favour small results: draw again. */
    uint64_t last_whole = UINT64_MAX - (UINT64_MAX % bound + 1) % bound;
    uint64_t word;

    do
        word = rng_u64();
    while (word > last_whole);
    return word % bound;
}
