/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secrets.h - the secrets of one controller, and the tokens made with them
 *
 * They are made at the first start in STATE_DIR/keys, which only the controller's user may read:
 *
 *     cluster.key   Ed25519; signs tokens of people and nodes
 *     join.token    what a new machine shows to become a node, if it has no pass (join_tokens.c)
 *     cluster.id    16 random bytes, the cluster's identity
 *     ca.key ca.crt the cluster's certificate authority; controller.key controller.crt its server's
 *
 * A join token is "SECRET sha256:HASH": the hash is the authority's, so that a machine which joins
 * over the network knows the right controller before it shows the secret.
 */
#ifndef SPURCTLD_SECRETS_H
#define SPURCTLD_SECRETS_H

#include "base/err.h"
#include "proto/job.pb-c.h"
#include "rpc/keys.h"

struct jwt_keys;
struct tls_ctx;

struct secrets {
    struct jwt_keys *verify; /* who may sign tokens that we accept */
    struct key *sign;
    uint8_t public_key[KEY_PUBLIC_BYTES];
    uint8_t cluster_id[16];
    char *join_token; /* the secret alone */
    char *cluster, *dir;
    struct tls_ctx *tls; /* of the server */
    int64_t revoked_s;   /* tokens that are made now count as issued after this time */
};

/*
 * Loads them, or makes those that are missing. The certificate is made anew when it lacks `address`,
 * the host by which other controllers reach this one (NULL: there are none). jwt_key may name a secret that a site shares with
 * its own issuer of tokens (Slurm's jwt_hs256.key); NULL: none.
 */
int secrets_open(struct secrets *secrets, const char *state_dir, const char *cluster,
                 const char *controller, const char *address, const char *jwt_key, struct err *err);
void secrets_done(struct secrets *secrets);

/* The authority's hash, "sha256:HEX". */
int secrets_ca_hash(const struct secrets *secrets, char out[KEY_HASH_TEXT], struct err *err);

/* Tokens; the caller frees them. NULL: err says why. */
/* `by`: who vouches for the user, as in struct rpc_identity. */
char *secrets_user_token(const struct secrets *secrets, uint32_t uid, uint32_t gid,
                         const char *user, const char *by, int64_t lifespan_s, struct err *err);
/* The same without the roles of staff, whoever it is for. */
char *secrets_rest_token(const struct secrets *secrets, uint32_t uid, uint32_t gid,
                         const char *user, const char *by, int64_t lifespan_s, struct err *err);
/* The owner's, for the streams of one job on one node alone. */
char *secrets_job_token(const struct secrets *secrets, const JobOwner *owner, uint32_t job,
                        const char *node, int64_t lifespan_s, struct err *err);
/* A certificate for the request of "node:NAME" or "rest:NAME", and the authority's own. */
int secrets_sign(const struct secrets *secrets, const char *subject, const char *csr, size_t len,
                 struct str *certificate, struct str *ca, struct err *err);
/* The whole line of join.token. */
int secrets_join_line(const struct secrets *secrets, struct str *out, struct err *err);

/*
 * The etcd that controllers run has an authority of its own, which signs controllers and nobody else. It follows from
 * cluster.key, so that every controller has the same without being told. In keys/etcd: ca.key, ca.crt, member.crt (with
 * controller.key) and trust.crt, which has the cluster's authority too.
 *
 * `own` false: member.crt is the certificate of before, for members that do not trust the new authority yet.
 */
int secrets_etcd(const struct secrets *secrets, const char *controller, const char *address,
                 bool own, struct err *err);
/* What only controllers know, for the seals of the log (log/etcd_seal.c). */
void secrets_seal_key(const struct secrets *secrets, uint8_t out[KEY_SECRET_BYTES]);

/* ---- join_tokens.c ---- */

/* "join/NODES/EXPIRES/SIGNATURE sha256:HASH": for some nodes (NULL: any), for some time. */
int secrets_join_pass(const struct secrets *secrets, const char *nodes, int64_t lifespan_s,
                      struct str *out, struct err *err);
/*
 * Whether a machine that shows this line (its first word counts: the cluster's secret, compared in
 * constant time, or a pass) may become `node`. ERR_UNAUTHENTICATED, with the reason.
 */
int secrets_join_check(const struct secrets *secrets, const char *line, const char *node,
                       struct err *err);

/* Is it for this one node alone? It was checked before. */
bool secrets_join_is_for(const char *line, const char *node);
/* Is it the cluster's secret itself, which is good on this host alone? */
bool secrets_join_is_secret(const char *line);

/* "NAME HOST:PORT EXPIRES SIGNATURE sha256:HASH": for a controller that is to enter, for an hour. */
int secrets_invitation(const struct secrets *secrets, const char *name, const char *host,
                       unsigned port, struct str *out, struct err *err);
struct invitation {
    char name[256], address[300];
};
/* Is it ours, and still good? More words may follow. ERR_UNAUTHENTICATED. */
int secrets_invited(const struct secrets *secrets, const char *line, struct invitation *out,
                    struct err *err);

char *secrets_node_token(const struct secrets *secrets, const char *node, struct err *err);
/* The same for commands of root on that node, good for a while. */
char *secrets_node_pass(const struct secrets *secrets, const char *node, int64_t lifespan_s,
                        struct err *err);

#endif
