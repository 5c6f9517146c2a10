/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - how a command talks to a daemon: blocking, one thread, no event loop
 *
 *     struct client *client = client_new(&(struct client_options){ 0 }, &err);
 *     ProtobufCMessage *reply;
 *     if (client_call(client, "/spur.Controller/Ping", &empty.base, &ping_reply__descriptor,
 *                     &arena, &reply, &err) < 0)
 *         …
 *     client_free(client);
 *
 * A client has one connection at a time, made at the first call. It tries its addresses in turn, repeats
 * a call that may not have arrived with the same 16-byte request id, and follows the leader, all within
 * the call's time. Who we are is shown by itself: by the socket on the server's own host, by a token
 * from $SPUR_JWT or $SLURM_JWT or a token file, or by MUNGE. OpenSSL is loaded only for TLS.
 */
#ifndef CLIENT_CLIENT_H
#define CLIENT_CLIENT_H

#include <protobuf-c/protobuf-c.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "base/util.h"

struct client;
struct client_stream;

struct client_options {
    /*
     * A comma list as rpc/address.h reads it. NULL: $SPUR_CONTROLLER_ADDR, or the controllers that the slurm.conf
     * of $SLURM_CONF names, or what the agent of this host knows, or http://localhost:6817; where nothing listens
     * there, those of /etc/slurm/slurm.conf.
     * An address on this host is reached over its unix socket when there is one.
     */
    const char *addresses;
    uint16_t default_port; /* 0: 6817 */
    unsigned timeout_ms;   /* of a unary call with all its repetitions; 0: 60 s */
    unsigned retry_ms;     /* how long to try a server that cannot be reached; 0: 3 s */
    const char *token;     /* instead of what the environment has; "" for none at all */

    /* TLS, used for https:// and for every other host. */
    const char *ca; /* PEM file; NULL: $SPUR_CA, /etc/spur/ca.crt, or what a daemon here shows */
    const char *cert, *key; /* our own certificate, when we have one */
    const char *peer;       /* whose certificate to expect, "node:n1"; NULL: the host's */
    bool allow_plaintext;   /* plain to other hosts; also $SPUR_ALLOW_PLAINTEXT=1 */
};

struct client *client_new(const struct client_options *options, struct err *err);
void client_free(struct client *client);

/* One request, one reply, which lives in the arena. */
int client_call(struct client *client, const char *path, const ProtobufCMessage *request,
                const ProtobufCMessageDescriptor *reply_type, struct arena *arena,
                ProtobufCMessage **reply, struct err *err);

/* Where it looks for servers, as a comma list. */
void client_addresses(const struct client *client, struct str *out);

/* The address in use, or the last one tried: for messages. */
const char *client_peer(const struct client *client);

/* ---- streams ---- */

struct client_stream_options {
    const char *path;
    const ProtobufCMessage *message; /* the (first) message; NULL: none yet */
    const ProtobufCMessageDescriptor *reply_type;
    bool open;           /* more is sent by client_stream_send() */
    unsigned timeout_ms; /* 0: none */
};

/* Connects if need be (trying again for retry_ms) and begins a stream; several may be open at once. */
struct client_stream *client_stream_open(struct client *client,
                                         const struct client_stream_options *options,
                                         struct err *err);
/* Gives it up when it has not ended. */
void client_stream_free(struct client_stream *stream);

enum client_next {
    CLIENT_AGAIN = 0,   /* nothing yet (client_stream_try only) */
    CLIENT_MESSAGE = 1, /* *message is set, in the arena */
    CLIENT_ENDED = 2,   /* the server ended the stream in order */
};

/* Waits for the next message. Negative: the stream failed, which is its end. */
int client_stream_next(struct client_stream *stream, struct arena *arena,
                       ProtobufCMessage **message, struct err *err);

/* ---- streams in a poll loop of one's own ---- */

/*
 *     struct pollfd fds[2] = { { .fd = client_fd(client), .events = client_events(client) }, … };
 *     poll(fds, 2, client_wait_ms(client));
 *     client_pump(client, &err);
 *     while (client_stream_try(stream, &arena, &message, &err) == CLIENT_MESSAGE) …
 *
 * client_pump() reads and writes what is possible without waiting; negative means the connection is
 * lost, and every stream says so too.
 */
int client_fd(const struct client *client); /* -1 when there is no connection */
short client_events(const struct client *client);
int client_wait_ms(const struct client *client); /* until a deadline; -1: none */
int client_pump(struct client *client, struct err *err);
int client_stream_try(struct client_stream *stream, struct arena *arena, ProtobufCMessage **message,
                      struct err *err);

/* Queues a message; written by client_pump() or client_stream_next(). False: the stream is over. */
bool client_stream_send(struct client_stream *stream, const ProtobufCMessage *message);
bool client_stream_writable(const struct client_stream *stream); /* less than 256 KB wait */
void client_stream_finish(struct client_stream *stream);         /* nothing more is sent */

#endif
