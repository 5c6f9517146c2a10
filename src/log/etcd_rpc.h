/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd_rpc.h - etcd_io over gRPC, on a libuv loop
 *
 * One connection to one member at a time, the first of the list that answers. When calls go
 * unanswered the next member is tried: one that is cut off from the others still takes connections.
 * With `home` the first is on our own machine: away from it we look whether it answers again, and
 * go back, so that we depend on no other machine longer than need be.
 */
#ifndef LOG_ETCD_RPC_H
#define LOG_ETCD_RPC_H

#include <uv.h>

#include "log/etcd_io.h"
#include "rpc/rpc.h"

enum { ETCD_PORT_CLIENT = 6821, ETCD_PORT_PEER = 6822 }; /* of members that we run */

struct etcd_rpc;
extern const struct etcd_io etcd_rpc_io; /* its ctx is a struct etcd_rpc */

struct etcd_rpc_options {
    uv_loop_t *uv;
    struct rpc_loop *loop;
    const char *addresses; /* client addresses, comma list, our own member first */
    struct tls_ctx *tls;   /* NULL: plain, which is for loopback unless allow_plaintext */
    bool allow_plaintext;
    bool home;
};

struct etcd_rpc *etcd_rpc_new(const struct etcd_rpc_options *options, struct err *err);
/* Calls and timers under way are forgotten: free the log first. */
void etcd_rpc_free(struct etcd_rpc *rpc);
int etcd_rpc_set_addresses(struct etcd_rpc *rpc, const char *addresses, struct err *err);

#endif
