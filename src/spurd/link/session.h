/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.h - the stream to the leader
 */
#ifndef SPURD_LINK_SESSION_H
#define SPURD_LINK_SESSION_H

#include "spurd/root.h"

/* What the stream tells the agent. */
struct session_ops {
    void (*message)(struct agent *agent, const CtlMessage *message);
    void (*disconnected)(struct agent *agent);
};

struct session *session_new(struct agent *agent, const struct session_ops *ops, struct err *err);
void session_free(struct session *session);
bool session_send(struct session *session, const NodeMessage *message);
void session_reconnect(struct session *session, const char *why);
void session_set_controllers(struct session *session, char *const *addresses, size_t count);

/* The connection to the leader, for other calls; NULL: none. */
struct rpc_client *session_client(struct session *session);
/* The controllers, the one that we go to first; borrowed, for now. */
const char *session_addresses(const struct session *session);
/* The controller we are connected to does not lead; `leader` may be "". */
void session_follow(struct session *session, const char *leader);

#endif
