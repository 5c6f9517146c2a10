/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.c - calls of the controller for an exchange
 *
 * (1) Who led last is asked first. "I do not lead" and a broken connection lead to the next one, after a pause.
 * (2) A stream of which something has come is not begun again: the caller has a part of it.
 * (3) What was lost may have been done. It is repeated all the same: a read has no effect, and a change has a
 *     request id by which the controller knows it.
 */
#include "spurrestd/ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/address.h"
#include "rpc/coding.h"
#include "rpc/link.h"
#include "spurrestd/rest.h"
#include "sys/digest.h"
#include "sys/rng.h"

enum { AGAIN_MS = 50, CALL_MS = 30 * 1000 };

struct upstream {
    struct rpc_loop *loop;
    struct rpc_client *clients[ADDRESS_LIST_MAX];
    size_t count, leads; /* (1) */
};

struct ask {
    struct upstream *upstream;
    struct exchange *x; /* NULL: our own */
    void *ctx;
    own_done *own_done;
    own_message *own_message;
    struct ask *next, **before; /* in x->asks */
    struct ask_call call;
    struct rpc_request *request;
    struct timer again;
    int64_t until_ms;
    size_t client;
    bool got, paused; /* (2) */
    uint8_t id[RPC_REQUEST_ID_BYTES];
};

struct upstream *upstream_new(struct rpc_loop *loop, const char *addresses, struct tls_ctx *tls,
                              bool allow_plaintext, struct err *err)
{
    struct upstream *upstream = NEW(struct upstream);
    struct address_list list;

    upstream->loop = loop;
    if (address_list_parse(addresses, ADDRESS_PORT_CONTROLLER, &list, err) < 0)
        goto fail;
    for (size_t i = 0; i < list.len; i++) {
        char text[ADDRESS_TEXT_BYTES];
        if (tls && !list.items[i].path[0])
            list.items[i].tls = ADDRESS_TLS_ALWAYS; /* our certificate says who we are */
        address_text(&list.items[i], text);
        const struct rpc_client_options options = {
            .addresses = text, .tls = tls, .allow_plaintext = allow_plaintext, .backoff_max_ms = 500
        };
        upstream->clients[i] = rpc_client_new(loop, &options, err);
        if (!upstream->clients[i])
            goto fail;
        upstream->count++;
    }
    return upstream;
fail:
    upstream_free(upstream);
    return NULL;
}

void upstream_free(struct upstream *upstream)
{
    if (!upstream)
        return;
    for (size_t i = 0; i < upstream->count; i++)
        rpc_client_free(upstream->clients[i]);
    free(upstream);
}

bool upstream_answers(const struct upstream *upstream, const char *address)
{
    for (size_t i = 0; i < upstream->count; i++) {
        const char *peer = rpc_client_peer(upstream->clients[i]);
        if (rpc_client_state(upstream->clients[i]) == RPC_READY && address &&
            str_ends(peer, address))
            return true;
    }
    return false;
}

static void ask_free(struct ask *ask)
{
    loop_timer_clear(ask->upstream->loop, &ask->again);
    if (ask->before) {
        *ask->before = ask->next;
        if (ask->next)
            ask->next->before = ask->before;
    }
    free(ask);
}

void ask_cancel(struct ask *ask)
{
    if (ask->request)
        rpc_request_cancel(ask->request);
    ask_free(ask);
}

void ask_cancel_all(struct exchange *x)
{
    while (x->asks)
        ask_cancel(x->asks);
}

static bool may_repeat(const struct ask *ask, const struct err *err)
{
    bool lost = err->code == ERR_NOT_LEADER || err->code == ERR_UNREACHABLE ||
                err->code == ERR_CONNECTION_LOST || err->code == ERR_SHUTTING_DOWN;

    return lost && !ask->got && loop_now_ms(ask->upstream->loop) < ask->until_ms;
}

static void finish(struct ask *ask, const ProtobufCMessage *reply, const struct err *err)
{
    struct exchange *x = ask->x;
    ask_done *done = ask->call.done;
    own_done *own = ask->own_done;
    void *ctx = ask->ctx;

    ask_free(ask);
    if (x)
        done(x, reply, err);
    else
        own(ctx, reply, err);
}

static void on_done(struct rpc_request *request, const ProtobufCMessage *reply,
                    const struct err *err)
{
    struct ask *ask = rpc_request_data(request);
    struct upstream *upstream = ask->upstream;

    ask->request = NULL;
    if (!err) {
        upstream->leads = ask->client;
        finish(ask, reply, NULL);
    } else if (may_repeat(ask, err)) {
        if (upstream->leads == ask->client)
            upstream->leads = (ask->client + 1) % upstream->count; /* (1) */
        loop_timer_set(upstream->loop, &ask->again, loop_now_ms(upstream->loop) + AGAIN_MS);
    } else {
        struct err copy = *err;
        finish(ask, NULL, &copy);
    }
}

static void on_message(struct rpc_request *request, const ProtobufCMessage *message)
{
    struct ask *ask = rpc_request_data(request);

    ask->got = true;
    ask->upstream->leads = ask->client;
    if (ask->x)
        ask->call.message_came(ask->x, message);
    else
        ask->own_message(ask->ctx, message);
}

static void start(struct ask *ask)
{
    const struct ask_call *call = &ask->call;
    struct upstream *upstream = ask->upstream;
    struct rpc_metadata metadata = { "authorization", NULL };
    char path[128];

    if (ask->x && !call->ours)
        metadata.value = ask->x->authorization;
    snprintf(path, sizeof(path), "%s%s", call->method[0] == '/' ? "" : "/spur.Controller/",
             call->method);
    ask->client = upstream->leads;
    const struct rpc_request_options options = {
        .path = path,
        .message = call->message,
        .reply = call->reply,
        .timeout_ms = call->endless ? 0 : CALL_MS,
        .request_id = call->change ? ask->id : NULL,
        .metadata = &metadata,
        .metadata_count = metadata.value ? 1 : 0,
        .data = ask,
        .on_message = call->message_came || ask->own_message ? on_message : NULL,
        .on_done = on_done,
    };
    ask->request = rpc_request_start(upstream->clients[ask->client], &options);
}

static void on_again(struct timer *timer)
{
    start(CONTAINER_OF(timer, struct ask, again));
}

/* The caller's key counts for that caller alone: the controller keeps ids by uid. */
static void make_id(struct ask *ask)
{
    const char *key = ask->x ? exchange_field(ask->x, "Idempotency-Key") : NULL;
    uint8_t digest[DIGEST_BYTES];

    if (str_is_empty(key)) {
        rng_bytes(ask->id, sizeof(ask->id));
        return;
    }
    digest_sha256(key, strlen(key), digest);
    memcpy(ask->id, digest, sizeof(ask->id));
}

static struct ask *ask_new(struct upstream *upstream, const struct ask_call *call)
{
    struct ask *ask = NEW(struct ask);

    ask->upstream = upstream;
    ask->call = *call;
    ask->again.fire = on_again;
    ask->until_ms = loop_now_ms(upstream->loop) + LIMIT_HTTP_WAIT_MS;
    return ask;
}

struct ask *ask_start(struct exchange *x, const struct ask_call *call)
{
    struct ask *ask = ask_new(x->rest->upstream, call);

    ask->x = x;
    ask->next = x->asks;
    ask->before = &x->asks;
    if (ask->next)
        ask->next->before = &ask->next;
    x->asks = ask;
    make_id(ask);
    start(ask);
    return ask;
}

struct ask *ask_own(struct upstream *upstream, const struct ask_call *call, void *ctx,
                    own_done *done, own_message *message)
{
    struct ask *ask = ask_new(upstream, call);

    ask->ctx = ctx;
    ask->own_done = done;
    ask->own_message = message;
    start(ask);
    return ask;
}

void ask_pause(struct exchange *x)
{
    for (struct ask *ask = x->asks; ask; ask = ask->next) {
        if (ask->request && !ask->paused)
            rpc_request_pause(ask->request);
        ask->paused = true;
    }
}

void ask_resume(struct exchange *x)
{
    for (struct ask *ask = x->asks; ask; ask = ask->next) {
        if (ask->request && ask->paused)
            rpc_request_resume(ask->request);
        ask->paused = false;
    }
}
