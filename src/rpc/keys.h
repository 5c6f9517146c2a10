/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.h - secrets and certificates: made, kept in files, read back
 *
 * Three kinds of keys. A *secret* (HS256) is shared by whoever signs and checks tokens, like Slurm's
 * jwt_hs256.key. A *signing key* (Ed25519) signs tokens that others check with its public half. TLS
 * keys are P-256, because every TLS library takes those. Private files are 0600 and are refused when
 * anybody else could read them. Nothing here overwrites a key that exists.
 *
 * The cluster has its own certificate authority. A certificate's subject is "node:NAME",
 * "controller:NAME" or "rest:NAME", which is what identity.h reads back; it also carries host names and addresses,
 * so that stock clients can check it.
 */
#ifndef RPC_KEYS_H
#define RPC_KEYS_H

#include "base/err.h"
#include "base/str.h"

enum {
    KEY_SECRET_BYTES = 32,
    KEY_PUBLIC_BYTES = 32,
    KEY_SECRET_MIN = 16,
    KEY_FILE_MAX = 64 * 1024,
    KEY_HASH_TEXT = 72, /* "sha256:" and 64 hex digits, with the NUL */
};

/* A signing key: Ed25519, private half included. */
struct key;

/* Makes the file with a fresh key, mode 0600; ERR_EXISTS when it is there. */
int key_secret_create(const char *path, struct err *err);
int key_create(const char *path, struct err *err);

/* The raw bytes of the file, as Slurm reads its key. */
int key_secret_load(const char *path, struct str *out, struct err *err);
struct key *key_load(const char *path, struct err *err);
struct key *key_generate(void); /* in memory only */
void key_free(struct key *key);
void key_public(const struct key *key, uint8_t out[KEY_PUBLIC_BYTES]);

/* A secret that follows from the key's private half and a label; who has not the key learns nothing from it. */
void key_derive(const struct key *key, const char *label, uint8_t out[KEY_SECRET_BYTES]);

/* Signatures over bytes that are relayed, such as a grant that another node passes on. */
enum { KEY_SIGNATURE_BYTES = 64 };
void key_sign(const struct key *key, const void *bytes, size_t len,
              uint8_t out[KEY_SIGNATURE_BYTES]);
bool key_verify(const uint8_t public_key[KEY_PUBLIC_BYTES], const void *bytes, size_t len,
                const uint8_t *signature, size_t signature_len);

/* ---- certificates; everything is PEM ---- */

/* DIR/ca.key and DIR/ca.crt, valid for twenty years. */
int cert_create_ca(const char *dir, const char *cluster_name, struct err *err);

/*
 * The same with the Ed25519 key of that seed: whoever knows the seed makes the same authority. What is there already
 * stays.
 */
int cert_create_ca_from(const char *dir, const char *name, const uint8_t seed[KEY_SECRET_BYTES],
                        struct err *err);

/* "sha256:…" of the authority's public key: what a join token carries to know the right one by. */
int cert_hash(const char *ca_pem, size_t len, char out[KEY_HASH_TEXT], struct err *err);

struct cert_names {
    const char *subject;      /* "node:n1", "controller:c1" */
    const char *const *hosts; /* names and addresses the certificate is also good for */
    size_t host_count;
    unsigned days; /* 0: two years */
};

/*
 * A new key at key_path and a certificate for it, signed by DIR/ca.key, at cert_path; the file also
 * holds the authority's certificate. Good for servers and clients.
 */
int cert_issue(const char *ca_dir, const struct cert_names *names, const char *key_path,
               const char *cert_path, struct err *err);

/* A machine that joins makes its key, and asks for a certificate with this request. */
int cert_request(const char *key_path, const char *subject, struct str *csr_pem, struct err *err);

/* SHA-256 of the request's public key; the request must be signed by that key. */
int cert_request_key(const char *csr_pem, size_t len, uint8_t out[KEY_SECRET_BYTES],
                     struct err *err);
/* Days until the certificate ends; negative when it has. */
int cert_days_left(const char *path, int *days, struct err *err);

/* Signs a request under the names given here: what the request itself says is not looked at. */
int cert_sign(const char *ca_dir, const char *csr_pem, size_t len, const struct cert_names *names,
              struct str *cert_pem, struct err *err);

#endif
