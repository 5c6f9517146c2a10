/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostlist_format.c - writing Slurm's notation
 *
 * Ranges with one prefix that follow each other share a pair of brackets; a single number stands
 * without brackets. Nothing is reordered here: sorting is the caller's choice.
 */
#include "base/hostlist_priv.h"

#include <string.h>

static void add_numbers(const struct host_range *range, struct str *out)
{
    char digits[2 * HOST_DIGITS + 4];
    size_t len = host_put_number(digits, range->lo, range->width);

    if (range->hi > range->lo) {
        digits[len++] = '-';
        len += host_put_number(digits + len, range->hi, range->width);
    }
    str_add_len(out, digits, len);
}

/* Writes `len` ranges, which have one prefix and are numbered. */
static void add_group(const struct host_range *ranges, size_t len, struct span suffix,
                      struct str *out)
{
    bool brackets = len > 1 || ranges->hi > ranges->lo;

    str_add_len(out, ranges->prefix, ranges->prefix_len);
    if (brackets)
        str_add_char(out, '[');
    for (size_t i = 0; i < len; i++) {
        if (i)
            str_add_char(out, ',');
        add_numbers(&ranges[i], out);
    }
    if (brackets)
        str_add_char(out, ']');
    str_add_len(out, suffix.ptr, suffix.len);
}

void hostlist_format(const struct hostlist *list, struct str *out)
{
    const struct host_range *ranges = list->ranges.items;
    size_t next;

    for (size_t i = 0; i < list->ranges.len; i = next) {
        if (i)
            str_add_char(out, ',');
        next = i + 1;
        if (!ranges[i].width) {
            str_add_len(out, ranges[i].prefix, ranges[i].prefix_len);
            continue;
        }
        while (next < list->ranges.len && ranges[next].width &&
               host_same_prefix(&ranges[i], &ranges[next]))
            next++;
        add_group(&ranges[i], next - i, (struct span){ "", 0 }, out);
    }
}

/* A name whose last number stands before its end, taken apart: "n", 12, "-ib". */
static bool split_inner(const struct host_range *name, struct host_range *front,
                        struct span *suffix)
{
    size_t end = name->prefix_len;

    if (name->width)
        return false;
    while (end && !host_is_digit(name->prefix[end - 1]))
        end--;
    *front = host_split(name->prefix, end);
    *suffix = (struct span){ name->prefix + end, name->prefix_len - end };
    return end > 0;
}

void hostlist_format_suffixes(const struct hostlist *list, struct str *out)
{
    struct hostlist fronts = { 0 }; /* the numbers of one group, joined as they come */
    struct hostlist plain = { 0 };  /* names between groups: borrows, owns only its array */
    struct span suffix = { "", 0 }, next_suffix;
    struct host_range front;
    const char *comma = "";

    for (size_t i = 0; i <= list->ranges.len; i++) {
        const struct host_range *range = i < list->ranges.len ? &list->ranges.items[i] : NULL;
        bool inner = range && split_inner(range, &front, &next_suffix);
        bool goes_on = inner && fronts.ranges.len && suffix.len == next_suffix.len &&
                       memcmp(suffix.ptr, next_suffix.ptr, suffix.len) == 0 &&
                       host_same_prefix(fronts.ranges.items, &front);

        if (fronts.ranges.len && !goes_on) {
            str_add(out, comma);
            comma = ",";
            add_group(fronts.ranges.items, fronts.ranges.len, suffix, out);
            hostlist_clear(&fronts);
        }
        if (plain.ranges.len && (inner || !range)) {
            str_add(out, comma);
            comma = ",";
            hostlist_format(&plain, out);
            vec_clear(&plain.ranges);
        }
        if (inner) {
            suffix = next_suffix;
            hostlist_add_range(&fronts, &front, NULL); /* no more of them than `list` has */
        } else if (range) {
            vec_push(&plain.ranges, *range);
        }
    }
    hostlist_done(&fronts);
    hostlist_done(&plain);
}
