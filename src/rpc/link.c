/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.c - sockets on the loop: reads at once, writes once per iteration
 *
 * (1) A link is in loop->dirty at most once; the idle handle runs while that list is not empty, so
 *     that the loop does not wait before the prepare handle has written it out. Links are written for
 *     FLUSH_NS in one turn of the loop, who became dirty first is first. A turn begins with that.
 * (2) Reading and writing go through two buffers of the loop, so an idle connection has none.
 * (3) While the socket is full nothing more is taken from h2: flow control holds the producers.
 * (4) link_close() may be called from inside h2's events, so h2 is freed when the handle is closed,
 *     from the loop, with nothing of it on the stack.
 * (5) Links are read for READ_NS in one turn of the loop, or less when much was done in it before, and
 *     one at least; the others wait. Nobody is read twice before all who wait have been read once (a round),
 *     so that many who talk a lot hold up neither timers and answers nor those who come after them.
 *     Who waits is not polled: otherwise each turn would go through thousands that it cannot read.
 *     AGAIN_MOST of them are polled again in each turn, those whose caller is proven first.
 * (6) To read that a peer has gone takes nothing, to give up all that it had does, at the end of the turn:
 *     after ENDS_MOST of them the others wait too.
 */
#include "rpc/link.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/rpc.h"
#include "rpc/tls.h"

enum {
    ROUNDS = 16, /* buffers written for one link before others have their turn */
    FLUSH_NS = 800000,
    READ_NS = 1200000, /* (5) */
    READ_UNTIL_NS = 2000000,
    ENDS_MOST = 64, /* (6) */
    AGAIN_MOST = 2 * ENDS_MOST,
};

static void flush(struct link *link);

static uint64_t busy_ns(const struct rpc_loop *loop)
{
    return uv_hrtime() - loop->turn_ns - (uv_metrics_idle_time(loop->uv) - loop->turn_idle_ns);
}

int64_t rpc_loop_busy_us(const struct rpc_loop *loop)
{
    return (int64_t)busy_ns(loop) / 1000;
}

int64_t loop_now_ms(const struct rpc_loop *loop)
{
    return (int64_t)uv_now(loop->uv);
}

static void on_timer(uv_timer_t *handle);

static void arm(struct rpc_loop *loop)
{
    int64_t at_ms;

    if (!timers_next(&loop->timers, &at_ms)) {
        loop->armed_ms = INT64_MAX;
        uv_timer_stop(&loop->timer);
    } else if (at_ms < loop->armed_ms) {
        int64_t wait = at_ms - loop_now_ms(loop);
        loop->armed_ms = at_ms;
        uv_timer_start(&loop->timer, on_timer, wait > 0 ? (uint64_t)wait : 0, 0);
    }
}

static void on_timer(uv_timer_t *handle)
{
    struct rpc_loop *loop = handle->data;

    loop->armed_ms = INT64_MAX;
    timers_run(&loop->timers, loop_now_ms(loop));
    arm(loop);
}

void loop_timer_set(struct rpc_loop *loop, struct timer *timer, int64_t at_ms)
{
    timers_set(&loop->timers, timer, at_ms);
    arm(loop);
}

/*
 * The timer may then fire early and find nothing due; that costs less than arming it anew. It keeps
 * the loop alive while something is due, as a client that waits for its next try.
 */
void loop_timer_clear(struct rpc_loop *loop, struct timer *timer)
{
    timers_clear(&loop->timers, timer);
    if (!loop->timers.heap.len)
        arm(loop);
}

static void on_idle(uv_idle_t *handle)
{
    (void)handle; /* (1) */
}

static void undirty(struct link *link)
{
    struct rpc_loop *loop = link->loop;

    if (!link->dirty)
        return;
    link->dirty = false;
    *(link->dirty_before ? &link->dirty_before->dirty_next : &loop->dirty) = link->dirty_next;
    *(link->dirty_next ? &link->dirty_next->dirty_before : &loop->dirty_last) = link->dirty_before;
    link->dirty_next = link->dirty_before = NULL;
}

/* ---- who waits to be read: (5) ---- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf);
static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf);

static bool somebody_waits(const struct rpc_loop *loop)
{
    return loop->waiting[0].first || loop->waiting[1].first;
}

/* Behind all who wait; who was not read in this round, and was polled again in this turn, comes before them. */
static void wait_to_be_read(struct link *link)
{
    struct rpc_loop *loop = link->loop;
    struct link_queue *queue = &loop->waiting[link->proven ? 0 : 1];

    uv_read_stop(&link->uv.stream);
    link->unread = link->read_round != loop->round;
    loop->unread += link->unread;
    bool in_front = link->unread && link->again_ns == loop->turn_ns && queue->first;
    link->waits = queue;
    link->wait_before = in_front ? NULL : queue->last;
    link->wait_next = in_front ? queue->first : NULL;
    *(link->wait_before ? &link->wait_before->wait_next : &queue->first) = link;
    *(link->wait_next ? &link->wait_next->wait_before : &queue->last) = link;
    uv_idle_start(&loop->idle, on_idle);
}

static void wait_no_more(struct link *link)
{
    struct link_queue *queue = TAKE(link->waits);

    if (!queue)
        return;
    link->loop->unread -= link->unread;
    *(link->wait_before ? &link->wait_before->wait_next : &queue->first) = link->wait_next;
    *(link->wait_next ? &link->wait_next->wait_before : &queue->last) = link->wait_before;
    link->wait_next = link->wait_before = NULL;
}

static void poll_again(struct rpc_loop *loop)
{
    for (unsigned i = 0; i < AGAIN_MOST && somebody_waits(loop); i++) {
        struct link *link = loop->waiting[loop->waiting[0].first ? 0 : 1].first;
        wait_no_more(link);
        link->again_ns = loop->turn_ns;
        if (!link->paused && !link->closing && !link->close_after)
            uv_read_start(&link->uv.stream, on_alloc, on_read);
    }
}

static void on_prepare(uv_prepare_t *handle)
{
    struct rpc_loop *loop = handle->data;
    const struct link *last =
        loop->dirty_last; /* one that is not done comes behind it, once more */

    loop->turn_ns = uv_hrtime();
    loop->turn_idle_ns = uv_metrics_idle_time(loop->uv);
    loop->behind = loop->unread > 0;
    loop->round += !loop->behind; /* (5) */
    loop->read_until_ns = 0;
    loop->accepted = loop->ends = 0;
    for (bool more = last != NULL; more;) {
        struct link *link = loop->dirty;
        more = link != last && uv_hrtime() - loop->turn_ns < FLUSH_NS;
        undirty(link);
        flush(link);
    }
    poll_again(loop);
    if (!loop->dirty && !somebody_waits(loop))
        uv_idle_stop(&loop->idle);
}

struct rpc_loop *rpc_loop_new(uv_loop_t *uv)
{
    struct rpc_loop *loop = NEW(struct rpc_loop);

    signal(SIGPIPE, SIG_IGN);
    uv_loop_configure(uv, UV_METRICS_IDLE_TIME);
    loop->uv = uv;
    loop->armed_ms = INT64_MAX;
    uv_prepare_init(uv, &loop->prepare);
    uv_idle_init(uv, &loop->idle);
    uv_timer_init(uv, &loop->timer);
    loop->prepare.data = loop->idle.data = loop->timer.data = loop;
    uv_prepare_start(&loop->prepare, on_prepare);
    uv_unref((uv_handle_t *)&loop->prepare);
    uv_unref((uv_handle_t *)&loop->idle);
    loop->refs = 3;
    return loop;
}

void loop_ref(struct rpc_loop *loop)
{
    loop->refs++;
}

void loop_unref(struct rpc_loop *loop)
{
    if (--loop->refs == 0) {
        timers_done(&loop->timers);
        free(loop);
    }
}

static void on_loop_handle_closed(uv_handle_t *handle)
{
    loop_unref(handle->data);
}

void rpc_loop_free(struct rpc_loop *loop)
{
    if (!loop)
        return;
    uv_close((uv_handle_t *)&loop->prepare, on_loop_handle_closed);
    uv_close((uv_handle_t *)&loop->idle, on_loop_handle_closed);
    uv_close((uv_handle_t *)&loop->timer, on_loop_handle_closed);
}

void link_dirty(struct link *link)
{
    struct rpc_loop *loop = link->loop;

    if (link->dirty || link->closing)
        return;
    link->dirty = true;
    link->dirty_next = NULL;
    link->dirty_before = loop->dirty_last;
    if (loop->dirty_last)
        loop->dirty_last->dirty_next = link;
    else
        loop->dirty = link;
    loop->dirty_last = link;
    uv_idle_start(&loop->idle, on_idle);
}

static void on_closed(uv_handle_t *handle)
{
    struct link *link = handle->data;
    struct rpc_loop *loop = link->loop;

    undirty(link);
    wait_no_more(link);
    h2_free(TAKE(link->h2)); /* (4) */
    tls_free(TAKE(link->tls));
    free(link->pending);
    link->pending = NULL;
    struct err why = link->why;
    link->events->closed(link, why.code ? &why : NULL);
    loop_unref(loop);
}

void link_close(struct link *link, const struct err *why)
{
    if (link->closing)
        return;
    link->closing = true;
    if (why)
        link->why = *why;
    uv_close(&link->uv.handle, on_closed);
}

void link_close_after_flush(struct link *link)
{
    link->close_after = true;
    link_dirty(link);
}

static void on_written(uv_write_t *req, int status)
{
    struct link *link = req->data;

    link->writing = false;
    free(link->pending);
    link->pending = NULL;
    if (status < 0 && !link->closing) {
        struct err err;
        err_set(&err, ERR_CONNECTION_LOST, "cannot write: %s", uv_strerror(status));
        link_close(link, &err);
    } else {
        link_dirty(link);
    }
}

/* What the socket did not take waits in memory of its own; (3) */
static void write_later(struct link *link, const char *bytes, size_t len)
{
    uv_buf_t buf;

    link->pending = mem_new(len);
    memcpy(link->pending, bytes, len);
    buf = uv_buf_init(link->pending, (unsigned)len);
    link->write.data = link;
    link->writing = true;
    int rc = uv_write(&link->write, &link->uv.stream, &buf, 1, on_written);
    if (rc < 0)
        on_written(&link->write, rc);
}

/* Frames that h2 has to send. */
static size_t gather(struct link *link, char *out, size_t room)
{
    const uint8_t *bytes;
    size_t len, have = 0;

    if (link->protocol)
        return link->protocol->gather(link, out, room);
    /* A frame is at most 16 KiB and its header; one more must always fit. */
    while (have + 17 * 1024 <= room && (len = h2_send(link->h2, &bytes)) > 0) {
        memcpy(out + have, bytes, len);
        have += len;
    }
    return have;
}

/* Fills the loop's buffer with what the socket gets next; 0: nothing, or the link is closing. */
static size_t next_bytes(struct link *link)
{
    struct rpc_loop *loop = link->loop;
    struct err err;

    if (!link->tls)
        return link->opened ? gather(link, loop->out, sizeof(loop->out)) : 0;
    size_t len = tls_output(link->tls, loop->out, sizeof(loop->out));
    if (len || !link->opened)
        return len;
    len = gather(link, loop->plain, sizeof(loop->plain));
    if (len && tls_write(link->tls, loop->plain, len, &err) < 0) {
        link_close(link, &err);
        return 0;
    }
    return len ? tls_output(link->tls, loop->out, sizeof(loop->out)) : 0;
}

static void flush(struct link *link)
{
    struct rpc_loop *loop = link->loop;

    for (unsigned round = 0; !link->writing && !link->closing; round++) {
        if (round == ROUNDS) {
            link_dirty(link);
            return;
        }
        size_t len = next_bytes(link);
        if (!len)
            break;
        uv_buf_t buf = uv_buf_init(loop->out, (unsigned)len);
        int done = uv_try_write(&link->uv.stream, &buf, 1);
        if (done < 0 && done != UV_EAGAIN) {
            struct err err;
            err_set(&err, ERR_CONNECTION_LOST, "cannot write: %s", uv_strerror(done));
            link_close(link, &err);
            return;
        }
        size_t took = done > 0 ? (size_t)done : 0;
        if (took < len)
            write_later(link, loop->out + took, len - took);
    }
    if (link->writing || link->closing)
        return;
    if (link->close_after || (link->h2 && h2_finished(link->h2)))
        link_close(link, NULL);
    else if (link->opened)
        link->events->flushed(link);
}

/* (5) */
static bool may_read(struct link *link)
{
    struct rpc_loop *loop = link->loop;
    uint64_t now = uv_hrtime();

    if (loop->behind && link->read_round == loop->round)
        return false;
    if (!loop->read_until_ns) {
        uint64_t busy = busy_ns(loop);
        loop->read_until_ns = now + (busy < READ_UNTIL_NS ? MIN(READ_NS, READ_UNTIL_NS - busy) : 0);
    } else if (now > loop->read_until_ns || loop->ends >= ENDS_MOST) {
        return false;
    }
    link->read_round = loop->round;
    return true;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct link *link = handle->data;

    (void)suggested;
    if (!may_read(link)) {
        *buf = uv_buf_init(NULL, 0); /* on_read() hears UV_ENOBUFS, the socket keeps its bytes */
        return;
    }
    *buf = uv_buf_init(link->loop->in, sizeof(link->loop->in)); /* (2) */
}

/* The peer broke a rule: it may still learn that, then the link is closed. */
static void broken(struct link *link, const struct err *err)
{
    if (!link->why.code)
        link->why = *err;
    uv_read_stop(&link->uv.stream);
    link_close_after_flush(link);
}

static void plain_arrived(struct link *link, const char *bytes, size_t len)
{
    struct err err = { 0 };
    int code = link->protocol ? link->protocol->received(link, bytes, len, &err)
                              : h2_recv(link->h2, bytes, len, loop_now_ms(link->loop), &err);

    if (code < 0)
        broken(link, &err);
    else
        link_dirty(link);
}

static void make_ready(struct link *link)
{
    link->opened = true;
    link->tls_peer = NULL;
    if (!link->protocol)
        link->h2 = h2_new(&link->h2_options);
    link->events->ready(link);
    link_dirty(link);
}

static void tls_arrived(struct link *link, const char *bytes, size_t len)
{
    char *plain = link->loop->plain;
    struct err err;

    int rc = tls_input(link->tls, bytes, len, &err);
    if (rc == 0)
        rc = tls_handshake(link->tls, &err);
    link_dirty(link); /* the handshake has something to say, even when it failed */
    if (rc == 1 && !link->opened)
        make_ready(link);
    while (rc > 0 && !link->closing && !link->close_after) {
        ssize_t got = tls_read(link->tls, plain, sizeof(link->loop->plain), &err);
        if (got > 0)
            plain_arrived(link, plain, (size_t)got);
        else
            rc = (int)got;
    }
    if (rc < 0)
        broken(link, &err);
}

static void begin_tls(struct link *link)
{
    struct err err;

    if (!link->tls_ctx) {
        err_set(&err, ERR_UNSUPPORTED, "the peer speaks TLS, but there is no certificate here");
        link_close(link, &err);
        return;
    }
    link->mode = LINK_TLS;
    link->tls = tls_new(link->tls_ctx, link->tls_peer);
}

static void arrived(struct link *link, const char *bytes, size_t len)
{
    enum { TLS_HANDSHAKE_RECORD = 22 };

    if (link->mode == LINK_DETECT) {
        if (bytes[0] == TLS_HANDSHAKE_RECORD) {
            begin_tls(link);
        } else {
            link->mode = LINK_PLAIN;
            make_ready(link);
        }
    }
    if (link->closing)
        return;
    if (link->tls)
        tls_arrived(link, bytes, len);
    else
        plain_arrived(link, bytes, len);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct link *link = stream->data;
    struct err err;

    if (got == UV_ENOBUFS && !link->closing)
        wait_to_be_read(link);
    if (link->closing || got == 0 || got == UV_ENOBUFS)
        return;
    if (got < 0) {
        link->loop->ends++;
        err_set(&err, ERR_CONNECTION_LOST, "%s",
                got == UV_EOF ? "the peer closed the connection" : uv_strerror((int)got));
        link_close(link, &err);
        return;
    }
    link->read_at_ms = loop_now_ms(link->loop);
    arrived(link, buf->base, (size_t)got);
}

void link_pause(struct link *link)
{
    if (!link->paused && !link->closing)
        uv_read_stop(&link->uv.stream);
    link->paused = true;
}

void link_resume(struct link *link)
{
    if (link->paused && !link->waits && !link->closing && !link->close_after)
        uv_read_start(&link->uv.stream, on_alloc, on_read);
    link->paused = false;
}

void link_init(struct link *link, struct rpc_loop *loop, const struct link_events *events)
{
    link->loop = loop;
    link->events = events;
    loop_ref(loop);
}

void link_start(struct link *link)
{
    link->uv.handle.data = link;
    link->read_at_ms = loop_now_ms(link->loop);
    if (link->mode == LINK_PLAIN)
        make_ready(link);
    else if (link->mode == LINK_TLS)
        begin_tls(link);
    if (link->tls) { /* a client speaks first */
        struct err err;
        if (tls_handshake(link->tls, &err) < 0)
            link_close(link, &err);
        link_dirty(link);
    }
    if (!link->closing)
        uv_read_start(&link->uv.stream, on_alloc, on_read);
}
