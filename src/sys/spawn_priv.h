/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spawn_priv.h - what spawn.c and spawn_run.c share
 */
#ifndef SYS_SPAWN_PRIV_H
#define SYS_SPAWN_PRIV_H

#include "sys/spawn.h"

int spawn_start_real(const struct spawn *spec, pid_t *pid, int *pidfd, struct err *err);

#endif
