/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml_scalar.c - numbers, truth values, dates and times of TOML
 *
 * A value that is not a string is a run of letters, digits and _ + - . : (one blank may stand
 * between a date and its time). The run is cut out first and then must match one form whole.
 */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/toml_priv.h"

enum { NUMBER_BYTES = 4096 }; /* the longest number; digits beyond some 300 mean nothing */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_token(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '+' || c == '-' || c == '.' || c == ':';
}

/* Exactly `count` digits at *p, moved behind them. */
static bool take_digits(const char **p, int count, int *out)
{
    *out = 0;
    for (int i = 0; i < count; i++, (*p)++) {
        if (!is_digit(**p))
            return false;
        *out = *out * 10 + (**p - '0');
    }
    return true;
}

static bool take_char(const char **p, char c)
{
    if (**p != c)
        return false;
    (*p)++;
    return true;
}

static int days_in(int year, int month)
{
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return month == 2 && leap ? 29 : days[month - 1];
}

static const char *read_date(const char **p, struct toml_time *t)
{
    if (!take_digits(p, 4, &t->year) || !take_char(p, '-') || !take_digits(p, 2, &t->month) ||
        !take_char(p, '-') || !take_digits(p, 2, &t->day))
        return "a date is written YYYY-MM-DD";
    if (t->month < 1 || t->month > 12)
        return "there is no such month";
    if (t->day < 1 || t->day > days_in(t->year, t->month))
        return "that month has no such day";
    return NULL;
}

static const char *read_clock(const char **p, struct toml_time *t)
{
    if (!take_digits(p, 2, &t->hour) || !take_char(p, ':') || !take_digits(p, 2, &t->minute) ||
        !take_char(p, ':') || !take_digits(p, 2, &t->second))
        return "a time of day is written HH:MM:SS";
    if (t->hour > 23 || t->minute > 59 || t->second > 60)
        return "there is no such time of day";
    if (!take_char(p, '.'))
        return NULL;
    if (!is_digit(**p))
        return "digits must follow the point of a second";
    for (int scale = 100000000; is_digit(**p); (*p)++, scale /= 10)
        t->nanosecond += (**p - '0') * scale;
    return NULL;
}

static const char *read_offset(const char **p, struct toml_time *t)
{
    int sign = **p == '-' ? -1 : 1, hours, minutes;

    if (take_char(p, 'Z') || take_char(p, 'z'))
        return NULL;
    (*p)++;
    if (!take_digits(p, 2, &hours) || !take_char(p, ':') || !take_digits(p, 2, &minutes))
        return "an offset is written +HH:MM or Z";
    if (hours > 23 || minutes > 59)
        return "there is no such offset from UTC";
    t->offset_min = sign * (hours * 60 + minutes);
    return NULL;
}

/* A date, a time, or both. Returns what is wrong with it, or NULL. */
static const char *read_time(const char *text, struct toml_value *value)
{
    struct toml_time t = { 0 };
    const char *wrong, *p = text;

    value->kind = TOML_TIME;
    if (text[2] != ':') {
        if ((wrong = read_date(&p, &t)))
            return wrong;
        value->kind = TOML_DATE;
        if (*p == 'T' || *p == 't' || *p == ' ') {
            value->kind = TOML_DATETIME_LOCAL;
            p++;
        }
    }
    if (value->kind != TOML_DATE && (wrong = read_clock(&p, &t)))
        return wrong;
    if (value->kind == TOML_DATETIME_LOCAL && *p && strchr("Zz+-", *p)) {
        value->kind = TOML_DATETIME;
        if ((wrong = read_offset(&p, &t)))
            return wrong;
    }
    if (*p)
        return "unexpected characters follow the date or time";
    value->time = t;
    return NULL;
}

static bool is_digit_of(char c, int base)
{
    if (base <= 10)
        return c >= '0' && c < '0' + base;
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/*
 * Digits with single underscores between them, at *p; copied to *out without the underscores.
 * At least one digit, and no underscore first or last.
 */
static bool take_run(const char **p, int base, char **out)
{
    bool digit = false;

    for (;; (*p)++) {
        if (is_digit_of(**p, base)) {
            *(*out)++ = **p;
            digit = true;
        } else if (**p == '_' && digit) {
            digit = false;
        } else {
            break;
        }
    }
    return digit;
}

static const char *read_integer(const char *digits, int base, struct toml_value *value)
{
    errno = 0;
    value->integer = strtoll(digits, NULL, base);
    if (errno == ERANGE)
        return "the number does not fit in 64 bits";
    value->kind = TOML_INTEGER;
    return NULL;
}

static const char *read_based(const char *text, struct toml_value *value)
{
    static const struct {
        char letter;
        int base;
    } bases[] = { { 'x', 16 }, { 'o', 8 }, { 'b', 2 } };
    char clean[NUMBER_BYTES], *out = clean;
    const char *p = text + 2;
    int base = 0;

    for (size_t i = 0; i < ARRAY_LEN(bases); i++) {
        if (bases[i].letter == text[1])
            base = bases[i].base;
    }
    if (!base)
        return "a number cannot begin with 0 (hexadecimal is 0x, octal 0o, binary 0b)";
    if (!take_run(&p, base, &out) || *p)
        return "this is not a number of that base";
    *out = '\0';
    return read_integer(clean, base, value);
}

static const char *read_float(char *clean, struct toml_value *value)
{
    /* A program may have chosen a locale with a decimal comma; files do not change with it. */
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);

    value->kind = TOML_FLOAT;
    value->real = c_locale ? strtod_l(clean, NULL, c_locale) : strtod(clean, NULL);
    if (c_locale)
        freelocale(c_locale);
    return NULL;
}

static const char *read_decimal(const char *text, struct toml_value *value)
{
    char clean[NUMBER_BYTES], *out = clean, *first;
    const char *p = text;
    bool is_float = false;

    if (*p == '+' || *p == '-')
        *out++ = *p++;
    first = out;
    if (!take_run(&p, 10, &out))
        return "expected true, false, a number or text in quotes";
    if (*first == '0' && out - first > 1)
        return "a number cannot begin with 0 (octal is written 0o...)";
    if (*p == '.') {
        is_float = true;
        *out++ = *p++;
        if (!take_run(&p, 10, &out))
            return "digits must follow the point of a number";
    }
    if (*p == 'e' || *p == 'E') {
        is_float = true;
        *out++ = *p++;
        if (*p == '+' || *p == '-')
            *out++ = *p++;
        if (!take_run(&p, 10, &out))
            return "digits must follow the exponent's e";
    }
    if (*p)
        return "this is not a number (text stands in quotes)";
    *out = '\0';
    return is_float ? read_float(clean, value) : read_integer(clean, 10, value);
}

static const struct {
    const char *text;
    enum toml_kind kind;
    bool truth;
    double real;
} words[] = {
    { "true", TOML_BOOL, true, 0 },           { "false", TOML_BOOL, false, 0 },
    { "inf", TOML_FLOAT, false, INFINITY },   { "+inf", TOML_FLOAT, false, INFINITY },
    { "-inf", TOML_FLOAT, false, -INFINITY }, { "nan", TOML_FLOAT, false, NAN },
    { "+nan", TOML_FLOAT, false, NAN },       { "-nan", TOML_FLOAT, false, NAN },
};

static bool read_word(const char *text, struct toml_value *value)
{
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcmp(words[i].text, text) == 0) {
            value->kind = words[i].kind;
            if (value->kind == TOML_BOOL)
                value->boolean = words[i].truth;
            else
                value->real = words[i].real;
            return true;
        }
    }
    return false;
}

static bool is_four_digits_and_dash(const char *text, size_t len)
{
    return len >= 5 && is_digit(text[0]) && is_digit(text[1]) && is_digit(text[2]) &&
           is_digit(text[3]) && text[4] == '-';
}

/* The run of characters that is the value. */
static size_t token_len(const struct toml_reader *r)
{
    const char *p = r->p;

    while (p < r->end && is_token(*p))
        p++;
    if (p - r->p == 10 && is_four_digits_and_dash(r->p, 10) && r->end - p > 1 && *p == ' ' &&
        is_digit(p[1])) {
        for (p++; p < r->end && is_token(*p);)
            p++;
    }
    return (size_t)(p - r->p);
}

int toml_read_scalar(struct toml_reader *r, struct toml_value *value)
{
    size_t len = token_len(r);
    const char *text, *wrong;

    if (!len)
        return toml_fail_here(r, "expected true, false, a number or text in quotes, found %s",
                              toml_shown(r));
    if (len >= NUMBER_BYTES)
        return toml_fail_here(r, "this number is longer than %d characters", NUMBER_BYTES - 1);
    text = arena_strndup(r->arena, r->p, len);
    if (read_word(text, value))
        wrong = NULL;
    else if (is_four_digits_and_dash(text, len) ||
             (len >= 3 && is_digit(text[0]) && is_digit(text[1]) && text[2] == ':'))
        wrong = read_time(text, value);
    else if (len > 1 && text[0] == '0' && text[1] != '.' && (text[1] | 0x20) != 'e')
        wrong = read_based(text, value);
    else
        wrong = read_decimal(text, value);
    if (wrong)
        return toml_fail_here(r, "'%.64s'%s: %s", text, len > 64 ? "..." : "", wrong);
    r->p += len;
    return 0;
}
