/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload.c - the table of payloads: scripts and environments by their SHA-256
 */
#include "log/payload.h"

#include <string.h>

#include "log/store.h"
#include "sys/digest.h"

int payload_open(struct payload_table *table, sqlite3 *db, struct err *err)
{
    const struct {
        sqlite3_stmt **stmt;
        const char *sql;
    } rows[] = {
        { &table->put, "INSERT OR IGNORE INTO payload(digest, bytes) VALUES(?, ?)" },
        { &table->get, "SELECT bytes FROM payload WHERE digest = ?" },
        { &table->del, "DELETE FROM payload WHERE digest = ?" },
        { &table->list, "SELECT id, digest FROM payload WHERE id > ? ORDER BY id LIMIT ?" },
    };

    table->db = db;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (sqlite3_prepare_v3(db, rows[i].sql, -1, SQLITE_PREPARE_PERSISTENT, rows[i].stmt,
                               NULL) != SQLITE_OK)
            return store_err(db, err, "payload table");
    }
    return 0;
}

void payload_close(struct payload_table *table)
{
    sqlite3_finalize(table->put);
    sqlite3_finalize(table->get);
    sqlite3_finalize(table->del);
    sqlite3_finalize(table->list);
    *table = (struct payload_table){ 0 };
}

int payload_check(const uint8_t digest[LOG_DIGEST_BYTES], struct span bytes, struct err *err)
{
    uint8_t found[DIGEST_BYTES];
    char hex[DIGEST_HEX_BYTES];

    digest_sha256(bytes.ptr, bytes.len, found);
    if (memcmp(found, digest, LOG_DIGEST_BYTES) == 0)
        return 0;
    digest_hex(digest, hex);
    return err_set(err, ERR_CORRUPT, "payload %.16s is damaged", hex);
}

int payload_put(struct payload_table *table, const uint8_t digest[LOG_DIGEST_BYTES],
                struct span bytes)
{
    sqlite3_bind_blob(table->put, 1, digest, LOG_DIGEST_BYTES, SQLITE_STATIC);
    sqlite3_bind_blob64(table->put, 2, bytes.ptr, bytes.len, SQLITE_STATIC);
    sqlite3_step(table->put);
    return sqlite3_reset(table->put);
}

int payload_del(struct payload_table *table, const uint8_t digest[LOG_DIGEST_BYTES])
{
    sqlite3_bind_blob(table->del, 1, digest, LOG_DIGEST_BYTES, SQLITE_STATIC);
    sqlite3_step(table->del);
    return sqlite3_reset(table->del);
}

int payload_get(struct payload_table *table, const uint8_t digest[LOG_DIGEST_BYTES],
                struct str *out, struct err *err)
{
    sqlite3_bind_blob(table->get, 1, digest, LOG_DIGEST_BYTES, SQLITE_STATIC);
    int step = sqlite3_step(table->get), rc = 0;
    if (step == SQLITE_ROW && out) {
        struct span bytes = { sqlite3_column_blob(table->get, 0),
                              (size_t)sqlite3_column_bytes(table->get, 0) };
        rc = payload_check(digest, bytes, err);
        if (rc == 0)
            str_add_len(out, bytes.ptr, bytes.len);
    } else if (step == SQLITE_DONE) {
        rc = err_set(err, ERR_NOT_FOUND, "payload is not in the store");
    } else if (step != SQLITE_ROW) {
        rc = store_err(table->db, err, "payload");
    }
    sqlite3_reset(table->get);
    return rc;
}

int payload_list(struct payload_table *table, int64_t *cursor, uint8_t (*out)[LOG_DIGEST_BYTES],
                 int max, struct err *err)
{
    int count = 0, step;

    sqlite3_bind_int64(table->list, 1, *cursor);
    sqlite3_bind_int(table->list, 2, max);
    while ((step = sqlite3_step(table->list)) == SQLITE_ROW) {
        *cursor = sqlite3_column_int64(table->list, 0);
        if (sqlite3_column_bytes(table->list, 1) == LOG_DIGEST_BYTES)
            memcpy(out[count++], sqlite3_column_blob(table->list, 1), LOG_DIGEST_BYTES);
    }
    if (step != SQLITE_DONE)
        count = store_err(table->db, err, "payload list");
    sqlite3_reset(table->list);
    return count;
}
