/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.h - calls of the controller for an exchange
 *
 * The controllers are kept connected, one connection each, and the one that leads is asked. A controller that
 * restarts or a leader that changes is waited for, up to LIMIT_HTTP_WAIT_MS; a change carries a request id, so that
 * asking again does nothing twice. An exchange that ends cancels what it asked for.
 */
#ifndef SPURRESTD_ASK_H
#define SPURRESTD_ASK_H

#include <protobuf-c/protobuf-c.h>

#include "rpc/rpc.h"
#include "spurrestd/exchange.h"

struct upstream;
struct tls_ctx;

struct upstream *upstream_new(struct rpc_loop *loop, const char *addresses, struct tls_ctx *tls,
                              bool allow_plaintext, struct err *err);
void upstream_free(struct upstream *upstream);
/* Whether there is a connection to this one. */
bool upstream_answers(const struct upstream *upstream, const char *address);

typedef void ask_done(struct exchange *x, const ProtobufCMessage *reply, const struct err *err);
typedef void ask_message(struct exchange *x, const ProtobufCMessage *message);

struct ask_call {
    const char *method;              /* "ListJobs"; or a whole path that begins with '/' */
    const ProtobufCMessage *message; /* must live as long as the exchange */
    const ProtobufCMessageDescriptor *reply;
    bool ours;    /* as spurrestd itself, not for the caller */
    bool change;  /* gets a request id: the caller's Idempotency-Key, or a random one */
    bool endless; /* no deadline once it has begun */
    ask_message *message_came; /* a stream */
    ask_done *done;
    void *data; /* ask_data() */
};

/* `done` comes later, from the loop. */
struct ask *ask_start(struct exchange *x, const struct ask_call *call);
void ask_cancel_all(struct exchange *x);
/* Of a stream: holds the controller back while the caller does not read. */
void ask_pause(struct exchange *x);
void ask_resume(struct exchange *x);

/* Without an exchange: spurrestd's own business. `ctx` comes back. */
typedef void own_done(void *ctx, const ProtobufCMessage *reply, const struct err *err);
typedef void own_message(void *ctx, const ProtobufCMessage *message);
struct ask *ask_own(struct upstream *upstream, const struct ask_call *call, void *ctx,
                    own_done *done, own_message *message);
void ask_cancel(struct ask *ask);

#endif
