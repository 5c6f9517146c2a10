/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner.c - whose process is at the other end of a TCP connection on this host
 */
#include "spurrestd/owner.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct request {
    struct nlmsghdr header;
    struct inet_diag_req_v2 body;
};

/* An address as the kernel keeps it: IPv4 in IPv6 is IPv4 there. */
static int put_address(const struct sockaddr_storage *addr, __be32 out[4], __be16 *port)
{
    const struct sockaddr_in6 *six = (const void *)addr;
    const struct sockaddr_in *four = (const void *)addr;

    memset(out, 0, 4 * sizeof(out[0]));
    if (addr->ss_family == AF_INET) {
        out[0] = four->sin_addr.s_addr;
        *port = four->sin_port;
        return AF_INET;
    }
    *port = six->sin6_port;
    if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
        memcpy(out, six->sin6_addr.s6_addr + 12, 4);
        return AF_INET;
    }
    memcpy(out, &six->sin6_addr, 16);
    return AF_INET6;
}

/* What the kernel knows of that one socket. */
static int ask_kernel(const struct request *request, struct inet_diag_msg *out, struct err *err)
{
    const struct timeval most = { .tv_sec = 1 };
    union {
        struct nlmsghdr header;
        char bytes[4096];
    } answer;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

    if (fd < 0)
        return err_errno(err, errno, "sock_diag");
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
    ssize_t got = send(fd, request, sizeof(*request), 0);
    if (got > 0)
        got = recv(fd, &answer, sizeof(answer), 0);
    int why = errno;
    close(fd);
    if (got < 0)
        return err_errno(err, why, "sock_diag");
    if (!NLMSG_OK(&answer.header, (size_t)got) || answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
        answer.header.nlmsg_len < NLMSG_LENGTH(sizeof(*out)))
        return err_set(err, ERR_NOT_FOUND, "the caller's socket is not on this host");
    memcpy(out, NLMSG_DATA(&answer.header), sizeof(*out));
    return 0;
}

int owner_of_peer(int fd, uint32_t *uid, struct err *err)
{
    struct sockaddr_storage here, there;
    socklen_t here_len = sizeof(here), there_len = sizeof(there);
    struct inet_diag_msg found;
    struct request request = {
        .header = { .nlmsg_len = sizeof(request),
                    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                    .nlmsg_flags = NLM_F_REQUEST },
        .body = { .sdiag_protocol = IPPROTO_TCP,
                  .idiag_states = 1 << TCP_ESTABLISHED,
                  .id = { .idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE } } },
    };

    if (getsockname(fd, (struct sockaddr *)&here, &here_len) < 0 ||
        getpeername(fd, (struct sockaddr *)&there, &there_len) < 0)
        return err_errno(err, errno, "the caller's socket");
    /* The other end: its source is our destination. */
    put_address(&here, request.body.id.idiag_dst, &request.body.id.idiag_dport);
    request.body.sdiag_family =
        (__u8)put_address(&there, request.body.id.idiag_src, &request.body.id.idiag_sport);
    if (ask_kernel(&request, &found, err) < 0)
        return -(int)err->code;
    if (found.idiag_state != TCP_ESTABLISHED || !found.idiag_inode)
        return err_set(err, ERR_NOT_FOUND, "the caller has closed its socket");
    *uid = found.idiag_uid;
    return 0;
}
