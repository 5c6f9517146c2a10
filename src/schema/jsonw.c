// SPDX-License-Identifier: Apache-2.0
/*
 * jsonw.c - a streaming JSON writer
 */
#include "schema/jsonw.h"

#include <assert.h>
#include <string.h>

void jsonw_init(struct jsonw *json, struct str *out)
{
    *json = (struct jsonw){ .out = out };
}

/* Length of the UTF-8 character at text, or 0 when there is none. */
static size_t utf8_len(const unsigned char *text, size_t left)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t len = text[0] < 0x80   ? 1
                 : text[0] < 0xc2 ? 0
                 : text[0] < 0xe0 ? 2
                 : text[0] < 0xf0 ? 3
                                  : 4;
    uint32_t code;

    if (len <= 1)
        return len;
    if (len > left || text[0] > 0xf4)
        return 0;
    code = text[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((text[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (text[i] & 0x3f);
    }
    return code < least[len] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : len;
}

static void add_ascii(struct str *out, unsigned char c)
{
    static const char shorts[] = "\"\"\\\\//\bb\ff\nn\rr\tt";

    for (size_t i = 0; i < sizeof(shorts) - 1; i += 2) {
        if ((unsigned char)shorts[i] == c) {
            str_add_char(out, '\\');
            str_add_char(out, shorts[i + 1]);
            return;
        }
    }
    if (c < 0x20 || c == 0x7f)
        str_addf(out, "\\u%04x", c);
    else
        str_add_char(out, (char)c);
}

static void add_string(struct str *out, const char *text, size_t len)
{
    str_add_char(out, '"');
    for (size_t i = 0; i < len;) {
        size_t step = utf8_len((const unsigned char *)text + i, len - i);

        if (step == 1)
            add_ascii(out, (unsigned char)text[i]);
        else if (step == 0)
            str_add(out, "\xef\xbf\xbd");
        else
            str_add_len(out, text + i, step);
        i += step ? step : 1;
    }
    str_add_char(out, '"');
}

static void indent(struct jsonw *json)
{
    str_add_char(json->out, '\n');
    str_add_fill(json->out, ' ', (size_t)json->depth * 2);
}

static void begin(struct jsonw *json, const char *key)
{
    if (json->depth) {
        if (json->any[json->depth])
            str_add_char(json->out, ',');
        json->any[json->depth] = true;
        indent(json);
    }
    if (key) {
        add_string(json->out, key, strlen(key));
        str_add(json->out, ": ");
    }
}

static void open_level(struct jsonw *json, const char *key, char bracket)
{
    begin(json, key);
    str_add_char(json->out, bracket);
    assert(json->depth + 1 < JSONW_DEPTH_MAX);
    json->any[++json->depth] = false;
}

static void close_level(struct jsonw *json, char bracket)
{
    json->depth--;
    indent(json);
    str_add_char(json->out, bracket);
}

void jsonw_object(struct jsonw *json, const char *key)
{
    open_level(json, key, '{');
}

void jsonw_object_end(struct jsonw *json)
{
    close_level(json, '}');
}

void jsonw_list(struct jsonw *json, const char *key)
{
    open_level(json, key, '[');
}

void jsonw_list_end(struct jsonw *json)
{
    close_level(json, ']');
}

void jsonw_text(struct jsonw *json, const char *key, const char *text)
{
    jsonw_text_len(json, key, text ? text : "", text ? strlen(text) : 0);
}

void jsonw_text_len(struct jsonw *json, const char *key, const char *text, size_t len)
{
    begin(json, key);
    add_string(json->out, text, len);
}

void jsonw_number(struct jsonw *json, const char *key, int64_t number)
{
    begin(json, key);
    str_add_i64(json->out, number);
}

void jsonw_decimal(struct jsonw *json, const char *key, int64_t number, unsigned digits)
{
    uint64_t whole = number < 0 ? -(uint64_t)number : (uint64_t)number, unit = 1;

    for (unsigned i = 0; i < digits; i++)
        unit *= 10;
    begin(json, key);
    str_addf(json->out, "%s%llu.%0*llu", number < 0 ? "-" : "", (unsigned long long)(whole / unit),
             (int)digits, (unsigned long long)(whole % unit));
}

void jsonw_bool(struct jsonw *json, const char *key, bool value)
{
    begin(json, key);
    str_add(json->out, value ? "true" : "false");
}

void jsonw_set(struct jsonw *json, const char *key, bool set, bool infinite, int64_t number)
{
    jsonw_object(json, key);
    jsonw_bool(json, "set", set);
    jsonw_bool(json, "infinite", infinite);
    jsonw_number(json, "number", number);
    jsonw_object_end(json);
}
