/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agents.c - the streams of nodes: joining, sessions
 *
 * (1) A session's node is the one its token or certificate names.
 * (2) A stream that its agent does not read is cut at SESSION_BUFFER; the agent connects again and
 *     is told what is due.
 * (3) A spurrestd joins as "rest:NAME" and gets a certificate and no token. Only a pass that names it will do:
 *     whoever knows the cluster's join token could else speak for every user.
 */
#include <stdlib.h>
#include <string.h>

#include "spurctld/serve.h"
#include "sys/log.h"

/* ---- join ---- */

void server_on_join(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct server *server = rpc_call_ctx(call);
    const JoinRequest *request = (const void *)message;
    const struct state *state = ctl_state(server->ctl);
    struct state_head head = state_head(state);
    JoinReply reply = JOIN_REPLY__INIT;
    struct err err = { 0 };

    bool rest = request->node && str_starts(request->node, "rest:"); /* (3) */
    if (!rest && (str_is_empty(request->node) ||
                  (!state_node(state, request->node) && !server_is_login(server, request->node))))
        err_set(&err, ERR_INVALID_NODE_NAME, "node '%s' is not in the configuration",
                request->node ? request->node : "");
    else
        secrets_join_check(&server->secrets, request->token, request->node, &err);
    CLEANUP(freep) char *token = NULL;
    struct str certificate = { 0 }, ca = { 0 };
    CLEANUP(freep)
    char *subject = rest ? mem_strdup(request->node) : mem_printf("node:%s", request->node);
    if (!err.code && request->csr.len)
        secrets_sign(&server->secrets, subject, (const char *)request->csr.data, request->csr.len,
                     &certificate, &ca, &err);
    if (!err.code && rest)
        token = mem_strdup("");
    else if (!err.code)
        token = secrets_node_token(&server->secrets, request->node, &err);
    if (!token) {
        str_done(&certificate);
        str_done(&ca);
        log_warn("node.join", "node=%s refused text=%s", request->node ? request->node : "",
                 err.text);
        rpc_fail(call, &err);
        return;
    }
    reply.has_cluster_id = head.cluster_id != NULL;
    reply.cluster_id = (ProtobufCBinaryData){ 16, (uint8_t *)head.cluster_id };
    reply.cluster_name = state_config(state)->cluster_name;
    reply.node_token = token;
    reply.has_certificate = reply.has_ca = certificate.len > 0;
    reply.certificate = (ProtobufCBinaryData){ certificate.len, (uint8_t *)certificate.data };
    reply.ca = (ProtobufCBinaryData){ ca.len, (uint8_t *)ca.data };
    log_info("node.join", "node=%s", request->node);
    rpc_reply(call, &reply.base);
    str_done(&certificate);
    str_done(&ca);
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
    uint64_t session = ++server->next_session;

    (void)request;
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
