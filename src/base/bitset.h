/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bitset.h - a set of small numbers: cores of a node, nodes of a partition, tasks of an array
 *
 * The size is fixed at init. All operations on two sets need equal sizes.
 */
#ifndef BASE_BITSET_H
#define BASE_BITSET_H

#include "base/str.h"
#include "base/util.h"

struct bitset {
    uint64_t *words;
    size_t bits;
};

void bitset_init(struct bitset *set, size_t bits);
void bitset_init_copy(struct bitset *set, const struct bitset *from);
void bitset_done(struct bitset *set);

static inline bool bitset_has(const struct bitset *set, size_t bit)
{
    return bit < set->bits && (set->words[bit / 64] >> (bit % 64) & 1);
}

static inline void bitset_add(struct bitset *set, size_t bit)
{
    set->words[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static inline void bitset_del(struct bitset *set, size_t bit)
{
    set->words[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
}

void bitset_add_range(struct bitset *set, size_t first, size_t last); /* both included */
void bitset_fill(struct bitset *set);
void bitset_clear(struct bitset *set);
size_t bitset_count(const struct bitset *set);
size_t bitset_count_both(const struct bitset *a, const struct bitset *b);
bool bitset_is_empty(const struct bitset *set);
bool bitset_eq(const struct bitset *a, const struct bitset *b);
bool bitset_within(const struct bitset *inner, const struct bitset *outer);
bool bitset_meets(const struct bitset *a, const struct bitset *b);
void bitset_and(struct bitset *set, const struct bitset *with);
void bitset_or(struct bitset *set, const struct bitset *with);
void bitset_minus(struct bitset *set, const struct bitset *with);

/* The first member at or after `from`, or bits when there is none. */
static inline size_t bitset_next(const struct bitset *set, size_t from)
{
    size_t words = (set->bits + 63) / 64;

    for (size_t i = from / 64; i < words; i++) {
        uint64_t word = set->words[i];
        if (i == from / 64)
            word &= UINT64_MAX << (from % 64);
        if (word)
            return i * 64 + (size_t)__builtin_ctzll(word);
    }
    return set->bits;
}

#define bitset_each(bit, set) \
    for (size_t bit = bitset_next((set), 0); bit < (set)->bits; bit = bitset_next((set), bit + 1))

/* "0-3,7" both ways. Parsing refuses numbers outside the set and leaves it as it was. */
void bitset_format(const struct bitset *set, struct str *out);
bool bitset_parse(struct bitset *set, const char *text);

#endif
