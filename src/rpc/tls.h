/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.h - TLS 1.3 without I/O
 *
 * Bytes from the socket go into tls_input(), bytes for it come out of tls_output(); in between are
 * tls_read() and tls_write(). Only HTTP/2 is spoken (ALPN "h2"), and by a server that says so HTTP/1.1. A
 * server asks for the client's certificate and does without one; a client always checks the server's.
 */
#ifndef RPC_TLS_H
#define RPC_TLS_H

#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

struct tls_ctx;
struct tls;

struct tls_options {
    bool server;
    bool http1; /* a server that takes "http/1.1" too, and clients without ALPN */
    const char *cert_path, *key_path; /* PEM; a server must have them, a client may */
    const char *ca_path; /* whom to trust; a server without one takes no certificates */
    /* Client: trust the authority with this hash instead, as the server shows it; see cert_hash(). */
    const char *ca_hash;
};

struct tls_ctx *tls_ctx_new(const struct tls_options *options, struct err *err);
void tls_ctx_free(struct tls_ctx *ctx); /* connections under way keep what they need */

/*
 * `peer` is for clients: the host name or number that was asked for. A server whose certificate has that
 * name, or is a controller's or node's of the trusted authority with the name `peer` as its subject
 * ("node:n1"), is accepted; a controller's certificate is good under every host name.
 */
struct tls *tls_new(struct tls_ctx *ctx, const char *peer);
void tls_free(struct tls *tls);

int tls_input(struct tls *tls, const void *bytes, size_t len, struct err *err);
/* Does what it can of the handshake. 1: done, 0: needs more input. */
int tls_handshake(struct tls *tls, struct err *err);
/* Decrypted bytes; 0: none now. */
ssize_t tls_read(struct tls *tls, void *out, size_t room, struct err *err);
int tls_write(struct tls *tls, const void *bytes, size_t len, struct err *err);
/* Bytes for the socket; 0: none now. */
size_t tls_output(struct tls *tls, void *out, size_t room);

bool tls_is_h2(const struct tls *tls); /* what both sides agreed on (ALPN) */

/* The subject of the peer's certificate, "node:n1", or "" when it showed none. */
/* Connections from now on show this certificate. */
int tls_ctx_reload(struct tls_ctx *ctx, const char *cert_path, const char *key_path,
                   struct err *err);
const char *tls_peer_subject(const struct tls *tls);
/* SHA-256 of the public key in the peer's certificate; false: it showed none. */
enum { TLS_KEY_BYTES = 32 };
bool tls_peer_key(const struct tls *tls, uint8_t out[TLS_KEY_BYTES]);
/* The authority that the server showed, PEM; for a client that knew only its hash. */
int tls_peer_ca(const struct tls *tls, struct str *out, struct err *err);

#endif
