/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vouch.c - tokens for users whom their node vouches for
 *
 * A node knows from its socket who asks, and asks us. What it may say is decided here:
 *
 * (1) A login node (access.login_nodes) may vouch for everybody who is logged in there.
 * (2) Any other node may vouch for users who have a job there, and never for root, administrators or
 *     operators: who takes over a compute node gets no more than the jobs on it.
 * (3) The token is good for VOUCH_S; the node asks again. It says who vouched: tokens.c makes no longer one of what a
 *     compute node vouched for.
 * (4) Root of such a node is the node: it gets a token that names the node and no user.
 * (5) Who comes by our own socket gets a token too: another controller may lead, and nodes run the steps.
 *
 * spurrestd (role rest) knows its caller from a socket or a session, and asks for that user:
 *
 * (6) It may name everybody. What it gets never has the roles of staff, whoever it is for: whoever takes
 *     spurrestd over cannot drain a node or read another's script by the name of root.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "spurctld/serve.h"
#include "sys/log.h"
#include "sys/users.h"

enum { VOUCH_S = 60, GROUP_UNKNOWN = 65534 };

bool server_is_login(const struct server *server, const char *node)
{
    const Config *config = state_config(ctl_state(server->ctl));
    bool found = false;

    for (size_t i = 0; !found && i < config->n_login_nodes; i++) {
        struct hostlist list = { 0 };
        if (hostlist_parse(&list, config->login_nodes[i], NULL) == 0)
            found = hostlist_find(&list, node) >= 0;
        hostlist_done(&list);
    }
    return found;
}

static bool has_job(const struct server *server, const char *name, uint32_t uid)
{
    const struct node *node = state_node(ctl_state(server->ctl), name);

    for (size_t i = 0; node && i < node->jobs.len; i++) {
        if (node->jobs.items[i]->owner->uid == uid)
            return true;
    }
    return false;
}

struct vouching {
    uv_work_t work;
    struct rpc_call *call;
    struct server *server;
    char *node;
    uint32_t uid, gid;
    bool by_rest;      /* (4) */
    char *name;        /* rest: of whom, instead of the uid */
    struct user *user; /* NULL: no account */
    struct err bad_name;
};

static void look_up(uv_work_t *work)
{
    struct vouching *vouching = work->data;

    if (!vouching->name)
        users_by_uid(vouching->uid, &vouching->user, NULL);
    else if (users_by_name(vouching->name, &vouching->user, &vouching->bad_name) == 0)
        vouching->uid = vouching->user->uid;
}

/* Of his groups the one that his process has; else his first. */
static uint32_t group_of(const struct vouching *vouching)
{
    const struct user *user = vouching->user;

    for (size_t i = 0; user && i < user->group_count; i++) {
        if (user->groups[i] == vouching->gid)
            return vouching->gid;
    }
    if (user)
        return user->gid;
    return vouching->gid == (uint32_t)-1 ? GROUP_UNKNOWN : vouching->gid;
}

static int check(const struct vouching *vouching, struct err *err)
{
    struct server *server = vouching->server;
    const char *name = vouching->user ? vouching->user->name : NULL;
    unsigned roles = server_person_roles(server, vouching->uid, name);

    if (vouching->bad_name.code) {
        *err = vouching->bad_name;
        return -(int)err->code;
    }
    if (vouching->by_rest) /* (6) */
        return 0;
    bool staff = roles & (RPC_ADMIN | RPC_OPERATOR);
    if (server_is_login(server, vouching->node)) /* (1) */
        return !staff || conf_local(server->conf)->login_admins
                   ? 0
                   : err_set(err, ERR_PERMISSION,
                             "login hosts do not vouch for administrators here "
                             "(access.login_admins): use a controller's host, or a token that "
                             "'scontrol token' gave you there");
    if (vouching->uid == 0) /* (4) */
        return 0;
    if (roles & (RPC_ADMIN | RPC_OPERATOR)) /* (2) */
        return err_set(err, ERR_PERMISSION,
                       "a compute node does not vouch for administrators: use a login host or a "
                       "controller's host, or a token that 'scontrol token' gave you there");
    if (!has_job(server, vouching->node, vouching->uid))
        return err_set(err, ERR_PERMISSION, "uid %u has no job on node '%s'", vouching->uid,
                       vouching->node);
    return 0;
}

static char *make_token(const struct vouching *vouching, struct err *err)
{
    const struct secrets *secrets = &vouching->server->secrets;
    bool is_login = server_is_login(vouching->server, vouching->node);
    char number[16], by[RPC_NAME_BYTES];

    snprintf(by, sizeof(by), "%s:%.200s",
             vouching->by_rest ? "rest"
             : is_login        ? "login"
                               : "node",
             vouching->node);
    if (!vouching->by_rest && vouching->uid == 0 && !is_login)
        return secrets_node_pass(secrets, vouching->node, VOUCH_S, err); /* (4) */
    snprintf(number, sizeof(number), "%u", vouching->uid);
    return (vouching->by_rest ? secrets_rest_token : secrets_user_token)(
        secrets, vouching->uid, group_of(vouching), vouching->user ? vouching->user->name : number,
        by, VOUCH_S, err);
}

/* Where agents and commands reach the controllers, when there are several. */
static void list_controllers(const struct server *server, struct str *out)
{
    vec_each (struct controller, at, &server->membership.list)
        str_addf(out, "%shttps://%s:%u", out->len ? "," : "", at->host, at->port);
}

static void looked_up(uv_work_t *work, int status)
{
    struct vouching *vouching = work->data;
    VouchReply reply = VOUCH_REPLY__INIT;
    struct err err = { 0 };

    (void)status;
    if (check(vouching, &err) == 0)
        reply.token = make_token(vouching, &err);
    CLEANUP(str_done) struct str list = { 0 };
    list_controllers(vouching->server, &list);
    if (reply.token) {
        reply.controllers = list.len ? (char *)(uintptr_t)str_text(&list) : NULL;
        reply.has_lifespan_s = true;
        reply.lifespan_s = VOUCH_S;
        rpc_reply(vouching->call, &reply.base);
    } else {
        log_info("vouch.refused", "node=%s uid=%u why=%s", vouching->node, vouching->uid, err.text);
        rpc_fail(vouching->call, &err);
    }
    free(reply.token);
    user_free(vouching->user);
    free(vouching->node);
    free(vouching->name);
    free(vouching);
}

void server_on_vouch(struct rpc_call *call, const ProtobufCMessage *message)
{
    const VouchRequest *request = (const void *)message;
    struct err err = { 0 };

    if (server_check_node(rpc_call_ctx(call), call, &err) < 0) {
        rpc_fail(call, &err);
        return;
    }
    struct vouching *vouching = NEW(struct vouching);

    vouching->work.data = vouching;
    vouching->call = call;
    vouching->server = rpc_call_ctx(call);
    vouching->node = mem_strdup(rpc_call_identity(call)->node);
    vouching->uid = request->uid;
    vouching->gid = request->gid;
    uv_queue_work(vouching->server->uv, &vouching->work, look_up, looked_up);
}

void server_on_rest_token(struct rpc_call *call, const ProtobufCMessage *message)
{
    const RestTokenRequest *request = (const void *)message;
    struct vouching *vouching = NEW(struct vouching);

    vouching->work.data = vouching;
    vouching->call = call;
    vouching->server = rpc_call_ctx(call);
    vouching->node = mem_strdup(rpc_call_identity(call)->rest);
    vouching->by_rest = true;
    vouching->name = mem_strdup(request->user);
    vouching->uid = request->uid;
    vouching->gid = request->has_gid ? request->gid : (uint32_t)-1;
    if (!request->user && !request->has_uid)
        err_set(&vouching->bad_name, ERR_INVALID, "a token is for a uid or a user name");
    uv_queue_work(vouching->server->uv, &vouching->work, look_up, looked_up);
}

/* (5) */
void server_on_vouch_here(struct rpc_call *call, const ProtobufCMessage *message)
{
    const VouchRequest *request = (const void *)message;
    struct server *server = rpc_call_ctx(call);
    const struct ctl_who *who = server_identity(server, call);
    VouchReply reply = VOUCH_REPLY__INIT;
    CLEANUP(str_done) struct str list = { 0 };
    struct err err = { 0 };

    if (!who || rpc_call_identity(call)->how != RPC_HOW_UNIX) {
        err_set(&err, ERR_PERMISSION, "a controller vouches for who comes by its socket only");
        rpc_fail(call, &err);
        return;
    }
    if (!request->where_only)
        reply.token = secrets_user_token(&server->secrets, who->uid, who->gid, who->user,
                                         "controller", VOUCH_S, &err);
    if (!request->where_only && !reply.token) {
        rpc_fail(call, &err);
        return;
    }
    list_controllers(server, &list);
    reply.controllers = list.len ? (char *)(uintptr_t)str_text(&list) : NULL;
    reply.has_lifespan_s = reply.token != NULL;
    reply.lifespan_s = VOUCH_S;
    rpc_reply(call, &reply.base);
    free(reply.token);
}
