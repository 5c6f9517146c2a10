/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest_cluster.h - what the journal says of nodes, capacity and reservations becomes rows
 *
 * Table `event` has a row for each time that a node was out of use, and, without a node's name, one for each
 * time that the cluster had the same nodes and TRES. `t_end` is 0 while it lasts. Table `resv` has a row for each time
 * that a reservation had the same nodes; a reservation that repeats has another id each time.
 */
#ifndef SPURDBD_INGEST_CLUSTER_H
#define SPURDBD_INGEST_CLUSTER_H

#include "proto/journal.pb-c.h"
#include "spurdbd/store.h"

/* Records of other kinds are passed over. Part of the caller's transaction. */
int ingest_cluster(struct store *store, int64_t cluster, const JournalEntry *entry,
                   const JournalRecord *record, struct err *err);

#endif
