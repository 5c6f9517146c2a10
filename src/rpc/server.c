/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.c - listening, the method table, stopping
 *
 * (1) The server's memory lives as long as its owner, a listener, a connection or a call needs it.
 * (2) `stopped` is told once, when no listener and no connection is left; calls that their handlers
 *     still hold may be answered after that.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "rpc/address.h"
#include "rpc/server_priv.h"
#include "sys/log.h"
#include "wire/pb_unpack.h"

enum {
    BUFFERED_BYTES = 64 * 1024 * 1024,
    ACCEPT_MOST = 32, /* connections in a turn of the loop; others wait in the kernel */
    DROP_MOST = 200,  /* when it stops */
};

void server_ref(struct rpc_server *server)
{
    server->refs++;
}

void server_unref(struct rpc_server *server)
{
    if (--server->refs)
        return;
    while (server->spare) {
        struct rpc_call *call = server->spare;
        server->spare = call->next;
        arena_done(&call->arena);
        arena_done(&call->message_arena);
        free(call);
    }
    map_done(&server->methods);
    map_done(&server->per_uid);
    loop_timer_clear(server->loop, &server->grace);
    loop_unref(server->loop);
    free(server);
}

#define DEFAULT(field, value) ((field) = (field) ? (field) : (value))

void rpc_server_drop_tokens(struct rpc_server *server,
                            bool (*is_gone)(void *ctx, const struct rpc_identity *identity))
{
    struct err err;

    err_set(&err, ERR_UNAUTHENTICATED, "the token was revoked");
    for (struct conn *conn = server->conns; conn; conn = conn->next) {
        if (!conn->link.closing && conn->token && conn->token->id.how == RPC_HOW_JWT &&
            is_gone(server->options.ctx, &conn->token->id))
            link_close(&conn->link, &err);
    }
}

static void on_grace_over(struct timer *timer);

struct rpc_server *rpc_server_new(struct rpc_loop *loop, const struct rpc_server_options *options,
                                  struct err *err)
{
    if (!options->roles) {
        err_set(err, ERR_INTERNAL, "a server needs to know the roles of its callers");
        return NULL;
    }
    struct rpc_server *server = NEW(struct rpc_server);
    server->loop = loop;
    loop_ref(loop);
    server->options = *options;
    server->refs = 1;
    server->leading = true;
    server->grace.fire = on_grace_over;
    map_init(&server->methods);
    map_init(&server->per_uid);
    struct rpc_server_options *o = &server->options;
    DEFAULT(o->max_connections, LIMIT_CONNECTIONS);
    DEFAULT(o->max_per_uid, LIMIT_CONNECTIONS_PER_UID);
    DEFAULT(o->max_message, (size_t)LIMIT_MESSAGE_BYTES);
    DEFAULT(o->max_buffered, (size_t)BUFFERED_BYTES);
    DEFAULT(o->handshake_ms, 10 * 1000);
    DEFAULT(o->idle_ms, 5 * 60 * 1000);
    DEFAULT(o->keepalive_ms, 20 * 1000);
    DEFAULT(o->keepalive_wait_ms, 10 * 1000);
    server->budget.max = o->max_buffered;
    return server;
}

int rpc_server_add(struct rpc_server *server, const struct rpc_method *methods, size_t count,
                   struct err *err)
{
    for (size_t i = 0; i < count; i++) {
        const struct rpc_method *method = &methods[i];

        if (map_has(&server->methods, method->path))
            return err_set(err, ERR_INTERNAL, "method %s has two rows", method->path);
        if (!method->roles || !method->handle)
            return err_set(err, ERR_INTERNAL, "method %s has no roles or no handler", method->path);
        if (method->request && !pb_is_finite(method->request))
            return err_set(err, ERR_INTERNAL, "method %s: its request type contains itself",
                           method->path);
        map_put(&server->methods, method->path, (void *)(uintptr_t)method);
    }
    return 0;
}

void rpc_server_set_tls(struct rpc_server *server, struct tls_ctx *tls)
{
    server->options.tls = tls;
}

void rpc_server_set_leader(struct rpc_server *server, bool leading, const char *leader_address)
{
    server->leading = leading;
    snprintf(server->leader, sizeof(server->leader), "%s", leader_address ? leader_address : "");
}

static void on_connection(uv_stream_t *stream, int status)
{
    struct listener *listener = stream->data;

    if (status < 0) {
        log_error("rpc.accept", "failed: %s", uv_strerror(status));
        return;
    }
    if (listener->server->loop->accepted++ < ACCEPT_MOST)
        conn_accept(listener->server, stream, listener->path != NULL);
    else /* libuv listens no more until it is taken */
        loop_timer_set(listener->server->loop, &listener->later,
                       loop_now_ms(listener->server->loop));
}

static void on_later(struct timer *timer)
{
    struct listener *listener = CONTAINER_OF(timer, struct listener, later);

    listener->server->loop->accepted++;
    conn_accept(listener->server, &listener->uv.stream, listener->path != NULL);
}

static void on_listener_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;
    struct rpc_server *server = listener->server;

    server->listening--;
    free(listener->path);
    free(listener);
    server_check_stopped(server);
    server_unref(server);
}

int rpc_server_listen(struct rpc_server *server, const char *address_text, struct err *err)
{
    struct address address;

    if (address_parse(address_text, ADDRESS_PORT_CONTROLLER, &address, err) < 0)
        return -(int)ERR_INVALID;
    struct listener *listener = NEW(struct listener);
    listener->server = server;
    listener->later.fire = on_later;
    if (address.path[0])
        listener->path = mem_strdup(address.path);
    int rc =
        listen_open(server->loop->uv, &listener->uv, &address, on_connection, &listener->port, err);
    listener->uv.handle.data = listener;
    server_ref(server);
    server->listening++;
    if (rc < 0) {
        uv_close(&listener->uv.handle, on_listener_closed);
        return rc;
    }
    struct listener **last = &server->listeners;
    while (*last)
        last = &(*last)->next;
    *last = listener;
    return 0;
}

uint16_t rpc_server_port(const struct rpc_server *server, unsigned n)
{
    const struct listener *listener = server->listeners;

    while (listener && n--)
        listener = listener->next;
    return listener ? listener->port : 0;
}

int rpc_server_adopt(struct rpc_server *server, int fd, struct err *err)
{
    return conn_adopt(server, fd, err);
}

void server_check_stopped(struct rpc_server *server)
{
    if (!server->stopping || server->stopped_told || server->listening || server->conns)
        return;
    server->stopped_told = true; /* (2) */
    loop_timer_clear(server->loop, &server->grace);
    if (server->stopped)
        server->stopped(server->stopped_ctx);
}

/* True when there are more. */
static bool drop_some(struct rpc_server *server, unsigned most)
{
    struct err err;

    err_set(&err, ERR_SHUTTING_DOWN, "the server is shutting down");
    for (struct conn *conn = server->conns; conn; conn = conn->next) {
        if (conn->link.closing)
            continue;
        if (most-- == 0)
            return true;
        link_close(&conn->link, &err);
    }
    return false;
}

static void on_grace_over(struct timer *timer)
{
    struct rpc_server *server = CONTAINER_OF(timer, struct rpc_server, grace);

    if (drop_some(server, DROP_MOST)) /* the rest in the next turn of the loop */
        loop_timer_set(server->loop, &server->grace, loop_now_ms(server->loop) + 1);
}

void rpc_server_stop(struct rpc_server *server, unsigned grace_ms, void (*stopped)(void *ctx),
                     void *ctx)
{
    if (stopped) {
        server->stopped = stopped;
        server->stopped_ctx = ctx;
    }
    if (!server->stopping) {
        server->stopping = true;
        while (server->listeners) {
            struct listener *listener = server->listeners;
            server->listeners = listener->next;
            if (listener->path)
                unlink(listener->path);
            loop_timer_clear(server->loop, &listener->later);
            uv_close(&listener->uv.handle, on_listener_closed);
        }
        for (struct conn *conn = server->conns; conn; conn = conn->next)
            conn_drain(conn);
    }
    if (grace_ms && server->conns)
        loop_timer_set(server->loop, &server->grace, loop_now_ms(server->loop) + grace_ms);
    else
        drop_some(server, UINT_MAX);
    server_check_stopped(server);
}

void rpc_server_free(struct rpc_server *server)
{
    if (!server)
        return;
    rpc_server_stop(server, 0, NULL, NULL);
    server->freed = true;
    server_unref(server); /* (1) */
}

void rpc_server_stats(const struct rpc_server *server, struct rpc_server_stats *out)
{
    *out = server->stats;
    out->buffered = server->budget.used;
}
