/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.c - the SQLite database of the log: one connection and its statements
 */
#include "log/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sys/files.h"

enum {
    FORMAT = 1,
    WAL_HEAD_BYTES = 32,
    WAL_FRAME_BYTES = 24 + STORE_PAGE_BYTES,
    FILL_BYTES = 512 * 1024,
    FILL_COMMIT_FRAMES = 4, /* larger commits are mostly data, which zeros would only double */
};

static const char *vfs_name;

void store_use_vfs(const char *name)
{
    vfs_name = name;
}

/* SQLite keeps errno of a statement, but not of a commit: then the file knows it. */
static int errno_of(sqlite3 *db)
{
    sqlite3_file *wal = NULL;
    int saved = sqlite3_system_errno(db);

    if (saved == 0 &&
        sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &wal) == SQLITE_OK && wal &&
        wal->pMethods)
        wal->pMethods->xFileControl(wal, SQLITE_FCNTL_LAST_ERRNO, &saved);
    return saved;
}

/*
 * A write that found no room did nothing; a sync that failed may have lost anything. The shared
 * memory file is not data: when it cannot grow, nothing has happened.
 */
static bool is_no_room(int code, int saved)
{
    return code == SQLITE_FULL || code == SQLITE_IOERR_SHMSIZE ||
           (code == SQLITE_IOERR_WRITE && (saved == ENOSPC || saved == EDQUOT));
}

int store_err(sqlite3 *db, struct err *err, const char *what)
{
    int code = sqlite3_extended_errcode(db);
    int saved = (code & 0xff) == SQLITE_IOERR ? errno_of(db) : sqlite3_system_errno(db);
    enum err_code kind;

    switch (is_no_room(code, saved) ? SQLITE_FULL : code & 0xff) {
    case SQLITE_FULL:
        kind = ERR_DISK_FULL;
        break;
    case SQLITE_NOMEM:
        kind = ERR_NO_MEMORY;
        break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_ERROR:      /* a table or column that is not there */
    case SQLITE_CONSTRAINT: /* a row that should not be there */
        kind = ERR_CORRUPT;
        break;
    default:
        kind = ERR_IO;
    }
    return err_set(err, kind, "%s: %s%s%s (%d)", what, sqlite3_errmsg(db), saved ? ": " : "",
                   saved ? strerror(saved) : "", code);
}

static int on_commit(void *arg, sqlite3 *db, const char *name, int frames)
{
    struct store *store = arg;

    (void)db, (void)name;
    store->commit_frames = frames > store->wal_frames ? frames - store->wal_frames : frames;
    store->wal_frames = frames;
    return SQLITE_OK;
}

static int run(sqlite3 *db, const char *sql, struct err *err)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : store_err(db, err, sql);
}

static int set_up(sqlite3 *db, bool create, struct err *err)
{
    CLEANUP(freep) char *page = mem_printf("PRAGMA page_size=%d", STORE_PAGE_BYTES);
    static const char *const always[] = {
        "PRAGMA synchronous=FULL", "PRAGMA wal_autocheckpoint=0", "PRAGMA cell_size_check=ON",
        "PRAGMA cache_size=-8192", "PRAGMA temp_store=MEMORY",    "PRAGMA trusted_schema=OFF",
    };
    int rc = 0;

    sqlite3_busy_timeout(db, 10000);
    sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    if (create)
        rc = run(db, page, err);
    if (rc == 0 && create)
        rc = run(db, "PRAGMA journal_mode=WAL", err);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(always); i++)
        rc = run(db, always[i], err);
    if (rc == 0 && create)
        rc = run(db,
                 "BEGIN;"
                 "CREATE TABLE log(first INTEGER PRIMARY KEY, count INTEGER NOT NULL,"
                 " epoch INTEGER NOT NULL, crc INTEGER NOT NULL, batch BLOB NOT NULL);"
                 "CREATE TABLE meta(format INTEGER NOT NULL, base INTEGER NOT NULL,"
                 " base_crc INTEGER NOT NULL);"
                 "INSERT INTO meta VALUES(1, 0, 0);" PAYLOAD_SCHEMA "COMMIT",
                 err);
    return rc;
}

static int prepare(struct store *store, struct err *err)
{
    const struct {
        sqlite3_stmt **stmt;
        const char *sql;
    } rows[] = {
        { &store->begin, "BEGIN IMMEDIATE" },
        { &store->commit, "COMMIT" },
        { &store->rollback, "ROLLBACK" },
        { &store->insert,
          "INSERT INTO log(first, count, epoch, crc, batch) VALUES(?, ?, ?, ?, ?)" },
        { &store->scan,
          "SELECT first, count, epoch, crc, batch FROM log WHERE first >= ? ORDER BY first" },
        { &store->measure,
          "SELECT first + count - 1, crc, length(batch) FROM log WHERE first > ? ORDER BY first"
          " LIMIT 512" },
        { &store->trim, "DELETE FROM log WHERE first <= ?" },
        { &store->base, "UPDATE meta SET base = ?, base_crc = ?" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (sqlite3_prepare_v3(store->db, rows[i].sql, -1, SQLITE_PREPARE_PERSISTENT, rows[i].stmt,
                               NULL) != SQLITE_OK)
            return store_err(store->db, err, "log database");
    }
    return payload_open(&store->payloads, store->db, err);
}

/* SQLite gives its other files the mode of this one; those of earlier versions are narrowed. */
int store_keep_private(const char *path, bool create, struct err *err)
{
    static const char *const others[] = { "-wal", "-shm" };
    CLEANUP(file_close) int fd = open(path, O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0600);

    if (fd < 0)
        return create ? err_errno(err, errno, "%s", path) : 0; /* SQLite says what is wrong */
    if (fchmod(fd, 0600) < 0)
        return err_errno(err, errno, "%s", path);
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        CLEANUP(freep) char *other = mem_printf("%s%s", path, others[i]);
        if (chmod(other, 0600) < 0 && errno != ENOENT)
            return err_errno(err, errno, "%s", other);
    }
    return 0;
}

int store_open(const char *path, bool create, struct store **out, struct err *err)
{
    struct store *store = NEW(struct store);
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0);
    int rc = 0;

    rc = store_keep_private(path, create, err);
    if (rc == 0 && sqlite3_open_v2(path, &store->db, flags, vfs_name) != SQLITE_OK)
        rc = store_err(store->db, err, path);
    if (rc == 0)
        rc = set_up(store->db, create, err);
    if (rc == 0)
        rc = prepare(store, err);
    if (rc < 0) {
        store_close(store);
        return rc;
    }
    sqlite3_wal_hook(store->db, on_commit, store);
    *out = store;
    return 0;
}

int store_open_payloads(const char *path, struct store **out, struct err *err)
{
    struct store *store = NEW(struct store);
    int rc = 0;

    if (sqlite3_open_v2(path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, vfs_name) !=
        SQLITE_OK)
        rc = store_err(store->db, err, path);
    if (rc == 0)
        rc = set_up(store->db, false, err);
    if (rc == 0)
        rc = payload_open(&store->payloads, store->db, err);
    if (rc < 0) {
        store_close(store);
        return rc;
    }
    *out = store;
    return 0;
}

int store_begin(struct store *store, struct err *err)
{
    return run(store->db, "BEGIN IMMEDIATE", err);
}

int store_commit(struct store *store, struct err *err)
{
    return run(store->db, "COMMIT", err);
}

void store_close(struct store *store)
{
    if (!store)
        return;
    sqlite3_stmt *stmts[] = { store->begin, store->commit,  store->rollback, store->insert,
                              store->scan,  store->measure, store->trim,     store->base };
    for (size_t i = 0; i < ARRAY_LEN(stmts); i++)
        sqlite3_finalize(stmts[i]);
    payload_close(&store->payloads);
    sqlite3_close(store->db);
    free(store);
}

static int step_once(sqlite3_stmt *stmt)
{
    sqlite3_step(stmt);
    return sqlite3_reset(stmt);
}

int store_insert(struct store *store, const struct log_batch *batch, struct err *err)
{
    sqlite3_bind_int64(store->insert, 1, (int64_t)batch->first);
    sqlite3_bind_int64(store->insert, 2, batch->count);
    sqlite3_bind_int64(store->insert, 3, (int64_t)batch->epoch);
    sqlite3_bind_int64(store->insert, 4, batch->crc);
    sqlite3_bind_blob64(store->insert, 5, batch->bytes.ptr, batch->bytes.len, SQLITE_STATIC);
    if (step_once(store->insert) == SQLITE_OK)
        return 0;
    int rc = store_err(store->db, err, "append");
    if (!sqlite3_get_autocommit(store->db))
        step_once(store->rollback);
    return rc;
}

int store_get_base(struct store *store, struct log_point *out, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = 0, rows = 0;

    if (sqlite3_prepare_v2(store->db, "SELECT format, base, base_crc FROM meta", -1, &stmt, NULL) !=
        SQLITE_OK)
        return store_err(store->db, err, "meta");
    while (sqlite3_step(stmt) == SQLITE_ROW) {
        rows++;
        if (sqlite3_column_int64(stmt, 0) != FORMAT)
            rc = err_set(err, ERR_PROTOCOL_VERSION, "log database has format %" PRId64 ", not %d",
                         (int64_t)sqlite3_column_int64(stmt, 0), FORMAT);
        out->index = (uint64_t)sqlite3_column_int64(stmt, 1);
        out->crc = (uint32_t)sqlite3_column_int64(stmt, 2);
    }
    if (sqlite3_reset(stmt) != SQLITE_OK)
        rc = store_err(store->db, err, "meta");
    else if (rc == 0 && rows != 1)
        rc = err_set(err, ERR_CORRUPT, "log database: meta has %d rows", rows);
    sqlite3_finalize(stmt);
    return rc;
}

int store_set_base(struct store *store, struct log_point base, struct err *err)
{
    sqlite3_bind_int64(store->base, 1, (int64_t)base.index);
    sqlite3_bind_int64(store->base, 2, base.crc);
    return step_once(store->base) == SQLITE_OK ? 0 : store_err(store->db, err, "meta");
}

int store_scan(struct store *store, uint64_t first, store_scan_fn fn, void *ctx, struct err *err)
{
    int step, rc = 0;

    sqlite3_bind_int64(store->scan, 1, (int64_t)first);
    while (rc == 0 && (step = sqlite3_step(store->scan)) != SQLITE_DONE) {
        if (step != SQLITE_ROW) {
            rc = store_err(store->db, err, "read");
            break;
        }
        struct log_batch batch = {
            .first = (uint64_t)sqlite3_column_int64(store->scan, 0),
            .count = (uint32_t)sqlite3_column_int64(store->scan, 1),
            .epoch = (uint64_t)sqlite3_column_int64(store->scan, 2),
            .crc = (uint32_t)sqlite3_column_int64(store->scan, 3),
        };
        batch.bytes.ptr = sqlite3_column_blob(store->scan, 4);
        batch.bytes.len = (size_t)sqlite3_column_bytes(store->scan, 4);
        rc = fn(ctx, &batch, err);
    }
    sqlite3_reset(store->scan);
    return rc;
}

int store_measure(struct store *store, uint64_t after, uint64_t goal, size_t bytes,
                  struct log_point *end, struct err *err)
{
    size_t total = 0;
    int step = SQLITE_DONE;

    sqlite3_bind_int64(store->measure, 1, (int64_t)after);
    while (total < bytes && (step = sqlite3_step(store->measure)) == SQLITE_ROW) {
        uint64_t last = (uint64_t)sqlite3_column_int64(store->measure, 0);
        if (last > goal)
            break;
        *end = (struct log_point){ last, (uint32_t)sqlite3_column_int64(store->measure, 1) };
        total += (size_t)sqlite3_column_int64(store->measure, 2);
    }
    int rc = step == SQLITE_ROW || step == SQLITE_DONE ? 0 : store_err(store->db, err, "measure");
    sqlite3_reset(store->measure);
    return rc;
}

static int read_blob(sqlite3 *db, sqlite3_blob *blob, uint32_t offset, uint32_t len,
                     struct str *out, struct err *err)
{
    size_t start = out->len;

    if ((uint64_t)offset + len > (uint64_t)sqlite3_blob_bytes(blob))
        return err_set(err, ERR_CORRUPT, "row is shorter than its payloads");
    str_reserve(out, len);
    if (sqlite3_blob_read(blob, out->data + start, (int)len, (int)offset) != SQLITE_OK)
        return store_err(db, err, "read payload");
    out->len += len;
    if (out->data)
        out->data[out->len] = '\0';
    return 0;
}

static int open_row(struct store *store, uint64_t first, sqlite3_blob **blob, struct err *err)
{
    int code = sqlite3_blob_open(store->db, "main", "log", "batch", (int64_t)first, 0, blob);

    if (code == SQLITE_OK)
        return 0;
    sqlite3_blob_close(TAKE(*blob));
    /* SQLITE_ERROR is "no such row" here; the tables exist since the database was opened. */
    return code == SQLITE_ERROR ? err_set(err, ERR_NOT_FOUND, "row %" PRIu64 " is gone", first)
                                : store_err(store->db, err, "read payload");
}

int store_read(struct store *store, uint64_t first, uint32_t offset, uint32_t len, struct str *out,
               struct err *err)
{
    sqlite3_blob *blob = NULL;
    int rc = open_row(store, first, &blob, err);

    if (rc < 0)
        return rc;
    rc = read_blob(store->db, blob, offset, len, out, err);
    sqlite3_blob_close(blob);
    return rc;
}

static int move_payloads(struct store *store, const struct store_chore *chore, struct err *err)
{
    CLEANUP(str_done) struct str bytes = { 0 };
    sqlite3_blob *blob = NULL;
    uint64_t row = 0;
    int rc = 0;

    for (size_t i = 0; i < chore->move_count && rc == 0; i++) {
        const struct store_move *move = &chore->moves[i];
        if (!blob || move->row != row) {
            sqlite3_blob_close(TAKE(blob));
            row = move->row;
            rc = open_row(store, row, &blob, err);
        }
        str_clear(&bytes);
        if (rc == 0)
            rc = read_blob(store->db, blob, move->offset, move->len, &bytes, err);
        if (rc == 0)
            rc = payload_check(move->digest, (struct span){ str_text(&bytes), bytes.len }, err);
        if (rc == 0 && payload_put(&store->payloads, move->digest,
                                   (struct span){ str_text(&bytes), bytes.len }) != SQLITE_OK)
            rc = store_err(store->db, err, "move payload");
    }
    sqlite3_blob_close(blob);
    return rc;
}

static int chore_steps(struct store *store, const struct store_chore *chore, struct err *err)
{
    int rc = move_payloads(store, chore, err);

    for (size_t i = 0; rc == 0 && i < chore->drop_count; i++) {
        if (payload_del(&store->payloads, chore->drops[i]) != SQLITE_OK)
            rc = store_err(store->db, err, "drop payload");
    }
    if (rc == 0 && chore->trim_upto) {
        sqlite3_bind_int64(store->trim, 1, (int64_t)chore->trim_upto);
        if (step_once(store->trim) != SQLITE_OK)
            rc = store_err(store->db, err, "trim");
        else
            rc = store_set_base(store, chore->base, err);
    }
    return rc;
}

int store_run_chore(struct store *store, const struct store_chore *chore, struct err *err)
{
    if (step_once(store->begin) != SQLITE_OK)
        return store_err(store->db, err, "begin");
    int rc = chore_steps(store, chore, err);
    if (rc == 0 && step_once(store->commit) != SQLITE_OK)
        rc = store_err(store->db, err, "commit");
    if (rc < 0 && !sqlite3_get_autocommit(store->db))
        step_once(store->rollback);
    return rc;
}

int store_want_wal(struct store *store, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    bool wal = false;

    if (sqlite3_prepare_v2(store->db, "PRAGMA journal_mode=WAL", -1, &stmt, NULL) == SQLITE_OK)
        wal = sqlite3_step(stmt) == SQLITE_ROW &&
              str_eq((const char *)sqlite3_column_text(stmt, 0), "wal");
    sqlite3_finalize(stmt);
    return wal ? 0 : err_set(err, ERR_CORRUPT, "log database cannot be set to WAL mode");
}

int store_checkpoint(struct store *store, bool wait, bool *complete, struct err *err)
{
    int frames = 0, copied = 0;
    int mode = wait ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE;

    if (wait)
        store->wal_filled = 0;
    int code = sqlite3_wal_checkpoint_v2(store->db, NULL, mode, &frames, &copied);

    if (code == SQLITE_BUSY && !wait) {
        *complete = false; /* another one is at it */
        return 0;
    }
    if (code != SQLITE_OK)
        return store_err(store->db, err, "checkpoint");
    *complete = frames == copied;
    return 0;
}

void store_fill_ahead(struct store *store)
{
    static const uint8_t
        zeros[64 * 1024]; /* one write of SQLite's file takes no more than 128 KB */
    sqlite3_int64 end =
        WAL_HEAD_BYTES + (store->wal_frames + FILL_COMMIT_FRAMES) * (int64_t)WAL_FRAME_BYTES;
    sqlite3_file *wal = NULL;

    if (store->commit_frames > FILL_COMMIT_FRAMES || end <= store->wal_filled)
        return;
    if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &wal) != SQLITE_OK ||
        !wal || !wal->pMethods || wal->pMethods->xFileSize(wal, &store->wal_filled) != SQLITE_OK ||
        end <= store->wal_filled)
        return;
    for (end = store->wal_filled + FILL_BYTES; store->wal_filled < end;
         store->wal_filled += sizeof(zeros)) {
        if (wal->pMethods->xWrite(wal, zeros, sizeof(zeros), store->wal_filled) != SQLITE_OK)
            return;
    }
}
