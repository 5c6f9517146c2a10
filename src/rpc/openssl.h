/* SPDX-License-Identifier: Apache-2.0 */
/*
 * openssl.h - what keys.c, cert.c, jwt.c and tls.c share; only they know OpenSSL
 */
#ifndef RPC_OPENSSL_H
#define RPC_OPENSSL_H

#include <openssl/evp.h>
#include <openssl/x509.h>

#include "base/err.h"
#include "base/str.h"

struct key {
    EVP_PKEY *pkey;
};

/* SHA-256 of a public key as certificates and requests carry it. */
void pubkey_digest(X509_PUBKEY *key, uint8_t out[32]);
void x509_key(X509 *cert, uint8_t out[32]);

/* OpenSSL's last reason behind our words; empties its queue. */
int openssl_err(struct err *err, enum err_code code, const char *fmt, ...) PRINTF(3, 4);

void pkey_freep(EVP_PKEY **pkey);
void x509_freep(X509 **cert);
void bio_freep(BIO **bio);

int pkey_load(const char *path, EVP_PKEY **out, struct err *err);
/* Writes a private key to a new file, 0600. */
int pkey_store(const char *path, EVP_PKEY *pkey, struct err *err);
int x509_read(const char *pem, size_t len, X509 **out, struct err *err);
void x509_hash(X509 *cert, char out[]); /* KEY_HASH_TEXT bytes */
/* The "node:…" or "controller:…" of a certificate; "" when it has none. */
void x509_subject(X509 *cert, char *out, size_t room);

#endif
