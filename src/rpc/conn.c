/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn.c - a server's connections: accepted, watched, closed
 *
 * (1) server->conns is ordered by last activity, oldest first. When the server is full, the oldest
 *     connection that never proved who it is and has no call makes room for a new one.
 * (2) One timer per connection does everything that is late: the first call, idleness, keepalive,
 *     answers nobody reads. It looks at times that events only store, so events do not move it.
 * (3) A call is held while its identity is being found or too much waits to be written; held calls go
 *     on in the order they came.
 * (4) A connection without a call is closed in order: the peer is told first (GOAWAY that refuses nothing),
 *     then, a moment later, which was the last call that we took; those after it may be repeated elsewhere.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"
#include "rpc/address.h"
#include "rpc/server_priv.h"
#include "rpc/tls.h"
#include "sys/log.h"

enum {
    QUEUED_BYTES = 4 * 1024 * 1024, /* waiting on one connection: no further call is begun */
    UNREAD_MS = 60 * 1000,          /* an answer nobody reads is dropped after this */
    LEAVE_MS = 1000,                /* what the peer sent before it knew has come by then; (4) */
    TCP_KEEPALIVE_S = 60,
};

static void on_timer(struct timer *timer);

static void list_remove(struct conn *conn)
{
    struct rpc_server *server = conn->server;

    *(conn->prev ? &conn->prev->next : &server->conns) = conn->next;
    *(conn->next ? &conn->next->prev : &server->conns_last) = conn->prev;
    conn->prev = conn->next = NULL;
}

static void list_append(struct conn *conn)
{
    struct rpc_server *server = conn->server;

    conn->prev = server->conns_last;
    conn->next = NULL;
    *(conn->prev ? &conn->prev->next : &server->conns) = conn;
    server->conns_last = conn;
}

void conn_active(struct conn *conn)
{
    conn->active_ms = loop_now_ms(conn->link.loop);
    if (conn->next) {
        list_remove(conn); /* (1) */
        list_append(conn);
    }
}

/* Plain or TLS is known now, and with TLS the peer's certificate. */
static void on_ready(struct link *link)
{
    struct conn *conn = CONTAINER_OF(link, struct conn, link);

    if (link->tls && tls_peer_subject(link->tls)[0])
        auth_certificate(conn, tls_peer_subject(link->tls));
    conn->plain_refused = !link->tls && !conn->local && !conn->server->options.allow_plaintext;
}

static void on_flushed(struct link *link)
{
    struct conn *conn = CONTAINER_OF(link, struct conn, link);

    if (conn->held)
        conn_run_held(conn);
}

static void on_closed(struct link *link, const struct err *why)
{
    struct conn *conn = CONTAINER_OF(link, struct conn, link);
    struct rpc_server *server = conn->server;

    if (why && why->code == ERR_BAD_MESSAGE) {
        server->stats.floods++;
        log_warn("rpc.dropped", "peer=%s why=%s", conn->peer, why->text);
    }
    loop_timer_clear(link->loop, &conn->timer);
    list_remove(conn);
    auth_forget(conn);
    server->stats.connections--;
    free(conn);
    server_check_stopped(server);
    server_unref(server);
}

static const struct link_events link_events = { on_ready, on_flushed, on_closed };

static bool is_leaving(const struct conn *conn)
{
    return conn->leaving_ms && !(conn->left && h2_streams(conn->link.h2));
}

static bool is_unused(const struct conn *conn, int64_t now_ms)
{
    return !h2_streams(conn->link.h2) &&
           (!conn->active_ms || conn->active_ms + conn->server->options.idle_ms <= now_ms);
}

/* When the timer must look again; (2) */
static int64_t next_look(const struct conn *conn)
{
    const struct rpc_server_options *o = &conn->server->options;

    if (is_leaving(conn))
        return conn->leaving_ms + LEAVE_MS;
    if (!conn->link.h2 || (!conn->active_ms && !h2_streams(conn->link.h2)))
        return conn->since_ms + o->handshake_ms;
    if (conn->ping_ms)
        return conn->ping_ms + o->keepalive_wait_ms;
    if (h2_streams(conn->link.h2))
        return MAX(conn->link.read_at_ms, conn->pinged_ms) + o->keepalive_ms;
    return conn->active_ms + o->idle_ms;
}

static void drop(struct conn *conn, const char *why)
{
    struct err err;

    err_set(&err, ERR_DEADLINE, "%s", why);
    log_verbose("rpc.dropped", "peer=%s why=%s", conn->peer, why);
    link_close(&conn->link, &err);
}

static void expire_calls(struct conn *conn, int64_t now_ms)
{
    struct rpc_call *next;

    for (struct rpc_call *call = conn->calls; call; call = next) {
        next = call->next;
        if (call->answered && now_ms - call->answered_ms > UNREAD_MS)
            call_expire(call, now_ms);
    }
}

/* (4) */
static void leave(struct conn *conn, int64_t now_ms)
{
    if (conn->left) {
        drop(conn, "reads nothing");
        return;
    }
    if (!conn->leaving_ms) {
        h2_announce(conn->link.h2);
        link_dirty(&conn->link);
    } else {
        conn->left = true; /* its last calls are watched as any others */
        conn_drain(conn);
        if (!h2_streams(conn->link.h2))
            link_close_after_flush(&conn->link);
    }
    conn->leaving_ms = now_ms;
    loop_timer_set(conn->link.loop, &conn->timer, next_look(conn));
}

/* The kernel tells of a dead peer on a unix socket; over TCP we have to ask. */
static void keep_alive(struct conn *conn, int64_t now_ms)
{
    conn->pinged_ms = now_ms;
    if (conn->is_unix || conn->link.writing)
        return; /* what is not even written need not be asked for again */
    conn->ping_ms = now_ms;
    h2_ping(conn->link.h2);
    link_dirty(&conn->link);
}

static void on_timer(struct timer *timer)
{
    struct conn *conn = CONTAINER_OF(timer, struct conn, timer);
    int64_t now_ms = loop_now_ms(conn->link.loop);
    int64_t due_ms = next_look(conn);

    if (conn->link.closing)
        return;
    expire_calls(conn, now_ms);
    if (due_ms <= now_ms) {
        if (!conn->link.h2) {
            drop(conn, "no call in time");
            return;
        }
        if (is_leaving(conn) || is_unused(conn, now_ms)) {
            leave(conn, now_ms);
            return;
        }
        if (conn->is_daemon && conn->ping_ms && conn->link.read_at_ms < conn->ping_ms) {
            drop(conn, "keepalive not answered");
            return;
        }
        conn->ping_ms = 0;
        if (h2_streams(conn->link.h2))
            keep_alive(conn, now_ms);
        due_ms = next_look(conn);
    }
    loop_timer_set(conn->link.loop, timer, MAX(due_ms, now_ms + 1));
}

void conn_drain(struct conn *conn)
{
    if (conn->link.closing)
        return;
    if (conn->link.h2) {
        h2_drain(conn->link.h2);
        link_dirty(&conn->link);
    } else {
        link_close(&conn->link, NULL);
    }
}

/* Room for one more; (1) */
static bool make_room(struct rpc_server *server)
{
    if (server->stats.connections < server->options.max_connections)
        return true;
    for (struct conn *conn = server->conns; conn; conn = conn->next) {
        if (!conn->proven && !conn->calls && !conn->link.closing) {
            drop(conn, "idle and unknown, others wait");
            return true;
        }
    }
    return false;
}

static void know_peer(struct conn *conn, int fd)
{
    struct sockaddr_storage addr = { 0 };
    socklen_t len = sizeof(addr);
    struct ucred cred;
    socklen_t cred_len = sizeof(cred);

    getpeername(fd, (struct sockaddr *)&addr, &len);
    conn->local = address_sockaddr_is_loopback((struct sockaddr *)&addr);
    conn->own = auth_connection(conn);
    if (addr.ss_family == AF_UNIX &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) == 0) {
        conn->own->id.how = RPC_HOW_UNIX;
        conn->own->id.has_uid = true;
        conn->own->id.uid = cred.uid;
        conn->own->id.gid = cred.gid;
        conn->own->id.pid = cred.pid;
        conn->proven = conn->link.proven = true;
        snprintf(conn->peer, sizeof(conn->peer), "uid:%u", (unsigned)cred.uid);
    } else {
        char host[INET6_ADDRSTRLEN] = "?";
        bool v6 = addr.ss_family == AF_INET6;
        uv_ip_name((struct sockaddr *)&addr, host, sizeof(host));
        snprintf(conn->peer, sizeof(conn->peer), v6 ? "[%s]:%u" : "%s:%u", host,
                 ntohs(v6 ? ((struct sockaddr_in6 *)&addr)->sin6_port
                          : ((struct sockaddr_in *)&addr)->sin_port));
    }
}

static struct conn *conn_new(struct rpc_server *server, bool is_unix)
{
    struct conn *conn = NEW(struct conn);

    conn->server = server;
    server_ref(server);
    server->stats.connections++;
    list_append(conn);
    conn->held_last = &conn->held;
    conn->timer.fire = on_timer;
    link_init(&conn->link, server->loop, &link_events);
    conn->link.h2_options = (struct h2_options){ .server = true,
                                                 .max_message = server->options.max_message,
                                                 .budget = &server->budget,
                                                 .events = &server_events,
                                                 .ctx = conn };
    conn->link.mode = is_unix ? LINK_PLAIN : LINK_DETECT;
    conn->link.tls_ctx = server->options.tls;
    if (is_unix)
        uv_pipe_init(server->loop->uv, &conn->link.uv.pipe, 0);
    else
        uv_tcp_init(server->loop->uv, &conn->link.uv.tcp);
    conn->link.uv.handle.data = &conn->link;
    conn->since_ms = loop_now_ms(server->loop);
    return conn;
}

static void conn_begin(struct conn *conn, bool is_unix, bool room)
{
    struct rpc_server *server = conn->server;
    uv_os_fd_t fd = -1;

    uv_fileno(&conn->link.uv.handle, &fd);
    know_peer(conn, fd);
    if (!room || server->stopping || !auth_count(conn, conn->own)) {
        server->stats.refused++;
        log_warn("rpc.refused", "peer=%s why=%s", conn->peer, "too many connections");
        link_close(&conn->link, NULL);
        return;
    }
    conn->is_unix = is_unix;
    if (!is_unix) {
        uv_tcp_nodelay(&conn->link.uv.tcp, 1);
        uv_tcp_keepalive(&conn->link.uv.tcp, 1, TCP_KEEPALIVE_S);
    }
    server->stats.accepted++;
    loop_timer_set(server->loop, &conn->timer, next_look(conn));
    link_start(&conn->link);
}

int conn_accept(struct rpc_server *server, uv_stream_t *listener, bool is_unix)
{
    bool room = make_room(server);
    struct conn *conn = conn_new(server, is_unix);
    int rc = uv_accept(listener, &conn->link.uv.stream);

    if (rc < 0) {
        conn->own = auth_connection(conn);
        link_close(&conn->link, NULL);
        return rc;
    }
    conn_begin(conn, is_unix, room);
    return 0;
}

int conn_adopt(struct rpc_server *server, int fd, struct err *err)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof(addr);

    if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
        return err_errno(err, errno, "adopting a socket");
    bool is_unix = addr.ss_family == AF_UNIX;
    bool room = make_room(server);
    struct conn *conn = conn_new(server, is_unix);
    int rc = is_unix ? uv_pipe_open(&conn->link.uv.pipe, fd) : uv_tcp_open(&conn->link.uv.tcp, fd);
    if (rc < 0) {
        conn->own = auth_connection(conn);
        link_close(&conn->link, NULL);
        return err_errno(err, -rc, "adopting a socket");
    }
    conn_begin(conn, is_unix, room);
    return 0;
}

void conn_hold(struct conn *conn, struct rpc_call *call)
{
    if (call->held_listed)
        return;
    call->held_listed = true;
    call->held_next = NULL;
    *conn->held_last = call;
    conn->held_last = &call->held_next;
}

void conn_unhold(struct conn *conn, struct rpc_call *call)
{
    struct rpc_call **at = &conn->held;

    if (!call->held_listed)
        return;
    while (*at != call)
        at = &(*at)->held_next;
    *at = call->held_next;
    if (conn->held_last == &call->held_next)
        conn->held_last = at;
    call->held_listed = false;
}

void conn_run_held(struct conn *conn)
{
    while (conn->held && !conn->link.closing && conn->link.h2 &&
           h2_queued_total(conn->link.h2) < QUEUED_BYTES) {
        struct rpc_call *call = conn->held;
        if (call->ident && call->ident->roles == RPC_ROLES_LATER && !call->ident->refused.code)
            return; /* (3) */
        conn_unhold(conn, call);
        call_go(call);
        link_dirty(&conn->link);
    }
}
