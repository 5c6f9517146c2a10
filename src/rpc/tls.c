/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.c - TLS 1.3 on memory buffers
 *
 * (1) The chain is checked by OpenSSL during the handshake, the name by us right after it, before
 *     tls_handshake() says that it is done.
 * (2) With only a hash of the authority, the certificate in the server's own chain that has this hash
 *     is trusted, and the chain is then checked as always.
 */
#include "rpc/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/keys.h"
#include "rpc/openssl.h"
#include "sys/files.h"

enum { SUBJECT_BYTES = 320 };

struct tls_ctx {
    SSL_CTX *ssl;
    unsigned refs; /* its owner and every tls */
    bool server, http1;
    char ca_hash[KEY_HASH_TEXT]; /* empty: trust the store */
};

struct tls {
    SSL *ssl;
    BIO *in, *out;
    struct tls_ctx *ctx;
    bool done;
    char peer[256], subject[SUBJECT_BYTES];
};

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                   const unsigned char *in, unsigned in_len, void *arg)
{
    static const unsigned char both[] = "\x02h2\x08http/1.1";
    const struct tls_ctx *ctx = arg;

    (void)ssl;
    if (SSL_select_next_proto((unsigned char **)(uintptr_t)out, out_len, both,
                              ctx->http1 ? sizeof(both) - 1 : 3, in,
                              in_len) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    return SSL_TLSEXT_ERR_OK;
}

/* (2) */
static int verify_by_hash(X509_STORE_CTX *store, void *arg)
{
    struct tls_ctx *ctx = arg;
    STACK_OF(X509) *shown = X509_STORE_CTX_get0_untrusted(store);
    STACK_OF(X509) *trusted = NULL;
    char hash[KEY_HASH_TEXT];

    for (int i = 0; i < sk_X509_num(shown) && !trusted; i++) {
        X509 *cert = sk_X509_value(shown, i);
        x509_hash(cert, hash);
        if (strcmp(hash, ctx->ca_hash) == 0 && X509_check_ca(cert)) {
            trusted = sk_X509_new_null();
            sk_X509_push(trusted, cert);
        }
    }
    if (!trusted) {
        X509_STORE_CTX_set_error(store, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN);
        return 0;
    }
    X509_STORE_CTX_set0_trusted_stack(store, trusted);
    int good = X509_verify_cert(store);
    sk_X509_free(trusted);
    return good > 0;
}

static int load_own(struct tls_ctx *ctx, const struct tls_options *options, struct err *err)
{
    CLEANUP(pkey_freep) EVP_PKEY *pkey = NULL;

    if (!options->cert_path)
        return options->server ? err_set(err, ERR_CONFIG, "a server needs a certificate") : 0;
    if (SSL_CTX_use_certificate_chain_file(ctx->ssl, options->cert_path) != 1)
        return openssl_err(err, ERR_CONFIG, "certificate %s", options->cert_path);
    int rc = pkey_load(options->key_path, &pkey, err);
    if (rc < 0)
        return rc;
    if (SSL_CTX_use_PrivateKey(ctx->ssl, pkey) != 1 || SSL_CTX_check_private_key(ctx->ssl) != 1)
        return openssl_err(err, ERR_CONFIG, "%s does not belong to %s", options->key_path,
                           options->cert_path);
    return 0;
}

static int load_trust(struct tls_ctx *ctx, const struct tls_options *options, struct err *err)
{
    if (options->ca_hash) {
        snprintf(ctx->ca_hash, sizeof(ctx->ca_hash), "%s", options->ca_hash);
        SSL_CTX_set_cert_verify_callback(ctx->ssl, verify_by_hash, ctx);
    } else if (options->ca_path) {
        if (SSL_CTX_load_verify_file(ctx->ssl, options->ca_path) != 1)
            return openssl_err(err, ERR_CONFIG, "certificate authority %s", options->ca_path);
    } else if (!options->server) {
        return err_set(err, ERR_CONFIG, "TLS needs a certificate authority to trust");
    }
    if (!options->server || options->ca_path)
        SSL_CTX_set_verify(ctx->ssl, SSL_VERIFY_PEER, NULL);
    return 0;
}

struct tls_ctx *tls_ctx_new(const struct tls_options *options, struct err *err)
{
    static const unsigned char h2[] = { 2, 'h', '2' };
    static const unsigned char session[] = "spur";
    struct tls_ctx *ctx = NEW(struct tls_ctx);

    ctx->refs = 1;
    ctx->server = options->server;
    ctx->http1 = options->http1;
    ctx->ssl = SSL_CTX_new(options->server ? TLS_server_method() : TLS_client_method());
    if (!ctx->ssl || !SSL_CTX_set_min_proto_version(ctx->ssl, TLS1_3_VERSION)) {
        openssl_err(err, ERR_INTERNAL, "cannot set TLS up");
        tls_ctx_free(ctx);
        return NULL;
    }
    SSL_CTX_set_mode(ctx->ssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_num_tickets(ctx->ssl, 0);
    SSL_CTX_set_session_cache_mode(ctx->ssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_session_id_context(ctx->ssl, session, sizeof(session) - 1);
    if (options->server)
        SSL_CTX_set_alpn_select_cb(ctx->ssl, on_alpn, ctx);
    else
        SSL_CTX_set_alpn_protos(ctx->ssl, h2, sizeof(h2));
    if (load_own(ctx, options, err) < 0 || load_trust(ctx, options, err) < 0) {
        tls_ctx_free(ctx);
        return NULL;
    }
    return ctx;
}

void tls_ctx_free(struct tls_ctx *ctx)
{
    if (!ctx || --ctx->refs)
        return;
    SSL_CTX_free(ctx->ssl);
    free(ctx);
}

static bool is_number(const char *host)
{
    unsigned char ip[16];

    return inet_pton(AF_INET, host, ip) == 1 || inet_pton(AF_INET6, host, ip) == 1;
}

struct tls *tls_new(struct tls_ctx *ctx, const char *peer)
{
    struct tls *tls = NEW(struct tls);

    ctx->refs++;
    tls->ctx = ctx;
    tls->ssl = SSL_new(ctx->ssl);
    tls->in = BIO_new(BIO_s_mem());
    tls->out = BIO_new(BIO_s_mem());
    if (!tls->ssl || !tls->in || !tls->out)
        abort(); /* out of memory for a few kilobytes */
    SSL_set_bio(tls->ssl, tls->in, tls->out);
    snprintf(tls->peer, sizeof(tls->peer), "%s", peer ? peer : "");
    if (ctx->server) {
        SSL_set_accept_state(tls->ssl);
    } else {
        SSL_set_connect_state(tls->ssl);
        if (tls->peer[0] && !is_number(tls->peer) && !strchr(tls->peer, ':'))
            SSL_set_tlsext_host_name(tls->ssl, tls->peer);
    }
    return tls;
}

void tls_free(struct tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->ssl); /* and its buffers */
    tls_ctx_free(tls->ctx);
    free(tls);
}

int tls_input(struct tls *tls, const void *bytes, size_t len, struct err *err)
{
    if (BIO_write(tls->in, bytes, (int)len) != (int)len)
        return openssl_err(err, ERR_NO_MEMORY, "TLS");
    return 0;
}

static int failed(struct tls *tls, struct err *err)
{
    long verify = SSL_get_verify_result(tls->ssl);

    if (!tls->ctx->server && verify != X509_V_OK) {
        ERR_clear_error();
        return err_set(err, ERR_UNAUTHENTICATED, "the server's certificate is not trusted: %s",
                       X509_verify_cert_error_string(verify));
    }
    return openssl_err(err, ERR_BAD_MESSAGE, "TLS");
}

/* (1) */
static int check_peer(struct tls *tls, struct err *err)
{
    X509 *cert = SSL_get0_peer_certificate(tls->ssl);

    if (cert)
        x509_subject(cert, tls->subject, sizeof(tls->subject));
    if (tls->ctx->server)
        return 0;
    if (!cert)
        return err_set(err, ERR_UNAUTHENTICATED, "the server shows no certificate");
    bool good =
        str_starts(tls->subject, "controller:") ||
        (tls->subject[0] && strcmp(tls->subject, tls->peer) == 0) ||
        (is_number(tls->peer) ? X509_check_ip_asc(cert, tls->peer, 0) == 1
                              : tls->peer[0] && X509_check_host(cert, tls->peer, 0, 0, NULL) == 1);
    ERR_clear_error();
    if (!good)
        return err_set(err, ERR_UNAUTHENTICATED, "the server's certificate is for %s, not for %s",
                       tls->subject[0] ? tls->subject : "others", tls->peer);
    return 0;
}

int tls_handshake(struct tls *tls, struct err *err)
{
    if (tls->done)
        return 1;
    ERR_clear_error();
    int rc = SSL_do_handshake(tls->ssl);
    if (rc == 1) {
        int bad = check_peer(tls, err);
        tls->done = bad == 0;
        return bad < 0 ? bad : 1;
    }
    int why = SSL_get_error(tls->ssl, rc);
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? 0 : failed(tls, err);
}

ssize_t tls_read(struct tls *tls, void *out, size_t room, struct err *err)
{
    size_t got = 0;

    ERR_clear_error();
    int rc = SSL_read_ex(tls->ssl, out, room, &got);
    if (rc == 1)
        return (ssize_t)got;
    int why = SSL_get_error(tls->ssl, rc);
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE)
        return 0;
    if (why == SSL_ERROR_ZERO_RETURN)
        return err_set(err, ERR_CONNECTION_LOST, "the peer closed the connection");
    return failed(tls, err);
}

int tls_write(struct tls *tls, const void *bytes, size_t len, struct err *err)
{
    size_t done = 0;

    ERR_clear_error();
    if (len && (SSL_write_ex(tls->ssl, bytes, len, &done) != 1 || done != len))
        return failed(tls, err);
    return 0;
}

size_t tls_output(struct tls *tls, void *out, size_t room)
{
    int got = BIO_read(tls->out, out, (int)MIN(room, (size_t)INT32_MAX));

    return got > 0 ? (size_t)got : 0;
}

bool tls_is_h2(const struct tls *tls)
{
    const unsigned char *name = NULL;
    unsigned len = 0;

    SSL_get0_alpn_selected(tls->ssl, &name, &len);
    return len == 2 && memcmp(name, "h2", 2) == 0;
}

int tls_ctx_reload(struct tls_ctx *ctx, const char *cert_path, const char *key_path,
                   struct err *err)
{
    if (SSL_CTX_use_certificate_chain_file(ctx->ssl, cert_path) != 1 ||
        SSL_CTX_use_PrivateKey_file(ctx->ssl, key_path, SSL_FILETYPE_PEM) != 1)
        return openssl_err(err, ERR_INVALID, "certificate %s", cert_path);
    return 0;
}

const char *tls_peer_subject(const struct tls *tls)
{
    return tls->subject;
}

bool tls_peer_key(const struct tls *tls, uint8_t out[TLS_KEY_BYTES])
{
    X509 *cert = SSL_get0_peer_certificate(tls->ssl);

    if (cert)
        x509_key(cert, out);
    return cert != NULL;
}

int tls_peer_ca(const struct tls *tls, struct str *out, struct err *err)
{
    STACK_OF(X509) *chain = SSL_get0_verified_chain(tls->ssl);
    int count = sk_X509_num(chain);

    if (count < 1)
        return err_set(err, ERR_UNAUTHENTICATED, "the peer showed no certificate authority");
    CLEANUP(bio_freep) BIO *bio = BIO_new(BIO_s_mem());
    char *pem;
    PEM_write_bio_X509(bio, sk_X509_value(chain, count - 1));
    long len = BIO_get_mem_data(bio, &pem);
    str_add_len(out, pem, (size_t)len);
    return 0;
}
