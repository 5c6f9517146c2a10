/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vouch.c - a daemon of this host says who we are, where the controllers are, and whom to trust
 *
 * In jobs it is the agent at $SPUR_NODE_SOCKET; on a controller's host the controller itself, also when
 * another one leads; on login and compute nodes the agent at AGENT_SOCKET. Each has the certificate of
 * the cluster's authority beside its socket.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/client_priv.h"
#include "proto/agent.pb-c.h"

enum { VOUCH_TIMEOUT_MS = 10000, VOUCH_RETRY_MS = 500, PLACES = 4 };

/* The sockets to look for, in this order; an empty path is none. */
static void places(const char *near, struct address out[PLACES])
{
    const char *job = getenv("SPUR_NODE_SOCKET");

    memset(out, 0, PLACES * sizeof(*out));
    if (str_starts(job ? job : "", "unix:"))
        snprintf(out[0].path, sizeof(out[0].path), "%s", job + 5);
    snprintf(out[1].path, sizeof(out[1].path), "%s", near);
    address_local_socket(ADDRESS_PORT_CONTROLLER, &out[2]);
    snprintf(out[3].path, sizeof(out[3].path), "%s", ADDRESS_AGENT_SOCKET);
}

static bool find(const char *near, struct address *out)
{
    struct address all[PLACES];

    places(near, all);
    for (size_t i = 0; i < PLACES; i++) {
        if (all[i].path[0] && access(all[i].path, R_OK | W_OK) == 0) {
            *out = all[i];
            return true;
        }
    }
    return false;
}

bool vouch_available(const char *near)
{
    struct address unused;

    return find(near, &unused);
}

bool vouch_ca(char out[ADDRESS_PATH_BYTES])
{
    struct address all[PLACES];

    places("", all);
    for (size_t i = 0; i < PLACES; i++) {
        const char *slash = strrchr(all[i].path, '/');
        int len = slash ? snprintf(out, ADDRESS_PATH_BYTES, "%.*s/ca.crt",
                                   (int)(slash - all[i].path), all[i].path)
                        : 0;
        if (len > 0 && len < ADDRESS_PATH_BYTES && access(out, R_OK) == 0)
            return true;
    }
    return false;
}

int vouch_ask(const char *near, bool where_only, struct vouch *out, struct err *err)
{
    struct address at = { 0 };
    char text[ADDRESS_TEXT_BYTES];
    VouchRequest request = VOUCH_REQUEST__INIT;
    ProtobufCMessage *message;
    struct arena arena;

    find(near, &at);
    address_text(&at, text);
    const struct client_options options = {
        .addresses = text, .token = "", .timeout_ms = VOUCH_TIMEOUT_MS, .retry_ms = VOUCH_RETRY_MS
    };
    struct client *client = client_new(&options, err);
    if (!client)
        return -(int)err->code;
    request.has_where_only = request.where_only = where_only;
    arena_init(&arena);
    int rc = client_call(client, "/spur.NodeAccess/Vouch", &request.base, &vouch_reply__descriptor,
                         &arena, &message, err);
    if (rc == 0) {
        const VouchReply *reply = (const VouchReply *)(const void *)message;
        *out = (struct vouch){ .token = mem_strdup(reply->token),
                               .controllers = mem_strdup(reply->controllers),
                               .ca_file = mem_strdup(reply->ca_file),
                               .refused = mem_strdup(reply->refused) };
    } else if (rc == -ERR_NO_METHOD) {
        rc = 0; /* it does not vouch, and the leader decides */
    } else {
        err_wrap(err, "the agent of this host");
    }
    arena_done(&arena);
    client_free(client);
    return rc;
}

void vouch_done(struct vouch *vouch)
{
    free(vouch->token);
    free(vouch->controllers);
    free(vouch->ca_file);
    free(vouch->refused);
    *vouch = (struct vouch){ 0 };
}
