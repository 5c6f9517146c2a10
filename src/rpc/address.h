/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address.h - where a server is: "http://h:6817", "https://h", "unix:/run/x.sock", "[::1]:6817", "h"
 *
 * The scheme names an address, not a protocol: one port serves TLS and plain, told apart by the first
 * byte. "https" insists on TLS; with "http" or no scheme TLS is used outside loopback.
 */
#ifndef RPC_ADDRESS_H
#define RPC_ADDRESS_H

#include <sys/socket.h>

#include "base/err.h"

enum { ADDRESS_HOST_BYTES = 256, ADDRESS_PATH_BYTES = 108, ADDRESS_LIST_MAX = 16 };

enum address_tls { ADDRESS_TLS_AUTO, ADDRESS_TLS_ALWAYS };

struct address {
    char path[ADDRESS_PATH_BYTES]; /* a unix socket when not empty */
    char host[ADDRESS_HOST_BYTES]; /* name or number, without brackets; empty is every interface */
    uint16_t port;
    enum address_tls tls;
};

enum { ADDRESS_PORT_CONTROLLER = 6817, ADDRESS_PORT_NODE = 6818, ADDRESS_PORT_ACCOUNTING = 6819 };

int address_parse(const char *text, uint16_t default_port, struct address *out, struct err *err);

struct address_list {
    struct address items[ADDRESS_LIST_MAX];
    size_t len;
};

/* "a:1,b:2", tried in turn. An empty list is an error. */
int address_list_parse(const char *text, uint16_t default_port, struct address_list *out,
                       struct err *err);

/* As address_parse() reads it. Enough room: ADDRESS_TEXT_BYTES. */
enum { ADDRESS_TEXT_BYTES = ADDRESS_HOST_BYTES + 32 };
void address_text(const struct address *address, char out[ADDRESS_TEXT_BYTES]);

bool address_eq(const struct address *a, const struct address *b);

/* True for unix sockets, "localhost", 127.0.0.0/8 and ::1, without a look-up. */
bool address_is_local(const struct address *address);
bool address_sockaddr_is_loopback(const struct sockaddr *addr);

/* A number or "localhost" needs no look-up: fills up to two sockaddrs and returns how many. */
size_t address_numeric(const struct address *address, struct sockaddr_storage out[2]);

/*
 * The unix socket beside TCP port `port` of a daemon on this host: PORT.sock in $SPUR_RUN_DIR, or
 * else in /run/spur (/run/spurdb for spurdbd, which is another user), or where there is none in
 * $XDG_RUNTIME_DIR/spur. Commands prefer it, because it
 * says who they are. False when the path would be too long.
 */
bool address_local_socket(uint16_t port, struct address *out);

/* Where the agent of a login or compute node listens for commands of its host. */
#define ADDRESS_AGENT_SOCKET "/run/spur/spurd.sock"

#endif
