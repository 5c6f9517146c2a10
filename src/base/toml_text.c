/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml_text.c - the TOML reader's position, its errors, and the text of strings and keys
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/toml_priv.h"

struct toml_pos toml_pos(struct toml_reader *r)
{
    if (r->column_at < r->line_start || r->column_at > r->p) {
        r->column_at = r->line_start;
        r->column = 1;
    }
    for (; r->column_at < r->p; r->column_at++)
        r->column += ((unsigned char)*r->column_at & 0xc0) != 0x80;
    return (struct toml_pos){ .line = r->line, .column = r->column };
}

int toml_fail(struct toml_reader *r, struct toml_pos pos, const char *fmt, ...)
{
    char text[ERR_TEXT_BYTES];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (r->name)
        return err_set(r->err, ERR_SYNTAX, "%s:%u:%u: %s", r->name, pos.line, pos.column, text);
    return err_set(r->err, ERR_SYNTAX, "line %u, column %u: %s", pos.line, pos.column, text);
}

int toml_fail_here(struct toml_reader *r, const char *fmt, ...)
{
    char text[ERR_TEXT_BYTES];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return toml_fail(r, toml_pos(r), "%s", text);
}

static size_t char_len(const char *p)
{
    unsigned char c = (unsigned char)*p;

    return c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

const char *toml_shown(struct toml_reader *r)
{
    if (r->p >= r->end)
        return "the end of the file";
    if (*r->p == '\n' || *r->p == '\r')
        return "the end of the line";
    return arena_printf(r->arena, "'%.*s'", (int)char_len(r->p), r->p);
}

static bool is_forbidden(const char *p, const char *end)
{
    unsigned char c = (unsigned char)*p;

    if (c == '\r')
        return p + 1 == end || p[1] != '\n';
    return (c < 0x20 && c != '\t' && c != '\n') || c == 0x7f;
}

/* Establishes invariant (1) and leaves the position at the start, behind a byte order mark. */
int toml_check_text(struct toml_reader *r)
{
    const char *begin;

    if (toml_starts(r, "\xef\xbb\xbf", 3))
        r->p += 3;
    begin = r->p;
    while (r->p < r->end) {
        size_t len = str_utf8_len(r->p, (size_t)(r->end - r->p));

        if (!len)
            return toml_fail_here(r, "byte 0x%02x is not UTF-8", (unsigned char)*r->p);
        if (is_forbidden(r->p, r->end))
            return toml_fail_here(r, "control character 0x%02x is not allowed here",
                                  (unsigned char)*r->p);
        if (*r->p == '\n')
            toml_newline(r);
        else
            r->p += len;
    }
    r->p = r->line_start = r->column_at = begin;
    r->column = r->line = 1;
    return 0;
}

bool toml_at_newline(const struct toml_reader *r)
{
    return r->p < r->end && (*r->p == '\n' || *r->p == '\r');
}

void toml_newline(struct toml_reader *r)
{
    r->p += *r->p == '\r' ? 2 : 1;
    r->line++;
    r->line_start = r->p;
}

void toml_skip_blanks(struct toml_reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\t'))
        r->p++;
}

void toml_skip_comment(struct toml_reader *r)
{
    if (toml_peek(r) != '#')
        return;
    while (r->p < r->end && !toml_at_newline(r))
        r->p++;
}

int toml_skip_lines(struct toml_reader *r)
{
    for (;;) {
        toml_skip_blanks(r);
        toml_skip_comment(r);
        if (!toml_at_newline(r))
            return 0;
        toml_newline(r);
    }
}

static void add_utf8(struct str *out, uint32_t c)
{
    if (c < 0x80) {
        str_add_char(out, (char)c);
    } else if (c < 0x800) {
        str_add_char(out, (char)(0xc0 | c >> 6));
        str_add_char(out, (char)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        str_add_char(out, (char)(0xe0 | c >> 12));
        str_add_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
        str_add_char(out, (char)(0x80 | (c & 0x3f)));
    } else {
        str_add_char(out, (char)(0xf0 | c >> 18));
        str_add_char(out, (char)(0x80 | (c >> 12 & 0x3f)));
        str_add_char(out, (char)(0x80 | (c >> 6 & 0x3f)));
        str_add_char(out, (char)(0x80 | (c & 0x3f)));
    }
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \uXXXX or \UXXXXXXXX, the position behind the letter. */
static int read_code_point(struct toml_reader *r, unsigned digits)
{
    uint32_t c = 0;

    for (unsigned i = 0; i < digits; i++) {
        int digit = hex_digit(toml_peek(r));

        if (digit < 0)
            return toml_fail_here(r, "expected %u hexadecimal digits, found %s", digits,
                                  toml_shown(r));
        c = c << 4 | (uint32_t)digit;
        r->p++;
    }
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return toml_fail_here(r, "U+%04X is not a character", (unsigned)c);
    add_utf8(&r->scratch, c);
    return 0;
}

static const struct {
    char letter, means;
} escapes[] = {
    { 'b', '\b' }, { 't', '\t' }, { 'n', '\n' },  { 'f', '\f' },
    { 'r', '\r' }, { '"', '"' },  { '\\', '\\' },
};

static int read_escape(struct toml_reader *r)
{
    char c;

    r->p++;
    c = toml_peek(r);
    for (size_t i = 0; i < ARRAY_LEN(escapes); i++) {
        if (escapes[i].letter == c) {
            str_add_char(&r->scratch, escapes[i].means);
            r->p++;
            return 0;
        }
    }
    if (c == 'u' || c == 'U') {
        r->p++;
        return read_code_point(r, c == 'u' ? 4 : 8);
    }
    return toml_fail_here(r, "unknown escape \\ followed by %s (write \\\\ for a backslash)",
                          toml_shown(r));
}

/* A backslash that ends a line swallows all white space up to the next character. */
static bool skip_line_continuation(struct toml_reader *r)
{
    const char *p = r->p + 1;

    while (p < r->end && (*p == ' ' || *p == '\t'))
        p++;
    if (p >= r->end || (*p != '\n' && *p != '\r'))
        return false;
    r->p = p;
    for (;;) {
        toml_skip_blanks(r);
        if (!toml_at_newline(r))
            return true;
        toml_newline(r);
    }
}

static int read_short(struct toml_reader *r, char quote)
{
    struct toml_pos open = toml_pos(r);

    r->p++;
    for (;;) {
        if (r->p >= r->end || toml_at_newline(r))
            return toml_fail(r, open, "this string has no closing %c on its line", quote);
        if (*r->p == quote)
            break;
        if (quote == '"' && *r->p == '\\') {
            if (read_escape(r) < 0)
                return -1;
        } else {
            str_add_char(&r->scratch, *r->p++);
        }
    }
    r->p++;
    return 0;
}

/* Up to two quotes may stand before the closing three. */
static bool close_long(struct toml_reader *r, char quote)
{
    size_t count = 0;

    while (count < 5 && r->p + count < r->end && r->p[count] == quote)
        count++;
    r->p += count;
    str_add_fill(&r->scratch, quote, count < 3 ? count : count - 3);
    return count >= 3;
}

static int read_long(struct toml_reader *r, char quote)
{
    struct toml_pos open = toml_pos(r);

    r->p += 3;
    if (toml_at_newline(r))
        toml_newline(r);
    for (;;) {
        if (r->p >= r->end)
            return toml_fail(r, open, "this string has no closing %c%c%c", quote, quote, quote);
        if (*r->p == quote) {
            if (close_long(r, quote))
                return 0;
        } else if (quote == '"' && *r->p == '\\') {
            if (!skip_line_continuation(r) && read_escape(r) < 0)
                return -1;
        } else if (toml_at_newline(r)) {
            str_add_len(&r->scratch, r->p, *r->p == '\r' ? 2 : 1);
            toml_newline(r);
        } else {
            str_add_char(&r->scratch, *r->p++);
        }
    }
}

static void take_scratch(struct toml_reader *r, const char **text, size_t *len)
{
    *len = r->scratch.len;
    *text = arena_strndup(r->arena, str_text(&r->scratch), r->scratch.len);
}

int toml_read_string(struct toml_reader *r, const char **text, size_t *len)
{
    char quote = *r->p;
    bool is_long = toml_starts(r, quote == '"' ? "\"\"\"" : "'''", 3);

    str_clear(&r->scratch);
    if ((is_long ? read_long(r, quote) : read_short(r, quote)) < 0)
        return -1;
    take_scratch(r, text, len);
    return 0;
}

static bool is_bare(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
}

int toml_read_key(struct toml_reader *r, struct toml_key *key)
{
    const char *from = r->p;

    key->pos = toml_pos(r);
    if (toml_starts(r, "\"\"\"", 3) || toml_starts(r, "'''", 3))
        return toml_fail_here(r, "a key cannot be a multi-line string");
    if (toml_peek(r) == '"' || toml_peek(r) == '\'')
        return toml_read_string(r, &key->text, &key->len);
    while (r->p < r->end && is_bare(*r->p))
        r->p++;
    if (r->p == from)
        return toml_fail_here(r, "expected a key, found %s", toml_shown(r));
    key->len = (size_t)(r->p - from);
    key->text = arena_strndup(r->arena, from, key->len);
    return 0;
}
