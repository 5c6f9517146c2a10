/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.h - what controllers give to each other: snapshots, payloads, the leader's place
 */
#ifndef SPURCTLD_PEERS_H
#define SPURCTLD_PEERS_H

#include "spurctld/serve.h"

struct peers;

/* Is the caller in the list? It is answered when not. */
bool server_is_peer(struct rpc_call *call);

/* With several controllers; `tls` shows who we are. */
struct peers *peers_new(struct server *server, struct tls_ctx *tls);
void peers_free(struct peers *peers);

/* The log begins after `index`, our state before it: brings a snapshot from somebody. */
void peers_need_snapshot(struct peers *peers, uint64_t index);
/* Brings every payload that the state refers to and our disk lacks; until then we do not lead. */
void peers_check_payloads(struct peers *peers);
/* Is anything still missing? */
bool peers_busy(const struct peers *peers);

/*
 * Asks everybody but us and `heir` not to try to lead for `ms`; `done` comes when all have answered
 * or did not in time.
 */
void peers_hold_back(struct peers *peers, const char *heir, unsigned ms, void (*done)(void *arg),
                     void *arg);

#endif
