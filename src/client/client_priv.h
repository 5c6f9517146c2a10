/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_priv.h - what client.c (calls), stream.c, wire.c (the socket) and credentials.c share
 */
#ifndef CLIENT_CLIENT_PRIV_H
#define CLIENT_CLIENT_PRIV_H

#include "client/client.h"
#include "rpc/address.h"
#include "rpc/crypto.h"
#include "rpc/h2.h"
#include "rpc/status.h"

enum { REQUEST_ID_BYTES = 16 };

/* A connected socket with its engine. */
struct wire {
    int fd; /* -1: none */
    struct h2 *h2;
    bool is_unix, broken;
    bool watch; /* there are others to ask: one that says nothing is given up */
    bool silent;
    int64_t read_ms, ping_ms; /* when it last said something; when it was asked to, 0: not since */
    bool heard;
    char *out; /* what the socket did not take yet */
    size_t out_len;
    const struct crypto_api *crypto; /* with TLS only, as the rest */
    struct tls_ctx *tls_ctx;
    struct tls *tls;
    char *plain;
};

/* What the agent of this host says. */
struct vouch {
    char *token, *controllers, *ca_file; /* each may be NULL */
    char *refused;                       /* why there is no token */
};

struct client {
    struct vouch vouch;
    char ca_file[ADDRESS_PATH_BYTES]; /* options.ca, when the agent of this host said it */
    char near[ADDRESS_PATH_BYTES]; /* the socket of a controller here that sent us to the leader */
    struct client_options options;
    struct address_list addresses;
    size_t address_at;
    struct wire wire;
    char peer[ADDRESS_TEXT_BYTES];
    struct str authorization; /* for this connection; empty: none */
    struct client_stream *streams;
    int64_t silent_ms; /* spent on servers that said nothing, since the last client_again() */
};

/* How often and how long something was tried again. */
struct again {
    int64_t until_ms;
    unsigned wait_ms, hops;
};

/* One call: a unary one lives on the stack of client_call(). */
struct client_stream {
    struct client *client;
    struct client_stream *prev, *next;
    struct h2_stream *h2;
    const ProtobufCMessageDescriptor *reply_type;
    struct status status;
    struct arena *arena; /* unary: where the reply goes */
    ProtobufCMessage *reply;
    struct packed {
        struct packed *next;
        size_t len;
        uint8_t bytes[];
    } * first, **last;
    size_t queued;
    int64_t deadline_ms;
    struct err err;
    bool unary, closed, failed, paused;

    /* What it takes to begin again, while nothing was answered yet; path == NULL: not to be. */
    char *path;
    uint8_t *request;
    size_t request_len;
    struct again again;
};

int64_t now_ms(void);

/* wire.c */
int wire_connect(struct wire *wire, const struct address *address,
                 const struct client_options *options, const struct h2_events *events, void *ctx,
                 int64_t deadline_ms, struct err *err);
void wire_close(struct wire *wire);
/* Writes and reads what is possible now. */
int wire_pump(struct wire *wire, struct err *err);
/* Waits until something is possible, then does it. Returns 0 also when the deadline passed. */
int wire_wait(struct wire *wire, int64_t deadline_ms, struct err *err);
short wire_events(const struct wire *wire);

/* client.c */
int client_connect(struct client *client, int64_t deadline_ms, struct err *err);
void client_drop(struct client *client);
void client_lost(struct client *client); /* after wire_wait() failed */
/* After a failure: goes to the leader or waits a little. False: it is final, or has taken too long. */
bool client_again(struct client *client, struct again *again, int rc, const char *leader);
void again_init(struct again *again, const struct client *client, int64_t deadline_ms);

/* stream.c */
extern const struct h2_events stream_events;
int stream_begin(struct client_stream *stream, const char *path, const ProtobufCMessage *message,
                 const char *request_id, bool open, struct err *err);
void stream_done(struct client_stream *stream);
/* The result once stream->closed: 0 or the error. */
int stream_result(struct client_stream *stream, struct err *err);

/* vouch.c */
/* This host has a daemon that we may ask: its agent, or a controller. `near` as in struct client. */
bool vouch_available(const char *near);
/* With `where_only` no token is asked for, and nothing refused. */
int vouch_ask(const char *near, bool where_only, struct vouch *out, struct err *err);
/* The authority's certificate, beside the first of these sockets that has one. */
bool vouch_ca(char out[ADDRESS_PATH_BYTES]);
void vouch_done(struct vouch *vouch);

/* credentials.c */
/* Nothing shows who we are but, perhaps, the agent of this host. */
bool credentials_absent(const struct client_options *options);
int credentials_find(const struct client_options *options, bool is_unix, struct str *out,
                     struct err *err);

#endif
