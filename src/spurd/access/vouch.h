/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vouch.h - tokens for users of this host
 */
#ifndef SPURD_ACCESS_VOUCH_H
#define SPURD_ACCESS_VOUCH_H

#include "spurd/root.h"

extern const struct rpc_method vouch_methods[];
extern const size_t vouch_method_count;
int vouch_listen(struct agent *agent, const char *socket, struct err *err); /* spurd --login */
void vouch_listen_too(struct agent *agent, const char *socket);             /* a node */
void vouch_done(struct agent *agent);

#endif
