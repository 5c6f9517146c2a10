/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo_service.h - the service that tests and benches call: one method of every kind
 */
#ifndef RPC_TEST_ECHO_SERVICE_H
#define RPC_TEST_ECHO_SERVICE_H

#include "proto/echo.pb-c.h"
#include "rpc/rpc.h"

struct echo {
    struct rpc_loop *loop;
    struct rpc_server *server;
    unsigned cancelled, half_closed, messages, held;
    bool stuck_chat; /* a Chat call pauses at its first message until echo_unstick() */
    struct rpc_call *stuck;
    unsigned later_roles_ms;
    unsigned roles_asked;
    bool no_roles; /* nobody has any from now on */ /* roles are answered after this time */
    const char
        *die_with_id; /* an Id call writes its request id to this file and ends the process */
};

extern const struct rpc_method echo_methods[];
extern const size_t echo_method_count;

/* uid 0 and the test's own uid are administrators; every other known uid is a user. */
unsigned echo_roles(void *ctx, const struct rpc_identity *identity, struct rpc_auth *auth);

void echo_start(struct echo *echo, uv_loop_t *uv, const struct rpc_server_options *options);
void echo_unstick(struct echo *echo);

#endif
