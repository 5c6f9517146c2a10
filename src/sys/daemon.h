/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon.h - going to the background, and telling systemd
 *
 * daemon_detach() forks; the parent waits and ends with the child's verdict, so that a shell that
 * started us knows whether we serve: daemon_ready() in the child is exit status 0, its end before
 * that is 1.
 */
#ifndef SYS_DAEMON_H
#define SYS_DAEMON_H

#include "base/err.h"

/* Returns in the child only. Before threads and the loop exist. Keeps stderr until ready. */
int daemon_detach(struct err *err);

/* We serve: lets the waiting parent go, closes stderr to /dev/null if detached, tells systemd. */
void daemon_ready(void);

/*
 * One message of systemd's notify protocol, "READY=1", "STOPPING=1", "STATUS=…", "WATCHDOG=1".
 * Nothing happens when systemd did not ask for it. Returns whether it was sent.
 */
bool daemon_notify(const char *fmt, ...) PRINTF(1, 2);

/* How often systemd wants WATCHDOG=1, in µs (half its limit); 0: it does not. */
int64_t daemon_watchdog_us(void);

#endif
