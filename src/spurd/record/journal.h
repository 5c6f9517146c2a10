/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.h - the agent's own log: SPOOL/journal, records appended as things happen
 *
 * A record that journal_add() took survives the death of this process; one that journal_synced()
 * covers survives the death of the machine. Syncs are grouped: one is under way at a time, in a
 * worker, and everything added meanwhile shares the next.
 *
 * Each record has its length and CRC. A torn end, which a power cut may leave, is cut off at opening.
 * The file is filled with zeros ahead of the records: a sync then writes data alone, and not also
 * where the file now ends.
 */
#ifndef SPURD_JOURNAL_H
#define SPURD_JOURNAL_H

#include <uv.h>

#include "base/err.h"
#include "base/vec.h"
#include "proto/spool.pb-c.h"

enum {
    JOURNAL_RECORD_MAX = 1024 * 1024,
    JOURNAL_COMPACT_BYTES = 8 * 1024 * 1024,
    JOURNAL_FILL_BYTES = 256 * 1024
};

typedef void (*journal_synced_fn)(void *ctx, int status); /* 0, or a negative errno of the sync */

struct journal_waiter {
    journal_synced_fn done;
    void *ctx;
};

struct journal {
    uv_loop_t *uv;
    char *path;
    int fd;
    uint64_t bytes;   /* length of what is in the file */
    uint64_t filled;  /* up to here the file has zeros or records */
    uint64_t records; /* added since it was opened */
    uint64_t syncs;
    bool syncing;
    uv_work_t work;
    int sync_status;
    VEC(struct journal_waiter) waiting, under_way;
};

typedef void (*journal_record_fn)(void *ctx, const SpoolRecord *record);

/* Reads what is there, record by record, and opens for appending. uv may be NULL: no syncs then. */
int journal_open(struct journal *journal, uv_loop_t *uv, const char *path, journal_record_fn each,
                 void *ctx, struct err *err);
/* Waits for a sync that is under way; whoever still waits hears -ECANCELED. */
void journal_close(struct journal *journal);

/* One write for all of them. ERR_DISK_FULL and the like: nothing was added. */
int journal_add(struct journal *journal, const SpoolRecord *const *records, size_t count,
                struct err *err);

/* Calls `done` when everything added so far is on disk. */
void journal_sync(struct journal *journal, journal_synced_fn done, void *ctx);

/* True when it is long enough to be worth writing anew. */
bool journal_is_long(const struct journal *journal);

/* Replaces the file by what `write` adds to the builder; whole or not at all. */
struct journal_builder {
    struct str *out;
};
void journal_build(struct journal_builder *builder, const SpoolRecord *record);
int journal_replace(struct journal *journal,
                    void (*write)(void *ctx, struct journal_builder *builder), void *ctx,
                    struct err *err);

#endif
