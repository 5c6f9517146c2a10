/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd_sync.c - reading the entries we lack, and watching for more
 *
 * One transaction reads where the log begins, who leads, a page of entries, the newest entry and
 * what the others hold, all at one revision. When nothing is missing any more, a watch goes on from
 * the next revision. Whatever happens to the watch, the answer is to begin again here: entries
 * that come twice are known by their index.
 *
 * (1) Every entry must continue the checksum of the one before. One that does not, or an etcd that
 *     ends before our own state, is damage: this replica stops.
 * (2) No watch is open while a read is under way, so what is seen never goes back in time.
 * (3) At most one entry is applied in a turn of the loop, or as much of one as the owner takes; what was told
 *     after it waits in the inbox, also that a leader came or went.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "log/etcd_priv.h"
#include "sys/log.h"

enum { PAUSE_MIN_MS = 50, PAUSE_MAX_MS = 1000 };
enum { AT_TRIM, AT_LEADER, AT_PAGE, AT_NEWEST, AT_MEMBERS };

enum verdict { ENTRY_TAKEN, ENTRY_GAP, ENTRY_STOP };

static void fail_corrupt(struct etcd_log *self, const char *what, uint64_t index)
{
    struct err err;

    err_set(&err, ERR_CORRUPT, "entry %" PRIu64 " in etcd: %s", index, what);
    log_fail(&self->log, &err);
}

static enum verdict take_entry(struct etcd_log *self, const EtcdKeyValue *kv)
{
    struct log_point *point = &self->log.point;
    struct log_batch batch;

    if (!etcd_value_read(kv, &self->room, &batch)) {
        fail_corrupt(self, "cannot be read", point->index + 1);
        return ENTRY_STOP;
    }
    if (self->applying && batch.first > self->applying->first)
        etcd_settle(self);
    if (batch.first + batch.count - 1 <= point->index)
        return ENTRY_TAKEN; /* known */
    if (batch.first > point->index + 1)
        return ENTRY_GAP;
    if (batch.first != point->index + 1 || batch.crc != batch_crc(point->crc, &batch)) {
        fail_corrupt(self, "does not continue the log", batch.first);
        return ENTRY_STOP;
    }
    struct span value = { (const char *)kv->value.data, kv->value.len };
    const char *wrong = etcd_seal_wrong(self, &batch, value);
    if (wrong) {
        fail_corrupt(self, wrong, batch.first);
        return ENTRY_STOP;
    }
    if (etcd_append_met(self, &batch))
        return etcd_over(self) ? ENTRY_STOP : ENTRY_TAKEN;
    etcd_seal_taken(self, value);
    return etcd_deliver(self, &batch, value) ? ENTRY_TAKEN : ENTRY_STOP;
}

static void take_trim(struct etcd_log *self, const EtcdKeyValue *kv)
{
    struct log_point point;

    if (kv && etcd_point_read(kv, &point) && point.index > self->trimmed.index)
        self->trimmed = point;
}

static void want_snapshot(struct etcd_log *self)
{
    if (self->snapshot_wanted)
        return;
    self->snapshot_wanted = true;
    log_info("log.behind", "at=%" PRIu64 " trimmed=%" PRIu64, self->log.point.index,
             self->trimmed.index);
    if (self->log.owner->need_snapshot)
        self->log.owner->need_snapshot(self->log.ctx, self->trimmed.index);
}

static void look_at(struct etcd_log *self, const EtcdKeyValue *kv, bool gone)
{
    if (etcd_key_is(kv, self->keys.leader))
        etcd_leader_seen(self, gone ? NULL : kv);
    else if (!gone && etcd_key_under(kv, self->keys.log)) {
        if (take_entry(self, kv) != ENTRY_GAP)
            return;
        if (self->page)
            fail_corrupt(self, "is missing", self->log.point.index + 1);
        else
            etcd_sync(self);
    } else if (!gone && etcd_key_is(kv, self->keys.trim))
        take_trim(self, kv);
    else if (!gone && etcd_key_under(kv, self->keys.member))
        etcd_trim_note_member(self, kv);
}

static void on_watch(void *arg, const EtcdWatchResponse *message)
{
    struct etcd_log *self = arg;

    if (message->canceled || message->compact_revision) {
        log_verbose("log.watch", "ended: %s", message->cancel_reason ? message->cancel_reason : "");
        etcd_sync_later(self);
        return;
    }
    self->sync_failures = 0;
    for (size_t i = 0; i < message->n_events; i++)
        etcd_inbox_push(self, message->events[i]->kv, message->events[i]->type == ETCD_DELETE);
    if (self->inbox_bytes > ETCD_INBOX_BYTES)
        etcd_sync(self);
    else if (!self->applying)
        etcd_sync_poll(self);
}

static void on_watch_end(void *arg, const struct err *err)
{
    struct etcd_log *self = arg;

    self->watch = NULL;
    log_verbose("log.watch", "ended: %s", err ? err->text : "by etcd");
    etcd_sync_later(self);
}

static void start_watch(struct etcd_log *self, int64_t revision)
{
    EtcdWatchRequest request = ETCD_WATCH_REQUEST__INIT;
    EtcdWatchCreate create = ETCD_WATCH_CREATE__INIT;

    create.has_key = create.has_range_end = create.has_start_revision = create.has_fragment = true;
    create.key = (ProtobufCBinaryData){ strlen(self->keys.all), (uint8_t *)self->keys.all };
    create.range_end =
        (ProtobufCBinaryData){ strlen(self->keys.all_end), (uint8_t *)self->keys.all_end };
    create.start_revision = revision + 1;
    create.fragment = true;
    request.create = &create;
    self->watch = self->io->watch(self->io_ctx, &request, on_watch, on_watch_end, self);
}

static void on_bootstrap(void *arg, const ProtobufCMessage *reply, const struct err *err)
{
    struct etcd_log *self = arg;

    (void)reply; /* done, or somebody was faster: the next read tells */
    self->sync_call = NULL;
    if (err)
        etcd_sync_later(self);
    else
        etcd_sync(self);
}

/* An empty etcd takes our snapshot as the place where the log begins. */
static void bootstrap(struct etcd_log *self)
{
    CLEANUP(str_done) struct str value = { 0 };
    struct etcd_txn txn;

    self->bootstrap = false;
    log_info("log.bootstrap", "index=%" PRIu64, self->log.point.index);
    etcd_point_write(&value, self->log.point);
    etcd_txn_init(&txn);
    etcd_txn_if_created(&txn, self->keys.trim, 0);
    etcd_txn_put(&txn, self->keys.trim, (struct span){ value.data, value.len }, 0);
    self->sync_call = etcd_send(self, &txn, on_bootstrap);
}

/* Do we stand where etcd's log ended? False: not yet, or never. */
static bool at_the_end(struct etcd_log *self, const struct etcd_page *page)
{
    struct log_point point = self->log.point, end = page->end;
    struct err err;

    if (end.index > point.index) {
        etcd_sync(self); /* it grew meanwhile */
        return false;
    }
    if (end.index == point.index && end.crc == point.crc) {
        self->last_first = page->newest_first;
        return true;
    }
    if (!page->newest_first && self->trimmed.index == 0 && self->bootstrap) {
        bootstrap(self);
        return false;
    }
    err_set(&err, ERR_CORRUPT,
            "etcd under %s ends at entry %" PRIu64
            " (checksum %08x), but this controller has %" PRIu64
            " (checksum %08x): it is another cluster's, or it lost acknowledged entries",
            self->keys.all, end.index, end.crc, point.index, point.crc);
    log_fail(&self->log, &err);
    return false;
}

/* All its entries are applied. */
static void end_page(struct etcd_log *self)
{
    CLEANUP(freep) struct etcd_page *page = TAKE(self->page);

    if (page->more || self->log.point.index != page->reaches) { /* or older than we are now */
        etcd_sync(self);
        return;
    }
    if (!at_the_end(self, page))
        return;
    self->sync_failures = 0;
    self->caught_up = true;
    start_watch(self, page->revision);
    etcd_leader_seen(self, page->leader);
    etcd_trim_announce(self);
}

void etcd_sync_poll(struct etcd_log *self)
{
    uint64_t before = self->log.point.index;

    while (self->inbox && !self->applying && !etcd_over(self) &&
           self->log.point.index == before) { /* (3) */
        CLEANUP(freep) struct etcd_item *item = etcd_inbox_pop(self);
        look_at(self, &item->kv, item->gone);
    }
    if (etcd_over(self) || self->applying)
        return;
    if (self->inbox)
        self->log.owner->wake(self->log.ctx);
    else if (self->page)
        end_page(self);
}

static void take_reply(struct etcd_log *self, const EtcdTxnResponse *reply)
{
    const EtcdRangeResponse *entries = etcd_reply_range(reply, AT_PAGE);
    const EtcdRangeResponse *members = etcd_reply_range(reply, AT_MEMBERS);
    const EtcdKeyValue *newest = etcd_reply_first(reply, AT_NEWEST);
    struct etcd_page page = { .more = entries->more, .revision = etcd_reply_revision(reply) };
    struct log_batch batch;

    take_trim(self, etcd_reply_first(reply, AT_TRIM));
    for (size_t i = 0; i < members->n_kvs; i++)
        etcd_trim_note_member(self, members->kvs[i]);
    if (self->trimmed.index > self->log.point.index) {
        want_snapshot(self);
        return;
    }
    if (newest && !etcd_value_head(newest, &batch)) {
        fail_corrupt(self, "cannot be read", 0);
        return;
    }
    page.end =
        newest ? (struct log_point){ batch.first + batch.count - 1, batch.crc } : self->trimmed;
    page.newest_first = newest ? batch.first : 0;
    if (newest && page.end.index == self->log.point.index)
        etcd_seal_newest(self, newest);
    page.reaches = self->log.point.index;
    for (size_t i = 0; i < entries->n_kvs; i++) {
        etcd_inbox_push(self, entries->kvs[i], false);
        if (etcd_value_head(entries->kvs[i], &batch))
            page.reaches = MAX(page.reaches, batch.first + batch.count - 1);
    }
    etcd_inbox_page(self, &page, etcd_reply_first(reply, AT_LEADER));
    etcd_sync_poll(self);
}

static void on_sync(void *arg, const ProtobufCMessage *reply, const struct err *err)
{
    struct etcd_log *self = arg;

    self->sync_call = NULL;
    if (err) {
        log_verbose("log.sync", "failed: %s", err->text);
        etcd_sync_later(self);
        return;
    }
    etcd_settle(self);
    if (self->log.point.index != self->sync_from) {
        etcd_sync(self); /* we appended meanwhile: this answer is older than we are */
    } else {
        take_reply(self, (const EtcdTxnResponse *)reply);
    }
}

static void drop_watch(struct etcd_log *self)
{
    if (self->watch)
        self->io->unwatch(self->io_ctx, self->watch);
    self->watch = NULL;
    self->caught_up = false;
}

void etcd_sync(struct etcd_log *self)
{
    char from[ETCD_KEY_BYTES];
    struct etcd_txn txn;

    etcd_settle(self);
    if (etcd_over(self) || self->sync_call)
        return;
    etcd_inbox_clear(self);
    etcd_untimer(self, &self->sync_timer);
    drop_watch(self); /* (2) */
    self->sync_from = self->log.point.index;
    etcd_keys_entry(&self->keys, self->sync_from + 1, from);
    etcd_txn_init(&txn);
    etcd_txn_get(&txn, ETCD_THEN, self->keys.trim);
    etcd_txn_get(&txn, ETCD_THEN, self->keys.leader);
    etcd_txn_range(&txn, from, self->keys.log_end, ETCD_PAGE, ETCD_ORDER_ASCEND);
    etcd_txn_range(&txn, self->keys.log, self->keys.log_end, 1, ETCD_ORDER_DESCEND);
    etcd_txn_range(&txn, self->keys.member, self->keys.member_end, 100, ETCD_ORDER_ASCEND);
    self->sync_call = etcd_send(self, &txn, on_sync);
}

static void on_pause_over(void *arg)
{
    struct etcd_log *self = arg;

    self->sync_timer = NULL;
    etcd_sync(self);
}

void etcd_sync_later(struct etcd_log *self)
{
    if (etcd_over(self) || self->sync_call || self->sync_timer)
        return;
    drop_watch(self);
    unsigned pause = MIN((unsigned)PAUSE_MIN_MS << MIN(self->sync_failures, 8u), PAUSE_MAX_MS);
    self->sync_failures++;
    self->sync_timer = self->io->timer(self->io_ctx, pause, on_pause_over, self);
}

void etcd_sync_stop(struct etcd_log *self)
{
    drop_watch(self);
    etcd_inbox_clear(self);
    etcd_cancel(self, &self->sync_call);
    etcd_untimer(self, &self->sync_timer);
}
