/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2.h - one HTTP/2 connection that carries gRPC calls, without I/O
 *
 * Bytes that arrived go into h2_recv(), bytes to write come out of h2_send(); in between this
 * cuts streams into messages and joins messages into streams. The server, the loop client, the
 * blocking client and the fuzzer all drive this one engine; none of them sees nghttp2.
 *
 * Events are called from inside h2_recv(), h2_send(), h2_resume(), h2_reset() and h2_free(). They may
 * call every function here except h2_recv(), h2_send() and h2_free(). A stream is valid from its
 * first event (or from h2_request()) until its `closed` event returns.
 *
 * Memory is bounded: a stream that is paused holds at most its window; a message is refused by its
 * length prefix before a byte is taken for it; what is partly there is charged to a budget that all
 * connections of a server share.
 */
#ifndef RPC_H2_H
#define RPC_H2_H

#include "base/err.h"
#include "base/str.h"

struct h2;
struct h2_stream;

struct h2_header {
    const char *name;
    size_t name_len;
    const char *value;
    size_t value_len;
    bool unique; /* a value that will not come again: kept out of the compression table */
};

#define H2_HEADER(n, v)                                                          \
    (struct h2_header)                                                           \
    {                                                                            \
        .name = (n), .name_len = strlen(n), .value = (v), .value_len = strlen(v) \
    }

enum { H2_HEADERS_MAX = 48 }; /* in one block that we send */

struct h2_events {
    /* Server: the peer began a call. False refuses it in a way that a client may repeat. */
    bool (*open)(void *ctx, struct h2_stream *stream);
    void (*header)(struct h2_stream *stream, const struct h2_header *header);
    void (*headers)(struct h2_stream *stream); /* a block of headers or trailers is complete */
    void (*message)(struct h2_stream *stream, const uint8_t *bytes, size_t len);
    void (*end)(struct h2_stream *stream); /* the peer will send nothing more */
    /* The peer broke a rule on this stream: too large, compressed, cut off. Nothing more is read. */
    void (*bad)(struct h2_stream *stream, const struct err *why);
    void (*drained)(struct h2_stream *stream); /* h2_queued() fell under H2_LOW_BYTES again */
    /* NULL: ended in order. Otherwise reset by the peer, or the connection is gone. */
    void (*closed)(struct h2_stream *stream, const struct err *why);
    void (*goaway)(void *ctx); /* the peer takes no new streams */
    void (*pong)(void *ctx);
};

enum { H2_LOW_BYTES = 64 * 1024, H2_HIGH_BYTES = 256 * 1024 };

struct h2_budget {
    size_t used, max;
};

struct h2_options {
    bool server;
    size_t max_message;       /* 0: LIMIT_MESSAGE_BYTES */
    struct h2_budget *budget; /* NULL: this connection's own, twice max_message */
    const struct h2_events *events;
    void *ctx;
};

struct h2 *h2_new(const struct h2_options *options);
void h2_free(struct h2 *h2); /* closes what is open, with ERR_CONNECTION_LOST */

/* Negative: the peer broke the protocol; send what h2_send() still gives, then close. */
int h2_recv(struct h2 *h2, const void *bytes, size_t len, int64_t now_ms, struct err *err);
/* The next bytes to write, valid until the next call; 0 when there are none now. */
size_t h2_send(struct h2 *h2, const uint8_t **out);
bool h2_wants_write(const struct h2 *h2);
bool h2_finished(const struct h2 *h2); /* nothing more to read or write: close */

void h2_ping(struct h2 *h2);
void h2_drain(struct h2 *h2); /* GOAWAY: no new streams; h2_finished() when the last one ended */
/* Server: GOAWAY that refuses nothing, so that what is on its way is served; h2_drain() follows. */
void h2_announce(struct h2 *h2);
unsigned h2_streams(const struct h2 *h2);
size_t h2_queued_total(const struct h2 *h2);
bool h2_accepts_requests(const struct h2 *h2); /* client: no GOAWAY yet */

/* Client: begins a call. NULL when this connection can take no more. */
struct h2_stream *h2_request(struct h2 *h2, const struct h2_header *headers, size_t count,
                             void *data);

void *h2_stream_data(const struct h2_stream *stream);
void h2_stream_set_data(struct h2_stream *stream, void *data);
struct h2 *h2_stream_h2(const struct h2_stream *stream);
bool h2_refused(const struct h2_stream *stream); /* in `closed`: the peer has done nothing of it */
void h2_stream_max_message(struct h2_stream *stream, size_t bytes);
/* Somebody works on this call: what it holds while paused no longer counts against the budget. */
void h2_stream_accept(struct h2_stream *stream);

/* Queues one message of `len` bytes and returns where to write them, before anything else. */
uint8_t *h2_queue(struct h2_stream *stream, size_t len);
/* Queues bytes inside `memory`, which is freed when they are sent. */
void h2_queue_take(struct h2_stream *stream, void *memory, const uint8_t *bytes, size_t len);
size_t h2_queued(const struct h2_stream *stream);

/* Server: answers the headers without waiting for the first message. */
void h2_begin(struct h2_stream *stream);
/* Server: ends the call after what is queued. The trailers are copied; none means grpc-status 0. */
void h2_end(struct h2_stream *stream, const struct h2_header *trailers, size_t count);
/* Client: no more messages from here. */
void h2_finish(struct h2_stream *stream);

enum h2_reset_code {
    H2_RESET_NONE = 0,
    H2_RESET_INTERNAL = 2,
    H2_RESET_REFUSED = 7,
    H2_RESET_CANCEL = 8
};
/* Gives the stream up. `closed` follows, sometimes before this returns: detach the data first. */
void h2_reset(struct h2_stream *stream, enum h2_reset_code code);

void h2_pause(struct h2_stream *stream);
void h2_resume(struct h2_stream *stream);

#endif
