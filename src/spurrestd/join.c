/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join.c - how spurrestd becomes rest:NAME
 *
 * A join token (spur token --join --node rest:NAME) is shown once; the certificate that comes back is kept in the
 * state directory. With it the controller gives us tokens for callers whom we know from a socket or a session.
 * Without one, spurrestd serves callers who show a token of their own.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/agent.pb-c.h"
#include "rpc/keys.h"
#include "rpc/tls.h"
#include "spurrestd/ask.h"
#include "spurrestd/rest.h"
#include "sys/files.h"
#include "sys/log.h"

enum { TOKEN_BYTES = 16 * 1024 };

static char *state_path(const struct rest *rest, const char *name)
{
    return mem_printf("%s/%s", rest->options->state_dir, name);
}

static bool exists(const char *path)
{
    return access(path, R_OK) == 0;
}

static bool read_token(const struct rest *rest, struct str *out, struct err *err)
{
    if (!rest->options->token_file)
        return err_set(err, ERR_NOT_FOUND, "there is no join token") == 0;
    if (file_read_secret(rest->options->token_file, TOKEN_BYTES, out, err) < 0)
        return false;
    while (out->len && strchr(" \t\r\n", out->data[out->len - 1]))
        str_truncate(out, out->len - 1);
    return out->len > 0;
}

static bool ca_hash(const struct rest *rest, char out[KEY_HASH_TEXT])
{
    CLEANUP(str_done) struct str token = { 0 };
    struct err ignored = { 0 };

    if (!read_token(rest, &token, &ignored))
        return false;
    const char *at = strstr(str_text(&token), "sha256:");
    if (!at || strspn(at + 7, "0123456789abcdef") < 64)
        return false;
    memcpy(out, at, KEY_HASH_TEXT - 1);
    out[KEY_HASH_TEXT - 1] = '\0';
    return true;
}

int join_server_tls(struct rest *rest, struct err *err)
{
    const struct rest_options *o = rest->options;
    const struct tls_options options = {
        .server = true, .http1 = true, .cert_path = o->tls_cert, .key_path = o->tls_key
    };

    if (!o->tls_cert)
        return 0;
    struct tls_ctx *fresh = tls_ctx_new(&options, err);
    if (!fresh)
        return err_wrap(err, "TLS of callers");
    tls_ctx_free(rest->tls_server);
    rest->tls_server = fresh;
    return 0;
}

/* Clients of the controllers refer to what was before until they are made anew. */
int join_tls(struct rest *rest, struct err *err)
{
    CLEANUP(freep) char *own_ca = state_path(rest, "ca.crt");
    CLEANUP(freep) char *own_cert = state_path(rest, "rest.crt");
    CLEANUP(freep) char *own_key = state_path(rest, "rest.key");
    char hash[KEY_HASH_TEXT];
    struct tls_options client = { .ca_path = rest->options->tls_ca };

    if (join_server_tls(rest, err) < 0)
        return -(int)err->code;
    if (!client.ca_path && exists(own_ca))
        client.ca_path = own_ca;
    rest->joined = exists(own_cert) && exists(own_key);
    if (rest->joined) {
        client.cert_path = own_cert;
        client.key_path = own_key;
    }
    if (!client.ca_path && ca_hash(rest, hash))
        client.ca_hash = hash;
    if (!client.ca_path && !client.ca_hash)
        return 0; /* a controller on this host, and callers with tokens */
    struct tls_ctx *fresh = tls_ctx_new(&client, err);
    if (!fresh)
        return err_wrap(err, "TLS to the controller");
    tls_ctx_free(rest->tls_before);
    rest->tls_before = rest->tls_client;
    rest->tls_client = fresh;
    return 0;
}

/* ---- joining ---- */

struct join {
    struct rest *rest;
    void (*done)(struct rest *rest, const struct err *err);
    JoinRequest request;
    struct str token, csr;
    char *name;
};

static int keep(struct rest *rest, const char *name, ProtobufCBinaryData bytes, struct err *err)
{
    CLEANUP(freep) char *path = state_path(rest, name);

    if (!bytes.len)
        return err_set(err, ERR_BAD_MESSAGE, "the controller gave no %s", name);
    return file_write(path, bytes.data, bytes.len, 0600, err);
}

static void join_free(struct join *join)
{
    str_done(&join->token);
    str_done(&join->csr);
    free(join->name);
    free(join);
}

static void on_joined(void *ctx, const ProtobufCMessage *message, const struct err *err)
{
    struct join *join = ctx;
    struct rest *rest = join->rest;
    const JoinReply *reply = (const void *)message;
    struct err own = { 0 };

    /* The certificate is written last: it says that the rest is there. */
    if (!err && (keep(rest, "ca.crt", reply->ca, &own) < 0 ||
                 keep(rest, "rest.crt", reply->certificate, &own) < 0 || join_tls(rest, &own) < 0))
        err = &own;
    if (!err)
        log_info("join.done", "name=%s cluster=%s", join->name,
                 reply->cluster_name ? reply->cluster_name : "");
    join->done(rest, err);
    join_free(join);
}

void join_start(struct rest *rest, void (*done)(struct rest *rest, const struct err *err))
{
    CLEANUP(freep) char *key = state_path(rest, "rest.key");
    struct join *join = NEW(struct join);
    struct err err = { 0 };

    join->rest = rest;
    join->done = done;
    join->name = mem_printf("rest:%s", rest->options->name);
    unlink(key); /* of an earlier try that came to nothing */
    if (!read_token(rest, &join->token, &err) ||
        cert_request(key, join->name, &join->csr, &err) < 0) {
        if (!err.code)
            err_set(&err, ERR_INVALID, "the join token is empty");
        done(rest, &err);
        join_free(join);
        return;
    }
    join_request__init(&join->request);
    join->request.node = join->name;
    join->request.token = join->token.data;
    join->request.has_csr = true;
    join->request.csr = (ProtobufCBinaryData){ join->csr.len, (uint8_t *)join->csr.data };
    const struct ask_call call = { .method = "/spur.Agents/Join",
                                   .message = &join->request.base,
                                   .reply = &join_reply__descriptor,
                                   .ours = true };
    ask_own(rest->upstream, &call, join, on_joined, NULL);
}
