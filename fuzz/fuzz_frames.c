/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_frames.c - bytes of a peer that means harm, into the engine that servers and clients share
 *
 * The first byte chooses: bit 0 the side we play (server or client), bit 1 whether the rest is raw or a
 * list of frames (kind, flags, stream, length, contents), bits 2… how it is cut into reads. Whatever
 * comes, every stream is closed once, the budget is given back, and answers stay in proportion.
 */
#include "fuzz/fuzz.h"
#include "proto/echo.pb-c.h"
#include "rpc/h2.h"
#include "rpc/status.h"
#include "wire/pb_unpack.h"

enum { BUDGET = 1 << 20, MOST = 100000, STREAMS = 4096 };

struct peer {
    struct h2 *h2;
    struct h2_budget budget;
    unsigned opened, closed, open;
    struct h2_stream *paused;
    struct status status;
    size_t sent;
    bool server;
};

static struct peer peer;

static bool on_open(void *ctx, struct h2_stream *stream)
{
    (void)ctx;
    peer.opened++;
    peer.open++;
    h2_stream_set_data(stream, &peer);
    return true;
}

static void on_header(struct h2_stream *stream, const struct h2_header *header)
{
    CHECK(h2_stream_data(stream) == &peer);
    CHECK(header->name_len > 0);
    if (!peer.server)
        status_header(&peer.status, header);
}

static void on_headers(struct h2_stream *stream)
{
    if (peer.server && !peer.paused && h2_streams(peer.h2) % 3 == 2) {
        peer.paused = stream;
        h2_pause(stream);
    }
}

static void on_message(struct h2_stream *stream, const uint8_t *bytes, size_t len)
{
    struct arena arena = { 0 };
    ProtobufCMessage *message;
    struct err err;

    CHECK(stream != peer.paused);
    CHECK(len <= MOST);
    bool good = pb_unpack(&echo_message__descriptor, &arena, bytes, len, &message, &err) == 0;
    if (peer.server && good) {
        uint8_t *space = h2_queue(stream, protobuf_c_message_get_packed_size(message));
        protobuf_c_message_pack(message, space);
    } else if (!good) {
        CHECK(err.text[0]);
        h2_reset(stream, H2_RESET_CANCEL);
    }
    arena_done(&arena);
}

static void on_end(struct h2_stream *stream)
{
    if (peer.server)
        h2_end(stream, NULL, 0);
}

static void on_bad(struct h2_stream *stream, const struct err *why)
{
    CLEANUP(str_done) struct str scratch = { 0 };
    struct h2_header trailers[STATUS_TRAILERS];

    CHECK(why->code && why->text[0]);
    if (peer.server)
        h2_end(stream, trailers, status_trailers(why, NULL, &scratch, trailers));
    else
        h2_reset(stream, H2_RESET_CANCEL);
}

static void on_drained(struct h2_stream *stream)
{
    (void)stream;
}

static void on_closed(struct h2_stream *stream, const struct err *why)
{
    CHECK(!why || why->text[0]);
    CHECK(peer.open > 0);
    if (peer.paused == stream)
        peer.paused = NULL;
    peer.closed++;
    peer.open--;
}

static void on_nothing(void *ctx)
{
    (void)ctx;
}

static const struct h2_events events = { on_open, on_header,  on_headers, on_message, on_end,
                                         on_bad,  on_drained, on_closed,  on_nothing, on_nothing };

static void send_all(void)
{
    const uint8_t *bytes;
    size_t len;

    while ((len = h2_send(peer.h2, &bytes)) > 0)
        peer.sent += len;
}

static void ask(void)
{
    const struct h2_header headers[] = {
        H2_HEADER(":method", "POST"),
        H2_HEADER(":scheme", "http"),
        H2_HEADER(":path", "/e/S"),
        H2_HEADER(":authority", "x"),
        H2_HEADER("content-type", "application/grpc"),
    };

    for (int i = 0; i < 3; i++) {
        struct h2_stream *stream = h2_request(peer.h2, headers, 5, &peer);
        CHECK(stream);
        peer.opened++;
        peer.open++;
        memset(h2_queue(stream, 2), 0, 2);
        if (i)
            h2_finish(stream);
    }
    send_all();
}

/* The list of frames, written as a peer would write them. */
static void write_frames(struct str *out, const uint8_t *data, size_t size)
{
    size_t at = 0;

    while (size - at >= 4 && out->len < MOST) {
        uint8_t kind = data[at] % 12, flags = data[at + 1], stream = data[at + 2] % 16;
        size_t len = MIN((size_t)data[at + 3], size - at - 4);
        const uint8_t head[9] = { 0, 0, (uint8_t)len, kind, flags, 0, 0, 0, stream };
        str_add_len(out, head, sizeof(head));
        str_add_len(out, data + at + 4, len);
        at += 4 + len;
    }
}

static void feed(const char *bytes, size_t len, size_t chunk)
{
    int64_t now_ms = 1;
    struct err err;

    for (size_t at = 0; at < len; at += chunk) {
        int rc = h2_recv(peer.h2, bytes + at, MIN(chunk, len - at), now_ms++, &err);
        CHECK(peer.budget.used <= peer.budget.max);
        send_all();
        if (peer.paused) {
            struct h2_stream *stream = TAKE(peer.paused);
            h2_resume(stream);
        }
        if (rc < 0) {
            CHECK(err.text[0]);
            return;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
    CLEANUP(str_done) struct str bytes = { 0 };
    struct err err;

    if (size < 2 || size > MOST)
        return 0;
    peer = (struct peer){ .budget.max = BUDGET, .server = data[0] & 1 };
    peer.h2 = h2_new(&(struct h2_options){ .server = peer.server,
                                           .max_message = MOST,
                                           .budget = &peer.budget,
                                           .events = &events,
                                           .ctx = &peer });
    if (peer.server && (data[0] & 2))
        str_add_len(&bytes, preface, sizeof(preface)); /* the NUL ends the SETTINGS frame */
    if (!peer.server)
        ask();
    if (data[0] & 2)
        write_frames(&bytes, data + 1, size - 1);
    else
        str_add_len(&bytes, data + 1, size - 1);
    static const size_t chunks[] = { 1, 2, 7, 64, 1000, MOST };
    feed(str_text(&bytes), bytes.len, chunks[(data[0] >> 2) % ARRAY_LEN(chunks)]);
    CHECK(peer.sent <
          4096 + 64 * (bytes.len + 64)); /* nobody is made to say much by saying little */
    CHECK(h2_streams(peer.h2) == peer.open);
    h2_free(peer.h2);
    CHECK(peer.open == 0 && peer.opened == peer.closed);
    CHECK(peer.budget.used == 0);
    int rc = status_result(&peer.status, &err);
    CHECK(rc == 0 || err.text[0]);
    status_done(&peer.status);
    return 0;
}
