/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.c - from one controller to several and back, in the same directory
 *
 * (1) The new database gets its name when it is whole; the old one loses its own after that. A crash
 *     between leaves both, and the call can be repeated.
 */
#include "log/convert.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log/etcd_msg.h"
#include "log/payload_disk.h"
#include "log/snapshot.h"
#include "log/store.h"
#include "log/watermark.h"
#include "sys/files.h"

struct convert {
    struct payload_table *to;
    struct log_point at; /* where the rows of log.db end */
    convert_live_fn live;
    void *ctx;
};

static int keep(struct convert *convert, const struct log_payload *payload, struct err *err)
{
    if (!convert->live(convert->ctx, payload->digest))
        return 0;
    int rc = payload_check(payload->digest, payload->bytes, err);
    if (rc == 0 && payload_put(convert->to, payload->digest, payload->bytes) != SQLITE_OK)
        rc = store_err(convert->to->db, err, "convert");
    return rc;
}

static int keep_batch(struct convert *convert, const struct log_batch *batch, struct err *err)
{
    struct log_walk walk;
    struct log_entry entry;
    struct log_payload payload;
    int rc = 0;

    log_walk_init(&walk, batch);
    while (rc == 0 && log_walk_next(&walk, &entry)) {
        while (rc == 0 && log_walk_payload(&walk, &payload))
            rc = keep(convert, &payload, err);
    }
    return rc;
}

static int keep_table(struct convert *convert, struct payload_table *from, struct err *err)
{
    CLEANUP(str_done) struct str bytes = { 0 };
    uint8_t digest[1][LOG_DIGEST_BYTES];
    int64_t cursor = 0;
    int got, rc = 0;

    while (rc == 0 && (got = payload_list(from, &cursor, digest, 1, err)) != 0) {
        if (got < 0)
            return got;
        str_clear(&bytes);
        rc = payload_get(from, digest[0], &bytes, err);
        if (rc == 0)
            rc = keep(convert, &(struct log_payload){ digest[0], { str_text(&bytes), bytes.len } },
                      err);
    }
    return rc;
}

static int keep_row(void *ctx, const struct log_batch *batch, struct err *err)
{
    struct convert *convert = ctx;

    if (batch->first != convert->at.index + 1 || batch->crc != batch_crc(convert->at.crc, batch) ||
        !batch_is_whole(batch))
        return err_set(err, ERR_CORRUPT, "entry %" PRIu64 " is damaged", batch->first);
    convert->at = (struct log_point){ batch->first + batch->count - 1, batch->crc };
    return keep_batch(convert, batch, err);
}

static int keep_segment(void *ctx, uint64_t row, struct span value, struct err *err)
{
    CLEANUP(str_done) struct str room = { 0 };
    struct log_batch batch;

    if (!etcd_value_decode(value, &room, &batch))
        return err_set(err, ERR_CORRUPT, "payload segment %" PRIu64 " cannot be read", row);
    return keep_batch(ctx, &batch, err);
}

static void remove_database(const char *path)
{
    static const char *const sides[] = { "", "-wal", "-shm" };

    for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
        CLEANUP(freep) char *side = mem_printf("%s%s", path, sides[i]);
        unlink(side);
    }
}

/* A database whose write-ahead log is empty: one file to rename. */
static int put_in_place(const char *from, const char *to, const char *dir, struct err *err)
{
    CLEANUP(freep) char *wal = mem_printf("%s-wal", from);
    CLEANUP(freep) char *shm = mem_printf("%s-shm", from);
    int rc = file_rename(from, to, err);

    unlink(wal);
    unlink(shm);
    return rc < 0 ? rc : file_sync_dir(dir, err);
}

static int check_snapshot(const char *dir, struct log_point point, struct err *err)
{
    struct snapshot_reader *reader = NULL;
    int rc = snapshot_open(dir, point.index, &reader, err);

    if (rc == 0 && snapshot_point(reader).crc != point.crc)
        rc = err_set(err, ERR_CORRUPT, "snapshot %" PRIu64 " belongs to another log", point.index);
    snapshot_close(reader);
    return rc;
}

/* ---- one to several ---- */

static void no_wake(void *ctx)
{
    (void)ctx;
}

/* payload.db as payload_disk.c makes it, opened by store.c's means for one long transaction. */
static int make_payload_db(const char *dir, const char *fresh, struct store *from,
                           struct log_point point, struct convert *convert, struct err *err)
{
    CLEANUP(freep) char *made = mem_printf("%s/payload.db", dir);
    struct payload_disk *disk = NULL;
    struct store *to = NULL;
    bool complete;
    int rc;

    /* Its tables are payload_disk's; then it is filled under another name. */
    remove_database(made);
    remove_database(fresh);
    rc = payload_disk_open(dir, no_wake, NULL, &disk, err);
    payload_disk_close(disk);
    if (rc == 0)
        rc = put_in_place(made, fresh, dir, err);
    if (rc == 0)
        rc = store_open_payloads(fresh, &to, err);
    if (rc < 0)
        return rc;
    convert->to = &to->payloads;
    rc = store_begin(to, err);
    if (rc == 0)
        rc = keep_table(convert, &from->payloads, err);
    if (rc == 0)
        rc = store_scan(from, 0, keep_row, convert, err);
    if (rc == 0 && (convert->at.index != point.index || convert->at.crc != point.crc))
        rc = err_set(err, ERR_INVALID, "log.db ends at %" PRIu64 ", not at %" PRIu64,
                     convert->at.index, point.index);
    if (rc == 0)
        rc = store_commit(to, err);
    if (rc == 0)
        rc = store_checkpoint(to, true, &complete, err);
    store_close(to);
    return rc;
}

int convert_to_etcd(const char *dir, struct log_point point, convert_live_fn live, void *ctx,
                    struct err *err)
{
    CLEANUP(freep) char *log_db = mem_printf("%s/log.db", dir);
    CLEANUP(freep) char *before = mem_printf("%s/log.db.before", dir);
    CLEANUP(freep) char *lock = mem_printf("%s/lock", dir);
    CLEANUP(freep) char *fresh = mem_printf("%s/payload.db.new", dir);
    CLEANUP(freep) char *payload_db = mem_printf("%s/payload.db", dir);
    CLEANUP(file_close) int held = file_lock(lock, err);
    struct convert convert = { .live = live, .ctx = ctx };
    struct store *from = NULL;
    bool complete;

    if (held < 0)
        return held;
    int rc = check_snapshot(dir, point, err);
    if (rc == 0)
        rc = store_open(log_db, false, &from, err);
    if (rc == 0)
        rc = store_get_base(from, &convert.at, err);
    if (rc == 0)
        rc = make_payload_db(dir, fresh, from, point, &convert, err);
    if (rc == 0)
        rc = store_checkpoint(from, true, &complete, err);
    store_close(from);
    if (rc == 0)
        rc = put_in_place(fresh, payload_db, dir, err); /* (1) */
    return rc < 0 ? rc : put_in_place(log_db, before, dir, err);
}

/* ---- several to one ---- */

static int fill_log_db(struct store *to, struct payload_disk *from, const char *payload_db,
                       struct log_point point, struct convert *convert, struct err *err)
{
    struct store *table = NULL;
    bool complete;
    int rc = store_open_payloads(payload_db, &table, err);

    convert->to = &to->payloads;
    if (rc == 0)
        rc = store_begin(to, err);
    if (rc == 0)
        rc = store_set_base(to, point, err);
    if (rc == 0)
        rc = keep_table(convert, &table->payloads, err);
    if (rc == 0)
        rc = payload_disk_scan(from, keep_segment, convert, err);
    if (rc == 0)
        rc = store_commit(to, err);
    if (rc == 0)
        rc = store_checkpoint(to, true, &complete, err);
    store_close(table);
    return rc;
}

static int make_watermark(const char *dir, struct log_point point, struct err *err)
{
    int fd = watermark_open(dir, true, err), rc = 0;

    if (fd < 0)
        return fd;
    for (uint64_t turn = 0; rc == 0 && turn < 2; turn++)
        rc = watermark_write(fd, point, turn, err);
    if (rc == 0)
        rc = file_sync(fd, err);
    close(fd);
    return rc;
}

int convert_to_sqlite(const char *dir, struct log_point point, convert_live_fn live, void *ctx,
                      struct err *err)
{
    CLEANUP(freep) char *log_db = mem_printf("%s/log.db", dir);
    CLEANUP(freep) char *fresh = mem_printf("%s/log.db.new", dir);
    CLEANUP(freep) char *lock = mem_printf("%s/lock", dir);
    CLEANUP(freep) char *payload_db = mem_printf("%s/payload.db", dir);
    CLEANUP(freep) char *before = mem_printf("%s/payload.db.before", dir);
    CLEANUP(file_close) int held = file_lock(lock, err);
    struct convert convert = { .live = live, .ctx = ctx };
    struct payload_disk *from = NULL;
    struct store *to = NULL;

    if (held < 0)
        return held;
    int rc = check_snapshot(dir, point, err);
    if (rc == 0 && access(payload_db, F_OK) < 0)
        rc = err_errno(err, errno, "%s", payload_db);
    remove_database(fresh);
    if (rc == 0)
        rc = payload_disk_open(dir, no_wake, NULL, &from, err);
    if (rc == 0)
        rc = store_open(fresh, true, &to, err);
    if (rc == 0)
        rc = fill_log_db(to, from, payload_db, point, &convert, err);
    store_close(to);
    payload_disk_close(from);
    if (rc == 0)
        rc = make_watermark(dir, point, err);
    if (rc == 0)
        rc = put_in_place(fresh, log_db, dir, err); /* (1) */
    return rc < 0 ? rc : put_in_place(payload_db, before, dir, err);
}
