/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - the name of this machine
 */
#include "sys/host.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
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
