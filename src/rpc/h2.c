/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2.c - the session: nghttp2's callbacks, streams and the protection from floods
 *
 * (1) Streams are owned here and are in h2->streams from open to `closed`; nghttp2 has only pointers.
 * (2) The connection's window is given back as bytes arrive; each stream's only as its bytes are
 *     used. So one slow stream never stops another, and holds no more than its own window.
 * (3) Every kind of frame that costs the sender nothing has a bucket: a peer that empties one is
 *     told ENHANCE_YOUR_CALM and dropped. nghttp2 itself bounds rapid resets and CONTINUATION.
 */
#include "rpc/h2.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "rpc/h2_priv.h"

enum { CONNECTION_WINDOW = 4 * 1024 * 1024 };

static const struct flood {
    const char *what;
    int64_t burst, per_s;
} floods[] = {
    { "SETTINGS", 200, 20 },
    { "PING", 1000, 100 },
    { "PRIORITY or empty frames", 2000, 200 },
    { "WINDOW_UPDATE", 200000, 100000 },
};

static bool bucket_take(struct h2 *h2, unsigned which)
{
    struct bucket *bucket = &h2->buckets[which];
    int64_t most = floods[which].burst * 1000;

    bucket->tokens_milli += (h2->now_ms - bucket->last_ms) * floods[which].per_s;
    bucket->tokens_milli = MIN(bucket->tokens_milli, most);
    bucket->last_ms = h2->now_ms;
    if (bucket->tokens_milli < 1000)
        return false;
    bucket->tokens_milli -= 1000;
    return true;
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *ctx)
{
    struct h2 *h2 = ctx;
    int which = -1;

    if (hd->type == NGHTTP2_SETTINGS && !(hd->flags & NGHTTP2_FLAG_ACK))
        which = 0;
    else if (hd->type == NGHTTP2_PING && !(hd->flags & NGHTTP2_FLAG_ACK))
        which = 1;
    else if (hd->type == NGHTTP2_PRIORITY || hd->type > NGHTTP2_CONTINUATION ||
             (hd->type == NGHTTP2_DATA && hd->length == 0 &&
              !(hd->flags & NGHTTP2_FLAG_END_STREAM)))
        which = 2;
    else if (hd->type == NGHTTP2_WINDOW_UPDATE)
        which = 3;
    if (which < 0 || bucket_take(h2, (unsigned)which))
        return 0;
    h2->flooded = true; /* (3) */
    h2->flood = floods[which].what;
    nghttp2_session_terminate_session(session, NGHTTP2_ENHANCE_YOUR_CALM);
    return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static struct h2_stream *stream_new(struct h2 *h2, int32_t id)
{
    struct h2_stream *stream = h2->spare ? TAKE(h2->spare) : NEW(struct h2_stream);

    *stream = (struct h2_stream){ .h2 = h2, .id = id, .max_message = h2->max_message };
    stream->next = h2->streams;
    if (stream->next)
        stream->next->prev = stream;
    h2->streams = stream;
    h2->stream_count++;
    return stream;
}

static void undrain(struct h2_stream *stream)
{
    for (struct h2_stream **at = &stream->h2->drained; *at; at = &(*at)->drain_next) {
        if (*at == stream) {
            *at = stream->drain_next;
            return;
        }
    }
}

static void stream_free(struct h2_stream *stream)
{
    struct h2 *h2 = stream->h2;

    if (stream->drain_listed)
        undrain(stream);
    in_done(stream);
    out_done(stream);
    if (stream->prev)
        stream->prev->next = stream->next;
    else
        h2->streams = stream->next;
    if (stream->next)
        stream->next->prev = stream->prev;
    h2->stream_count--;
    if (h2->spare)
        free(stream);
    else
        h2->spare = stream;
}

void stream_close(struct h2_stream *stream, const struct err *why)
{
    stream->dead = true;
    stream->h2->events->closed(stream, why);
    stream_free(stream);
}

static struct h2_stream *stream_of(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct h2 *h2 = ctx;

    if (!h2->server || frame->hd.type != NGHTTP2_HEADERS ||
        frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct h2_stream *stream = stream_new(h2, frame->hd.stream_id);
    /* The peer may read in our GOAWAY, which is not sent yet, that this one may be repeated elsewhere. */
    bool late = h2->goaway_out && frame->hd.stream_id > h2->goaway_last;
    if (late || !h2->events->open(h2->ctx, stream)) {
        stream_free(stream);
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                  NGHTTP2_REFUSED_STREAM);
        return 0;
    }
    nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, stream);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *ctx)
{
    struct h2_stream *stream = stream_of(session, frame->hd.stream_id);

    (void)flags, (void)ctx;
    if (!stream || stream->in.ignore)
        return 0;
    stream->header_bytes += name_len + value_len + 32; /* as RFC 9113 counts */
    if (stream->header_bytes > LIMIT_METADATA_BYTES) {
        stream->too_many_headers = true;
        return 0;
    }
    struct h2_header header = { .name = (const char *)name,
                                .name_len = name_len,
                                .value = (const char *)value,
                                .value_len = value_len };
    stream->h2->events->header(stream, &header);
    return 0;
}

static void headers_done(struct h2_stream *stream)
{
    if (stream->too_many_headers) {
        struct err err;
        err_set(&err, ERR_TOO_LARGE, "metadata is larger than the limit of %d bytes",
                LIMIT_METADATA_BYTES);
        in_bad(stream, &err);
    } else if (!stream->in.ignore) {
        stream->h2->events->headers(stream);
    }
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct h2 *h2 = ctx;
    struct h2_stream *stream = stream_of(session, frame->hd.stream_id);

    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        if (stream)
            headers_done(stream);
        break;
    case NGHTTP2_PING:
        if (frame->hd.flags & NGHTTP2_FLAG_ACK)
            h2->events->pong(h2->ctx);
        break;
    case NGHTTP2_GOAWAY:
        h2->goaway_in = true;
        h2->events->goaway(h2->ctx);
        break;
    default:
        break;
    }
    if (stream && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
        (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA))
        in_end(stream);
    return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                         size_t len, void *ctx)
{
    struct h2_stream *stream = stream_of(session, id);

    (void)flags, (void)ctx;
    nghttp2_session_consume_connection(session, len); /* (2) */
    if (stream)
        in_data(stream, data, len);
    else
        nghttp2_session_consume_stream(session, id, len);
    return 0;
}

/* A server that answered before the whole request came wants no more of it. */
static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct h2 *h2 = ctx;

    if (!h2->server || frame->hd.type != NGHTTP2_HEADERS ||
        !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        return 0;
    struct h2_stream *stream = stream_of(session, frame->hd.stream_id);
    if (stream && !stream->in.ended)
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_NO_ERROR);
    return 0;
}

static void reset_text(uint32_t code, struct err *err)
{
    switch (code) {
    case NGHTTP2_CANCEL:
        err_set(err, ERR_CANCELLED, "the call was cancelled");
        break;
    case NGHTTP2_REFUSED_STREAM:
        err_set(err, ERR_UNREACHABLE, "the server takes no more calls on this connection");
        break;
    case NGHTTP2_ENHANCE_YOUR_CALM:
        err_set(err, ERR_TOO_MANY, "the peer asks for fewer requests");
        break;
    default:
        err_set(err, ERR_CONNECTION_LOST, "the stream was reset: %s", nghttp2_http2_strerror(code));
        break;
    }
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *ctx)
{
    struct h2_stream *stream = stream_of(session, id);
    struct err err;

    (void)ctx;
    if (!stream)
        return 0;
    nghttp2_session_set_stream_user_data(session, id, NULL);
    bool in_order = code == NGHTTP2_NO_ERROR;
    if (in_order && (stream->in.paused || stream->in.held_len) && !stream->in.ignore) {
        stream->dead = stream->close_pending = true; /* h2_resume() goes on */
        return 0;
    }
    stream->refused = code == NGHTTP2_REFUSED_STREAM;
    if (!in_order)
        reset_text(code, &err);
    stream_close(stream, in_order ? NULL : &err);
    return 0;
}

static nghttp2_session_callbacks *callbacks_new(void)
{
    nghttp2_session_callbacks *callbacks;

    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        abort();
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_send);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    return callbacks;
}

static nghttp2_option *option_new(void)
{
    nghttp2_option *option;

    if (nghttp2_option_new(&option) != 0)
        abort();
    nghttp2_option_set_no_auto_window_update(option, 1); /* (2) */
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_settings(option, 16);
    nghttp2_option_set_max_continuations(option, 8);
    nghttp2_option_set_stream_reset_rate_limit(option, 1000, 100);
    nghttp2_option_set_peer_max_concurrent_streams(option, LIMIT_STREAMS_PER_CONNECTION);
    return option;
}

static void say_settings(struct h2 *h2)
{
    const nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_HIGH_BYTES },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, LIMIT_METADATA_BYTES },
        { h2->server ? NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS : NGHTTP2_SETTINGS_ENABLE_PUSH,
          h2->server ? LIMIT_STREAMS_PER_CONNECTION : 0 },
    };

    nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings));
    nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW);
}

struct h2 *h2_new(const struct h2_options *options)
{
    struct h2 *h2 = NEW(struct h2);
    nghttp2_session_callbacks *callbacks = callbacks_new();
    nghttp2_option *option = option_new();

    h2->server = options->server;
    h2->events = options->events;
    h2->ctx = options->ctx;
    h2->max_message = options->max_message ? options->max_message : LIMIT_MESSAGE_BYTES;
    h2->own_budget.max = 2 * h2->max_message + H2_HIGH_BYTES;
    h2->budget = options->budget ? options->budget : &h2->own_budget;
    for (size_t i = 0; i < ARRAY_LEN(floods); i++)
        h2->buckets[i].tokens_milli = floods[i].burst * 1000;
    int rc = h2->server ? nghttp2_session_server_new2(&h2->session, callbacks, h2, option)
                        : nghttp2_session_client_new2(&h2->session, callbacks, h2, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    if (rc != 0)
        abort(); /* out of memory for a few kilobytes */
    say_settings(h2);
    return h2;
}

void h2_free(struct h2 *h2)
{
    struct err err;

    if (!h2)
        return;
    err_set(&err, ERR_CONNECTION_LOST, "the connection was lost");
    while (h2->streams)
        stream_close(h2->streams, h2->streams->close_pending ? NULL : &err);
    nghttp2_session_del(h2->session);
    free(h2->spare);
    free(h2);
}

int h2_recv(struct h2 *h2, const void *bytes, size_t len, int64_t now_ms, struct err *err)
{
    h2->now_ms = now_ms;
    if (h2->flooded)
        return err_set(err, ERR_BAD_MESSAGE, "flood of %s frames", h2->flood);
    ssize_t used = nghttp2_session_mem_recv(h2->session, bytes, len);
    if (h2->flooded)
        return err_set(err, ERR_BAD_MESSAGE, "flood of %s frames", h2->flood);
    if (used < 0)
        return err_set(err, ERR_BAD_MESSAGE, "not a valid HTTP/2 connection: %s",
                       nghttp2_strerror((int)used));
    return 0;
}

size_t h2_send(struct h2 *h2, const uint8_t **out)
{
    for (;;) {
        ssize_t len = nghttp2_session_mem_send(h2->session, out);
        if (len > 0)
            return (size_t)len;
        struct h2_stream *stream = h2->drained;
        if (len < 0 || !stream)
            return 0;
        h2->drained = stream->drain_next;
        stream->drain_listed = false;
        h2->events->drained(stream);
    }
}

bool h2_wants_write(const struct h2 *h2)
{
    return nghttp2_session_want_write(h2->session) || h2->drained;
}

bool h2_finished(const struct h2 *h2)
{
    return !nghttp2_session_want_read(h2->session) && !nghttp2_session_want_write(h2->session);
}

void h2_ping(struct h2 *h2)
{
    nghttp2_submit_ping(h2->session, NGHTTP2_FLAG_NONE, NULL);
}

void h2_drain(struct h2 *h2)
{
    if (h2->goaway_out)
        return;
    h2->goaway_out = true;
    h2->goaway_last = nghttp2_session_get_last_proc_stream_id(h2->session);
    nghttp2_submit_goaway(h2->session, NGHTTP2_FLAG_NONE, h2->goaway_last, NGHTTP2_NO_ERROR, NULL,
                          0);
}

void h2_announce(struct h2 *h2)
{
    nghttp2_submit_shutdown_notice(h2->session);
}

bool h2_refused(const struct h2_stream *stream)
{
    return stream->refused;
}

unsigned h2_streams(const struct h2 *h2)
{
    return h2->stream_count;
}

size_t h2_queued_total(const struct h2 *h2)
{
    return h2->queued;
}

bool h2_accepts_requests(const struct h2 *h2)
{
    return !h2->goaway_in && !h2->goaway_out && !h2->flooded &&
           nghttp2_session_check_request_allowed(h2->session);
}

struct h2_stream *h2_request(struct h2 *h2, const struct h2_header *headers, size_t count,
                             void *data)
{
    nghttp2_nv nv[H2_HEADERS_MAX];

    if (count > H2_HEADERS_MAX || !h2_accepts_requests(h2))
        return NULL;
    for (size_t i = 0; i < count; i++)
        nv[i] = nv_of(&headers[i]);
    struct h2_stream *stream = stream_new(h2, 0);
    nghttp2_data_provider source = { .source.ptr = stream, .read_callback = out_read };
    stream->data = data;
    stream->out.started = true;
    stream->id = nghttp2_submit_request(h2->session, NULL, nv, count, &source, stream);
    if (stream->id < 0) {
        stream_free(stream);
        return NULL;
    }
    return stream;
}

void *h2_stream_data(const struct h2_stream *stream)
{
    return stream->data;
}

void h2_stream_set_data(struct h2_stream *stream, void *data)
{
    stream->data = data;
}

struct h2 *h2_stream_h2(const struct h2_stream *stream)
{
    return stream->h2;
}

void h2_stream_max_message(struct h2_stream *stream, size_t bytes)
{
    stream->max_message = MIN(bytes, stream->h2->max_message);
}

void h2_stream_accept(struct h2_stream *stream)
{
    stream->in.accepted = true;
}

void h2_reset(struct h2_stream *stream, enum h2_reset_code code)
{
    struct err err;

    stream->in.ignore = true;
    if (!stream->dead) {
        nghttp2_submit_rst_stream(stream->h2->session, NGHTTP2_FLAG_NONE, stream->id,
                                  (uint32_t)code);
    } else if (stream->close_pending) {
        stream->in.paused = false;
        if (!stream->in.feeding) { /* otherwise h2_resume() is on the stack and closes it */
            reset_text(code, &err);
            stream_close(stream, &err);
        }
    }
}
