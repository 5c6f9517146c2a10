/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wake.h - another thread wakes a loop
 *
 * As uv_async_t, of which the loop may have to wait for its sender: libuv marks the handle before it
 * writes and again after it, and a loop that comes in between turns until the sender has the CPU again.
 * Who was woken often runs in the place of who woke it, so that happens with the thread that writes the
 * log, and takes whole time slices. Here nobody waits for anybody.
 *
 *     wake_init(&wake, loop, on_wake, data);   // on_wake() once or more after each send, never before
 *     wake_send(&wake);                        // any thread
 *     wake_close(&wake, closed);               // no sender any more; `closed` as of uv_close(), or NULL
 */
#ifndef SPUR_RPC_WAKE_H
#define SPUR_RPC_WAKE_H

#include <stdbool.h>
#include <uv.h>

struct wake {
    uv_poll_t poll; /* the first: closed() gets it */
    int fd;
    bool sent; /* and not heard yet; atomic */
    void (*on_wake)(void *data);
    void *data;
};

/* 0 or the negative error of uv. */
int wake_init(struct wake *wake, uv_loop_t *loop, void (*on_wake)(void *data), void *data);
void wake_send(struct wake *wake);
void wake_close(struct wake *wake, uv_close_cb closed);

#endif
