/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rest.h - the daemon: what its parts share
 */
#ifndef SPURRESTD_REST_H
#define SPURRESTD_REST_H

#include <uv.h>

#include "base/map.h"
#include "rpc/rpc.h"
#include "spurrestd/exchange.h"

struct upstream;
struct events;
struct conn;
struct listener;
struct tls_ctx;

enum { REST_PORT = 6820 };

struct rest_options {
    const char *controllers; /* a comma list */
    const char *const *listen;
    size_t listen_count;
    const char *state_dir;          /* our certificate and key */
    const char *token_file;         /* the join token; NULL: none */
    const char *name;               /* we are rest:NAME */
    const char *tls_cert, *tls_key; /* of this server; NULL: no TLS */
    const char *tls_ca;             /* whom to trust, instead of what joining gave */
    bool allow_plaintext;           /* callers from other hosts without TLS */
};

struct rest {
    uv_loop_t *uv;
    struct rpc_loop *loop;
    const struct rest_options *options;
    struct upstream *upstream;
    struct events *events;
    struct tls_ctx *tls_server, *tls_client;
    struct tls_ctx *tls_before; /* of the connection that we joined by */
    struct listener *listeners;
    struct conn *conns, *conns_last; /* least recently active first */
    unsigned conn_count;
    size_t body_bytes;  /* of requests that are under way */
    bool loopback_only; /* no listener takes callers from other hosts */
    bool joined;        /* we have a certificate: callers without a token can be named */
    bool stopping;
    /* The web page: answers a path that no route has, and returns true; NULL: there is none. */
    bool (*page)(struct exchange *x);
    struct map tokens; /* of callers that we named (caller.c) */
    char cluster[256]; /* its name, once the controller said it */
    struct {
        uint64_t requests, refused, by_status[6];
    } stats;
};

/* serve.c */
int rest_listen(struct rest *rest, const char *address, struct err *err);
void rest_stop_listening(struct rest *rest);

/* routes.c: finds the handler of a request that is whole, and calls it. */
void route_exchange(struct exchange *x);

/* caller.c: finds out who asks, then calls `known`; or answers 401, 403 or 503. */
void caller_identify(struct exchange *x, bool needed, void (*known)(struct exchange *x));
/* The same for a caller whom a session names: a token of that user, without the roles of staff. */
void caller_as_user(struct exchange *x, const char *user, void (*known)(struct exchange *x));
void caller_forget_all(struct rest *rest);

/* join.c: makes rest:NAME of us, with the join token; `done` comes once. */
void join_start(struct rest *rest, void (*done)(struct rest *rest, const struct err *err));
int join_tls(struct rest *rest, struct err *err);
/* The certificate that callers see; also again, when it was renewed. */
int join_server_tls(struct rest *rest, struct err *err);

#endif
