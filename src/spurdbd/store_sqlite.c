/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_sqlite.c - store.h on a file of SQLite
 *
 * (1) The write-ahead log lets queries read while entries are written; a commit is synced.
 * (2) A file that others could read is not made: mode 0600.
 */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "spurdbd/store_priv.h"
#include "sys/files.h"

enum { BUSY_MS = 10000, STATEMENTS_MOST = 128 };

struct sqlite_store {
    struct store store;
    sqlite3 *db;
    struct map statements; /* text → sqlite3_stmt */
};

struct sqlite_row {
    struct store_row row;
    sqlite3_stmt *statement;
};

static struct sqlite_store *self_of(struct store *store)
{
    return (struct sqlite_store *)store;
}

static int failed(struct sqlite_store *self, struct err *err)
{
    int code = sqlite3_extended_errcode(self->db);
    enum err_code which = (code & 0xff) == SQLITE_FULL ? ERR_DISK_FULL
                          : (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB
                              ? ERR_CORRUPT
                              : ERR_IO;

    return err_set(err, which, "database: %s", sqlite3_errmsg(self->db));
}

static void sqlite_close(struct store *store)
{
    struct sqlite_store *self = self_of(store);

    map_each (entry, &self->statements)
        sqlite3_finalize(entry->value);
    map_done(&self->statements);
    sqlite3_close(self->db);
    free(self);
}

static int sqlite_script(struct store *store, const char *sql, struct err *err)
{
    struct sqlite_store *self = self_of(store);
    CLEANUP(str_done) struct str text = { 0 };

    store_add_dialect(&text, sql, STORE_SQLITE);
    return sqlite3_exec(self->db, str_text(&text), NULL, NULL, NULL) == SQLITE_OK
               ? 0
               : failed(self, err);
}

/* (2) */
static int make_file(const char *path, struct err *err)
{
    CLEANUP(freep) char *dir = mem_strdup(path);
    char *slash = strrchr(dir, '/');

    if (slash && slash != dir) {
        *slash = '\0';
        if (file_make_dirs(dir, 0700, err) < 0)
            return -(int)err->code;
    }
    /* A file that is there must not be opened here: closing it would drop the locks that SQLite has on it. */
    CLEANUP(file_close) int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return fd < 0 && errno != EEXIST ? err_errno(err, errno, "database '%s'", path) : 0;
}

static int sqlite_open(const char *url, struct store **out, struct err *err)
{
    const char *path = url + strlen("sqlite:");

    if (str_starts(path, "//")) /* sqlite:///path */
        path += 2;
    if (!*path)
        return err_set(err, ERR_INVALID, "'%s' names no file: expected sqlite:PATH", url);
    if (make_file(path, err) < 0)
        return -(int)err->code;
    struct sqlite_store *self = NEW(struct sqlite_store);
    self->store.engine = &store_sqlite;
    map_init(&self->statements);
    int code = 0;
    if (sqlite3_open_v2(path, &self->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        code = failed(self, err);
    if (code == 0) {
        sqlite3_extended_result_codes(self->db, 1);
        sqlite3_busy_timeout(self->db, BUSY_MS);
        code = sqlite_script(&self->store,
                             "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                             "PRAGMA cache_size = -16000;",
                             err);
    }
    if (code < 0) {
        sqlite_close(&self->store);
        return err_wrap(err, "'%s'", path);
    }
    *out = &self->store;
    return 0;
}

/* Selections are put together for each request: those of long ago are forgotten. */
static void forget_statements(struct sqlite_store *self)
{
    map_each (entry, &self->statements) {
        if (sqlite3_stmt_busy(entry->value))
            return;
    }
    map_each (entry, &self->statements)
        sqlite3_finalize(entry->value);
    map_clear(&self->statements);
}

static sqlite3_stmt *prepare(struct sqlite_store *self, const char *sql, struct err *err)
{
    sqlite3_stmt *statement = map_get(&self->statements, sql);
    CLEANUP(str_done) struct str text = { 0 };

    if (statement)
        return statement;
    store_add_dialect(&text, sql, STORE_SQLITE);
    if (map_len(&self->statements) >= STATEMENTS_MOST)
        forget_statements(self);
    if (sqlite3_prepare_v3(self->db, str_text(&text), -1, SQLITE_PREPARE_PERSISTENT, &statement,
                           NULL) != SQLITE_OK) {
        failed(self, err);
        err_wrap(err, "%.80s", sql);
        return NULL;
    }
    map_put(&self->statements, sql, statement);
    return statement;
}

static void bind(sqlite3_stmt *statement, struct store_values values)
{
    for (size_t i = 0; i < values.count; i++) {
        const struct store_value *value = &values.items[i];
        int at = (int)i + 1;
        if (value->type == STORE_IS_INT)
            sqlite3_bind_int64(statement, at, value->number);
        else if (value->type == STORE_IS_TEXT)
            sqlite3_bind_text64(statement, at, value->bytes.ptr, value->bytes.len, SQLITE_STATIC,
                                SQLITE_UTF8);
        else if (value->type == STORE_IS_BYTES)
            sqlite3_bind_blob64(statement, at, value->bytes.len ? value->bytes.ptr : "",
                                value->bytes.len, SQLITE_STATIC);
        else
            sqlite3_bind_null(statement, at);
    }
}

static int sqlite_each(struct store *store, const char *sql, struct store_values values,
                       store_each_fn *each, void *ctx, struct err *err)
{
    struct sqlite_store *self = self_of(store);
    struct sqlite_row row = { { &store_sqlite }, prepare(self, sql, err) };
    int code = row.statement ? 0 : -(int)err->code;

    if (code < 0)
        return code;
    bind(row.statement, values);
    int step;
    while ((step = sqlite3_step(row.statement)) == SQLITE_ROW && code == 0)
        code = each ? each(ctx, &row.row, err) : 0;
    if (code == 0 && step != SQLITE_DONE)
        code = failed(self, err);
    sqlite3_reset(row.statement);
    sqlite3_clear_bindings(row.statement);
    return code;
}

static int sqlite_run(struct store *store, const char *sql, struct store_values values,
                      struct err *err)
{
    return sqlite_each(store, sql, values, NULL, NULL, err);
}

static int64_t sqlite_row_int(const struct store_row *row, unsigned column)
{
    return sqlite3_column_int64(((const struct sqlite_row *)row)->statement, (int)column);
}

static struct span sqlite_row_bytes(const struct store_row *row, unsigned column)
{
    sqlite3_stmt *statement = ((const struct sqlite_row *)row)->statement;
    const char *bytes = sqlite3_column_blob(statement, (int)column);

    return (struct span){ bytes ? bytes : "",
                          (size_t)sqlite3_column_bytes(statement, (int)column) };
}

static int sqlite_begin(struct store *store, struct err *err)
{
    return sqlite_run(store, "BEGIN IMMEDIATE", STORE_NO_VALUES, err);
}

static int sqlite_commit(struct store *store, struct err *err)
{
    return sqlite_run(store, "COMMIT", STORE_NO_VALUES, err);
}

static void sqlite_rollback(struct store *store)
{
    struct err ignored;

    if (!sqlite3_get_autocommit(self_of(store)->db))
        sqlite_run(store, "ROLLBACK", STORE_NO_VALUES, &ignored);
}

const struct store_engine store_sqlite = {
    .kind = STORE_SQLITE,
    .open = sqlite_open,
    .close = sqlite_close,
    .script = sqlite_script,
    .run = sqlite_run,
    .each = sqlite_each,
    .begin = sqlite_begin,
    .commit = sqlite_commit,
    .rollback = sqlite_rollback,
    .row_int = sqlite_row_int,
    .row_bytes = sqlite_row_bytes,
};
