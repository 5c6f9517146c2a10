/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.h - questions about nodes out of use, reservations and runs that no controller knows of
 */
#ifndef SPURDBD_RECORDS_H
#define SPURDBD_RECORDS_H

#include "base/arena.h"
#include "proto/dbd.pb-c.h"
#include "spurdbd/store.h"

/* What the request asks for. Without `events` or `reservations` the reply is empty. In the arena. */
int records_read(struct store *store, const ListRecordsRequest *request, int64_t now_us,
                 struct arena *arena, ListRecordsReply *out, struct err *err);

/* Ends these runs in the history, as failed to be heard of: state COMPLETED, as Slurm does. */
int records_end_runs(struct store *store, const FixRunawayRequest *request, uint32_t *fixed,
                     struct err *err);

#endif
