/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send.h - what we say to the leader; nothing happens while nobody listens
 */
#ifndef SPURD_LINK_SEND_H
#define SPURD_LINK_SEND_H

#include "spurd/root.h"

void agent_send_grant_ack(struct agent *agent, uint32_t job, uint32_t attempt,
                          const struct err *refused, bool drain);
void agent_send_started(struct agent *agent, const struct attempt *held);
void agent_send_ended(struct agent *agent, struct attempt *held);
void agent_send_released(struct agent *agent, uint32_t job, uint32_t attempt,
                         const struct err *epilog);
void agent_send_found(struct agent *agent);
void agent_send_heartbeat(struct agent *agent);
void agent_ask_drain(struct agent *agent, const char *reason);
/* The hello, in the arena. */
NodeMessage *agent_hello(struct agent *agent, struct arena *arena);

#endif
