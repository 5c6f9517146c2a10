/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cert.c - the cluster's certificate authority
 *
 * (1) What a certificate says is what the caller of cert_sign() says; a request brings only its key.
 * (2) The subject stands in the common name and, as a URI, in the alternative names.
 */
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rpc/keys.h"
#include "rpc/openssl.h"
#include "sys/files.h"

enum { CA_DAYS = 20 * 365, CERT_DAYS = 2 * 365, HOSTS_MAX = 64 };

struct authority {
    EVP_PKEY *pkey;
    X509 *cert;
};

static void authority_done(struct authority *authority)
{
    EVP_PKEY_free(authority->pkey);
    X509_free(authority->cert);
}

static void req_freep(X509_REQ **req)
{
    X509_REQ_free(*req);
}

static void path_in(char *out, size_t room, const char *dir, const char *name)
{
    snprintf(out, room, "%s/%s", dir, name);
}

int x509_read(const char *pem, size_t len, X509 **out, struct err *err)
{
    CLEANUP(bio_freep) BIO *bio = BIO_new_mem_buf(pem, (int)len);

    *out = PEM_read_bio_X509(bio, NULL, NULL, (void *)(uintptr_t) "");
    return *out ? 0 : openssl_err(err, ERR_INVALID, "not a certificate in PEM form");
}

static int x509_load(const char *path, X509 **out, struct err *err)
{
    CLEANUP(str_done) struct str pem = { 0 };
    int rc = file_read(path, KEY_FILE_MAX, &pem, err);

    if (rc == 0)
        rc = x509_read(str_text(&pem), pem.len, out, err);
    return rc < 0 ? err_wrap(err, "certificate %s", path) : 0;
}

static int authority_load(struct authority *out, const char *dir, struct err *err)
{
    char path[4096];

    path_in(path, sizeof(path), dir, "ca.key");
    if (pkey_load(path, &out->pkey, err) < 0)
        return err_wrap(err, "certificate authority");
    path_in(path, sizeof(path), dir, "ca.crt");
    if (x509_load(path, &out->cert, err) < 0)
        return err_wrap(err, "certificate authority");
    if (!X509_check_private_key(out->cert, out->pkey))
        return openssl_err(err, ERR_INVALID, "%s/ca.key does not belong to %s/ca.crt", dir, dir);
    return 0;
}

void pubkey_digest(X509_PUBKEY *key, uint8_t out[32])
{
    unsigned char *spki = NULL;
    unsigned len = 0;
    int spki_len = i2d_X509_PUBKEY(key, &spki);

    EVP_Digest(spki, spki_len > 0 ? (size_t)spki_len : 0, out, &len, EVP_sha256(), NULL);
    OPENSSL_free(spki);
}

void x509_key(X509 *cert, uint8_t out[32])
{
    pubkey_digest(X509_get_X509_PUBKEY(cert), out);
}

int cert_request_key(const char *csr_pem, size_t len, uint8_t out[KEY_SECRET_BYTES],
                     struct err *err)
{
    CLEANUP(bio_freep) BIO *bio = BIO_new_mem_buf(csr_pem, (int)len);
    CLEANUP(req_freep) X509_REQ *req = PEM_read_bio_X509_REQ(bio, NULL, NULL, NULL);

    if (!req || X509_REQ_verify(req, X509_REQ_get0_pubkey(req)) != 1)
        return openssl_err(err, ERR_INVALID, "not a request for a certificate in PEM form");
    pubkey_digest(X509_REQ_get_X509_PUBKEY(req), out);
    return 0;
}

int cert_days_left(const char *path, int *days, struct err *err)
{
    CLEANUP(x509_freep) X509 *cert = NULL;
    int seconds = 0, rc = x509_load(path, &cert, err);

    if (rc == 0 && !ASN1_TIME_diff(days, &seconds, NULL, X509_get0_notAfter(cert)))
        rc = openssl_err(err, ERR_INVALID, "certificate %s has no end", path);
    return rc;
}

void x509_hash(X509 *cert, char out[])
{
    unsigned char digest[EVP_MAX_MD_SIZE], *spki = NULL;
    unsigned len = 0;
    int spki_len = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), &spki);

    EVP_Digest(spki, spki_len > 0 ? (size_t)spki_len : 0, digest, &len, EVP_sha256(), NULL);
    OPENSSL_free(spki);
    char *at = out + sprintf(out, "sha256:");
    for (unsigned i = 0; i < len; i++)
        at += sprintf(at, "%02x", digest[i]);
}

int cert_hash(const char *ca_pem, size_t len, char out[KEY_HASH_TEXT], struct err *err)
{
    CLEANUP(x509_freep) X509 *cert = NULL;
    int rc = x509_read(ca_pem, len, &cert, err);

    if (rc == 0)
        x509_hash(cert, out);
    return rc;
}

static bool is_subject(const char *text)
{
    return str_starts(text, "node:") || str_starts(text, "controller:") ||
           str_starts(text, "rest:");
}

void x509_subject(X509 *cert, char *out, size_t room)
{
    GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name, NULL, NULL);

    out[0] = '\0';
    for (int i = 0; i < sk_GENERAL_NAME_num(names) && !out[0]; i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(names, i);
        if (name->type != GEN_URI)
            continue;
        const ASN1_IA5STRING *uri = name->d.uniformResourceIdentifier;
        size_t len = (size_t)ASN1_STRING_length(uri);
        const char *text = (const char *)ASN1_STRING_get0_data(uri);
        if (len >= room || memchr(text, '\0', len))
            continue;
        memcpy(out, text, len);
        out[len] = '\0';
        if (!is_subject(out))
            out[0] = '\0';
    }
    GENERAL_NAMES_free(names);
}

static bool set_name(X509_NAME *name, const char *cn)
{
    return X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)cn, -1, -1,
                                      0);
}

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;

    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    if (!extension)
        return false;
    int done = X509_add_ext(cert, extension, -1);
    X509_EXTENSION_free(extension);
    return done;
}

static bool set_serial(X509 *cert)
{
    BIGNUM *number = BN_new();
    bool done = number && BN_rand(number, 127, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) &&
                BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));

    BN_free(number);
    return done;
}

/* Everything but names and extensions. */
static X509 *blank(EVP_PKEY *pkey, unsigned days)
{
    X509 *cert = X509_new();

    /* An hour back: clocks of new machines are often a little behind. */
    if (cert && X509_set_version(cert, X509_VERSION_3) && set_serial(cert) &&
        X509_gmtime_adj(X509_getm_notBefore(cert), -3600) &&
        X509_time_adj_ex(X509_getm_notAfter(cert), (int)days, 0, NULL) &&
        X509_set_pubkey(cert, pkey))
        return cert;
    X509_free(cert);
    return NULL;
}

static void add_pem(struct str *out, X509 *cert)
{
    CLEANUP(bio_freep) BIO *bio = BIO_new(BIO_s_mem());
    char *pem;

    PEM_write_bio_X509(bio, cert);
    long len = BIO_get_mem_data(bio, &pem);
    str_add_len(out, pem, (size_t)len);
}

/* Ed25519 hashes by itself. */
static const EVP_MD *hash_for(EVP_PKEY *pkey)
{
    return EVP_PKEY_is_a(pkey, "ED25519") ? NULL : EVP_sha256();
}

static int create_ca(const char *dir, const char *cn, EVP_PKEY *pkey, struct err *err)
{
    CLEANUP(x509_freep) X509 *cert = pkey ? blank(pkey, CA_DAYS) : NULL;
    CLEANUP(str_done) struct str pem = { 0 };
    char path[4096];

    if (!cert || !set_name(X509_get_subject_name(cert), cn) ||
        !X509_set_issuer_name(cert, X509_get_subject_name(cert)) ||
        !add_extension(cert, cert, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
        !add_extension(cert, cert, NID_key_usage, "critical,keyCertSign,cRLSign") ||
        !add_extension(cert, cert, NID_subject_key_identifier, "hash") ||
        !X509_sign(cert, pkey, hash_for(pkey)))
        return openssl_err(err, ERR_INTERNAL, "cannot make a certificate authority");
    path_in(path, sizeof(path), dir, "ca.key");
    if (pkey_store(path, pkey, err) < 0)
        return -(int)(err ? err->code : ERR_IO);
    add_pem(&pem, cert);
    path_in(path, sizeof(path), dir, "ca.crt");
    return file_write(path, pem.data, pem.len, 0644, err);
}

int cert_create_ca(const char *dir, const char *cluster_name, struct err *err)
{
    CLEANUP(pkey_freep) EVP_PKEY *pkey = EVP_EC_gen("P-256");
    char cn[64];

    snprintf(cn, sizeof(cn), "Spur cluster %.40s", cluster_name);
    return create_ca(dir, cn, pkey, err);
}

int cert_create_ca_from(const char *dir, const char *name, const uint8_t seed[KEY_SECRET_BYTES],
                        struct err *err)
{
    CLEANUP(pkey_freep)
    EVP_PKEY *pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, KEY_SECRET_BYTES);
    char key[4096], cert[4096];

    path_in(key, sizeof(key), dir, "ca.key");
    path_in(cert, sizeof(cert), dir, "ca.crt");
    if (access(key, F_OK) == 0 && access(cert, F_OK) == 0)
        return 0;
    unlink(key); /* of a start that was cut short */
    return create_ca(dir, name, pkey, err);
}

/* "URI:node:n1,DNS:n1,IP:10.0.0.1"; (2) */
static int alternative_names(const struct cert_names *names, struct str *out, struct err *err)
{
    unsigned char ip[16];

    str_addf(out, "URI:%s", names->subject);
    for (size_t i = 0; i < names->host_count; i++) {
        const char *host = names->hosts[i];
        bool number = inet_pton(AF_INET, host, ip) == 1 || inet_pton(AF_INET6, host, ip) == 1;
        /* The text goes through a small language of OpenSSL's: only plain names may enter it. */
        if (!*host || strlen(host) > 253 ||
            strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:") !=
                strlen(host) ||
            (!number && strchr(host, ':')))
            return err_set(err, ERR_INVALID, "'%.100s' is no host name", host);
        str_addf(out, ",%s:%s", number ? "IP" : "DNS", host);
    }
    return 0;
}

static int check_names(const struct cert_names *names, struct err *err)
{
    const char *colon = strchr(names->subject, ':');

    if (!is_subject(names->subject) || !colon[1] || strlen(colon) > 200 ||
        strspn(colon + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") !=
            strlen(colon + 1))
        return err_set(err, ERR_INVALID, "'%.100s' cannot be the subject of a certificate",
                       names->subject);
    if (names->host_count > HOSTS_MAX)
        return err_set(err, ERR_TOO_MANY, "more than %d names in a certificate", HOSTS_MAX);
    return 0;
}

static int sign_for(const struct authority *authority, EVP_PKEY *pkey,
                    const struct cert_names *names, struct str *out, struct err *err)
{
    CLEANUP(str_done) struct str alternatives = { 0 };
    CLEANUP(x509_freep) X509 *cert = NULL;
    char cn[65];

    if (check_names(names, err) < 0 || alternative_names(names, &alternatives, err) < 0)
        return -(int)(err ? err->code : ERR_INVALID);
    snprintf(cn, sizeof(cn), "%s", names->subject); /* a common name has at most 64 characters */
    cert = blank(pkey, names->days ? names->days : CERT_DAYS);
    if (!cert || !set_name(X509_get_subject_name(cert), cn) ||
        !X509_set_issuer_name(cert, X509_get_subject_name(authority->cert)) ||
        !add_extension(cert, authority->cert, NID_basic_constraints, "critical,CA:FALSE") ||
        !add_extension(cert, authority->cert, NID_key_usage, "critical,digitalSignature") ||
        !add_extension(cert, authority->cert, NID_ext_key_usage, "serverAuth,clientAuth") ||
        !add_extension(cert, authority->cert, NID_authority_key_identifier, "keyid") ||
        !add_extension(cert, authority->cert, NID_subject_alt_name, alternatives.data) ||
        !X509_sign(cert, authority->pkey, hash_for(authority->pkey)))
        return openssl_err(err, ERR_INTERNAL, "cannot make a certificate for %s", names->subject);
    add_pem(out, cert);
    add_pem(out, authority->cert);
    return 0;
}

int cert_issue(const char *ca_dir, const struct cert_names *names, const char *key_path,
               const char *cert_path, struct err *err)
{
    CLEANUP(authority_done) struct authority authority = { 0 };
    CLEANUP(pkey_freep) EVP_PKEY *pkey = NULL;
    CLEANUP(str_done) struct str pem = { 0 };

    int rc = authority_load(&authority, ca_dir, err);
    if (rc < 0)
        return rc;
    if (access(key_path, F_OK) == 0) { /* a renewal keeps the key */
        rc = pkey_load(key_path, &pkey, err);
        if (rc < 0)
            return rc;
    } else {
        pkey = EVP_EC_gen("P-256");
    }
    if (!pkey)
        return openssl_err(err, ERR_INTERNAL, "cannot make a key");
    rc = sign_for(&authority, pkey, names, &pem, err);
    if (rc == 0 && access(key_path, F_OK) != 0)
        rc = pkey_store(key_path, pkey, err);
    return rc < 0 ? rc : file_write(cert_path, pem.data, pem.len, 0644, err);
}

int cert_request(const char *key_path, const char *subject, struct str *csr_pem, struct err *err)
{
    CLEANUP(pkey_freep) EVP_PKEY *pkey = NULL;
    CLEANUP(req_freep) X509_REQ *req = X509_REQ_new();
    CLEANUP(bio_freep) BIO *bio = BIO_new(BIO_s_mem());
    char *pem, cn[65];
    int rc = 0;

    if (access(key_path, F_OK) == 0) {
        rc = pkey_load(key_path, &pkey, err);
    } else {
        pkey = EVP_EC_gen("P-256");
        rc = pkey ? pkey_store(key_path, pkey, err)
                  : openssl_err(err, ERR_INTERNAL, "cannot make a key");
    }
    if (rc < 0)
        return rc;
    snprintf(cn, sizeof(cn), "%s", subject);
    if (!req || !X509_REQ_set_pubkey(req, pkey) || !set_name(X509_REQ_get_subject_name(req), cn) ||
        !X509_REQ_sign(req, pkey, EVP_sha256()) || !PEM_write_bio_X509_REQ(bio, req))
        return openssl_err(err, ERR_INTERNAL, "cannot make a certificate request");
    long len = BIO_get_mem_data(bio, &pem);
    str_add_len(csr_pem, pem, (size_t)len);
    return 0;
}

int cert_sign(const char *ca_dir, const char *csr_pem, size_t len, const struct cert_names *names,
              struct str *cert_pem, struct err *err)
{
    CLEANUP(authority_done) struct authority authority = { 0 };
    CLEANUP(req_freep) X509_REQ *req = NULL;

    if (len > KEY_FILE_MAX)
        return err_set(err, ERR_TOO_LARGE, "the certificate request is too large");
    CLEANUP(bio_freep) BIO *bio = BIO_new_mem_buf(csr_pem, (int)len);
    req = PEM_read_bio_X509_REQ(bio, NULL, NULL, (void *)(uintptr_t) "");
    EVP_PKEY *pkey = req ? X509_REQ_get0_pubkey(req) : NULL;
    /* The signature shows that whoever asks holds the key; (1) */
    if (!pkey || X509_REQ_verify(req, pkey) != 1)
        return openssl_err(err, ERR_INVALID, "not a valid certificate request");
    int rc = authority_load(&authority, ca_dir, err);
    return rc < 0 ? rc : sign_for(&authority, pkey, names, cert_pem, err);
}
