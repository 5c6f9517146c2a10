/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crypto_module.c - the one symbol of libspur_tls.so
 */
#include "rpc/crypto.h"

__attribute__((visibility("default")))
const struct crypto_api spur_crypto_api = { .version = SPUR_VERSION,
#define CRYPTO_ENTRY(name) .name = name,
                                            CRYPTO_FUNCTIONS(CRYPTO_ENTRY)
#undef CRYPTO_ENTRY
};
