/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc.h - gRPC on a libuv loop: the server and the client that daemons keep
 *
 * One struct rpc_loop per uv_loop_t joins the writes of an iteration and holds all deadlines. Everything
 * here runs on the loop's thread. SIGPIPE is ignored by rpc_loop_new().
 *
 * A server has method tables; a call without a row is refused, and roles are checked before the
 * request is unpacked. A handler gets a struct rpc_call and answers it exactly once, now or later,
 * also when the caller has gone meanwhile: the answer then goes nowhere and frees the call.
 *
 *     static void on_submit(struct rpc_call *call, const ProtobufCMessage *message)
 *     {
 *         const SubmitJobRequest *request = (const void *)message;
 *         …
 *         rpc_reply(call, &reply.base);      or rpc_fail(call, &err);
 *     }
 *     static const struct rpc_method methods[] = {
 *         { "/spur.Controller/SubmitJob", RPC_USER, .leader_only = true, .kind = RPC_UNARY,
 *           &submit_job_request__descriptor, &submit_job_reply__descriptor, on_submit },
 *     };
 */
#ifndef RPC_RPC_H
#define RPC_RPC_H

#include <protobuf-c/protobuf-c.h>
#include <uv.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "rpc/identity.h"

struct rpc_loop;
struct rpc_server;
struct rpc_call;
struct rpc_client;
struct rpc_request;
struct tls_ctx;
struct jwt_keys;

enum { RPC_REQUEST_ID_BYTES = 16 };

struct rpc_loop *rpc_loop_new(uv_loop_t *uv);
/* Its memory goes when the last connection is closed, for which the loop must run a little longer. */
void rpc_loop_free(struct rpc_loop *loop);
/*
 * What this turn of the loop has taken until now, the wait not counted. Who works in slices looks at
 * it: each slice is short, and all of them in one turn may be long.
 */
int64_t rpc_loop_busy_us(const struct rpc_loop *loop);

/* ---- the server ---- */

enum rpc_kind {
    RPC_UNARY,         /* one request, one rpc_reply() or rpc_fail() */
    RPC_SERVER_STREAM, /* one request, any number of rpc_send(), then rpc_end() or rpc_fail() */
    RPC_BIDI, /* the handler gets NULL at the start, messages come by rpc_watch.on_message */
};

struct rpc_method {
    const char *path; /* "/spur.Controller/SubmitJob" */
    unsigned roles;   /* a caller needs one of these */
    bool leader_only; /* refused with ERR_NOT_LEADER and the leader's address while not leading */
    enum rpc_kind kind;
    const ProtobufCMessageDescriptor *request; /* NULL: not unpacked; see rpc_call_packed() */
    const ProtobufCMessageDescriptor *reply;   /* documentation and reflection; may be NULL */
    void (*handle)(struct rpc_call *call, const ProtobufCMessage *request);
    size_t max_request; /* bytes; 0: LIMIT_MESSAGE_BYTES */
};

/* What rpc_server_options.roles returns when it must look something up first. */
#define RPC_ROLES_LATER (~0u)
struct rpc_auth; /* one such answer that is due */

struct rpc_server_options {
    void *ctx; /* of every callback here, and rpc_call_ctx() */

    /*
     * The roles of an identity; RPC_ANON is added by itself. Asked every few seconds per identity and
     * connection. To answer later: keep `auth`, return RPC_ROLES_LATER and call rpc_auth_done().
     */
    unsigned (*roles)(void *ctx, const struct rpc_identity *identity, struct rpc_auth *auth);
    /* A call that has a note (rpc_call_set_note()) is answered; err NULL: as it was asked. */
    void (*answered)(void *ctx, struct rpc_call *call, const struct err *err);
    const struct jwt_keys *jwt; /* who may sign tokens; NULL: tokens are refused */
    bool munge;                 /* accept MUNGE credentials, when libmunge is there */
    struct tls_ctx *tls;        /* certificate of this server; NULL: no TLS */
    bool allow_plaintext;       /* also from other hosts */

    unsigned max_connections, max_per_uid; /* 0: the limits of base/limits.h */
    size_t max_message;                    /* 0: LIMIT_MESSAGE_BYTES */
    size_t max_buffered;                   /* of unfinished requests, all connections; 0: 64 MB */
    unsigned handshake_ms;                 /* until the first call is complete; 0: 10 s */
    unsigned idle_ms;                      /* without a call; 0: 5 minutes */
    /*
     * PING over TCP after this silence; 0: 20 s and 10 s. A node or controller that does not answer is
     * dropped; a command may be stopped in its terminal, and is dropped when its kernel says nothing.
     */
    unsigned keepalive_ms, keepalive_wait_ms;
};

/* Fails when a method's request type contains itself, or a path comes twice. */
struct rpc_server *rpc_server_new(struct rpc_loop *loop, const struct rpc_server_options *options,
                                  struct err *err);
/* Adds rows; the table must outlive the server. */
int rpc_server_add(struct rpc_server *server, const struct rpc_method *methods, size_t count,
                   struct err *err);
/*
 * "unix:/path" (a stale socket is replaced; mode 0666, since the kernel says who connects) or
 * "host:port", port 0 for any free one. May be called several times.
 */
int rpc_server_listen(struct rpc_server *server, const char *address, struct err *err);
/* The port of the n-th rpc_server_listen(), 0 for a unix socket. */
uint16_t rpc_server_port(const struct rpc_server *server, unsigned n);
/* Takes a connected socket over; its kind decides how the peer is known. */
int rpc_server_adopt(struct rpc_server *server, int fd, struct err *err);

/* Certificates were renewed: from the next connection on. */
void rpc_server_set_tls(struct rpc_server *server, struct tls_ctx *tls);

void rpc_server_set_leader(struct rpc_server *server, bool leading, const char *leader_address);

/* Ends the connections whose token `is_gone` says is not good any more. */
void rpc_server_drop_tokens(struct rpc_server *server,
                            bool (*is_gone)(void *ctx, const struct rpc_identity *identity));

/*
 * Takes no new calls, lets those under way end for grace_ms, then drops the rest. `stopped` comes
 * when the last connection is closed. rpc_server_free() stops at once if need be; calls not yet
 * answered may still be answered after it.
 */
void rpc_server_stop(struct rpc_server *server, unsigned grace_ms, void (*stopped)(void *ctx),
                     void *ctx);
void rpc_server_free(struct rpc_server *server);

struct rpc_server_stats {
    uint64_t accepted, refused, calls, failed, floods;
    unsigned connections, calls_open;
    size_t buffered; /* bytes of unfinished requests */
};
void rpc_server_stats(const struct rpc_server *server, struct rpc_server_stats *out);

/* Before rpc_auth_done(), or before `roles` answers: calls with this proof fail with *err. */
void rpc_auth_refuse(struct rpc_auth *auth, const struct err *err);
void rpc_auth_done(struct rpc_auth *auth, const struct rpc_identity *identity, unsigned roles);

/* ---- a call at the server ---- */

void *rpc_call_ctx(const struct rpc_call *call);
const struct rpc_method *rpc_call_method(const struct rpc_call *call);
const struct rpc_identity *rpc_call_identity(const struct rpc_call *call);
unsigned rpc_call_roles(const struct rpc_call *call);
/*
 * SHA-256 of the public key that the connection's certificate has, if that is of this subject ("node:n1"). False: there
 * is no such certificate, whatever the call's token says.
 */
bool rpc_call_peer_key(const struct rpc_call *call, const char *subject, uint8_t out[32]);
struct arena *rpc_call_arena(struct rpc_call *call); /* lives until the answer */
/* The request as it came, when its method has no request type: valid until the answer. */
const void *rpc_call_packed(const struct rpc_call *call, size_t *len);
/* The authorization header that the call came with; NULL: none. */
const char *rpc_call_authorization(const struct rpc_call *call);
/* NULL when there is none. Binary metadata ("-bin") is given as text. */
const char *rpc_call_metadata(const struct rpc_call *call, const char *name);
/* The 16 bytes of spur-request-id-bin, or NULL. */
const uint8_t *rpc_call_request_id(const struct rpc_call *call);
/* Where it comes from, "10.0.0.7:40112" or "uid:1000"; empty when the caller has gone. */
const char *rpc_call_peer(const struct rpc_call *call);
/* What options.answered will want to know; lives as long as the call. */
void rpc_call_set_note(struct rpc_call *call, const char *note);
const char *rpc_call_note(const struct rpc_call *call);
int64_t rpc_call_left_ms(const struct rpc_call *call); /* until its deadline; INT64_MAX: none */
bool rpc_call_cancelled(const struct rpc_call *call);
void rpc_call_set_data(struct rpc_call *call, void *data);
void *rpc_call_data(const struct rpc_call *call);

struct rpc_watch {
    /* The message is valid until this returns; NULL for a method without request type. */
    void (*on_message)(struct rpc_call *call, const ProtobufCMessage *message);
    void (*on_half_close)(struct rpc_call *call); /* the caller sends nothing more */
    void (*on_writable)(struct rpc_call *call);   /* after rpc_writable() was false */
    /* The caller is gone or its time is over. The call must still be answered. */
    void (*on_cancel)(struct rpc_call *call);
};
/* The watch must outlive the call; members may be NULL. */
void rpc_watch(struct rpc_call *call, const struct rpc_watch *watch);

void rpc_reply(struct rpc_call *call, const ProtobufCMessage *reply);
void rpc_reply_packed(struct rpc_call *call, struct str *packed); /* takes the bytes */
void rpc_fail(struct rpc_call *call, const struct err *err);

/* False: nobody reads any more; end it. Never blocks; look at rpc_writable() to stay bounded. */
bool rpc_send(struct rpc_call *call, const ProtobufCMessage *message);
bool rpc_send_packed(struct rpc_call *call, struct str *packed); /* takes the bytes */
bool rpc_writable(const struct rpc_call *call); /* less than 256 KB wait to be sent */
void rpc_end(struct rpc_call *call);

/* Stops and restarts the messages of a stream; the peer is held back by flow control. */
void rpc_pause(struct rpc_call *call);
void rpc_resume(struct rpc_call *call);

/* ---- the client of daemons ---- */

enum rpc_state { RPC_CONNECTING, RPC_READY, RPC_WAITING /* for the next try */ };

struct rpc_client_options {
    const char *addresses; /* comma list, tried in turn */
    uint16_t default_port; /* 0: 6817 */
    void *ctx;
    struct tls_ctx *tls;  /* how to trust the server, and our certificate; NULL: no TLS */
    const char *peer;     /* whose certificate to expect, "node:n1"; NULL: the host's */
    bool allow_plaintext; /* also to other hosts */
    /* Writes the value of `authorization` for a call, or nothing. Asked for every call. */
    void (*credentials)(void *ctx, struct str *out);
    void (*state)(void *ctx, enum rpc_state state, const struct err *why);
    unsigned connect_ms; /* 0: 5 s */
    unsigned backoff_min_ms,
        backoff_max_ms; /* 0: 100 ms and 10 s, doubled each time, with jitter */
    unsigned keepalive_ms, keepalive_wait_ms; /* 0: 10 s and 5 s */
    size_t max_message;
};

struct rpc_client *rpc_client_new(struct rpc_loop *loop, const struct rpc_client_options *options,
                                  struct err *err);
/* Open requests end with ERR_CANCELLED before this returns. Not from inside the client's callbacks. */
void rpc_client_free(struct rpc_client *client);
enum rpc_state rpc_client_state(const struct rpc_client *client);
/* Connects to these from the next time on; now, if the present connection is to another. */
int rpc_client_set_addresses(struct rpc_client *client, const char *addresses, struct err *err);
const char *rpc_client_peer(const struct rpc_client *client); /* the address in use */
/* The last attempt was refused by the other kernel: it runs, and no process listens there. */
bool rpc_client_refused(const struct rpc_client *client);

struct rpc_metadata {
    const char *name, *value; /* a "-bin" value must be base64 already */
};

struct rpc_request_options {
    const char *path;
    const ProtobufCMessage *message; /* the (first) message; NULL: none yet */
    const ProtobufCMessageDescriptor *reply;
    bool open;                 /* more follows by rpc_request_send() */
    bool wait_ready;           /* wait for a connection until the deadline; else fail at once */
    unsigned timeout_ms;       /* 0: none */
    const uint8_t *request_id; /* 16 bytes for spur-request-id-bin, or NULL */
    const struct rpc_metadata *metadata;
    size_t metadata_count;
    void *data;
    /* Streams: each message as it comes, in an arena that is reset afterwards. NULL makes it unary. */
    void (*on_message)(struct rpc_request *request, const ProtobufCMessage *message);
    void (*on_writable)(struct rpc_request *request);
    /* The last callback. err == NULL: success; `reply` is the answer of a unary call, else NULL. */
    void (*on_done)(struct rpc_request *request, const ProtobufCMessage *reply,
                    const struct err *err);
};

/* Never fails at once: what goes wrong comes by `on_done`, from the loop. */
struct rpc_request *rpc_request_start(struct rpc_client *client,
                                      const struct rpc_request_options *options);
void *rpc_request_data(const struct rpc_request *request);
bool rpc_request_send(struct rpc_request *request, const ProtobufCMessage *message);
bool rpc_request_writable(const struct rpc_request *request);
void rpc_request_finish(struct rpc_request *request); /* nothing more is sent */
void rpc_request_pause(struct rpc_request *request);
void rpc_request_resume(struct rpc_request *request);
/* Gives up: `on_done` is not called, the request is gone. */
void rpc_request_cancel(struct rpc_request *request);
/* The leader's address that came with ERR_NOT_LEADER, inside `on_done`; else "". */
const char *rpc_request_leader(const struct rpc_request *request);

#endif
