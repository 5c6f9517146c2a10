/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd.c - the log of several controllers: starting, stopping, answering
 */
#include "log/etcd.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "log/etcd_priv.h"
#include "log/memory_priv.h"
#include "log/snapshot.h"
#include "sys/files.h"
#include "sys/log.h"

enum { LEASE_S = 5 };

void *etcd_send(struct etcd_log *self, struct etcd_txn *txn, etcd_done_fn done)
{
    return self->io->call(self->io_ctx, ETCD_CALL_TXN, &txn->request.base, ETCD_CALL_MS, done,
                          self);
}

void etcd_cancel(struct etcd_log *self, void **call)
{
    if (*call)
        self->io->cancel(self->io_ctx, *call);
    *call = NULL;
}

void etcd_untimer(struct etcd_log *self, void **timer)
{
    if (*timer)
        self->io->untimer(self->io_ctx, *timer);
    *timer = NULL;
}

static bool has_payloads(const struct log_batch *batch)
{
    struct log_walk walk;
    struct log_entry entry;

    for (log_walk_init(&walk, batch); log_walk_next(&walk, &entry);) {
        if (entry.payload_count)
            return true;
    }
    return false;
}

void etcd_taken(struct etcd_log *self, const struct log_batch *batch, struct span value)
{
    self->last_first = batch->first;
    if (has_payloads(batch)) /* before apply(): the owner may ask for one there */
        etcd_keep_batch(self, batch, value);
}

bool etcd_deliver(struct etcd_log *self, const struct log_batch *batch, struct span value)
{
    struct err err;

    etcd_taken(self, batch, value);
    self->delivering = true;
    int rc = log_deliver_some(&self->log, batch, &err);
    self->delivering = false;
    if (rc < 0)
        log_fail(&self->log, &err);
    if (rc == LOG_APPLY_MORE) {
        struct batch *rest = NEW(struct batch);
        *rest = (struct batch){
            .first = batch->first, .count = batch->count, .epoch = batch->epoch, .crc = batch->crc
        };
        str_add_len(&rest->bytes, batch->bytes.ptr, batch->bytes.len);
        self->applying = rest;
        self->applying_own = false;
        self->log.owner->wake(self->log.ctx);
    }
    return !etcd_over(self);
}

static int restore_from(struct etcd_log *self, struct snapshot_reader *reader, struct err *err)
{
    int rc = self->log.owner->restore(self->log.ctx, reader, err);

    if (rc == 0) {
        self->seal_known = false;
        self->log.point = self->log.snapshot = snapshot_point(reader);
        self->log.bytes_since = 0;
    }
    snapshot_close(reader);
    return rc;
}

/* The newest whole snapshot of our own; without one we begin at nothing and catch up. */
static int restore_newest(struct etcd_log *self, struct err *err)
{
    struct snapshot_reader *reader = NULL;
    uint64_t indexes[SNAPSHOT_MOST];
    size_t count = 0;

    if (self->memory) {
        int rc = memory_disk_open_snapshot(self->memory, &reader, err);
        return rc == -(int)ERR_NOT_FOUND ? 0 : rc < 0 ? rc : restore_from(self, reader, err);
    }
    snapshot_remove_unfinished(self->log.dir);
    int rc = snapshot_list(self->log.dir, indexes, SNAPSHOT_MOST, &count, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < count; i++) {
        if (snapshot_open(self->log.dir, indexes[i], &reader, err) == 0) {
            if (i + 1 < count)
                self->previous.index = indexes[i + 1];
            snapshot_prune(self->log.dir, self->previous.index);
            int restored = restore_from(self, reader, err);
            if (restored != -(int)ERR_CORRUPT || i + 1 == count)
                return restored;
        }
        log_error("log.snapshot", "index=%" PRIu64 " damaged, trying an older one: %s", indexes[i],
                  err ? err->text : "");
    }
    return 0;
}

static int etcd_start(struct log *log, struct err *err)
{
    struct etcd_log *self = etcd_self(log);
    int rc = etcd_keep_start(self, err);

    if (rc == 0)
        rc = restore_newest(self, err);
    if (rc == 0)
        rc = etcd_keep_load(self, err);
    if (rc < 0)
        return rc;
    log->started = true;
    log_set_role(log, LOG_FOLLOWS, "");
    etcd_lease_start(self);
    if (self->fetch_first)
        self->snapshot_wanted = true; /* etcd_snapshot_fetched() goes on */
    else
        etcd_sync(self);
    return 0;
}

static int etcd_snapshot_fetched(struct log *log, uint64_t index, struct err *err)
{
    struct etcd_log *self = etcd_self(log);
    struct snapshot_reader *reader = NULL;

    etcd_settle(self);
    etcd_inbox_clear(self);
    int rc = self->memory ? memory_disk_open_snapshot(self->memory, &reader, err)
                          : snapshot_open(log->dir, index, &reader, err);

    if (rc == 0 && snapshot_point(reader).index <= log->point.index) {
        snapshot_close(reader);
        rc = err_set(err, ERR_RANGE, "snapshot %" PRIu64 " is not newer than we are", index);
    }
    if (rc < 0)
        return rc;
    self->previous = log->snapshot;
    rc = restore_from(self, reader, err);
    self->announced = log->snapshot; /* its payloads come later: our own next one is announced */
    self->snapshot_wanted = false;
    self->last_first = 0;
    if (rc < 0)
        log_fail(log, err);
    else
        etcd_sync(self);
    return rc;
}

static void etcd_poll(struct log *log)
{
    struct etcd_log *self = etcd_self(log);

    if (self->applying)
        etcd_apply_on(self);
    else
        etcd_sync_poll(self);
    etcd_keep_poll(self);
}

/*
 * The batch in flight stays unanswered, and with it all that waits behind it: whether it is in the
 * log the next start will see.
 */
static void etcd_stop(struct log *log)
{
    struct etcd_log *self = etcd_self(log);
    struct err why;

    log->stopped = true;
    etcd_settle(self);
    etcd_sync_stop(self);
    etcd_elect_stop(self);
    err_code(&why, ERR_SHUTTING_DOWN);
    etcd_append_stop(self);
    if (!self->flying)
        etcd_append_refuse_queue(self, &why);
    etcd_trim_stop(self);
    etcd_keep_rest(self);
    etcd_keep_stop(self);
}

static void etcd_free(struct log *log)
{
    struct etcd_log *self = etcd_self(log);

    etcd_sync_stop(self);
    etcd_elect_stop(self);
    etcd_append_stop(self);
    etcd_trim_stop(self);
    etcd_keep_stop(self);
    payload_index_done(&self->index);
    vec_done(&self->drops);
    vec_done(&self->held);
    vec_done(&self->members);
    vec_done(&self->confirm_waiting);
    vec_done(&self->confirm_asked);
    str_done(&self->flying_value);
    str_done(&self->room);
    str_done(&self->expanded);
    str_done(&self->segment);
    batch_free(self->flying);
    batch_free(self->applying);
    while (self->queue) {
        struct batch *next = self->queue->next;
        batch_free(self->queue);
        self->queue = next;
    }
    file_close(&self->lock_fd);
    log_done(log);
    free(self);
}

static struct log_leader etcd_leader(const struct log *log)
{
    const struct etcd_log *self = etcd_self(log);

    return (struct log_leader){ self->leader.name, self->leader.term, self->leading };
}

static void depose_op(struct log *log, int64_t term)
{
    etcd_depose(etcd_self(log), term);
}

static void etcd_hold_back(struct log *log, bool hold)
{
    struct etcd_log *self = etcd_self(log);

    self->held_back = hold;
    if (!hold && log->started)
        etcd_trim_announce(self);
    if (!hold && log->started && !etcd_over(self) && self->caught_up && self->leader.term == 0)
        etcd_campaign_soon(self);
}

static void etcd_doubt(struct log *log, bool doubt)
{
    struct etcd_log *self = etcd_self(log);

    if (self->doubted == doubt)
        return;
    self->doubted = doubt;
    if (!doubt && log->started && !etcd_over(self) && self->caught_up && self->leader.term == 0)
        etcd_campaign_soon(self);
}

static void etcd_confirmed(struct log *log, uint64_t index)
{
    struct etcd_log *self = etcd_self(log);

    self->confirmed = index;
    if (log->started)
        etcd_trim_announce(self);
}

static void etcd_status(struct log *log, struct log_status *out)
{
    const struct etcd_log *self = etcd_self(log);

    out->first = self->trimmed.index + 1;
    out->queued = self->queued;
    out->disk_full = self->disk_full;
}

static const struct log_ops etcd_ops = {
    .name = "etcd",
    .start = etcd_start,
    .stop = etcd_stop,
    .free = etcd_free,
    .append = etcd_append,
    .flush = etcd_flush,
    .poll = etcd_poll,
    .confirm = etcd_confirm,
    .resign = etcd_resign,
    .snapshot_taken = etcd_snapshot_taken,
    .payload_get = etcd_payload_get,
    .payload_has = etcd_payload_has,
    .payload_drop = etcd_payload_drop,
    .status = etcd_status,
    .leader = etcd_leader,
    .depose = depose_op,
    .hold_back = etcd_hold_back,
    .doubt = etcd_doubt,
    .confirmed = etcd_confirmed,
    .require_seals = etcd_require_seals,
    .snapshot_fetched = etcd_snapshot_fetched,
    .payload_put = etcd_payload_put,
};

struct log *log_etcd_new(const struct log_config *config, const struct etcd_options *options,
                         struct err *err)
{
    struct etcd_log *self = NEW(struct etcd_log);

    self->lock_fd = -1;
    if (etcd_keys_init(&self->keys, options->prefix, err) < 0) {
        free(self);
        return NULL;
    }
    log_init(&self->log, &etcd_ops, config);
    if (options->trim_bytes && !config->snapshot_bytes)
        self->log.snapshot_bytes = options->trim_bytes;
    self->io = options->io;
    self->io_ctx = options->io_ctx;
    self->confirmed = UINT64_MAX;
    self->fetch_first = options->fetch_first;
    self->controllers = MAX(options->controllers, 1u);
    self->bootstrap = options->bootstrap;
    self->has_seal_key = options->seal_key && options->cluster_id;
    if (self->has_seal_key) {
        memcpy(self->seal_key, options->seal_key, sizeof(self->seal_key));
        memcpy(self->cluster_id, options->cluster_id, sizeof(self->cluster_id));
    }
    self->lease_s = options->lease_s ? options->lease_s : LEASE_S;
    self->memory = options->disk;
    return &self->log;
}

void log_etcd_set_controllers(struct log *log, unsigned controllers)
{
    struct etcd_log *self = etcd_self(log);

    self->controllers = MAX(controllers, 1u);
    if (self->leading)
        etcd_trim(self);
}
