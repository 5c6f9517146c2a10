/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rng.h - random bytes
 *
 * From the kernel, good enough for keys and request ids. A test or a simulation calls rng_seed()
 * once, and from then on every byte follows from the seed.
 */
#ifndef SYS_RNG_H
#define SYS_RNG_H

#include "base/util.h"

/* Never fails: a process that the kernel gives no randomness stops. */
void rng_bytes(void *out, size_t len);
uint64_t rng_u64(void);
uint64_t rng_below(uint64_t bound); /* 0 … bound - 1, each equally likely; bound > 0 */

void rng_seed(uint64_t seed); /* predictable from here on; not for threads */
void rng_unseed(void);

#endif
