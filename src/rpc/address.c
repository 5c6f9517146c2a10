/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address.c - where a server is
 */
#include "rpc/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

static int parse_unix(const char *text, const char *path, struct address *out, struct err *err)
{
    while (path[0] == '/' && path[1] == '/')
        path++; /* "unix://" has slashes of its own: one spelling for each path */
    if (*path == '\0')
        return err_set(err, ERR_INVALID, "address '%.200s' has no path", text);
    if (strlen(path) >= sizeof(out->path))
        return err_set(err, ERR_INVALID, "socket path '%.200s' is longer than %zu characters", path,
                       sizeof(out->path) - 1);
    *out = (struct address){ 0 };
    strcpy(out->path, path);
    return 0;
}

static int parse_port(const char *text, const char *digits, uint16_t *out, struct err *err)
{
    uint64_t port;

    if (!str_to_u64(digits, 65535, &port))
        return err_set(err, ERR_INVALID, "'%.200s' has a bad port: a number up to 65535 is wanted",
                       text);
    *out = (uint16_t)port;
    return 0;
}

static bool host_is_sane(const char *host)
{
    for (const char *p = host; *p; p++) {
        bool word =
            (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9');
        if (!word && !strchr(".-_:%", *p))
            return false;
    }
    return true;
}

/* "host", "host:port", "[v6]", "[v6]:port", ":port", or a bare v6 address */
static int parse_host(const char *text, char *rest, struct address *out, struct err *err)
{
    char *host = rest, *port = NULL;

    if (*rest == '[') {
        char *end = strchr(rest, ']');
        if (!end || (end[1] != '\0' && end[1] != ':'))
            return err_set(err, ERR_INVALID, "address '%.200s' has unbalanced brackets", text);
        host = rest + 1;
        port = end[1] ? end + 2 : NULL;
        *end = '\0';
    } else {
        char *colon = strchr(rest, ':');
        if (colon && strchr(colon + 1, ':') == NULL) {
            *colon = '\0';
            port = colon + 1;
        }
    }
    if (!host_is_sane(host) || strlen(host) >= sizeof(out->host))
        return err_set(err, ERR_INVALID, "address '%.200s' has no valid host", text);
    strcpy(out->host, strcmp(host, "*") == 0 ? "" : host);
    return port ? parse_port(text, port, &out->port, err) : 0;
}

int address_parse(const char *text, uint16_t default_port, struct address *out, struct err *err)
{
    struct address address = { .port = default_port };
    char rest[ADDRESS_HOST_BYTES + 64];

    if (str_starts(text, "unix:"))
        return parse_unix(text, str_starts(text, "unix://") ? text + 7 : text + 5, out, err);
    if (*text == '/')
        return parse_unix(text, text, out, err);
    const char *from = text;
    if (str_istarts(text, "https://")) {
        address.tls = ADDRESS_TLS_ALWAYS;
        from = text + 8;
    } else if (str_istarts(text, "http://")) {
        from = text + 7;
    } else if (strstr(text, "://")) {
        return err_set(err, ERR_INVALID,
                       "address '%.200s' has an unknown scheme; http, https and unix are known",
                       text);
    }
    if (strlen(from) >= sizeof(rest))
        return err_set(err, ERR_INVALID, "address '%.200s' is too long", text);
    strcpy(rest, from);
    size_t len = strlen(rest);
    if (from != text && len && rest[len - 1] == '/')
        rest[len - 1] = '\0';
    if (rest[0] == '\0')
        return err_set(err, ERR_INVALID, "address '%.200s' names no host", text);
    if (rest[0] == '*' && (rest[1] == ':' || rest[1] == '\0'))
        memmove(rest, rest + 1, strlen(rest)); /* every interface */
    if (parse_host(text, rest, &address, err) < 0)
        return err ? -(int)err->code : -(int)ERR_INVALID;
    *out = address;
    return 0;
}

int address_list_parse(const char *text, uint16_t default_port, struct address_list *out,
                       struct err *err)
{
    struct address_list list = { .len = 0 };
    const char *cursor = text;
    struct span word;

    while (str_next(&cursor, ", ", &word)) {
        char one[ADDRESS_HOST_BYTES + 64];
        if (list.len == ADDRESS_LIST_MAX)
            return err_set(err, ERR_TOO_MANY, "more than %d addresses", ADDRESS_LIST_MAX);
        if (word.len >= sizeof(one))
            return err_set(err, ERR_INVALID, "address '%.40s…' is too long", word.ptr);
        memcpy(one, word.ptr, word.len);
        one[word.len] = '\0';
        int rc = address_parse(one, default_port, &list.items[list.len], err);
        if (rc < 0)
            return rc;
        list.len++;
    }
    if (!list.len)
        return err_set(err, ERR_INVALID, "no address given");
    *out = list;
    return 0;
}

void address_text(const struct address *address, char out[ADDRESS_TEXT_BYTES])
{
    if (address->path[0]) {
        snprintf(out, ADDRESS_TEXT_BYTES, "unix:%s", address->path);
        return;
    }
    bool v6 = strchr(address->host, ':') != NULL;
    snprintf(out, ADDRESS_TEXT_BYTES, "%s%s%s%s:%u",
             address->tls == ADDRESS_TLS_ALWAYS ? "https://" : "http://", v6 ? "[" : "",
             address->host[0] ? address->host : "*", v6 ? "]" : "", address->port);
}

bool address_eq(const struct address *a, const struct address *b)
{
    return a->port == b->port && a->tls == b->tls && strcmp(a->path, b->path) == 0 &&
           strcmp(a->host, b->host) == 0;
}

bool address_sockaddr_is_loopback(const struct sockaddr *addr)
{
    if (addr->sa_family == AF_UNIX)
        return true;
    if (addr->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, addr, sizeof(in));
        return (ntohl(in.sin_addr.s_addr) >> 24) == 127;
    }
    if (addr->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, addr, sizeof(in6));
        return IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&in6.sin6_addr) && in6.sin6_addr.s6_addr[12] == 127);
    }
    return false;
}

size_t address_numeric(const struct address *address, struct sockaddr_storage out[2])
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(address->port) };
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(address->port) };

    memset(out, 0, 2 * sizeof(*out));
    if (str_ieq(address->host, "localhost")) {
        in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        in6.sin6_addr = in6addr_loopback;
        memcpy(&out[0], &in, sizeof(in));
        memcpy(&out[1], &in6, sizeof(in6));
        return 2;
    }
    if (inet_pton(AF_INET, address->host, &in.sin_addr) == 1) {
        memcpy(&out[0], &in, sizeof(in));
        return 1;
    }
    if (inet_pton(AF_INET6, address->host, &in6.sin6_addr) == 1) {
        memcpy(&out[0], &in6, sizeof(in6));
        return 1;
    }
    return 0;
}

bool address_is_local(const struct address *address)
{
    struct sockaddr_storage addr[2];

    return address->path[0] || (address_numeric(address, addr) &&
                                address_sockaddr_is_loopback((const struct sockaddr *)&addr[0]));
}

bool address_local_socket(uint16_t port, struct address *out)
{
    const char *run_dir = getenv("SPUR_RUN_DIR");
    const char *xdg = getenv("XDG_RUNTIME_DIR");
    struct address address = { .port = 0 };
    int len;

    if (!str_is_empty(run_dir))
        len = snprintf(address.path, sizeof(address.path), "%s/%u.sock", run_dir, port);
    else if (port == ADDRESS_PORT_ACCOUNTING && access("/run/spurdb", X_OK) == 0)
        len = snprintf(address.path, sizeof(address.path), "/run/spurdb/%u.sock", port);
    else if (access("/run/spur", X_OK) == 0 || str_is_empty(xdg))
        len = snprintf(address.path, sizeof(address.path), "/run/spur/%u.sock", port);
    else
        len = snprintf(address.path, sizeof(address.path), "%s/spur/%u.sock", xdg, port);
    if (len < 0 || (size_t)len >= sizeof(address.path))
        return false;
    *out = address;
    return true;
}
