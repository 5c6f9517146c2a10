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

/* How many bytes from here on are written as they are: most texts are nothing else. */
static size_t plain_len(const char *text, size_t len)
{
    size_t i = 0;

    while (i < len && text[i] >= ' ' && text[i] < 0x7f && text[i] != '"' && text[i] != '\\' &&
           text[i] != '/')
        i++;
    return i;
}

static void add_string(struct str *out, const char *text, size_t len, bool yaml)
{
    str_add_char(out, '"');
    for (size_t i = 0; i < len;) {
        size_t plain = plain_len(text + i, len - i);
        if (plain) {
            str_add_len(out, text + i, plain);
            i += plain;
            continue;
        }
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

/* ---- what is expected ---- */

void jsonw_expect(struct jsonw *json, unsigned version, const struct api_type *type)
{
    json->version = version;
    json->expected = type;
}

static const struct api_shape anything = { .kind = API_ANY };

/* The shape of the next value; NULL: it is left out. */
static const struct api_shape *shape_of(struct jsonw *json, const char *key)
{
    struct jsonw_level *level = &json->levels[json->depth];

    if (json->skipped)
        return NULL;
    if (level->item)
        return level->item;
    if (!level->type)
        return &anything;
    int field = api_field_find(level->type, key);
    if (field < 0)
        return NULL;
    assert(field < JSONW_FIELDS_MAX);
    level->seen[field / 64] |= UINT64_C(1) << (field % 64);
    return &level->type->fields[field].shape;
}

/* Whether "A|B" has the word. */
static bool has_word(const char *words, const char *text, size_t len)
{
    const char *cursor = words;
    struct span word;

    while (str_next(&cursor, "|", &word)) {
        if (word.len == len && memcmp(word.ptr, text, len) == 0)
            return true;
    }
    return false;
}

static void open_level(struct jsonw *json, const char *key, char bracket)
{
    if (json->yaml) {
        open_yaml(json, key, bracket == '[');
    } else {
        begin(json, key);
        str_add_char(json->out, bracket);
        assert(json->depth + 1 < JSONW_DEPTH_MAX);
        json->any[++json->depth] = false;
    }
    json->levels[json->depth].type = NULL;
    json->levels[json->depth].item = NULL;
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

static void expect_object(struct jsonw *json, const struct api_type *type)
{
    struct jsonw_level *level = &json->levels[json->depth];

    level->type = type;
    memset(level->seen, 0, (type->count + 63) / 64 * sizeof(level->seen[0]));
}

static void add_text(struct jsonw *json, const char *key, const char *text, size_t len)
{
    begin(json, key);
    add_string(json->out, text, len, json->yaml);
}

static void add_number(struct jsonw *json, const char *key, int64_t number)
{
    begin(json, key);
    str_add_i64(json->out, number);
}

static void add_double(struct jsonw *json, const char *key, double number)
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

static void add_bool(struct jsonw *json, const char *key, bool value)
{
    begin(json, key);
    str_add(json->out, value ? "true" : "false");
}

struct number {
    bool set, infinite, decimal;
    int64_t whole;
    double fraction; /* when decimal */
};

static void add_set(struct jsonw *json, const char *key, const struct number *number)
{
    open_level(json, key, '{');
    add_bool(json, "set", number->set);
    add_bool(json, "infinite", number->infinite);
    if (number->decimal)
        add_double(json, "number", number->fraction);
    else
        add_number(json, "number", number->whole);
    close_level(json, '}');
}

static void add_default(struct jsonw *json, const char *key, const struct api_shape *shape);

static void add_missing(struct jsonw *json)
{
    const struct api_type *type = json->levels[json->depth].type;
    const uint64_t *seen = json->levels[json->depth].seen;

    for (size_t i = 0; type && i < type->count; i++) {
        if (!(seen[i / 64] >> (i % 64) & 1))
            add_default(json, type->fields[i].name, &type->fields[i].shape);
    }
}

static void add_default(struct jsonw *json, const char *key, const struct api_shape *shape)
{
    struct number none = { .decimal = shape->decimal };

    switch (shape->kind) {
    case API_TEXT:
        add_text(json, key, "", 0);
        break;
    case API_WORD:
        add_text(json, key, shape->words, strcspn(shape->words, "|"));
        break;
    case API_INT:
        add_number(json, key, 0);
        break;
    case API_NUM:
        add_double(json, key, 0);
        break;
    case API_BOOL:
        add_bool(json, key, false);
        break;
    case API_SET:
        add_set(json, key, &none);
        break;
    case API_LIST:
        open_level(json, key, '[');
        close_level(json, ']');
        break;
    case API_ANY:
        open_level(json, key, '{');
        close_level(json, '}');
        break;
    case API_OBJECT:
        open_level(json, key, '{');
        expect_object(json, shape->type);
        add_missing(json);
        close_level(json, '}');
        break;
    }
}

/* A number where the API has something else. */
static void put_number(struct jsonw *json, const char *key, const struct number *number)
{
    const struct api_shape *shape = shape_of(json, key);
    struct number value = *number;
    char text[32];

    if (!shape)
        return;
    value.decimal = shape->kind == API_SET ? shape->decimal : number->decimal;
    if (!number->decimal)
        value.fraction = (double)number->whole;
    switch (shape->kind) {
    case API_SET:
        if (!value.decimal && number->decimal)
            value.whole = (int64_t)number->fraction;
        add_set(json, key, &value);
        break;
    case API_BOOL:
        add_bool(json, key, number->decimal ? number->fraction != 0 : number->whole != 0);
        break;
    case API_TEXT:
        snprintf(text, sizeof(text), "%lld", (long long)number->whole);
        add_text(json, key, text, strlen(text));
        break;
    case API_INT:
        add_number(json, key, number->decimal ? (int64_t)number->fraction : number->whole);
        break;
    case API_NUM:
        add_double(json, key, value.fraction);
        break;
    case API_ANY:
        if (number->decimal)
            add_double(json, key, number->fraction);
        else
            add_number(json, key, number->whole);
        break;
    default:
        add_default(json, key, shape);
    }
}

/* ---- what is written ---- */

void jsonw_object(struct jsonw *json, const char *key)
{
    const struct api_shape *shape = json->depth ? shape_of(json, key) : &anything;

    if (!shape || (shape->kind != API_OBJECT && shape->kind != API_ANY)) {
        if (shape)
            add_default(json, key, shape);
        json->skipped++;
        return;
    }
    bool outermost = !json->depth;
    open_level(json, key, '{');
    if (outermost && json->expected)
        expect_object(json, json->expected);
    else if (shape->kind == API_OBJECT)
        expect_object(json, shape->type);
}

void jsonw_object_end(struct jsonw *json)
{
    if (json->skipped) {
        json->skipped--;
        return;
    }
    add_missing(json);
    close_level(json, '}');
}

void jsonw_list(struct jsonw *json, const char *key)
{
    const struct api_shape *shape = shape_of(json, key);

    if (!shape || (shape->kind != API_LIST && shape->kind != API_ANY)) {
        if (shape)
            add_default(json, key, shape);
        json->skipped++;
        return;
    }
    open_level(json, key, '[');
    json->levels[json->depth].item = shape->kind == API_LIST ? shape->item : NULL;
}

void jsonw_list_end(struct jsonw *json)
{
    if (json->skipped)
        json->skipped--;
    else
        close_level(json, ']');
}

void jsonw_text(struct jsonw *json, const char *key, const char *text)
{
    jsonw_text_len(json, key, text ? text : "", text ? strlen(text) : 0);
}

/* A text where the API has a list: its words, those that the API knows. */
static void put_words(struct jsonw *json, const char *key, const struct api_shape *item,
                      const char *text, size_t len)
{
    struct span word;
    const char *end = text + len;

    open_level(json, key, '[');
    for (; text < end; text = word.ptr + word.len + 1) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        word = (struct span){ text, (size_t)((comma ? comma : end) - text) };
        if (word.len && (!item->words || has_word(item->words, word.ptr, word.len)))
            add_text(json, NULL, word.ptr, word.len);
    }
    close_level(json, ']');
}

/* A text where the API has a number. */
static void put_text_number(struct jsonw *json, const char *key, const struct api_shape *shape,
                            const char *text)
{
    struct number number = { .set = true,
                             .decimal = shape->decimal,
                             .whole = strtoll(text, NULL, 10),
                             .fraction = strtod(text, NULL) };

    if (shape->kind == API_SET)
        add_set(json, key, &number);
    else if (shape->kind == API_INT)
        add_number(json, key, number.whole);
    else
        add_double(json, key, number.fraction);
}

void jsonw_text_len(struct jsonw *json, const char *key, const char *text, size_t len)
{
    const struct api_shape *shape = shape_of(json, key);

    if (!shape)
        return;
    switch (shape->kind) {
    case API_ANY:
    case API_TEXT:
        add_text(json, key, text, len);
        break;
    case API_WORD:
        if (has_word(shape->words, text, len))
            add_text(json, key, text, len);
        else if (key)
            add_default(json, key, shape);
        break;
    case API_LIST:
        put_words(json, key, shape->item, text, len);
        break;
    case API_INT:
    case API_NUM:
    case API_SET:
        if (key && len && len < 20 && strspn(text, "-0123456789.") == len) {
            put_text_number(json, key, shape, text);
            break;
        }
        add_default(json, key, shape);
        break;
    default:
        add_default(json, key, shape);
    }
}

void jsonw_number(struct jsonw *json, const char *key, int64_t number)
{
    put_number(json, key, &(struct number){ .set = true, .whole = number });
}

void jsonw_decimal(struct jsonw *json, const char *key, int64_t number, unsigned digits)
{
    uint64_t whole = number < 0 ? -(uint64_t)number : (uint64_t)number, unit = 1;

    for (unsigned i = 0; i < digits; i++)
        unit *= 10;
    if (json->skipped || json->levels[json->depth].type || json->levels[json->depth].item) {
        put_number(json, key,
                   &(struct number){
                       .set = true, .decimal = true, .fraction = (double)number / (double)unit });
        return;
    }
    begin(json, key);
    str_addf(json->out, "%s%llu.%0*llu", number < 0 ? "-" : "", (unsigned long long)(whole / unit),
             (int)digits, (unsigned long long)(whole % unit));
}

void jsonw_double(struct jsonw *json, const char *key, double number)
{
    put_number(json, key, &(struct number){ .set = true, .decimal = true, .fraction = number });
}

void jsonw_bool(struct jsonw *json, const char *key, bool value)
{
    const struct api_shape *shape = shape_of(json, key);

    if (!shape)
        return;
    if (shape->kind == API_INT)
        add_number(json, key, value);
    else if (shape->kind == API_ANY || shape->kind == API_BOOL)
        add_bool(json, key, value);
    else
        add_default(json, key, shape);
}

/* { set, infinite, number }; a plain number where the API has one. */
static void put_set(struct jsonw *json, const char *key, const struct number *number)
{
    const struct api_shape *shape = shape_of(json, key);
    struct number value = *number;

    if (!shape)
        return;
    if (shape->kind == API_SET && shape->decimal != number->decimal) {
        value.decimal = shape->decimal;
        value.fraction = (double)number->whole;
        value.whole = (int64_t)number->fraction;
    }
    if (shape->kind == API_SET || shape->kind == API_ANY)
        add_set(json, key, &value);
    else if (shape->kind == API_INT)
        add_number(json, key, number->decimal ? (int64_t)number->fraction : number->whole);
    else if (shape->kind == API_NUM)
        add_double(json, key, number->decimal ? number->fraction : (double)number->whole);
    else
        add_default(json, key, shape);
}

void jsonw_set(struct jsonw *json, const char *key, bool set, bool infinite, int64_t number)
{
    put_set(json, key, &(struct number){ .set = set, .infinite = infinite, .whole = number });
}

void jsonw_set_double(struct jsonw *json, const char *key, bool set, bool infinite, double number)
{
    put_set(
        json, key,
        &(struct number){ .set = set, .infinite = infinite, .decimal = true, .fraction = number });
}
