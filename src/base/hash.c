/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.c - hashes and checksums without secrets
 */
#include "base/hash.h"

#include <endian.h>
#include <string.h>

static uint64_t little_endian(const unsigned char *bytes, size_t len)
{
    uint64_t word = 0;

    for (size_t i = 0; i < len; i++)
        word |= (uint64_t)bytes[i] << (8 * i);
    return word;
}

uint64_t hash_bytes(const void *bytes, size_t len, uint64_t seed)
{
    const unsigned char *at = bytes;
    uint64_t hash = hash_mix(seed ^ (uint64_t)len * UINT64_C(0x9e3779b97f4a7c15));

    for (; len >= 8; at += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        hash = hash_mix(hash ^ le64toh(word)) + UINT64_C(0x9e3779b97f4a7c15);
    }
    return len ? hash_mix(hash ^ little_endian(at, len)) : hash;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc,
                                                               const unsigned char *at, size_t len)
{
    uint64_t wide = crc;

    for (; len >= 8; at += 8, len -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    for (; len; at++, len--)
        crc = __builtin_ia32_crc32qi(crc, *at);
    return crc;
}
#endif

/* One table per nibble keeps it small and needs no initialisation at start. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;

    crc = ~crc;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc32c_sse42(crc, at, len);
#endif
    static const uint32_t nibble[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    for (size_t i = 0; i < len; i++) {
        crc = nibble[(crc ^ at[i]) & 15] ^ crc >> 4;
        crc = nibble[(crc ^ at[i] >> 4) & 15] ^ crc >> 4;
    }
    return ~crc;
}
