/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stepd_chan.c - channels to the supervisors of steps, and what their directories say
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"
#include "spurd/task/stepd_priv.h"
#include "sys/files.h"

enum { PACKET_BYTES = 64 * 1024, REPORT_BYTES = 64 * 1024 };

static void chan_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void stepd_close(struct step_chan *chan)
{
    if (chan->closed)
        return;
    chan->closed = true;
    uv_poll_stop(&chan->poll);
    file_close(&chan->fd);
    uv_close((uv_handle_t *)&chan->poll, chan_closed);
}

static void chan_lost(struct step_chan *chan)
{
    struct stepd *stepd = chan->stepd;
    void *owner = chan->owner;

    if (chan->closed)
        return;
    const struct step_chan_ops *ops = chan->ops;
    stepd_close(chan);
    if (stepd->stopping)
        return;
    if (ops)
        ops->lost(stepd->options.ctx, owner);
    else
        stepd->options.lost(stepd->options.ctx, owner);
}

/* False: nothing more for now, or the channel is gone. */
static bool take_packet(struct step_chan *chan, bool broken)
{
    static uint8_t packet[PACKET_BYTES];
    ssize_t len = recv(chan->fd, packet, sizeof(packet), MSG_DONTWAIT);

    /* A supervisor that ends with our words unread resets the channel; its own are still here. */
    if (len < 0 && (errno == EINTR || errno == ECONNRESET))
        return true;
    if (len < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) && !broken)
        return false;
    if (len <= 0) {
        chan_lost(chan);
        return false;
    }
    StepNews *news = step_news__unpack(NULL, (size_t)len, packet);
    if (!news)
        return true;
    if (chan->ops)
        chan->ops->news(chan->stepd->options.ctx, chan->owner, news);
    else
        chan->stepd->options.news(chan->stepd->options.ctx, chan->owner, news);
    step_news__free_unpacked(news, NULL);
    return !chan->closed && !chan->paused;
}

/*
 * Several packets may wait; the owner may close the channel in between. After a reset the loop does
 * not watch the channel any more, so its end is taken here too.
 */
static void chan_readable(uv_poll_t *poll, int status, int events)
{
    (void)events;
    while (take_packet(poll->data, status < 0))
        ;
}

struct step_chan *stepd_chan_new(struct stepd *stepd, int fd, void *owner)
{
    struct step_chan *chan = NEW(struct step_chan);

    chan->stepd = stepd;
    chan->fd = fd;
    chan->owner = owner;
    uv_poll_init(stepd->uv, &chan->poll, fd);
    chan->poll.data = chan;
    uv_poll_start(&chan->poll, UV_READABLE | UV_DISCONNECT, chan_readable);
    return chan;
}

void stepd_pause(struct step_chan *chan, bool on)
{
    if (chan->closed || chan->paused == on)
        return;
    chan->paused = on;
    if (on)
        uv_poll_stop(&chan->poll);
    else
        uv_poll_start(&chan->poll, UV_READABLE | UV_DISCONNECT, chan_readable);
}

bool stepd_order(struct step_chan *chan, const StepOrder *order)
{
    static uint8_t bytes[PACKET_BYTES];

    if (chan->closed || step_order__get_packed_size(order) > sizeof(bytes))
        return false;
    size_t len = step_order__pack(order, bytes);
    return send(chan->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)len;
}

enum stepd_found stepd_look(const char *dir)
{
    CLEANUP(file_close) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return STEPD_ABSENT;
    return flock(fd, LOCK_EX | LOCK_NB) < 0 ? STEPD_ALIVE : STEPD_DEAD;
}

struct step_chan *stepd_connect_as(struct stepd *stepd, const char *dir, const char *name,
                                   const struct step_chan_ops *ops, void *owner, struct err *err)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    CLEANUP(file_close) int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(file_close)
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (dir_fd < 0 || fd < 0) {
        err_errno(err, errno, "step of '%s'", dir);
        return NULL;
    }
    snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/%.40s.sock", dir_fd, name);
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
        err_set(err, ERR_NOT_FOUND, "step of '%s': %s", dir, strerror(errno));
        return NULL;
    }
    struct step_chan *chan = stepd_chan_new(stepd, fd, owner);
    chan->ops = ops;
    fd = -1;
    return chan;
}

struct step_chan *stepd_connect(struct stepd *stepd, const char *dir, const char *name, void *owner,
                                struct err *err)
{
    return stepd_connect_as(stepd, dir, name, NULL, owner, err);
}

static StepEnded *read_report(const char *path)
{
    CLEANUP(str_done) struct str text = { 0 };

    if (file_read(path, REPORT_BYTES, &text, NULL) < 0)
        return NULL;
    return step_ended__unpack(NULL, text.len, (const uint8_t *)str_text(&text));
}

StepEnded *stepd_read_report(const char *dir, const char *name, const char *keep_file)
{
    CLEANUP(freep) char *path = mem_printf("%s/%s.end", dir, name);
    StepEnded *report = read_report(path);

    return report ? report : read_report(keep_file);
}
