/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostlist_set.c - order, and lists as sets of names
 *
 * Sorting keeps prefixes as they were written, as Slurm does. Sets compare names, so they work on
 * pieces: ranges in which every number has exactly `width` digits and whose prefix keeps none that
 * belong to the number. n1[8-11] is the pieces n[18-19] and n[110-111].
 *
 * (1) Two pieces hold a common name exactly if prefix and width are equal and the numbers overlap.
 * (2) Pieces are ordered by prefix, width, lo; a set's pieces are disjoint and do not touch.
 */
#include "base/hostlist_priv.h"

#include <stdlib.h>
#include <string.h>

struct pieces {
    VEC(struct host_range) ranges; /* prefixes are borrowed from the list */
};

static size_t digit_run(const char *text, size_t len)
{
    size_t run = 0;

    while (run < len && host_is_digit(text[run]))
        run++;
    return run;
}

int hostlist_natural_cmp(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t at = 0, least = MIN(a_len, b_len);

    while (at < least) {
        size_t runs[2] = { digit_run(a + at, a_len - at), digit_run(b + at, b_len - at) };
        size_t shared = MIN(runs[0], runs[1]);

        if (!shared) {
            if (a[at] != b[at])
                return (unsigned char)a[at] < (unsigned char)b[at] ? -1 : 1;
            at++;
            continue;
        }
        int difference = memcmp(a + at, b + at, shared);
        /* A number with leading zeros reads as a fraction does: first difference, then length. */
        bool fraction = a[at] == '0' || b[at] == '0';
        if (runs[0] != runs[1] && (!fraction || !difference))
            return runs[0] < runs[1] ? -1 : 1;
        if (difference)
            return difference < 0 ? -1 : 1;
        at += shared;
    }
    return a_len == b_len ? 0 : a_len < b_len ? -1 : 1;
}

static int range_cmp(const void *left, const void *right)
{
    const struct host_range *a = left, *b = right;

    if (!host_same_prefix(a, b))
        return hostlist_natural_cmp(a->prefix, a->prefix_len, b->prefix, b->prefix_len);
    if (a->width != b->width) { /* with one width, the larger number is never written shorter */
        unsigned a_written = a->width ? host_written(a, a->lo) : 0;
        unsigned b_written = b->width ? host_written(b, b->lo) : 0;
        if (a_written != b_written)
            return a_written < b_written ? -1 : 1;
    }
    return a->lo < b->lo ? -1 : a->lo > b->lo;
}

static void ranges_sort(struct host_range *ranges, size_t len)
{
    if (len > 1)
        qsort(ranges, len, sizeof(*ranges), range_cmp);
}

/* Lists are built aside and put in place when nothing can fail any more. */
static void replace(struct hostlist *list, struct hostlist *with)
{
    hostlist_done(list);
    *list = *with;
    *with = (struct hostlist){ 0 };
}

/* ---- sorting ---- */

/* Would the two write a number that both hold in the same way? They are in order. */
static bool overlaps(const struct host_range *a, const struct host_range *b)
{
    return a->width && b->width && b->lo <= a->hi && host_same_prefix(a, b) &&
           host_written(a, b->lo) == host_written(b, b->lo);
}

static int number_cmp(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return a < b ? -1 : a > b;
}

/*
 * Ranges that overlap become their single numbers in order, repeated ones too, joined again where
 * they count up: [1-5] and [3-7] are 1-3, 3-4, 4-5, 5-7.
 */
static int add_interleaved(struct hostlist *out, const struct host_range *first, size_t len,
                           struct err *err)
{
    uint64_t count = 0, at = 0;
    int result = 0;

    for (size_t i = 0; i < len; i++) {
        count += host_range_count(&first[i]); /* the list's count had room for all of them */
        if (count > LIMIT_HOSTLIST_HOSTS)
            return err_set(err, ERR_TOO_MANY, "more than %d hosts in ranges that overlap",
                           LIMIT_HOSTLIST_HOSTS);
    }
    uint64_t *numbers = NEW_ARRAY(uint64_t, count);
    for (size_t i = 0; i < len; i++) {
        for (uint64_t number = first[i].lo; number <= first[i].hi; number++)
            numbers[at++] = number;
    }
    qsort(numbers, count, sizeof(*numbers), number_cmp);
    struct host_range one = *first;
    for (at = 0; at < count && result == 0; at++) {
        one.lo = one.hi = numbers[at];
        result = hostlist_add_range(out, &one, err);
    }
    free(numbers);
    return result;
}

int hostlist_sort(struct hostlist *list, struct err *err)
{
    struct hostlist out = { 0 };
    int result = 0;
    size_t next;

    ranges_sort(list->ranges.items, list->ranges.len);
    for (size_t i = 0; i < list->ranges.len && result == 0; i = next) {
        const struct host_range *first = &list->ranges.items[i];
        struct host_range reach = *first;

        for (next = i + 1; next < list->ranges.len; next++) {
            const struct host_range *range = &list->ranges.items[next];
            if (!overlaps(&reach, range))
                break;
            reach.hi = MAX(reach.hi, range->hi);
        }
        result = next == i + 1 ? hostlist_add_range(&out, first, err)
                               : add_interleaved(&out, first, next - i, err);
    }
    if (result == 0)
        replace(list, &out);
    hostlist_done(&out);
    return result;
}

/* ---- sets ---- */

static void add_pieces(struct pieces *pieces, const struct host_range *range)
{
    if (!range->width) {
        vec_push(&pieces->ranges, *range);
        return;
    }
    for (uint64_t lo = range->lo; lo <= range->hi;) {
        struct host_range piece = *range;
        unsigned digits = host_written(range, lo);
        uint64_t unit = host_pow10(digits);

        piece.lo = lo;
        piece.hi = MIN(range->hi, unit - 1);
        lo = piece.hi + 1;
        while (digits < HOST_DIGITS && piece.prefix_len &&
               host_is_digit(piece.prefix[piece.prefix_len - 1])) {
            uint64_t digit = (uint64_t)(piece.prefix[--piece.prefix_len] - '0');
            piece.lo += digit * unit;
            piece.hi += digit * unit;
            unit *= 10;
            digits++;
        }
        piece.width = (uint16_t)digits;
        vec_push(&pieces->ranges, piece);
    }
}

static void list_pieces(const struct hostlist *list, struct pieces *out)
{
    vec_each (const struct host_range, range, &list->ranges)
        add_pieces(out, range);
}

/* Sorted, overlapping and touching ones merged: (2). */
static void list_set(const struct hostlist *list, struct pieces *out)
{
    size_t kept = 0;

    list_pieces(list, out);
    ranges_sort(out->ranges.items, out->ranges.len);
    for (size_t i = 0; i < out->ranges.len; i++) {
        struct host_range *piece = &out->ranges.items[i];
        struct host_range *last = kept ? &out->ranges.items[kept - 1] : NULL;
        if (last && last->width == piece->width && piece->lo <= last->hi + 1 &&
            host_same_prefix(last, piece))
            last->hi = MAX(last->hi, piece->hi);
        else
            out->ranges.items[kept++] = *piece;
    }
    out->ranges.len = kept;
}

/* The first piece of the set that ends at or after `piece`'s start, among those like it or later. */
static size_t set_seek(const struct pieces *set, const struct host_range *piece)
{
    size_t low = 0, high = set->ranges.len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct host_range *there = &set->ranges.items[middle];
        bool before = range_cmp(there, piece) < 0 &&
                      !(there->width == piece->width && there->hi >= piece->lo &&
                        host_same_prefix(there, piece));
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds to `out` what of `piece` is in the set, or with keep_common false what is not. */
static int add_compared(struct hostlist *out, struct host_range piece, const struct pieces *set,
                        bool keep_common, struct err *err)
{
    int result = 0;

    for (size_t i = set_seek(set, &piece); i < set->ranges.len && result == 0; i++) {
        const struct host_range *there = &set->ranges.items[i];
        struct host_range part = piece;

        if (there->width != piece.width || there->lo > piece.hi || !host_same_prefix(there, &piece))
            break;
        if (keep_common) {
            part.lo = MAX(piece.lo, there->lo);
            part.hi = MIN(piece.hi, there->hi);
            result = hostlist_add_range(out, &part, err);
        } else if (there->lo > piece.lo) {
            part.hi = there->lo - 1;
            result = hostlist_add_range(out, &part, err);
        }
        if (there->hi >= piece.hi)
            return result;
        piece.lo = there->hi + 1;
    }
    return result < 0 || keep_common ? result : hostlist_add_range(out, &piece, err);
}

static int compare_lists(const struct hostlist *list, const struct hostlist *with, bool keep_common,
                         struct hostlist *out, struct err *err)
{
    struct pieces mine = { 0 }, set = { 0 };
    int result = 0;

    list_pieces(list, &mine);
    list_set(with, &set);
    for (size_t i = 0; i < mine.ranges.len && result == 0; i++)
        result = add_compared(out, mine.ranges.items[i], &set, keep_common, err);
    vec_done(&mine.ranges);
    vec_done(&set.ranges);
    if (result < 0)
        hostlist_done(out);
    return result;
}

int hostlist_uniq(struct hostlist *list, struct err *err)
{
    struct hostlist out = { 0 };
    struct pieces set = { 0 };
    int result = 0;

    list_set(list, &set);
    for (size_t i = 0; i < set.ranges.len && result == 0; i++)
        result = hostlist_add_range(&out, &set.ranges.items[i], err);
    vec_done(&set.ranges);
    if (result == 0)
        replace(list, &out);
    hostlist_done(&out);
    return result;
}

int hostlist_minus(struct hostlist *list, const struct hostlist *without, struct err *err)
{
    struct hostlist out = { 0 };
    int result = compare_lists(list, without, false, &out, err);

    if (result == 0)
        replace(list, &out);
    return result;
}

int hostlist_intersect(struct hostlist *list, const struct hostlist *with, struct err *err)
{
    struct hostlist out = { 0 };
    int result = compare_lists(list, with, true, &out, err);

    if (result == 0)
        replace(list, &out);
    return result;
}

int hostlist_union(struct hostlist *list, const struct hostlist *with, struct err *err)
{
    struct hostlist more = { 0 }, out = { 0 };
    int result = compare_lists(with, list, false, &more, err);

    for (size_t i = 0; i < list->ranges.len && result == 0; i++)
        result = hostlist_add_range(&out, &list->ranges.items[i], err);
    for (size_t i = 0; i < more.ranges.len && result == 0; i++)
        result = hostlist_add_range(&out, &more.ranges.items[i], err);
    if (result == 0)
        replace(list, &out);
    hostlist_done(&out);
    hostlist_done(&more);
    return result;
}

bool hostlist_within(const struct hostlist *inner, const struct hostlist *outer)
{
    struct pieces mine = { 0 }, set = { 0 };
    bool within = true;

    list_set(inner, &mine);
    list_set(outer, &set);
    for (size_t i = 0; i < mine.ranges.len && within; i++) {
        const struct host_range *piece = &mine.ranges.items[i];
        size_t at = set_seek(&set, piece);
        const struct host_range *there = at < set.ranges.len ? &set.ranges.items[at] : NULL;
        within = there && there->width == piece->width && there->lo <= piece->lo &&
                 there->hi >= piece->hi && host_same_prefix(there, piece);
    }
    vec_done(&mine.ranges);
    vec_done(&set.ranges);
    return within;
}
