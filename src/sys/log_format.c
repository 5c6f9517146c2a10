/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_format.c - printf that knows where a value begins
 *
 * Each conversion is formatted alone, so that a text argument can be quoted as a whole when it
 * stands after '='. The compiler has checked the arguments against the format (PRINTF).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sys/log.h"

static bool needs_quotes(const char *value, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)value[i];
        if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7f)
            return true;
    }
    return len == 0;
}

void log_add_value(struct str *out, const char *value, size_t len)
{
    if (!needs_quotes(value, len)) {
        str_add_visible(out, value, len);
        return;
    }
    str_add_char(out, '"');
    for (size_t i = 0; i < len;) {
        size_t plain = i;
        while (plain < len && value[plain] != '"' && value[plain] != '\\')
            plain++;
        str_add_visible(out, value + i, plain - i);
        if (plain < len) {
            str_add_char(out, '\\');
            str_add_char(out, value[plain++]);
        }
        i = plain;
    }
    str_add_char(out, '"');
}

enum width { WIDTH_INT, WIDTH_CHAR, WIDTH_SHORT, WIDTH_LONG, WIDTH_LLONG, WIDTH_SIZE, WIDTH_MAX };

struct conversion {
    char spec[48]; /* the flags, width and precision as written, ready for one snprintf */
    size_t len;
    int precision; /* -1: none */
    enum width width;
    char kind;
};

static void keep(struct conversion *conv, char c)
{
    if (conv->len < sizeof(conv->spec) - 8)
        conv->spec[conv->len++] = c;
}

static void keep_number(struct conversion *conv, int number)
{
    char digits[16];

    snprintf(digits, sizeof(digits), "%d", MIN(number, 4096));
    for (const char *at = digits; *at; at++)
        keep(conv, *at);
}

static int read_number(const char **fmt, va_list *args)
{
    int number = 0;

    if (**fmt == '*') {
        (*fmt)++;
        return va_arg(*args, int);
    }
    for (; **fmt >= '0' && **fmt <= '9'; (*fmt)++)
        number = MIN(number * 10 + (**fmt - '0'), 4096);
    return number;
}

static enum width read_width(const char **fmt)
{
    static const struct {
        const char *text;
        enum width width;
    } rows[] = {
        { "hh", WIDTH_CHAR }, { "h", WIDTH_SHORT }, { "ll", WIDTH_LLONG }, { "l", WIDTH_LONG },
        { "z", WIDTH_SIZE },  { "t", WIDTH_SIZE },  { "j", WIDTH_MAX },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t len = strlen(rows[i].text);
        if (strncmp(*fmt, rows[i].text, len) == 0) {
            *fmt += len;
            return rows[i].width;
        }
    }
    return WIDTH_INT;
}

/* *fmt stands after '%'. */
static void read_conversion(struct conversion *conv, const char **fmt, va_list *args)
{
    *conv = (struct conversion){ .precision = -1 };
    keep(conv, '%');
    while (**fmt && strchr("-+ #0'", **fmt))
        keep(conv, *(*fmt)++);
    if (**fmt == '*' || (**fmt >= '1' && **fmt <= '9'))
        keep_number(conv, read_number(fmt, args));
    if (**fmt == '.') {
        (*fmt)++;
        conv->precision = read_number(fmt, args);
        if (conv->precision >= 0) {
            keep(conv, '.');
            keep_number(conv, conv->precision);
        }
    }
    conv->width = read_width(fmt);
    conv->kind = **fmt ? *(*fmt)++ : '\0';
}

static intmax_t next_signed(enum width width, va_list *args)
{
    switch (width) {
    case WIDTH_LONG:
        return va_arg(*args, long);
    case WIDTH_LLONG:
        return va_arg(*args, long long);
    case WIDTH_SIZE:
        return va_arg(*args, ptrdiff_t);
    case WIDTH_MAX:
        return va_arg(*args, intmax_t);
    case WIDTH_CHAR:
        return (signed char)va_arg(*args, int);
    case WIDTH_SHORT:
        return (short)va_arg(*args, int);
    case WIDTH_INT:
        break;
    }
    return va_arg(*args, int);
}

static uintmax_t next_unsigned(enum width width, va_list *args)
{
    switch (width) {
    case WIDTH_LONG:
        return va_arg(*args, unsigned long);
    case WIDTH_LLONG:
        return va_arg(*args, unsigned long long);
    case WIDTH_SIZE:
        return va_arg(*args, size_t);
    case WIDTH_MAX:
        return va_arg(*args, uintmax_t);
    case WIDTH_CHAR:
        return (unsigned char)va_arg(*args, unsigned);
    case WIDTH_SHORT:
        return (unsigned short)va_arg(*args, unsigned);
    case WIDTH_INT:
        break;
    }
    return va_arg(*args, unsigned);
}

static void add_text(struct str *out, const struct conversion *conv, const char *text, bool value)
{
    if (!text)
        text = "(null)";
    size_t max = conv->precision >= 0 ? (size_t)conv->precision : LOG_LINE_BYTES;
    size_t len = strnlen(text, max);

    if (value)
        log_add_value(out, text, len);
    else
        str_add_visible(out, text, len);
}

/* The format of snprintf is made here, from flags and digits that a caller's literal held. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static void add_number(struct str *out, struct conversion *conv, va_list *args)
{
    char buf[512];

    switch (conv->kind) {
    case 'd':
    case 'i':
        memcpy(conv->spec + conv->len, PRIdMAX, sizeof(PRIdMAX));
        snprintf(buf, sizeof(buf), conv->spec, next_signed(conv->width, args));
        break;
    case 'u':
    case 'x':
    case 'X':
    case 'o':
        snprintf(conv->spec + conv->len, 4, "j%c", conv->kind);
        snprintf(buf, sizeof(buf), conv->spec, next_unsigned(conv->width, args));
        break;
    case 'p':
        snprintf(buf, sizeof(buf), "%p", va_arg(*args, void *));
        break;
    default:
        snprintf(conv->spec + conv->len, 4, "%c", conv->kind);
        snprintf(buf, sizeof(buf), conv->spec, va_arg(*args, double));
        break;
    }
    str_add(out, buf);
}
#pragma GCC diagnostic pop

static bool add_conversion(struct str *out, struct conversion *conv, bool value, va_list *args)
{
    char c;

    switch (conv->kind) {
    case '%':
        str_add_char(out, '%');
        return true;
    case 's':
        add_text(out, conv, va_arg(*args, const char *), value);
        return true;
    case 'c':
        c = (char)va_arg(*args, int);
        add_text(out, &(struct conversion){ .precision = 1 }, (char[]){ c, '\0' }, value);
        return true;
    case 'd':
    case 'i':
    case 'u':
    case 'x':
    case 'X':
    case 'o':
    case 'p':
    case 'f':
    case 'g':
    case 'e':
        add_number(out, conv, args);
        return true;
    default:
        /* The arguments can no longer be told apart: say so and stop. */
        str_add(out, "(format?)");
        return false;
    }
}

void log_format(struct str *out, const char *fmt, va_list args)
{
    size_t start = out->len;
    bool going = true;
    va_list walk;

    va_copy(walk, args);
    while (*fmt && going && out->len - start < LOG_LINE_BYTES) {
        size_t plain = strcspn(fmt, "%");
        struct conversion conv;

        str_add_visible(out, fmt, plain);
        bool value = plain && fmt[plain - 1] == '=';
        fmt += plain;
        if (*fmt == '%') {
            fmt++;
            read_conversion(&conv, &fmt, &walk);
            going = add_conversion(out, &conv, value, &walk);
        }
    }
    va_end(walk);
    if (out->len - start > LOG_LINE_BYTES) {
        str_truncate(out, start + LOG_LINE_BYTES - 3);
        str_add(out, "...");
    }
}
