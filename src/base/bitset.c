/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bitset.c - a set of small numbers
 *
 * (1) Bits beyond `bits` in the last word are always zero, so counting and comparing need no mask.
 */
#include "base/bitset.h"

#include <stdlib.h>
#include <string.h>

static size_t words(const struct bitset *set)
{
    return (set->bits + 63) / 64;
}

void bitset_init(struct bitset *set, size_t bits)
{
    set->bits = bits;
    set->words = NEW_ARRAY(uint64_t, words(set));
}

void bitset_init_copy(struct bitset *set, const struct bitset *from)
{
    bitset_init(set, from->bits);
    memcpy(set->words, from->words, words(from) * sizeof(uint64_t));
}

void bitset_done(struct bitset *set)
{
    free(set->words);
    *set = (struct bitset){ 0 };
}

void bitset_add_range(struct bitset *set, size_t first, size_t last)
{
    for (size_t bit = first; bit <= last && bit < set->bits;) {
        if (bit % 64 == 0 && last - bit >= 63 && bit + 64 <= set->bits) {
            set->words[bit / 64] = UINT64_MAX;
            bit += 64;
        } else {
            bitset_add(set, bit++);
        }
    }
}

void bitset_fill(struct bitset *set)
{
    size_t count = words(set);

    if (!count)
        return;
    memset(set->words, 0xff, count * sizeof(uint64_t));
    if (set->bits % 64) /* (1) */
        set->words[count - 1] = (UINT64_C(1) << (set->bits % 64)) - 1;
}

void bitset_clear(struct bitset *set)
{
    if (set->words)
        memset(set->words, 0, words(set) * sizeof(uint64_t));
}

size_t bitset_count(const struct bitset *set)
{
    size_t count = 0;

    for (size_t i = 0; i < words(set); i++)
        count += (size_t)__builtin_popcountll(set->words[i]);
    return count;
}

size_t bitset_count_both(const struct bitset *a, const struct bitset *b)
{
    size_t count = 0;

    for (size_t i = 0; i < words(a); i++)
        count += (size_t)__builtin_popcountll(a->words[i] & b->words[i]);
    return count;
}

bool bitset_is_empty(const struct bitset *set)
{
    for (size_t i = 0; i < words(set); i++) {
        if (set->words[i])
            return false;
    }
    return true;
}

bool bitset_eq(const struct bitset *a, const struct bitset *b)
{
    return a->bits == b->bits && memcmp(a->words, b->words, words(a) * sizeof(uint64_t)) == 0;
}

bool bitset_within(const struct bitset *inner, const struct bitset *outer)
{
    for (size_t i = 0; i < words(inner); i++) {
        if (inner->words[i] & ~outer->words[i])
            return false;
    }
    return true;
}

bool bitset_meets(const struct bitset *a, const struct bitset *b)
{
    for (size_t i = 0; i < words(a); i++) {
        if (a->words[i] & b->words[i])
            return true;
    }
    return false;
}

void bitset_and(struct bitset *set, const struct bitset *with)
{
    for (size_t i = 0; i < words(set); i++)
        set->words[i] &= with->words[i];
}

void bitset_or(struct bitset *set, const struct bitset *with)
{
    for (size_t i = 0; i < words(set); i++)
        set->words[i] |= with->words[i];
}

void bitset_minus(struct bitset *set, const struct bitset *with)
{
    for (size_t i = 0; i < words(set); i++)
        set->words[i] &= ~with->words[i];
}

void bitset_format(const struct bitset *set, struct str *out)
{
    bool first = true;

    for (size_t bit = bitset_next(set, 0); bit < set->bits;) {
        size_t last = bit;
        while (bitset_has(set, last + 1))
            last++;
        str_addf(out, first ? "%zu" : ",%zu", bit);
        if (last > bit)
            str_addf(out, "-%zu", last);
        first = false;
        bit = bitset_next(set, last + 1);
    }
}

static bool parse_number(struct span text, size_t below, size_t *out)
{
    size_t value = 0;

    if (!text.len)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        value = value * 10 + (size_t)(text.ptr[i] - '0');
        if (value >= below)
            return false;
    }
    *out = value;
    return true;
}

bool bitset_parse(struct bitset *set, const char *text)
{
    struct bitset fresh;
    struct span word;
    bool good = true;

    bitset_init(&fresh, set->bits);
    while (good && str_next(&text, ",", &word)) {
        const char *dash = memchr(word.ptr, '-', word.len);
        size_t first_len = dash ? (size_t)(dash - word.ptr) : word.len, first, last;
        good = parse_number((struct span){ word.ptr, first_len }, set->bits, &first);
        last = first;
        if (good && dash)
            good = parse_number((struct span){ dash + 1, word.len - first_len - 1 }, set->bits,
                                &last) &&
                   last >= first;
        if (good)
            bitset_add_range(&fresh, first, last);
    }
    if (good) {
        bitset_clear(set);
        bitset_or(set, &fresh);
    }
    bitset_done(&fresh);
    return good;
}
