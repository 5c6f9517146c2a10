/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vouch.c - inside jobs and on login nodes: the agent of this host says who we are, and where to go
 *
 * Its socket is $SPUR_NODE_SOCKET in jobs, /run/spur/spurd.sock on login nodes.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/client_priv.h"
#include "proto/agent.pb-c.h"

#define LOGIN_SOCKET "unix:/run/spur/spurd.sock"

enum { VOUCH_TIMEOUT_MS = 10000, VOUCH_RETRY_MS = 500 };

static bool is_there(const char *socket)
{
    return str_starts(socket, "unix:") && access(socket + 5, R_OK | W_OK) == 0;
}

static const char *node_socket(void)
{
    const char *socket = getenv("SPUR_NODE_SOCKET");

    if (!str_is_empty(socket) && is_there(socket))
        return socket;
    return is_there(LOGIN_SOCKET) ? LOGIN_SOCKET : NULL;
}

bool vouch_available(void)
{
    return node_socket() != NULL;
}

int vouch_ask(struct vouch *out, struct err *err)
{
    const struct client_options options = { .addresses = node_socket(),
                                            .token = "",
                                            .timeout_ms = VOUCH_TIMEOUT_MS,
                                            .retry_ms = VOUCH_RETRY_MS };
    VouchRequest request = VOUCH_REQUEST__INIT;
    ProtobufCMessage *message;
    struct arena arena;
    struct client *client = client_new(&options, err);

    if (!client)
        return -(int)err->code;
    arena_init(&arena);
    int rc = client_call(client, "/spur.NodeAccess/Vouch", &request.base, &vouch_reply__descriptor,
                         &arena, &message, err);
    if (rc == 0) {
        const VouchReply *reply = (const VouchReply *)(const void *)message;
        *out = (struct vouch){ .token = mem_strdup(reply->token),
                               .controllers = mem_strdup(reply->controllers),
                               .ca_file = mem_strdup(reply->ca_file) };
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
    *vouch = (struct vouch){ 0 };
}
