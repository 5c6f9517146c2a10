// SPDX-License-Identifier: Apache-2.0
/*
 * jsonw.c - a streaming writer of JSON and YAML
 */
#include "schema/jsonw.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void jsonw_init(struct jsonw *json, struct str *out)
{
    *json = (struct jsonw){ .out = out };
}

void jsonw_init_yaml(struct jsonw *json, struct str *out)
{
    *json = (struct jsonw){ .out = out, .yaml = true };
    str_add(out, "---");
}

bool jsonw_has(const struct jsonw *json, unsigned since, unsigned until)
{
    return (!json->version || json->version >= since) &&
           (!until || (json->version && json->version <= until));
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

static void add_ascii(struct str *out, unsigned char c, bool yaml)
{
    static const char shorts[] = "\"\"\\\\//\bb\ff\nn\rr\tt";

    for (size_t i = 0; i < sizeof(shorts) - 1; i += 2) {
        if ((unsigned char)shorts[i] == c && !(yaml && c == '/')) {
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

/* U+0080 to U+009F: YAML wants them written by number. */
static bool is_c1(const char *text, size_t step)
{
    return step == 2 && (unsigned char)text[0] == 0xc2 && (unsigned char)text[1] < 0xa0;
}

static void add_string(struct str *out, const char *text, size_t len, bool yaml)
{
    str_add_char(out, '"');
    for (size_t i = 0; i < len;) {
        size_t step = utf8_len((const unsigned char *)text + i, len - i);

        if (step == 1)
            add_ascii(out, (unsigned char)text[i], yaml);
        else if (step == 0)
            str_add(out, "\xef\xbf\xbd");
        else if (yaml && is_c1(text + i, step))
            str_addf(out, "\\u%04x", (unsigned char)text[i + 1]);
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

/* ---- YAML ---- */

/* A key that can stand without quotes; words that YAML takes for truth values cannot. */
static bool is_plain(const char *key)
{
    static const char *const words[] = {
        "y", "n", "yes", "no", "on", "off", "true", "false", "null"
    };

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (str_ieq(key, words[i]))
            return false;
    }
    return strspn(key, "0123456789.-") == 0 && key[0] &&
           strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
               strlen(key);
}

static void begin_yaml(struct jsonw *json, const char *key)
{
    unsigned depth = json->depth;

    if (!depth)
        return;
    if (json->any[depth] || !json->same_line[depth]) {
        str_add_char(json->out, '\n');
        str_add_fill(json->out, ' ', json->column[depth]);
    }
    json->any[depth] = true;
    if (json->list[depth]) {
        str_add(json->out, "- ");
    } else {
        if (is_plain(key))
            str_add(json->out, key);
        else
            add_string(json->out, key, strlen(key), true);
        str_add_char(json->out, ':');
    }
}

/* A list's entries begin where the keys around it do, those of an entry behind its mark. */
static void open_yaml(struct jsonw *json, const char *key, bool list)
{
    unsigned outer = json->depth, column = json->column[outer];
    bool in_list = outer && json->list[outer];

    begin_yaml(json, key);
    assert(outer + 1 < JSONW_DEPTH_MAX);
    json->depth++;
    json->any[json->depth] = false;
    json->list[json->depth] = list;
    json->same_line[json->depth] = in_list;
    json->column[json->depth] = !outer ? 0 : in_list || !list ? column + 2 : column;
}

static void close_yaml(struct jsonw *json)
{
    unsigned depth = json->depth--;

    if (!json->any[depth])
        str_addf(json->out, "%s%s", json->same_line[depth] ? "" : " ",
                 json->list[depth] ? "[]" : "{}");
}

/* ---- both ---- */

static void begin(struct jsonw *json, const char *key)
{
    if (json->yaml) {
        begin_yaml(json, key);
        if (json->depth && !json->list[json->depth])
            str_add_char(json->out, ' ');
        return;
    }
    if (json->depth) {
        if (json->any[json->depth])
            str_add_char(json->out, ',');
        json->any[json->depth] = true;
        indent(json);
    }
    if (key) {
        add_string(json->out, key, strlen(key), false);
        str_add(json->out, ": ");
    }
}

static void open_level(struct jsonw *json, const char *key, char bracket)
{
    if (json->yaml) {
        open_yaml(json, key, bracket == '[');
        return;
    }
    begin(json, key);
    str_add_char(json->out, bracket);
    assert(json->depth + 1 < JSONW_DEPTH_MAX);
    json->any[++json->depth] = false;
}

static void close_level(struct jsonw *json, char bracket)
{
    if (json->yaml) {
        close_yaml(json);
        return;
    }
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
    add_string(json->out, text, len, json->yaml);
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

void jsonw_double(struct jsonw *json, const char *key, double number)
{
    char text[40];

    /* The shortest form that reads back as the same number; a whole one keeps its point. */
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    begin(json, key);
    str_add(json->out, text);
    if (!strpbrk(text, ".eni"))
        str_add(json->out, ".0");
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

void jsonw_set_double(struct jsonw *json, const char *key, bool set, bool infinite, double number)
{
    jsonw_object(json, key);
    jsonw_bool(json, "set", set);
    jsonw_bool(json, "infinite", infinite);
    jsonw_double(json, "number", number);
    jsonw_object_end(json);
}
