/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz.c - quick compression of blocks
 *
 * A block is a row of sequences: a token (4 bits of literal length, 4 bits of match length - 4, 15
 * meaning "more bytes follow, each added, until one is not 255"), the literals, a 16-bit offset. The
 * last sequence has literals only. A match is at least 4 bytes, and none begins in the last
 * END_BYTES of the input, as the format asks.
 */
#include "base/lz.h"

#include <string.h>

enum {
    MATCH_MIN = 4,
    END_BYTES = 12,
    OFFSET_MAX = 65535,
    HASH_BITS = 13,
    SKIP_SHIFT = 6, /* the longer nothing is found, the larger the steps */
};

static uint32_t load32(const uint8_t *at)
{
    uint32_t word;

    memcpy(&word, at, sizeof(word));
    return word;
}

static uint64_t load64(const uint8_t *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof(word));
    return word;
}

static uint32_t hash_of(uint32_t word)
{
    return word * UINT32_C(2654435761) >> (32 - HASH_BITS);
}

static uint8_t *put_length(uint8_t *out, size_t rest)
{
    for (; rest >= 255; rest -= 255)
        *out++ = 255;
    *out++ = (uint8_t)rest;
    return out;
}

static uint8_t *put_sequence(uint8_t *out, const uint8_t *literals, size_t count, size_t match,
                             size_t offset)
{
    uint8_t *token = out++;

    *token = (uint8_t)(MIN(count, (size_t)15) << 4);
    if (count >= 15)
        out = put_length(out, count - 15);
    memcpy(out, literals, count);
    out += count;
    if (match == 0)
        return out; /* the last one */
    *out++ = (uint8_t)offset;
    *out++ = (uint8_t)(offset >> 8);
    *token |= (uint8_t)MIN(match - MATCH_MIN, (size_t)15);
    return match - MATCH_MIN >= 15 ? put_length(out, match - MATCH_MIN - 15) : out;
}

static size_t match_length(const uint8_t *a, const uint8_t *b, const uint8_t *end)
{
    const uint8_t *start = a;

    while (a + 8 <= end) {
        uint64_t differ = load64(a) ^ load64(b);
        if (differ)
            return (size_t)(a - start) + (size_t)__builtin_ctzll(differ) / 8;
        a += 8;
        b += 8;
    }
    while (a < end && *a == *b) {
        a++;
        b++;
    }
    return (size_t)(a - start);
}

bool lz_compress(const void *bytes, size_t len, struct str *out)
{
    const uint8_t *in = bytes, *at = in, *literals = in, *end = in + len;
    const uint8_t *last_match = len > END_BYTES ? end - END_BYTES : in;
    uint32_t table[1 << HASH_BITS] = { 0 }; /* position + 1 */
    size_t start = out->len;

    /* The worst case: a token and length bytes for literals only. */
    str_reserve(out, len + len / 255 + 32);
    uint8_t *to = (uint8_t *)out->data + start;
    while (at < last_match) {
        uint32_t *slot = &table[hash_of(load32(at))];
        const uint8_t *seen = *slot ? in + *slot - 1 : NULL;

        *slot = (uint32_t)(at - in) + 1;
        if (!seen || at - seen > OFFSET_MAX || load32(seen) != load32(at)) {
            at += 1 + ((size_t)(at - literals) >> SKIP_SHIFT);
            continue;
        }
        size_t match = MATCH_MIN + match_length(at + MATCH_MIN, seen + MATCH_MIN, end - 5);
        to = put_sequence(to, literals, (size_t)(at - literals), match, (size_t)(at - seen));
        at += match;
        literals = at;
    }
    to = put_sequence(to, literals, (size_t)(end - literals), 0, 0);
    size_t made = (size_t)(to - (uint8_t *)out->data) - start;
    if (made >= len)
        made = 0;
    out->len = start + made;
    out->data[out->len] = '\0';
    return made > 0;
}

/* A length that goes on in further bytes; false when they are missing. */
static bool get_length(const uint8_t **at, const uint8_t *end, size_t *length)
{
    uint8_t byte;

    if (*length < 15)
        return true;
    do {
        if (*at == end)
            return false;
        byte = *(*at)++;
        *length += byte;
    } while (byte == 255);
    return true;
}

static void copy_match(uint8_t *to, size_t offset, size_t count)
{
    if (offset >= count) {
        memcpy(to, to - offset, count);
        return;
    }
    for (size_t i = 0; i < count; i++) /* it repeats what it writes */
        to[i] = to[i - offset];
}

static bool expand(const uint8_t *at, const uint8_t *end, uint8_t *to, uint8_t *to_end)
{
    const uint8_t *to_start = to;

    while (at < end) {
        uint8_t token = *at++;
        size_t count = token >> 4, match = token & 15;

        if (!get_length(&at, end, &count) || count > (size_t)(end - at) ||
            count > (size_t)(to_end - to))
            return false;
        memcpy(to, at, count);
        at += count;
        to += count;
        if (at == end)
            return to == to_end;
        if (end - at < 2)
            return false;
        size_t offset = (size_t)at[0] | (size_t)at[1] << 8;
        at += 2;
        if (!get_length(&at, end, &match))
            return false;
        match += MATCH_MIN;
        if (offset == 0 || offset > (size_t)(to - to_start) || match > (size_t)(to_end - to))
            return false;
        copy_match(to, offset, match);
        to += match;
    }
    return false;
}

bool lz_expand(const void *block, size_t block_len, size_t len, struct str *out)
{
    size_t start = out->len;

    str_reserve(out, len + 1);
    uint8_t *to = (uint8_t *)out->data + start;
    if (!expand(block, (const uint8_t *)block + block_len, to, to + len))
        return false;
    out->len = start + len;
    out->data[out->len] = '\0';
    return true;
}
