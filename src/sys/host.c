/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - the name of this machine
 */
#include "sys/host.h"

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
