// SPDX-License-Identifier: Apache-2.0
/*
 * x11_tunnel.c - the process that forwards X11: nodes on one side, the X server on the other
 *
 * (1) Each connection has a window each way, as on the node: one that stands still holds up no other.
 * (2) A stream that breaks is opened again with the same display and cookie, which programs have in their
 *     environment; what was connected through it is closed.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/vec.h"
#include "cli/x11.h"
#include "client/client.h"
#include "proto/x11.pb-c.h"
#include "sys/clock.h"
#include "sys/files.h"

enum { CREDIT_BYTES = LIMIT_X11_WINDOW / 4, RETRY_US = 500000, GIVE_UP_US = 60 * 1000000 };

struct far {
    struct x11_node *node;
    struct client *client;
    struct client_stream *stream;
    bool ready;
    bool over;                 /* it says that there is nothing to forward any more */
    int64_t lost_us, retry_us; /* 0: connected */
};

struct conn {
    struct far *far;
    uint32_t number;
    int fd;
    bool connecting;
    bool ending;    /* closes when `out` is written */
    struct str out; /* for the X server */
    size_t done;    /* bytes of it that are written */
    size_t sent;    /* bytes that the node has not taken */
    size_t credit;  /* bytes that the X server took and the node does not know of */
};

struct tunnel {
    const struct x11_server *server;
    struct far *fars;
    size_t count;
    VEC(struct conn *) conns;
    int life, say;
};

/* ---- to nodes ---- */

static void send_data(struct conn *conn, X11Data *data)
{
    X11In in = X11_IN__INIT;

    data->has_connection = true;
    data->connection = conn->number;
    in.what_case = X11_IN__WHAT_DATA;
    in.data = data;
    if (conn->far->stream)
        client_stream_send(conn->far->stream, &in.base);
}

static void close_conn(struct tunnel *tunnel, struct conn *conn, bool say)
{
    X11Data data = X11_DATA__INIT;

    for (size_t i = tunnel->conns.len; i-- > 0;) {
        if (tunnel->conns.items[i] == conn)
            vec_remove(&tunnel->conns, i);
    }
    data.has_eof = data.eof = true;
    if (say)
        send_data(conn, &data);
    file_close(&conn->fd);
    str_done(&conn->out);
    free(conn);
}

static void close_all(struct tunnel *tunnel, const struct far *far)
{
    for (size_t i = tunnel->conns.len; i-- > 0;) {
        if (tunnel->conns.items[i]->far == far)
            close_conn(tunnel, tunnel->conns.items[i], false);
    }
}

/* ---- the X server ---- */

/* False: it is gone. */
static bool flush(struct tunnel *tunnel, struct conn *conn)
{
    while (conn->done < conn->out.len) {
        ssize_t n = send(conn->fd, conn->out.data + conn->done, conn->out.len - conn->done,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return true;
        if (n <= 0) {
            close_conn(tunnel, conn, true);
            return false;
        }
        conn->done += (size_t)n;
        conn->credit += (size_t)n;
    }
    str_clear(&conn->out);
    conn->done = 0;
    if (conn->ending) {
        close_conn(tunnel, conn, false);
        return false;
    }
    if (conn->credit >= CREDIT_BYTES) {
        X11Data data = X11_DATA__INIT;
        data.has_credit = true;
        data.credit = conn->credit;
        conn->credit = 0;
        send_data(conn, &data);
    }
    return true;
}

static void on_new(struct tunnel *tunnel, struct far *far, const X11Data *data)
{
    const struct x11_server *server = tunnel->server;
    struct conn *conn = NEW(struct conn);

    *conn = (struct conn){ .far = far, .number = data->connection };
    conn->fd = socket(server->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    vec_push(&tunnel->conns, conn);
    int rc = connect(conn->fd, (const struct sockaddr *)&server->address, server->address_len);
    if ((rc < 0 && errno != EINPROGRESS) || data->head.len != X11_HEAD_BYTES) {
        close_conn(tunnel, conn, true);
        return;
    }
    conn->connecting = rc < 0;
    x11_add_setup(&conn->out, data->head.data, &server->auth);
    if (!conn->connecting)
        flush(tunnel, conn);
}

static void on_server(struct tunnel *tunnel, struct conn *conn, short events)
{
    uint8_t bytes[LIMIT_X11_FRAME];
    X11Data data = X11_DATA__INIT;

    if (conn->connecting && (events & (POLLOUT | POLLERR | POLLHUP))) {
        int why = 0;
        socklen_t len = sizeof(why);
        getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &why, &len);
        if (why) {
            close_conn(tunnel, conn, true);
            return;
        }
        conn->connecting = false;
    }
    if ((events & POLLOUT) && !flush(tunnel, conn))
        return;
    if (!(events & (POLLIN | POLLHUP | POLLERR)) || conn->sent >= LIMIT_X11_WINDOW)
        return;
    ssize_t n = recv(conn->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        close_conn(tunnel, conn, true);
        return;
    }
    data.has_data = true;
    data.data = (ProtobufCBinaryData){ .data = bytes, .len = (size_t)n };
    conn->sent += (size_t)n; /* (1) */
    send_data(conn, &data);
}

/* ---- from nodes ---- */

static void say(struct tunnel *tunnel, const struct far *far, bool failed, const char *text)
{
    struct x11_said said = { .node = (uint32_t)(far - tunnel->fars), .failed = failed };

    said.display = far->node->number;
    strncpy(said.text, text ? text : "", sizeof(said.text) - 1);
    ssize_t ignored = tunnel->say >= 0 ? write(tunnel->say, &said, sizeof(said)) : 0;
    (void)ignored;
}

static void on_data(struct tunnel *tunnel, struct far *far, const X11Data *data)
{
    struct conn *conn = NULL;

    if (data->has_head) {
        on_new(tunnel, far, data);
        return;
    }
    for (size_t i = 0; i < tunnel->conns.len; i++) {
        if (tunnel->conns.items[i]->far == far &&
            tunnel->conns.items[i]->number == data->connection)
            conn = tunnel->conns.items[i];
    }
    if (!conn)
        return;
    if (data->has_credit)
        conn->sent -= MIN(conn->sent, (size_t)data->credit);
    if (data->data.len) {
        str_add_len(&conn->out, data->data.data, data->data.len);
        if (conn->out.len - conn->done > 2 * (size_t)LIMIT_X11_WINDOW) {
            close_conn(tunnel, conn, true);
            return;
        }
    }
    if (data->eof)
        conn->ending = true;
    if (!conn->connecting)
        flush(tunnel, conn);
}

static void on_message(struct tunnel *tunnel, struct far *far, const X11Out *out)
{
    if (out->what_case == X11_OUT__WHAT_READY) {
        struct x11_node *node = far->node;
        bool again = node->ready;
        far->ready = node->ready = true;
        far->lost_us = 0;
        node->number = out->ready->display;
        if (out->ready->cookie.len == sizeof(node->cookie))
            memcpy(node->cookie, out->ready->cookie.data, sizeof(node->cookie));
        if (!again)
            say(tunnel, far, false, out->ready->xauthority);
    } else if (out->what_case == X11_OUT__WHAT_DATA && far->ready) {
        on_data(tunnel, far, out->data);
    }
}

/* ---- streams ---- */

static bool may_return(enum err_code code)
{
    return code == ERR_CONNECTION_LOST || code == ERR_UNREACHABLE || code == ERR_SHUTTING_DOWN ||
           code == ERR_DEADLINE || code == ERR_CANCELLED || code == ERR_TOO_MANY;
}

static void lost(struct tunnel *tunnel, struct far *far, const struct err *err)
{
    int64_t now = clock_boot_us();

    client_stream_free(TAKE(far->stream));
    client_free(TAKE(far->client));
    close_all(tunnel, far);
    far->ready = false;
    if (!far->lost_us)
        far->lost_us = now;
    far->retry_us = now + RETRY_US;
    if (far->node->ready && err->code == ERR_OK)
        far->over = true;
    else if (!may_return(err->code) || !far->node->ready || now - far->lost_us > GIVE_UP_US) {
        if (!far->node->ready)
            say(tunnel, far, true, err->text[0] ? err->text : "the node ended the stream");
        far->over = true;
    }
}

static void open_stream(struct tunnel *tunnel, struct far *far)
{
    struct x11_node *node = far->node;
    X11In in = X11_IN__INIT;
    X11Open open = X11_OPEN__INIT;
    struct err err = { 0 };

    open.has_job_id = true;
    open.job_id = node->job_id;
    open.has_layout = open.has_proof = node->layout.len > 0;
    open.layout = node->layout;
    open.proof = node->proof;
    open.has_batch = open.batch = node->batch;
    open.home = getenv("HOME");
    if (node->number) { /* (2) */
        open.has_display = open.has_cookie = true;
        open.display = node->number;
        open.cookie = (ProtobufCBinaryData){ .data = node->cookie, .len = sizeof(node->cookie) };
    }
    in.what_case = X11_IN__WHAT_OPEN;
    in.open = &open;
    far->client = client_new(&(struct client_options){ .addresses = node->address,
                                                       .token = node->token ? node->token : "",
                                                       .default_port = 6818 },
                             &err);
    if (far->client)
        far->stream = client_stream_open(
            far->client,
            &(struct client_stream_options){ .path = "/spur.NodeAccess/ForwardX11",
                                             .message = &in.base,
                                             .reply_type = &x11_out__descriptor,
                                             .open = true },
            &err);
    if (!far->stream)
        lost(tunnel, far, &err);
}

static void serve_far(struct tunnel *tunnel, struct far *far)
{
    struct arena arena;
    struct err err = { 0 };
    int next = CLIENT_AGAIN;

    arena_init(&arena);
    client_pump(far->client, &err);
    err_clear(&err);
    while (far->stream) {
        ProtobufCMessage *message;
        arena_reset(&arena);
        next = client_stream_try(far->stream, &arena, &message, &err);
        if (next != CLIENT_MESSAGE)
            break;
        on_message(tunnel, far, (const X11Out *)message);
    }
    if (far->stream && next != CLIENT_AGAIN)
        lost(tunnel, far, &err);
    arena_done(&arena);
}

/* ---- the loop ---- */

/* How long to wait; opens streams again where that is due. False: nobody is left. */
static bool reconnect(struct tunnel *tunnel, int *wait_ms)
{
    int64_t now = clock_boot_us();
    bool any = false;

    *wait_ms = -1;
    for (size_t i = 0; i < tunnel->count; i++) {
        struct far *far = &tunnel->fars[i];
        if (!far->stream && !far->over && now >= far->retry_us)
            open_stream(tunnel, far);
        any |= !far->over;
        if (!far->stream && !far->over)
            *wait_ms = RETRY_US / 1000;
    }
    return any;
}

static bool step(struct tunnel *tunnel, struct pollfd *fds)
{
    size_t count = tunnel->count, conns;
    int wait_ms;

    if (!reconnect(tunnel, &wait_ms) && tunnel->life < 0)
        return false;
    conns = tunnel->conns.len;
    fds[0] = (struct pollfd){ .fd = tunnel->life, .events = POLLIN };
    for (size_t i = 0; i < count; i++) {
        const struct far *far = &tunnel->fars[i];
        fds[1 + i] = (struct pollfd){ .fd = -1 };
        if (far->stream)
            fds[1 + i] = (struct pollfd){ .fd = client_fd(far->client),
                                          .events = client_events(far->client) };
    }
    for (size_t i = 0; i < conns; i++) {
        const struct conn *conn = tunnel->conns.items[i];
        bool writes = conn->connecting || conn->out.len > conn->done;
        bool reads = !conn->connecting && conn->sent < LIMIT_X11_WINDOW;
        fds[1 + count + i] =
            (struct pollfd){ .fd = writes || reads ? conn->fd : -1,
                             .events = (short)((writes ? POLLOUT : 0) | (reads ? POLLIN : 0)) };
    }
    if (poll(fds, 1 + count + conns, wait_ms) < 0 && errno != EINTR)
        return false;
    if (fds[0].revents)
        return false;
    /* From the last: whoever closes moves only those behind. */
    for (size_t i = conns; i-- > 0;) {
        if (i < tunnel->conns.len && fds[1 + count + i].revents &&
            tunnel->conns.items[i]->fd == fds[1 + count + i].fd)
            on_server(tunnel, tunnel->conns.items[i], fds[1 + count + i].revents);
    }
    for (size_t i = 0; i < count; i++) {
        if (tunnel->fars[i].stream)
            serve_far(tunnel, &tunnel->fars[i]);
    }
    return true;
}

void x11_tunnel(const struct x11_server *server, struct x11_node *nodes, size_t count, int life,
                int say_fd)
{
    struct tunnel tunnel = { .server = server, .count = count, .life = life, .say = say_fd };
    size_t most = 1 + count + count * LIMIT_X11_CONNECTIONS;
    struct pollfd *fds = NEW_ARRAY(struct pollfd, most);

    tunnel.fars = NEW_ARRAY(struct far, count);
    for (size_t i = 0; i < count; i++)
        tunnel.fars[i].node = &nodes[i];
    while (1 + count + tunnel.conns.len <= most && step(&tunnel, fds))
        ;
    for (size_t i = 0; i < count; i++) {
        close_all(&tunnel, &tunnel.fars[i]);
        client_stream_free(tunnel.fars[i].stream);
        client_free(tunnel.fars[i].client);
    }
    vec_done(&tunnel.conns);
    free(tunnel.fars);
    free(fds);
}
