/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.c - the command's socket: connected with a deadline, pumped by poll
 *
 * The socket does not block; waiting is poll()'s. A command's first write carries the preface, the
 * settings and the whole request, so one round trip is all it waits for.
 */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client/client_priv.h"

enum { IN_BYTES = 64 * 1024, OUT_BYTES = 128 * 1024 };

int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int poll_until(int fd, short events, int64_t deadline_ms)
{
    struct pollfd pfd = { .fd = fd, .events = events };

    for (;;) {
        int64_t left = deadline_ms == INT64_MAX ? -1 : MAX(deadline_ms - now_ms(), (int64_t)0);
        int rc = poll(&pfd, 1, (int)MIN(left, (int64_t)3600 * 1000));
        if (rc > 0)
            return 1;
        if (rc == 0 && deadline_ms != INT64_MAX && now_ms() >= deadline_ms)
            return 0;
        if (rc < 0 && errno != EINTR)
            return -1;
    }
}

/* 0 when connected; otherwise an errno. */
static int connect_to(int fd, const struct sockaddr *addr, socklen_t len, int64_t deadline_ms)
{
    int why = 0;
    socklen_t why_len = sizeof(why);

    if (connect(fd, addr, len) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return errno;
    if (poll_until(fd, POLLOUT, deadline_ms) <= 0)
        return ETIMEDOUT;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &why_len) < 0)
        return errno;
    return why;
}

static int dial(const struct sockaddr *addr, socklen_t len, int64_t deadline_ms, int *out)
{
    int one = 1;
    int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return errno;
    int why = connect_to(fd, addr, len, deadline_ms);
    if (why) {
        close(fd);
        return why;
    }
    if (addr->sa_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    *out = fd;
    return 0;
}

static socklen_t sockaddr_len(const struct sockaddr_storage *addr)
{
    return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

/* TLS to other hosts is decided by the address that was really reached. */
static int refuse_plain(const struct sockaddr *addr, const char *text, struct err *err)
{
    if (address_sockaddr_is_loopback(addr))
        return 0;
    return err_set(err, ERR_UNREACHABLE, "%s is another host: a plain connection is not allowed",
                   text);
}

static int dial_name(const struct address *address, const char *text, int64_t deadline_ms, int *out,
                     struct err *err)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
    struct addrinfo *found = NULL;
    char port[8];

    snprintf(port, sizeof(port), "%u", address->port);
    int rc = getaddrinfo(address->host, port, &hints, &found);
    if (rc != 0)
        return err_set(err, ERR_UNREACHABLE, "cannot find the address of '%s': %s", address->host,
                       gai_strerror(rc));
    int why = EADDRNOTAVAIL;
    for (struct addrinfo *a = found; a && why; a = a->ai_next) {
        if (refuse_plain(a->ai_addr, text, err) < 0) {
            freeaddrinfo(found);
            return -(int)ERR_UNREACHABLE;
        }
        why = dial(a->ai_addr, a->ai_addrlen, deadline_ms, out);
    }
    freeaddrinfo(found);
    if (why)
        return err_set(err, ERR_UNREACHABLE, "cannot connect to %s: %s", text, strerror(why));
    return 0;
}

static int dial_address(const struct address *address, int64_t deadline_ms, int *out,
                        struct err *err)
{
    struct sockaddr_storage numeric[2];
    char text[ADDRESS_TEXT_BYTES];
    int why = EADDRNOTAVAIL;

    address_text(address, text);
    if (address->path[0]) {
        struct sockaddr_un addr = { .sun_family = AF_UNIX };
        memcpy(addr.sun_path, address->path, sizeof(addr.sun_path));
        why = dial((struct sockaddr *)&addr, sizeof(addr), deadline_ms, out);
    } else {
        size_t count = address_numeric(address, numeric);
        if (!count)
            return dial_name(address, text, deadline_ms, out, err);
        if (refuse_plain((struct sockaddr *)&numeric[0], text, err) < 0)
            return -(int)ERR_UNREACHABLE;
        for (size_t i = 0; i < count && why; i++)
            why = dial((struct sockaddr *)&numeric[i], sockaddr_len(&numeric[i]), deadline_ms, out);
    }
    if (why)
        return err_set(err, ERR_UNREACHABLE, "cannot connect to %s: %s", text, strerror(why));
    return 0;
}

int wire_connect(struct wire *wire, const struct address *address, const struct h2_events *events,
                 void *ctx, int64_t deadline_ms, struct err *err)
{
    int fd = -1;
    int rc = dial_address(address, deadline_ms, &fd, err);

    if (rc < 0)
        return rc;
    *wire = (struct wire){ .fd = fd, .is_unix = address->path[0] != '\0' };
    wire->h2 = h2_new(&(struct h2_options){ .events = events, .ctx = ctx });
    return 0;
}

void wire_close(struct wire *wire)
{
    if (wire->fd >= 0)
        close(wire->fd);
    h2_free(wire->h2);
    free(wire->out);
    *wire = (struct wire){ .fd = -1 };
}

static int lost(struct wire *wire, struct err *err, const char *what)
{
    wire->broken = true;
    return err_set(err, ERR_CONNECTION_LOST, "%s", what);
}

static int write_some(struct wire *wire, struct err *err)
{
    const uint8_t *bytes;
    size_t len;

    for (;;) {
        while (wire->out_len < OUT_BYTES / 2 && (len = h2_send(wire->h2, &bytes)) > 0) {
            if (!wire->out)
                wire->out = mem_new(wire->out_cap = OUT_BYTES);
            memcpy(wire->out + wire->out_len, bytes, len); /* a frame is at most 16 KiB and a bit */
            wire->out_len += len;
        }
        if (!wire->out_len)
            return 0;
        ssize_t done = send(wire->fd, wire->out, wire->out_len, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && errno == EAGAIN)
            return 0;
        if (done < 0)
            return lost(wire, err, strerror(errno));
        wire->out_len -= (size_t)done;
        memmove(wire->out, wire->out + done, wire->out_len);
    }
}

static int read_some(struct wire *wire, struct err *err)
{
    char in[IN_BYTES];

    for (unsigned round = 0; round < 16; round++) {
        ssize_t got = recv(wire->fd, in, sizeof(in), MSG_DONTWAIT);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            return 0;
        if (got < 0)
            return lost(wire, err, strerror(errno));
        if (got == 0)
            return lost(wire, err, "the server closed the connection");
        if (h2_recv(wire->h2, in, (size_t)got, now_ms(), err) < 0) {
            wire->broken = true;
            return -(int)ERR_CONNECTION_LOST;
        }
        if ((size_t)got < sizeof(in))
            return 0;
    }
    return 0;
}

int wire_pump(struct wire *wire, struct err *err)
{
    int rc = write_some(wire, err);

    if (rc == 0)
        rc = read_some(wire, err);
    if (rc == 0)
        rc = write_some(wire, err);
    return rc;
}

short wire_events(const struct wire *wire)
{
    return (short)(POLLIN | (wire->out_len || h2_wants_write(wire->h2) ? POLLOUT : 0));
}

int wire_wait(struct wire *wire, int64_t deadline_ms, struct err *err)
{
    int rc = write_some(wire, err);

    if (rc < 0)
        return rc;
    rc = poll_until(wire->fd, (short)(POLLIN | (wire->out_len ? POLLOUT : 0)), deadline_ms);
    if (rc < 0)
        return lost(wire, err, strerror(errno));
    return rc ? wire_pump(wire, err) : 0;
}
