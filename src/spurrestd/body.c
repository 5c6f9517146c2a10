/* SPDX-License-Identifier: Apache-2.0 */
/*
 * body.c - what a request carries: JSON or YAML, as values of jansson
 *
 * (1) A key that comes twice is refused, as are anchors and aliases of YAML: a few bytes could stand for gigabytes.
 */
#include "spurrestd/body.h"

#include <string.h>

#include <yaml.h>

#include "spurrestd/answer.h"

static bool too_deep(const json_t *value, unsigned depth)
{
    const char *key;
    json_t *item;
    size_t i;

    if (depth > LIMIT_JSON_DEPTH)
        return true;
    if (json_is_array(value)) {
        json_array_foreach((json_t *)(uintptr_t)value, i, item)
        {
            if (too_deep(item, depth + 1))
                return true;
        }
    } else if (json_is_object(value)) {
        json_object_foreach((json_t *)(uintptr_t)value, key, item)
        {
            if (too_deep(item, depth + 1))
                return true;
        }
    }
    return false;
}

/* ---- YAML ---- */

static json_t *yaml_value(yaml_parser_t *parser, const yaml_event_t *event, unsigned depth);

static json_t *yaml_scalar(const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t len = event->data.scalar.length;
    const char *tag = (const char *)event->data.scalar.tag;
    bool plain =
        event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !(tag && str_ends(tag, ":str"));
    json_t *value = NULL;

    if (!plain)
        return json_stringn(text, len);
    if (!len || strcmp(text, "~") == 0 || strcmp(text, "null") == 0)
        return json_null();
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
        return json_boolean(text[0] == 't');
    if (strspn(text, "0123456789+-.eE") == len) {
        json_t *number = json_loadb(text, len, JSON_DECODE_ANY, NULL);
        if (json_is_number(number))
            value = number;
        else
            json_decref(number);
    }
    return value ? value : json_stringn(text, len);
}

static json_t *yaml_next(yaml_parser_t *parser, unsigned depth, bool *ended)
{
    yaml_event_t event;
    json_t *value = NULL;

    if (!yaml_parser_parse(parser, &event))
        return NULL;
    *ended = event.type == YAML_SEQUENCE_END_EVENT || event.type == YAML_MAPPING_END_EVENT;
    if (!*ended)
        value = yaml_value(parser, &event, depth);
    yaml_event_delete(&event);
    return value;
}

static json_t *yaml_list(yaml_parser_t *parser, unsigned depth)
{
    json_t *list = json_array();
    bool ended = false;

    for (;;) {
        json_t *item = yaml_next(parser, depth + 1, &ended);
        if (ended)
            return list;
        if (!item)
            break;
        json_array_append_new(list, item);
    }
    json_decref(list);
    return NULL;
}

static json_t *yaml_object(yaml_parser_t *parser, unsigned depth)
{
    json_t *object = json_object();
    bool ended = false;

    for (;;) {
        json_t *key = yaml_next(parser, depth + 1, &ended);
        if (ended)
            return object;
        bool good = json_is_string(key) && !json_object_get(object, json_string_value(key));
        json_t *value = good ? yaml_next(parser, depth + 1, &ended) : NULL;
        if (value)
            json_object_set_new(object, json_string_value(key), value);
        json_decref(key);
        if (!value)
            break;
    }
    json_decref(object);
    return NULL;
}

/* (1) */
static json_t *yaml_value(yaml_parser_t *parser, const yaml_event_t *event, unsigned depth)
{
    if (depth > LIMIT_JSON_DEPTH)
        return NULL;
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.anchor ? NULL : yaml_scalar(event);
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.anchor ? NULL : yaml_list(parser, depth);
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.anchor ? NULL : yaml_object(parser, depth);
    default:
        return NULL;
    }
}

static json_t *read_yaml(const char *text, size_t len)
{
    yaml_parser_t parser;
    yaml_event_t event;
    json_t *value = NULL;

    if (!yaml_parser_initialize(&parser))
        return NULL;
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
    for (bool more = true; more;) {
        if (!yaml_parser_parse(&parser, &event))
            break;
        more = event.type == YAML_STREAM_START_EVENT || event.type == YAML_DOCUMENT_START_EVENT;
        if (!more)
            value = yaml_value(&parser, &event, 0);
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return value;
}

/* ---- both ---- */

static bool is_type(const char *header, const char *type)
{
    size_t len = strlen(type);

    return str_istarts(header, type) && (header[len] == '\0' || strchr("; \t", header[len]));
}

json_t *body_read(struct exchange *x)
{
    const char *type = exchange_field(x, "Content-Type");
    bool yaml = type && (is_type(type, "application/yaml") || is_type(type, "application/x-yaml") ||
                         is_type(type, "text/yaml"));
    struct err err = { 0 };

    if (!str_is_empty(type) && !yaml && !is_type(type, "application/json")) {
        if (x->version)
            exchange_reply_text(x, 415, "HTTP Content-Type header content type is unsupported");
        else
            answer_failed(x, 415, 0, "ERR_UNSUPPORTED",
                          "The body must be application/json or application/yaml", NULL);
        return NULL;
    }
    json_error_t where = { 0 };
    json_t *value =
        yaml ? read_yaml(str_text(&x->body), x->body.len)
             : json_loadb(str_text(&x->body), x->body.len, JSON_REJECT_DUPLICATES, &where);
    if (value && !too_deep(value, 0))
        return value;
    json_decref(value);
    if (x->version) {
        exchange_reply_text(x, 400, "Failure during parsing");
    } else {
        err_set(&err, ERR_SYNTAX, "the body is not %s that can be read%s%.200s",
                yaml ? "YAML" : "JSON", where.text[0] ? ": " : "", where.text);
        answer_error(x, &err, NULL);
    }
    return NULL;
}

bool body_text(struct exchange *x, const json_t *value, const char *infinite, const char **out,
               struct err *err)
{
    if (!value || json_is_null(value))
        return false;
    if (json_is_object(value)) {
        if (json_is_true(json_object_get(value, "infinite"))) {
            *out = infinite;
            return infinite != NULL;
        }
        if (!json_is_true(json_object_get(value, "set")))
            return false;
        value = json_object_get(value, "number");
    }
    if (json_is_string(value))
        *out = arena_strdup(&x->arena, json_string_value(value));
    else if (json_is_integer(value))
        *out = arena_printf(&x->arena, "%lld", (long long)json_integer_value(value));
    else if (json_is_boolean(value))
        *out = json_is_true(value) ? "yes" : "no";
    else
        err_set(err, ERR_INVALID, "the value is neither a text nor a whole number");
    return !err->code;
}
