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
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "rpc/server_priv.h"

struct rpc_auth {
    struct ident *ident;
    struct rpc_server *server;
};

static const char *const how_names[] = {
    [RPC_HOW_NONE] = "none",   [RPC_HOW_UNIX] = "unix", [RPC_HOW_JWT] = "jwt",
    [RPC_HOW_MUNGE] = "munge", [RPC_HOW_CERT] = "cert", [RPC_HOW_VOUCHED] = "vouched",
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

    if (!ident || !ident->counted)
        return;
    ident->counted = false;
    uintptr_t count = (uintptr_t)map_get_num(&server->per_uid, ident->id.uid);
    if (count <= 1)
        map_del_num(&server->per_uid, ident->id.uid);
    else
        map_put_num(&server->per_uid, ident->id.uid, (void *)(count - 1));
}

void auth_forget(struct conn *conn)
{
    uncount(conn, conn->own);
    uncount(conn, conn->token);
    ident_unref(TAKE(conn->own));
    ident_unref(TAKE(conn->token));
}

static void ask_roles(struct rpc_server *server, struct ident *ident)
{
    struct rpc_auth *auth = NEW(struct rpc_auth);

    auth->ident = ident;
    auth->server = server;
    ident->refs++;
    server_ref(server);
    ident->roles = RPC_ROLES_LATER;
    unsigned roles = server->options.roles(server->options.ctx, &ident->id, auth);
    if (roles != RPC_ROLES_LATER)
        rpc_auth_done(auth, NULL, roles);
}

void rpc_auth_done(struct rpc_auth *auth, const struct rpc_identity *identity, unsigned roles)
{
    struct ident *ident = auth->ident;
    struct rpc_server *server = auth->server;

    if (identity)
        ident->id = *identity;
    ident->roles =
        (roles & ~RPC_ROLES_LATER) == 0 && roles == RPC_ROLES_LATER ? RPC_ANON : roles | RPC_ANON;
    for (struct conn *conn = server->conns; conn; conn = conn->next) {
        if (conn->own == ident || conn->token == ident)
            conn_run_held(conn); /* (3) */
    }
    ident_unref(ident);
    free(auth);
    server_unref(server);
}

struct ident *auth_connection(struct conn *conn)
{
    struct ident *ident = NEW(struct ident);

    ident->refs = 1;
    ident->id.local = conn->local;
    return ident;
}

static struct ident *verify(struct conn *conn, const char *token)
{
    struct ident *ident = NEW(struct ident);

    ident->refs = 1;
    ident->token = mem_strdup(token);
    ident->id.local = conn->local;
    err_set(&ident->refused, ERR_UNAUTHENTICATED, "this server accepts no tokens");
    return ident;
}

static bool still_good(const struct conn *conn, const struct ident *ident, const char *token)
{
    if (!ident || strcmp(ident->token, token) != 0)
        return false;
    return !ident->id.expires_s || ident->id.expires_s > server_now_s(conn->server);
}

void auth_call(struct rpc_call *call)
{
    struct conn *conn = call->conn;
    struct ident *ident = conn->own;

    if (call->authorization) {                                     /* (1) */
        if (!still_good(conn, conn->token, call->authorization)) { /* (2) */
            uncount(conn, conn->token);
            ident_unref(conn->token);
            conn->token = verify(conn, call->authorization);
        }
        ident = conn->token;
    }
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
