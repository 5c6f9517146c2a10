/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay.c - what people on other hosts ask spurdbd, and change there
 *
 * spurdbd listens on the controller's host, where the kernel says who asks. Users work on login hosts, which
 * the controller knows. So the leader passes their questions on. A token of this cluster goes with them
 * unchanged; for an asker who is known otherwise the leader makes one that lasts a minute. Who is not staff here
 * gets a token that never is staff there; spurdbd decides the rest.
 *
 * (1) An asker who goes away cancels what was asked for him.
 * (2) What spurdbd sends waits while the asker does not read: the request is paused.
 */
#include <stdlib.h>

#include "spurctld/feed.h"

enum { RELAY_TOKEN_S = 60, RELAY_TIMEOUT_MS = 60000 };

struct relay {
    struct rpc_call *call;
    struct rpc_request *request;
};

static void on_message(struct rpc_request *request, const ProtobufCMessage *message)
{
    struct relay *relay = rpc_request_data(request);

    if (rpc_send(relay->call, message) && !rpc_writable(relay->call)) /* (2) */
        rpc_request_pause(request);
}

static void on_done(struct rpc_request *request, const ProtobufCMessage *reply,
                    const struct err *err)
{
    struct relay *relay = rpc_request_data(request);
    struct rpc_call *call = relay->call;

    relay->request = NULL;
    rpc_call_set_data(call, NULL);
    free(relay);
    if (err)
        rpc_fail(call, err);
    else if (reply)
        rpc_reply(call, reply);
    else
        rpc_end(call);
}

static void on_writable(struct rpc_call *call)
{
    struct relay *relay = rpc_call_data(call);

    if (relay && relay->request)
        rpc_request_resume(relay->request);
}

static void on_cancel(struct rpc_call *call)
{
    struct relay *relay = rpc_call_data(call);
    struct err err = { 0 };

    if (!relay)
        return;
    rpc_request_cancel(relay->request); /* (1) */
    rpc_call_set_data(call, NULL);
    free(relay);
    err_code(&err, ERR_CANCELLED);
    rpc_fail(call, &err);
}

static const struct rpc_watch watch = { .on_writable = on_writable, .on_cancel = on_cancel };

/* "Bearer ...", in the call's arena; NULL: err says why. */
static char *credentials(struct server *server, struct rpc_call *call, struct err *err)
{
    struct ctl_who *who = server_identity(server, call);
    const char *given = rpc_call_authorization(call);

    if (!who || who->node) {
        err_code(err, ERR_PERMISSION);
        return NULL;
    }
    if (given && rpc_call_identity(call)->by[0]) /* of this cluster, not of a site's issuer */
        return arena_strdup(rpc_call_arena(call), given);
    bool staff = who->is_admin || who->is_operator;
    char *token = (staff ? secrets_user_token : secrets_rest_token)(
        &server->secrets, who->uid, who->gid, who->user, "controller", RELAY_TOKEN_S, err);
    char *text = token ? arena_printf(rpc_call_arena(call), "Bearer %s", token) : NULL;

    free(token);
    return text;
}

void server_relay(struct rpc_call *call, const ProtobufCMessage *message)
{
    struct server *server = rpc_call_ctx(call);
    const struct rpc_method *method = rpc_call_method(call);
    struct rpc_client *client = server_feed_client(server);
    struct err err = { 0 };

    if (!client) {
        err_set(&err, ERR_UNSUPPORTED, "Slurm accounting storage is disabled");
        rpc_fail(call, &err);
        return;
    }
    char *bearer = credentials(server, call, &err);
    if (!bearer) {
        rpc_fail(call, &err);
        return;
    }
    struct relay *relay = NEW(struct relay);
    const struct rpc_metadata metadata = { "authorization", bearer };
    const struct rpc_request_options options = {
        .path = method->path,
        .message = message,
        .reply = method->reply,
        .timeout_ms = RELAY_TIMEOUT_MS,
        .metadata = &metadata,
        .metadata_count = 1,
        .data = relay,
        .on_message = method->kind == RPC_SERVER_STREAM ? on_message : NULL,
        .on_done = on_done,
    };
    relay->call = call;
    rpc_call_set_data(call, relay);
    rpc_watch(call, &watch);
    relay->request = rpc_request_start(client, &options);
}
