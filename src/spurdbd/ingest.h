/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest.h - entries of a cluster's journal become rows, each exactly once
 */
#ifndef SPURDBD_INGEST_H
#define SPURDBD_INGEST_H

#include "base/vec.h"
#include "proto/dbd.pb-c.h"
#include "proto/journal.pb-c.h"
#include "spurdbd/store.h"

/* Up to where the database has a cluster's log. */
struct ingest_position {
    uint64_t epoch, index;
};

/*
 * The row of the cluster that says hello; made when it is new. *position is what the database has. When that
 * is more than the cluster's own log, the database is ahead: a gap is recorded, and the position becomes
 * the end of that log.
 */
int ingest_hello(struct store *store, const FeedHello *hello, int64_t now_us, int64_t *cluster,
                 struct ingest_position *position, bool *gap, struct err *err);

struct ingest_batch {
    int64_t cluster;
    uint64_t epoch;
    VEC(struct str) entries; /* JournalEntry, packed; owned */
    uint64_t last;           /* what lies between the entries and here meant nothing */
    int64_t now_us;
    size_t bytes;
};
void ingest_batch_done(struct ingest_batch *batch);

/*
 * Writes the entries and the new position in one transaction; what the database has already is passed
 * over. After an error nothing of the batch is in the database.
 */
int ingest_write(struct store *store, const struct ingest_batch *batch, struct err *err);

#endif
