/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listen.c - a socket that takes connections: a TCP port, or a unix socket
 */
#include "rpc/listen.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

/* A socket file nobody listens on is left from a crash and may go; one in use is an error. */
static int clear_stale(const char *path, struct err *err)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    struct stat st;

    if (lstat(path, &st) < 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return err_set(err, ERR_EXISTS, "%s exists and is not a socket", path);
    snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_errno(err, errno, "socket");
    int rc = connect(fd, (struct sockaddr *)&addr, sizeof(addr));
    int why = errno;
    close(fd);
    if (rc == 0 || why == EAGAIN)
        return err_set(err, ERR_EXISTS, "another process listens on %s", path);
    unlink(path);
    return 0;
}

static int listen_unix(uv_loop_t *uv, union listen_handle *handle, const char *path,
                       uv_connection_cb on_connection, struct err *err)
{
    uv_pipe_init(uv, &handle->pipe, 0);
    if (clear_stale(path, err) < 0)
        return -1;
    int rc = uv_pipe_bind(&handle->pipe, path);
    if (rc == 0)
        rc = uv_listen(&handle->stream, BACKLOG, on_connection);
    /* Anybody may connect: the kernel says who it is, and a table what that allows. */
    if (rc == 0 && chmod(path, 0666) < 0)
        rc = -errno;
    return rc < 0 ? err_errno(err, -rc, "cannot listen on %s", path) : 0;
}

static int bind_port(union listen_handle *handle, const struct sockaddr *addr,
                     uv_connection_cb on_connection, uint16_t *port)
{
    struct sockaddr_storage bound;
    int len = sizeof(bound);
    int rc = uv_tcp_bind(&handle->tcp, addr, 0);

    if (rc == 0)
        rc = uv_listen(&handle->stream, BACKLOG, on_connection);
    if (rc == 0)
        rc = uv_tcp_getsockname(&handle->tcp, (struct sockaddr *)&bound, &len);
    if (rc < 0)
        return rc;
    *port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                              : ((struct sockaddr_in *)&bound)->sin_port);
    return 0;
}

static bool has_ipv6(void)
{
    struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_addr = in6addr_any };
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool works = fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof(any)) == 0;

    if (fd >= 0)
        close(fd);
    return works;
}

static int bind_name(union listen_handle *handle, const char *host, const char *port_text,
                     uv_connection_cb on_connection, uint16_t *port)
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
    struct addrinfo *found = NULL;

    if (getaddrinfo(host, port_text, &hints, &found) != 0)
        return UV_EADDRNOTAVAIL;
    int rc = bind_port(handle, found->ai_addr, on_connection, port);
    freeaddrinfo(found);
    return rc;
}

static int listen_tcp(uv_loop_t *uv, union listen_handle *handle, const struct address *address,
                      uv_connection_cb on_connection, uint16_t *port, struct err *err)
{
    struct sockaddr_storage numeric[2];
    char port_text[8], text[ADDRESS_TEXT_BYTES];
    int rc;

    address_text(address, text);
    uv_tcp_init(uv, &handle->tcp);
    if (address_numeric(address, numeric)) {
        rc = bind_port(handle, (struct sockaddr *)&numeric[0], on_connection, port);
    } else {
        snprintf(port_text, sizeof(port_text), "%u", address->port);
        const char *every = has_ipv6() ? "::" : "0.0.0.0";
        rc = bind_name(handle, address->host[0] ? address->host : every, port_text, on_connection,
                       port);
    }
    return rc < 0 ? err_errno(err, -rc, "cannot listen on %s", text) : 0;
}

int listen_open(uv_loop_t *uv, union listen_handle *handle, const struct address *address,
                uv_connection_cb on_connection, uint16_t *port, struct err *err)
{
    *port = 0;
    return address->path[0] ? listen_unix(uv, handle, address->path, on_connection, err)
                            : listen_tcp(uv, handle, address, on_connection, port, err);
}
