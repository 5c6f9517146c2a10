/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite.c - the log of a lone controller: SQLite, one disk, group commit
 */
#include "log/sqlite.h"

#include <stdlib.h>
#include <string.h>

#include "log/sqlite_priv.h"
#include "sys/files.h"
#include "sys/log.h"

static struct sqlite_log *self_of(struct log *log)
{
    return CONTAINER_OF(log, struct sqlite_log, log);
}

static int sqlite_start(struct log *log, struct err *err)
{
    struct sqlite_log *self = self_of(log);
    int rc = sqlite_recover(self, err);

    if (rc < 0)
        return rc;
    self->writer.background = self->background;
    rc = writer_start(&self->writer, err);
    if (rc < 0)
        return rc;
    log->started = true;
    background_list(self->background);
    log_set_role(log, LOG_LEADS, log->name);
    return 0;
}

static void forward_wake(void *arg)
{
    struct sqlite_log *self = arg;

    self->log.owner->wake(self->log.ctx);
}

static void keep_recent(struct sqlite_log *self, struct batch *batch)
{
    struct batch *left = recent_push(&self->recent, batch);

    while (left) {
        writer_give_back(&self->writer, left);
        left = recent_push(&self->recent, NULL);
    }
}

static void note_disk(struct sqlite_log *self, const struct batch *batch)
{
    bool full = batch->rc == -(int)ERR_DISK_FULL;

    if (full && !self->disk_full)
        log_error("log.full", "dir=%s error=%s", self->log.dir, batch->err.text);
    else if (!full && self->disk_full && batch->rc == 0)
        log_info("log.room", "dir=%s", self->log.dir);
    if (full || batch->rc == 0)
        self->disk_full = full;
}

/* The first of the list is delivered, or a part of it. */
static void deliver_next(struct sqlite_log *self)
{
    struct batch *batch = self->written;
    struct log_batch view = batch_view(batch, true);
    struct err err;

    if (!self->log.between) {
        note_disk(self, batch);
        self->chore_blocked = false;
        payload_index_add(&self->index, &view);
    }
    int rc = log_deliver_some(&self->log, &view, &err);
    if (rc == LOG_APPLY_MORE)
        return;
    self->written = batch->next;
    batch->next = NULL;
    keep_recent(self, batch);
    if (rc < 0)
        log_fail(&self->log, &err);
}

/* It is not in the log. */
static void refuse(struct sqlite_log *self, struct batch *batch)
{
    note_disk(self, batch);
    bool fatal = batch->rc != -(int)ERR_DISK_FULL && batch->rc != -(int)ERR_NO_MEMORY &&
                 batch->rc != -(int)ERR_SHUTTING_DOWN;
    if (fatal) /* whether it is on disk nobody knows: it is not answered, the process ends */
        log_fail(&self->log, &batch->err);
    else
        log_refuse(&self->log, batch->count, &batch->err);
    writer_give_back(&self->writer, batch);
}

/* What the writer has written comes behind what was not delivered yet. */
static void take_written(struct sqlite_log *self, struct chore **chore)
{
    struct batch *done = writer_take(&self->writer, chore);

    if (self->written)
        self->written_last->next = done;
    else
        self->written = done;
    for (; done; done = done->next)
        self->written_last = done;
}

static bool settle_next(struct sqlite_log *self)
{
    struct batch *batch = self->written;

    if (!batch)
        return false;
    if (batch->rc == 0 && !self->log.failed) {
        deliver_next(self);
        return true;
    }
    self->written = batch->next;
    batch->next = NULL;
    if (self->log.failed)
        batch_free(batch);
    else
        refuse(self, batch);
    return true;
}

static void hear_background(struct sqlite_log *self)
{
    struct background_news news;

    if (!background_take(self->background, &news))
        return;
    if (news.broken)
        log_fail(&self->log, &news.broken_err);
    if (news.verified && news.verify_rc < 0)
        log_error("log.snapshot", "index=%llu kept nothing: %s",
                  (unsigned long long)news.point.index, news.verify_err.text);
    else if (news.verified)
        sqlite_snapshot_verified(self, news.point);
    for (size_t i = 0; i < news.digest_count; i++) {
        if (!self->log.owner->payload_live(self->log.ctx, news.digests[i])) {
            struct digest_item item;
            memcpy(item.bytes, news.digests[i], LOG_DIGEST_BYTES);
            vec_push(&self->drops, item);
        }
    }
    free(news.digests);
    if (news.digest_count)
        background_list(self->background);
}

static void sqlite_poll(struct log *log)
{
    struct sqlite_log *self = self_of(log);
    struct chore *chore;

    take_written(self, &chore);
    settle_next(self);
    if (self->written) /* others have their turn first */
        log->owner->wake(log->ctx);
    if (chore)
        sqlite_trim_done(self, chore);
    hear_background(self);
    if (!log->failed && !log->stopped) {
        sqlite_trim_next(self);
        writer_release(&self->writer);
    }
}

static int sqlite_append(struct log *log, struct span command, const struct log_payload *payloads,
                         uint32_t payload_count, struct err *err)
{
    return writer_append(&self_of(log)->writer, log->epoch, command, payloads, payload_count, err);
}

static void sqlite_flush(struct log *log)
{
    writer_release(&self_of(log)->writer);
}

static void sqlite_stop(struct log *log)
{
    struct sqlite_log *self = self_of(log);
    struct chore *chore;

    writer_stop(&self->writer);
    take_written(self, &chore);
    log->stopped = true; /* callbacks may append no more */
    while (settle_next(self))
        ;
    if (chore)
        sqlite_trim_done(self, chore);
}

static void sqlite_free(struct log *log)
{
    struct sqlite_log *self = self_of(log);

    background_stop(self->background);
    writer_done(&self->writer);
    store_close(self->writer.store);
    store_close(self->reader);
    recent_done(&self->recent);
    payload_index_done(&self->index);
    vec_done(&self->drops);
    file_close(&self->writer.mark_fd);
    file_close(&self->lock_fd);
    log_done(log);
    free(self);
}

/* A lone controller that holds the lock leads. */
static void sqlite_confirm(struct log *log, log_confirm_fn fn, void *arg)
{
    (void)log;
    fn(arg, 0);
}

static void sqlite_resign(struct log *log)
{
    (void)log; /* there is nobody else */
}

static int sqlite_snapshot_taken(struct log *log, struct log_point point, struct err *err)
{
    if (point.index > log->point.index || point.index <= log->snapshot.index)
        return err_set(err, ERR_RANGE, "snapshot at %llu, the log is at %llu and has one at %llu",
                       (unsigned long long)point.index, (unsigned long long)log->point.index,
                       (unsigned long long)log->snapshot.index);
    background_verify(self_of(log)->background, point, log->snapshot.index);
    return 0;
}

static int read_place(struct sqlite_log *self, const struct payload_place *place, struct str *out,
                      struct err *err)
{
    const struct batch *batch = recent_find(&self->recent, place->row);

    if (batch) {
        str_add_len(out, batch->bytes.data + place->offset, place->len);
        return 0;
    }
    return store_read(self->reader, place->row, place->offset, place->len, out, err);
}

static int sqlite_payload_get(struct log *log, const uint8_t *digest, struct str *out,
                              struct err *err)
{
    struct sqlite_log *self = self_of(log);
    const struct payload_place *place = payload_index_get(&self->index, digest);
    size_t start = out->len;

    if (place) {
        int rc = read_place(self, place, out, err);
        if (rc == 0)
            rc = payload_check(digest, (struct span){ str_text(out) + start, out->len - start },
                               err);
        if (rc < 0)
            str_truncate(out, start);
        if (rc != -(int)ERR_NOT_FOUND)
            return rc;
        /* Trimmed a moment ago: it has moved to the table. */
    }
    return payload_get(&self->reader->payloads, digest, out, err);
}

static bool sqlite_payload_has(struct log *log, const uint8_t *digest)
{
    struct sqlite_log *self = self_of(log);

    return payload_index_get(&self->index, digest) ||
           payload_get(&self->reader->payloads, digest, NULL, NULL) == 0;
}

static void sqlite_payload_drop(struct log *log, const uint8_t *digest)
{
    struct sqlite_log *self = self_of(log);
    struct digest_item item;

    if (payload_index_drop(&self->index, digest))
        return; /* its row is trimmed in time, and it with the row */
    memcpy(item.bytes, digest, LOG_DIGEST_BYTES);
    vec_push(&self->drops, item);
}

static void sqlite_status(struct log *log, struct log_status *out)
{
    struct sqlite_log *self = self_of(log);

    out->first = self->base.index + 1;
    out->queued = writer_queued(&self->writer);
    out->disk_full = self->disk_full;
}

static const struct log_ops sqlite_ops = {
    .name = "sqlite",
    .start = sqlite_start,
    .stop = sqlite_stop,
    .free = sqlite_free,
    .append = sqlite_append,
    .flush = sqlite_flush,
    .poll = sqlite_poll,
    .confirm = sqlite_confirm,
    .resign = sqlite_resign,
    .snapshot_taken = sqlite_snapshot_taken,
    .payload_get = sqlite_payload_get,
    .payload_has = sqlite_payload_has,
    .payload_drop = sqlite_payload_drop,
    .status = sqlite_status,
};

struct log *log_sqlite_new(const struct log_config *config)
{
    struct sqlite_log *self = NEW(struct sqlite_log);

    log_init(&self->log, &sqlite_ops, config);
    self->lock_fd = -1;
    self->writer.mark_fd = -1;
    self->writer.wake = forward_wake;
    self->writer.wake_ctx = self;
    return &self->log;
}
