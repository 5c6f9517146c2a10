/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd_keep.c - what this controller holds on its own disk: payloads and snapshots
 *
 * Entries are in etcd, so a payload need not be on our disk at once: batches that brought some stay
 * in memory, compressed, until there are HELD_BYTES of them, and are then written together.
 *
 * (1) A snapshot is announced (etcd_trim.c) when it has been read back and every payload of entries
 *     up to it is on disk.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/etcd_priv.h"
#include "log/memory_priv.h"
#include "log/payload.h"
#include "log/snapshot.h"
#include "sys/files.h"
#include "sys/log.h"

enum {
    HELD_BYTES = 8 * 1024 * 1024,
    HELD_BYTES_MOST = 64 * 1024 * 1024,
    DROPS = 1024,
    MOVES = 4096, /* payloads of segments that go, in one job */
    DISK_RETRY_MS = 2000,
};

static void wake_owner(void *arg)
{
    struct etcd_log *self = arg;

    self->log.owner->wake(self->log.ctx);
}

int etcd_keep_start(struct etcd_log *self, struct err *err)
{
    CLEANUP(freep) char *lock = mem_printf("%s/lock", self->log.dir);

    if (self->memory)
        return 0;
    self->lock_fd = file_lock(lock, err);
    if (self->lock_fd < 0)
        return self->lock_fd;
    return payload_disk_open(self->log.dir, wake_owner, self, &self->disk, err);
}

static int load_segment(void *ctx, uint64_t row, struct span value, struct err *err)
{
    struct etcd_log *self = ctx;
    struct log_batch batch;

    if (!etcd_value_decode(value, &self->room, &batch))
        return err_set(err, ERR_CORRUPT, "%s/payload.db: segment %" PRIu64 " cannot be read",
                       self->log.dir, row);
    batch.first = row;
    payload_index_add(&self->index, &batch);
    self->row = self->disk_row = self->old_row = row;
    return 0;
}

int etcd_keep_load(struct etcd_log *self, struct err *err)
{
    if (self->memory)
        return 0;
    int rc = payload_disk_scan(self->disk, load_segment, self, err);
    if (rc < 0)
        return rc;
    self->listing = true; /* whatever nobody refers to any more goes */
    wake_owner(self);
    return 0;
}

static void free_held(struct etcd_log *self, uint64_t upto)
{
    size_t count = 0;

    while (count < self->held.len && self->held.items[count].row <= upto) {
        self->held_bytes -= self->held.items[count].value.len;
        str_done(&self->held.items[count++].value);
    }
    if (count == 0)
        return;
    self->held.len -= count;
    memmove(self->held.items, self->held.items + count, self->held.len * sizeof(struct etcd_held));
}

static void keep_in_memory(struct etcd_log *self, const struct log_batch *batch)
{
    struct log_walk walk;
    struct log_entry entry;
    struct log_payload payload;

    for (log_walk_init(&walk, batch); log_walk_next(&walk, &entry);) {
        while (log_walk_payload(&walk, &payload)) {
            if (memory_disk_get(self->memory, payload.digest, NULL, NULL) < 0)
                memory_disk_put(self->memory, &payload);
        }
    }
}

void etcd_keep_batch(struct etcd_log *self, const struct log_batch *batch, struct span value)
{
    if (self->memory) {
        keep_in_memory(self, batch);
        return;
    }
    struct etcd_held held = { .row = ++self->row };
    struct log_batch numbered = *batch;
    numbered.first = held.row;
    payload_index_add(&self->index, &numbered);
    str_add_len(&held.value, value.ptr, value.len);
    vec_push(&self->held, held);
    self->held_bytes += value.len;
    if (self->held_bytes >= HELD_BYTES && !self->job)
        wake_owner(self); /* the next poll writes */
}

bool etcd_keep_is_full(const struct etcd_log *self)
{
    return self->held_bytes > HELD_BYTES_MOST;
}

static void collect_segments(struct etcd_log *self, struct payload_job *job)
{
    job->segments = NEW_ARRAY(struct payload_segment, self->held.len + 1);
    vec_each (struct etcd_held, held, &self->held)
        job->segments[job->segment_count++] =
            (struct payload_segment){ held->row, { held->value.data, held->value.len } };
    self->job_row = self->row;
}

/* With every snapshot: segments from before the last one go, some at a time; what lives in them moves. */
static void collect_moves(struct etcd_log *self, struct payload_job *job)
{
    if (!self->trim_row)
        return;
    size_t count = payload_index_upto(&self->index, self->trim_row, MOVES, &job->trim_upto);
    if (job->trim_upto == self->trim_row)
        self->trim_row = 0;
    job->moves = NEW_ARRAY(struct payload_place, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct payload_place *place = payload_index_nth(&self->index, i);
        if (!place->dead && self->log.owner->payload_live(self->log.ctx, place->digest))
            job->moves[job->move_count++] = *place;
    }
}

static void collect_drops(struct etcd_log *self, struct payload_job *job)
{
    size_t count = MIN(self->drops.len, (size_t)MOVES);

    job->drops = mem_new((count + 1) * LOG_DIGEST_BYTES);
    for (; count; count--) {
        const uint8_t *digest = self->drops.items[--self->drops.len].bytes;
        if (!self->log.owner->payload_live(self->log.ctx, digest))
            memcpy(job->drops[job->drop_count++], digest, LOG_DIGEST_BYTES);
    }
}

/* When there is nothing else to do. */
static void list_next(struct etcd_log *self)
{
    self->job = NEW(struct payload_job);
    self->job->list = true;
    self->job->cursor = self->list_cursor;
    payload_disk_run(self->disk, self->job);
}

static void write_next(struct etcd_log *self)
{
    if (self->job || self->disk_blocked || etcd_over(self))
        return;
    if (!self->flush && self->held_bytes < HELD_BYTES && self->drops.len < DROPS &&
        !self->trim_row) {
        if (self->listing)
            list_next(self);
        return;
    }
    self->job = NEW(struct payload_job);
    collect_segments(self, self->job);
    collect_moves(self, self->job);
    collect_drops(self, self->job);
    if (self->taken.index) {
        self->job->verify_dir = self->log.dir;
        self->job->verify = self->taken;
        self->job->verify_keeps = self->log.snapshot.index;
    }
    self->flush = false;
    payload_disk_run(self->disk, self->job);
}

static void on_disk_time(void *arg)
{
    struct etcd_log *self = arg;

    self->disk_timer = NULL;
    self->disk_blocked = false;
    write_next(self);
}

static void snapshot_is_good(struct etcd_log *self, struct log_point point)
{
    log_info("log.snapshot", "index=%" PRIu64, point.index);
    self->previous = self->log.snapshot;
    self->log.snapshot = point;
    self->log.bytes_since = 0;
    self->old_row = self->disk_row;
    self->taken = (struct log_point){ 0, 0 };
    etcd_trim_announce(self);
}

static void job_failed(struct etcd_log *self, const struct payload_job *job)
{
    bool waits = job->rc == -(int)ERR_DISK_FULL || job->rc == -(int)ERR_NO_MEMORY;

    if (!waits) {
        log_fail(&self->log, &job->err);
        return;
    }
    log_error("log.payloads", "put off: %s", job->err.text);
    self->disk_blocked = true;
    self->flush |= self->taken.index != 0;
    if (!self->disk_timer)
        self->disk_timer = self->io->timer(self->io_ctx, DISK_RETRY_MS, on_disk_time, self);
    for (size_t i = 0; i < job->drop_count; i++) {
        struct digest_note note;
        memcpy(note.bytes, job->drops[i], LOG_DIGEST_BYTES);
        vec_push(&self->drops, note);
    }
}

static void job_done(struct etcd_log *self, struct payload_job *job)
{
    self->job = NULL;
    for (size_t i = 0; i < job->listed_count; i++) {
        if (!self->log.owner->payload_live(self->log.ctx, job->listed[i]))
            etcd_payload_drop(&self->log, job->listed[i]);
    }
    if (job->list) {
        self->listing = job->rc == 0 && job->listed_count > 0;
        self->list_cursor = job->cursor;
    }
    if (job->rc < 0) {
        self->trim_row = MAX(self->trim_row, job->trim_upto);
        job_failed(self, job);
    } else if (!job->list) {
        self->disk_row = self->job_row;
        free_held(self, self->job_row);
        if (job->trim_upto)
            payload_index_forget(&self->index, job->trim_upto);
    }
    if (job->verify_dir && job->verify_rc < 0) {
        log_error("log.snapshot", "index=%" PRIu64 " kept nothing: %s", job->verify.index,
                  job->verify_err.text);
        self->taken = (struct log_point){ 0, 0 };
    } else if (job->verify_dir && job->rc == 0) {
        snapshot_is_good(self, job->verify); /* (1) */
    }
    payload_job_free(job);
}

void etcd_keep_poll(struct etcd_log *self)
{
    struct payload_job *job = self->disk ? payload_disk_take(self->disk) : NULL;

    if (job)
        job_done(self, job);
    if (self->disk)
        write_next(self);
}

void etcd_keep_rest(struct etcd_log *self)
{
    struct payload_job *job = self->disk ? payload_disk_wait(self->disk) : NULL;

    if (job)
        job_done(self, job);
    if (!self->disk || !self->held.len || self->log.failed)
        return;
    job = NEW(struct payload_job);
    collect_segments(self, job);
    payload_disk_run(self->disk, job);
    job = payload_disk_wait(self->disk);
    self->log.unkept = job->rc < 0;
    if (job->rc < 0)
        log_warn("log.payloads", "not kept: %s", job->err.text);
    payload_job_free(job);
}

void etcd_keep_stop(struct etcd_log *self)
{
    etcd_untimer(self, &self->disk_timer);
    payload_disk_close(TAKE(self->disk)); /* frees the job, which refers to what is held */
    self->job = NULL;
    free_held(self, UINT64_MAX);
}

/* ---- the interface ---- */

int etcd_snapshot_taken(struct log *log, struct log_point point, struct err *err)
{
    struct etcd_log *self = etcd_self(log);

    if (point.index > log->point.index || point.index <= log->snapshot.index)
        return err_set(err, ERR_RANGE,
                       "snapshot at %" PRIu64 ", the log is at %" PRIu64 " and has one at %" PRIu64,
                       point.index, log->point.index, log->snapshot.index);
    self->taken = point;
    self->trim_row = MAX(self->trim_row, MIN(self->old_row, self->disk_row));
    if (self->memory) {
        snapshot_is_good(self, point);
        return 0;
    }
    self->flush = true;
    write_next(self);
    return 0;
}

static const struct etcd_held *find_held(const struct etcd_log *self, uint64_t row)
{
    uint64_t first = self->held.len ? self->held.items[0].row : 0;

    return first && row >= first && row - first < self->held.len ? &self->held.items[row - first]
                                                                 : NULL;
}

/* Makes self->expanded the bytes of the batch. */
static int expand_row(struct etcd_log *self, uint64_t row, struct err *err)
{
    const struct etcd_held *held = find_held(self, row);
    struct log_batch batch;

    if (self->expanded_row == row)
        return 0;
    self->expanded_row = 0;
    str_clear(&self->segment);
    if (held)
        str_add_len(&self->segment, held->value.data, held->value.len);
    else if (!self->disk)
        return err_code(err, ERR_SHUTTING_DOWN);
    else {
        int rc = payload_disk_segment(self->disk, row, &self->segment, err);
        if (rc < 0)
            return rc;
    }
    struct span value = { self->segment.data, self->segment.len };
    str_clear(&self->expanded);
    if (!etcd_value_decode(value, &self->expanded, &batch))
        return err_set(err, ERR_CORRUPT, "payload segment cannot be read");
    if (self->expanded.len == 0) /* it was not compressed */
        str_add_len(&self->expanded, batch.bytes.ptr, batch.bytes.len);
    self->expanded_row = row;
    return 0;
}

static int read_place(struct etcd_log *self, const struct payload_place *place, struct str *out,
                      struct err *err)
{
    int rc = expand_row(self, place->row, err);

    if (rc < 0)
        return rc;
    if ((uint64_t)place->offset + place->len > self->expanded.len)
        return err_set(err, ERR_CORRUPT, "payload segment is too short");
    struct span bytes = { self->expanded.data + place->offset, place->len };
    rc = payload_check(place->digest, bytes, err);
    if (rc == 0)
        str_add_len(out, bytes.ptr, bytes.len);
    return rc;
}

int etcd_payload_get(struct log *log, const uint8_t *digest, struct str *out, struct err *err)
{
    struct etcd_log *self = etcd_self(log);
    const struct payload_place *place = payload_index_get(&self->index, digest);

    if (self->memory)
        return memory_disk_get(self->memory, digest, out, err);
    if (place) {
        int rc = read_place(self, place, out, err);
        if (rc != -(int)ERR_NOT_FOUND)
            return rc;
        /* Trimmed a moment ago: it has moved to the table. */
    }
    if (!self->disk)
        return err_code(err, ERR_SHUTTING_DOWN);
    return payload_disk_get(self->disk, digest, out, err);
}

bool etcd_payload_has(struct log *log, const uint8_t *digest)
{
    struct etcd_log *self = etcd_self(log);

    if (self->memory)
        return memory_disk_get(self->memory, digest, NULL, NULL) == 0;
    return payload_index_get(&self->index, digest) ||
           (self->disk && payload_disk_get(self->disk, digest, NULL, NULL) == 0);
}

void etcd_payload_drop(struct log *log, const uint8_t *digest)
{
    struct etcd_log *self = etcd_self(log);
    struct digest_note note;

    if (self->memory) {
        memory_disk_drop(self->memory, digest);
        return;
    }
    /* Its segment goes in time, and it with the segment; unless it is moving to the table now. */
    if (payload_index_drop(&self->index, digest) && !(self->job && self->job->move_count))
        return;
    memcpy(note.bytes, digest, LOG_DIGEST_BYTES);
    vec_push(&self->drops, note);
}

int etcd_payload_put(struct log *log, const uint8_t *digest, struct span bytes, struct err *err)
{
    struct etcd_log *self = etcd_self(log);
    CLEANUP(str_done) struct str value = { 0 };
    struct log_payload payload = { digest, bytes };
    struct batch batch = { 0 };
    int rc = payload_check(digest, bytes, err);

    if (rc < 0)
        return rc;
    if (etcd_keep_is_full(self))
        return err_set(err, ERR_DISK_FULL, "payloads cannot be kept in %s", log->dir);
    if (self->memory) {
        memory_disk_put(self->memory, &payload);
        return 0;
    }
    batch_add(&batch, (struct span){ "", 0 }, &payload, 1);
    struct log_batch view = batch_view(&batch, false);
    etcd_value_write(&value, &view, NULL);
    etcd_keep_batch(self, &view, (struct span){ value.data, value.len });
    str_done(&batch.bytes);
    return 0;
}
