/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve.c - listening, and the connections of callers
 *
 * (1) rest->conns is ordered by last activity, oldest first. When there are LIMIT_HTTP_CONNECTIONS, the oldest
 *     one that is idle makes room for a new one; if none is, the new one is closed.
 * (2) One timer per connection does everything that is late; h1.c and h2.c say when to look.
 * (3) What is spoken is decided by ALPN under TLS, else by the first bytes: HTTP/2 begins with "PRI * HTTP/2.0",
 *     and no HTTP/1.1 request does. There is no Upgrade.
 * (4) Plain HTTP from another host is refused unless allowed: tokens would be seen on the way.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/address.h"
#include "rpc/listen.h"
#include "rpc/tls.h"
#include "spurrestd/conn.h"
#include "sys/log.h"

static const char PREFACE[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

struct listener {
    union listen_handle uv;
    struct rest *rest;
    struct listener *next;
    bool is_unix;
    char *path;
};

/* ---- connections ---- */

static void list_remove(struct conn *conn)
{
    struct rest *rest = conn->rest;

    *(conn->prev ? &conn->prev->next : &rest->conns) = conn->next;
    *(conn->next ? &conn->next->prev : &rest->conns_last) = conn->prev;
    conn->prev = conn->next = NULL;
}

static void list_append(struct conn *conn)
{
    struct rest *rest = conn->rest;

    conn->prev = rest->conns_last;
    conn->next = NULL;
    *(conn->prev ? &conn->prev->next : &rest->conns) = conn;
    rest->conns_last = conn;
}

void conn_active(struct conn *conn)
{
    conn->active_ms = loop_now_ms(conn->link.loop);
    if (conn->next) {
        list_remove(conn); /* (1) */
        list_append(conn);
    }
}

static bool is_idle(const struct conn *conn)
{
    return conn->h2 ? h2c_idle(conn) : h1_idle(conn);
}

void conn_watch(struct conn *conn)
{
    int64_t due_ms = conn->h2 ? h2c_due_ms(conn) : h1_due_ms(conn);

    if (conn->link.closing)
        return;
    if (due_ms == INT64_MAX)
        loop_timer_clear(conn->link.loop, &conn->timer);
    else
        loop_timer_set(conn->link.loop, &conn->timer, due_ms);
}

/* (2) */
static void on_timer(struct timer *timer)
{
    struct conn *conn = CONTAINER_OF(timer, struct conn, timer);
    int64_t due_ms = conn->h2 ? h2c_due_ms(conn) : h1_due_ms(conn);

    if (due_ms > loop_now_ms(conn->link.loop))
        conn_watch(conn);
    else if (conn->h2)
        h2c_timed_out(conn);
    else
        h1_timed_out(conn);
}

bool conn_charge(struct rest *rest, size_t bytes)
{
    if (rest->body_bytes + bytes > LIMIT_HTTP_BODIES)
        return false;
    rest->body_bytes += bytes;
    return true;
}

static void on_ready(struct link *link)
{
    struct conn *conn = CONTAINER_OF(link, struct conn, link);

    conn->peer.tls = link->tls != NULL;
    if (link->tls && tls_is_h2(link->tls)) {
        conn->decided = true;
        h2c_begin(conn);
    }
}

static void on_flushed(struct link *link)
{
    struct conn *conn = CONTAINER_OF(link, struct conn, link);

    if (conn->h2)
        h2c_flushed(conn);
    else
        h1_flushed(conn);
}

static void on_closed(struct link *link, const struct err *why)
{
    struct conn *conn = CONTAINER_OF(link, struct conn, link);
    struct rest *rest = conn->rest;

    if (why)
        log_debug("http.closed", "peer=%s why=%s", conn->peer.text, why->text);
    loop_timer_clear(link->loop, &conn->timer);
    list_remove(conn);
    if (conn->h2)
        h2c_closed(conn);
    h1_closed(conn);
    rest->conn_count--;
    free(conn);
}

static const struct link_events link_events = { on_ready, on_flushed, on_closed };

/* (3) */
static bool decide(struct conn *conn)
{
    size_t len = MIN(conn->in.len, sizeof(PREFACE) - 1);

    if (memcmp(conn->in.data, PREFACE, len) != 0) {
        conn->decided = true;
    } else if (len == sizeof(PREFACE) - 1) {
        conn->decided = true;
        h2c_begin(conn);
    }
    return conn->decided;
}

static int on_received(struct link *link, const char *bytes, size_t len, struct err *err)
{
    struct conn *conn = CONTAINER_OF(link, struct conn, link);

    if (!conn->peer.tls && !conn->peer.is_unix && !conn->peer.is_loopback &&
        !conn->rest->options->allow_plaintext) { /* (4) */
        log_warn("http.plain", "peer=%s refused: TLS is needed from other hosts", conn->peer.text);
        return err_set(err, ERR_PERMISSION, "TLS is needed from other hosts");
    }
    if (conn->decided)
        return conn->h2 ? h2c_received(conn, bytes, len, err) : h1_received(conn, bytes, len, err);
    str_add_len(&conn->in, bytes, len);
    if (!decide(conn))
        return 0;
    struct str first = conn->in;
    conn->in = (struct str){ 0 };
    int code = conn->h2 ? h2c_received(conn, first.data, first.len, err)
                        : h1_received(conn, first.data, first.len, err);
    str_done(&first);
    return code;
}

static size_t on_gather(struct link *link, char *out, size_t room)
{
    struct conn *conn = CONTAINER_OF(link, struct conn, link);

    return conn->h2 ? h2c_gather(conn, out, room) : h1_gather(conn, out, room);
}

static const struct link_protocol protocol = { on_received, on_gather };

static void know_peer(struct conn *conn, int fd)
{
    struct sockaddr_storage addr;
    struct peer *peer = &conn->peer;
    struct ucred cred;
    socklen_t len = sizeof(cred), addr_len = sizeof(addr);

    peer->fd = fd;
    if (peer->is_unix) {
        peer->asked_owner = true;
        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0) {
            peer->has_uid = true;
            peer->uid = cred.uid;
            peer->gid = cred.gid;
        }
        snprintf(peer->text, sizeof(peer->text), "unix");
        return;
    }
    char host[INET6_ADDRSTRLEN] = "?";
    unsigned port = 0;
    if (getpeername(fd, (struct sockaddr *)&addr, &addr_len) == 0) {
        const struct sockaddr_in6 *six = (const void *)&addr;
        const struct sockaddr_in *four = (const void *)&addr;
        bool is_six = addr.ss_family == AF_INET6;
        inet_ntop(addr.ss_family, is_six ? (const void *)&six->sin6_addr : &four->sin_addr, host,
                  sizeof(host));
        port = ntohs(is_six ? six->sin6_port : four->sin_port);
        peer->is_loopback = address_sockaddr_is_loopback((struct sockaddr *)&addr) ||
                            str_starts(host, "::ffff:127.");
    }
    snprintf(peer->text, sizeof(peer->text), strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

/* (1) */
static bool make_room(struct rest *rest)
{
    if (rest->conn_count < LIMIT_HTTP_CONNECTIONS)
        return true;
    for (struct conn *conn = rest->conns; conn; conn = conn->next) {
        if (!conn->link.closing && is_idle(conn)) {
            link_close(&conn->link, NULL);
            return true;
        }
    }
    return false;
}

static void on_connection(uv_stream_t *stream, int status)
{
    struct listener *listener = stream->data;
    struct rest *rest = listener->rest;

    if (status < 0) {
        log_error("http.accept", "failed: %s", uv_strerror(status));
        return;
    }
    bool room = make_room(rest);
    struct conn *conn = NEW(struct conn);
    conn->rest = rest;
    conn->peer.is_unix = listener->is_unix;
    conn->timer.fire = on_timer;
    rest->conn_count++;
    list_append(conn);
    link_init(&conn->link, rest->loop, &link_events);
    conn->link.protocol = &protocol;
    conn->link.mode = listener->is_unix ? LINK_PLAIN : LINK_DETECT;
    conn->link.tls_ctx = rest->tls_server;
    if (listener->is_unix)
        uv_pipe_init(rest->uv, &conn->link.uv.pipe, 0);
    else
        uv_tcp_init(rest->uv, &conn->link.uv.tcp);
    conn->link.uv.handle.data = &conn->link;
    if (uv_accept(stream, &conn->link.uv.stream) < 0 || !room || rest->stopping) {
        if (!room)
            log_warn("http.refused", "there are %d connections", (int)LIMIT_HTTP_CONNECTIONS);
        rest->stats.refused++;
        link_close(&conn->link, NULL);
        return;
    }
    uv_os_fd_t fd = -1;
    uv_fileno(&conn->link.uv.handle, &fd);
    know_peer(conn, fd);
    if (!listener->is_unix) {
        uv_tcp_nodelay(&conn->link.uv.tcp, 1);
        uv_tcp_keepalive(&conn->link.uv.tcp, 1, 60);
    }
    conn->active_ms = conn->since_ms = loop_now_ms(rest->loop);
    conn_watch(conn);
    link_start(&conn->link);
}

/* ---- listening ---- */

static void on_listener_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;

    free(listener->path);
    free(listener);
}

int rest_listen(struct rest *rest, const char *text, struct err *err)
{
    struct address address;
    uint16_t port;
    char shown[ADDRESS_TEXT_BYTES];

    if (address_parse(text, REST_PORT, &address, err) < 0)
        return -(int)err->code;
    struct listener *listener = NEW(struct listener);
    listener->rest = rest;
    listener->is_unix = address.path[0] != '\0';
    if (listener->is_unix)
        listener->path = mem_strdup(address.path);
    int code = listen_open(rest->uv, &listener->uv, &address, on_connection, &port, err);
    listener->uv.handle.data = listener;
    if (code < 0) {
        uv_close(&listener->uv.handle, on_listener_closed);
        return code;
    }
    listener->next = rest->listeners;
    rest->listeners = listener;
    rest->loopback_only = rest->loopback_only && address_is_local(&address);
    address.port = port;
    address_text(&address, shown);
    log_info("http.listening", "address=%s", shown);
    return 0;
}

void rest_stop_listening(struct rest *rest)
{
    while (rest->listeners) {
        struct listener *listener = rest->listeners;
        rest->listeners = listener->next;
        if (listener->path)
            unlink(listener->path);
        uv_close(&listener->uv.handle, on_listener_closed);
    }
}
