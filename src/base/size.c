/* SPDX-License-Identifier: Apache-2.0 */
/*
 * size.c - amounts of memory and counts
 */
#include "base/size.h"

#include <stdio.h>
#include <string.h>

#include "base/bitset.h"
#include "base/util.h"

static const char letters[] = "?KMGTPE"; /* by enum size_unit */

bool size_unit_from(char letter, enum size_unit *unit)
{
    if (letter >= 'a' && letter <= 'z')
        letter = (char)(letter - 'a' + 'A');
    for (unsigned i = SIZE_K; i <= SIZE_E; i++) {
        if (letters[i] == letter) {
            *unit = (enum size_unit)i;
            return true;
        }
    }
    return false;
}

static int wrong(struct err *err, enum err_code code, const char *text, const char *why)
{
    struct str shown = { 0 };

    str_add_visible(&shown, text, strnlen(text, 64));
    int result = err_set(err, code, "invalid amount '%s': %s", str_text(&shown), why);
    str_done(&shown);
    return result;
}

/* Digits at *at, moved past. False when there are none; *fits false when they are too many. */
static bool take_digits(const char **at, uint64_t *value, bool *fits)
{
    const char *start = *at;

    *value = 0;
    *fits = true;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, (uint64_t)(**at - '0'), value))
            *fits = false;
    }
    return *at > start;
}

static bool scale(uint64_t *value, uint64_t step, unsigned times)
{
    while (times--) {
        if (__builtin_mul_overflow(*value, step, value))
            return false;
    }
    return true;
}

int size_read_memory(const char *text, enum size_unit unit, uint64_t *bytes, struct err *err)
{
    const char *at = text;
    uint64_t value;
    bool fits;

    if (!take_digits(&at, &value, &fits))
        return wrong(err, ERR_INVALID, text,
                     *text == '-' ? "it is negative" : "a number is expected, such as 500M or 4G");
    if (*at == '.')
        return wrong(err, ERR_INVALID, text, "only whole numbers are allowed; use a smaller unit");
    if (*at && size_unit_from(*at, &unit)) {
        at++;
        if (str_ieq(at, "B") || str_ieq(at, "iB"))
            at += strlen(at);
    }
    if (*at)
        return wrong(err, ERR_INVALID, text, "the unit is one of K, M, G, T, P");
    if (!fits || !scale(&value, 1024, unit) || value > INT64_MAX)
        return wrong(err, ERR_RANGE, text, "it is too large");
    *bytes = value;
    return 0;
}

uint64_t size_megabytes(uint64_t bytes)
{
    return (bytes >> 20) + ((bytes & 0xfffff) != 0);
}

/* One count at *at, moved past. */
static int take_count(const char *text, const char **at, uint64_t max, unsigned step,
                      uint64_t *count, struct err *err)
{
    bool fits;

    if (!take_digits(at, count, &fits))
        return wrong(err, ERR_INVALID, text,
                     *text == '-' ? "it is negative" : "a whole number is expected");
    unsigned times = **at == 'k' || **at == 'K' ? 1 : **at == 'm' || **at == 'M' ? 2 : 0;
    if (times)
        ++*at;
    if (!fits || !scale(count, step, times) || *count > max) {
        char why[64];
        snprintf(why, sizeof(why), "at most %llu is allowed", (unsigned long long)max);
        return wrong(err, ERR_RANGE, text, why);
    }
    return 0;
}

int size_read_count(const char *text, uint64_t max, enum size_step step, uint64_t *count,
                    struct err *err)
{
    const char *at = text;
    uint64_t value;
    int result = take_count(text, &at, max, step, &value, err);

    if (result < 0)
        return result;
    if (*at)
        return wrong(err, ERR_INVALID, text, "a whole number is expected, with k or m at most");
    *count = value;
    return 0;
}

int size_read_range(const char *text, uint64_t max, uint64_t *low, uint64_t *high, struct err *err)
{
    const char *at = text;
    uint64_t first, last;
    int result = take_count(text, &at, max, SIZE_STEP_1024, &first, err);

    last = first;
    if (result == 0 && *at == '-') {
        at++;
        result = take_count(text, &at, max, SIZE_STEP_1024, &last, err);
    }
    if (result < 0)
        return result;
    if (*at)
        return wrong(err, ERR_INVALID, text, "a number or a range such as 2-4 is expected");
    if (last < first)
        return wrong(err, ERR_INVALID, text, "the range runs backwards");
    *low = first;
    *high = last;
    return 0;
}

/* One of the ranges: 4, 2-4, 2-10:2. */
static int take_range(const char *text, const char **at, uint32_t max, struct bitset *set,
                      struct err *err)
{
    uint64_t first, last, step = 1;
    int result = take_count(text, at, max, SIZE_STEP_1024, &first, err);

    last = first;
    if (result == 0 && **at == '-') {
        ++*at;
        result = take_count(text, at, max, SIZE_STEP_1024, &last, err);
    }
    if (result == 0 && **at == ':') {
        ++*at;
        result = take_count(text, at, max, SIZE_STEP_1024, &step, err);
    }
    if (result < 0)
        return result;
    if (first == 0 || last < first || step == 0)
        return wrong(err, ERR_INVALID, text, "numbers and ranges such as 1,3,5-9 are expected");
    for (; first <= last; first += step)
        bitset_add(set, first);
    return 0;
}

int size_read_list(const char *text, uint32_t max, uint32_t **out, size_t *count, struct err *err)
{
    const char *at = text;
    struct bitset set;
    int result;

    bitset_init(&set, (size_t)max + 1);
    while ((result = take_range(text, &at, max, &set, err)) == 0 && *at == ',')
        at++;
    if (result == 0 && *at)
        result = wrong(err, ERR_INVALID, text, "numbers and ranges such as 1,3,5-9 are expected");
    if (result == 0) {
        *out = NEW_ARRAY(uint32_t, bitset_count(&set));
        *count = 0;
        bitset_each (number, &set)
            (*out)[(*count)++] = (uint32_t)number;
    }
    bitset_done(&set);
    return result;
}

static void add_letter(struct str *out, enum size_unit unit)
{
    if (unit != SIZE_ONE)
        str_add_char(out, letters[unit]);
}

/* value / 1024^steps: whole when it is, else with two decimals, halves rounded to even. */
static void add_quotient(struct str *out, uint64_t value, unsigned steps)
{
    unsigned shift = 10 * steps;

    if (shift == 0 || (shift < 64 && (value & ((UINT64_C(1) << shift) - 1)) == 0)) {
        str_add_u64(out, shift < 64 ? value >> shift : 0);
        return;
    }
    unsigned __int128 hundredfold = (unsigned __int128)value * 100,
                      one = (unsigned __int128)1 << shift;
    unsigned __int128 rest = hundredfold & (one - 1);
    uint64_t hundredths = (uint64_t)(hundredfold >> shift);
    if (rest > one / 2 || (rest == one / 2 && hundredths % 2))
        hundredths++;
    str_addf(out, "%llu.%02u", (unsigned long long)(hundredths / 100),
             (unsigned)(hundredths % 100));
}

void size_write(struct str *out, uint64_t value, enum size_unit unit, enum size_style style)
{
    uint64_t whole = value; /* value in the unit reached, rounded down */
    unsigned steps = 0;

    if (value == 0 || style == SIZE_RAW) {
        str_add_u64(out, value);
        return;
    }
    /* Exact: a multiple of 512 of this unit is a half or a whole of the next. */
    while (style != SIZE_NOCONVERT && whole >= 1024 && unit + steps < SIZE_E &&
           (style == SIZE_ROUNDED || (value & ((UINT64_C(512) << 10 * steps) - 1)) == 0)) {
        whole >>= 10;
        steps++;
    }
    add_quotient(out, value, steps);
    add_letter(out, unit + steps);
}

void size_write_in(struct str *out, uint64_t value, enum size_unit unit, enum size_unit as)
{
    if (value == 0) {
        str_add_char(out, '0');
        return;
    }
    uint64_t scaled = value;
    if (as > unit) {
        add_quotient(out, value, as - unit);
    } else if (scale(&scaled, 1024, unit - as)) {
        str_add_u64(out, scaled);
    } else {
        size_write(out, value, unit, SIZE_ROUNDED); /* no number of that unit is so large */
        return;
    }
    add_letter(out, as);
}
