/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resv_priv.h - what the files of reservations share
 */
#ifndef CORE_RESV_PRIV_H
#define CORE_RESV_PRIV_H

#include "core/resv.h"

/*
 * Fills in times, flags and nodes of `fresh`, whose spec may still lack them. `named`: its nodes were
 * named in this request. `old` may be NULL.
 */
int resv_resolve(struct state *state, const struct reservation *old, struct reservation *fresh,
                 bool named, struct err *err);
/* Other nodes for those that are down (or in use); false when nothing changed. */
bool resv_replace(struct state *state, struct reservation *resv);

#endif
