/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload.h - the table of payloads: scripts and environments by their SHA-256
 *
 * A payload lives in the row of the log that brought it until that row is trimmed; those that are
 * still referred to then move here. So the bytes of a job that ended soon are written once. One
 * object per connection; every read checks the digest.
 */
#ifndef LOG_PAYLOAD_H
#define LOG_PAYLOAD_H

#include <sqlite3.h>

#include "log/log.h"

struct payload_table {
    sqlite3 *db;
    sqlite3_stmt *put, *get, *del, *list;
};

#define PAYLOAD_SCHEMA                    \
    "CREATE TABLE IF NOT EXISTS payload(" \
    "id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, bytes BLOB NOT NULL);"

int payload_open(struct payload_table *table, sqlite3 *db, struct err *err);
void payload_close(struct payload_table *table);

/* SQLite's code, so that the caller's transaction can tell a full disk from a broken one. */
int payload_put(struct payload_table *table, const uint8_t digest[LOG_DIGEST_BYTES],
                struct span bytes);
int payload_del(struct payload_table *table, const uint8_t digest[LOG_DIGEST_BYTES]);

/* Appends the bytes (out may be NULL: is it there?). ERR_NOT_FOUND, ERR_CORRUPT. */
int payload_get(struct payload_table *table, const uint8_t digest[LOG_DIGEST_BYTES],
                struct str *out, struct err *err);
/* Up to `max` digests after `*cursor`, which moves on; 0 starts. Returns how many, or negative. */
int payload_list(struct payload_table *table, int64_t *cursor, uint8_t (*out)[LOG_DIGEST_BYTES],
                 int max, struct err *err);

/* ERR_CORRUPT unless the bytes have this digest. */
int payload_check(const uint8_t digest[LOG_DIGEST_BYTES], struct span bytes, struct err *err);

#endif
