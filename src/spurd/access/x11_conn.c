/* SPDX-License-Identifier: Apache-2.0 */
/*
 * x11_conn.c - the connections of a forwarded display and what goes through them
 *
 * A connection is heard until its client's first message is whole. Who does not show the cookie gets X's
 * own refusal and nothing else. Of the others the far side hears the beginning without the cookie.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "rpc/rpc.h"
#include "spurd/access/x11.h"
#include "sys/log.h"

enum { CREDIT_BYTES = LIMIT_X11_WINDOW / 4, SETUP_MAX = 1024, BACKLOG_WAIT_MS = 30000 };

struct x11_conn {
    struct x11 *of;
    uint32_t number;
    uv_tcp_t tcp;
    uv_shutdown_t shutdown;
    struct str begin; /* of the first message, until it is whole */
    bool open;        /* the far side knows of it */
    bool finishing;   /* what is written goes out, then it closes */
    size_t sent;      /* bytes that the far side has not taken */
    size_t writing;   /* bytes of the far side that the client has not taken */
    size_t credit;    /* bytes that it took and the far side does not know of */
};

static void send_data(struct x11_conn *conn, X11Data *data)
{
    X11Out out = X11_OUT__INIT;

    data->has_connection = true;
    data->connection = conn->number;
    out.what_case = X11_OUT__WHAT_DATA;
    out.data = data;
    if (conn->of->call)
        rpc_send(conn->of->call, &out.base);
}

/* ---- its end ---- */

static void on_closed(uv_handle_t *handle)
{
    struct x11_conn *conn = handle->data;

    str_done(&conn->begin);
    x11_unref(conn->of);
    free(conn);
}

static void close_conn(struct x11_conn *conn, bool say)
{
    struct x11 *x11 = conn->of;

    if (uv_is_closing((uv_handle_t *)&conn->tcp))
        return;
    for (size_t i = x11->conns.len; i-- > 0;) {
        if (x11->conns.items[i] == conn)
            vec_remove(&x11->conns, i);
    }
    if (say && conn->open) {
        X11Data data = X11_DATA__INIT;
        data.has_eof = data.eof = true;
        send_data(conn, &data);
    }
    uv_close((uv_handle_t *)&conn->tcp, on_closed);
}

static void on_shut(uv_shutdown_t *shutdown, int status)
{
    (void)status;
    close_conn(shutdown->data, false);
}

static void finish(struct x11_conn *conn)
{
    if (conn->finishing || uv_is_closing((uv_handle_t *)&conn->tcp))
        return;
    conn->finishing = true;
    conn->shutdown.data = conn;
    uv_read_stop((uv_stream_t *)&conn->tcp);
    if (uv_shutdown(&conn->shutdown, (uv_stream_t *)&conn->tcp, on_shut) < 0)
        close_conn(conn, false);
}

void x11_close_all(struct x11 *x11)
{
    while (x11->conns.len)
        close_conn(x11->conns.items[x11->conns.len - 1], false);
}

/* ---- to the client ---- */

struct writing {
    uv_write_t write;
    struct x11_conn *conn;
    size_t len;
    bool counted;
    char bytes[];
};

static void on_written(uv_write_t *write, int status)
{
    struct writing *writing = write->data;
    struct x11_conn *conn = writing->conn;
    size_t len = writing->len;
    bool counted = writing->counted;

    free(writing);
    if (uv_is_closing((uv_handle_t *)&conn->tcp) || !counted)
        return;
    if (status < 0) {
        close_conn(conn, true);
        return;
    }
    conn->writing -= len;
    conn->credit += len;
    if (conn->credit >= CREDIT_BYTES && conn->of->call) {
        X11Data data = X11_DATA__INIT;
        data.has_credit = true;
        data.credit = conn->credit;
        conn->credit = 0;
        send_data(conn, &data);
    }
}

static void write_to(struct x11_conn *conn, const void *bytes, size_t len, bool counted)
{
    struct writing *writing = mem_new(sizeof(*writing) + len);

    writing->write.data = writing;
    writing->conn = conn;
    writing->len = len;
    writing->counted = counted;
    memcpy(writing->bytes, bytes, len);
    uv_buf_t buf = uv_buf_init(writing->bytes, (unsigned)len);
    if (uv_write(&writing->write, (uv_stream_t *)&conn->tcp, &buf, 1, on_written) < 0) {
        free(writing);
        close_conn(conn, true);
    }
}

void x11_on_data(struct x11 *x11, const X11Data *data)
{
    struct x11_conn *conn = NULL;

    for (size_t i = 0; i < x11->conns.len; i++) {
        if (x11->conns.items[i]->number == data->connection)
            conn = x11->conns.items[i];
    }
    if (!conn || !conn->open || conn->finishing)
        return;
    if (data->has_credit) {
        conn->sent -= MIN(conn->sent, (size_t)data->credit);
        x11_resume(x11);
    }
    if (data->data.len) {
        conn->writing += data->data.len;
        if (conn->writing > 2 * (size_t)LIMIT_X11_WINDOW) { /* it does not keep to the window */
            close_conn(conn, true);
            return;
        }
        write_to(conn, data->data.data, data->data.len, true);
    }
    if (data->eof)
        finish(conn);
}

/* ---- from the client ---- */

static void pass(struct x11_conn *conn, const void *bytes, size_t len)
{
    X11Data data = X11_DATA__INIT;

    if (!len)
        return;
    data.has_data = true;
    data.data = (ProtobufCBinaryData){ .data = (uint8_t *)bytes, .len = len };
    conn->sent += len;
    send_data(conn, &data);
    if (conn->sent >= LIMIT_X11_WINDOW) /* (3) */
        uv_read_stop((uv_stream_t *)&conn->tcp);
}

/* (1) */
static void on_begin(struct x11_conn *conn, const void *bytes, size_t len)
{
    struct x11 *x11 = conn->of;
    X11Data data = X11_DATA__INIT;

    str_add_len(&conn->begin, bytes, len);
    uint8_t *text = (uint8_t *)conn->begin.data;
    int whole = x11_setup_bytes(text, conn->begin.len);
    if (whole == 0 && conn->begin.len < SETUP_MAX)
        return;
    if (whole <= 0) {
        close_conn(conn, false);
        return;
    }
    if (!x11_setup_shows(text, x11->cookie)) {
        CLEANUP(str_done) struct str refusal = { 0 };
        log_warn("x11.refused", "job=%u display=%u why=\"wrong cookie\"", x11->job, x11->display);
        x11_add_refusal(&refusal, text, "Invalid MIT-MAGIC-COOKIE-1 key");
        write_to(conn, refusal.data, refusal.len, false);
        finish(conn);
        return;
    }
    conn->open = true;
    data.has_head = true;
    data.head = (ProtobufCBinaryData){ .data = text, .len = X11_HEAD_BYTES };
    send_data(conn, &data);
    pass(conn, text + whole, conn->begin.len - (size_t)whole);
    str_done(&conn->begin);
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf)
{
    struct x11_conn *conn = handle->data;

    (void)hint;
    *buf = uv_buf_init((char *)conn->of->buffer, sizeof(conn->of->buffer));
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
    struct x11_conn *conn = stream->data;

    if (len < 0)
        close_conn(conn, true);
    else if (conn->open)
        pass(conn, buf->base, (size_t)len);
    else if (len > 0)
        on_begin(conn, buf->base, (size_t)len);
}

void x11_resume(struct x11 *x11)
{
    if (!x11->call)
        return;
    for (size_t i = 0; i < x11->conns.len; i++) {
        struct x11_conn *conn = x11->conns.items[i];
        if (conn->sent < LIMIT_X11_WINDOW && !conn->finishing)
            uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read); /* again is no harm */
    }
}

/* (2) */
static void on_waited(uv_timer_t *timer)
{
    struct x11 *x11 = timer->data;

    if (!x11->call)
        x11_close_all(x11);
}

void x11_on_connection(uv_stream_t *listener, int status)
{
    struct x11 *x11 = listener->data;
    struct x11_conn *conn;

    if (status < 0 || x11->closing)
        return;
    conn = NEW(struct x11_conn);
    conn->of = x11;
    conn->number = ++x11->last;
    conn->tcp.data = conn;
    x11_ref(x11);
    uv_tcp_init(x11->agent->uv, &conn->tcp);
    vec_push(&x11->conns, conn);
    if (uv_accept(listener, (uv_stream_t *)&conn->tcp) < 0 ||
        x11->conns.len > LIMIT_X11_CONNECTIONS) {
        close_conn(conn, false);
        return;
    }
    uv_tcp_nodelay(&conn->tcp, 1);
    if (!x11->call)
        uv_timer_start(&x11->timer, on_waited, BACKLOG_WAIT_MS, 0);
    x11_resume(x11);
}
