/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen.h - a socket that takes connections: a TCP port, or a unix socket
 */
#ifndef RPC_LISTEN_H
#define RPC_LISTEN_H

#include <uv.h>

#include "base/err.h"
#include "rpc/address.h"

union listen_handle {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
};

/*
 * Binds and listens. A unix socket that nobody listens on is replaced, and gets mode 0666: the kernel says who
 * connects. *port is the port that was bound, 0 for a unix socket. The handle is initialised in any case, and
 * the caller closes it, also after a failure.
 */
int listen_open(uv_loop_t *uv, union listen_handle *handle, const struct address *address,
                uv_connection_cb on_connection, uint16_t *port, struct err *err);

#endif
