/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.c - a call as its handler sees it: what it may ask, and how it answers
 *
 * An answer to a call whose caller is gone, or whose time is over, goes nowhere and frees the call.
 */
#include <string.h>

#include "rpc/server_priv.h"
#include "rpc/tls.h"

/* ---- what handlers ask ---- */

void *rpc_call_ctx(const struct rpc_call *call)
{
    return call->server->options.ctx;
}

const struct rpc_method *rpc_call_method(const struct rpc_call *call)
{
    return call->method;
}

const struct rpc_identity *rpc_call_identity(const struct rpc_call *call)
{
    return &call->ident->id;
}

bool rpc_call_peer_key(const struct rpc_call *call, const char *subject, uint8_t out[32])
{
    const struct tls *tls = call->conn ? call->conn->link.tls : NULL;

    return tls && strcmp(tls_peer_subject(tls), subject) == 0 && tls_peer_key(tls, out);
}

unsigned rpc_call_roles(const struct rpc_call *call)
{
    return call->ident->roles;
}

struct arena *rpc_call_arena(struct rpc_call *call)
{
    return &call->arena;
}

const void *rpc_call_packed(const struct rpc_call *call, size_t *len)
{
    *len = call->packed_len;
    return call->packed;
}

const char *rpc_call_authorization(const struct rpc_call *call)
{
    return call->authorization;
}

const char *rpc_call_metadata(const struct rpc_call *call, const char *name)
{
    for (const struct metadata *item = call->metadata; item; item = item->next) {
        if (strcmp(item->name, name) == 0)
            return item->value;
    }
    return NULL;
}

const uint8_t *rpc_call_request_id(const struct rpc_call *call)
{
    return call->has_request_id ? call->request_id : NULL;
}

const char *rpc_call_peer(const struct rpc_call *call)
{
    return call->conn ? call->conn->peer : "";
}

void rpc_call_set_note(struct rpc_call *call, const char *note)
{
    call->note = note;
}

const char *rpc_call_note(const struct rpc_call *call)
{
    return call->note;
}

int64_t rpc_call_left_ms(const struct rpc_call *call)
{
    if (call->deadline_ms == INT64_MAX)
        return INT64_MAX;
    return MAX(call->deadline_ms - loop_now_ms(call->server->loop), (int64_t)0);
}

bool rpc_call_cancelled(const struct rpc_call *call)
{
    return call->cancelled;
}

void rpc_call_set_data(struct rpc_call *call, void *data)
{
    call->data = data;
}

void *rpc_call_data(const struct rpc_call *call)
{
    return call->data;
}

void rpc_watch(struct rpc_call *call, const struct rpc_watch *watch)
{
    call->watch = watch;
}

/* ---- what handlers answer ---- */

static void tell(struct rpc_call *call, const struct err *err)
{
    if (call->note && call->server->options.answered)
        call->server->options.answered(call->server->options.ctx, call, err);
    call->note = NULL; /* once */
}

static bool can_send(const struct rpc_call *call)
{
    return call->stream && !call->cancelled && !call->answered;
}

static bool too_large(const struct rpc_call *call, size_t len, struct err *err)
{
    if (len <= call->server->options.max_message)
        return false;
    err_set(err, ERR_TOO_LARGE, "the answer of %zu bytes is larger than the limit of %zu", len,
            call->server->options.max_message);
    return true;
}

void rpc_reply(struct rpc_call *call, const ProtobufCMessage *reply)
{
    struct err err;

    if (can_send(call)) {
        size_t len = protobuf_c_message_get_packed_size(reply);
        if (too_large(call, len, &err)) {
            rpc_fail(call, &err);
            return;
        }
        uint8_t *space = h2_queue(call->stream, len);
        if (!space) {
            err_set(&err, ERR_NO_MEMORY, "no memory for an answer of %zu bytes", len);
            rpc_fail(call, &err);
            return;
        }
        protobuf_c_message_pack(reply, space);
        h2_end(call->stream, NULL, 0);
    }
    tell(call, NULL);
    call_answered(call);
}

static void queue_packed(struct rpc_call *call, struct str *packed)
{
    size_t len = packed->len;
    char *memory = TAKE(packed->data);

    *packed = (struct str){ 0 };
    h2_queue_take(call->stream, memory, (const uint8_t *)memory, len);
}

void rpc_reply_packed(struct rpc_call *call, struct str *packed)
{
    struct err err;

    if (!can_send(call)) {
        str_done(packed);
    } else if (too_large(call, packed->len, &err)) {
        str_done(packed);
        rpc_fail(call, &err);
        return;
    } else {
        queue_packed(call, packed);
        h2_end(call->stream, NULL, 0);
    }
    tell(call, NULL);
    call_answered(call);
}

void rpc_fail(struct rpc_call *call, const struct err *err)
{
    if (can_send(call))
        call_send_error(call, err);
    tell(call, err);
    call_answered(call);
}

bool rpc_send(struct rpc_call *call, const ProtobufCMessage *message)
{
    if (!can_send(call))
        return false;
    size_t len = protobuf_c_message_get_packed_size(message);
    uint8_t *space = len <= call->server->options.max_message ? h2_queue(call->stream, len) : NULL;
    if (!space)
        return false;
    protobuf_c_message_pack(message, space);
    call_dirty(call);
    return true;
}

bool rpc_send_packed(struct rpc_call *call, struct str *packed)
{
    if (!can_send(call) || packed->len > call->server->options.max_message) {
        str_done(packed);
        return false;
    }
    queue_packed(call, packed);
    call_dirty(call);
    return true;
}

bool rpc_writable(const struct rpc_call *call)
{
    return can_send(call) && h2_queued(call->stream) < H2_HIGH_BYTES;
}

void rpc_end(struct rpc_call *call)
{
    if (can_send(call))
        h2_end(call->stream, NULL, 0);
    call_answered(call);
}

void rpc_pause(struct rpc_call *call)
{
    call->handler_paused = true;
    if (can_send(call))
        h2_pause(call->stream);
}

void rpc_resume(struct rpc_call *call)
{
    call->handler_paused = false;
    if (can_send(call) && !call->paused)
        h2_resume(call->stream);
    call_dirty(call);
}
