/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join_token.h - a join token from a controller that knows who asks
 */
#ifndef SPURD_JOIN_TOKEN_H
#define SPURD_JOIN_TOKEN_H

#include "base/err.h"

/*
 * Asks the controllers, a comma list, for a token that lets `node` join, and writes it to `path` with mode
 * 0600. They give it to administrators: to root over the socket on their host. Waits for seconds at most.
 */
int join_ask_token(const char *controllers, const char *node, const char *path, struct err *err);

#endif
