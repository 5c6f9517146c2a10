/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h1.c - HTTP/1.1 on a connection: one request at a time, read whole, then answered
 *
 * (1) What comes while a request is answered (pipelining) waits in `in`, up to the bound of a head; then reading
 *     stops until the answer has gone.
 * (2) A request that is refused by http.c ends the connection: where the next one begins is not known.
 * (3) A body is refused by its length before a byte of it is kept.
 */
#include <stdlib.h>
#include <string.h>

#include "spurrestd/conn.h"
#include "sys/log.h"

static void read_on(struct conn *conn);

/* ---- answers ---- */

static struct conn *carrier(const struct exchange *x)
{
    return x->carrier;
}

static void add_head(struct conn *conn, const struct exchange *x, int64_t length)
{
    struct str *out = &conn->out;

    str_addf(out, "HTTP/1.1 %d %s\r\n", x->status, http_reason(x->status));
    if (x->content_type)
        str_addf(out, "Content-Type: %s\r\n", x->content_type);
    if (length >= 0 && x->status != 204 && x->status != 304)
        str_addf(out, "Content-Length: %lld\r\n", (long long)length);
    else if (conn->answer_chunked)
        str_add(out, "Transfer-Encoding: chunked\r\n");
    if (!conn->keep_alive)
        str_add(out, "Connection: close\r\n");
    str_add_len(out, str_text(&x->headers), x->headers.len);
    str_add(out, "\r\n");
}

static void h1_begin(struct exchange *x, int64_t length)
{
    struct conn *conn = carrier(x);

    /* HTTP/1.0 knows no chunks: the end of the connection ends the answer. */
    conn->answer_chunked = length < 0 && conn->is_1_1;
    if (length < 0 && !conn->answer_chunked)
        conn->keep_alive = false;
    x->rest->stats.by_status[MIN(x->status / 100, 5)]++;
    add_head(conn, x, length);
    conn_active(conn);
    link_dirty(&conn->link);
}

static void h1_write(struct exchange *x, const char *bytes, size_t len)
{
    struct conn *conn = carrier(x);

    if (conn->answer_chunked)
        str_addf(&conn->out, "%zx\r\n", len);
    str_add_len(&conn->out, bytes, len);
    if (conn->answer_chunked)
        str_add(&conn->out, "\r\n");
    link_dirty(&conn->link);
}

static void forget(struct conn *conn)
{
    conn->rest->body_bytes -= conn->x->body.len;
    conn->x = NULL;
}

static void h1_end(struct exchange *x)
{
    struct conn *conn = carrier(x);

    if (conn->answer_chunked && x->method != HTTP_HEAD)
        str_add(&conn->out, "0\r\n\r\n");
    forget(conn);
    conn->since_ms = loop_now_ms(conn->link.loop);
    conn->step = H1_HEAD;
    conn_active(conn);
    if (!conn->keep_alive || conn->rest->stopping)
        link_close_after_flush(&conn->link);
    else
        link_dirty(&conn->link); /* h1_flushed() goes on with what waits */
    conn_watch(conn);
}

static void h1_abort(struct exchange *x)
{
    struct conn *conn = carrier(x);

    forget(conn);
    link_close(&conn->link, NULL);
}

static bool h1_writable(const struct exchange *x)
{
    const struct conn *conn = carrier(x);

    return conn->out.len - conn->out_at < CONN_OUT_LOW;
}

static const struct exchange_ops ops = { h1_begin, h1_write, h1_end, h1_abort, h1_writable };

/* ---- requests ---- */

/* (2) */
static void refuse(struct conn *conn, int status, const char *why)
{
    conn->rest->stats.refused++;
    log_verbose("http.refused", "peer=%s status=%d why=%s", conn->peer.text, status, why);
    str_addf(&conn->out,
             "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n"
             "Connection: close\r\n\r\n%s\n",
             status, http_reason(status), strlen(why) + 1, why);
    if (conn->x) {
        struct exchange *x = conn->x;
        forget(conn);
        exchange_free(x);
    }
    conn->keep_alive = false;
    conn->step = H1_ANSWER;
    link_pause(&conn->link);
    link_close_after_flush(&conn->link);
    conn_watch(conn);
}

static void go(struct conn *conn)
{
    conn->step = H1_ANSWER;
    conn->rest->stats.requests++;
    conn_watch(conn);
    route_exchange(conn->x);
}

static void eat(struct conn *conn, size_t len)
{
    memmove(conn->in.data, conn->in.data + len, conn->in.len - len);
    str_truncate(&conn->in, conn->in.len - len);
}

/* The head is whole: what body does it have? (3) */
static void begin_request(struct conn *conn, size_t len)
{
    struct http_head head;
    const char *why = "";
    int status = http_head_read(conn->in.data, len, &head, &why);

    if (!status && head.has_length && head.length > LIMIT_HTTP_BODY) {
        status = 413;
        why = "The body is too large";
    }
    if (!status && span_eq(head.target, "*")) {
        status = 400;
        why = "OPTIONS * is not answered here";
    }
    if (!status) {
        why = "The request target is not good";
        conn->x = exchange_new(conn->rest, &ops, conn, &conn->peer, head.method, head.target,
                               head.fields, head.field_count, &status);
    }
    if (status) {
        refuse(conn, status, why);
        return;
    }
    conn->keep_alive = head.keep_alive;
    conn->is_1_1 = head.minor == 1;
    conn->body_left = head.length;
    eat(conn, len);
    conn->scanned = 0;
    conn->since_ms = loop_now_ms(conn->link.loop);
    if (!head.chunked && !head.length) {
        go(conn);
        return;
    }
    conn->chunks = (struct http_chunks){ 0 };
    conn->in_chunks = head.chunked;
    conn->step = H1_BODY;
    if (head.expect_continue) {
        str_add(&conn->out, "HTTP/1.1 100 Continue\r\n\r\n");
        link_dirty(&conn->link);
    }
    conn_watch(conn);
}

static void read_head(struct conn *conn)
{
    long end = http_head_scan(conn->in.data, conn->in.len, &conn->scanned);

    if (end < 0)
        refuse(conn, 400, "That is not a request of HTTP/1.1");
    else if (end > LIMIT_HTTP_HEAD || (end == 0 && conn->in.len >= LIMIT_HTTP_HEAD))
        refuse(conn, 431, "The header fields are too large");
    else if (end > 0)
        begin_request(conn, (size_t)end);
    else
        conn_watch(conn);
}

static void read_body(struct conn *conn)
{
    struct str *body = &conn->x->body;
    size_t had = body->len, used = 0;
    int status = 0;

    if (conn->in_chunks) {
        status = http_chunks_take(&conn->chunks, conn->in.data, conn->in.len, body, LIMIT_HTTP_BODY,
                                  &used);
    } else {
        used = (size_t)MIN(conn->body_left, (uint64_t)conn->in.len);
        str_add_len(body, conn->in.data, used);
        conn->body_left -= used;
    }
    if (!conn_charge(conn->rest, body->len - had)) {
        str_truncate(body, had);
        refuse(conn, 503, "Too many large requests are under way");
        return;
    }
    eat(conn, used);
    if (status)
        refuse(conn, status, status == 413 ? "The body is too large" : "The chunks are not good");
    else if (conn->in_chunks ? conn->chunks.state == CHUNK_DONE : !conn->body_left)
        go(conn);
}

static void read_on(struct conn *conn)
{
    while (conn->in.len && !conn->link.closing && !conn->link.close_after &&
           conn->step != H1_ANSWER) {
        size_t before = conn->in.len;
        unsigned step = conn->step;

        if (conn->step == H1_HEAD)
            read_head(conn);
        else
            read_body(conn);
        if (conn->in.len == before && (unsigned)conn->step == step)
            break; /* more must come */
    }
    if (!conn->in.len && conn->in.cap > CONN_OUT_LOW)
        str_done(&conn->in);
}

int h1_received(struct conn *conn, const char *bytes, size_t len, struct err *err)
{
    (void)err;
    if (conn->link.close_after)
        return 0;
    if (conn->step == H1_HEAD && !conn->in.len)
        conn->since_ms = loop_now_ms(conn->link.loop); /* the first byte of a head */
    conn_active(conn);
    str_add_len(&conn->in, bytes, len);
    read_on(conn);
    if (conn->step == H1_ANSWER && conn->in.len > LIMIT_HTTP_HEAD) /* (1) */
        link_pause(&conn->link);
    return 0;
}

size_t h1_gather(struct conn *conn, char *out, size_t room)
{
    size_t len = MIN(room, conn->out.len - conn->out_at);

    if (!len)
        return 0;
    memcpy(out, conn->out.data + conn->out_at, len);
    conn->out_at += len;
    if (conn->out_at == conn->out.len) {
        if (conn->out.cap > CONN_OUT_LOW)
            str_done(&conn->out);
        else
            str_clear(&conn->out);
        conn->out_at = 0;
    } else if (conn->out_at > CONN_OUT_LOW) {
        memmove(conn->out.data, conn->out.data + conn->out_at, conn->out.len - conn->out_at);
        str_truncate(&conn->out, conn->out.len - conn->out_at);
        conn->out_at = 0;
    }
    conn_active(conn);
    return len;
}

void h1_flushed(struct conn *conn)
{
    struct exchange *x = conn->x;

    if (conn->step == H1_ANSWER && x && x->on_writable && h1_writable(x)) {
        x->on_writable(x);
    } else if (conn->step == H1_HEAD && !conn->link.close_after) {
        link_resume(&conn->link);
        if (conn->in.len)
            read_on(conn);
    }
    conn_watch(conn);
}

int64_t h1_due_ms(const struct conn *conn)
{
    if (conn->step == H1_HEAD && (conn->in.len || !conn->decided))
        return conn->since_ms + LIMIT_HTTP_HEAD_MS;
    if (conn->step == H1_HEAD)
        return conn->active_ms + LIMIT_HTTP_IDLE_MS;
    if (conn->step == H1_BODY)
        return conn->since_ms + LIMIT_HTTP_BODY_MS;
    if (conn->link.writing || conn->out.len || conn->link.close_after)
        return conn->active_ms + LIMIT_HTTP_WRITE_MS;
    return INT64_MAX;
}

void h1_timed_out(struct conn *conn)
{
    bool late = conn->step == H1_BODY || (conn->step == H1_HEAD && conn->in.len);

    if (late)
        refuse(conn, 408, "The request took too long to come");
    else
        link_close(&conn->link, NULL);
}

bool h1_idle(const struct conn *conn)
{
    return conn->step == H1_HEAD && !conn->out.len;
}

void h1_closed(struct conn *conn)
{
    if (conn->x) {
        struct exchange *x = conn->x;
        forget(conn);
        exchange_gone(x);
    }
    str_done(&conn->in);
    str_done(&conn->out);
}
