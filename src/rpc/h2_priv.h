/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2_priv.h - what h2.c (session), h2_in.c (bytes to messages) and h2_out.c (messages to bytes) share
 */
#ifndef RPC_H2_PRIV_H
#define RPC_H2_PRIV_H

#include <nghttp2/nghttp2.h>

#include "rpc/h2.h"

enum { PREFIX_BYTES = 5 };

struct out_message {
    struct out_message *next;
    void *memory; /* freed with it, or NULL when the bytes follow this struct */
    const uint8_t *body;
    size_t len, sent; /* sent counts the prefix too */
    uint8_t prefix[PREFIX_BYTES];
    uint8_t space[];
};

struct h2_in {
    uint8_t prefix[PREFIX_BYTES];
    unsigned prefix_len;
    size_t need, have; /* of the message that is being put together */
    uint8_t *buf;
    size_t cap, charged;
    uint8_t *held; /* arrived while paused, not yet acknowledged to the peer */
    size_t held_len, held_cap, held_charged;
    bool paused, feeding, ignore, ended, end_told, accepted;
};

struct h2_out {
    struct out_message *first, *last;
    size_t queued;
    bool started, deferred, finish, was_high, finished;
    nghttp2_nv *trailers; /* one block with its text */
    size_t trailer_count;
};

struct h2_stream {
    struct h2 *h2;
    struct h2_stream *prev, *next; /* of h2->streams */
    struct h2_stream *drain_next;
    void *data;
    int32_t id;
    size_t header_bytes, max_message;
    struct h2_in in;
    struct h2_out out;
    bool drain_listed, too_many_headers, close_pending, dead, refused;
};

struct bucket {
    int64_t tokens_milli, last_ms;
};

struct h2 {
    nghttp2_session *session;
    const struct h2_events *events;
    void *ctx;
    bool server, goaway_in, goaway_out, flooded;
    int32_t goaway_last; /* what we said in it: later ones are not taken */
    size_t max_message, queued;
    unsigned stream_count;
    struct h2_stream *streams;
    struct h2_stream *drained;
    struct h2_stream *spare; /* one freed stream, kept for the next */
    struct h2_budget *budget, own_budget;
    int64_t now_ms;
    struct bucket buckets[4];
    const char *flood; /* which frame, when flooded */
};

void in_data(struct h2_stream *stream, const uint8_t *bytes, size_t len);
void in_end(struct h2_stream *stream);
void in_bad(struct h2_stream *stream, const struct err *why);
void in_done(struct h2_stream *stream);

ssize_t out_read(nghttp2_session *session, int32_t id, uint8_t *buf, size_t length, uint32_t *flags,
                 nghttp2_data_source *source, void *ctx);
void out_done(struct h2_stream *stream);

void stream_close(struct h2_stream *stream, const struct err *why);
nghttp2_nv nv_of(const struct h2_header *header);

#endif
