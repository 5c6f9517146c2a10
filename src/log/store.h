/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - the SQLite database of the log: one connection and its statements
 *
 *     log(first, count, epoch, crc, batch)   one row per batch
 *     meta                                   where the rows begin: index and checksum before them
 *     payload                                payload.h
 *
 * WAL, synchronous=FULL: a commit returns after one fdatasync of the write-ahead log. Checkpoints
 * are never automatic; checkpoint.h runs them beside the writer.
 */
#ifndef LOG_STORE_H
#define LOG_STORE_H

#include <sqlite3.h>

#include "log/batch.h"
#include "log/payload.h"

enum { STORE_PAGE_BYTES = 16384 };

struct store {
    sqlite3 *db;
    sqlite3_stmt *begin, *commit, *rollback, *insert, *scan, *measure, *trim, *base;
    struct payload_table payloads;
    int wal_frames;           /* after the last commit of this connection */
    int commit_frames;        /* of which that commit wrote */
    sqlite3_int64 wal_filled; /* up to here the WAL has frames or zeros, as far as we know */
};

/*
 * The error of the last call on this connection: ERR_DISK_FULL (nothing happened, try later),
 * ERR_NO_MEMORY, ERR_CORRUPT, or ERR_IO, after which nothing may be believed until a restart.
 */
int store_err(sqlite3 *db, struct err *err, const char *what);

/* Closing leaves files as they are: no checkpoint, so that evidence stays. */
int store_open(const char *path, bool create, struct store **out, struct err *err);
/* Before SQLite opens it: the file, made when `create`, and what SQLite has beside it are for us alone (0600). */
int store_keep_private(const char *path, bool create, struct err *err);
void store_close(struct store *store);

/* A database that has only the table of payloads; of this object only that part may be used. */
int store_open_payloads(const char *path, struct store **out, struct err *err);
int store_begin(struct store *store, struct err *err);
int store_commit(struct store *store, struct err *err);

/* One transaction: the row is durable when this returns 0. */
int store_insert(struct store *store, const struct log_batch *batch, struct err *err);

int store_get_base(struct store *store, struct log_point *out, struct err *err);
int store_set_base(struct store *store, struct log_point base, struct err *err);

/* Rows in order from `first` on; fn's negative return ends it. Bytes are valid during the call. */
typedef int (*store_scan_fn)(void *ctx, const struct log_batch *batch, struct err *err);
int store_scan(struct store *store, uint64_t first, store_scan_fn fn, void *ctx, struct err *err);

/* The end of the rows after `after` that lie below `goal` and together have about `bytes`. */
int store_measure(struct store *store, uint64_t after, uint64_t goal, size_t bytes,
                  struct log_point *end, struct err *err);

/* Bytes from a row's batch. ERR_NOT_FOUND when the row is gone. */
int store_read(struct store *store, uint64_t first, uint32_t offset, uint32_t len, struct str *out,
               struct err *err);

/* One transaction of maintenance. */
struct store_move {
    uint8_t digest[LOG_DIGEST_BYTES];
    uint64_t row;
    uint32_t offset, len;
};
struct store_chore {
    uint64_t trim_upto;             /* delete rows up to this index; 0: none */
    struct log_point base;          /* what the log begins after, then */
    const struct store_move *moves; /* payloads of those rows that stay */
    size_t move_count;
    const uint8_t (*drops)[LOG_DIGEST_BYTES]; /* payloads of the table that go */
    size_t drop_count;
};
int store_run_chore(struct store *store, const struct store_chore *chore, struct err *err);

/* The mode is in the file's head, where a flipped bit may change it without a word. */
int store_want_wal(struct store *store, struct err *err);

/* Copies committed pages into the database file. With `wait` all of them, and empties the WAL. */
int store_checkpoint(struct store *store, bool wait, bool *complete, struct err *err);

/*
 * After commits of a few pages: lets the WAL grow ahead of them, with zeros, so that the next ones
 * sync data alone and not also where the file ends and which blocks it has. What is no frame ends a
 * recovery, as frames of an earlier turn do. When there is no room for zeros there may still be for
 * frames: it has no result.
 */
void store_fill_ahead(struct store *store);

/* Tests: databases opened from here on use this VFS. */
void store_use_vfs(const char *name);

#endif
