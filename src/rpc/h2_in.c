/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2_in.c - the bytes of a stream become messages
 *
 * (1) A message's length is checked when its prefix is complete, before memory is taken; memory then
 *     grows with the bytes that arrive, so a claim alone costs nothing.
 * (2) A message that arrived in one piece is handed on where it lies, without a copy.
 * (3) Bytes are acknowledged to the peer when they are used, so a paused stream holds one window.
 * (4) What is held or partly there is charged to the budget, and given back before `closed`. What an
 *     accepted stream holds is not: it is one window, and strangers must not be able to use it up.
 */
#include <stdlib.h>
#include <string.h>

#include "rpc/h2_priv.h"

enum { KEEP_BYTES = 64 * 1024, FIRST_BYTES = 1024 };

static bool charge(struct h2_stream *stream, size_t more)
{
    struct h2_budget *budget = stream->h2->budget;

    if (more > budget->max - MIN(budget->used, budget->max)) {
        struct err err;
        err_set(&err, ERR_TOO_MANY, "the server holds too many unfinished messages; try again");
        in_bad(stream, &err);
        return false;
    }
    budget->used += more;
    stream->in.charged += more;
    return true;
}

static void refund(struct h2_stream *stream, size_t bytes)
{
    stream->h2->budget->used -= bytes;
    stream->in.charged -= bytes;
}

/* Room for `want` bytes in *buf, charged or not; (1) doubles, but never beyond `most`. */
static bool grow(struct h2_stream *stream, uint8_t **buf, size_t *cap, size_t want, size_t most,
                 bool charged)
{
    if (want <= *cap)
        return true;
    size_t bigger = MIN(MAX(MAX(want, *cap * 2), (size_t)FIRST_BYTES), MAX(most, want));
    if (charged && !charge(stream, bigger - *cap))
        return false;
    uint8_t *moved = realloc(*buf, bigger);
    if (!moved) {
        struct err err;
        if (charged)
            refund(stream, bigger - *cap);
        err_set(&err, ERR_NO_MEMORY, "no memory for a message of %zu bytes", want);
        in_bad(stream, &err);
        return false;
    }
    *buf = moved;
    *cap = bigger;
    return true;
}

void in_bad(struct h2_stream *stream, const struct err *why)
{
    if (stream->in.ignore)
        return;
    stream->in.ignore = true;
    stream->h2->events->bad(stream, why);
}

static void deliver(struct h2_stream *stream, const uint8_t *bytes)
{
    struct h2_in *in = &stream->in;
    size_t len = in->need;

    in->prefix_len = 0;
    in->need = in->have = 0;
    stream->h2->events->message(stream, bytes, len);
    if (in->cap > KEEP_BYTES) {
        refund(stream, in->cap);
        free(TAKE(in->buf));
        in->cap = 0;
    }
}

static void check_prefix(struct h2_stream *stream)
{
    struct h2_in *in = &stream->in;
    const uint8_t *p = in->prefix;
    uint32_t len = (uint32_t)p[1] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 8 | p[4];
    struct err err;

    if (p[0] != 0) {
        err_set(&err, ERR_UNSUPPORTED,
                p[0] == 1 ? "compressed messages are not supported" : "malformed message prefix");
        in_bad(stream, &err);
    } else if (len > stream->max_message) { /* (1) */
        err_set(&err, ERR_TOO_LARGE, "a message of %u bytes is larger than the limit of %zu", len,
                stream->max_message);
        in_bad(stream, &err);
    } else {
        in->need = len;
        in->have = 0;
        if (len == 0)
            deliver(stream, in->prefix);
    }
}

/* Uses as much as it may and returns how much that was. */
static size_t feed(struct h2_stream *stream, const uint8_t *bytes, size_t len)
{
    struct h2_in *in = &stream->in;
    size_t used = 0;

    while (used < len && !in->paused && !in->ignore) {
        if (in->prefix_len < PREFIX_BYTES) {
            in->prefix[in->prefix_len++] = bytes[used++];
            if (in->prefix_len == PREFIX_BYTES)
                check_prefix(stream);
            continue;
        }
        size_t take = MIN(len - used, in->need - in->have);
        if (take == in->need) { /* (2) */
            used += take;
            deliver(stream, bytes + used - take);
            continue;
        }
        if (!grow(stream, &in->buf, &in->cap, in->have + take, in->need, true))
            break;
        memcpy(in->buf + in->have, bytes + used, take);
        in->have += take;
        used += take;
        if (in->have == in->need)
            deliver(stream, in->buf);
    }
    return in->ignore ? len : used;
}

static void hold(struct h2_stream *stream, const uint8_t *bytes, size_t len)
{
    struct h2_in *in = &stream->in;
    size_t before = in->held_cap;

    if (!grow(stream, &in->held, &in->held_cap, in->held_len + len, SIZE_MAX, !in->accepted))
        return;
    if (!in->accepted)
        in->held_charged += in->held_cap - before;
    memcpy(in->held + in->held_len, bytes, len);
    in->held_len += len;
}

static void release_held(struct h2_stream *stream)
{
    struct h2_in *in = &stream->in;

    refund(stream, in->held_charged);
    in->held_charged = in->held_cap = 0;
    free(TAKE(in->held));
}

static void acknowledge(struct h2_stream *stream, size_t len)
{
    if (len)
        nghttp2_session_consume_stream(stream->h2->session, stream->id, len); /* (3) */
}

void in_data(struct h2_stream *stream, const uint8_t *bytes, size_t len)
{
    struct h2_in *in = &stream->in;
    size_t used = 0;

    if (in->ignore) {
        acknowledge(stream, len);
        return;
    }
    if (in->held_len == 0 && !in->paused) {
        in->feeding = true;
        used = feed(stream, bytes, len);
        in->feeding = false;
        acknowledge(stream, used);
    }
    if (used < len)
        hold(stream, bytes + used, len - used);
}

/* Tells the end once, when nothing before it is held back. */
static void tell_end(struct h2_stream *stream)
{
    struct h2_in *in = &stream->in;

    if (!in->ended || in->end_told || in->paused || in->held_len || in->ignore)
        return;
    in->end_told = true;
    if (in->prefix_len) {
        struct err err;
        err_set(&err, ERR_BAD_MESSAGE, "the stream ended inside a message");
        in_bad(stream, &err);
    } else {
        stream->h2->events->end(stream);
    }
}

void in_end(struct h2_stream *stream)
{
    stream->in.ended = true;
    tell_end(stream);
}

void h2_pause(struct h2_stream *stream)
{
    stream->in.paused = true;
}

static void feed_held(struct h2_stream *stream)
{
    struct h2_in *in = &stream->in;
    size_t used = feed(stream, in->held, in->held_len);

    if (!stream->close_pending)
        acknowledge(stream, used);
    in->held_len -= used;
    memmove(in->held, in->held + used, in->held_len);
    if (!in->held_len)
        release_held(stream);
}

void h2_resume(struct h2_stream *stream)
{
    struct h2_in *in = &stream->in;

    in->paused = false;
    if (in->feeding)
        return; /* whoever feeds goes on */
    in->feeding = true;
    if (in->held_len)
        feed_held(stream);
    tell_end(stream);
    in->feeding = false;
    if (stream->close_pending && !in->paused && (!in->held_len || in->ignore))
        stream_close(stream, NULL);
}

void in_done(struct h2_stream *stream)
{
    free(stream->in.buf);
    free(stream->in.held);
    refund(stream, stream->in.charged); /* (4) */
    memset(&stream->in, 0, sizeof(stream->in));
}
