/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml_suite.c - runs the TOML conformance cases
 *
 * jansson reads the expected JSON. It refuses NUL inside keys, which one case has, so NUL is
 * written as U+F0F0 on both sides.
 */
#include "base/test/toml_suite.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/toml.h"

#define NUL_STANDS_AS "\xef\x83\xb0"

static void add_text(struct str *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (text[i])
            str_add_char(out, text[i]);
        else
            str_add(out, NUL_STANDS_AS);
    }
}

static bool text_is(const char *text, size_t len, const char *want)
{
    struct str shown = { 0 };
    bool same;

    add_text(&shown, text, len);
    same = strcmp(str_text(&shown), want) == 0;
    str_done(&shown);
    return same;
}

/* Days since 1970-01-01 in the Gregorian calendar. */
static int64_t days_from(int64_t y, int m, int d)
{
    y -= m <= 2;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* The expected texts are RFC 3339; ours is compared as an instant, so read theirs by scanf. */
static bool time_is(const struct toml_value *value, const char *want)
{
    struct toml_time t = { .month = 1, .day = 1 }, v = value->time;
    const char *clock = want;
    char sign = 0, fraction[16] = "";
    int used = 0, hours = 0, minutes = 0;

    if (value->kind != TOML_TIME) {
        if (sscanf(want, "%4d-%2d-%2d%n", &t.year, &t.month, &t.day, &used) != 3)
            return false;
        clock += used;
        clock += *clock != '\0';
    } else {
        v.month = v.day = 1;
    }
    if (*clock) {
        if (sscanf(clock, "%2d:%2d:%2d%n", &t.hour, &t.minute, &t.second, &used) != 3)
            return false;
        clock += used;
        if (sscanf(clock, ".%9[0-9]%n", fraction, &used) == 1)
            clock += used;
        while (strlen(fraction) < 9)
            strcat(fraction, "0");
        t.nanosecond = atoi(fraction);
        if (sscanf(clock, "%c%2d:%2d", &sign, &hours, &minutes) == 3)
            t.offset_min = (hours * 60 + minutes) * (sign == '-' ? -1 : 1);
    }
#define INSTANT(x)                                                                         \
    (days_from((x).year, (x).month, (x).day) * 86400 + (x).hour * 3600 + (x).minute * 60 + \
     (x).second - (x).offset_min * 60)
    return INSTANT(t) == INSTANT(v) && t.nanosecond == v.nanosecond;
}

static bool float_is(double real, const char *want)
{
    double expected = strtod(want, NULL);

    return isnan(expected) ? isnan(real) : real == expected;
}

static bool scalar_is(const struct toml_value *value, const char *type, const char *want)
{
    static const char *const types[] = {
        [TOML_STRING] = "string",     [TOML_INTEGER] = "integer",
        [TOML_FLOAT] = "float",       [TOML_BOOL] = "bool",
        [TOML_DATETIME] = "datetime", [TOML_DATETIME_LOCAL] = "datetime-local",
        [TOML_DATE] = "date-local",   [TOML_TIME] = "time-local",
    };

    if (!types[value->kind] || strcmp(types[value->kind], type) != 0)
        return false;
    switch (value->kind) {
    case TOML_STRING:
        return text_is(value->string.text, value->string.len, want);
    case TOML_INTEGER:
        return value->integer == strtoll(want, NULL, 10);
    case TOML_FLOAT:
        return float_is(value->real, want);
    case TOML_BOOL:
        return value->boolean == (strcmp(want, "true") == 0);
    default:
        return time_is(value, want);
    }
}

static bool matches(const struct toml_value *value, json_t *want);

static bool table_matches(const struct toml_value *value, json_t *want)
{
    if (value->kind != TOML_TABLE || value->table.len != json_object_size(want))
        return false;
    for (size_t i = 0; i < value->table.len; i++) {
        const struct toml_entry *entry = &value->table.entries[i];
        struct str key = { 0 };
        json_t *member;

        add_text(&key, entry->key, entry->key_len);
        member = json_object_get(want, str_text(&key));
        str_done(&key);
        if (!member || !matches(entry->value, member))
            return false;
        if (toml_find(value, entry->key, entry->key_len) != entry)
            return false;
    }
    return true;
}

static bool matches(const struct toml_value *value, json_t *want)
{
    json_t *type = json_object_get(want, "type"), *text = json_object_get(want, "value");

    if (json_is_array(want)) {
        if (value->kind != TOML_ARRAY || value->array.len != json_array_size(want))
            return false;
        for (size_t i = 0; i < value->array.len; i++) {
            if (!matches(value->array.items[i], json_array_get(want, i)))
                return false;
        }
        return true;
    }
    if (json_is_string(type) && json_is_string(text) && json_object_size(want) == 2)
        return scalar_is(value, json_string_value(type), json_string_value(text));
    return table_matches(value, want);
}

static json_t *read_json(const char *data, size_t len)
{
    struct str clean = { 0 };
    json_error_t error;
    json_t *json;

    for (size_t i = 0; i < len;) {
        bool is_escape = data[i] == '\\' && len - i >= 2;

        if (is_escape && len - i >= 6 && memcmp(data + i, "\\u0000", 6) == 0) {
            str_add(&clean, NUL_STANDS_AS);
            i += 6;
        } else {
            str_add_len(&clean, data + i, is_escape ? 2 : 1);
            i += is_escape ? 2 : 1;
        }
    }
    json = json_loads(str_text(&clean), 0, &error);
    str_done(&clean);
    return json;
}

struct file {
    char name[256];
    const char *data;
    size_t len;
};

static bool next_file(const char **cursor, const char *end, struct file *file)
{
    int used = 0;

    if (*cursor >= end || sscanf(*cursor, "%255s %zu%n", file->name, &file->len, &used) != 2)
        return false;
    file->data = *cursor + used + 1;
    *cursor = file->data + file->len + 1;
    return *cursor <= end;
}

static bool is_read_as(const struct file *file, const struct file *expected)
{
    struct toml *doc = NULL;
    struct err err = { 0 };
    json_t *want = read_json(expected->data, expected->len);
    bool ok = want && toml_parse(file->name, file->data, file->len, &doc, &err) == 0 &&
              matches(toml_root(doc), want);

    if (!ok)
        printf("%s: %s\n", file->name, err.text[0] ? err.text : "read, but not as expected");
    json_decref(want);
    toml_free(doc);
    return ok;
}

static bool is_refused(const struct file *file)
{
    struct toml *doc = NULL;
    struct err err = { 0 };
    unsigned line, column;
    bool ok = toml_parse(NULL, file->data, file->len, &doc, &err) < 0;

    if (!ok)
        printf("%s: was read\n", file->name);
    else if (sscanf(err.text, "line %u, column %u: ", &line, &column) != 2)
        ok = false, printf("%s: no position in '%s'\n", file->name, err.text);
    else if (getenv("TOML_SUITE_SHOW"))
        printf("%s: %s\n", file->name, err.text);
    toml_free(doc);
    return ok;
}

static char *read_pack(const char *path, size_t *len)
{
    FILE *in = fopen(path, "rb");
    struct str all = { 0 };
    char part[65536];
    size_t got;

    if (!in)
        return NULL;
    while ((got = fread(part, 1, sizeof(part), in)) > 0)
        str_add_len(&all, part, got);
    fclose(in);
    *len = all.len;
    return str_take(&all);
}

struct toml_suite_counts toml_suite_run(const char *path)
{
    struct toml_suite_counts counts = { 0 };
    struct file file, expected = { 0 };
    size_t len = 0;
    char *pack = read_pack(path, &len);
    const char *cursor = pack;

    while (pack && next_file(&cursor, pack + len, &file)) {
        if (strncmp(file.name, "invalid/", 8) == 0) {
            counts.invalid++;
            counts.invalid_wrong += !is_refused(&file);
        } else if (str_ends(file.name, ".json")) {
            expected = file; /* the list is sorted, so it stands just before its document */
        } else {
            counts.valid++;
            counts.valid_wrong += !is_read_as(&file, &expected);
        }
    }
    free(pack);
    return counts;
}
