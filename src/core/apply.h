/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apply.h - the state as a whole: made, applied to, checked
 */
#ifndef CORE_APPLY_H
#define CORE_APPLY_H

#include "core/command/command.h"

/* ---- state.c ---- */

/* Ends a command: brings hashes and the digest up to date; record.h (1). */
void settle(struct state *state);

#endif
