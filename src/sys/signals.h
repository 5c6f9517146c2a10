/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.h - signals by name, and how our processes treat them
 */
#ifndef SYS_SIGNALS_H
#define SYS_SIGNALS_H

#include "base/util.h"

/* "9", "KILL", "SIGKILL", "rtmin+3" in any case; 0 when it is no signal. */
int signals_parse(const char *text);
/* "KILL", "RTMIN+3", or "?". The text is static. */
const char *signals_name(int sig);

/* Every process of ours: a peer that went away is an error of one write, not the end. */
void signals_ignore_pipe(void);
/* Default handlers and an empty mask, as a program expects to be started. */
void signals_reset(void);

#endif
