/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.c - a call at the server, from its headers to its answer
 *
 * (1) A call has two holders: its stream and its handler. It is freed when the stream is closed and the
 *     handler has answered, in either order. Before it is handed over, only the stream holds it.
 * (2) Order of refusal: no such method, not gRPC, unknown caller, role, leadership; then the request is
 *     read and unpacked.
 * (3) A held call's stream is paused: nothing of its request is taken beyond one window.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "rpc/coding.h"
#include "rpc/server_priv.h"
#include "wire/pb_unpack.h"

enum { SPARE_CALLS = 256, SPARE_ARENA_BYTES = 64 * 1024, QUEUED_BYTES = 4 * 1024 * 1024 };

static void on_deadline(struct timer *timer);

void call_dirty(struct rpc_call *call)
{
    if (call->conn)
        link_dirty(&call->conn->link);
}

static struct rpc_call *call_new(struct conn *conn, struct h2_stream *stream)
{
    struct rpc_server *server = conn->server;
    struct rpc_call *call = server->spare;
    struct arena arena = { 0 }, message_arena = { 0 };

    if (call) {
        server->spare = call->next;
        server->spare_count--;
        arena = call->arena;
        message_arena = call->message_arena;
    } else {
        call = NEW(struct rpc_call);
    }
    *call = (struct rpc_call){
        .server = server,
        .conn = conn,
        .stream = stream,
        .arena = arena,
        .message_arena = message_arena,
        .deadline_ms = INT64_MAX,
        .timer.fire = on_deadline,
        .next = conn->calls,
    };
    if (call->next)
        call->next->prev = call;
    conn->calls = call;
    server_ref(server);
    server->stats.calls_open++;
    return call;
}

static void arena_recycle(struct arena *arena)
{
    if (arena->total > SPARE_ARENA_BYTES)
        arena_done(arena);
    else
        arena_reset(arena);
}

static void call_free(struct rpc_call *call)
{
    struct rpc_server *server = call->server;

    loop_timer_clear(server->loop, &call->timer);
    ident_unref(call->ident);
    server->stats.calls_open--;
    if (server->spare_count < SPARE_CALLS) {
        arena_recycle(&call->arena);
        arena_recycle(&call->message_arena);
        call->next = server->spare;
        server->spare = call;
        server->spare_count++;
    } else {
        arena_done(&call->arena);
        arena_done(&call->message_arena);
        free(call);
    }
    server_unref(server);
}

/* Takes the call away from its stream and connection; (1) */
static void detach(struct rpc_call *call)
{
    struct conn *conn = call->conn;

    conn_unhold(conn, call);
    *(call->prev ? &call->prev->next : &conn->calls) = call->next;
    if (call->next)
        call->next->prev = call->prev;
    call->prev = call->next = NULL;
    call->stream = NULL;
    call->conn = NULL;
}

void call_answered(struct rpc_call *call)
{
    call->answered = true;
    call->answered_ms = loop_now_ms(call->server->loop);
    loop_timer_clear(call->server->loop, &call->timer);
    if (!call->stream)
        call_free(call);
    else
        call_dirty(call);
}

void call_send_error(struct rpc_call *call, const struct err *err)
{
    CLEANUP(str_done) struct str scratch = { 0 };
    struct h2_header trailers[STATUS_TRAILERS];
    const char *leader = err->code == ERR_NOT_LEADER ? call->server->leader : NULL;

    call->server->stats.failed++;
    h2_end(call->stream, trailers, status_trailers(err, leader, &scratch, trailers));
    if (call->paused)
        h2_resume(call->stream);
}

/* Ends a call that no handler has. */
static void refuse(struct rpc_call *call, const struct err *err)
{
    conn_unhold(call->conn, call);
    call_send_error(call, err);
    call_answered(call);
}

static void hand_over(struct rpc_call *call)
{
    call->handed = true;
    h2_stream_accept(call->stream);
    call->server->stats.calls++;
    if (call->deadline_ms != INT64_MAX)
        loop_timer_set(call->server->loop, &call->timer, call->deadline_ms);
    else
        loop_timer_clear(call->server->loop, &call->timer);
    call->method->handle(call, call->request);
}

/* The request is complete as far as its handler needs it. */
static bool complete(const struct rpc_call *call)
{
    return call->method->kind == RPC_BIDI || (call->has_request && call->ended_in);
}

void call_go(struct rpc_call *call)
{
    struct err err;

    if (auth_check(call, &err) < 0) {
        refuse(call, &err);
        return;
    }
    const struct rpc_identity *id = &call->ident->id;
    call->conn->proven |= id->how != RPC_HOW_NONE;
    call->conn->link.proven = call->conn->proven;
    call->conn->is_daemon |= id->node[0] || id->controller[0];
    if (call->method->leader_only && !call->server->leading) {
        err_set(&err, ERR_NOT_LEADER,
                call->server->leader[0] ? "this controller does not lead; ask %s"
                                        : "this controller does not lead, and knows no leader yet",
                call->server->leader);
        refuse(call, &err);
        return;
    }
    call->headers_done = true;
    if (call->method->kind == RPC_BIDI)
        hand_over(call);
    if (call->paused) { /* (3); the stream still holds the call, even if it is answered */
        call->paused = false;
        if (!call->handler_paused)
            h2_resume(call->stream);
    }
}

/* ---- what h2 tells ---- */

static bool on_open(void *ctx, struct h2_stream *stream)
{
    struct conn *conn = ctx;
    struct rpc_server *server = conn->server;

    if (server->stopping || conn->link.closing ||
        server->stats.calls_open >=
            server->options.max_connections + 16u * LIMIT_STREAMS_PER_CONNECTION)
        return false;
    struct rpc_call *call = call_new(conn, stream);
    h2_stream_set_data(stream, call);
    loop_timer_set(server->loop, &call->timer,
                   loop_now_ms(server->loop) + server->options.handshake_ms);
    return true;
}

static bool is(const struct h2_header *header, const char *name)
{
    return header->name_len == strlen(name) && memcmp(header->name, name, header->name_len) == 0;
}

static void take_request_id(struct rpc_call *call, const struct h2_header *header)
{
    CLEANUP(str_done) struct str bytes = { 0 };

    call->has_request_id = base64_decode(&bytes, header->value, header->value_len) &&
                           bytes.len == RPC_REQUEST_ID_BYTES;
    if (call->has_request_id)
        memcpy(call->request_id, bytes.data, RPC_REQUEST_ID_BYTES);
    else
        err_set(&call->bad, ERR_INVALID, "spur-request-id-bin is not %d bytes",
                RPC_REQUEST_ID_BYTES);
}

static void take_timeout(struct rpc_call *call, const struct h2_header *header)
{
    int64_t ms;

    if (timeout_decode(header->value, header->value_len, &ms))
        call->deadline_ms = loop_now_ms(call->server->loop) + ms;
    else
        err_set(&call->bad, ERR_INVALID, "malformed grpc-timeout");
}

static void on_header(struct h2_stream *stream, const struct h2_header *header)
{
    struct rpc_call *call = h2_stream_data(stream);

    if (!call || call->headers_done)
        return;
    if (is(header, ":path")) {
        call->path = arena_strndup(&call->arena, header->value, header->value_len);
    } else if (is(header, ":method")) {
        call->is_post = header->value_len == 4 && memcmp(header->value, "POST", 4) == 0;
    } else if (is(header, "content-type")) {
        call->is_grpc =
            header->value_len >= 16 && memcmp(header->value, "application/grpc", 16) == 0;
    } else if (is(header, "grpc-timeout")) {
        take_timeout(call, header);
    } else if (is(header, "authorization")) {
        call->authorization = arena_strndup(&call->arena, header->value, header->value_len);
    } else if (is(header, "spur-request-id-bin")) {
        take_request_id(call, header);
    } else if (header->name[0] != ':' && !is(header, "te") && !is(header, "user-agent") &&
               !is(header, "grpc-accept-encoding") && !is(header, "accept-encoding")) {
        struct metadata *item = ARENA_NEW(&call->arena, struct metadata);
        item->name = arena_strndup(&call->arena, header->name, header->name_len);
        item->value = arena_strndup(&call->arena, header->value, header->value_len);
        item->next = call->metadata;
        call->metadata = item;
    }
}

/* (2) as far as the headers alone decide */
static int check_headers(struct rpc_call *call, struct err *err)
{
    call->method = call->path ? map_get(&call->server->methods, call->path) : NULL;
    if (!call->is_post || !call->is_grpc)
        return err_set(err, ERR_BAD_MESSAGE, "this is a gRPC server: POST application/grpc");
    if (!call->method)
        return err_set(err, ERR_NO_METHOD, "no method '%.200s'", call->path ? call->path : "");
    if (call->bad.code) {
        *err = call->bad;
        return -(int)err->code;
    }
    if (call->conn->plain_refused)
        return err_set(err, ERR_UNAUTHENTICATED,
                       "connections from other hosts must use TLS (https://…)");
    return 0;
}

static void on_headers(struct h2_stream *stream)
{
    struct rpc_call *call = h2_stream_data(stream);
    struct err err;

    if (!call || call->method || call->answered)
        return; /* trailers of a client mean nothing here */
    conn_active(call->conn);
    if (check_headers(call, &err) < 0) {
        refuse(call, &err);
        return;
    }
    if (call->method->max_request)
        h2_stream_max_message(stream, call->method->max_request);
    auth_call(call);
    if (call->conn->held || h2_queued_total(call->conn->link.h2) > QUEUED_BYTES ||
        (call->ident->roles == RPC_ROLES_LATER && !call->ident->refused.code)) {
        call->paused = true; /* (3) */
        h2_pause(stream);
        conn_hold(call->conn, call);
    } else {
        call_go(call);
    }
}

static void on_stream_message(struct rpc_call *call, const uint8_t *bytes, size_t len)
{
    ProtobufCMessage *message = NULL;
    struct err err;

    if (call->answered || call->cancelled || !call->watch || !call->watch->on_message)
        return;
    if (!call->method->request) {
        call->packed = bytes;
        call->packed_len = len;
    } else if (pb_unpack(call->method->request, &call->message_arena, bytes, len, &message, &err) <
               0) {
        call->cancelled = true;
        call_send_error(call, &err);
        call_dirty(call);
        if (call->watch->on_cancel)
            call->watch->on_cancel(call);
        return;
    }
    struct h2_stream *stream = call->stream;
    call->watch->on_message(call, message);
    call = h2_stream_data(stream); /* still there: the stream holds it; (1) */
    if (call)
        arena_recycle(&call->message_arena);
}

static void on_message(struct h2_stream *stream, const uint8_t *bytes, size_t len)
{
    struct rpc_call *call = h2_stream_data(stream);
    ProtobufCMessage *message = NULL;
    struct err err;

    if (!call || call->answered)
        return;
    if (call->method->kind == RPC_BIDI) {
        on_stream_message(call, bytes, len);
    } else if (call->has_request) {
        err_set(&err, ERR_BAD_MESSAGE, "%s takes one message", call->method->path);
        refuse(call, &err);
    } else if (call->method->request &&
               pb_unpack(call->method->request, &call->arena, bytes, len, &message, &err) < 0) {
        refuse(call, &err);
    } else {
        call->has_request = true;
        call->request = message;
        if (!call->method->request) {
            call->packed = len ? arena_copy(&call->arena, bytes, len) : "";
            call->packed_len = len;
        }
    }
}

static void on_end(struct h2_stream *stream)
{
    struct rpc_call *call = h2_stream_data(stream);
    struct err err;

    if (!call || call->answered)
        return;
    call->ended_in = true;
    if (call->method->kind == RPC_BIDI) {
        if (call->handed && !call->cancelled && call->watch && call->watch->on_half_close)
            call->watch->on_half_close(call);
    } else if (complete(call)) {
        hand_over(call);
    } else {
        err_set(&err, ERR_BAD_MESSAGE, "%s needs a message", call->method->path);
        refuse(call, &err);
    }
}

/* The caller is gone, its time is over, or it broke a rule; the handler still has to answer. */
static void cancel(struct rpc_call *call)
{
    call->cancelled = true;
    if (call->watch && call->watch->on_cancel)
        call->watch->on_cancel(call);
}

static void on_bad(struct h2_stream *stream, const struct err *why)
{
    struct rpc_call *call = h2_stream_data(stream);

    if (!call || call->answered)
        return;
    if (!call->handed) {
        refuse(call, why);
    } else {
        call_send_error(call, why);
        call_dirty(call);
        cancel(call);
    }
}

static void on_drained(struct h2_stream *stream)
{
    struct rpc_call *call = h2_stream_data(stream);

    if (call && !call->answered && !call->cancelled && call->watch && call->watch->on_writable)
        call->watch->on_writable(call);
}

static void on_closed(struct h2_stream *stream, const struct err *why)
{
    struct rpc_call *call = h2_stream_data(stream);

    (void)why;
    if (!call)
        return;
    if (call->method) /* a call that never became one is no activity */
        conn_active(call->conn);
    detach(call);
    if (call->answered || !call->handed)
        call_free(call);
    else if (!call->cancelled)
        cancel(call);
}

static void on_goaway(void *ctx)
{
    (void)ctx;
}

static void on_pong(void *ctx)
{
    struct conn *conn = ctx;

    conn->ping_ms = 0;
}

const struct h2_events server_events = {
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

static void on_deadline(struct timer *timer)
{
    struct rpc_call *call = CONTAINER_OF(timer, struct rpc_call, timer);
    struct err err;

    if (call->answered || call->cancelled || !call->stream)
        return;
    err_set(&err, ERR_DEADLINE,
            call->handed ? "the deadline passed before the answer was ready"
                         : "the request did not arrive in time");
    if (!call->handed) {
        refuse(call, &err);
    } else {
        call_send_error(call, &err);
        call_dirty(call);
        cancel(call);
    }
}

void call_expire(struct rpc_call *call, int64_t now_ms)
{
    call->answered_ms = now_ms;
    h2_reset(call->stream, H2_RESET_CANCEL);
    call_dirty(call);
}
