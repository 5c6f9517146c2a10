/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chan.c - the supervisor's end of its talk with spurd
 */
#include "spurstepd/chan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/util.h"

/* By way of /proc, because a socket's path may not be longer than 107 bytes. */
static void listen_on(struct chan *chan)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };

    if (chan->listen_fd >= 0)
        return;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return;
    snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/%.40s.sock", chan->dir_fd,
             chan->name);
    unlink(addr.sun_path);
    mode_t before = umask(0177);
    bool ok = bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 && listen(fd, 4) == 0;
    umask(before);
    if (ok)
        chan->listen_fd = fd;
    else
        close(fd);
}

void chan_lost(struct chan *chan)
{
    if (chan->fd >= 0)
        close(chan->fd);
    chan->fd = -1;
    listen_on(chan);
}

void chan_open(struct chan *chan, int fd, int dir_fd, const char *name)
{
    *chan = (struct chan){ .fd = fd, .listen_fd = -1, .dir_fd = dir_fd, .name = name };
    if (fd < 0)
        listen_on(chan);
}

void chan_close(struct chan *chan)
{
    if (chan->fd >= 0)
        close(chan->fd);
    if (chan->listen_fd >= 0)
        close(chan->listen_fd);
    chan->fd = chan->listen_fd = -1;
}

bool chan_send(struct chan *chan, const StepNews *news)
{
    size_t len = step_news__get_packed_size(news);
    uint8_t small[1024], *bytes = small;

    if (chan->fd < 0)
        return false;
    if (len > sizeof(small))
        bytes = mem_new(len);
    step_news__pack(news, bytes);
    bool sent = send(chan->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
    if (!sent)
        chan_lost(chan);
    if (bytes != small)
        free(bytes);
    return sent;
}

StepOrder *chan_receive(struct chan *chan)
{
    static uint8_t packet[CHAN_PACKET_BYTES];

    while (chan->fd >= 0) {
        ssize_t len = recv(chan->fd, packet, sizeof(packet), MSG_DONTWAIT | MSG_TRUNC);
        if (len < 0 && errno == EINTR)
            continue;
        if (len < 0 && errno == EAGAIN)
            return NULL;
        if (len <= 0) {
            chan_lost(chan);
            return NULL;
        }
        StepOrder *order = NULL;
        if ((size_t)len <= sizeof(packet))
            order = step_order__unpack(NULL, (size_t)len, packet);
        if (order)
            return order;
    }
    return NULL;
}

bool chan_accept(struct chan *chan)
{
    struct ucred who;
    socklen_t size = sizeof(who);
    int fd = accept4(chan->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return false;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0 ||
        (who.uid != 0 && who.uid != geteuid())) {
        close(fd);
        return false;
    }
    if (chan->fd >= 0)
        close(chan->fd);
    chan->fd = fd;
    return true;
}
