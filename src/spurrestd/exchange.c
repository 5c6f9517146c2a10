/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.c - one HTTP request and its answer, whatever carries it
 */
#include "spurrestd/exchange.h"

#include <stdlib.h>
#include <string.h>

#include "spurrestd/ask.h"

static const char *decoded(struct arena *arena, struct span text, bool query)
{
    struct str out = { 0 };
    const char *copy = NULL;

    if (http_decode(text, query, &out))
        copy = arena_strndup(arena, str_text(&out), out.len);
    str_done(&out);
    return copy;
}

/* "a=1&b=2"; what has no '=' is true by being there. */
static bool read_query(struct exchange *x, struct span text)
{
    while (text.len) {
        const char *and = memchr(text.ptr, '&', text.len);
        struct span pair = { text.ptr, and? (size_t)(and-text.ptr) : text.len };
        const char *equals = memchr(pair.ptr, '=', pair.len);
        struct span name = { pair.ptr, equals ? (size_t)(equals - pair.ptr) : pair.len };
        struct span value = { equals ? equals + 1 : "", 0 };

        value.len = equals ? pair.len - name.len - 1 : 0;
        text.ptr += pair.len + (and? 1 : 0);
        text.len -= pair.len + (and? 1 : 0);
        if (!pair.len)
            continue;
        if (x->query_count == EXCHANGE_PAIRS)
            return false;
        struct exchange_pair *at = &x->query[x->query_count++];
        at->name = decoded(&x->arena, name, true);
        at->value = decoded(&x->arena, value, true);
        if (!at->name || !at->value)
            return false;
    }
    return true;
}

struct exchange *exchange_new(struct rest *rest, const struct exchange_ops *ops, void *carrier,
                              struct peer *peer, enum http_method method, struct span target,
                              const struct http_field *fields, size_t field_count, int *status)
{
    struct exchange *x = NEW(struct exchange);
    const char *mark = memchr(target.ptr, '?', target.len);
    size_t path = mark ? (size_t)(mark - target.ptr) : target.len;

    arena_init(&x->arena);
    x->rest = rest;
    x->ops = ops;
    x->carrier = carrier;
    x->peer = peer;
    x->method = method;
    x->path = arena_strndup(&x->arena, target.ptr, path);
    x->fields = ARENA_ARRAY(&x->arena, struct http_field, field_count + 1);
    for (size_t i = 0; i < field_count; i++) {
        struct span name = fields[i].name, value = fields[i].value;
        x->fields[i].name = (struct span){ arena_strndup(&x->arena, name.ptr, name.len), name.len };
        x->fields[i].value =
            (struct span){ arena_strndup(&x->arena, value.ptr, value.len), value.len };
    }
    x->field_count = field_count;
    if (mark && !read_query(x, (struct span){ mark + 1, target.len - path - 1 })) {
        exchange_free(x);
        *status = 400;
        return NULL;
    }
    return x;
}

void exchange_free(struct exchange *x)
{
    ask_cancel_all(x);
    str_done(&x->body);
    str_done(&x->headers);
    arena_done(&x->arena);
    free(x);
}

void exchange_gone(struct exchange *x)
{
    ask_cancel_all(x);
    if (x->on_gone)
        x->on_gone(x);
    exchange_free(x);
}

const char *exchange_field(struct exchange *x, const char *name)
{
    for (size_t i = 0; i < x->field_count; i++) {
        if (span_ieq(x->fields[i].name, name))
            return x->fields[i].value.ptr;
    }
    return NULL;
}

bool exchange_has_field(const struct exchange *x, const char *name)
{
    for (size_t i = 0; i < x->field_count; i++) {
        if (span_ieq(x->fields[i].name, name))
            return true;
    }
    return false;
}

const char *exchange_query(const struct exchange *x, const char *name)
{
    for (size_t i = 0; i < x->query_count; i++) {
        if (strcmp(x->query[i].name, name) == 0)
            return x->query[i].value;
    }
    return NULL;
}

int exchange_query_bool(const struct exchange *x, const char *name)
{
    static const char *const yes[] = { "1", "true", "yes", "on", "" };
    static const char *const no[] = { "0", "false", "no", "off" };
    const char *value = exchange_query(x, name);

    for (size_t i = 0; value && i < ARRAY_LEN(yes); i++) {
        if (str_ieq(value, yes[i]))
            return 1;
    }
    for (size_t i = 0; value && i < ARRAY_LEN(no); i++) {
        if (str_ieq(value, no[i]))
            return 0;
    }
    return -1;
}

void exchange_header(struct exchange *x, const char *name, const char *value)
{
    str_addf(&x->headers, "%s: %s\r\n", name, value);
}

void exchange_reply(struct exchange *x, int status, const char *content_type, struct str *body)
{
    x->status = status;
    x->content_type = content_type;
    x->began = true;
    x->ops->begin(x, (int64_t)body->len);
    if (body->len && x->method != HTTP_HEAD)
        x->ops->write(x, body->data, body->len);
    str_done(body);
    exchange_end(x);
}

void exchange_reply_text(struct exchange *x, int status, const char *text)
{
    struct str body = { 0 };

    str_add(&body, text);
    exchange_reply(x, status, "text/plain", &body);
}

void exchange_begin(struct exchange *x, int status, const char *content_type)
{
    x->status = status;
    x->content_type = content_type;
    x->began = true;
    x->ops->begin(x, -1);
}

void exchange_write(struct exchange *x, const char *bytes, size_t len)
{
    if (len && x->method != HTTP_HEAD)
        x->ops->write(x, bytes, len);
}

bool exchange_writable(const struct exchange *x)
{
    return x->ops->writable(x);
}

void exchange_end(struct exchange *x)
{
    x->ops->end(x);
    exchange_free(x);
}

void exchange_abort(struct exchange *x)
{
    x->ops->abort(x);
    exchange_free(x);
}
