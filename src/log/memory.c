/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - a log without a disk, for simulations and tests
 *
 * Same rules as sqlite.c: a batch gets its indexes when it is written, one is in flight while the
 * next fills, a full disk refuses it and the next one may go through.
 */
#include "log/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "log/batch.h"
#include "log/log_priv.h"
#include "log/memory_priv.h"
#include "log/snapshot.h"

struct payload_copy {
    uint8_t digest[LOG_DIGEST_BYTES];
    struct str bytes;
};

struct memory_disk {
    VEC(struct batch *) rows;
    struct log_point base, tail, snapshot, previous;
    struct str snapshot_bytes;
    VEC(struct payload_copy *) table; /* payloads of trimmed rows */
};

struct memory_log {
    struct log log;
    struct memory_disk *disk;
    struct batch *filling, *flying, *settled;
    uint32_t broken; /* commands of the batch that met an error: refused when the log is stopped */
    bool automatic;
};

static struct memory_log *self_of(const struct log *log)
{
    return (struct memory_log *)(uintptr_t)log; /* log is its first member */
}

struct memory_disk *memory_disk_new(void)
{
    return NEW(struct memory_disk);
}

static void payload_copy_free(struct payload_copy *copy)
{
    str_done(&copy->bytes);
    free(copy);
}

void memory_disk_free(struct memory_disk *disk)
{
    if (!disk)
        return;
    for (size_t i = 0; i < disk->rows.len; i++)
        batch_free(disk->rows.items[i]);
    for (size_t i = 0; i < disk->table.len; i++)
        payload_copy_free(disk->table.items[i]);
    vec_done(&disk->rows);
    vec_done(&disk->table);
    str_done(&disk->snapshot_bytes);
    free(disk);
}

void memory_disk_snapshot(struct memory_disk *disk, struct log_point point, struct span bytes)
{
    disk->previous = disk->snapshot;
    disk->snapshot = point;
    str_clear(&disk->snapshot_bytes);
    str_add_len(&disk->snapshot_bytes, bytes.ptr, bytes.len);
}

int memory_disk_open_snapshot(struct memory_disk *disk, struct snapshot_reader **out,
                              struct err *err)
{
    if (disk->snapshot.index == 0)
        return err_set(err, ERR_NOT_FOUND, "no snapshot");
    return snapshot_open_memory(
        (struct span){ disk->snapshot_bytes.data, disk->snapshot_bytes.len }, out, err);
}

void memory_disk_forget(struct memory_disk *disk, size_t count)
{
    for (; count > 0 && disk->rows.len > 0; count--) {
        struct batch *row = disk->rows.items[--disk->rows.len];
        const struct batch *last = disk->rows.len ? disk->rows.items[disk->rows.len - 1] : NULL;
        disk->tail =
            last ? (struct log_point){ last->first + last->count - 1, last->crc } : disk->base;
        batch_free(row);
    }
}

static int restore(struct memory_log *self, struct err *err)
{
    struct memory_disk *disk = self->disk;
    struct snapshot_reader *reader = NULL;
    int rc = memory_disk_open_snapshot(disk, &reader, err);

    if (rc == 0)
        rc = self->log.owner->restore(self->log.ctx, reader, err);
    snapshot_close(reader);
    if (rc == 0)
        self->log.point = self->log.snapshot = disk->snapshot;
    return rc;
}

static int memory_start(struct log *log, struct err *err)
{
    struct memory_log *self = self_of(log);
    struct memory_disk *disk = self->disk;
    int rc = disk->snapshot.index ? restore(self, err) : 0;

    for (size_t i = 0; i < disk->rows.len && rc == 0; i++) {
        struct log_batch view = batch_view(disk->rows.items[i], false);
        if (view.first > log->point.index)
            rc = log_deliver(log, &view, err);
    }
    if (rc < 0)
        return rc;
    log->started = true;
    log_set_role(log, LOG_LEADS, log->name);
    return 0;
}

static int memory_append(struct log *log, struct span command, const struct log_payload *payloads,
                         uint32_t payload_count, struct err *err)
{
    struct memory_log *self = self_of(log);
    size_t size = batch_record_bytes(command, payloads, payload_count);

    if (size == 0)
        return err_set(err, ERR_TOO_LARGE, "command of %zu bytes", command.len);
    if (self->filling && self->filling->bytes.len + size > LOG_QUEUE_BYTES)
        return err_code(err, ERR_TOO_MANY);
    if (!self->filling)
        self->filling = NEW(struct batch);
    batch_add(self->filling, command, payloads, payload_count);
    self->filling->epoch = log->epoch;
    return 0;
}

static void memory_flush(struct log *log)
{
    struct memory_log *self = self_of(log);

    if (!self->filling || self->flying || self->settled)
        return;
    self->flying = TAKE(self->filling);
    if (self->automatic)
        memory_settle(log, MEMORY_COMMIT);
}

static void write_row(struct memory_log *self, struct batch *batch)
{
    struct memory_disk *disk = self->disk;
    struct batch *row = NEW(struct batch);

    batch->first = disk->tail.index + 1;
    struct log_batch view = batch_view(batch, true);
    batch->crc = batch_crc(disk->tail.crc, &view);
    disk->tail = (struct log_point){ batch->first + batch->count - 1, batch->crc };
    *row = (struct batch){
        .first = batch->first, .epoch = batch->epoch, .count = batch->count, .crc = batch->crc
    };
    str_add_len(&row->bytes, batch->bytes.data, batch->bytes.len);
    vec_push(&disk->rows, row);
}

bool memory_in_flight(const struct log *log)
{
    return self_of(log)->flying != NULL;
}

struct log_batch memory_flying(const struct log *log)
{
    return batch_view(self_of(log)->flying, true);
}

void memory_settle(struct log *log, enum memory_outcome outcome)
{
    struct memory_log *self = self_of(log);
    struct batch *batch = TAKE(self->flying);

    if (!batch)
        return;
    if (outcome == MEMORY_COMMIT)
        write_row(self, batch);
    else
        batch->rc = err_set(&batch->err, outcome == MEMORY_FULL ? ERR_DISK_FULL : ERR_IO,
                            outcome == MEMORY_FULL ? "no space left" : "input/output error");
    self->settled = batch;
    log->owner->wake(log->ctx);
}

void memory_crash(struct log *log, bool written)
{
    struct memory_log *self = self_of(log);

    if (self->flying && written)
        write_row(self, self->flying);
    log->stopped = true;
    log_free(log);
}

static void memory_poll(struct log *log)
{
    struct memory_log *self = self_of(log);
    struct batch *batch = TAKE(self->settled);
    struct err err;

    if (batch && !log->failed) {
        struct log_batch view = batch_view(batch, true);
        if (batch->rc == 0 && log_deliver(log, &view, &err) < 0)
            log_fail(log, &err);
        else if (batch->rc == -(int)ERR_IO)
            self->broken = batch->count, log_fail(log, &batch->err);
        else if (batch->rc < 0)
            log_refuse(log, batch->count, &batch->err);
    }
    batch_free(batch);
    if (!log->stopped)
        memory_flush(log);
}

static void memory_stop(struct log *log)
{
    struct memory_log *self = self_of(log);
    struct err err;

    memory_settle(log, MEMORY_COMMIT);
    log->stopped = true;
    if (self->settled)
        memory_poll(log);
    err_code(&err, ERR_SHUTTING_DOWN);
    log_refuse(log, self->broken + (self->filling ? self->filling->count : 0), &err);
}

static void memory_free(struct log *log)
{
    struct memory_log *self = self_of(log);

    batch_free(self->filling);
    batch_free(self->flying);
    batch_free(self->settled);
    log_done(log);
    free(self);
}

static void memory_confirm(struct log *log, log_confirm_fn fn, void *arg)
{
    (void)log;
    fn(arg, 0);
}

static void memory_resign(struct log *log)
{
    (void)log;
}

typedef bool (*place_fn)(void *ctx, const struct log_payload *payload);

static bool each_payload(const struct batch *row, place_fn fn, void *ctx)
{
    struct log_batch view = batch_view(row, false);
    struct log_walk walk;
    struct log_entry entry;
    struct log_payload payload;

    for (log_walk_init(&walk, &view); log_walk_next(&walk, &entry);) {
        while (log_walk_payload(&walk, &payload)) {
            if (fn(ctx, &payload))
                return true;
        }
    }
    return false;
}

void memory_disk_put(struct memory_disk *disk, const struct log_payload *payload)
{
    struct payload_copy *copy = NEW(struct payload_copy);

    memcpy(copy->digest, payload->digest, LOG_DIGEST_BYTES);
    str_add_len(&copy->bytes, payload->bytes.ptr, payload->bytes.len);
    vec_push(&disk->table, copy);
}

static bool keep_live(void *ctx, const struct log_payload *payload)
{
    struct memory_log *self = ctx;

    if (self->log.owner->payload_live(self->log.ctx, payload->digest))
        memory_disk_put(self->disk, payload);
    return false;
}

static int memory_snapshot_taken(struct log *log, struct log_point point, struct err *err)
{
    struct memory_log *self = self_of(log);
    struct memory_disk *disk = self->disk;

    if (disk->snapshot.index != point.index)
        return err_set(err, ERR_NOT_FOUND, "no such snapshot");
    log->snapshot = point;
    log->bytes_since = 0;
    while (disk->rows.len && disk->rows.items[0]->first <= disk->previous.index) {
        struct batch *row = disk->rows.items[0];
        each_payload(row, keep_live, self);
        disk->base = (struct log_point){ row->first + row->count - 1, row->crc };
        vec_remove(&disk->rows, 0);
        batch_free(row);
    }
    return 0;
}

struct wanted {
    const uint8_t *digest;
    struct str *out;
};

static bool take_wanted(void *ctx, const struct log_payload *payload)
{
    const struct wanted *wanted = ctx;

    if (memcmp(payload->digest, wanted->digest, LOG_DIGEST_BYTES) != 0)
        return false;
    if (wanted->out)
        str_add_len(wanted->out, payload->bytes.ptr, payload->bytes.len);
    return true;
}

int memory_disk_get(struct memory_disk *disk, const uint8_t digest[LOG_DIGEST_BYTES],
                    struct str *out, struct err *err)
{
    struct wanted wanted = { digest, out };

    for (size_t i = 0; i < disk->table.len; i++) {
        const struct payload_copy *copy = disk->table.items[i];
        struct log_payload payload = { copy->digest, { str_text(&copy->bytes), copy->bytes.len } };
        if (take_wanted(&wanted, &payload))
            return 0;
    }
    return err_set(err, ERR_NOT_FOUND, "payload is not in the store");
}

static int memory_payload_get(struct log *log, const uint8_t *digest, struct str *out,
                              struct err *err)
{
    struct memory_disk *disk = self_of(log)->disk;
    struct wanted wanted = { digest, out };

    for (size_t i = disk->rows.len; i-- > 0;) {
        if (each_payload(disk->rows.items[i], take_wanted, &wanted))
            return 0;
    }
    return memory_disk_get(disk, digest, out, err);
}

static bool memory_payload_has(struct log *log, const uint8_t *digest)
{
    return memory_payload_get(log, digest, NULL, NULL) == 0;
}

void memory_disk_drop(struct memory_disk *disk, const uint8_t digest[LOG_DIGEST_BYTES])
{
    for (size_t i = 0; i < disk->table.len; i++) {
        if (memcmp(disk->table.items[i]->digest, digest, LOG_DIGEST_BYTES) == 0) {
            payload_copy_free(disk->table.items[i]);
            vec_remove(&disk->table, i);
            return;
        }
    }
}

static void memory_payload_drop(struct log *log, const uint8_t *digest)
{
    memory_disk_drop(self_of(log)->disk, digest);
}

static void memory_status(struct log *log, struct log_status *out)
{
    const struct memory_log *self = self_of(log);

    out->first = self->disk->base.index + 1;
    out->queued = self->filling ? self->filling->count : 0;
}

static const struct log_ops memory_ops = {
    .name = "memory",
    .start = memory_start,
    .stop = memory_stop,
    .free = memory_free,
    .append = memory_append,
    .flush = memory_flush,
    .poll = memory_poll,
    .confirm = memory_confirm,
    .resign = memory_resign,
    .snapshot_taken = memory_snapshot_taken,
    .payload_get = memory_payload_get,
    .payload_has = memory_payload_has,
    .payload_drop = memory_payload_drop,
    .status = memory_status,
};

struct log *log_memory_new(const struct log_config *config, struct memory_disk *disk)
{
    struct memory_log *self = NEW(struct memory_log);

    log_init(&self->log, &memory_ops, config);
    self->disk = disk;
    return &self->log;
}

void memory_auto(struct log *log, bool on)
{
    self_of(log)->automatic = on;
}
