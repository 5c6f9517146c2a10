/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - the name and the addresses of this machine
 */
#ifndef SYS_HOST_H
#define SYS_HOST_H

#include "base/util.h"

enum { HOST_NAME_BYTES = 256 };

void host_name(char out[HOST_NAME_BYTES]);  /* as the kernel has it */
void host_short(char out[HOST_NAME_BYTES]); /* up to the first dot: what Slurm calls a node */

/* An address of this machine that others may reach: the first that is not of the machine itself, else 127.0.0.1. */
enum { HOST_ADDRESS_BYTES = 64, HOST_ADDRESSES = 16 };
void host_address(char out[HOST_ADDRESS_BYTES]);
/* The addresses that others may reach this machine by: not loopback, not of one link alone. */
size_t host_addresses(char out[HOST_ADDRESSES][HOST_ADDRESS_BYTES]);

/* The one of them that `name` leads to; false: none. Asks the name service, so it may take long. */
bool host_own_address(const char *name, char out[HOST_ADDRESS_BYTES]);

/* Every caller gets this name; NULL ends it. Several agents on one machine, simulations. */
void host_use(const char *name);

#endif
