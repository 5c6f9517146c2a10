/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wake.c - another thread wakes a loop
 *
 * (1) `sent` is cleared before on_wake(): what is sent while it runs writes again.
 */
#include "rpc/wake.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct wake *wake = poll->data;
    uint64_t count;

    (void)status;
    (void)events;
    while (read(wake->fd, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
    __atomic_store_n(&wake->sent, false, __ATOMIC_SEQ_CST); /* (1) */
    wake->on_wake(wake->data);
}

int wake_init(struct wake *wake, uv_loop_t *loop, void (*on_wake)(void *data), void *data)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);

    if (fd < 0)
        return -errno;
    *wake = (struct wake){ .fd = fd, .on_wake = on_wake, .data = data };
    int rc = uv_poll_init(loop, &wake->poll, fd);
    if (rc < 0) {
        close(fd);
        wake->on_wake = NULL;
        return rc;
    }
    wake->poll.data = wake;
    return uv_poll_start(&wake->poll, UV_READABLE, on_readable);
}

void wake_send(struct wake *wake)
{
    const uint64_t one = 1;

    if (__atomic_exchange_n(&wake->sent, true, __ATOMIC_SEQ_CST))
        return;
    while (write(wake->fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

void wake_close(struct wake *wake, uv_close_cb closed)
{
    if (!wake->on_wake) /* was never opened */
        return;
    uv_poll_stop(&wake->poll);
    uv_close((uv_handle_t *)&wake->poll, closed);
    close(wake->fd);
    wake->on_wake = NULL;
}
