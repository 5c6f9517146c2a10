/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agents.c - the streams of nodes: joining, sessions
 *
 * (1) A session's node is the one its token or certificate names.
 * (2) A stream that its agent does not read is cut at SESSION_BUFFER; the agent connects again and
 *     is told what is due.
 * (3) The state has the public key of every node: from its Join, or pinned at its first session. Who comes from
 *     another host has to show a certificate of that key; a token that names the node is not enough.
 * (4) A name that has joined does not join again, unless its old key signs (it calls with its certificate), an
 *     administrator has said 'spur node forget NAME', or it is a node of access.rejoin that is away, with a token for
 *     that very name.
 * (5) A spurrestd joins as "rest:NAME" and gets a certificate and no token. Only a pass that names it will do:
 *     whoever knows the cluster's join token could else speak for every user.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "rpc/keys.h"
#include "spurctld/serve.h"
#include "sys/log.h"

/* ---- keys ---- */

static bool is_recorded(const struct state *state, const char *node, const uint8_t key[32])
{
    const ProtobufCBinaryData *known = state_node_key(state, node);

    return known && known->len == 32 && memcmp(known->data, key, 32) == 0;
}

static bool has_key(const struct state *state, const char *node)
{
    const ProtobufCBinaryData *known = state_node_key(state, node);

    return known && known->len == 32;
}

static bool peer_key(struct rpc_call *call, const char *node, uint8_t out[32])
{
    CLEANUP(freep) char *subject = mem_printf("node:%s", node);

    return rpc_call_peer_key(call, subject, out);
}

/* (3) */
int server_check_node(struct server *server, struct rpc_call *call, struct err *err)
{
    const struct rpc_identity *identity = rpc_call_identity(call);
    const struct state *state = ctl_state(server->ctl);
    const char *node = identity->node;
    uint8_t key[32];

    if (state_node_is_forgotten(state, node))
        return err_set(err, ERR_UNAUTHENTICATED,
                       "node '%s' was forgotten by an administrator: it has to join again, with a "
                       "new key and a join token",
                       node);
    if (!peer_key(call, node, key)) {
        if (identity->local || (conf_local(server->conf)->allow_plaintext && !has_key(state, node)))
            return 0;
        return err_set(err, ERR_UNAUTHENTICATED,
                       "node '%s' must show its certificate to be believed from another host",
                       node);
    }
    if (!has_key(state, node)) {
        log_info("node.key", "node=%s pinned at its first session", node);
        ctl_propose_node_key(server->ctl, node, key, NULL, NULL);
        return 0;
    }
    return is_recorded(state, node, key)
               ? 0
               : err_set(err, ERR_UNAUTHENTICATED,
                         "node '%s' has another key than the one it joined with; 'spur node forget "
                         "%s' lets it join anew",
                         node, node);
}

/* ---- join ---- */

struct joining {
    struct server *server;
    struct rpc_call *call; /* and with it the request */
    const JoinRequest *request;
};

/* (5) */
static bool is_rest(const JoinRequest *request)
{
    return request->node && str_starts(request->node, "rest:");
}

static bool is_listed(char *const *lists, size_t count, const char *node)
{
    bool found = false;

    for (size_t i = 0; !found && i < count; i++) {
        struct hostlist list = { 0 };
        found = hostlist_parse(&list, lists[i], NULL) == 0 && hostlist_find(&list, node) >= 0;
        hostlist_done(&list);
    }
    return found;
}

/* Nothing of it runs: it may be a machine that begins without anything each time. */
static bool is_away(const struct state *state, const char *name)
{
    const struct node *node = state_node(state, name);

    return !node || node->state == NODE_DOWN ||
           node->flags & (NODE_FLAG_REBOOT_ISSUED | NODE_FLAG_POWERED_DOWN);
}

/* (4) */
static int check_again(struct server *server, const JoinRequest *request, const uint8_t key[32],
                       struct err *err)
{
    const struct state *state = ctl_state(server->ctl);
    const ConfLocal *local = conf_local(server->conf);
    const char *node = request->node;

    if (state_node_is_forgotten(state, node) && is_recorded(state, node, key))
        return err_set(err, ERR_UNAUTHENTICATED,
                       "node '%s' was forgotten with this key: remove it from its spool", node);
    if (state_node_is_forgotten(state, node) || !has_key(state, node) ||
        is_recorded(state, node, key))
        return 0;
    if (secrets_join_is_for(request->token, node) && is_away(state, node) &&
        is_listed(local->rejoin, local->n_rejoin, node))
        return 0;
    return err_set(err, ERR_UNAUTHENTICATED,
                   "node '%s' has joined before, with another key. Its old key has to sign, or an "
                   "administrator says 'spur node forget %s'",
                   node, node);
}

static int check_join(struct server *server, struct rpc_call *call, const JoinRequest *request,
                      uint8_t key[32], struct err *err)
{
    const struct state *state = ctl_state(server->ctl);
    const char *node = request->node ? request->node : "";
    bool login = !str_is_empty(node) && server_is_login(server, node);
    uint8_t shown[32];

    if (is_rest(request))
        return secrets_join_check(&server->secrets, request->token, node, err);
    if (str_is_empty(node) || (!state_node(state, node) && !login))
        return err_set(err, ERR_INVALID_NODE_NAME, "node '%s' is not in the configuration", node);
    if (cert_request_key((const char *)request->csr.data, request->csr.len, key, err) < 0)
        return -(int)err->code;
    /* The key that it has signs: it wants a certificate that lasts longer, or another key. */
    if (peer_key(call, node, shown) && is_recorded(state, node, shown) &&
        !state_node_is_forgotten(state, node))
        return 0;
    if (secrets_join_check(&server->secrets, request->token, node, err) < 0)
        return -(int)err->code;
    if (secrets_join_is_secret(request->token) && !rpc_call_identity(call)->local)
        return err_set(err, ERR_UNAUTHENTICATED,
                       "the secret of the controller's keys is good on its own host alone: 'spur "
                       "token --join' gives a join token");
    if (login && !secrets_join_is_for(request->token, node))
        return err_set(err, ERR_UNAUTHENTICATED,
                       "login host '%s' needs a token for its name: 'spur token --join --node %s'",
                       node, node);
    return check_again(server, request, key, err);
}

static void refuse_join(struct rpc_call *call, const JoinRequest *request, const struct err *err)
{
    log_warn("node.join", "node=%s refused text=%s", request->node ? request->node : "", err->text);
    rpc_fail(call, err);
}

/* The key is recorded: now the node may have what names it. */
static void join_agreed(void *arg, const struct err *refused)
{
    struct joining *joining = arg;
    struct server *server = joining->server;
    const JoinRequest *request = joining->request;
    const struct state *state = ctl_state(server->ctl);
    struct state_head head = state_head(state);
    JoinReply reply = JOIN_REPLY__INIT;
    struct err err = { 0 };
    CLEANUP(freep) char *token = NULL;
    CLEANUP(freep)
    char *subject =
        is_rest(request) ? mem_strdup(request->node) : mem_printf("node:%s", request->node);
    CLEANUP(str_done) struct str certificate = { 0 };
    CLEANUP(str_done) struct str ca = { 0 };

    if (refused)
        err = *refused;
    else if (secrets_sign(&server->secrets, subject, (const char *)request->csr.data,
                          request->csr.len, &certificate, &ca, &err) < 0)
        token = NULL;
    else if (is_rest(request))
        token = mem_strdup("");
    else
        token = secrets_node_token(&server->secrets, request->node, &err);
    if (!token) {
        refuse_join(joining->call, request, &err);
        free(joining);
        return;
    }
    reply.has_cluster_id = head.cluster_id != NULL;
    reply.cluster_id = (ProtobufCBinaryData){ 16, (uint8_t *)head.cluster_id };
    reply.cluster_name = state_config(state)->cluster_name;
    reply.node_token = token;
    reply.has_certificate = reply.has_ca = true;
    reply.certificate = (ProtobufCBinaryData){ certificate.len, (uint8_t *)certificate.data };
    reply.ca = (ProtobufCBinaryData){ ca.len, (uint8_t *)ca.data };
    log_info("node.join", "node=%s", request->node);
    rpc_reply(joining->call, &reply.base);
    free(joining);
}

void server_on_join(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct server *server = rpc_call_ctx(call);
    const JoinRequest *request = (const void *)message;
    struct err err = { 0 };
    uint8_t key[32] = { 0 };

    if (check_join(server, call, request, key, &err) < 0) {
        refuse_join(call, request, &err);
        return;
    }
    struct joining *joining = NEW(struct joining);
    *joining = (struct joining){ server, call, request };
    if (is_rest(request) || is_recorded(ctl_state(server->ctl), request->node, key))
        join_agreed(joining, NULL);
    else
        ctl_propose_node_key(server->ctl, request->node, key, join_agreed, joining);
}

/* ---- sessions ---- */

static void session_end(struct rpc_call *call, bool host_answers)
{
    struct server *server = rpc_call_ctx(call);
    uint64_t session = (uintptr_t)rpc_call_data(call);

    if (map_del_num(&server->sessions, session)) {
        ctl_session_closed(server->ctl, session, host_answers);
        rpc_end(call);
    }
}

static void on_message(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct server *server = rpc_call_ctx(call);

    ctl_session_message(server->ctl, (uintptr_t)rpc_call_data(call), (const void *)message);
}

static void on_half_closed(struct rpc_call *call)
{
    session_end(call, true);
}

static void on_gone(struct rpc_call *call)
{
    session_end(call, true);
}

static const struct rpc_watch session_watch = {
    .on_message = on_message,
    .on_half_close = on_half_closed,
    .on_cancel = on_gone,
};

void server_on_session(struct rpc_call *call, const ProtobufCMessage *request)
{
    struct server *server = rpc_call_ctx(call);
    const struct rpc_identity *identity = rpc_call_identity(call);
    struct err err = { 0 };

    (void)request;
    if (server_check_node(server, call, &err) < 0) {
        log_warn("node.session", "node=%s refused text=%s", identity->node, err.text);
        rpc_fail(call, &err);
        return;
    }
    uint64_t session = ++server->next_session;
    rpc_call_set_data(call, (void *)(uintptr_t)session);
    rpc_watch(call, &session_watch);
    map_put_num(&server->sessions, session, call);
    ctl_session_open(server->ctl, session, identity->node); /* (1) */
}

void server_session_send(void *ctx, uint64_t session, const CtlMessage *message)
{
    struct server *server = ctx;
    struct rpc_call *call = map_get_num(&server->sessions, session);

    if (call)
        rpc_send(call, &message->base);
}

void server_session_hang_up(void *ctx, uint64_t session)
{
    struct server *server = ctx;
    struct rpc_call *call = map_del_num(&server->sessions, session);

    if (call)
        rpc_end(call);
}
