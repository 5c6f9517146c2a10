/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload_disk.c - the payloads of a controller whose log is elsewhere
 */
#include "log/payload_disk.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "log/etcd_msg.h"
#include "log/payload.h"
#include "log/snapshot.h"
#include "log/store.h"

enum { LIST_CHUNK = 1024 };

struct connection {
    sqlite3 *db;
    struct payload_table table;
    sqlite3_stmt *add, *read, *trim;
};

struct payload_disk {
    struct connection writer, reader;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, ended;
    struct payload_job *todo, *done; /* under the lock */
    bool stopping;
    bool busy; /* the owner's */
    void (*wake)(void *ctx);
    void *wake_ctx;
};

void payload_job_free(struct payload_job *job)
{
    if (!job)
        return;
    free(job->segments);
    free(job->moves);
    free(job->drops);
    free(job->listed);
    free(job);
}

static int run(sqlite3 *db, const char *sql, struct err *err)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : store_err(db, err, sql);
}

static int prepare(struct connection *conn, struct err *err)
{
    const struct {
        sqlite3_stmt **stmt;
        const char *sql;
    } rows[] = {
        { &conn->add, "INSERT INTO segment(row, value) VALUES(?, ?)" },
        { &conn->read, "SELECT value FROM segment WHERE row = ?" },
        { &conn->trim, "DELETE FROM segment WHERE row <= ?" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (sqlite3_prepare_v3(conn->db, rows[i].sql, -1, SQLITE_PREPARE_PERSISTENT, rows[i].stmt,
                               NULL) != SQLITE_OK)
            return store_err(conn->db, err, "payload database");
    }
    return payload_open(&conn->table, conn->db, err);
}

static int connect_to(struct connection *conn, const char *path, struct err *err)
{
    static const char *const set_up[] = {
        "PRAGMA page_size=16384",
        "PRAGMA journal_mode=WAL",
        "PRAGMA synchronous=FULL",
        "PRAGMA cache_size=-4096",
        "CREATE TABLE IF NOT EXISTS segment(row INTEGER PRIMARY KEY, value BLOB NOT NULL)",
        PAYLOAD_SCHEMA,
    };
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int rc = 0;

    rc = store_keep_private(path, true, err);
    if (rc < 0)
        return rc;
    if (sqlite3_open_v2(path, &conn->db, flags, NULL) != SQLITE_OK)
        return store_err(conn->db, err, path);
    sqlite3_busy_timeout(conn->db, 10000);
    for (size_t i = 0; rc == 0 && i < ARRAY_LEN(set_up); i++)
        rc = run(conn->db, set_up[i], err);
    return rc < 0 ? rc : prepare(conn, err);
}

static void disconnect(struct connection *conn)
{
    sqlite3_finalize(conn->add);
    sqlite3_finalize(conn->read);
    sqlite3_finalize(conn->trim);
    payload_close(&conn->table);
    sqlite3_close(conn->db);
}

static int list_some(struct payload_table *table, struct payload_job *job, struct err *err)
{
    job->listed = mem_new((size_t)LIST_CHUNK * LOG_DIGEST_BYTES);
    int got = payload_list(table, &job->cursor, job->listed, LIST_CHUNK, err);
    job->listed_count = (size_t)MAX(got, 0);
    return MIN(got, 0);
}

static int read_segment(struct connection *conn, uint64_t row, struct str *out, struct err *err)
{
    int rc = 0;

    sqlite3_bind_int64(conn->read, 1, (int64_t)row);
    int step = sqlite3_step(conn->read);
    if (step == SQLITE_ROW)
        str_add_len(out, sqlite3_column_blob(conn->read, 0),
                    (size_t)sqlite3_column_bytes(conn->read, 0));
    else if (step == SQLITE_DONE)
        rc = err_set(err, ERR_NOT_FOUND, "payload segment is gone");
    else
        rc = store_err(conn->db, err, "payload segment");
    sqlite3_reset(conn->read);
    return rc;
}

static int add_segments(struct connection *conn, const struct payload_job *job, struct err *err)
{
    for (size_t i = 0; i < job->segment_count; i++) {
        const struct payload_segment *segment = &job->segments[i];
        sqlite3_bind_int64(conn->add, 1, (int64_t)segment->row);
        sqlite3_bind_blob64(conn->add, 2, segment->value.ptr, segment->value.len, SQLITE_STATIC);
        sqlite3_step(conn->add);
        if (sqlite3_reset(conn->add) != SQLITE_OK)
            return store_err(conn->db, err, "keep payloads");
    }
    return 0;
}

/* Moves are in order of their rows: each segment is expanded once. */
static int move_payloads(struct connection *conn, const struct payload_job *job, struct err *err)
{
    CLEANUP(str_done) struct str value = { 0 };
    CLEANUP(str_done) struct str room = { 0 };
    struct log_batch batch = { 0 };
    uint64_t row = 0;
    int rc = 0;

    for (size_t i = 0; i < job->move_count && rc == 0; i++) {
        const struct payload_place *move = &job->moves[i];
        if (move->row != row) {
            str_clear(&value);
            row = move->row;
            rc = read_segment(conn, row, &value, err);
            if (rc == 0 &&
                !etcd_value_decode((struct span){ value.data, value.len }, &room, &batch))
                rc = err_set(err, ERR_CORRUPT, "payload segment cannot be read");
        }
        struct span bytes = { batch.bytes.ptr + move->offset, move->len };
        if (rc == 0 && (uint64_t)move->offset + move->len > batch.bytes.len)
            rc = err_set(err, ERR_CORRUPT, "payload segment is too short");
        if (rc == 0)
            rc = payload_check(move->digest, bytes, err);
        if (rc == 0 && payload_put(&conn->table, move->digest, bytes) != SQLITE_OK)
            rc = store_err(conn->db, err, "move payload");
    }
    return rc;
}

static int do_steps(struct connection *conn, const struct payload_job *job, struct err *err)
{
    int rc = add_segments(conn, job, err);

    if (rc == 0)
        rc = move_payloads(conn, job, err);
    if (rc == 0 && job->trim_upto) {
        sqlite3_bind_int64(conn->trim, 1, (int64_t)job->trim_upto);
        sqlite3_step(conn->trim);
        if (sqlite3_reset(conn->trim) != SQLITE_OK)
            rc = store_err(conn->db, err, "trim payloads");
    }
    for (size_t i = 0; rc == 0 && i < job->drop_count; i++) {
        if (payload_del(&conn->table, job->drops[i]) != SQLITE_OK)
            rc = store_err(conn->db, err, "drop payload");
    }
    return rc;
}

static void verify(struct payload_job *job)
{
    struct snapshot_reader *reader = NULL;

    job->verify_rc = snapshot_open(job->verify_dir, job->verify.index, &reader, &job->verify_err);
    if (job->verify_rc == 0 && snapshot_point(reader).crc != job->verify.crc)
        job->verify_rc = err_set(&job->verify_err, ERR_CORRUPT, "snapshot belongs to another log");
    snapshot_close(reader);
    if (job->verify_rc == 0)
        snapshot_prune(job->verify_dir, job->verify_keeps);
}

static int do_job(struct connection *conn, struct payload_job *job)
{
    int rc = job->list ? list_some(&conn->table, job, &job->err) : 0;

    if (job->verify_dir)
        verify(job);
    if (rc < 0 || (job->segment_count + job->drop_count == 0 && !job->trim_upto))
        return rc;
    rc = run(conn->db, "BEGIN IMMEDIATE", &job->err);
    if (rc == 0)
        rc = do_steps(conn, job, &job->err);
    if (rc == 0)
        rc = run(conn->db, "COMMIT", &job->err);
    if (rc < 0 && !sqlite3_get_autocommit(conn->db))
        run(conn->db, "ROLLBACK", NULL);
    return rc;
}

static void *disk_main(void *arg)
{
    struct payload_disk *disk = arg;

    pthread_mutex_lock(&disk->lock);
    while (!disk->stopping) {
        struct payload_job *job = TAKE(disk->todo);
        if (!job) {
            pthread_cond_wait(&disk->work, &disk->lock);
            continue;
        }
        pthread_mutex_unlock(&disk->lock);
        job->rc = do_job(&disk->writer, job);
        pthread_mutex_lock(&disk->lock);
        disk->done = job;
        pthread_cond_signal(&disk->ended);
        disk->wake(disk->wake_ctx);
    }
    pthread_mutex_unlock(&disk->lock);
    return NULL;
}

static int start_thread(struct payload_disk *disk, struct err *err)
{
    sigset_t all, before;

    pthread_mutex_init(&disk->lock, NULL);
    pthread_cond_init(&disk->work, NULL);
    pthread_cond_init(&disk->ended, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&disk->thread, NULL, disk_main, disk);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code ? err_errno(err, code, "payload thread") : 0;
}

int payload_disk_open(const char *dir, void (*wake)(void *), void *ctx, struct payload_disk **out,
                      struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/payload.db", dir);
    struct payload_disk *disk = NEW(struct payload_disk);

    disk->wake = wake;
    disk->wake_ctx = ctx;
    int rc = connect_to(&disk->writer, path, err);
    if (rc == 0)
        rc = connect_to(&disk->reader, path, err);
    if (rc == 0)
        rc = start_thread(disk, err);
    if (rc < 0) {
        disconnect(&disk->writer);
        disconnect(&disk->reader);
        free(disk);
        return rc;
    }
    *out = disk;
    return 0;
}

void payload_disk_close(struct payload_disk *disk)
{
    if (!disk)
        return;
    pthread_mutex_lock(&disk->lock);
    disk->stopping = true;
    pthread_cond_signal(&disk->work);
    pthread_mutex_unlock(&disk->lock);
    pthread_join(disk->thread, NULL);
    payload_job_free(disk->todo);
    payload_job_free(disk->done);
    disconnect(&disk->writer);
    disconnect(&disk->reader);
    free(disk);
}

bool payload_disk_busy(const struct payload_disk *disk)
{
    return disk->busy;
}

void payload_disk_run(struct payload_disk *disk, struct payload_job *job)
{
    disk->busy = true;
    pthread_mutex_lock(&disk->lock);
    disk->todo = job;
    pthread_cond_signal(&disk->work);
    pthread_mutex_unlock(&disk->lock);
}

struct payload_job *payload_disk_take(struct payload_disk *disk)
{
    pthread_mutex_lock(&disk->lock);
    struct payload_job *job = TAKE(disk->done);
    pthread_mutex_unlock(&disk->lock);
    if (job)
        disk->busy = false;
    return job;
}

struct payload_job *payload_disk_wait(struct payload_disk *disk)
{
    pthread_mutex_lock(&disk->lock);
    while (disk->busy && !disk->done)
        pthread_cond_wait(&disk->ended, &disk->lock);
    pthread_mutex_unlock(&disk->lock);
    return payload_disk_take(disk);
}

int payload_disk_scan(struct payload_disk *disk, payload_segment_fn fn, void *ctx, struct err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = 0, step = SQLITE_DONE;

    if (sqlite3_prepare_v2(disk->reader.db, "SELECT row, value FROM segment ORDER BY row", -1,
                           &stmt, NULL) != SQLITE_OK)
        return store_err(disk->reader.db, err, "payload segments");
    while (rc == 0 && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct span value = { sqlite3_column_blob(stmt, 1), (size_t)sqlite3_column_bytes(stmt, 1) };
        rc = fn(ctx, (uint64_t)sqlite3_column_int64(stmt, 0), value, err);
    }
    if (rc == 0 && step != SQLITE_DONE)
        rc = store_err(disk->reader.db, err, "payload segments");
    sqlite3_finalize(stmt);
    return rc;
}

int payload_disk_segment(struct payload_disk *disk, uint64_t row, struct str *out, struct err *err)
{
    return read_segment(&disk->reader, row, out, err);
}

int payload_disk_get(struct payload_disk *disk, const uint8_t digest[LOG_DIGEST_BYTES],
                     struct str *out, struct err *err)
{
    return payload_get(&disk->reader.table, digest, out, err);
}
