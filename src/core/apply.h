/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apply.h - the state as a whole: made, applied to, checked
 */
#ifndef CORE_APPLY_H
#define CORE_APPLY_H

#include "core/command/command.h"

/* ---- state.c ---- */

void settle(struct state *state); /* (1) */

#endif
