/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_priv.h - what the files directly in this folder share
 */
#ifndef SPURD_AGENT_PRIV_H
#define SPURD_AGENT_PRIV_H

#include "spurd/root.h"

/* ---- agent.c ---- */
void agent_set_config(struct agent *agent, const NodeConfig *config);
void agent_fill_found(struct agent *agent);

/* ---- agent_dirs.c ---- */
int agent_open_dirs(struct agent *agent, const struct agent_options *options, struct err *err);

/* ---- agent_timers.c ---- */
void agent_start_timers(struct agent *agent);
void agent_set_heartbeat(struct agent *agent, uint32_t ms);

/* ---- agent_ctl.c: what the leader says ---- */
void agent_on_message(struct agent *agent, const CtlMessage *message);
void agent_on_disconnect(struct agent *agent);

/* ---- agent_health.c ---- */
void agent_health_init(struct agent *agent);
void agent_health_config(struct agent *agent); /* there is a configuration, or another one */
void agent_health_stop(struct agent *agent);

/* ---- output.c ---- */
int output_listen(struct agent *agent, const char *address, struct err *err);

#endif
