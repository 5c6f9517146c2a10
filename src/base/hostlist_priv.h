/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostlist_priv.h - what the hostlist_*.c files share
 */
#ifndef BASE_HOSTLIST_PRIV_H
#define BASE_HOSTLIST_PRIV_H

#include "base/hostlist.h"

/* All numbers of so many digits fit, with room for one more step; longer runs end up in the prefix. */
enum { HOST_DIGITS = 18 };

unsigned host_digits(uint64_t value); /* 1 for 0 */
uint64_t host_pow10(unsigned exponent);

/* How many digits the range writes `value` with. */
static inline unsigned host_written(const struct host_range *range, uint64_t value)
{
    unsigned digits = host_digits(value);

    return digits > range->width ? digits : range->width;
}

static inline uint64_t host_range_count(const struct host_range *range)
{
    return range->hi - range->lo + 1;
}

static inline bool host_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool host_same_prefix(const struct host_range *a, const struct host_range *b);

/* Does `next` go on where `last` ends, and would `last` write its numbers the same way? */
bool host_joins(const struct host_range *last, const struct host_range *next);

/* Writes the digits of `value` into `to`, zero padded to the width; returns how many. */
unsigned host_put_number(char *to, uint64_t value, unsigned width);

/* Splits a name into prefix and trailing number. The prefix borrows from `name`. */
struct host_range host_split(const char *name, size_t len);

/*
 * Appends one range, joined with the last one when it goes on where that one ends, in value and in
 * writing. The prefix is copied. Fails with ERR_TOO_MANY or ERR_TOO_LARGE and changes nothing.
 */
int hostlist_add_range(struct hostlist *list, const struct host_range *range, struct err *err);

#endif
