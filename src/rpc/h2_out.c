/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2_out.c - messages become the bytes of a stream
 *
 * (1) A stream whose queue is empty is deferred inside nghttp2 and resumed by the next message.
 * (2) A server's stream ends with trailers, a client's with an empty end of data. The trailers are
 *     submitted from inside the read callback, as nghttp2 wants it.
 * (3) h2->queued is the sum of out.queued over the streams.
 */
#include <stdlib.h>
#include <string.h>

#include "rpc/h2_priv.h"

static const uint8_t name_status[] = "grpc-status";
static const uint8_t value_zero[] = "0";

static nghttp2_nv ok_trailer(void)
{
    return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)name_status,
                         .namelen = sizeof(name_status) - 1,
                         .value = (uint8_t *)(uintptr_t)value_zero,
                         .valuelen = 1,
                         .flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE };
}

nghttp2_nv nv_of(const struct h2_header *header)
{
    return (nghttp2_nv){ .name = (uint8_t *)(uintptr_t)header->name,
                         .namelen = header->name_len,
                         .value = (uint8_t *)(uintptr_t)header->value,
                         .valuelen = header->value_len,
                         .flags =
                             header->unique ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE };
}

static size_t message_total(const struct out_message *message)
{
    return PREFIX_BYTES + message->len;
}

/* Copies from the first message into buf; frees it when it is used up. Returns the bytes copied. */
static size_t copy_first(struct h2_stream *stream, uint8_t *buf, size_t room)
{
    struct out_message *message = stream->out.first;
    size_t done = 0;

    if (message->sent < PREFIX_BYTES) {
        done = MIN(room, PREFIX_BYTES - message->sent);
        memcpy(buf, message->prefix + message->sent, done);
        message->sent += done;
    }
    if (message->sent >= PREFIX_BYTES && done < room) {
        size_t at = message->sent - PREFIX_BYTES;
        size_t take = MIN(room - done, message->len - at);
        if (take)
            memcpy(buf + done, message->body + at, take);
        message->sent += take;
        done += take;
    }
    if (message->sent == message_total(message)) {
        stream->out.first = message->next;
        if (!stream->out.first)
            stream->out.last = NULL;
        free(message->memory);
        free(message);
    }
    stream->out.queued -= done;
    stream->h2->queued -= done; /* (3) */
    return done;
}

static void note_drained(struct h2_stream *stream)
{
    struct h2_out *out = &stream->out;

    if (!out->was_high || out->queued > H2_LOW_BYTES)
        return;
    out->was_high = false;
    if (!stream->drain_listed) {
        stream->drain_listed = true;
        stream->drain_next = stream->h2->drained;
        stream->h2->drained = stream;
    }
}

static void end_of_data(struct h2_stream *stream, uint32_t *flags)
{
    struct h2_out *out = &stream->out;

    *flags |= NGHTTP2_DATA_FLAG_EOF;
    out->finished = true;
    if (!stream->h2->server)
        return;
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM; /* (2) */
    nghttp2_nv ok = ok_trailer();
    nghttp2_submit_trailer(stream->h2->session, stream->id, out->trailers ? out->trailers : &ok,
                           out->trailers ? out->trailer_count : 1);
}

ssize_t out_read(nghttp2_session *session, int32_t id, uint8_t *buf, size_t length, uint32_t *flags,
                 nghttp2_data_source *source, void *ctx)
{
    struct h2_stream *stream = source->ptr;
    struct h2_out *out = &stream->out;
    size_t done = 0;

    (void)session, (void)id, (void)ctx;
    while (out->first && done < length)
        done += copy_first(stream, buf + done, length - done);
    note_drained(stream);
    if (!out->first && out->finish) {
        end_of_data(stream, flags);
    } else if (done == 0) {
        out->deferred = true; /* (1) */
        return NGHTTP2_ERR_DEFERRED;
    }
    return (ssize_t)done;
}

static void wake(struct h2_stream *stream)
{
    if (stream->out.deferred) {
        stream->out.deferred = false;
        nghttp2_session_resume_data(stream->h2->session, stream->id);
    }
}

void h2_begin(struct h2_stream *stream)
{
    static const struct h2_header headers[] = {
        { .name = ":status", .name_len = 7, .value = "200", .value_len = 3 },
        { .name = "content-type", .name_len = 12, .value = "application/grpc", .value_len = 16 },
    };
    nghttp2_data_provider data = { .source.ptr = stream, .read_callback = out_read };
    nghttp2_nv nv[2] = { nv_of(&headers[0]), nv_of(&headers[1]) };

    if (stream->out.started || stream->dead || !stream->h2->server)
        return;
    for (size_t i = 0; i < 2; i++)
        nv[i].flags = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;
    stream->out.started = true;
    nghttp2_submit_response(stream->h2->session, stream->id, nv, 2, &data);
}

static void append(struct h2_stream *stream, struct out_message *message)
{
    struct h2_out *out = &stream->out;
    uint32_t len = (uint32_t)message->len;
    const uint8_t prefix[PREFIX_BYTES] = { 0, (uint8_t)(len >> 24), (uint8_t)(len >> 16),
                                           (uint8_t)(len >> 8), (uint8_t)len };

    memcpy(message->prefix, prefix, sizeof(prefix));
    if (out->last)
        out->last->next = message;
    else
        out->first = message;
    out->last = message;
    out->queued += message_total(message);
    stream->h2->queued += message_total(message);
    if (out->queued > H2_LOW_BYTES)
        out->was_high = true;
    h2_begin(stream);
    wake(stream);
}

uint8_t *h2_queue(struct h2_stream *stream, size_t len)
{
    struct out_message *message = malloc(sizeof(*message) + len);

    if (!message)
        return NULL;
    *message = (struct out_message){ .body = message->space, .len = len };
    append(stream, message);
    return message->space;
}

void h2_queue_take(struct h2_stream *stream, void *memory, const uint8_t *bytes, size_t len)
{
    struct out_message *message = mem_new(sizeof(*message));

    *message = (struct out_message){ .memory = memory, .body = bytes, .len = len };
    append(stream, message);
}

size_t h2_queued(const struct h2_stream *stream)
{
    return stream->out.queued;
}

void h2_finish(struct h2_stream *stream)
{
    stream->out.finish = true;
    wake(stream);
}

/* One block: the array, then the text it points to. */
static nghttp2_nv *copy_headers(const struct h2_header *headers, size_t count)
{
    size_t bytes = count * sizeof(nghttp2_nv);

    for (size_t i = 0; i < count; i++)
        bytes += headers[i].name_len + headers[i].value_len;
    nghttp2_nv *out = mem_new(bytes);
    uint8_t *text = (uint8_t *)(out + count);
    for (size_t i = 0; i < count; i++) {
        out[i] = nv_of(&headers[i]);
        out[i].name = memcpy(text, headers[i].name, headers[i].name_len);
        text += headers[i].name_len;
        out[i].value = memcpy(text, headers[i].value, headers[i].value_len);
        text += headers[i].value_len;
    }
    return out;
}

/* Nothing was sent yet: status and error fit in one block of headers ("Trailers-Only"). */
static void end_at_once(struct h2_stream *stream, const struct h2_header *trailers, size_t count)
{
    nghttp2_nv nv[H2_HEADERS_MAX];
    const struct h2_header status = H2_HEADER(":status", "200");
    const struct h2_header type = H2_HEADER("content-type", "application/grpc");
    size_t n = 0;

    nv[n++] = nv_of(&status);
    nv[n++] = nv_of(&type);
    if (!count)
        nv[n++] = ok_trailer();
    for (size_t i = 0; i < count && n < H2_HEADERS_MAX; i++)
        nv[n++] = nv_of(&trailers[i]);
    stream->out.started = stream->out.finished = true;
    nghttp2_submit_response(stream->h2->session, stream->id, nv, n, NULL);
}

void h2_end(struct h2_stream *stream, const struct h2_header *trailers, size_t count)
{
    struct h2_out *out = &stream->out;

    if (out->finish || stream->dead)
        return;
    out->finish = true;
    stream->in.ignore = true;
    if (!out->started) {
        end_at_once(stream, trailers, count);
        return;
    }
    if (count) {
        out->trailers = copy_headers(trailers, count);
        out->trailer_count = count;
    }
    wake(stream);
}

void out_done(struct h2_stream *stream)
{
    struct h2_out *out = &stream->out;

    while (out->first) {
        struct out_message *next = out->first->next;
        free(out->first->memory);
        free(out->first);
        out->first = next;
    }
    stream->h2->queued -= out->queued;
    free(out->trailers);
    memset(out, 0, sizeof(*out));
}
