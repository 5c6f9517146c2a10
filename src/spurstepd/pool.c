/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - supervisors whose step is over, ready for another one
 */
#include "spurstepd/pool.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sys/files.h"

union control {
    struct cmsghdr head;
    char bytes[CMSG_SPACE(sizeof(int) * POOL_FDS)];
};

static bool make_pair(int pair[2])
{
    return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0;
}

static bool send_fds(int to, const void *bytes, size_t len, const int *fds, size_t count)
{
    union control control = { 0 };
    struct iovec part = { .iov_base = (void *)bytes, .iov_len = len };
    struct msghdr msg = { .msg_iov = &part,
                          .msg_iovlen = 1,
                          .msg_control = control.bytes,
                          .msg_controllen = CMSG_SPACE(sizeof(int) * count) };

    control.head.cmsg_level = SOL_SOCKET;
    control.head.cmsg_type = SCM_RIGHTS;
    control.head.cmsg_len = CMSG_LEN(sizeof(int) * count);
    memcpy(CMSG_DATA(&control.head), fds, sizeof(int) * count);
    return sendmsg(to, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}

/* How long the packet was, with its `count` descriptors in fds; 0: none came, or none that is whole. */
static size_t receive_fds(int from, void *bytes, size_t size, int *fds, size_t count, int flags)
{
    union control control = { 0 };
    struct iovec part = { .iov_base = bytes, .iov_len = size };
    struct msghdr msg = { .msg_iov = &part,
                          .msg_iovlen = 1,
                          .msg_control = control.bytes,
                          .msg_controllen = sizeof(control.bytes) };
    int got[POOL_FDS];
    size_t n = 0;
    ssize_t len;

    do
        len = recvmsg(from, &msg, MSG_CMSG_CLOEXEC | flags);
    while (len < 0 && errno == EINTR);
    struct cmsghdr *head = len > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
        n = MIN((head->cmsg_len - CMSG_LEN(0)) / sizeof(int), (size_t)POOL_FDS);
        memcpy(got, CMSG_DATA(head), n * sizeof(int));
    }
    if (n == count && !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
        memcpy(fds, got, n * sizeof(int));
        return len > 0 ? (size_t)len : 0;
    }
    while (n > 0)
        close(got[--n]);
    return 0;
}

void pool_open(struct pool *pool)
{
    int pair[2];

    *pool = (struct pool){ .offers_fd = -1, .offer_fd = -1 };
    if (!make_pair(pair))
        return;
    pool->offers_fd = pair[0];
    pool->offer_fd = pair[1];
}

void pool_end_all(struct pool *pool)
{
    while (pool->count > 0)
        close(pool->fds[--pool->count]);
}

void pool_close(struct pool *pool)
{
    pool_leave(pool);
    file_close(&pool->offer_fd);
}

void pool_leave(struct pool *pool)
{
    pool_end_all(pool);
    file_close(&pool->offers_fd);
}

void pool_hear(struct pool *pool)
{
    char byte;
    int fd;

    while (receive_fds(pool->offers_fd, &byte, 1, &fd, 1, MSG_DONTWAIT)) {
        if (pool->count < POOL_MAX)
            pool->fds[pool->count++] = fd;
        else
            close(fd);
    }
}

bool pool_give(struct pool *pool, const void *bytes, size_t len, const int fds[POOL_FDS])
{
    bool given = false;

    while (!given && pool->count > 0) { /* one that was killed while it waited does not take it */
        int fd = pool->fds[--pool->count];
        given = send_fds(fd, bytes, len, fds, POOL_FDS);
        close(fd); /* (3) */
    }
    return given;
}

static void close_others(int fd)
{
    if (fd > 3)
        syscall(SYS_close_range, 3U, (unsigned)fd - 1, 0);
    syscall(SYS_close_range, (unsigned)fd + 1, ~0U, 0);
}

size_t pool_wait(const struct pool *pool, void *bytes, size_t size, int fds[POOL_FDS])
{
    int pair[2];

    if (pool->offer_fd < 0)
        return 0;
    close_others(pool->offer_fd);
    if (!make_pair(pair))
        return 0;
    bool offered = send_fds(pool->offer_fd, "", 1, &pair[1], 1);
    close(pair[1]);
    size_t len = offered ? receive_fds(pair[0], bytes, size, fds, POOL_FDS, 0) : 0;
    close(pair[0]);
    return len;
}
