// SPDX-License-Identifier: Apache-2.0
/*
 * bits.c - bit strings: which nodes, which tasks. Opaque to clients
 *
 * The first word is a mark, the second the number of bits, then the bits.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compat/compat.h"

enum { BITS_MARK = 0x42434445, BITS_WORDS = 2, BITS_MOST = 1 << 30 };

static uint64_t *words(const bitstr_t *b)
{
    return (uint64_t *)(uintptr_t)(b + BITS_WORDS);
}

static size_t word_count(bitoff_t bits)
{
    return (size_t)((bits + 63) / 64);
}

static bool in(const bitstr_t *b, bitoff_t bit)
{
    return b && bit >= 0 && bit < b[1];
}

bitstr_t *slurm_bit_alloc(bitoff_t nbits)
{
    if (nbits < 0 || nbits > BITS_MOST) {
        errno = EINVAL;
        return NULL;
    }
    bitstr_t *b =
        slurm_xcalloc(BITS_WORDS + word_count(nbits), sizeof(bitstr_t), true, true, "", 0, "");
    if (b) {
        b[0] = BITS_MARK;
        b[1] = nbits;
    }
    return b;
}

void slurm_bit_free(bitstr_t **b)
{
    slurm_xfree((void **)b);
}

bitoff_t slurm_bit_size(bitstr_t *b)
{
    return b ? b[1] : 0;
}

int slurm_bit_test(bitstr_t *b, bitoff_t bit)
{
    return in(b, bit) && (words(b)[bit / 64] >> (bit % 64) & 1);
}

void slurm_bit_set(bitstr_t *b, bitoff_t bit)
{
    if (in(b, bit))
        words(b)[bit / 64] |= UINT64_C(1) << (bit % 64);
}

void slurm_bit_clear(bitstr_t *b, bitoff_t bit)
{
    if (in(b, bit))
        words(b)[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
}

void slurm_bit_nset(bitstr_t *b, bitoff_t start, bitoff_t stop)
{
    for (bitoff_t i = start; i <= stop; i++)
        slurm_bit_set(b, i);
}

void slurm_bit_nclear(bitstr_t *b, bitoff_t start, bitoff_t stop)
{
    for (bitoff_t i = start; i <= stop; i++)
        slurm_bit_clear(b, i);
}

int32_t slurm_bit_set_count_range(bitstr_t *b, int32_t start, int32_t end)
{
    int32_t count = 0;

    for (bitoff_t i = start; b && i < end && i < b[1]; i++)
        count += slurm_bit_test(b, i);
    return count;
}

int32_t slurm_bit_set_count(bitstr_t *b)
{
    int32_t count = 0;

    for (size_t i = 0; b && i < word_count(b[1]); i++)
        count += __builtin_popcountll(words(b)[i]);
    return count;
}

int32_t slurm_bit_clear_count(bitstr_t *b)
{
    return (int32_t)slurm_bit_size(b) - slurm_bit_set_count(b);
}

bitoff_t slurm_bit_ffs(bitstr_t *b)
{
    for (bitoff_t i = 0; i < slurm_bit_size(b); i++) {
        if (slurm_bit_test(b, i))
            return i;
    }
    return -1;
}

bitoff_t slurm_bit_ffc(bitstr_t *b)
{
    for (bitoff_t i = 0; i < slurm_bit_size(b); i++) {
        if (!slurm_bit_test(b, i))
            return i;
    }
    return -1;
}

bitoff_t slurm_bit_fls(bitstr_t *b)
{
    for (bitoff_t i = slurm_bit_size(b) - 1; i >= 0; i--) {
        if (slurm_bit_test(b, i))
            return i;
    }
    return -1;
}

/* The first of n bits in a row that are set, or clear. */
static bitoff_t run_of(bitstr_t *b, int32_t n, int value)
{
    bitoff_t have = 0;

    for (bitoff_t i = 0; i < slurm_bit_size(b); i++) {
        have = slurm_bit_test(b, i) == value ? have + 1 : 0;
        if (have == n && n > 0)
            return i - n + 1;
    }
    return -1;
}

bitoff_t slurm_bit_nffs(bitstr_t *b, int32_t n)
{
    return run_of(b, n, 1);
}

bitoff_t slurm_bit_nffc(bitstr_t *b, int32_t n)
{
    return run_of(b, n, 0);
}

/* The same for clear bits, looking from `seed` on and then from the beginning. */
bitoff_t slurm_bit_noc(bitstr_t *b, int32_t n, int32_t seed)
{
    bitoff_t have = 0;

    for (bitoff_t i = MAX(seed, 0); i < slurm_bit_size(b); i++) {
        have = !slurm_bit_test(b, i) ? have + 1 : 0;
        if (have == n && n > 0)
            return i - n + 1;
    }
    return run_of(b, n, 0);
}

int32_t slurm_bit_nset_max_count(bitstr_t *b)
{
    int32_t most = 0, have = 0;

    for (bitoff_t i = 0; i < slurm_bit_size(b); i++) {
        have = slurm_bit_test(b, i) ? have + 1 : 0;
        most = MAX(most, have);
    }
    return most;
}

void slurm_bit_and(bitstr_t *b1, bitstr_t *b2)
{
    for (bitoff_t i = 0; i < slurm_bit_size(b1); i++) {
        if (!slurm_bit_test(b2, i))
            slurm_bit_clear(b1, i);
    }
}

void slurm_bit_or(bitstr_t *b1, bitstr_t *b2)
{
    for (bitoff_t i = 0; i < slurm_bit_size(b1); i++) {
        if (slurm_bit_test(b2, i))
            slurm_bit_set(b1, i);
    }
}

void slurm_bit_not(bitstr_t *b)
{
    for (bitoff_t i = 0; i < slurm_bit_size(b); i++) {
        if (slurm_bit_test(b, i))
            slurm_bit_clear(b, i);
        else
            slurm_bit_set(b, i);
    }
}

bitstr_t *slurm_bit_copy(bitstr_t *b)
{
    bitstr_t *out = b ? slurm_bit_alloc(b[1]) : NULL;

    if (out)
        memcpy(words(out), words(b), word_count(b[1]) * sizeof(uint64_t));
    return out;
}

void slurm_bit_copybits(bitstr_t *dest, bitstr_t *src)
{
    if (dest && src && dest[1] == src[1])
        memcpy(words(dest), words(src), word_count(src[1]) * sizeof(uint64_t));
}

int slurm_bit_equal(bitstr_t *b1, bitstr_t *b2)
{
    return b1 && b2 && b1[1] == b2[1] &&
           memcmp(words(b1), words(b2), word_count(b1[1]) * sizeof(uint64_t)) == 0;
}

/* Is everything of the first in the second? */
int slurm_bit_super_set(bitstr_t *b1, bitstr_t *b2)
{
    for (bitoff_t i = 0; i < slurm_bit_size(b1); i++) {
        if (slurm_bit_test(b1, i) && !slurm_bit_test(b2, i))
            return 0;
    }
    return 1;
}

int slurm_bit_overlap(bitstr_t *b1, bitstr_t *b2)
{
    int32_t count = 0;

    for (bitoff_t i = 0; i < slurm_bit_size(b1); i++)
        count += slurm_bit_test(b1, i) && slurm_bit_test(b2, i);
    return count;
}

void slurm_bit_fill_gaps(bitstr_t *b)
{
    bitoff_t first = slurm_bit_ffs(b);

    if (first >= 0)
        slurm_bit_nset(b, first, slurm_bit_fls(b));
}

/* The first `nbits` that are set. */
bitstr_t *slurm_bit_pick_cnt(bitstr_t *b, bitoff_t nbits)
{
    if (!b || slurm_bit_set_count(b) < nbits)
        return NULL;
    bitstr_t *out = slurm_bit_alloc(b[1]);
    for (bitoff_t i = 0; out && nbits > 0 && i < b[1]; i++) {
        if (slurm_bit_test(b, i)) {
            slurm_bit_set(out, i);
            nbits--;
        }
    }
    return out;
}

bitstr_t *slurm_bit_rotate_copy(bitstr_t *b1, int32_t n, bitoff_t nbits)
{
    bitoff_t size = slurm_bit_size(b1);

    if (!b1 || nbits < size || nbits <= 0)
        return NULL;
    bitstr_t *out = slurm_bit_alloc(nbits);
    for (bitoff_t i = 0; out && i < size; i++) {
        if (slurm_bit_test(b1, i))
            slurm_bit_set(out, ((i + n) % nbits + nbits) % nbits);
    }
    return out;
}

void slurm_bit_rotate(bitstr_t *b1, int32_t n)
{
    bitstr_t *turned = slurm_bit_rotate_copy(b1, n, slurm_bit_size(b1));

    if (!turned)
        return;
    slurm_bit_copybits(b1, turned);
    slurm_bit_free(&turned);
}

/* The bit that is the pos-th one set, from 0. */
bitoff_t slurm_bit_get_bit_num(bitstr_t *b, int32_t pos)
{
    for (bitoff_t i = 0; i < slurm_bit_size(b); i++) {
        if (slurm_bit_test(b, i) && pos-- == 0)
            return i;
    }
    return -1;
}

/* How many bits before this one are set. */
int32_t slurm_bit_get_pos_num(bitstr_t *b, bitoff_t pos)
{
    if (!slurm_bit_test(b, pos))
        return -1;
    return slurm_bit_set_count_range(b, 0, (int32_t)pos);
}

/* ---- as text ---- */

/* "0-3,7" */
char *slurm_bit_fmt(char *str, int32_t len, bitstr_t *b)
{
    size_t at = 0, room = len > 0 ? (size_t)len : 0;

    if (!str || !room)
        return str;
    str[0] = '\0';
    for (bitoff_t i = 0; i < slurm_bit_size(b); i++) {
        if (!slurm_bit_test(b, i))
            continue;
        bitoff_t last = i;
        while (slurm_bit_test(b, last + 1))
            last++;
        int more = last > i ? snprintf(str + at, room - at, "%s%lld-%lld", at ? "," : "",
                                       (long long)i, (long long)last)
                            : snprintf(str + at, room - at, "%s%lld", at ? "," : "", (long long)i);
        at = MIN(at + (size_t)MAX(more, 0), room - 1);
        i = last;
    }
    return str;
}

/* "0-3,7" as pairs of first and last, ended by -1. */
int32_t *slurm_bitfmt2int(const char *bit_str_ptr)
{
    GUARD(NULL);
    const char *at = bit_str_ptr;
    size_t room = 1, used = 0;

    for (const char *c = bit_str_ptr; c && *c; c++)
        room += *c == ',';
    int32_t *out = compat_alloc((2 * room + 1) * sizeof(int32_t));
    while (at && *at) {
        char *end;
        long first = strtol(at, &end, 10), last = first;
        if (end == at)
            break;
        if (*end == '-')
            last = strtol(end + 1, &end, 10);
        out[used++] = (int32_t)first;
        out[used++] = (int32_t)last;
        at = *end == ',' ? end + 1 : "";
    }
    out[used] = -1;
    return out;
}

int slurm_bit_unfmt(bitstr_t *b, const char *str)
{
    if (!b || str_is_empty(str))
        return 0;
    int32_t *pairs = slurm_bitfmt2int(str);
    int rc = 0;

    if (!pairs)
        return -1;
    for (size_t i = 0; pairs[i] != -1; i += 2) {
        if (!in(b, pairs[i]) || !in(b, pairs[i + 1]))
            rc = -1;
        else
            slurm_bit_nset(b, pairs[i], pairs[i + 1]);
    }
    slurm_xfree((void **)&pairs);
    return rc;
}

/* Hexadecimal digits, the lowest bits last: "0x3F". */
char *slurm_bit_fmt_hexmask(bitstr_t *b)
{
    bitoff_t size = slurm_bit_size(b);
    size_t digits = (size_t)((size + 3) / 4);
    char *out = slurm_xcalloc(1, digits + 3, true, true, "", 0, "");

    if (!out)
        return NULL;
    memcpy(out, "0x", 2);
    for (size_t i = 0; i < digits; i++) {
        unsigned value = 0;
        for (unsigned k = 0; k < 4; k++)
            value |= (unsigned)slurm_bit_test(b, (bitoff_t)((digits - 1 - i) * 4 + k)) << k;
        out[2 + i] = "0123456789ABCDEF"[value];
    }
    return out;
}

int slurm_bit_unfmt_hexmask(bitstr_t *b, const char *str)
{
    size_t len = str ? strlen(str) : 0;
    size_t begin = len > 1 && str[0] == '0' && (str[1] == 'x' || str[1] == 'X') ? 2 : 0;

    if (!b || len == begin)
        return -1;
    for (size_t i = 0; i < len - begin; i++) {
        char digit[2] = { str[len - 1 - i], '\0' };
        char *end;
        unsigned long value = strtoul(digit, &end, 16);
        if (*end)
            return -1;
        for (unsigned k = 0; k < 4; k++) {
            if (value >> k & 1) {
                if (!in(b, (bitoff_t)(i * 4 + k)))
                    return -1;
                slurm_bit_set(b, (bitoff_t)(i * 4 + k));
            }
        }
    }
    return 0;
}

char *slurm_bit_fmt_binmask(bitstr_t *b)
{
    bitoff_t size = slurm_bit_size(b);
    char *out = slurm_xcalloc(1, (size_t)size + 1, true, true, "", 0, "");

    for (bitoff_t i = 0; out && i < size; i++)
        out[i] = slurm_bit_test(b, size - 1 - i) ? '1' : '0';
    return out;
}

void slurm_bit_unfmt_binmask(bitstr_t *b, const char *str)
{
    size_t len = str ? strlen(str) : 0;

    for (size_t i = 0; i < len; i++) {
        if (str[len - 1 - i] == '1')
            slurm_bit_set(b, (bitoff_t)i);
    }
}
