/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jwt.h - signed tokens: HS256 and EdDSA (Ed25519), nothing else
 *
 * A token is good when a key that we hold made it, for the algorithm that this key is for: the token's
 * own header only helps to find the key. It must expire. What a key may say is decided by its kind:
 * the cluster's own names users and nodes, a site's issuer names users only.
 */
#ifndef RPC_JWT_H
#define RPC_JWT_H

#include "base/err.h"
#include "base/str.h"
#include "rpc/keys.h"

enum { JWT_BYTES_MAX = 8192, JWT_USER_BYTES = 64, JWT_NAME_BYTES = 256 };

struct jwt_claims {
    char user[JWT_USER_BYTES]; /* "sun", as Slurm has it */
    bool has_uid, has_gid;
    uint32_t uid, gid;
    char node[JWT_NAME_BYTES];
    char cluster[JWT_NAME_BYTES];
    /* Good for one job's streams on one node and nothing else; only the cluster's key says so. */
    bool has_job;
    uint32_t job;
    char job_node[JWT_NAME_BYTES];
    char by[JWT_NAME_BYTES]; /* who vouched for the user; see struct rpc_identity */
    bool no_staff;           /* never with the roles of an operator or administrator */
    int64_t issued_s, not_before_s, expires_s; /* 0: not given; expires_s must be */
};

enum jwt_kind {
    JWT_CLUSTER, /* this cluster's own keys: users and nodes */
    JWT_ISSUER,  /* a site's identity provider: user names and uids, never nodes */
};
enum { JWT_LEEWAY_S = 60 };

struct jwt_keys;

struct jwt_keys *jwt_keys_new(const char *cluster); /* a token for another cluster is refused */
void jwt_keys_free(struct jwt_keys *keys);
/* kid may be NULL. The same kid again replaces. */
int jwt_keys_add_secret(struct jwt_keys *keys, const char *kid, enum jwt_kind kind,
                        const void *bytes, size_t len, struct err *err);
int jwt_keys_add_public(struct jwt_keys *keys, const char *kid, enum jwt_kind kind,
                        const uint8_t public_key[KEY_PUBLIC_BYTES], struct err *err);
void jwt_keys_remove(struct jwt_keys *keys, const char *kid);

int jwt_verify(const struct jwt_keys *keys, const char *token, size_t len, int64_t now_s,
               struct jwt_claims *out, enum jwt_kind *kind, struct err *err);

int jwt_sign_secret(const void *bytes, size_t len, const char *kid, const struct jwt_claims *claims,
                    struct str *out, struct err *err);
int jwt_sign_key(const struct key *key, const char *kid, const struct jwt_claims *claims,
                 struct str *out, struct err *err);

#endif
