/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostlist.c - the list itself: append, count, nth, find, walk, expand
 *
 * (1) A range's width is never more than the digits its lo is written with, so lo is always written
 *     with exactly `width` digits when it is padded and with its own when not.
 * (2) count is the sum over the ranges, a name alone counting one.
 * (3) A name ends in no digit that a number could hold: host_split() takes up to HOST_DIGITS.
 */
#include "base/hostlist.h"

#include <string.h>

#include "base/hostlist_priv.h"

void hostlist_done(struct hostlist *list)
{
    vec_done(&list->ranges);
    arena_done(&list->text);
    list->count = 0;
}

void hostlist_clear(struct hostlist *list)
{
    vec_clear(&list->ranges);
    arena_reset(&list->text);
    list->count = 0;
}

uint64_t host_pow10(unsigned exponent)
{
    uint64_t power = 1;

    while (exponent--)
        power *= 10;
    return power;
}

unsigned host_digits(uint64_t value)
{
    unsigned digits = 1;

    while (value >= 10000) {
        value /= 10000;
        digits += 4;
    }
    return digits + (value >= 10) + (value >= 100) + (value >= 1000);
}

unsigned host_put_number(char *to, uint64_t value, unsigned width)
{
    char digits[HOST_DIGITS + 2];
    unsigned len = 0;

    do {
        digits[len++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    unsigned pad = width > len ? width - len : 0;
    memset(to, '0', pad);
    for (unsigned i = 0; i < len; i++)
        to[pad + i] = digits[len - 1 - i];
    return pad + len;
}

bool host_same_prefix(const struct host_range *a, const struct host_range *b)
{
    return a->prefix_len == b->prefix_len &&
           (a->prefix == b->prefix || memcmp(a->prefix, b->prefix, a->prefix_len) == 0);
}

struct host_range host_split(const char *name, size_t len)
{
    struct host_range range = { .prefix = name };
    size_t start = len;

    while (start && len - start < HOST_DIGITS && host_is_digit(name[start - 1]))
        start--;
    range.prefix_len = (uint16_t)start;
    range.width = (uint16_t)(len - start);
    for (size_t i = start; i < len; i++)
        range.lo = range.lo * 10 + (uint64_t)(name[i] - '0');
    range.hi = range.lo;
    return range;
}

bool host_joins(const struct host_range *last, const struct host_range *next)
{
    return last->width && next->width && next->lo == last->hi + 1 &&
           host_written(last, next->lo) == host_written(next, next->lo) &&
           host_written(last, next->hi) == host_written(next, next->hi) &&
           host_same_prefix(last, next);
}

int hostlist_add_range(struct hostlist *list, const struct host_range *range, struct err *err)
{
    struct host_range *last = list->ranges.len ? &list->ranges.items[list->ranges.len - 1] : NULL;
    struct host_range added = *range;

    if (list->count + host_range_count(range) > INT64_MAX)
        return err_set(err, ERR_TOO_MANY, "host list of more than 2^63 hosts");
    if (last && host_joins(last, range)) {
        list->count += host_range_count(range);
        last->hi = range->hi;
        return 0;
    }
    if (list->ranges.len >= LIMIT_HOSTLIST_RANGES)
        return err_set(err, ERR_TOO_MANY, "host list of more than %d ranges",
                       LIMIT_HOSTLIST_RANGES);
    if (last && host_same_prefix(last, range)) {
        added.prefix = last->prefix;
    } else {
        if (list->text.total + range->prefix_len > LIMIT_HOSTLIST_NAME_BYTES)
            return err_set(err, ERR_TOO_LARGE, "host list with more than %d bytes of names",
                           LIMIT_HOSTLIST_NAME_BYTES);
        added.prefix = arena_copy(&list->text, range->prefix, range->prefix_len);
    }
    vec_push(&list->ranges, added);
    list->count += host_range_count(range);
    return 0;
}

int hostlist_push(struct hostlist *list, const char *name, struct err *err)
{
    size_t len = strlen(name);

    if (len == 0)
        return err_set(err, ERR_SYNTAX, "host name is empty");
    if (len > LIMIT_HOST_NAME)
        return err_set(err, ERR_TOO_LARGE, "host name of %zu bytes; at most %d are allowed", len,
                       LIMIT_HOST_NAME);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)name[i];
        if (c <= ' ' || c == 0x7f)
            return err_set(err, ERR_SYNTAX, "host name has a blank or control character at %zu",
                           i + 1);
        if (c == ',' || c == '[' || c == ']')
            return err_set(err, ERR_SYNTAX, "host name has '%c' at character %zu", c, i + 1);
    }
    struct host_range range = host_split(name, len);
    return hostlist_add_range(list, &range, err);
}

static size_t write_name(const struct host_range *range, uint64_t offset, char *to)
{
    memcpy(to, range->prefix, range->prefix_len);
    if (!range->width)
        return range->prefix_len;
    return range->prefix_len +
           host_put_number(to + range->prefix_len, range->lo + offset, range->width);
}

bool hostlist_nth(const struct hostlist *list, uint64_t index, struct str *out)
{
    vec_each (const struct host_range, range, &list->ranges) {
        if (index < host_range_count(range)) {
            char name[LIMIT_HOST_NAME + 1];
            str_add_len(out, name, write_name(range, index, name));
            return true;
        }
        index -= host_range_count(range);
    }
    return false;
}

/* The range may have been written "n1[2-3]": what follows the prefix has to be its number. */
static bool range_find(const struct host_range *range, const char *name, size_t len,
                       uint64_t *offset)
{
    uint64_t value = 0;

    if (len < range->prefix_len || memcmp(name, range->prefix, range->prefix_len) != 0)
        return false;
    if (!range->width) {
        *offset = 0;
        return len == range->prefix_len;
    }
    if (len == range->prefix_len || len - range->prefix_len > HOST_DIGITS)
        return false;
    for (size_t i = range->prefix_len; i < len; i++) {
        if (!host_is_digit(name[i]))
            return false;
        value = value * 10 + (uint64_t)(name[i] - '0');
    }
    *offset = value - range->lo;
    return value >= range->lo && value <= range->hi &&
           host_written(range, value) == len - range->prefix_len;
}

int64_t hostlist_find(const struct hostlist *list, const char *name)
{
    size_t len = strlen(name);
    uint64_t before = 0, offset;

    vec_each (const struct host_range, range, &list->ranges) {
        if (range_find(range, name, len, &offset))
            return (int64_t)(before + offset);
        before += host_range_count(range);
    }
    return -1;
}

/* Adds one to the decimal digits that end at `end`, without making the number longer. */
static bool count_up(char *start, char *end)
{
    while (end > start) {
        if (*--end != '9') {
            ++*end;
            return true;
        }
        *end = '0';
    }
    return false;
}

bool hostlist_next(struct hostlist_iter *iter)
{
    if (iter->range >= iter->list->ranges.len)
        return false;
    const struct host_range *range = &iter->list->ranges.items[iter->range];

    if (iter->offset == 0 || !count_up(iter->name + range->prefix_len, iter->name + iter->len)) {
        iter->len = write_name(range, iter->offset, iter->name);
        iter->name[iter->len] = '\0';
    }
    if (++iter->offset == host_range_count(range)) {
        iter->offset = 0;
        iter->range++;
    }
    return true;
}

int hostlist_expand(const struct hostlist *list, struct arena *arena, char ***names, size_t *count,
                    struct err *err)
{
    size_t bytes = 0, at = 0;

    if (list->count > LIMIT_HOSTLIST_HOSTS)
        return err_set(err, ERR_TOO_MANY, "host list names %llu hosts; at most %d are expanded",
                       (unsigned long long)list->count, LIMIT_HOSTLIST_HOSTS);
    vec_each (const struct host_range, range, &list->ranges)
        bytes +=
            host_range_count(range) * (range->prefix_len + host_written(range, range->hi) + 1u);
    if (bytes > LIMIT_HOSTLIST_EXPANDED_BYTES)
        return err_set(err, ERR_TOO_LARGE, "host list expands to %zu bytes; at most %d are allowed",
                       bytes, LIMIT_HOSTLIST_EXPANDED_BYTES);

    char **out = ARENA_ARRAY(arena, char *, list->count + 1);
    char *text = arena_alloc(arena, bytes);
    hostlist_each (host, list) {
        out[at++] = text;
        memcpy(text, host.name, host.len + 1);
        text += host.len + 1;
    }
    *names = out;
    *count = at;
    return 0;
}
