/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2.c - HTTP/2 on a connection, by nghttp2: each stream is an exchange
 *
 * nghttp2 checks what HTTP/2 demands of messages: pseudo header fields, lower case, no connection-specific fields,
 * a body as long as content-length says. The bounds are the same as those of HTTP/1.1.
 */
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spurrestd/conn.h"
#include "sys/log.h"

enum { HEADERS_MOST = 32, WINDOW = 1024 * 1024 };

struct stream {
    struct conn *conn;
    struct stream *prev, *next;
    int32_t id;
    int64_t since_ms;
    struct arena arena; /* of the header fields, until the exchange has them */
    enum http_method method;
    struct span target;
    struct http_field *fields;
    size_t field_count, head_bytes;
    int refused;   /* a status: what came is too much */
    bool complete; /* the request is */
    struct exchange *x;
    struct str out; /* what is to be sent */
    size_t out_at;
    bool waiting, ended; /* nghttp2 waits for more; nothing more comes */
};

struct h2c {
    nghttp2_session *session;
    struct stream *streams;
};

static void stream_free(struct stream *stream)
{
    struct h2c *h2 = stream->conn->h2;

    *(stream->prev ? &stream->prev->next : &h2->streams) = stream->next;
    if (stream->next)
        stream->next->prev = stream->prev;
    arena_done(&stream->arena);
    str_done(&stream->out);
    free(stream);
}

/* ---- answers ---- */

static ssize_t read_out(nghttp2_session *session, int32_t id, uint8_t *buf, size_t room,
                        uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    struct stream *stream = source->ptr;
    size_t len = MIN(room, stream->out.len - stream->out_at);

    (void)session, (void)id, (void)ctx;
    if (len)
        memcpy(buf, stream->out.data + stream->out_at, len);
    stream->out_at += len;
    if (stream->out_at == stream->out.len) {
        str_done(&stream->out);
        stream->out_at = 0;
        if (stream->ended)
            *flags |= NGHTTP2_DATA_FLAG_EOF;
        else if (!len) {
            stream->waiting = true;
            return NGHTTP2_ERR_DEFERRED;
        }
    }
    return (ssize_t)len;
}

static size_t add_header(nghttp2_nv *out, size_t count, const char *name, size_t name_len,
                         const char *value, size_t value_len)
{
    if (count == HEADERS_MOST)
        return count;
    out[count] = (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name,
                               .namelen = name_len,
                               .value = (uint8_t *)(uintptr_t)value,
                               .valuelen = value_len };
    return count + 1;
}

/* "Name: value\r\n" of the handler, with names in lower case as HTTP/2 has them. */
static size_t add_lines(nghttp2_nv *out, size_t count, struct exchange *x)
{
    char *text = arena_strndup(&x->arena, str_text(&x->headers), x->headers.len);

    for (char *line = text; *line;) {
        char *colon = strchr(line, ':'), *end = strstr(line, "\r\n");
        for (char *c = line; c < colon; c++)
            *c = (char)(*c >= 'A' && *c <= 'Z' ? *c + 32 : *c);
        count = add_header(out, count, line, (size_t)(colon - line), colon + 2,
                           (size_t)(end - colon - 2));
        line = end + 2;
    }
    return count;
}

static void respond(struct stream *stream, struct exchange *x, int64_t length)
{
    nghttp2_nv headers[HEADERS_MOST];
    nghttp2_data_provider provider = { .source = { .ptr = stream }, .read_callback = read_out };
    char status[8], bytes[24];
    size_t count = 0;

    snprintf(status, sizeof(status), "%d", x->status);
    snprintf(bytes, sizeof(bytes), "%lld", (long long)length);
    count = add_header(headers, count, ":status", 7, status, strlen(status));
    if (x->content_type)
        count = add_header(headers, count, "content-type", 12, x->content_type,
                           strlen(x->content_type));
    if (length >= 0 && x->status != 204 && x->status != 304)
        count = add_header(headers, count, "content-length", 14, bytes, strlen(bytes));
    count = add_lines(headers, count, x);
    nghttp2_submit_response(stream->conn->h2->session, stream->id, headers, count, &provider);
}

static void answer_begin(struct exchange *x, int64_t length)
{
    struct stream *stream = x->carrier;

    x->rest->stats.by_status[MIN(x->status / 100, 5)]++;
    respond(stream, x, length);
    conn_active(stream->conn);
    link_dirty(&stream->conn->link);
}

static void more_to_send(struct stream *stream)
{
    if (stream->waiting) {
        stream->waiting = false;
        nghttp2_session_resume_data(stream->conn->h2->session, stream->id);
    }
    link_dirty(&stream->conn->link);
}

static void answer_write(struct exchange *x, const char *bytes, size_t len)
{
    struct stream *stream = x->carrier;

    str_add_len(&stream->out, bytes, len);
    more_to_send(stream);
}

static void forget(struct stream *stream)
{
    stream->conn->rest->body_bytes -= stream->x->body.len;
    stream->x = NULL;
}

static void answer_end(struct exchange *x)
{
    struct stream *stream = x->carrier;

    stream->ended = true;
    forget(stream);
    more_to_send(stream);
    conn_watch(stream->conn);
}

static void answer_abort(struct exchange *x)
{
    struct stream *stream = x->carrier;

    forget(stream);
    nghttp2_submit_rst_stream(stream->conn->h2->session, NGHTTP2_FLAG_NONE, stream->id,
                              NGHTTP2_INTERNAL_ERROR);
    link_dirty(&stream->conn->link);
}

static bool answer_writable(const struct exchange *x)
{
    const struct stream *stream = x->carrier;

    return stream->out.len - stream->out_at < CONN_OUT_LOW;
}

static const struct exchange_ops ops = { answer_begin, answer_write, answer_end, answer_abort,
                                         answer_writable };

/* ---- requests ---- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct conn *conn = ctx;

    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct stream *stream = NEW(struct stream);
    stream->conn = conn;
    stream->id = frame->hd.stream_id;
    stream->since_ms = loop_now_ms(conn->link.loop);
    arena_init(&stream->arena);
    stream->fields = ARENA_ARRAY(&stream->arena, struct http_field, LIMIT_HTTP_FIELDS + 1);
    stream->next = conn->h2->streams;
    if (stream->next)
        stream->next->prev = stream;
    conn->h2->streams = stream;
    nghttp2_session_set_stream_user_data(session, stream->id, stream);
    conn_active(conn);
    return 0;
}

static void take_field(struct stream *stream, struct span name, struct span value)
{
    struct arena *arena = &stream->arena;

    stream->head_bytes += name.len + value.len + 32;
    if (stream->head_bytes > LIMIT_HTTP_HEAD || stream->field_count == LIMIT_HTTP_FIELDS) {
        stream->refused = 431;
        return;
    }
    if (!http_is_field_value(value)) {
        stream->refused = 400;
        return;
    }
    struct span copy = { arena_strndup(arena, value.ptr, value.len), value.len };
    if (span_eq(name, ":method")) {
        stream->method = http_method_read(value);
    } else if (span_eq(name, ":path")) {
        stream->target = copy;
    } else if (span_eq(name, ":authority")) {
        stream->fields[stream->field_count++] = (struct http_field){ { "host", 4 }, copy };
    } else if (name.len && name.ptr[0] != ':') {
        stream->fields[stream->field_count++] =
            (struct http_field){ { arena_strndup(arena, name.ptr, name.len), name.len }, copy };
    }
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *ctx)
{
    struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    (void)flags, (void)ctx;
    if (stream && !stream->x && !stream->refused)
        take_field(stream, (struct span){ (const char *)name, name_len },
                   (struct span){ (const char *)value, value_len });
    return 0;
}

/* What has no exchange is answered with a status alone. */
static void refuse(struct stream *stream, int status)
{
    char text[8];
    const nghttp2_nv header = { .name = (uint8_t *)(uintptr_t) ":status",
                                .namelen = 7,
                                .value = (uint8_t *)text,
                                .valuelen = 3 };

    snprintf(text, sizeof(text), "%d", status);
    stream->conn->rest->stats.refused++;
    log_verbose("http.refused", "peer=%s status=%d", stream->conn->peer.text, status);
    if (stream->x) {
        struct exchange *x = stream->x;
        forget(stream);
        exchange_free(x);
    }
    stream->complete = true;
    nghttp2_submit_response(stream->conn->h2->session, stream->id, &header, 1, NULL);
    nghttp2_submit_rst_stream(stream->conn->h2->session, NGHTTP2_FLAG_NONE, stream->id,
                              NGHTTP2_NO_ERROR);
}

static void make_exchange(struct stream *stream)
{
    struct conn *conn = stream->conn;
    int status = stream->refused;

    for (size_t i = 0; !status && i < stream->field_count; i++) {
        if (span_eq(stream->fields[i].name, "host") && !http_is_host(stream->fields[i].value))
            status = 400;
    }
    if (!status && stream->target.len > LIMIT_HTTP_TARGET)
        status = 414;
    else if (!status && (!stream->target.len || stream->target.ptr[0] != '/'))
        status = 400;
    if (!status)
        stream->x = exchange_new(conn->rest, &ops, stream, &conn->peer, stream->method,
                                 stream->target, stream->fields, stream->field_count, &status);
    if (status)
        refuse(stream, status);
}

static void go(struct stream *stream)
{
    stream->complete = true;
    stream->conn->rest->stats.requests++;
    route_exchange(stream->x);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct stream *stream = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    (void)ctx;
    if (!stream)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        make_exchange(stream);
    if ((frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) && stream->x && !stream->complete)
        go(stream);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes,
                   size_t len, void *ctx)
{
    struct stream *stream = nghttp2_session_get_stream_user_data(session, id);
    struct conn *conn = ctx;

    (void)flags;
    if (!stream || !stream->x)
        return 0;
    if (stream->x->body.len + len > LIMIT_HTTP_BODY)
        refuse(stream, 413);
    else if (!conn_charge(conn->rest, len))
        refuse(stream, 503);
    else
        str_add_len(&stream->x->body, bytes, len);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *ctx)
{
    struct stream *stream = nghttp2_session_get_stream_user_data(session, id);

    (void)code, (void)ctx;
    if (!stream)
        return 0;
    nghttp2_session_set_stream_user_data(session, id, NULL);
    if (stream->x) {
        struct exchange *x = stream->x;
        forget(stream);
        exchange_gone(x);
    }
    stream_free(stream);
    return 0;
}

/* ---- the connection ---- */

void h2c_begin(struct conn *conn)
{
    static const nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, LIMIT_HTTP_STREAMS },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, LIMIT_HTTP_HEAD },
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW },
    };
    nghttp2_session_callbacks *callbacks;

    conn->h2 = NEW(struct h2c);
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    if (nghttp2_session_server_new(&conn->h2->session, callbacks, conn) != 0)
        abort(); /* out of memory for a few kilobytes */
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(conn->h2->session, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings));
    nghttp2_session_set_local_window_size(conn->h2->session, NGHTTP2_FLAG_NONE, 0, 4 * WINDOW);
}

int h2c_received(struct conn *conn, const char *bytes, size_t len, struct err *err)
{
    ssize_t done = nghttp2_session_mem_recv(conn->h2->session, (const uint8_t *)bytes, len);

    conn_active(conn);
    link_dirty(&conn->link);
    conn_watch(conn);
    if (done < 0)
        return err_set(err, ERR_BAD_MESSAGE, "%s", nghttp2_strerror((int)done));
    if (!nghttp2_session_want_read(conn->h2->session) &&
        !nghttp2_session_want_write(conn->h2->session))
        link_close_after_flush(&conn->link);
    return 0;
}

size_t h2c_gather(struct conn *conn, char *out, size_t room)
{
    enum { FRAME = 17 * 1024 };
    size_t have = 0;
    const uint8_t *bytes;
    ssize_t len;

    while (have + FRAME <= room &&
           (len = nghttp2_session_mem_send(conn->h2->session, &bytes)) > 0) {
        memcpy(out + have, bytes, (size_t)len);
        have += (size_t)len;
    }
    if (have)
        conn_active(conn);
    return have;
}

void h2c_flushed(struct conn *conn)
{
    struct stream *next;

    for (struct stream *stream = conn->h2->streams; stream; stream = next) {
        struct exchange *x = stream->x;
        next = stream->next;
        if (x && x->on_writable && answer_writable(x))
            x->on_writable(x);
    }
    conn_watch(conn);
}

bool h2c_idle(const struct conn *conn)
{
    return !conn->h2->streams;
}

int64_t h2c_due_ms(const struct conn *conn)
{
    int64_t due_ms = INT64_MAX;

    if (h2c_idle(conn))
        return conn->active_ms + LIMIT_HTTP_IDLE_MS;
    for (const struct stream *stream = conn->h2->streams; stream; stream = stream->next) {
        if (!stream->complete)
            due_ms = MIN(due_ms, stream->since_ms + LIMIT_HTTP_BODY_MS);
        else if (stream->out.len || stream->ended)
            due_ms = MIN(due_ms, conn->active_ms + LIMIT_HTTP_WRITE_MS);
    }
    return due_ms;
}

void h2c_timed_out(struct conn *conn)
{
    link_close(&conn->link, NULL);
}

void h2c_closed(struct conn *conn)
{
    while (conn->h2->streams) {
        struct stream *stream = conn->h2->streams;
        if (stream->x) {
            struct exchange *x = stream->x;
            forget(stream);
            exchange_gone(x);
        }
        stream_free(stream);
    }
    nghttp2_session_del(conn->h2->session);
    free(conn->h2);
    conn->h2 = NULL;
}
