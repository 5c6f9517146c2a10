/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flips.h - memory of a controller's state that changes by itself
 */
#ifndef SIM_FLIPS_H
#define SIM_FLIPS_H

#include "core/state.h"
#include "sim/rand.h"

/* What it was; NULL: there was nothing of that kind. */
const char *flip_something(struct state *state, struct rand *rand);

#endif
