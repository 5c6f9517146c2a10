/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join.h - becoming a node of the cluster, and the certificate that says so
 */
#ifndef SPURD_LINK_JOIN_H
#define SPURD_LINK_JOIN_H

#include "base/str.h"
#include "spurd/root.h"

/* The token that names this node, from the spool; "" when it has not joined. */
void join_credentials(void *agent, struct str *out);
bool join_is_due(const struct agent *agent);
bool join_renews(const struct agent *agent); /* its certificate ends soon */
int join_tls(struct agent *agent, const struct agent_options *options, struct err *err);
void join_show_ca(const struct agent *agent);
void join_start(struct agent *agent, struct rpc_client *client,
                void (*done)(void *ctx, const struct err *err), void *ctx);

#endif
