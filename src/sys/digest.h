/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest.h - SHA-256, the name of a payload
 *
 * In a target of its own (digest_dep), because it links libcrypto, which most commands do without.
 */
#ifndef SYS_DIGEST_H
#define SYS_DIGEST_H

#include "base/str.h"

enum { DIGEST_BYTES = 32, DIGEST_HEX_BYTES = 65 };

void digest_sha256(const void *bytes, size_t len, uint8_t out[DIGEST_BYTES]);

/* In pieces; digest_end() frees. */
struct digest;
struct digest *digest_begin(void);
void digest_add(struct digest *digest, const void *bytes, size_t len);
void digest_end(struct digest *digest, uint8_t out[DIGEST_BYTES]);

/* HMAC-SHA-256 of all parts, one after the other. The key has at most 64 bytes. */
void digest_hmac(const void *key, size_t key_len, const struct span *parts, size_t count,
                 uint8_t out[DIGEST_BYTES]);

void digest_hex(const uint8_t digest[DIGEST_BYTES], char out[DIGEST_HEX_BYTES]);
bool digest_parse(const char *hex, uint8_t out[DIGEST_BYTES]);

#endif
