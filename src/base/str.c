/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str.c - a growing string, and the small questions asked of text
 */
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void str_done(struct str *str)
{
    free(str->data);
    *str = (struct str){ 0 };
}

void str_clear(struct str *str)
{
    str_truncate(str, 0);
}

void str_reserve(struct str *str, size_t more)
{
    size_t want = str->len + more + 1;

    if (want <= str->cap)
        return;
    size_t cap = str->cap ? str->cap * 2 : 64;
    if (cap < want)
        cap = want;
    str->data = mem_resize(str->data, cap);
    str->cap = cap;
    str->data[str->len] = '\0';
}

void str_add_len(struct str *str, const void *bytes, size_t len)
{
    str_reserve(str, len);
    if (len)
        memcpy(str->data + str->len, bytes, len);
    str->len += len;
    str->data[str->len] = '\0';
}

void str_add(struct str *str, const char *text)
{
    if (text)
        str_add_len(str, text, strlen(text));
}

void str_add_char(struct str *str, char c)
{
    str_add_len(str, &c, 1);
}

void str_add_fill(struct str *str, char c, size_t count)
{
    str_reserve(str, count);
    memset(str->data + str->len, c, count);
    str->len += count;
    str->data[str->len] = '\0';
}

void str_vaddf(struct str *str, const char *fmt, va_list args)
{
    va_list again;

    va_copy(again, args);
    str_reserve(str, 64);
    int len = vsnprintf(str->data + str->len, str->cap - str->len, fmt, args);
    if (len > 0 && (size_t)len >= str->cap - str->len) {
        str_reserve(str, (size_t)len);
        len = vsnprintf(str->data + str->len, str->cap - str->len, fmt, again);
    }
    va_end(again);
    if (len > 0)
        str->len += (size_t)len;
    str->data[str->len] = '\0';
}

void str_addf(struct str *str, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    str_vaddf(str, fmt, args);
    va_end(args);
}

void str_add_u64(struct str *str, uint64_t value)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    str_add_len(str, digits + at, sizeof(digits) - at);
}

void str_add_i64(struct str *str, int64_t value)
{
    if (value < 0)
        str_add_char(str, '-');
    str_add_u64(str, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void str_truncate(struct str *str, size_t len)
{
    if (!str->data || len > str->len)
        return;
    str->len = len;
    str->data[len] = '\0';
}

char *str_take(struct str *str)
{
    str_reserve(str, 0);
    char *out = str->data;
    *str = (struct str){ 0 };
    return out;
}

bool str_eq(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

bool str_ieq(const char *a, const char *b)
{
    if (!a || !b)
        return a == b;
    while (*a && lower(*a) == lower(*b))
        a++, b++;
    return lower(*a) == lower(*b);
}

bool str_starts(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool str_istarts(const char *text, const char *prefix)
{
    while (*prefix && lower(*text) == lower(*prefix))
        text++, prefix++;
    return !*prefix;
}

bool str_ends(const char *text, const char *suffix)
{
    size_t len = strlen(text), tail = strlen(suffix);

    return len >= tail && strcmp(text + len - tail, suffix) == 0;
}

static bool blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

char *str_trim(char *text)
{
    while (blank(*text))
        text++;
    size_t len = strlen(text);
    while (len && blank(text[len - 1]))
        text[--len] = '\0';
    return text;
}

bool str_next(const char **cursor, const char *separators, struct span *word)
{
    const char *at = *cursor;

    if (!at)
        return false;
    at += strspn(at, separators);
    size_t len = strcspn(at, separators);
    *cursor = at + len;
    *word = (struct span){ at, len };
    return len > 0;
}

bool span_eq(struct span span, const char *text)
{
    return strlen(text) == span.len && memcmp(span.ptr, text, span.len) == 0;
}

bool span_ieq(struct span span, const char *text)
{
    if (strlen(text) != span.len)
        return false;
    for (size_t i = 0; i < span.len; i++) {
        if (lower(span.ptr[i]) != lower(text[i]))
            return false;
    }
    return true;
}

bool str_to_u64(const char *text, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;

    if (str_is_empty(text))
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return false;
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return false;
    }
    if (value > max)
        return false;
    *out = value;
    return true;
}

bool str_to_i64(const char *text, int64_t min, int64_t max, int64_t *out)
{
    uint64_t size;
    bool negative = text && *text == '-';

    if (!str_to_u64(text + negative, (uint64_t)INT64_MAX + negative, &size))
        return false;
    int64_t value = negative ? (int64_t)(0 - size) : (int64_t)size;
    if (value < min || value > max)
        return false;
    *out = value;
    return true;
}

unsigned str_distance(const char *a, const char *b)
{
    enum { MOST = 64 };
    size_t la = strlen(a), lb = strlen(b);
    unsigned row[MOST + 1];

    if (la > MOST || lb > MOST)
        return MOST;
    for (unsigned j = 0; j <= lb; j++)
        row[j] = j;
    for (unsigned i = 1; i <= la; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            unsigned cost = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
            diagonal = row[j];
            row[j] = MIN(cost, MIN(row[j], row[j - 1]) + 1);
        }
    }
    return row[lb];
}

void str_add_visible(struct str *str, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '\n')
            str_add(str, "\\n");
        else if (c == '\t')
            str_add(str, "\\t");
        else if (c < 0x20 || c == 0x7f)
            str_addf(str, "\\x%02x", c);
        else
            str_add_char(str, (char)c);
    }
}

size_t str_utf8_len(const char *text, size_t left)
{
    const unsigned char *p = (const unsigned char *)text;
    size_t len = !left         ? 0
                 : p[0] < 0x80 ? 1
                 : p[0] < 0xc2 ? 0
                 : p[0] < 0xe0 ? 2
                 : p[0] < 0xf0 ? 3
                               : 4;
    uint32_t c;

    if (len < 2)
        return len;
    if (p[0] > 0xf4 || len > left)
        return 0;
    c = p[0] & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    if ((len == 3 && c < 0x800) || (len == 4 && c < 0x10000) || c > 0x10ffff ||
        (c >= 0xd800 && c < 0xe000))
        return 0;
    return len;
}

bool str_is_utf8(const char *text)
{
    size_t left = strlen(text), len;

    for (; left; text += len, left -= len) {
        if (!(len = str_utf8_len(text, left)))
            return false;
    }
    return true;
}
