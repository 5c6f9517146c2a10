/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h - one socket on the loop, with its HTTP/2 engine and perhaps TLS in between
 *
 * Who speaks another protocol than gRPC (spurrestd) gives a struct link_protocol instead of the engine.
 *
 * The server and the loop client embed a struct link in their connection. Writes are joined: whoever
 * queues something calls link_dirty(), and all dirty links are written once before the loop waits.
 */
#ifndef RPC_LINK_H
#define RPC_LINK_H

#include <uv.h>

#include "rpc/h2.h"
#include "rpc/timers.h"

struct tls;
struct tls_ctx;
struct link;

struct link_events {
    void (*ready)(struct link *link);   /* h2 may be used: plain told from TLS, handshake done */
    void (*flushed)(struct link *link); /* after a round of writing */
    /* The last event: the handle is closed, streams are told, the memory may be freed. */
    void (*closed)(struct link *link, const struct err *why);
};

/* Another protocol than gRPC; `link` is embedded in the connection that speaks it. */
struct link_protocol {
    /* Negative: the peer broke a rule; what is still to be sent is, then the link is closed. */
    int (*received)(struct link *link, const char *bytes, size_t len, struct err *err);
    /* Writes what is to be sent next into `out` and returns how many bytes; 0: nothing now. */
    size_t (*gather)(struct link *link, char *out, size_t room);
};

enum link_mode {
    LINK_PLAIN,
    LINK_DETECT, /* server: the first byte tells TLS from plain */
    LINK_TLS,
};

struct link {
    struct rpc_loop *loop;
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } uv;
    const struct link_events *events;
    const struct link_protocol *protocol; /* NULL: gRPC, by h2 */
    struct h2_options h2_options;
    struct h2 *h2; /* NULL until ready, and with another protocol */
    enum link_mode mode;
    struct tls_ctx *tls_ctx; /* LINK_TLS: needed; LINK_DETECT: may be NULL */
    const char *tls_peer;    /* client: whom we mean to reach; until ready */
    struct tls *tls;
    struct link *dirty_next, *dirty_before;
    struct link_queue *waits; /* to be read, in this queue; NULL: it does not */
    struct link *wait_next, *wait_before;
    uint64_t again_ns; /* the turn in which it was last polled again after waiting */
    uv_write_t write;
    char *pending; /* what the socket did not take at once */
    int64_t read_at_ms;
    uint64_t read_round; /* of the loop, when it was last read */
    struct err why;
    bool dirty, writing, closing, close_after, opened /* was ready */, paused;
    bool unread; /* it waits, and was not read in this round */
    bool proven; /* the peer's caller is known: it is read before others */
};

struct link_queue {
    struct link *first, *last;
};

struct rpc_loop {
    uv_loop_t *uv;
    uv_prepare_t prepare;
    uv_idle_t idle;
    uv_timer_t timer;
    struct timers timers;
    int64_t armed_ms;
    struct link *dirty, *dirty_last; /* first and last of those that have something to send */
    unsigned accepted, ends; /* connections that came, that the peers closed, in this turn */
    uint64_t turn_ns,
        turn_idle_ns;              /* when this turn began, and how long we had waited until then */
    uint64_t read_until_ns, round; /* in this turn, 0 none was read yet; see link.c (5) */
    struct link_queue waiting[2];  /* who waits to be read: proven ones, others */
    unsigned unread;               /* how many of them were not read in this round */
    bool behind;                   /* there were such when this turn began */
    unsigned refs;                 /* its three handles, servers, clients and links */
    char in[64 * 1024];
    char out[64 * 1024];
    char plain[64 * 1024]; /* TLS only: what is to be, or was, encrypted */
};

void loop_ref(struct rpc_loop *loop);
void loop_unref(struct rpc_loop *loop);
int64_t loop_now_ms(const struct rpc_loop *loop);
void loop_timer_set(struct rpc_loop *loop, struct timer *timer, int64_t at_ms);
void loop_timer_clear(struct rpc_loop *loop, struct timer *timer);

/* Before uv is initialised. The link holds the loop until its `closed` event. */
void link_init(struct link *link, struct rpc_loop *loop, const struct link_events *events);
/* Call when uv is initialised and connected: begins to read. */
void link_start(struct link *link);
void link_dirty(struct link *link);
void link_close(struct link *link,
                const struct err *why); /* why may be NULL; the first one counts */
void link_close_after_flush(struct link *link);
/* Stops and restarts reading; what the peer sends meanwhile waits in the kernel. */
void link_pause(struct link *link);
void link_resume(struct link *link);

#endif
