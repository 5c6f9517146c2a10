/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth.c - from what a caller shows to who it is and what it may do
 *
 * (1) A connection has an identity of its own (unix credentials, certificate, or nobody). An
 *     authorization header replaces it for its call; one that does not verify refuses the call and
 *     never falls back to the connection's.
 * (2) The last header of a connection is remembered with its result, so that a token is verified and
 *     its roles are asked for once, not with every call. An expired one is verified again.
 * (3) Roles that come later hold the calls that need them, in order.
 * (4) Roles are good for ROLES_KEEP_S: then the connection gets a new identity with the same proof, whose roles
 *     are asked for again. Calls under way keep the one that they began with.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/jwt.h"
#include "rpc/munge.h"
#include "rpc/server_priv.h"
#include "sys/clock.h"

enum { ROLES_KEEP_S = 5 };

struct rpc_auth {
    struct ident *ident;
    struct rpc_server *server;
};

static const char *const how_names[] = {
    [RPC_HOW_NONE] = "none",   [RPC_HOW_UNIX] = "unix", [RPC_HOW_JWT] = "jwt",
    [RPC_HOW_MUNGE] = "munge", [RPC_HOW_CERT] = "cert",
};

const char *rpc_how_name(enum rpc_how how)
{
    return (unsigned)how < ARRAY_LEN(how_names) ? how_names[how] : "?";
}

void ident_ref(struct ident *ident)
{
    ident->refs++;
}

void ident_unref(struct ident *ident)
{
    if (!ident || --ident->refs)
        return;
    free(ident->token);
    free(ident);
}

/* One more connection of this uid, unless it has too many. */
bool auth_count(struct conn *conn, struct ident *ident)
{
    struct rpc_server *server = conn->server;

    if (ident->counted || !ident->id.has_uid)
        return true;
    uintptr_t count = (uintptr_t)map_get_num(&server->per_uid, ident->id.uid);
    if (count >= server->options.max_per_uid)
        return false;
    map_put_num(&server->per_uid, ident->id.uid, (void *)(count + 1));
    ident->counted = true;
    return true;
}

static void uncount(struct conn *conn, struct ident *ident)
{
    struct rpc_server *server = conn->server;

    if (!ident->counted)
        return;
    ident->counted = false;
    uintptr_t count = (uintptr_t)map_get_num(&server->per_uid, ident->id.uid);
    if (count <= 1)
        map_del_num(&server->per_uid, ident->id.uid);
    else
        map_put_num(&server->per_uid, ident->id.uid, (void *)(count - 1));
}

static void forget(struct conn *conn, struct ident **which)
{
    if (!*which)
        return;
    uncount(conn, *which);
    (*which)->conn = NULL;
    ident_unref(TAKE(*which));
}

void auth_forget(struct conn *conn)
{
    forget(conn, &conn->own);
    forget(conn, &conn->token);
}

static void ask_roles(struct rpc_server *server, struct ident *ident)
{
    struct rpc_auth *auth = NEW(struct rpc_auth);

    auth->ident = ident;
    auth->server = server;
    ident_ref(ident);
    server_ref(server);
    ident->roles = RPC_ROLES_LATER;
    unsigned roles = server->options.roles(server->options.ctx, &ident->id, auth);
    if (roles != RPC_ROLES_LATER)
        rpc_auth_done(auth, NULL, roles);
}

/* What was due is known: the calls that wait for it go on; (3) */
static void settled(struct ident *ident, unsigned roles)
{
    ident->roles = roles | RPC_ANON;
    ident->roles_until_us = clock_mono_us() + ROLES_KEEP_S * INT64_C(1000000);
    if (ident->conn)
        conn_run_held(ident->conn);
}

void rpc_auth_refuse(struct rpc_auth *auth, const struct err *err)
{
    auth->ident->refused = *err;
}

void rpc_auth_done(struct rpc_auth *auth, const struct rpc_identity *identity, unsigned roles)
{
    struct ident *ident = auth->ident;
    struct rpc_server *server = auth->server;

    if (identity)
        ident->id = *identity;
    settled(ident, roles == RPC_ROLES_LATER ? RPC_ANON : roles);
    ident_unref(ident);
    free(auth);
    server_unref(server);
}

static struct ident *ident_new(struct conn *conn)
{
    struct ident *ident = NEW(struct ident);

    ident->refs = 1;
    ident->conn = conn;
    ident->id.local = conn->local;
    return ident;
}

struct ident *auth_connection(struct conn *conn)
{
    return ident_new(conn);
}

void auth_certificate(struct conn *conn, const char *subject)
{
    struct rpc_identity *id = &conn->own->id;

    id->how = RPC_HOW_CERT;
    if (str_starts(subject, "node:"))
        snprintf(id->node, sizeof(id->node), "%s", subject + strlen("node:"));
    else if (str_starts(subject, "controller:"))
        snprintf(id->controller, sizeof(id->controller), "%s", subject + strlen("controller:"));
    else if (str_starts(subject, "rest:"))
        snprintf(id->rest, sizeof(id->rest), "%s", subject + strlen("rest:"));
    conn->proven = conn->link.proven = true;
}

static void check_bearer(struct rpc_server *server, struct ident *ident, const char *token)
{
    struct jwt_claims claims;
    enum jwt_kind kind;

    if (!server->options.jwt) {
        err_set(&ident->refused, ERR_UNAUTHENTICATED, "this server accepts no tokens");
        return;
    }
    if (jwt_verify(server->options.jwt, token, strlen(token), clock_wall_s(), &claims, &kind,
                   &ident->refused) < 0)
        return;
    struct rpc_identity *id = &ident->id;
    id->how = RPC_HOW_JWT;
    id->has_uid = claims.has_uid;
    id->uid = claims.uid;
    id->gid = claims.has_gid ? claims.gid : (uint32_t)-1;
    id->expires_s = claims.expires_s;
    id->issued_s = claims.issued_s;
    id->no_staff = claims.no_staff;
    memcpy(id->user, claims.user, sizeof(id->user));
    memcpy(id->node, claims.node, sizeof(id->node));
    if (kind == JWT_CLUSTER) /* an issuer cannot say that one of our hosts vouched */
        memcpy(id->by, claims.by, sizeof(id->by));
    if (claims.has_job) {
        id->job = claims.job;
        memcpy(id->job_node, claims.job_node, sizeof(id->job_node));
    }
}

/* munged may be slow: it is asked on a worker. */
struct munge_work {
    uv_work_t work;
    struct ident *ident;
    struct rpc_server *server;
    char *credential;
    uint32_t uid, gid;
    struct err err;
};

static void munge_run(uv_work_t *work)
{
    struct munge_work *munge = work->data;

    munge_check(munge->credential, &munge->uid, &munge->gid, &munge->err);
}

static void munge_ran(uv_work_t *work, int status)
{
    struct munge_work *munge = work->data;
    struct ident *ident = munge->ident;

    if (status < 0)
        err_set(&munge->err, ERR_UNAUTHENTICATED, "MUNGE: %s", uv_strerror(status));
    if (munge->err.code) {
        ident->refused = munge->err;
        settled(ident, RPC_ANON);
    } else {
        ident->id.how = RPC_HOW_MUNGE;
        ident->id.has_uid = true;
        ident->id.uid = munge->uid;
        ident->id.gid = munge->gid;
        if (ident->conn && !auth_count(ident->conn, ident))
            err_set(&ident->refused, ERR_TOO_MANY, "user %u has too many connections",
                    (unsigned)munge->uid);
        ask_roles(munge->server, ident);
    }
    ident_unref(ident);
    server_unref(munge->server);
    free(munge->credential);
    free(munge);
}

static void check_munge(struct rpc_server *server, struct ident *ident, const char *credential)
{
    if (!server->options.munge) {
        err_set(&ident->refused, ERR_UNAUTHENTICATED, "this server accepts no MUNGE credentials");
        return;
    }
    struct munge_work *munge = NEW(struct munge_work);
    munge->ident = ident;
    munge->server = server;
    munge->credential = mem_strdup(credential);
    munge->work.data = munge;
    ident_ref(ident);
    server_ref(server);
    ident->roles = RPC_ROLES_LATER;
    int rc = uv_queue_work(server->loop->uv, &munge->work, munge_run, munge_ran);
    if (rc < 0)
        munge_ran(&munge->work, rc);
}

/* (4). The proof is not shown again: munged takes a credential once only. */
static void renew_roles(struct conn *conn, struct ident **which)
{
    struct ident *old = *which;

    if (!old->roles || old->roles == RPC_ROLES_LATER || old->refused.code ||
        old->roles_until_us > clock_mono_us())
        return;
    struct ident *fresh = ident_new(conn);
    fresh->id = old->id;
    fresh->token = old->token ? mem_strdup(old->token) : NULL;
    forget(conn, which);
    *which = fresh;
}

static struct ident *verify(struct conn *conn, const char *header)
{
    struct ident *ident = ident_new(conn);

    ident->token = mem_strdup(header);
    if (str_istarts(header, "Bearer "))
        check_bearer(conn->server, ident, header + strlen("Bearer "));
    else if (str_istarts(header, "Munge "))
        check_munge(conn->server, ident, header + strlen("Munge "));
    else
        err_set(&ident->refused, ERR_UNAUTHENTICATED,
                "authorization must be 'Bearer <token>' or 'Munge <credential>'");
    return ident;
}

static bool still_good(const struct ident *ident, const char *token)
{
    if (!ident || strcmp(ident->token, token) != 0)
        return false;
    return !ident->id.expires_s || ident->id.expires_s > clock_wall_s();
}

void auth_call(struct rpc_call *call)
{
    struct conn *conn = call->conn;

    if (call->authorization && !still_good(conn->token, call->authorization)) { /* (2) */
        forget(conn, &conn->token);
        conn->token = verify(conn, call->authorization);
    }
    struct ident **which = call->authorization ? &conn->token : &conn->own; /* (1) */
    renew_roles(conn, which);
    struct ident *ident = *which;
    call->ident = ident;
    ident_ref(ident);
    if (!ident->refused.code && !auth_count(conn, ident))
        err_set(&ident->refused, ERR_TOO_MANY, "user %u has too many connections",
                (unsigned)ident->id.uid);
    if (!ident->refused.code && !ident->roles)
        ask_roles(call->server, ident);
}

int auth_check(const struct rpc_call *call, struct err *err)
{
    const struct ident *ident = call->ident;

    if (ident->refused.code) {
        *err = ident->refused;
        return -(int)err->code;
    }
    if (call->method->roles & ident->roles)
        return 0;
    if (ident->id.how == RPC_HOW_NONE)
        return err_set(err, ERR_UNAUTHENTICATED,
                       "%s needs to know who you are; this connection shows neither credentials "
                       "nor a token",
                       call->method->path);
    return err_set(err, ERR_PERMISSION, "%s", err_text(ERR_PERMISSION));
}
