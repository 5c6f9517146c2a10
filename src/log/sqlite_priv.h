/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_priv.h - the SQLite engine's object: sqlite.c runs it, sqlite_recover.c starts it,
 * sqlite_trim.c keeps it small
 */
#ifndef LOG_SQLITE_PRIV_H
#define LOG_SQLITE_PRIV_H

#include "base/vec.h"
#include "log/log_priv.h"
#include "log/payload_index.h"
#include "log/recent.h"
#include "log/writer.h"

struct digest_item {
    uint8_t bytes[LOG_DIGEST_BYTES];
};

struct sqlite_log {
    struct log log;
    int lock_fd;
    struct store *reader; /* the owner's thread reads payloads by it */
    struct writer writer;
    struct batch *written, *written_last; /* and not delivered yet: one in each poll */
    struct background *background;
    struct payload_index index;
    struct recent recent;

    struct log_point base;     /* the rows begin after it */
    struct log_point previous; /* the snapshot before log.snapshot, if any: trim up to here */
    struct chore *chore;       /* the slice that is being trimmed */
    bool chore_blocked;        /* it met a full disk; goes on after the next commit */
    bool disk_full;
    VEC(struct digest_item) drops; /* of the table, waiting for a slice */
};

/* What recovery found; see sqlite_recover.c. */
int sqlite_recover(struct sqlite_log *self, struct err *err);
/* Copies what can be believed into a new database and puts the damaged one aside. */
int sqlite_rebuild(struct sqlite_log *self, struct log_point anchor, uint64_t *last,
                   struct err *err);

void sqlite_trim_next(struct sqlite_log *self);
void sqlite_trim_done(struct sqlite_log *self, struct chore *chore);
void sqlite_snapshot_verified(struct sqlite_log *self, struct log_point point);

#endif
