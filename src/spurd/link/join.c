/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join.c - how a machine becomes a node, and shows that it is one
 *
 * A join token is shown once; what comes back names this node from then on: a token and a
 * certificate, kept in the spool, readable by us alone. The join token may carry the hash of the
 * cluster's authority, by which the right controller is known before anything secret is sent.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "rpc/keys.h"
#include "rpc/tls.h"
#include "spurd/link/join.h"
#include "spurd/root.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/log.h"

enum {
    RENEW_DAYS = 90,
    RENEW_AGAIN_S = 3600,
    TOKEN_BYTES = 16 * 1024,
    CA_BYTES = 256 * 1024,
    JOIN_TIMEOUT_MS = 10000
};

static char *spool_path(const struct agent *agent, const char *name)
{
    return mem_printf("%s/%s", agent->spool_dir, name);
}

static bool read_token(const char *path, struct str *out, struct err *err)
{
    if (file_read_secret(path, TOKEN_BYTES, out, err) < 0)
        return false;
    while (out->len && strchr(" \t\r\n", out->data[out->len - 1]))
        str_truncate(out, out->len - 1);
    return out->len > 0;
}

void join_credentials(void *ctx, struct str *out)
{
    struct agent *agent = ctx;
    CLEANUP(freep) char *path = spool_path(agent, "node.token");
    CLEANUP(str_done) struct str token = { 0 };

    if (read_token(path, &token, NULL))
        str_addf(out, "Bearer %s", str_text(&token));
}

/* Its certificate ends soon: the controller gives another one to who calls with the key of the old one. */
bool join_renews(const struct agent *agent)
{
    CLEANUP(freep) char *token = spool_path(agent, "node.token");
    CLEANUP(freep) char *cert = spool_path(agent, "node.crt");
    int days = 0;

    return agent->tls_client && clock_mono_us() >= agent->renew_after_us &&
           access(token, F_OK) == 0 && access(cert, F_OK) == 0 &&
           cert_days_left(cert, &days, NULL) == 0 && days < RENEW_DAYS;
}

bool join_is_due(const struct agent *agent)
{
    CLEANUP(freep) char *path = spool_path(agent, "node.token");

    return (agent->token_file && access(path, F_OK) < 0) || join_renews(agent);
}

/* ---- TLS ---- */

static bool exists(const char *path)
{
    return path && access(path, R_OK) == 0;
}

/* "…sha256:HEX…" in the join token. */
static bool ca_hash(const struct agent *agent, char out[KEY_HASH_TEXT])
{
    CLEANUP(str_done) struct str token = { 0 };

    if (!agent->token_file || !read_token(agent->token_file, &token, NULL))
        return false;
    const char *at = strstr(str_text(&token), "sha256:");
    if (!at || strspn(at + 7, "0123456789abcdef") < 64)
        return false;
    memcpy(out, at, KEY_HASH_TEXT - 1);
    out[KEY_HASH_TEXT - 1] = '\0';
    return true;
}

static void show_ca_in(const struct agent *agent, const char *dir)
{
    CLEANUP(freep) char *own = spool_path(agent, "ca.crt");
    CLEANUP(freep) char *shown = mem_printf("%s/ca.crt", dir);
    CLEANUP(str_done) struct str text = { 0 };

    if (file_read(own, CA_BYTES, &text, NULL) == 0)
        file_write_quick(shown, text.data, text.len, 0644, NULL);
}

/* Copies that users may read, beside our sockets: their commands talk to controllers and nodes too. */
void join_show_ca(const struct agent *agent)
{
    show_ca_in(agent, agent->run_dir);
    if (agent->shown_dir)
        show_ca_in(agent, agent->shown_dir);
}

static void say_no_token(const struct agent *agent)
{
    CLEANUP(freep) char *path = spool_path(agent, "node.token");

    if (!agent->token_file && access(path, F_OK) < 0)
        log_error("join.no_token",
                  "node=%s it has not joined, and has no token to join with: put what "
                  "'spur token --join' prints into /etc/spur/join.token (mode 0600) and "
                  "start spurd again",
                  agent->name);
}

int join_tls(struct agent *agent, const struct agent_options *options, struct err *err)
{
    CLEANUP(freep) char *own_ca = spool_path(agent, "ca.crt");
    CLEANUP(freep) char *own_cert = spool_path(agent, "node.crt");
    CLEANUP(freep) char *own_key = spool_path(agent, "node.key");
    char hash[KEY_HASH_TEXT];
    const char *ca = options->tls_ca ? options->tls_ca : exists(own_ca) ? own_ca : NULL;
    const char *cert = options->tls_cert ? options->tls_cert : exists(own_cert) ? own_cert : NULL;
    const char *key = options->tls_key ? options->tls_key : exists(own_key) ? own_key : NULL;
    struct tls_options client = { .ca_path = ca };

    join_show_ca(agent);
    if (!options->tls_cert)
        say_no_token(agent);
    if (cert && key) {
        const struct tls_options server = {
            .server = true, .cert_path = cert, .key_path = key, .ca_path = ca
        };
        client.cert_path = cert;
        client.key_path = key;
        agent->tls_server = tls_ctx_new(&server, err);
        if (!agent->tls_server)
            return err_wrap(err, "TLS");
    }
    if (!ca && ca_hash(agent, hash))
        client.ca_hash = hash;
    if (!client.ca_path && !client.ca_hash)
        return 0; /* loopback, or allow_plaintext; the rpc client refuses anything else */
    agent->tls_client = tls_ctx_new(&client, err);
    return agent->tls_client ? 0 : err_wrap(err, "TLS");
}

/* ---- joining ---- */

struct join {
    struct agent *agent;
    void (*done)(void *ctx, const struct err *err);
    void *ctx;
    bool renews;
};

static int keep(struct agent *agent, const char *name, const void *bytes, size_t len,
                struct err *err)
{
    CLEANUP(freep) char *path = spool_path(agent, name);

    return len ? file_write(path, bytes, len, 0600, err) : 0;
}

/* The token is written last: it says that the rest is there. */
static int keep_all(struct agent *agent, const JoinReply *reply, struct err *err)
{
    if (str_is_empty(reply->node_token))
        return err_set(err, ERR_BAD_MESSAGE, "the controller gave no node token");
    if (keep(agent, "ca.crt", reply->ca.data, reply->ca.len, err) < 0 ||
        keep(agent, "node.crt", reply->certificate.data, reply->certificate.len, err) < 0)
        return -(int)err->code;
    return keep(agent, "node.token", reply->node_token, strlen(reply->node_token), err);
}

/* From now on others reach us by TLS, and know us by our certificate; the session begins anew with it. */
static int use_certificate(struct agent *agent, struct err *err)
{
    CLEANUP(freep) char *ca = spool_path(agent, "ca.crt");
    CLEANUP(freep) char *cert = spool_path(agent, "node.crt");
    CLEANUP(freep) char *key = spool_path(agent, "node.key");
    struct tls_options options = {
        .server = true, .cert_path = cert, .key_path = key, .ca_path = ca
    };

    if (!exists(cert) || !exists(ca) || agent->tls_joining)
        return 0;
    if (!agent->tls_server && agent->server && !agent->login) {
        agent->tls_server = tls_ctx_new(&options, err);
        if (!agent->tls_server)
            return -(int)err->code;
        rpc_server_set_tls(agent->server, agent->tls_server);
    }
    options.server = false;
    struct tls_ctx *client = tls_ctx_new(&options, err);
    if (!client)
        return -(int)err->code;
    agent->tls_joining = agent->tls_client;
    agent->tls_client = client;
    return 0;
}

static int reload(struct agent *agent, struct err *err)
{
    CLEANUP(freep) char *cert = spool_path(agent, "node.crt");
    CLEANUP(freep) char *key = spool_path(agent, "node.key");

    if (tls_ctx_reload(agent->tls_client, cert, key, err) < 0)
        return -(int)err->code;
    return agent->tls_server ? tls_ctx_reload(agent->tls_server, cert, key, err) : 0;
}

static void on_joined(struct rpc_request *request, const ProtobufCMessage *message,
                      const struct err *err)
{
    struct join *join = rpc_request_data(request);
    struct err own = { 0 };

    if (join->renews)
        join->agent->renew_after_us = clock_mono_us() + RENEW_AGAIN_S * INT64_C(1000000);
    if (!err &&
        (keep_all(join->agent, (const JoinReply *)(const void *)message, &own) < 0 ||
         (join->renews ? reload(join->agent, &own) : use_certificate(join->agent, &own)) < 0))
        err = &own;
    if (join->renews && err) { /* there is time; the session goes on with the old one */
        log_warn("join.renew", "node=%s text=%s", join->agent->name, err->text);
        join->done(join->ctx, NULL);
        free(join);
        return;
    }
    if (!err)
        join_show_ca(join->agent);
    if (!err)
        log_info("join.done", "node=%s", join->agent->name);
    join->done(join->ctx, err);
    free(join);
}

/* A key of an earlier try that came to nothing is made anew. */
static int make_request(struct agent *agent, bool renew, struct str *csr, struct err *err)
{
    CLEANUP(freep) char *path = spool_path(agent, "node.key");
    CLEANUP(freep) char *subject = mem_printf("node:%s", agent->name);

    if (!renew)
        unlink(path);
    return cert_request(path, subject, csr, err);
}

void join_start(struct agent *agent, struct rpc_client *client,
                void (*done)(void *ctx, const struct err *err), void *ctx)
{
    JoinRequest request = JOIN_REQUEST__INIT;
    CLEANUP(str_done) struct str token = { 0 };
    CLEANUP(str_done) struct str csr = { 0 };
    struct err err = { 0 };

    bool renew = join_renews(agent);
    if ((!renew && !read_token(agent->token_file, &token, &err)) ||
        make_request(agent, renew, &csr, &err) < 0) {
        if (!err.code)
            err_set(&err, ERR_INVALID, "the join token is empty");
        done(ctx, &err);
        return;
    }
    request.node = agent->name;
    request.token = token.data;
    request.has_csr = true;
    request.csr = (ProtobufCBinaryData){ .data = (uint8_t *)csr.data, .len = csr.len };
    struct join *join = NEW(struct join);
    *join = (struct join){ .agent = agent, .done = done, .ctx = ctx, .renews = renew };
    const struct rpc_request_options options = {
        .path = "/spur.Agents/Join",
        .message = &request.base,
        .reply = &join_reply__descriptor,
        .timeout_ms = JOIN_TIMEOUT_MS,
        .data = join,
        .on_done = on_joined,
    };
    rpc_request_start(client, &options);
}
