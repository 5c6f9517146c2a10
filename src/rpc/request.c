/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c - the loop client and its calls
 *
 * (1) A request is in client->open until `done` was called or it was cancelled; then it is gone. Its
 *     stream may live on for a moment with no data attached.
 * (2) `done` is never called from inside rpc_request_start(): a request that cannot even be sent ends
 *     by its timer, from the loop.
 * (3) A request is sent again when the server has said that it did nothing of it: its stream was refused, or
 *     is behind the last one that a GOAWAY names. What was merely lost may have been done, and ends.
 */
#include <stdlib.h>
#include <string.h>

#include "rpc/client_priv.h"
#include "rpc/coding.h"
#include "wire/pb_unpack.h"

enum {
    SPARE_REQUESTS = 256,
    SPARE_ARENA_BYTES = 64 * 1024,
    METADATA_MAX = 16,
    AGAIN_BYTES = 64 * 1024, /* larger ones are not kept, and not sent again */
    AGAIN_MOST = 3,
};

#define DEFAULT(field, value) ((field) = (field) ? (field) : (value))

struct rpc_client *rpc_client_new(struct rpc_loop *loop, const struct rpc_client_options *options,
                                  struct err *err)
{
    struct rpc_client *client = NEW(struct rpc_client);
    struct rpc_client_options *o = &client->options;

    *o = *options;
    DEFAULT(o->default_port, ADDRESS_PORT_CONTROLLER);
    DEFAULT(o->connect_ms, 5000);
    DEFAULT(o->backoff_min_ms, 100);
    DEFAULT(o->backoff_max_ms, 10000);
    DEFAULT(o->keepalive_ms, 10000);
    DEFAULT(o->keepalive_wait_ms, 5000);
    if (address_list_parse(options->addresses, o->default_port, &client->addresses, err) < 0) {
        free(client);
        return NULL;
    }
    o->addresses = NULL;
    client->loop = loop;
    loop_ref(loop);
    client->jitter = uv_hrtime() ^ (uintptr_t)client;
    client->backoff_ms = o->backoff_min_ms;
    client->waiting_last = &client->waiting;
    client->state = RPC_WAITING;
    dial_round(client);
    return client;
}

enum rpc_state rpc_client_state(const struct rpc_client *client)
{
    return client->state;
}

const char *rpc_client_peer(const struct rpc_client *client)
{
    return client->peer;
}

bool rpc_client_refused(const struct rpc_client *client)
{
    return client->refused;
}

int rpc_client_set_addresses(struct rpc_client *client, const char *addresses, struct err *err)
{
    struct address_list list;

    if (address_list_parse(addresses, client->options.default_port, &list, err) < 0)
        return -(int)ERR_INVALID;
    const struct address *now = &client->addresses.items[client->address_at];
    size_t at = list.len;
    for (size_t i = 0; i < list.len; i++) {
        if (address_eq(&list.items[i], now))
            at = i;
    }
    client->addresses = list;
    client->address_at = at < list.len ? at : 0;
    if (at == list.len || client->state == RPC_WAITING) {
        dial_forget(client);
        client->backoff_ms = client->options.backoff_min_ms;
        dial_round(client);
    }
    return 0;
}

static void unwait(struct rpc_request *request)
{
    struct rpc_client *client = request->client;
    struct rpc_request **at = &client->waiting;

    if (!request->listed)
        return;
    while (*at != request)
        at = &(*at)->waiting_next;
    *at = request->waiting_next;
    if (client->waiting_last == &request->waiting_next)
        client->waiting_last = at;
    request->listed = false;
}

static void arena_recycle(struct arena *arena)
{
    if (arena->total > SPARE_ARENA_BYTES)
        arena_done(arena);
    else
        arena_reset(arena);
}

static struct rpc_request *request_new(struct rpc_client *client)
{
    struct rpc_request *request = client->spare;
    struct arena arena = { 0 }, message_arena = { 0 };

    if (request) {
        client->spare = request->next;
        client->spare_count--;
        arena = request->arena;
        message_arena = request->message_arena;
    } else {
        request = NEW(struct rpc_request);
    }
    *request = (struct rpc_request){
        .client = client, .arena = arena, .message_arena = message_arena, .next = client->open
    };
    if (request->next)
        request->next->prev = request;
    client->open = request;
    return request;
}

/* Out of every list and away from its stream; (1) */
static void request_detach(struct rpc_request *request)
{
    struct rpc_client *client = request->client;

    unwait(request);
    loop_timer_clear(client->loop, &request->timer);
    *(request->prev ? &request->prev->next : &client->open) = request->next;
    if (request->next)
        request->next->prev = request->prev;
    if (request->stream)
        h2_stream_set_data(request->stream, NULL);
}

static void request_free(struct rpc_request *request)
{
    struct rpc_client *client = request->client;

    status_done(&request->status);
    if (client->spare_count < SPARE_REQUESTS) {
        arena_recycle(&request->arena);
        arena_recycle(&request->message_arena);
        request->next = client->spare;
        client->spare = request;
        client->spare_count++;
    } else {
        arena_done(&request->arena);
        arena_done(&request->message_arena);
        free(request);
    }
}

void request_end(struct rpc_request *request, const struct err *err)
{
    struct h2_stream *stream = request->stream;
    struct dial *dial = request->dial;

    request_detach(request);
    request->stream = NULL;
    request->ending = true;
    if (stream && err) {
        h2_reset(stream, H2_RESET_CANCEL);
        link_dirty(&dial->link);
    }
    if (request->o.on_done)
        request->o.on_done(request, err ? NULL : request->reply, err);
    request_free(request);
}

void rpc_request_cancel(struct rpc_request *request)
{
    request->o.on_done = NULL;
    struct err err;
    err_set(&err, ERR_CANCELLED, "cancelled");
    request_end(request, &err);
}

void rpc_client_free(struct rpc_client *client)
{
    struct err err;

    if (!client)
        return;
    client->options.state = NULL;
    err_set(&err, ERR_CANCELLED, "the client is being closed");
    while (client->open)
        request_end(client->open, &err);
    dial_forget(client);
    while (client->spare) {
        struct rpc_request *request = client->spare;
        client->spare = request->next;
        arena_done(&request->arena);
        arena_done(&request->message_arena);
        free(request);
    }
    loop_unref(client->loop);
    free(client);
}

static void on_timer(struct timer *timer)
{
    struct rpc_request *request = CONTAINER_OF(timer, struct rpc_request, timer);
    struct err err;

    if (request->failed.code) {
        err = request->failed; /* (2) */
    } else if (request->listed && request->client->last.code) {
        err = request->client->last;
        err_wrap(&err, "no connection before the deadline");
    } else {
        err_set(&err, ERR_DEADLINE, "no answer from %s within %u ms", request->client->peer,
                request->o.timeout_ms);
    }
    request_end(request, &err);
}

static void fail_soon(struct rpc_request *request, const struct err *err)
{
    request->failed = *err;
    loop_timer_set(request->client->loop, &request->timer, loop_now_ms(request->client->loop));
}

static size_t fill_headers(struct rpc_request *request, struct h2_header *out,
                           struct str *authorization, char timeout[TIMEOUT_TEXT_BYTES])
{
    struct rpc_client *client = request->client;
    size_t n = 0;

    out[n++] = (struct h2_header){ ":method", 7, "POST", 4, false };
    out[n++] = (struct h2_header){ ":scheme", 7, "http", 4, false };
    out[n++] = (struct h2_header){ ":path", 5, request->path, strlen(request->path), false };
    out[n++] = (struct h2_header){ ":authority", 10, "spur", 4, false };
    out[n++] = (struct h2_header){ "content-type", 12, "application/grpc", 16, false };
    out[n++] = (struct h2_header){ "te", 2, "trailers", 8, false };
    if (request->o.timeout_ms) {
        int64_t left = request->deadline_ms - loop_now_ms(client->loop);
        size_t len = timeout_encode(MAX(left, (int64_t)1), timeout);
        out[n++] = (struct h2_header){ "grpc-timeout", 12, timeout, len, false };
    }
    if (client->options.credentials)
        client->options.credentials(client->options.ctx, authorization);
    if (authorization->len)
        out[n++] = (struct h2_header){ "authorization", 13, authorization->data, authorization->len,
                                       false };
    if (request->id_text)
        out[n++] = (struct h2_header){ "spur-request-id-bin", 19, request->id_text,
                                       strlen(request->id_text), true };
    for (size_t i = 0; i < request->o.metadata_count && i < METADATA_MAX; i++)
        out[n++] = H2_HEADER(request->o.metadata[i].name, request->o.metadata[i].value);
    return n;
}

/* The connection is there: sends what is known so far. */
void request_submit(struct rpc_request *request)
{
    CLEANUP(str_done) struct str authorization = { 0 };
    char timeout[TIMEOUT_TEXT_BYTES];
    struct h2_header headers[H2_HEADERS_MAX];
    struct dial *dial = request->client->dial;

    size_t count = fill_headers(request, headers, &authorization, timeout);
    request->stream = h2_request(dial->link.h2, headers, count, request);
    if (!request->stream) {
        struct err err;
        err_set(&err, ERR_UNREACHABLE, "the connection takes no more calls");
        fail_soon(request, &err);
        return;
    }
    request->dial = dial;
    request->started = true;
    if (request->packed) {
        uint8_t *space = h2_queue(request->stream, request->packed_len);
        if (space && request->packed_len)
            memcpy(space, request->packed, request->packed_len);
    } else if (request->o.message) {
        size_t len = protobuf_c_message_get_packed_size(request->o.message);
        uint8_t *space = h2_queue(request->stream, len);
        if (space)
            protobuf_c_message_pack(request->o.message, space);
    }
    if (!request->o.open || request->finish)
        h2_finish(request->stream);
    link_dirty(&dial->link);
}

/* What the caller owns must be kept here until it can be sent, and as long as it may be sent again. */
static void keep(struct rpc_request *request)
{
    if (request->o.message) {
        request->packed_len = protobuf_c_message_get_packed_size(request->o.message);
        request->packed = arena_alloc(&request->arena, MAX(request->packed_len, (size_t)1));
        protobuf_c_message_pack(request->o.message, request->packed);
    }
    struct rpc_metadata *metadata =
        ARENA_ARRAY(&request->arena, struct rpc_metadata, request->o.metadata_count);
    for (size_t i = 0; i < request->o.metadata_count; i++) {
        metadata[i].name = arena_strdup(&request->arena, request->o.metadata[i].name);
        metadata[i].value = arena_strdup(&request->arena, request->o.metadata[i].value);
    }
    request->o.metadata = metadata;
}

static void wait_for_connection(struct rpc_request *request)
{
    struct rpc_client *client = request->client;

    request->listed = true;
    request->waiting_next = NULL;
    *client->waiting_last = request;
    client->waiting_last = &request->waiting_next;
}

static bool usable(const struct dial *dial)
{
    return dial && dial->link.h2 && !dial->link.closing && h2_accepts_requests(dial->link.h2);
}

struct rpc_request *rpc_request_start(struct rpc_client *client,
                                      const struct rpc_request_options *options)
{
    struct rpc_request *request = request_new(client);

    request->o = *options;
    request->timer.fire = on_timer;
    request->path = arena_strdup(&request->arena, options->path);
    if (options->request_id) {
        CLEANUP(str_done) struct str text = { 0 };
        base64_add(&text, options->request_id, RPC_REQUEST_ID_BYTES);
        request->id_text = arena_strdup(&request->arena, text.data);
    }
    if (options->timeout_ms) {
        request->deadline_ms = loop_now_ms(client->loop) + options->timeout_ms;
        loop_timer_set(client->loop, &request->timer, request->deadline_ms);
    }
    bool sent = usable(client->dial);
    if (!sent || (!options->open && options->message &&
                  protobuf_c_message_get_packed_size(options->message) <= AGAIN_BYTES))
        keep(request);
    if (sent)
        request_submit(request);
    else if (client->state == RPC_WAITING && !options->wait_ready)
        fail_soon(request, &client->last);
    else
        wait_for_connection(request);
    request->o.message = NULL;
    request->o.path = request->path;
    return request;
}

void requests_ready(struct rpc_client *client)
{
    while (client->waiting && usable(client->dial)) {
        struct rpc_request *request = client->waiting;
        unwait(request);
        request_submit(request);
    }
}

void requests_fail_waiting(struct rpc_client *client, const struct err *err, bool all)
{
    struct rpc_request *next;

    for (struct rpc_request *request = client->waiting; request; request = next) {
        next = request->waiting_next;
        if (all || !request->o.wait_ready)
            fail_soon(request, err);
    }
}

/* ---- what h2 tells ---- */

static void on_header(struct h2_stream *stream, const struct h2_header *header)
{
    struct rpc_request *request = h2_stream_data(stream);

    if (request)
        status_header(&request->status, header);
}

static void on_headers(struct h2_stream *stream)
{
    struct rpc_request *request = h2_stream_data(stream);

    if (request)
        request->client->backoff_ms = request->client->options.backoff_min_ms;
}

static void on_message(struct h2_stream *stream, const uint8_t *bytes, size_t len)
{
    struct rpc_request *request = h2_stream_data(stream);
    ProtobufCMessage *message;
    struct err err;

    if (!request)
        return;
    bool unary = !request->o.on_message;
    struct arena *arena = unary ? &request->arena : &request->message_arena;
    if (unary && request->reply) {
        err_set(&err, ERR_BAD_MESSAGE, "%s was answered twice", request->path);
        request_end(request, &err);
    } else if (pb_unpack(request->o.reply, arena, bytes, len, &message, &err) < 0) {
        request_end(request, &err);
    } else if (unary) {
        request->reply = message;
    } else {
        request->o.on_message(request, message);
        request = h2_stream_data(stream);
        if (request)
            arena_recycle(&request->message_arena);
    }
}

static void on_end(struct h2_stream *stream)
{
    (void)stream; /* `closed` follows, with the status */
}

static void on_bad(struct h2_stream *stream, const struct err *why)
{
    struct rpc_request *request = h2_stream_data(stream);

    if (request)
        request_end(request, why);
}

static void on_drained(struct h2_stream *stream)
{
    struct rpc_request *request = h2_stream_data(stream);

    if (request && request->o.on_writable)
        request->o.on_writable(request);
}

/* (3) Where it was sent is left, when that was all that it was kept for. */
static bool send_again(struct rpc_request *request, struct h2_stream *stream)
{
    if (!h2_refused(stream) || request->status.has_grpc || request->o.open || !request->packed ||
        request->refused++ >= AGAIN_MOST)
        return false;
    link_dirty(&request->dial->link);
    h2_stream_set_data(stream, NULL);
    request->stream = NULL;
    request->dial = NULL;
    wait_for_connection(request);
    requests_ready(request->client);
    return true;
}

static void on_closed(struct h2_stream *stream, const struct err *why)
{
    struct rpc_request *request = h2_stream_data(stream);
    struct err err;
    int rc;

    if (!request || (why && send_again(request, stream)))
        return;
    if (why && !request->status.has_grpc) {
        err = *why;
        rc = -(int)err.code;
    } else {
        rc = status_result(&request->status, &err);
    }
    if (rc == 0 && !request->o.on_message && !request->reply)
        rc = err_set(&err, ERR_BAD_MESSAGE, "%s succeeded without an answer", request->path);
    h2_stream_set_data(stream, NULL);
    request->stream = NULL;
    request_end(request, rc < 0 ? &err : NULL);
}

static bool on_open(void *ctx, struct h2_stream *stream)
{
    (void)ctx, (void)stream;
    return false; /* a server opens no streams */
}

static void on_goaway(void *ctx)
{
    dial_replace(ctx);
}

static void on_pong(void *ctx)
{
    struct dial *dial = ctx;

    dial->ping_ms = 0;
}

const struct h2_events client_events = {
    .open = on_open,
    .header = on_header,
    .headers = on_headers,
    .message = on_message,
    .end = on_end,
    .bad = on_bad,
    .drained = on_drained,
    .closed = on_closed,
    .goaway = on_goaway,
    .pong = on_pong,
};

/* ---- what callers ask ---- */

void *rpc_request_data(const struct rpc_request *request)
{
    return request->o.data;
}

const char *rpc_request_leader(const struct rpc_request *request)
{
    return request->status.leader;
}

bool rpc_request_send(struct rpc_request *request, const ProtobufCMessage *message)
{
    if (!request->stream || request->finish)
        return false;
    size_t len = protobuf_c_message_get_packed_size(message);
    uint8_t *space = h2_queue(request->stream, len);
    if (!space)
        return false;
    protobuf_c_message_pack(message, space);
    link_dirty(&request->dial->link);
    return true;
}

bool rpc_request_writable(const struct rpc_request *request)
{
    return request->stream && h2_queued(request->stream) < H2_HIGH_BYTES;
}

void rpc_request_finish(struct rpc_request *request)
{
    request->finish = true;
    if (request->stream) {
        h2_finish(request->stream);
        link_dirty(&request->dial->link);
    }
}

void rpc_request_pause(struct rpc_request *request)
{
    if (request->stream)
        h2_pause(request->stream);
}

void rpc_request_resume(struct rpc_request *request)
{
    if (request->stream) {
        link_dirty(&request->dial->link);
        h2_resume(request->stream); /* may end the request */
    }
}
