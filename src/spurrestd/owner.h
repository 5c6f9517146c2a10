/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner.h - whose process is at the other end of a TCP connection on this host
 */
#ifndef SPURRESTD_OWNER_H
#define SPURRESTD_OWNER_H

#include "base/err.h"

/*
 * Asks the kernel (sock_diag) for the uid of the socket that `fd`, a connected TCP socket, is connected to. Fails
 * when it is not on this host, or is no longer open: a socket that its process has closed has uid 0, and that is
 * not root's.
 */
int owner_of_peer(int fd, uint32_t *uid, struct err *err);

#endif
