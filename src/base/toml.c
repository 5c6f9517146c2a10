/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml.c - TOML documents: lines, headers, arrays and inline tables
 */
#include "base/toml.h"

#include <stdlib.h>

#include "base/limits.h"
#include "base/toml_priv.h"

static int read_value(struct toml_reader *r, struct toml_value **out);

static int too_deep(struct toml_reader *r)
{
    toml_fail_here(r, "nested deeper than %d levels", LIMIT_TOML_DEPTH);
    if (r->err)
        r->err->code = ERR_TOO_LARGE;
    return -ERR_TOO_LARGE;
}

/*
 * The keys of `a.b.c`: opens every table but the last with `open` and gives the last key back.
 * Used for `a.b = 1` and for `[a.b]`, which differ in what they may open. Leaves r->depth at the
 * depth of what the last key names.
 */
static int read_dotted(struct toml_reader *r, struct toml_value **table, struct toml_key *key,
                       int (*open)(struct toml_reader *, struct toml_value **,
                                   const struct toml_key *))
{
    for (;;) {
        if (++r->depth > LIMIT_TOML_DEPTH)
            return too_deep(r);
        if (toml_read_key(r, key) < 0)
            return -1;
        toml_skip_blanks(r);
        if (toml_peek(r) != '.')
            return 0;
        if (open(r, table, key) < 0)
            return -1;
        r->p++;
        toml_skip_blanks(r);
    }
}

/* key = value */
static int read_pair(struct toml_reader *r, struct toml_value *table)
{
    unsigned depth = r->depth;
    struct toml_value *value;
    struct toml_key key;

    if (read_dotted(r, &table, &key, toml_open_dotted) < 0)
        return -1;
    if (toml_peek(r) != '=')
        return toml_fail_here(r, "expected '=' after the key '%.64s', found %s", key.text,
                              toml_shown(r));
    r->p++;
    toml_skip_blanks(r);
    if (read_value(r, &value) < 0)
        return -1;
    r->depth = depth;
    return toml_add_value(r, table, &key, value);
}

static int read_array(struct toml_reader *r, struct toml_value *array)
{
    r->p++;
    for (;;) {
        struct toml_value *item;

        toml_skip_lines(r);
        if (toml_peek(r) == ']')
            break;
        if (r->p >= r->end)
            return toml_fail(r, array->pos, "this array has no closing ]");
        if (read_value(r, &item) < 0)
            return -1;
        toml_array_add(r, &array->array, item);
        toml_skip_lines(r);
        if (toml_peek(r) == ',')
            r->p++;
        else if (toml_peek(r) != ']' && r->p < r->end)
            return toml_fail_here(r, "expected ',' or ']' in an array, found %s", toml_shown(r));
    }
    r->p++;
    return 0;
}

static int read_inline(struct toml_reader *r, struct toml_value *table)
{
    r->p++;
    toml_skip_blanks(r);
    if (toml_peek(r) != '}') {
        for (;;) {
            if (read_pair(r, table) < 0)
                return -1;
            toml_skip_blanks(r);
            if (toml_peek(r) == '}')
                break;
            if (toml_peek(r) != ',')
                return toml_fail_here(r, "expected ',' or '}' in an inline table, found %s",
                                      toml_shown(r));
            r->p++;
            toml_skip_blanks(r);
        }
    }
    r->p++;
    table->table.how = TOML_INLINE;
    return 0;
}

static int read_value(struct toml_reader *r, struct toml_value **out)
{
    char c = toml_peek(r);
    int result;

    if (r->depth >= LIMIT_TOML_DEPTH)
        return too_deep(r);
    if (toml_new_value(r, TOML_STRING, toml_pos(r), out) < 0)
        return -1;
    r->depth++;
    if (c == '"' || c == '\'') {
        result = toml_read_string(r, &(*out)->string.text, &(*out)->string.len);
    } else if (c == '[') {
        (*out)->kind = TOML_ARRAY;
        result = read_array(r, *out);
    } else if (c == '{') {
        (*out)->kind = TOML_TABLE;
        result = read_inline(r, *out);
    } else {
        result = toml_read_scalar(r, *out);
    }
    r->depth--;
    return result;
}

/* [a.b] or [[a.b]]: the table that the following lines fill. */
static int read_header(struct toml_reader *r, struct toml_value **table)
{
    bool is_element = toml_starts(r, "[[", 2);
    struct toml_key key;

    r->p += is_element ? 2 : 1;
    r->depth = 0;
    toml_skip_blanks(r);
    if (read_dotted(r, table, &key, toml_open_path) < 0)
        return -1;
    if (!toml_starts(r, is_element ? "]]" : "]", is_element ? 2 : 1))
        return toml_fail_here(r, "expected '%s' after the table's name, found %s",
                              is_element ? "]]" : "]", toml_shown(r));
    r->p += is_element ? 2 : 1;
    return is_element ? toml_open_element(r, table, &key) : toml_open_header(r, table, &key);
}

static int read_document(struct toml_reader *r, struct toml_value *root)
{
    struct toml_value *table = root;

    for (;;) {
        toml_skip_lines(r);
        if (r->p >= r->end)
            return 0;
        if (toml_peek(r) == '[') {
            table = root;
            if (read_header(r, &table) < 0)
                return -1;
        } else if (read_pair(r, table) < 0) {
            return -1;
        }
        toml_skip_blanks(r);
        toml_skip_comment(r);
        if (r->p < r->end && !toml_at_newline(r))
            return toml_fail_here(r, "expected the end of the line, found %s", toml_shown(r));
    }
}

int toml_parse(const char *name, const char *text, size_t len, struct toml **out, struct err *err)
{
    struct err own = { 0 };
    struct toml_reader r = { .name = name,
                             .start = text,
                             .p = text,
                             .end = text + len,
                             .line_start = text,
                             .line = 1,
                             .column_at = text,
                             .column = 1,
                             .err = err ? err : &own };
    CLEANUP(toml_freep) struct toml *doc = NULL;
    int result = -1;

    if (len > LIMIT_CONFIG_BYTES)
        return err_set(err, ERR_TOO_LARGE, "%s: %zu bytes; the most is %d", name ? name : "text",
                       len, LIMIT_CONFIG_BYTES);
    doc = NEW(struct toml);
    arena_init(&doc->arena);
    r.arena = &doc->arena;
    if (toml_check_text(&r) == 0 &&
        toml_new_value(&r, TOML_TABLE, (struct toml_pos){ 1, 1 }, &doc->root) == 0)
        result = read_document(&r, doc->root);
    str_done(&r.scratch);
    if (result < 0)
        return -(int)r.err->code;
    *out = TAKE(doc);
    return 0;
}

void toml_free(struct toml *doc)
{
    if (!doc)
        return;
    arena_done(&doc->arena);
    free(doc);
}

void toml_freep(struct toml **doc)
{
    toml_free(*doc);
}

const struct toml_value *toml_root(const struct toml *doc)
{
    return doc->root;
}

const struct toml_entry *toml_find(const struct toml_value *table, const char *key, size_t len)
{
    return table && table->kind == TOML_TABLE ? toml_table_find(&table->table, key, len) : NULL;
}

const struct toml_value *toml_get(const struct toml_value *table, const char *key)
{
    const struct toml_entry *entry = toml_find(table, key, __builtin_strlen(key));

    return entry ? entry->value : NULL;
}

const char *toml_kind_name(enum toml_kind kind)
{
    static const char *const names[] = {
        [TOML_TABLE] = "a table",
        [TOML_ARRAY] = "an array",
        [TOML_STRING] = "a string",
        [TOML_INTEGER] = "an integer",
        [TOML_FLOAT] = "a float",
        [TOML_BOOL] = "true or false",
        [TOML_DATETIME] = "a date and time",
        [TOML_DATETIME_LOCAL] = "a local date and time",
        [TOML_DATE] = "a date",
        [TOML_TIME] = "a time of day",
    };

    return names[kind];
}
