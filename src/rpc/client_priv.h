/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_priv.h - what dial.c (connections) and request.c (calls) share
 */
#ifndef RPC_CLIENT_PRIV_H
#define RPC_CLIENT_PRIV_H

#include "rpc/address.h"
#include "rpc/link.h"
#include "rpc/rpc.h"
#include "rpc/status.h"

struct dial;
struct lookup;

struct rpc_client {
    struct rpc_loop *loop;
    struct rpc_client_options options;
    struct address_list addresses;
    size_t address_at;                     /* which of them is in use or tried */
    size_t tried;                          /* how many of them this round */
    struct sockaddr_storage candidates[8]; /* what address_at stands for */
    size_t candidate_count, candidate_at;
    struct lookup *lookup; /* under way */
    enum rpc_state state;
    struct dial *dial; /* the connection in use or being made */
    struct timer retry;
    unsigned backoff_ms;
    uint64_t jitter;
    struct err last; /* why the last attempt failed */
    bool refused;    /* by a kernel: nobody listens */
    struct rpc_request *waiting, **waiting_last;
    struct rpc_request *open; /* every request that is not done */
    struct rpc_request *spare;
    unsigned spare_count;
    char peer[ADDRESS_TEXT_BYTES];
};

/* One connection, from the first attempt until its handle is closed. */
struct dial {
    struct link link;
    struct rpc_client *client; /* NULL when the client has let it go */
    struct timer timer;        /* connecting takes too long; then keepalive */
    uv_connect_t connect;
    struct address address;
    int64_t ping_ms;
};

struct rpc_request {
    struct rpc_client *client;
    struct dial *dial;
    struct h2_stream *stream;
    struct rpc_request *prev, *next; /* of client->open, or spare */
    struct rpc_request *waiting_next;
    struct rpc_request_options o;
    struct arena arena, message_arena;
    struct timer timer;
    int64_t deadline_ms;
    struct status status;
    struct err failed; /* found here, before or instead of the server's answer */
    ProtobufCMessage *reply;
    uint8_t *packed; /* the first message, while it may have to be sent (again); NULL: it may not */
    size_t packed_len;
    char *id_text, *path;
    unsigned refused; /* how often */
    bool listed, ending, finish, started;
};

/* dial.c */
void dial_round(struct rpc_client *client); /* tries every address, beginning with address_at */
void dial_let_go(struct dial *dial, const struct err *why);
void dial_forget(struct rpc_client *client); /* drops the connection and every attempt */
void dial_replace(struct dial *dial);        /* the server wants us to go elsewhere */

/* request.c */
extern const struct h2_events client_events;
void request_submit(struct rpc_request *request);
void request_end(struct rpc_request *request, const struct err *err);
void requests_ready(struct rpc_client *client);
void requests_fail_waiting(struct rpc_client *client, const struct err *err, bool all);

#endif
