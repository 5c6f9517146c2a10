/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_recover.c - from what is on disk to the state as it was acknowledged, or a refusal
 *
 * Rows are read in order and each must continue the checksum of the one before; the newest whole
 * snapshot must lie on that chain, and so must the watermark.
 *
 * (1) Everything that was acknowledged is delivered, or the start is refused with the indexes
 *     that are missing or damaged named. There is no third way unless accept_loss names them too.
 * (2) A refusal changes nothing on disk.
 * (3) What SQLite recovered from its write-ahead log may be only in the kernel's memory, if the
 *     last run ended because a sync failed. It is written to the database and synced anew before
 *     anything is built upon it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log/snapshot.h"
#include "log/sqlite_priv.h"
#include "log/watermark.h"
#include "sys/files.h"
#include "sys/log.h"

struct recovery {
    struct sqlite_log *self;
    struct snapshot_reader *snapshot; /* the one to begin with, or NULL */
    struct log_point at;              /* the chain is good up to here */
    struct log_point mark;
    bool mark_known, restored;
    bool dry;     /* look, and tell the owner nothing */
    bool damaged; /* the error is about acknowledged data, not about the machine */
};

static int damage(struct recovery *rec, struct err *err, const char *what)
{
    rec->damaged = true;
    return err_set(err, ERR_CORRUPT, "%s", what);
}

static int check_row(struct recovery *rec, const struct log_batch *batch, struct err *err)
{
    char text[128];

    if (batch->first != rec->at.index + 1) {
        snprintf(text, sizeof(text), "entry %" PRIu64 " is followed by %" PRIu64, rec->at.index,
                 batch->first);
        return damage(rec, err, text);
    }
    if (batch->crc != batch_crc(rec->at.crc, batch) || !batch_is_whole(batch)) {
        snprintf(text, sizeof(text), "checksum of entries %" PRIu64 " to %" PRIu64 " is wrong",
                 batch->first, batch->first + batch->count - 1);
        return damage(rec, err, text);
    }
    return 0;
}

/* The chain stands at rec->at: does a snapshot or the watermark say something about it? */
static int check_point(struct recovery *rec, struct err *err)
{
    struct log *log = &rec->self->log;

    if (rec->mark_known && rec->mark.index == rec->at.index && rec->mark.crc != rec->at.crc)
        return damage(rec, err, "watermark and log do not belong together");
    if (!rec->snapshot || rec->restored || snapshot_point(rec->snapshot).index != rec->at.index)
        return 0;
    if (snapshot_point(rec->snapshot).crc != rec->at.crc)
        return damage(rec, err, "snapshot and log do not belong together");
    rec->restored = true;
    if (rec->dry)
        return 0;
    int rc = log->owner->restore(log->ctx, rec->snapshot, err);
    if (rc == 0)
        log->point = log->snapshot = rec->at;
    return rc;
}

static int recover_row(void *ctx, const struct log_batch *batch, struct err *err)
{
    struct recovery *rec = ctx;
    int rc = check_row(rec, batch, err);

    if (rc < 0)
        return rc;
    payload_index_add(&rec->self->index, batch);
    if (!rec->dry && (!rec->snapshot || rec->restored))
        rc = log_deliver(&rec->self->log, batch, err);
    if (rc < 0)
        return rc;
    rec->at = (struct log_point){ batch->first + batch->count - 1, batch->crc };
    return check_point(rec, err);
}

static int check_end(struct recovery *rec, struct err *err)
{
    char text[128];

    if (!rec->mark_known)
        return damage(rec, err, "the watermark is missing or damaged");
    if (rec->snapshot && !rec->restored) {
        snprintf(text, sizeof(text), "the log ends at %" PRIu64 ", before its snapshot %" PRIu64,
                 rec->at.index, snapshot_point(rec->snapshot).index);
        return damage(rec, err, text);
    }
    if (rec->at.index < rec->mark.index) {
        snprintf(text, sizeof(text),
                 "the log ends at %" PRIu64 ", but %" PRIu64 " was acknowledged", rec->at.index,
                 rec->mark.index);
        return damage(rec, err, text);
    }
    return 0;
}

static void pick_snapshot(struct recovery *rec, uint64_t base)
{
    struct log *log = &rec->self->log;
    uint64_t indexes[SNAPSHOT_MOST];
    size_t count = 0;
    struct err err;

    snapshot_remove_unfinished(log->dir);
    if (snapshot_list(log->dir, indexes, SNAPSHOT_MOST, &count, &err) < 0)
        count = 0;
    for (size_t i = 0; i < count && indexes[i] >= base; i++) {
        if (!rec->snapshot && snapshot_open(log->dir, indexes[i], &rec->snapshot, &err) < 0)
            log_error("log.snapshot", "index=%" PRIu64 " damaged, trying an older one: %s",
                      indexes[i], err.text);
        else if (rec->snapshot && indexes[i] < snapshot_point(rec->snapshot).index) {
            rec->self->previous.index = indexes[i];
            break;
        }
    }
}

static int scan_store(struct recovery *rec, struct store *store, struct err *err)
{
    int rc = store_get_base(store, &rec->self->base, err);

    if (rc < 0) {
        rec->damaged = rc == -(int)ERR_CORRUPT;
        return rc;
    }
    rec->at = rec->self->base;
    pick_snapshot(rec, rec->at.index);
    if (!rec->snapshot && rec->at.index > 0)
        return damage(rec, err, "no whole snapshot is left");
    rc = check_point(rec, err);
    if (rc == 0)
        rc = store_scan(store, rec->at.index + 1, recover_row, rec, err);
    if (rc == -(int)ERR_CORRUPT)
        rec->damaged = true;
    return rc < 0 ? rc : check_end(rec, err);
}

static int refuse(struct recovery *rec, struct err *err)
{
    char what[ERR_TEXT_BYTES], upto[48] = "";
    uint64_t from = rec->at.index + 1;

    snprintf(what, sizeof(what), "%.200s", err->text);
    if (rec->mark_known && rec->mark.index >= from)
        snprintf(upto, sizeof(upto), " to %" PRIu64, rec->mark.index);
    else
        snprintf(upto, sizeof(upto), " on");
    return err_set(err, ERR_CORRUPT,
                   "log in %.120s: %s. Entries from %" PRIu64 "%s cannot be trusted. Bring the "
                   "directory back from a copy, or go on without them: --accept-loss %" PRIu64,
                   rec->self->log.dir, what, from, upto, from);
}

/* The damage begins no earlier than the operator was told. */
static bool loss_is_accepted(const struct recovery *rec)
{
    uint64_t accepted = rec->self->log.accept_loss;

    return rec->damaged && accepted && rec->at.index + 1 >= accepted;
}

static void forget_scan(struct recovery *rec)
{
    snapshot_close(TAKE(rec->snapshot));
    payload_index_done(&rec->self->index);
}

static int read_mark(struct recovery *rec, struct err *err)
{
    int fd = watermark_open(rec->self->log.dir, false, err);

    if (fd >= 0) {
        rec->mark_known = watermark_read(fd, &rec->mark, NULL) == 0;
        close(fd);
    }
    return fd >= 0 || fd == -(int)ERR_NOT_FOUND ? 0 : fd;
}

static char *db_path(const struct sqlite_log *self)
{
    return mem_printf("%s/log.db", self->log.dir);
}

/* (2) Nothing is written before the scan is through. */
static int scan_all(struct recovery *rec, struct err *err)
{
    CLEANUP(freep) char *path = db_path(rec->self);
    struct store *store = NULL;
    int rc = read_mark(rec, err);

    if (rc == 0) {
        rc = store_open(path, false, &store, err);
        rec->damaged = rc == -(int)ERR_CORRUPT;
    }
    if (rc == 0)
        rc = scan_store(rec, store, err);
    if (rc < 0)
        store_close(store);
    else
        rec->self->writer.store = store;
    return rc;
}

/* Where a damaged log can begin again: a whole snapshot, or nothing at all. */
static int accept_loss(struct recovery *rec, struct err *err)
{
    struct sqlite_log *self = rec->self;
    struct log_point anchor = { 0, 0 };
    uint64_t acknowledged = rec->mark_known ? rec->mark.index : rec->at.index, last = 0;

    log_error("log.loss", "accepted from=%" PRIu64 ": %s", self->log.accept_loss, err->text);
    forget_scan(rec);
    pick_snapshot(rec, 0);
    if (rec->snapshot)
        anchor = snapshot_point(rec->snapshot);
    forget_scan(rec);
    int rc = sqlite_rebuild(self, anchor, &last, err);
    if (rc < 0)
        return rc;
    self->log.lost = acknowledged > last ? acknowledged - last : 0;
    return 0;
}

/* The owner hears nothing until it is clear what there is to hear. */
static int prepare_for_loss(struct recovery *rec, struct err *err)
{
    struct sqlite_log *self = rec->self;

    rec->dry = true;
    int rc = scan_all(rec, err);
    store_close(TAKE(self->writer.store));
    if (rc < 0 && loss_is_accepted(rec))
        rc = accept_loss(rec, err);
    else if (rc < 0 && rec->damaged)
        rc = refuse(rec, err);
    forget_scan(rec);
    *rec = (struct recovery){ .self = self };
    return rc;
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static int refuse_missing(struct sqlite_log *self, struct err *err)
{
    return err_set(err, ERR_CORRUPT,
                   "log in %s: log.db is missing, but its watermark or snapshots are there. Bring "
                   "the directory back from a copy, or start with an empty one",
                   self->log.dir);
}

/* Nothing there yet. The database gets its name when it is whole, after the watermark has its. */
static int create_all(struct sqlite_log *self, const char *path, struct err *err)
{
    CLEANUP(freep) char *fresh = mem_printf("%s.new", path);
    struct recovery rec = { .self = self };
    struct store *store = NULL;
    uint64_t any;
    size_t count = 0;
    bool complete;
    int rc = read_mark(&rec, err);

    if (rc == 0)
        rc = snapshot_list(self->log.dir, &any, 1, &count, err);
    if (rc == 0 && ((rec.mark_known && rec.mark.index > 0) || count > 0))
        rc = refuse_missing(self, err);
    if (rc < 0)
        return rc;
    int fd = watermark_open(self->log.dir, true, err);
    if (fd < 0)
        return fd;
    close(fd);
    unlink(fresh);
    rc = store_open(fresh, true, &store, err);
    if (rc == 0)
        rc = store_checkpoint(store, true, &complete, err);
    store_close(store);
    for (int i = 0; i < 2; i++) {
        CLEANUP(freep) char *side = mem_printf("%s%s", fresh, i ? "-wal" : "-shm");
        unlink(side);
    }
    if (rc == 0)
        rc = file_rename(fresh, path, err);
    return rc < 0 ? rc : file_sync_dir(self->log.dir, err);
}

/* After the scan: (3), and the connections of the other threads. */
static int begin_service(struct sqlite_log *self, const struct recovery *rec, struct err *err)
{
    CLEANUP(freep) char *path = db_path(self);
    struct store *third = NULL;
    bool complete;
    int rc = store_want_wal(self->writer.store, err);

    if (rc == 0)
        rc = store_checkpoint(self->writer.store, true, &complete, err);
    if (rc == 0)
        rc = store_open(path, false, &self->reader, err);
    if (rc == 0)
        rc = store_open(path, false, &third, err);
    if (rc == 0) {
        rc = background_start(self->log.dir, third, self->writer.wake, self->writer.wake_ctx,
                              &self->background, err);
        if (rc < 0)
            store_close(third);
    }
    if (rc < 0)
        return rc;
    self->writer.mark_fd = watermark_open(self->log.dir, false, err);
    if (self->writer.mark_fd < 0)
        return self->writer.mark_fd;
    self->writer.tail = rec->at;
    return watermark_write(self->writer.mark_fd, rec->at, self->writer.turn++, err);
}

static void drop_dead_payloads(struct sqlite_log *self)
{
    uint64_t upto;
    size_t count = payload_index_upto(&self->index, UINT64_MAX, SIZE_MAX, &upto);

    for (size_t i = 0; i < count; i++) {
        const struct payload_place *place = payload_index_nth(&self->index, i);
        if (!place->dead && !self->log.owner->payload_live(self->log.ctx, place->digest))
            payload_index_drop(&self->index, place->digest);
    }
}

int sqlite_recover(struct sqlite_log *self, struct err *err)
{
    CLEANUP(freep) char *lock = mem_printf("%s/lock", self->log.dir);
    CLEANUP(freep) char *path = db_path(self);
    struct recovery rec = { .self = self };
    int rc = 0;

    self->lock_fd = file_lock(lock, err);
    if (self->lock_fd < 0)
        return self->lock_fd;
    if (!exists(path))
        rc = create_all(self, path, err);
    if (rc == 0 && self->log.accept_loss)
        rc = prepare_for_loss(&rec, err);
    if (rc == 0) {
        rc = scan_all(&rec, err);
        if (rc < 0 && rec.damaged)
            rc = refuse(&rec, err);
    }
    snapshot_close(TAKE(rec.snapshot));
    if (rc == 0)
        rc = begin_service(self, &rec, err);
    if (rc == 0) {
        drop_dead_payloads(self);
        snapshot_prune(self->log.dir, self->previous.index); /* a clean end writes one each time */
        self->log.commits = self->log.commands = 0;
        log_info("log.open", "dir=%s first=%" PRIu64 " last=%" PRIu64 " snapshot=%" PRIu64,
                 self->log.dir, self->base.index + 1, rec.at.index, self->log.snapshot.index);
    }
    return rc;
}
