/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_priv.h - what server.c (sockets), conn.c (connections), call.c and answer.c (calls) and auth.c share
 */
#ifndef RPC_SERVER_PRIV_H
#define RPC_SERVER_PRIV_H

#include "base/map.h"
#include "rpc/link.h"
#include "rpc/listen.h"
#include "rpc/rpc.h"
#include "rpc/status.h"

struct conn;

/* An identity with its roles, shared by the calls that rest on it. */
struct ident {
    unsigned refs;
    struct conn *conn; /* NULL when it is gone */
    struct rpc_identity id;
    unsigned roles; /* RPC_ROLES_LATER while the answer is due */
    int64_t roles_until_us;
    struct err refused; /* code set: the proof was not good */
    char *token;        /* as the authorization header had it; NULL for the connection's own */
    bool counted;       /* in the table of connections per uid */
};

struct metadata {
    struct metadata *next;
    const char *name, *value;
};

struct listener {
    union listen_handle uv;
    struct rpc_server *server;
    struct listener *next;
    struct timer later; /* a connection waits for the next turn of the loop */
    char *path;
    uint16_t port;
};

struct rpc_server {
    struct rpc_loop *loop;
    struct rpc_server_options options;
    struct map methods;
    struct map per_uid; /* uid → count of connections */
    struct listener *listeners;
    struct conn *conns, *conns_last; /* least recently active first */
    struct rpc_call *spare;
    unsigned spare_count, refs;
    struct h2_budget budget;
    bool leading, stopping, freed, stopped_told;
    char leader[STATUS_LEADER_BYTES];
    struct rpc_server_stats stats;
    unsigned listening;
    struct timer grace;
    void (*stopped)(void *ctx);
    void *stopped_ctx;
};

struct conn {
    struct link link;
    struct rpc_server *server;
    struct conn *prev, *next;
    struct rpc_call *calls;             /* whose stream is open */
    struct rpc_call *held, **held_last; /* not yet given to their handlers */
    struct ident *own;                  /* unix credentials, certificate or anonymous */
    struct ident *token;                /* of the last authorization header */
    struct timer timer;
    int64_t since_ms, active_ms;
    int64_t ping_ms, pinged_ms; /* the PING not yet answered, or 0; the last one */
    int64_t leaving_ms;         /* when the peer was told that we close, or 0 */
    bool left;                  /* and that no more calls are taken */
    bool local, proven;         /* proven: some call was authenticated */
    bool is_unix, is_daemon;    /* is_daemon: a node or a controller, which must answer PINGs */
    bool plain_refused;         /* plain from another host: every call is told so */
    char peer[64];
};

struct rpc_call {
    struct rpc_server *server;
    struct conn *conn;            /* NULL when the connection is gone */
    struct h2_stream *stream;     /* NULL when the stream is gone */
    struct rpc_call *prev, *next; /* of conn->calls, or spare */
    struct rpc_call *held_next;
    const struct rpc_method *method;
    struct ident *ident;
    struct arena arena, message_arena;
    struct timer timer;
    int64_t deadline_ms; /* INT64_MAX: none */
    int64_t answered_ms;
    struct metadata *metadata;
    const char *path, *authorization;
    const ProtobufCMessage *request;
    const void *packed;
    size_t packed_len;
    const struct rpc_watch *watch;
    void *data;
    const char *note; /* not NULL: options.answered is told */
    struct err bad;   /* found wrong before the handler could be called */
    uint8_t request_id[RPC_REQUEST_ID_BYTES];
    bool is_post, is_grpc, has_request_id, has_request, ended_in, handed, answered, cancelled;
    bool held_listed, headers_done;
    bool paused, handler_paused; /* by conn_hold(), by rpc_pause() */
};

/* server.c */
void server_ref(struct rpc_server *server);
void server_unref(struct rpc_server *server);
void server_check_stopped(struct rpc_server *server);

/* conn.c */
int conn_accept(struct rpc_server *server, uv_stream_t *listener, bool is_unix);
int conn_adopt(struct rpc_server *server, int fd, struct err *err);
void conn_drain(struct conn *conn);
void conn_active(struct conn *conn);
void conn_run_held(struct conn *conn);
void conn_hold(struct conn *conn, struct rpc_call *call);
void conn_unhold(struct conn *conn, struct rpc_call *call);

/* call.c */
extern const struct h2_events server_events;
void call_go(struct rpc_call *call); /* goes on when its identity is known */
void call_expire(struct rpc_call *call, int64_t now_ms);
void call_dirty(struct rpc_call *call);
void call_send_error(struct rpc_call *call, const struct err *err);
void call_answered(struct rpc_call *call); /* the handler is done with it */

/* auth.c */
void ident_ref(struct ident *ident);
void ident_unref(struct ident *ident);
/* Whom the connection itself shows: nobody so far. */
struct ident *auth_connection(struct conn *conn);
/* The subject of its certificate: "node:n1". */
void auth_certificate(struct conn *conn, const char *subject);
/* Sets call->ident; roles may be RPC_ROLES_LATER. */
void auth_call(struct rpc_call *call);
/* The call's roles, or an error that says why it is refused. */
int auth_check(const struct rpc_call *call, struct err *err);
void auth_forget(struct conn *conn);
bool auth_count(struct conn *conn, struct ident *ident);

#endif
