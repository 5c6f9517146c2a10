/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shares.h - fractions of shares and usage, for sshare and REST
 *
 * The controller gives shares, decayed usage and the fair-share factor; the fractions follow from these, so that
 * they add up: the norm shares and the effective usage of siblings each sum to one.
 */
#ifndef SCHEMA_SHARES_H
#define SCHEMA_SHARES_H

#include "proto/acct.pb-c.h"
#include "schema/jsonw.h"

enum { SHARE_OF_PARENT = 0x7fffffff };

/* The row of the account above; NULL: this is root. */
const ShareRow *share_parent(const ListSharesReply *reply, const ShareRow *row);
/* Its part of what it and its siblings have; with the classic algorithm (NO_FAIR_TREE) of the whole cluster. */
double share_norm(const ListSharesReply *reply, const ShareRow *row);
/* Its part of what it and its siblings used; classic: own use, and of what the parent has more its share. */
double share_effective(const ListSharesReply *reply, const ShareRow *row);
/* Its part of what `whole` used; 1 without one. */
double share_used(const ShareRow *row, const ShareRow *whole);
double share_factor(const ShareRow *row);
uint64_t shares_total(const ListSharesReply *reply);

/* One object of Slurm's API, in a list. */
void share_add_json(const ListSharesReply *reply, const ShareRow *row, uint32_t id,
                    struct jsonw *json);

#endif
