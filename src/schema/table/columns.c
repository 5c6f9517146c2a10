// SPDX-License-Identifier: Apache-2.0
/*
 * columns.c - reads column formats and writes headers and rows
 */
#include "schema/columns.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"

void columns_done(struct columns *columns)
{
    vec_each (struct column, column, &columns->list) {
        free(column->before);
        free(column->after);
    }
    vec_done(&columns->list);
}

static unsigned read_width(const char **at)
{
    unsigned width = 0;

    while (isdigit((unsigned char)**at)) {
        width = MIN(width * 10 + (unsigned)(**at - '0'), COLUMN_WIDTH_MAX);
        (*at)++;
    }
    return width;
}

static int push(struct columns *columns, struct column column, struct err *err)
{
    if (columns->list.len >= COLUMNS_MAX) {
        free(column.before);
        free(column.after);
        return err_set(err, ERR_TOO_MANY, "more than %d columns", COLUMNS_MAX);
    }
    vec_push(&columns->list, column);
    return 0;
}

/* %all: every letter, a bar after each. */
static int push_all(struct columns *columns, struct err *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

    for (const char *letter = letters; *letter; letter++) {
        struct column column = { .field = field_by_letter(columns->table, *letter) };

        if (!column.field)
            continue;
        if (columns->list.len) {
            struct column *last = &columns->list.items[columns->list.len - 1];

            free(last->after);
            last->after = mem_strdup("|");
        }
        if (push(columns, column, err) < 0)
            return -(int)ERR_TOO_MANY;
    }
    return 0;
}

int columns_read_letters(struct columns *columns, const struct field_table *table,
                         const char *format, struct str *unknown, struct err *err)
{
    const char *at = strchr(format, '%');
    char *before = mem_strndup(format, at ? (size_t)(at - format) : strlen(format));

    columns->table = table;
    if (str_starts(format, "%all")) {
        free(before);
        return push_all(columns, err);
    }
    while (at) {
        struct column column = { .before = before };
        const char *percent = at++, *next;

        before = NULL;
        if (*at == '.') {
            column.right = true;
            at++;
        }
        if (*at == '#') {
            column.fit = true;
            at++;
        }
        column.width = read_width(&at);
        column.field = *at ? field_by_letter(table, *at) : NULL;
        next = *at ? strchr(at + 1, '%') : NULL;
        if (column.field || *at == '%') {
            column.after =
                next ? mem_strndup(at + 1, (size_t)(next - at - 1)) : mem_strdup(*at ? at + 1 : "");
        } else {
            if (*at)
                str_addf(unknown, "%c\n", *at);
            column.after =
                next ? mem_strndup(percent, (size_t)(next - percent)) : mem_strdup(percent);
            column.width = 0;
        }
        if (push(columns, column, err) < 0)
            return -(int)ERR_TOO_MANY;
        at = next;
    }
    if (before)
        return push(columns, (struct column){ .before = before }, err);
    return 0;
}

/* "JobID:.20x": the name, then '.', the width, and text that follows the value. */
static int push_name(struct columns *columns, struct span word, struct str *unknown,
                     struct err *err)
{
    const char *end = word.ptr + word.len, *colon = memchr(word.ptr, ':', word.len);
    struct column column = { .width = COLUMN_DEFAULT_WIDTH };

    while (word.len && isspace((unsigned char)*word.ptr)) {
        word.ptr++;
        word.len--;
    }
    if (colon)
        word.len = (size_t)(colon - word.ptr);
    column.field = field_by_name(columns->table, word.ptr, word.len);
    if (!column.field) {
        str_add_len(unknown, word.ptr, word.len);
        str_add_char(unknown, '\n');
        return 0;
    }
    if (colon) {
        const char *at = colon + 1;

        column.right = *at == '.';
        at += *at == '.' || (*at == '-' && isdigit((unsigned char)at[1]));
        column.width = read_width(&at);
        column.after = mem_strndup(at, (size_t)(end - at));
    }
    return push(columns, column, err);
}

int columns_read_names(struct columns *columns, const struct field_table *table, const char *format,
                       struct str *unknown, struct err *err)
{
    const char *cursor = format;
    struct span word;

    columns->table = table;
    while (str_next(&cursor, ",", &word)) {
        if (push_name(columns, word, unknown, err) < 0)
            return -(int)ERR_TOO_MANY;
    }
    return 0;
}

static void add_cell(const struct column *column, const char *text, size_t len, bool whole,
                     struct str *out)
{
    size_t width = column->width;

    if (column->before)
        str_add(out, column->before);
    if (width && len > width && !whole) {
        len = width;
        while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
            len--; /* not inside a character */
    }
    if (column->right && width > len)
        str_add_fill(out, ' ', width - len);
    str_add_len(out, text, len);
    if (!column->right && width > len)
        str_add_fill(out, ' ', width - len);
    if (column->after)
        str_add(out, column->after);
}

static void value_of(const struct field *field, const void *object, const struct field_ctx *ctx,
                     struct str *value, struct str *visible)
{
    struct field_call call = { field, object, ctx };

    str_clear(value);
    str_clear(visible);
    field->write(&call, value);
    str_add_visible(visible, str_text(value), value->len);
}

void columns_fit(struct columns *columns, const void *object, const struct field_ctx *ctx,
                 unsigned least)
{
    struct str value = { 0 }, visible = { 0 };

    vec_each (struct column, column, &columns->list) {
        if (!column->fit || !column->field)
            continue;
        column->width = MAX(column->width, least);
        column->width = MAX(column->width, (unsigned)strlen(column->field->column.header));
        if (!object)
            continue;
        value_of(column->field, object, ctx, &value, &visible);
        column->width = MIN(MAX(column->width, (unsigned)visible.len), COLUMN_WIDTH_MAX);
    }
    str_done(&value);
    str_done(&visible);
}

void columns_add_header(const struct columns *columns, struct str *out)
{
    vec_each (const struct column, column, &columns->list) {
        const char *header = column->field ? column->field->column.header : "";

        add_cell(column, header, strlen(header), false, out);
    }
    str_add_char(out, '\n');
}

void columns_add_row(const struct columns *columns, const void *object, const struct field_ctx *ctx,
                     struct str *out)
{
    struct str value = { 0 }, visible = { 0 };

    vec_each (const struct column, column, &columns->list) {
        if (column->field)
            value_of(column->field, object, ctx, &value, &visible);
        else
            str_clear(&visible);
        add_cell(column, str_text(&visible), visible.len, column->field && column->field->whole,
                 out);
    }
    str_add_char(out, '\n');
    str_done(&value);
    str_done(&visible);
}

void columns_add_letters(const struct field_table *table, struct str *out)
{
    for (int letter = 'A'; letter <= 'z'; letter++) {
        const struct field *row = field_by_letter(table, (char)letter);

        if (isalpha(letter) && row)
            str_addf(out, "%%%c  %-20s %s\n", letter, row->column.header,
                     row->help ? row->help : "");
    }
}

static int compare_names(const void *a, const void *b)
{
    const struct field *const *x = a, *const *y = b;

    return strcasecmp((*x)->column.name, (*y)->column.name);
}

void columns_add_names(const struct field_table *table, struct str *out)
{
    const struct field **rows = NEW_ARRAY(const struct field *, table->count);
    size_t count = 0;

    for (size_t i = 0; i < table->count; i++) {
        if (table->rows[i].column.name && table->rows[i].column.header)
            rows[count++] = &table->rows[i];
    }
    qsort(rows, count, sizeof(rows[0]), compare_names);
    for (size_t i = 0; i < count; i++)
        str_addf(out, "%s\n", rows[i]->column.name);
    free(rows);
}
