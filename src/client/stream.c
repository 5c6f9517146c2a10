/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - calls of the blocking client, as the engine tells of them
 *
 * (1) A stream's messages are kept packed until they are asked for. When more than a window waits, the
 *     stream is paused and flow control holds the server back.
 * (2) `closed` is set once the engine has let the stream go, however it ended; then nothing of h2 is
 *     touched any more.
 * (3) A stream with one request is begun again, as a unary call is, until its first message was taken.
 */
#include <stdlib.h>
#include <string.h>

#include "client/client_priv.h"
#include "rpc/coding.h"
#include "wire/pb_unpack.h"

static void fail(struct client_stream *stream, const struct err *why)
{
    if (!stream->failed) {
        stream->failed = true;
        stream->err = *why;
    }
}

static void give_up(struct client_stream *stream, const struct err *why)
{
    struct h2_stream *h2 = TAKE(stream->h2);

    fail(stream, why);
    stream->closed = true;
    if (h2) {
        h2_stream_set_data(h2, NULL);
        h2_reset(h2, H2_RESET_CANCEL);
    }
}

static bool on_open(void *ctx, struct h2_stream *h2)
{
    (void)ctx, (void)h2;
    return false;
}

static void on_header(struct h2_stream *h2, const struct h2_header *header)
{
    struct client_stream *stream = h2_stream_data(h2);

    if (stream)
        status_header(&stream->status, header);
}

static void on_headers(struct h2_stream *h2)
{
    (void)h2;
}

static void keep(struct client_stream *stream, const uint8_t *bytes, size_t len)
{
    struct packed *packed = malloc(sizeof(*packed) + len);

    if (!packed) {
        struct err err;
        err_set(&err, ERR_NO_MEMORY, "no memory for a message of %zu bytes", len);
        give_up(stream, &err);
        return;
    }
    packed->next = NULL;
    packed->len = len;
    if (len)
        memcpy(packed->bytes, bytes, len);
    *stream->last = packed;
    stream->last = &packed->next;
    stream->queued += len + 64;
    if (stream->queued > H2_HIGH_BYTES) { /* (1) */
        stream->paused = true;
        h2_pause(stream->h2);
    }
}

static void on_message(struct h2_stream *h2, const uint8_t *bytes, size_t len)
{
    struct client_stream *stream = h2_stream_data(h2);
    struct err err;

    if (!stream)
        return;
    if (!stream->unary) {
        keep(stream, bytes, len);
    } else if (stream->reply) {
        err_set(&err, ERR_BAD_MESSAGE, "the server answered twice");
        give_up(stream, &err);
    } else if (pb_unpack(stream->reply_type, stream->arena, bytes, len, &stream->reply, &err) < 0) {
        give_up(stream, &err);
    }
}

static void on_end(struct h2_stream *h2)
{
    (void)h2;
}

static void on_bad(struct h2_stream *h2, const struct err *why)
{
    struct client_stream *stream = h2_stream_data(h2);

    if (stream)
        give_up(stream, why);
}

static void on_drained(struct h2_stream *h2)
{
    (void)h2; /* client_stream_writable() says so */
}

static void on_closed(struct h2_stream *h2, const struct err *why)
{
    struct client_stream *stream = h2_stream_data(h2);

    if (!stream)
        return;
    if (why && !stream->status.has_grpc)
        fail(stream, why);
    stream->h2 = NULL;
    stream->closed = true; /* (2) */
}

static void on_nothing(void *ctx)
{
    (void)ctx;
}

const struct h2_events stream_events = {
    .open = on_open,
    .header = on_header,
    .headers = on_headers,
    .message = on_message,
    .end = on_end,
    .bad = on_bad,
    .drained = on_drained,
    .closed = on_closed,
    .goaway = on_nothing,
    .pong = on_nothing,
};

int stream_begin(struct client_stream *stream, const char *path, const ProtobufCMessage *message,
                 const char *request_id, bool open, struct err *err)
{
    struct client *client = stream->client;
    struct h2_header headers[16];
    char timeout[TIMEOUT_TEXT_BYTES];
    size_t n = 0;

    headers[n++] = (struct h2_header){ ":method", 7, "POST", 4, false };
    headers[n++] = (struct h2_header){ ":scheme", 7, "http", 4, false };
    headers[n++] = (struct h2_header){ ":path", 5, path, strlen(path), false };
    headers[n++] = (struct h2_header){ ":authority", 10, "spur", 4, false };
    headers[n++] = (struct h2_header){ "content-type", 12, "application/grpc", 16, false };
    headers[n++] = (struct h2_header){ "te", 2, "trailers", 8, false };
    if (stream->deadline_ms != INT64_MAX) {
        size_t len = timeout_encode(MAX(stream->deadline_ms - now_ms(), (int64_t)1), timeout);
        headers[n++] = (struct h2_header){ "grpc-timeout", 12, timeout, len, false };
    }
    if (client->authorization.len)
        headers[n++] = (struct h2_header){ "authorization", 13, client->authorization.data,
                                           client->authorization.len, false };
    if (request_id)
        headers[n++] =
            (struct h2_header){ "spur-request-id-bin", 19, request_id, strlen(request_id), true };
    stream->last = &stream->first;
    stream->h2 = h2_request(client->wire.h2, headers, n, stream);
    if (!stream->h2)
        return err_set(err, ERR_UNREACHABLE, "%s takes no more calls", client->peer);
    if (message || stream->request) {
        size_t len = message ? protobuf_c_message_get_packed_size(message) : stream->request_len;
        uint8_t *space = h2_queue(stream->h2, len);
        if (!space)
            return err_set(err, ERR_NO_MEMORY, "no memory for a message of %zu bytes", len);
        if (message)
            protobuf_c_message_pack(message, space);
        else
            memcpy(space, stream->request, len);
    }
    if (!open)
        h2_finish(stream->h2);
    return 0;
}

void stream_done(struct client_stream *stream)
{
    struct h2_stream *h2 = TAKE(stream->h2);

    if (h2) {
        h2_stream_set_data(h2, NULL);
        h2_reset(h2, H2_RESET_CANCEL);
    }
    while (stream->first) {
        struct packed *next = stream->first->next;
        free(stream->first);
        stream->first = next;
    }
    stream->last = &stream->first;
    status_done(&stream->status);
    free(stream->path);
    free(stream->request);
    stream->path = NULL;
    stream->request = NULL;
}

int stream_result(struct client_stream *stream, struct err *err)
{
    if (stream->failed) {
        if (err)
            *err = stream->err;
        return -(int)stream->err.code;
    }
    return status_result(&stream->status, err);
}

struct client_stream *client_stream_open(struct client *client,
                                         const struct client_stream_options *options,
                                         struct err *err)
{
    struct client_stream *stream = NEW(struct client_stream);

    stream->client = client;
    stream->reply_type = options->reply_type;
    stream->deadline_ms = options->timeout_ms ? now_ms() + options->timeout_ms : INT64_MAX;
    again_init(&stream->again, client, stream->deadline_ms);
    if (client_connect(client, stream->deadline_ms, err) < 0 ||
        stream_begin(stream, options->path, options->message, NULL, options->open, err) < 0) {
        stream_done(stream);
        free(stream);
        return NULL;
    }
    if (!options->open && options->message) {
        stream->path = mem_strdup(options->path);
        stream->request_len = protobuf_c_message_get_packed_size(options->message);
        stream->request = mem_new(stream->request_len + 1);
        protobuf_c_message_pack(options->message, stream->request);
    }
    stream->next = client->streams;
    if (stream->next)
        stream->next->prev = stream;
    client->streams = stream;
    return stream;
}

void client_stream_free(struct client_stream *stream)
{
    struct err err;

    if (!stream)
        return;
    struct client *client = stream->client;
    *(stream->prev ? &stream->prev->next : &client->streams) = stream->next;
    if (stream->next)
        stream->next->prev = stream->prev;
    bool open = stream->h2 != NULL;
    stream_done(stream);
    free(stream);
    if (open && client->wire.fd >= 0 && !client->wire.broken)
        wire_pump(&client->wire, &err); /* the server learns at once that nobody listens */
}

static int take_first(struct client_stream *stream, struct arena *arena, ProtobufCMessage **message,
                      struct err *err)
{
    struct packed *packed = stream->first;
    free(TAKE(stream->path)); /* (3): from here on it is not begun again */
    int rc = pb_unpack(stream->reply_type, arena, packed->bytes, packed->len, message, err);

    stream->first = packed->next;
    if (!stream->first)
        stream->last = &stream->first;
    stream->queued -= packed->len + 64;
    free(packed);
    if (stream->paused && stream->queued < H2_LOW_BYTES) {
        stream->paused = false;
        if (stream->h2)
            h2_resume(stream->h2);
    }
    return rc < 0 ? rc : CLIENT_MESSAGE;
}

int client_stream_try(struct client_stream *stream, struct arena *arena, ProtobufCMessage **message,
                      struct err *err)
{
    if (stream->first)
        return take_first(stream, arena, message, err);
    if (!stream->closed && now_ms() >= stream->deadline_ms) {
        struct err late;
        err_set(&late, ERR_DEADLINE, "the stream from %s took too long", stream->client->peer);
        give_up(stream, &late);
    }
    if (!stream->closed)
        return CLIENT_AGAIN;
    int rc = stream_result(stream, err);
    return rc < 0 ? rc : CLIENT_ENDED;
}

/* A list that a follower refused, or that was lost before its first message, is asked for anew. */
static bool begin_again(struct client_stream *stream, int rc)
{
    struct client *client = stream->client;
    char *path = TAKE(stream->path);
    uint8_t *request = TAKE(stream->request);
    char leader[STATUS_LEADER_BYTES];
    struct err err;

    memcpy(leader, stream->status.leader, sizeof(leader));
    bool again = path && client_again(client, &stream->again, rc, leader);
    if (again) {
        stream_done(stream);
        stream->status = (struct status){ 0 };
        stream->closed = stream->failed = stream->paused = false;
        stream->queued = 0;
    }
    stream->path = path;
    stream->request = request;
    if (!again)
        return false;
    if (client_connect(client, stream->deadline_ms, &err) < 0 ||
        stream_begin(stream, path, NULL, NULL, false, &err) < 0)
        give_up(stream, &err);
    return true;
}

int client_stream_next(struct client_stream *stream, struct arena *arena,
                       ProtobufCMessage **message, struct err *err)
{
    struct client *client = stream->client;

    for (;;) {
        int rc = client_stream_try(stream, arena, message, err);
        if (rc < 0 && begin_again(stream, rc))
            continue;
        if (rc != CLIENT_AGAIN)
            return rc;
        if (wire_wait(&client->wire, stream->deadline_ms, err) < 0)
            client_lost(client); /* every stream is told */
    }
}

bool client_stream_send(struct client_stream *stream, const ProtobufCMessage *message)
{
    if (!stream->h2)
        return false;
    size_t len = protobuf_c_message_get_packed_size(message);
    uint8_t *space = h2_queue(stream->h2, len);
    if (!space)
        return false;
    protobuf_c_message_pack(message, space);
    return true;
}

bool client_stream_writable(const struct client_stream *stream)
{
    return stream->h2 && h2_queued(stream->h2) < H2_HIGH_BYTES;
}

void client_stream_finish(struct client_stream *stream)
{
    if (stream->h2)
        h2_finish(stream->h2);
}
