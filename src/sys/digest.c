/* SPDX-License-Identifier: Apache-2.0 */
/*
 * digest.c - SHA-256, the name of a payload
 */
#include "sys/digest.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static EVP_MD *sha256;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Looking the algorithm up costs more than hashing a script: once. */
static void fetch(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (!sha256) {
        fprintf(stderr, "digest: libcrypto offers no SHA256\n");
        abort();
    }
}

struct digest *digest_begin(void)
{
    EVP_MD_CTX *ctx;

    pthread_once(&once, fetch);
    ctx = EVP_MD_CTX_new();
    if (!ctx || !EVP_DigestInit_ex2(ctx, sha256, NULL))
        abort();
    return (struct digest *)ctx;
}

void digest_add(struct digest *digest, const void *bytes, size_t len)
{
    if (!EVP_DigestUpdate((EVP_MD_CTX *)digest, bytes, len))
        abort();
}

void digest_end(struct digest *digest, uint8_t out[DIGEST_BYTES])
{
    unsigned len = DIGEST_BYTES;

    if (!EVP_DigestFinal_ex((EVP_MD_CTX *)digest, out, &len))
        abort();
    EVP_MD_CTX_free((EVP_MD_CTX *)digest);
}

void digest_sha256(const void *bytes, size_t len, uint8_t out[DIGEST_BYTES])
{
    struct digest *digest = digest_begin();

    digest_add(digest, bytes, len);
    digest_end(digest, out);
}

void digest_hmac(const void *key, size_t key_len, const struct span *parts, size_t count,
                 uint8_t out[DIGEST_BYTES])
{
    enum { BLOCK_BYTES = 64 };
    uint8_t inner[BLOCK_BYTES] = { 0 }, outer[BLOCK_BYTES], hash[DIGEST_BYTES];

    if (key_len > BLOCK_BYTES)
        abort();
    memcpy(inner, key, key_len);
    for (unsigned i = 0; i < BLOCK_BYTES; i++) {
        outer[i] = inner[i] ^ 0x5c;
        inner[i] ^= 0x36;
    }
    struct digest *digest = digest_begin();
    digest_add(digest, inner, sizeof(inner));
    for (size_t i = 0; i < count; i++)
        digest_add(digest, parts[i].ptr, parts[i].len);
    digest_end(digest, hash);
    digest = digest_begin();
    digest_add(digest, outer, sizeof(outer));
    digest_add(digest, hash, sizeof(hash));
    digest_end(digest, out);
}

void digest_hex(const uint8_t digest[DIGEST_BYTES], char out[DIGEST_HEX_BYTES])
{
    static const char digits[] = "0123456789abcdef";

    for (int i = 0; i < DIGEST_BYTES; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[DIGEST_HEX_BYTES - 1] = '\0';
}

static int nibble(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool digest_parse(const char *hex, uint8_t out[DIGEST_BYTES])
{
    if (strlen(hex) != DIGEST_HEX_BYTES - 1)
        return false;
    for (int i = 0; i < DIGEST_BYTES; i++) {
        int high = nibble(hex[2 * i]), low = nibble(hex[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}
