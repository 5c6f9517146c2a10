/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crypto.h - everything that needs OpenSSL, loaded when it is needed
 *
 * Loading OpenSSL costs a command more than its whole call. So commands do not link it: the module
 * libspur_tls.so does, and crypto_load() opens that on the first TLS connection or the first key.
 * Daemons link the same functions directly and need none of this.
 */
#ifndef RPC_CRYPTO_H
#define RPC_CRYPTO_H

#include "rpc/jwt.h"
#include "rpc/keys.h"
#include "rpc/tls.h"

/* clang-format off */
#define CRYPTO_FUNCTIONS(X) \
    X(tls_ctx_new) X(tls_ctx_free) X(tls_new) X(tls_free) X(tls_input) X(tls_handshake) \
    X(tls_read) X(tls_write) X(tls_output) X(tls_peer_subject) X(tls_peer_ca) \
    X(key_secret_create) X(key_secret_load) X(key_create) X(key_load) X(key_free) X(key_public) \
    X(cert_create_ca) X(cert_hash) X(cert_issue) X(cert_request) X(cert_sign) \
    X(jwt_sign_secret) X(jwt_sign_key)
/* clang-format on */

struct crypto_api {
    const char *version; /* of the build; a module of another build is refused */
#define CRYPTO_MEMBER(name) __typeof__(name) *name;
    CRYPTO_FUNCTIONS(CRYPTO_MEMBER)
#undef CRYPTO_MEMBER
};

#define CRYPTO_SYMBOL "spur_crypto_api"
extern const struct crypto_api spur_crypto_api;

/*
 * The functions of the module, or NULL. Looked for in $SPUR_LIB_DIR, then beside the program:
 * ../lib/spur when it is installed, the folder of this library in a build tree.
 */
const struct crypto_api *crypto_load(struct err *err);

#endif
