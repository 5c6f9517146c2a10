/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - the name and the addresses of this machine
 */
#include "sys/host.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char given[HOST_NAME_BYTES];

void host_use(const char *name)
{
    snprintf(given, sizeof(given), "%s", name ? name : "");
}

void host_name(char out[HOST_NAME_BYTES])
{
    if (given[0])
        memcpy(out, given, HOST_NAME_BYTES);
    else if (gethostname(out, HOST_NAME_BYTES) < 0)
        snprintf(out, HOST_NAME_BYTES, "localhost");
    out[HOST_NAME_BYTES - 1] = '\0';
}

void host_short(char out[HOST_NAME_BYTES])
{
    host_name(out);
    out[strcspn(out, ".")] = '\0';
}

void host_address(char out[HOST_ADDRESS_BYTES])
{
    struct ifaddrs *list = NULL;

    snprintf(out, HOST_ADDRESS_BYTES, "127.0.0.1");
    if (getifaddrs(&list) < 0)
        return;
    for (const struct ifaddrs *at = list; at; at = at->ifa_next) {
        if (!at->ifa_addr || at->ifa_addr->sa_family != AF_INET ||
            (at->ifa_flags & (IFF_LOOPBACK | IFF_UP)) != IFF_UP)
            continue;
        const struct sockaddr_in *in = (const void *)at->ifa_addr;
        if (inet_ntop(AF_INET, &in->sin_addr, out, HOST_ADDRESS_BYTES))
            break;
    }
    freeifaddrs(list);
}

/* As text; false for addresses that are of no use to others. */
static bool useful(const struct sockaddr *addr, char out[HOST_ADDRESS_BYTES])
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;

    if (addr && addr->sa_family == AF_INET) {
        memcpy(&in, addr, sizeof(in));
        return (ntohl(in.sin_addr.s_addr) >> 24) != 127 &&
               inet_ntop(AF_INET, &in.sin_addr, out, HOST_ADDRESS_BYTES);
    }
    if (addr && addr->sa_family == AF_INET6) {
        memcpy(&in6, addr, sizeof(in6));
        return !IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr) && !IN6_IS_ADDR_LINKLOCAL(&in6.sin6_addr) &&
               inet_ntop(AF_INET6, &in6.sin6_addr, out, HOST_ADDRESS_BYTES);
    }
    return false;
}

size_t host_addresses(char out[HOST_ADDRESSES][HOST_ADDRESS_BYTES])
{
    struct ifaddrs *all = NULL;
    size_t count = 0;

    if (getifaddrs(&all) < 0)
        return 0;
    for (struct ifaddrs *at = all; at && count < HOST_ADDRESSES; at = at->ifa_next) {
        if ((at->ifa_flags & IFF_UP) && useful(at->ifa_addr, out[count]))
            count++;
    }
    freeifaddrs(all);
    return count;
}

bool host_own_address(const char *name, char out[HOST_ADDRESS_BYTES])
{
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
    char own[HOST_ADDRESSES][HOST_ADDRESS_BYTES];
    size_t count = host_addresses(own);
    bool is_own = false;

    if (getaddrinfo(name, NULL, &hints, &found) != 0)
        return false;
    for (struct addrinfo *at = found; at && !is_own; at = at->ai_next) {
        for (size_t i = 0; useful(at->ai_addr, out) && i < count && !is_own; i++)
            is_own = strcmp(own[i], out) == 0;
    }
    freeaddrinfo(found);
    return is_own;
}
