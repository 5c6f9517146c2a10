/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h - hashes and checksums without secrets
 *
 * hash_bytes() spreads keys in tables and record hashes in the state's digest; it is the same on
 * every machine and in every build, because digests are compared between replicas. It is not for
 * anything an attacker gains by colliding; content addresses use SHA-256 (sys/digest.h).
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/util.h"

static inline uint64_t hash_mix(uint64_t value)
{
    value ^= value >> 32;
    value *= UINT64_C(0xd6e8feb86659fd93);
    value ^= value >> 32;
    value *= UINT64_C(0xd6e8feb86659fd93);
    return value ^ value >> 32;
}
uint64_t hash_bytes(const void *bytes, size_t len, uint64_t seed);

/* CRC-32C (Castagnoli), the checksum of log rows. Continue with the last result; start with 0. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t len);

#endif
