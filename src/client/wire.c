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

#define CA_OF_SITE "/etc/spur/ca.crt"

enum { IN_BYTES = 32 * 1024, OUT_BYTES = 64 * 1024 };

/*
 * A server that is stopped takes connections all the same: its kernel does. A new connection is
 * greeted at once by a process that lives; an old one may rest, and is asked.
 */
enum { GREET_MS = 1000, REST_MS = 5000, PONG_MS = 3000 };

int64_t now_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_BOOTTIME, &ts); /* a request is not repeated after the machine slept */
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
    if (addr->sa_family != AF_UNIX) {
        unsigned unacked_ms = 60000;
        int idle_s = 60, every_s = 10; /* a stream may be silent for hours; a dead host must show */
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        /* What was not taken by then is asked again: the kernel is not to deliver it later. */
        setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms, sizeof(unacked_ms));
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every_s, sizeof(every_s));
    }
    *out = fd;
    return 0;
}

static socklen_t sockaddr_len(const struct sockaddr_storage *addr)
{
    return addr->ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static int dial_name(const struct address *address, const char *text, int64_t deadline_ms, int *out,
                     bool *near, struct err *err)
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
        why = dial(a->ai_addr, a->ai_addrlen, deadline_ms, out);
        *near = address_sockaddr_is_loopback(a->ai_addr);
    }
    freeaddrinfo(found);
    if (why)
        return err_set(err, ERR_UNREACHABLE, "cannot connect to %s: %s", text, strerror(why));
    return 0;
}

/* `near` says whether the address that was reached is on this host. */
static int dial_address(const struct address *address, int64_t deadline_ms, int *out, bool *near,
                        struct err *err)
{
    struct sockaddr_storage numeric[2];
    char text[ADDRESS_TEXT_BYTES];
    int why = EADDRNOTAVAIL;

    address_text(address, text);
    *near = true;
    if (address->path[0]) {
        struct sockaddr_un addr = { .sun_family = AF_UNIX };
        memcpy(addr.sun_path, address->path, sizeof(addr.sun_path));
        why = dial((struct sockaddr *)&addr, sizeof(addr), deadline_ms, out);
    } else {
        size_t count = address_numeric(address, numeric);
        if (!count)
            return dial_name(address, text, deadline_ms, out, near, err);
        *near = address_sockaddr_is_loopback((struct sockaddr *)&numeric[0]);
        for (size_t i = 0; i < count && why; i++)
            why = dial((struct sockaddr *)&numeric[i], sockaddr_len(&numeric[i]), deadline_ms, out);
    }
    if (why)
        return err_set(err, ERR_UNREACHABLE, "cannot connect to %s: %s", text, strerror(why));
    return 0;
}

void wire_close(struct wire *wire)
{
    if (wire->fd >= 0)
        close(wire->fd);
    h2_free(wire->h2);
    if (wire->crypto) {
        wire->crypto->tls_free(wire->tls);
        wire->crypto->tls_ctx_free(wire->tls_ctx);
    }
    free(wire->out);
    free(wire->plain);
    *wire = (struct wire){ .fd = -1 };
}

static int lost(struct wire *wire, struct err *err, const char *what)
{
    wire->broken = true;
    return err_set(err, ERR_CONNECTION_LOST, "%s", what);
}

static size_t gather(struct wire *wire, char *out, size_t room)
{
    const uint8_t *bytes;
    size_t len, have = 0;

    /* A frame is at most 16 KiB and its header; one more must always fit. */
    while (wire->h2 && have + 17 * 1024 <= room && (len = h2_send(wire->h2, &bytes)) > 0) {
        memcpy(out + have, bytes, len);
        have += len;
    }
    return have;
}

/* Adds what is to be sent next behind what still waits. */
static int fill(struct wire *wire, struct err *err)
{
    if (!wire->out)
        wire->out = mem_new(OUT_BYTES);
    size_t room = OUT_BYTES - wire->out_len;
    if (!wire->tls) {
        wire->out_len += gather(wire, wire->out + wire->out_len, room);
        return 0;
    }
    size_t len = wire->crypto->tls_output(wire->tls, wire->out + wire->out_len, room);
    if (!len && wire->h2 && room == OUT_BYTES) {
        if (!wire->plain)
            wire->plain = mem_new(OUT_BYTES / 2);
        size_t plain = gather(wire, wire->plain, OUT_BYTES / 2);
        if (plain && wire->crypto->tls_write(wire->tls, wire->plain, plain, err) < 0) {
            wire->broken = true;
            return -(int)ERR_CONNECTION_LOST;
        }
        len = wire->crypto->tls_output(wire->tls, wire->out + wire->out_len, room);
    }
    wire->out_len += len;
    return 0;
}

static int write_some(struct wire *wire, struct err *err)
{
    for (;;) {
        if (fill(wire, err) < 0)
            return -(int)ERR_CONNECTION_LOST;
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

static int take_plain(struct wire *wire, const char *bytes, size_t len, struct err *err)
{
    if (h2_recv(wire->h2, bytes, len, now_ms(), err) == 0)
        return 0;
    wire->broken = true;
    return -(int)ERR_CONNECTION_LOST;
}

static int take_tls(struct wire *wire, const char *bytes, size_t len, struct err *err)
{
    char plain[IN_BYTES];

    if (wire->crypto->tls_input(wire->tls, bytes, len, err) < 0)
        return -(int)ERR_CONNECTION_LOST;
    while (wire->h2) { /* else the handshake is not done yet */
        ssize_t got = wire->crypto->tls_read(wire->tls, plain, sizeof(plain), err);
        if (got == 0)
            return 0;
        if (got < 0)
            wire->broken = true;
        if (got < 0 || take_plain(wire, plain, (size_t)got, err) < 0)
            return -(int)ERR_CONNECTION_LOST;
    }
    return 0;
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
        wire->read_ms = now_ms();
        wire->ping_ms = 0;
        wire->heard = true;
        int rc = wire->tls ? take_tls(wire, in, (size_t)got, err)
                           : take_plain(wire, in, (size_t)got, err);
        if (rc < 0 || (size_t)got < sizeof(in))
            return rc;
    }
    return 0;
}

/*
 * Whose certificates we believe: what was named, the file of the site, or what the daemon of this
 * host shows beside its socket.
 */
static const char *ca_of(const struct client_options *options, char room[ADDRESS_PATH_BYTES])
{
    const char *named = options->ca ? options->ca : getenv("SPUR_CA");

    if (!str_is_empty(named))
        return named;
    return access(CA_OF_SITE, R_OK) < 0 && vouch_ca(room) ? room : CA_OF_SITE;
}

static bool plain_is_allowed(const struct client_options *options)
{
    return options->allow_plaintext || str_eq(getenv("SPUR_ALLOW_PLAINTEXT"), "1");
}

static int start_tls(struct wire *wire, const struct address *address,
                     const struct client_options *options, int64_t deadline_ms, struct err *err)
{
    char room[ADDRESS_PATH_BYTES];

    wire->crypto = crypto_load(err);
    if (!wire->crypto)
        return -(int)ERR_UNSUPPORTED;
    wire->tls_ctx = wire->crypto->tls_ctx_new(
        &(struct tls_options){
            .ca_path = ca_of(options, room), .cert_path = options->cert, .key_path = options->key },
        err);
    if (!wire->tls_ctx)
        return err_wrap(err, "%s needs TLS", address->host);
    wire->tls = wire->crypto->tls_new(wire->tls_ctx, options->peer ? options->peer : address->host);
    for (;;) {
        int rc = wire->crypto->tls_handshake(wire->tls, err);
        if (rc < 0)
            return err_wrap(err, "%s", address->host);
        if (write_some(wire, err) < 0)
            return -(int)ERR_CONNECTION_LOST;
        if (rc == 1)
            return 0;
        if (poll_until(wire->fd, (short)(POLLIN | (wire->out_len ? POLLOUT : 0)), deadline_ms) <= 0)
            return err_set(err, ERR_UNREACHABLE, "%s did not answer in time", address->host);
        if (read_some(wire, err) < 0)
            return -(int)ERR_CONNECTION_LOST;
    }
}

int wire_connect(struct wire *wire, const struct address *address,
                 const struct client_options *options, const struct h2_events *events, void *ctx,
                 int64_t deadline_ms, struct err *err)
{
    int fd = -1;
    bool near;
    int rc = dial_address(address, deadline_ms, &fd, &near, err);

    if (rc < 0)
        return rc;
    *wire = (struct wire){ .fd = fd, .is_unix = address->path[0] != '\0', .read_ms = now_ms() };
    bool tls = address->tls == ADDRESS_TLS_ALWAYS || (!near && !plain_is_allowed(options));
    rc = tls ? start_tls(wire, address, options, deadline_ms, err) : 0;
    if (rc < 0) {
        wire_close(wire);
        return rc;
    }
    wire->h2 = h2_new(&(struct h2_options){ .events = events, .ctx = ctx });
    /* What came together with the end of the handshake would wait for ever: poll() knows nothing of it. */
    return wire->tls ? take_tls(wire, "", 0, err) : 0;
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

/* When its silence becomes too long. */
static int64_t patience_ms(const struct wire *wire)
{
    if (!wire->watch)
        return INT64_MAX;
    if (wire->ping_ms)
        return wire->ping_ms + PONG_MS;
    return wire->read_ms + (wire->heard ? REST_MS : GREET_MS);
}

static int out_of_patience(struct wire *wire, struct err *err)
{
    if (wire->heard && !wire->ping_ms) {
        wire->ping_ms = now_ms();
        h2_ping(wire->h2);
        return write_some(wire, err);
    }
    wire->silent = true;
    return lost(wire, err, "the server does not answer");
}

int wire_wait(struct wire *wire, int64_t deadline_ms, struct err *err)
{
    int64_t patience = patience_ms(wire);
    int rc = write_some(wire, err);

    if (rc < 0)
        return rc;
    rc = poll_until(wire->fd, (short)(POLLIN | (wire->out_len ? POLLOUT : 0)),
                    MIN(deadline_ms, patience));
    if (rc < 0)
        return lost(wire, err, strerror(errno));
    if (rc == 0 && now_ms() >= patience)
        return out_of_patience(wire, err);
    return rc ? wire_pump(wire, err) : 0;
}
