/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.h - the leader's stream to spurdbd
 */
#ifndef SPURCTLD_FEED_H
#define SPURCTLD_FEED_H

#include "spurctld/serve.h"

struct feed;

void server_feed_turn(struct server *server); /* in every turn of the loop */
void feed_free(struct feed *feed);
/* Where spurdbd is; NULL: accounting is switched off. */
const char *server_accounting_address(struct server *server);
/* A spurdbd acknowledges what this leader sends, or did since it leads. */
bool server_accounting_registered(const struct server *server);
/* The leader's connection to spurdbd; NULL: there is none. */
struct rpc_client *server_feed_client(const struct server *server);

/* relay.c: passes a question on to spurdbd, as its asker. */
void server_relay(struct rpc_call *call, const ProtobufCMessage *message);

#endif
