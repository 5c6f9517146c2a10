/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keys.c - secrets and signing keys in files
 */
#include "rpc/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/openssl.h"
#include "sys/files.h"
#include "sys/rng.h"

int openssl_err(struct err *err, enum err_code code, const char *fmt, ...)
{
    char text[ERR_TEXT_BYTES];
    const char *why = ERR_reason_error_string(ERR_peek_last_error());
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    ERR_clear_error();
    return why ? err_set(err, code, "%.300s: %s", text, why) : err_set(err, code, "%.400s", text);
}

void pkey_freep(EVP_PKEY **pkey)
{
    EVP_PKEY_free(*pkey);
}

void x509_freep(X509 **cert)
{
    X509_free(*cert);
}

void bio_freep(BIO **bio)
{
    BIO_free_all(*bio);
}

/* A key is never overwritten: the file must be new. */
static int write_new(const char *path, const void *bytes, size_t len, struct err *err)
{
    CLEANUP(file_close)
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return err_errno(err, errno, "key file %s", path);
    if (file_write_all(fd, bytes, len, err) < 0 || file_sync(fd, err) < 0) {
        unlink(path);
        return err_wrap(err, "key file %s", path);
    }
    return 0;
}

int key_secret_create(const char *path, struct err *err)
{
    uint8_t bytes[KEY_SECRET_BYTES];

    rng_bytes(bytes, sizeof(bytes));
    int rc = write_new(path, bytes, sizeof(bytes), err);
    OPENSSL_cleanse(bytes, sizeof(bytes));
    return rc;
}

int key_secret_load(const char *path, struct str *out, struct err *err)
{
    struct str bytes = { 0 };
    int rc = file_read_secret(path, KEY_FILE_MAX, &bytes, err);

    if (rc == 0 && bytes.len < KEY_SECRET_MIN)
        rc = err_set(err, ERR_INVALID, "key file %s has %zu bytes; at least %d are needed", path,
                     bytes.len, KEY_SECRET_MIN);
    if (rc == 0)
        str_add_len(out, bytes.data, bytes.len);
    if (bytes.data)
        OPENSSL_cleanse(bytes.data, bytes.cap);
    str_done(&bytes);
    return rc;
}

int pkey_store(const char *path, EVP_PKEY *pkey, struct err *err)
{
    CLEANUP(bio_freep) BIO *bio = BIO_new(BIO_s_secmem());
    char *pem;

    if (!bio || !PEM_write_bio_PrivateKey(bio, pkey, NULL, NULL, 0, NULL, NULL))
        return openssl_err(err, ERR_INTERNAL, "key file %s", path);
    long len = BIO_get_mem_data(bio, &pem);
    return write_new(path, pem, (size_t)len, err);
}

int pkey_load(const char *path, EVP_PKEY **out, struct err *err)
{
    struct str pem = { 0 };
    int rc = file_read_secret(path, KEY_FILE_MAX, &pem, err);

    if (rc == 0) {
        CLEANUP(bio_freep) BIO *bio = BIO_new_mem_buf(pem.data, (int)pem.len);
        *out = PEM_read_bio_PrivateKey(bio, NULL, NULL, (void *)(uintptr_t) "");
        if (!*out)
            rc = openssl_err(err, ERR_INVALID, "key file %s holds no private key", path);
    }
    if (pem.data)
        OPENSSL_cleanse(pem.data, pem.cap);
    str_done(&pem);
    return rc;
}

static struct key *key_of(EVP_PKEY *pkey)
{
    struct key *key = NEW(struct key);

    key->pkey = pkey;
    return key;
}

struct key *key_generate(void)
{
    EVP_PKEY *pkey = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");

    if (!pkey)
        abort(); /* no entropy or no memory: nothing sensible can follow */
    return key_of(pkey);
}

int key_create(const char *path, struct err *err)
{
    struct key *key = key_generate();
    int rc = pkey_store(path, key->pkey, err);

    key_free(key);
    return rc;
}

struct key *key_load(const char *path, struct err *err)
{
    CLEANUP(pkey_freep) EVP_PKEY *pkey = NULL;

    if (pkey_load(path, &pkey, err) < 0)
        return NULL;
    if (EVP_PKEY_get_id(pkey) != EVP_PKEY_ED25519) {
        err_set(err, ERR_INVALID, "key file %s holds no Ed25519 key", path);
        return NULL;
    }
    return key_of(TAKE(pkey));
}

void key_free(struct key *key)
{
    if (!key)
        return;
    EVP_PKEY_free(key->pkey);
    free(key);
}

void key_public(const struct key *key, uint8_t out[KEY_PUBLIC_BYTES])
{
    size_t len = KEY_PUBLIC_BYTES;

    if (!EVP_PKEY_get_raw_public_key(key->pkey, out, &len) || len != KEY_PUBLIC_BYTES)
        abort(); /* not an Ed25519 key: key_of() has seen to that */
}

void key_derive(const struct key *key, const char *label, uint8_t out[KEY_SECRET_BYTES])
{
    uint8_t secret[KEY_SECRET_BYTES];
    size_t len = sizeof(secret);
    unsigned out_len = 0;

    if (!EVP_PKEY_get_raw_private_key(key->pkey, secret, &len) ||
        !HMAC(EVP_sha256(), secret, (int)len, (const unsigned char *)label, strlen(label), out,
              &out_len) ||
        out_len != KEY_SECRET_BYTES)
        abort(); /* not an Ed25519 key: key_of() has seen to that */
    OPENSSL_cleanse(secret, sizeof(secret));
}

void key_sign(const struct key *key, const void *bytes, size_t len,
              uint8_t out[KEY_SIGNATURE_BYTES])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    size_t out_len = KEY_SIGNATURE_BYTES;

    if (!ctx || EVP_DigestSignInit(ctx, NULL, NULL, NULL, key->pkey) != 1 ||
        EVP_DigestSign(ctx, out, &out_len, bytes, len) != 1)
        abort(); /* an Ed25519 key signs anything */
    EVP_MD_CTX_free(ctx);
}

bool key_verify(const uint8_t public_key[KEY_PUBLIC_BYTES], const void *bytes, size_t len,
                const uint8_t *signature, size_t signature_len)
{
    EVP_PKEY *pkey =
        EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, public_key, KEY_PUBLIC_BYTES);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool ok = pkey && ctx && signature_len == KEY_SIGNATURE_BYTES &&
              EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) == 1 &&
              EVP_DigestVerify(ctx, signature, signature_len, bytes, len) == 1;

    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(pkey);
    return ok;
}
