// SPDX-License-Identifier: Apache-2.0
/*
 * field.c - the walks over field rows: records, JSON, look-up
 */
#include "schema/field.h"

#include <stdio.h>
#include <string.h>

#include "wire/message.h"

const void *field_message(const struct field_call *call)
{
    const struct field_of *of = &call->field->of;

    if (!of->type)
        return NULL;
    return of->via ? *(void *const *)((const char *)call->object + of->via) : call->object;
}

static const ProtobufCFieldDescriptor *descriptor(const struct field_call *call)
{
    return msg_field_at(call->field->of.type, call->field->of.offset);
}

bool field_present(const struct field_call *call)
{
    const void *message = field_message(call);

    return message && msg_has(message, descriptor(call));
}

int64_t field_value(const struct field_call *call)
{
    const void *message = field_message(call);

    return message ? msg_number(message, descriptor(call)) : 0;
}

const char *field_string(const struct field_call *call)
{
    const void *message = field_message(call);

    return message ? msg_text(message, descriptor(call)) : NULL;
}

const struct field *field_by_letter(const struct field_table *table, char letter)
{
    for (size_t i = 0; i < table->count; i++) {
        if (table->rows[i].column.header && table->rows[i].column.letter == letter)
            return &table->rows[i];
    }
    return NULL;
}

const struct field *field_by_name(const struct field_table *table, const char *name, size_t len)
{
    struct span word = { name, len };

    for (size_t i = 0; i < table->count; i++) {
        const struct field *row = &table->rows[i];

        if (row->column.header && row->column.name && span_ieq(word, row->column.name))
            return row;
    }
    return NULL;
}

void field_add_record(const struct field_table *table, const void *object,
                      const struct field_ctx *ctx, bool one_line, struct str *out)
{
    struct str value = { 0 };
    bool first = true, new_line = false;

    for (size_t i = 0; i < table->count; i++) {
        const struct field *row = &table->rows[i];
        struct field_call call = { row, object, ctx };
        field_writer *write = row->record ? row->record : row->write;

        if (!row->key || (row->detail && !ctx->detail))
            continue;
        new_line |= row->line;
        str_clear(&value);
        if (!write(&call, &value))
            continue;
        if (!first)
            str_add(out, new_line && !one_line ? "\n   " : " ");
        str_addf(out, "%s=", row->key);
        if (row->raw)
            str_add(out, str_text(&value));
        else
            str_add_visible(out, str_text(&value), value.len);
        first = new_line = false;
    }
    str_add(out, one_line ? "\n" : "\n\n");
    str_done(&value);
}

static void add_words(const struct field_call *call, const char *name, struct jsonw *json)
{
    struct str text = { 0 };
    struct span word;
    const char *cursor;

    jsonw_list(json, name);
    if (call->field->write(call, &text) && !str_eq(str_text(&text), "(null)")) {
        cursor = str_text(&text);
        while (str_next(&cursor, ",", &word))
            jsonw_text_len(json, NULL, word.ptr, word.len);
    }
    jsonw_list_end(json);
    str_done(&text);
}

static void add_shown(const struct field_call *call, const char *name, struct jsonw *json)
{
    struct str text = { 0 };

    call->field->write(call, &text);
    if (str_eq(str_text(&text), "(null)") || str_eq(str_text(&text), "N/A"))
        str_clear(&text);
    jsonw_text_len(json, name, str_text(&text), text.len);
    str_done(&text);
}

static int64_t number_of(const struct field_call *call)
{
    if (call->field->number)
        return call->field->number(call);
    return call->field->of.type && field_present(call) ? field_value(call) : FIELD_ABSENT;
}

static void add_value(const struct field_call *call, const char *name, struct jsonw *json)
{
    const struct field *row = call->field;
    int64_t per = row->json.shape == SHAPE_TIME ? 1000000 : row->json.per ? row->json.per : 1;
    int64_t number = number_of(call);
    bool present = number != FIELD_ABSENT;
    int64_t shown = present && number > 0 ? number / per : 0;

    switch (row->json.shape) {
    case SHAPE_NONE:
        break;
    case SHAPE_TEXT:
        jsonw_text(json, name, row->of.type ? field_string(call) : NULL);
        break;
    case SHAPE_SHOWN:
        add_shown(call, name, json);
        break;
    case SHAPE_NUMBER:
        jsonw_number(json, name, present ? number / per : 0);
        break;
    case SHAPE_BOOL:
        jsonw_bool(json, name, present && number);
        break;
    case SHAPE_SET:
        jsonw_set(json, name, present && number >= 0, present && number < 0, shown);
        break;
    case SHAPE_SET_0:
    case SHAPE_TIME:
        jsonw_set(json, name, !present || number >= 0, present && number < 0, shown);
        break;
    case SHAPE_WORDS:
        add_words(call, name, json);
        break;
    case SHAPE_FN:
        row->json.write(call, json);
        break;
    }
}

/* Whether an earlier row has opened the object that this name lies in. */
static bool opened_before(const struct field_table *table, size_t row, const char *name, size_t len)
{
    for (size_t i = 0; i < row; i++) {
        const char *other = table->rows[i].json.name;

        if (other && strncmp(other, name, len) == 0)
            return true;
    }
    return false;
}

static void add_level(const struct field_table *table, const struct field_call *call,
                      const char *prefix, size_t prefix_len, struct jsonw *json)
{
    for (size_t i = 0; i < table->count; i++) {
        struct field_call one = { &table->rows[i], call->object, call->ctx };
        const char *name = one.field->json.name, *dot;
        char part[64];

        if (!name || strncmp(name, prefix, prefix_len) != 0)
            continue;
        dot = strchr(name + prefix_len, '.');
        if (!dot) {
            add_value(&one, name + prefix_len, json);
            continue;
        }
        if (opened_before(table, i, name, (size_t)(dot + 1 - name)))
            continue;
        snprintf(part, sizeof(part), "%.*s", (int)(dot - name - (ptrdiff_t)prefix_len),
                 name + prefix_len);
        jsonw_object(json, part);
        add_level(table, call, name, (size_t)(dot + 1 - name), json);
        jsonw_object_end(json);
    }
}

void field_add_json(const struct field_table *table, const void *object,
                    const struct field_ctx *ctx, struct jsonw *json)
{
    struct field_call call = { NULL, object, ctx };

    add_level(table, &call, "", 0, json);
}
