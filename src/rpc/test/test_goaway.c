/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_goaway.c - a connection ends while a request is on its way: served, repeated, or lost; never done twice
 */
#include "harness.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "rpc/h2.h"

enum { UNUSED_MS = 150, ALL_IDS = 0x7fffffff, FRAME_HEAD = 9, TYPE_GOAWAY = 7 };

/* ---- a client that reads late ---- */

struct peer {
    int fd;
    struct h2 *h2;
    struct str in; /* read, and not looked at by h2 */
    bool ended;
    unsigned closed, messages, refused;
};

static bool peer_open(void *ctx, struct h2_stream *stream)
{
    (void)ctx, (void)stream;
    return false;
}

static void peer_header(struct h2_stream *stream, const struct h2_header *header)
{
    (void)stream, (void)header;
}

static void peer_nothing(struct h2_stream *stream)
{
    (void)stream;
}

static void peer_message(struct h2_stream *stream, const uint8_t *bytes, size_t len)
{
    struct peer *peer = h2_stream_data(stream);

    (void)bytes, (void)len;
    peer->messages++;
}

static void peer_bad(struct h2_stream *stream, const struct err *why)
{
    (void)stream, (void)why;
}

static void peer_closed(struct h2_stream *stream, const struct err *why)
{
    struct peer *peer = h2_stream_data(stream);

    (void)why;
    peer->closed++;
    peer->refused += h2_refused(stream);
}

static void peer_event(void *ctx)
{
    (void)ctx;
}

static const struct h2_events peer_events = {
    .open = peer_open,
    .header = peer_header,
    .headers = peer_nothing,
    .message = peer_message,
    .end = peer_nothing,
    .bad = peer_bad,
    .drained = peer_nothing,
    .closed = peer_closed,
    .goaway = peer_event,
    .pong = peer_event,
};

static void peer_write(struct peer *peer)
{
    const uint8_t *bytes;
    size_t len;

    while ((len = h2_send(peer->h2, &bytes)) > 0)
        assert_int_equal(write(peer->fd, bytes, len), len);
}

static void peer_connect(struct peer *peer)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };

    *peer = (struct peer){ .fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    snprintf(addr.sun_path, sizeof(addr.sun_path), "%.100s", address + strlen("unix:"));
    assert_int_equal(connect(peer->fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
    fcntl(peer->fd, F_SETFL, O_NONBLOCK);
    peer->h2 = h2_new(&(struct h2_options){ .events = &peer_events, .ctx = peer });
    peer_write(peer);
}

static void peer_read(struct peer *peer)
{
    char bytes[4096];
    ssize_t got;

    while ((got = read(peer->fd, bytes, sizeof(bytes))) > 0)
        str_add_len(&peer->in, bytes, (size_t)got);
    peer->ended |= got == 0;
}

/* The streams that the last GOAWAY leaves alone; -1: there was none. */
static int64_t said_goaway(const struct peer *peer)
{
    const uint8_t *at = (const uint8_t *)peer->in.data;
    int64_t last = -1;

    for (size_t left = peer->in.len; left >= FRAME_HEAD;) {
        size_t len = ((size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2]) + FRAME_HEAD;
        if (len > left)
            break;
        if (at[3] == TYPE_GOAWAY)
            last = (int64_t)at[9] << 24 | at[10] << 16 | at[11] << 8 | at[12];
        at += len;
        left -= len;
    }
    return last;
}

static void until_goaway(struct peer *peer, int64_t want)
{
    for (int i = 0; i < 20000 && said_goaway(peer) != want; i++) {
        spin_ms(1);
        peer_read(peer);
    }
    assert_int_equal(said_goaway(peer), want);
}

static void peer_ask(struct peer *peer, const char *path, uint32_t number)
{
    EchoMessage message = text_message("on its way", number);
    struct h2_header headers[] = {
        H2_HEADER(":method", "POST"),
        H2_HEADER(":scheme", "http"),
        H2_HEADER(":path", path),
        H2_HEADER(":authority", "spur"),
        H2_HEADER("content-type", "application/grpc"),
        H2_HEADER("te", "trailers"),
    };
    struct h2_stream *stream = h2_request(peer->h2, headers, ARRAY_LEN(headers), peer);
    size_t len = echo_message__get_packed_size(&message);

    assert_non_null(stream);
    echo_message__pack(&message, h2_queue(stream, len));
    h2_finish(stream);
    peer_write(peer);
}

static void peer_take(struct peer *peer)
{
    struct err err;

    if (peer->in.len)
        assert_int_equal(h2_recv(peer->h2, peer->in.data, peer->in.len, 0, &err), 0);
    str_clear(&peer->in);
}

static void peer_close(struct peer *peer)
{
    close(peer->fd);
    str_done(&peer->in);
    h2_free(peer->h2);
}

static int setup_impatient(void **state)
{
    (void)state;
    start_server(&(struct rpc_server_options){
        .ctx = &echo, .roles = echo_roles, .handshake_ms = UNUSED_MS, .idle_ms = UNUSED_MS });
    return 0;
}

static void peer_answered(struct peer *peer, unsigned calls)
{
    for (int i = 0; i < 20000 && peer->closed < calls; i++) {
        spin_ms(1);
        peer_read(peer);
        peer_take(peer);
    }
    assert_int_equal(peer->messages, calls);
    assert_int_equal(peer->refused, 0);
}

/* The server closes a connection without a call; a request was sent before the peer could know. */
static void what_is_on_its_way_is_served(void **state)
{
    struct peer peer;

    (void)state;
    for (unsigned used = 0; used <= 1; used++) { /* never, and not for a while */
        peer_connect(&peer);
        if (used) {
            peer_ask(&peer, "/echo.Echo/Say", 0);
            peer_answered(&peer, 1);
        }
        until_goaway(&peer, ALL_IDS);
        peer_ask(&peer, "/echo.Echo/Say", 0);
        peer_answered(&peer, used + 1);
        until_goaway(&peer, used ? 3 : 1); /* the one that was taken */
        for (int i = 0; i < 20000 && !peer.ended; i++) {
            spin_ms(1);
            peer_read(&peer);
        }
        assert_true(peer.ended);
        peer_close(&peer);
    }
}

/* What comes after the last one that is taken is not done. */
static void what_is_late_is_not_done(void **state)
{
    struct peer peer;

    (void)state;
    peer_connect(&peer);
    peer_ask(&peer, "/echo.Echo/Say", 300);
    for (int i = 0; i < 20000 && echo.held < 1; i++)
        spin_ms(1);
    rpc_server_stop(echo.server, 10000, NULL, NULL); /* GOAWAY is queued, not sent */
    peer_ask(&peer, "/echo.Echo/Say", 1);
    until_goaway(&peer, 1);
    assert_int_equal(echo.held, 1);
    peer_take(&peer);
    assert_int_equal(peer.refused, 1);
    for (int i = 0; i < 20000 && peer.closed < 2; i++) {
        spin_ms(1);
        peer_read(&peer);
        peer_take(&peer);
    }
    assert_int_equal(peer.messages, 1); /* the first one is answered */
    peer_close(&peer);
}

/* ---- a server that closes ---- */

static struct fake {
    uv_pipe_t listener, conn;
    char path[128];
    int64_t last; /* of its GOAWAY; -1: it says nothing */
    unsigned connections;
} fake;

static void fake_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    static const char settings[] = { 0, 0, 0, 4, 0, 0, 0, 0, 0 };
    char goaway[] = { 0, 0, 8, TYPE_GOAWAY, 0, 0, 0, 0, 0, 0, 0, 0, (char)fake.last, 0, 0, 0, 0 };
    uv_buf_t out[2] = { uv_buf_init((char *)(uintptr_t)settings, sizeof(settings)),
                        uv_buf_init(goaway, sizeof(goaway)) };

    (void)buf;
    if (got <= 0 || uv_is_closing((uv_handle_t *)stream))
        return;
    assert_true(uv_try_write(stream, out, fake.last < 0 ? 1 : 2) > 0);
    uv_close((uv_handle_t *)stream, NULL);
}

static void fake_alloc(uv_handle_t *handle, size_t wanted, uv_buf_t *buf)
{
    static char bytes[65536];

    (void)handle, (void)wanted;
    *buf = uv_buf_init(bytes, sizeof(bytes));
}

static void fake_accept(uv_stream_t *stream, int status)
{
    assert_int_equal(status, 0);
    uv_pipe_init(stream->loop, &fake.conn, 0);
    assert_int_equal(uv_accept(stream, (uv_stream_t *)&fake.conn), 0);
    uv_read_start((uv_stream_t *)&fake.conn, fake_alloc, fake_read);
    fake.connections++;
}

/* A client that asks the fake one first, then the real one. */
static void fake_start(int64_t last)
{
    char both[300];

    fake.last = last;
    fake.connections = 0;
    start_server(NULL);
    snprintf(fake.path, sizeof(fake.path), "%s/fake", dir);
    uv_pipe_init(uv_default_loop(), &fake.listener, 0);
    assert_int_equal(uv_pipe_bind(&fake.listener, fake.path), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&fake.listener, 8, fake_accept), 0);
    snprintf(both, sizeof(both), "unix:%s,%s", fake.path, address);
    start_client(both);
}

static void fake_ask(struct result *result)
{
    EchoMessage message = text_message("once", 0);

    ask("/echo.Echo/Say", &message, 20000, result);
    memset(&message, 0, sizeof(message)); /* what is sent again is a copy */
    spin(&result->done, 1);
    assert_int_equal(fake.connections, 1);
}

static void fake_stop(void)
{
    uv_close((uv_handle_t *)&fake.listener, NULL);
    stop_all();
}

static void what_was_refused_is_sent_again(void **state)
{
    struct result result;

    (void)state;
    fake_start(0);
    fake_ask(&result);
    assert_int_equal(result.code, ERR_OK);
    assert_string_equal(result.reply, "once");
    assert_int_equal(result.done, 1);
    fake_stop();
}

static void what_may_have_been_done_is_not(void **state)
{
    struct result result;

    (void)state;
    for (int64_t last = -1; last <= 1; last += 2) { /* closed without a word; it had been taken */
        fake_start(last);
        fake_ask(&result);
        assert_int_equal(result.code, ERR_CONNECTION_LOST);
        fake_stop();
    }
}

LOOP_MAIN(cmocka_unit_test_setup_teardown(what_is_on_its_way_is_served, setup_impatient, teardown),
          cmocka_unit_test_setup_teardown(what_is_late_is_not_done, setup_impatient, teardown),
          cmocka_unit_test(what_was_refused_is_sent_again),
          cmocka_unit_test(what_may_have_been_done_is_not))
