/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd_append.c - writing entries, and finding out what became of them
 *
 * See etcd.h (1) and (2). The batch in flight keeps its bytes until it is decided: sent again, it
 * is the same transaction, of which at most one can succeed.
 *
 * A batch that is committed is applied in as many turns of the loop as the owner wants. The next one of ours
 * is sent when that is done; whoever must know where the log stands, or has to say something to
 * the owner, applies the rest of it first (etcd_settle).
 */
#include <string.h>

#include "log/etcd_priv.h"
#include "sys/log.h"

enum {
    PAUSE_MIN_MS = 20,
    PAUSE_MAX_MS = 500,
    /*
     * A proposal that was on its way to an etcd leader who died is never answered: ask early what
     * became of it. Asking costs a read, and sending again is safe.
     */
    WAIT_MIN_MS = 500,
    WAIT_MAX_MS = 4000,
    /*
     * A commit costs etcd's members the same for few commands as for many. Who got an answer with
     * many others often asks again at once: the next batch waits for as many, a fraction of what a
     * commit takes. After few commands nothing is waited for.
     */
    GATHER_LEAST = 16,
    GATHER_MS = 2,
};

static void send_flying(struct etcd_log *self);
static void send_next(struct etcd_log *self);
static void resolve_later(struct etcd_log *self);

int etcd_append(struct log *log, struct span command, const struct log_payload *payloads,
                uint32_t payload_count, struct err *err)
{
    struct etcd_log *self = etcd_self(log);
    size_t size = batch_record_bytes(command, payloads, payload_count);

    if (size == 0 || size > ETCD_RECORD_BYTES)
        return err_set(err, ERR_TOO_LARGE,
                       "%zu bytes; with several controllers a job may have %d bytes of script and "
                       "environment",
                       size, ETCD_RECORD_BYTES);
    if (self->resigning)
        return err_code(err, ERR_NOT_LEADER);
    if (etcd_keep_is_full(self))
        return err_set(err, ERR_DISK_FULL, "payloads cannot be kept in %s", log->dir);
    if (self->queue_bytes + size > LOG_QUEUE_BYTES)
        return err_set(err, ERR_TOO_MANY, "the log is %zu bytes behind", self->queue_bytes);
    struct batch *batch = self->queue_tail;
    if (!batch || batch->bytes.len + size > ETCD_BATCH_BYTES ||
        batch->count == ETCD_BATCH_COMMANDS) {
        batch = NEW(struct batch);
        if (self->queue_tail)
            self->queue_tail->next = batch;
        else
            self->queue = batch;
        self->queue_tail = batch;
    }
    batch_add(batch, command, payloads, payload_count);
    batch->epoch = log->epoch;
    self->queue_bytes += size;
    self->queued++;
    return 0;
}

static struct batch *pop_queue(struct etcd_log *self)
{
    struct batch *batch = self->queue;

    self->queue = batch->next;
    if (!self->queue) {
        self->queue_tail = NULL;
        self->released = false;
    }
    self->queue_bytes -= batch->bytes.len;
    self->queued -= batch->count;
    batch->next = NULL;
    return batch;
}

void etcd_append_refuse_queue(struct etcd_log *self, const struct err *why)
{
    etcd_settle(self); /* those are older */
    while (self->queue) {
        struct batch *batch = pop_queue(self);
        log_refuse(&self->log, batch->count, why);
        batch_free(batch);
    }
}

void etcd_flush(struct log *log)
{
    struct etcd_log *self = etcd_self(log);

    self->released = self->queue != NULL;
    send_next(self);
}

static void on_gathered(void *arg)
{
    struct etcd_log *self = arg;

    self->gather_timer = NULL;
    self->expected = 0;
    send_next(self);
}

/* Who is answered now may ask again, beside those who wait already. */
static void expect(struct etcd_log *self, uint32_t answered)
{
    etcd_untimer(self, &self->gather_timer);
    self->expected = 0;
    if (answered < GATHER_LEAST || etcd_over(self))
        return;
    self->expected = MIN(self->queued + answered, (uint32_t)ETCD_BATCH_COMMANDS);
    self->gather_timer = self->io->timer(self->io_ctx, GATHER_MS, on_gathered, self);
}

static void send_next(struct etcd_log *self)
{
    if (!self->leading || self->flying || self->applying || !self->queue || !self->released ||
        etcd_over(self) || self->queued < self->expected)
        return;
    expect(self, 0);
    struct batch *batch = pop_queue(self);
    batch->first = self->log.point.index + 1;
    struct log_batch view = batch_view(batch, true);
    view.crc = batch->crc = batch_crc(self->log.point.crc, &view);
    str_clear(&self->flying_value);
    etcd_value_write(&self->flying_value, &view, etcd_seal_make(self, &view));
    self->flying = batch;
    self->flying_term = self->term;
    self->flying_repeated = false;
    self->append_failures = 0;
    send_flying(self);
}

/* ---- decided ---- */

static struct batch *land(struct etcd_log *self)
{
    etcd_cancel(self, &self->append_call);
    etcd_untimer(self, &self->append_timer);
    return TAKE(self->flying);
}

static void go_on(struct etcd_log *self)
{
    struct err why;

    if (self->leading) {
        send_next(self);
        etcd_resign_next(self);
        return;
    }
    err_code(&why, ERR_NOT_LEADER);
    etcd_append_refuse_queue(self, &why);
}

/* As much of it as the owner takes now, or all. */
static void apply_on(struct etcd_log *self, bool all)
{
    bool own = self->applying_own;
    struct log_batch view = batch_view(self->applying, own);
    struct err err;
    int rc;

    self->delivering = true;
    rc = (all ? log_deliver : log_deliver_some)(&self->log, &view, &err);
    self->delivering = false;
    if (rc == LOG_APPLY_MORE) {
        self->log.owner->wake(self->log.ctx);
        return;
    }
    struct batch *batch = TAKE(self->applying);
    if (rc < 0)
        log_fail(&self->log, &err);
    bool going = own && !etcd_over(self);
    if (own)
        expect(self, going ? batch->count : 0);
    batch_free(batch);
    if (going) { /* after another's, ours may still be in flight */
        go_on(self);
        etcd_trim(self);
    }
    if (self->inbox || self->page)
        self->log.owner->wake(self->log.ctx);
}

void etcd_apply_on(struct etcd_log *self)
{
    if (self->applying && !self->delivering)
        apply_on(self, false);
}

void etcd_settle(struct etcd_log *self)
{
    if (self->applying && !self->delivering)
        apply_on(self, true);
}

static void committed(struct etcd_log *self)
{
    struct log_batch view;

    self->applying = land(self);
    self->applying_own = true;
    self->disk_full = false;
    view = batch_view(self->applying, true);
    struct span value = { self->flying_value.data, self->flying_value.len };
    etcd_seal_taken(self, value);
    etcd_taken(self, &view, value);
    apply_on(self, false);
}

static void refused(struct etcd_log *self, const struct err *why)
{
    struct batch *batch = land(self);

    log_refuse(&self->log, batch->count, why);
    batch_free(batch);
    go_on(self);
}

static void deposed(struct etcd_log *self, const char *why_text)
{
    struct err why;

    err_code(&why, ERR_NOT_LEADER);
    log_info("log.deposed", "index=%llu %s", (unsigned long long)self->flying->first, why_text);
    /* We may lead again by now, in another term: that one is not over. */
    if (self->term == self->flying_term)
        etcd_step_down(self); /* the owner must know before anything is refused */
    refused(self, &why);
}

static bool is_flying(const struct etcd_log *self, const struct log_batch *batch)
{
    return self->flying && self->flying->first == batch->first &&
           self->flying->count == batch->count && self->flying->crc == batch->crc &&
           self->flying->bytes.len == batch->bytes.len &&
           memcmp(self->flying->bytes.data, batch->bytes.ptr, batch->bytes.len) == 0;
}

bool etcd_append_met(struct etcd_log *self, const struct log_batch *batch)
{
    if (self->applying && self->applying->first == batch->first)
        return true;
    if (!self->flying || self->flying->first != batch->first)
        return false;
    if (is_flying(self, batch)) {
        committed(self);
        return true;
    }
    deposed(self, "another entry is in its place");
    return false;
}

/* Others went on and trimmed: whether our entry was among theirs nobody can tell. */
static void out_of_sight(struct etcd_log *self)
{
    struct err why;

    err_set(&why, ERR_CONNECTION_LOST,
            "cut off for so long that the entry was trimmed, if it was there");
    if (self->term == self->flying_term)
        etcd_step_down(self);
    refused(self, &why);
}

enum { AT_LEADER, AT_ENTRY, AT_TRIM };

static void ask_fate(struct etcd_log *self, struct etcd_txn *txn, enum etcd_branch branch,
                     const char *key)
{
    etcd_txn_get(txn, branch, self->keys.leader);
    etcd_txn_get(txn, branch, key);
    etcd_txn_get(txn, branch, self->keys.trim);
}

/* What the answer to ask_fate() says. `again`: nothing is there and we lead. */
static void decide(struct etcd_log *self, const EtcdTxnResponse *reply,
                   void (*again)(struct etcd_log *self))
{
    const EtcdKeyValue *leader = etcd_reply_first(reply, AT_LEADER);
    const EtcdKeyValue *entry = etcd_reply_first(reply, AT_ENTRY);
    const EtcdKeyValue *trim = etcd_reply_first(reply, AT_TRIM);
    struct log_point trimmed;
    struct err why;

    if (!entry && trim && etcd_point_read(trim, &trimmed) && trimmed.index >= self->flying->first)
        out_of_sight(self);
    else if (entry && entry->value.len == self->flying_value.len &&
             memcmp(entry->value.data, self->flying_value.data, entry->value.len) == 0)
        committed(self);
    else if (entry || !leader || leader->create_revision != self->flying_term)
        deposed(self, entry ? "another entry is in its place" : "the leader key is another's");
    else if (again)
        again(self);
    else {
        err_set(&why, ERR_CORRUPT, "the entry before %llu is missing from etcd",
                (unsigned long long)self->flying->first);
        log_fail(&self->log, &why);
    }
}

/* ---- asking ---- */

static void *send_patiently(struct etcd_log *self, struct etcd_txn *txn, etcd_done_fn done)
{
    unsigned wait = MIN((unsigned)WAIT_MIN_MS << MIN(self->append_failures, 8u), WAIT_MAX_MS);

    return self->io->call(self->io_ctx, ETCD_CALL_TXN, &txn->request.base, wait, done, self);
}

static bool is_no_space(const struct err *err)
{
    return strstr(err->text, "space exceeded") != NULL;
}

static void give_up_for_space(struct etcd_log *self)
{
    struct err why;

    if (!self->disk_full)
        log_error("log.full", "etcd has no space left");
    self->disk_full = true;
    err_set(&why, ERR_DISK_FULL, "etcd has no space left");
    refused(self, &why);
}

static void on_resolve(void *arg, const ProtobufCMessage *message, const struct err *err)
{
    struct etcd_log *self = arg;
    const EtcdTxnResponse *reply = (const void *)message;

    self->append_call = NULL;
    if (err) {
        resolve_later(self);
        return;
    }
    decide(self, reply, self->disk_full ? give_up_for_space : send_flying);
}

static void on_resolve_time(void *arg)
{
    struct etcd_log *self = arg;
    char key[ETCD_KEY_BYTES];
    struct etcd_txn txn;

    self->append_timer = NULL;
    etcd_keys_entry(&self->keys, self->flying->first, key);
    etcd_txn_init(&txn);
    ask_fate(self, &txn, ETCD_THEN, key);
    self->append_call = send_patiently(self, &txn, on_resolve);
}

static void resolve_later(struct etcd_log *self)
{
    unsigned pause = MIN((unsigned)PAUSE_MIN_MS << MIN(self->append_failures, 8u), PAUSE_MAX_MS);

    self->append_failures++;
    self->flying_repeated = true;
    self->append_timer = self->io->timer(self->io_ctx, pause, on_resolve_time, self);
}

static void on_append(void *arg, const ProtobufCMessage *message, const struct err *err)
{
    struct etcd_log *self = arg;
    const EtcdTxnResponse *reply = (const void *)message;

    self->append_call = NULL;
    if (err) {
        log_verbose("log.append", "index=%llu unanswered: %s",
                    (unsigned long long)self->flying->first, err->text);
        if (is_no_space(err) && !self->flying_repeated) {
            give_up_for_space(self); /* refused before anybody else saw it */
            return;
        }
        self->disk_full = is_no_space(err);
        resolve_later(self);
    } else if (reply->succeeded) {
        committed(self);
    } else {
        decide(self, reply, NULL);
    }
}

static void send_flying(struct etcd_log *self)
{
    char key[ETCD_KEY_BYTES], before[ETCD_KEY_BYTES];
    struct etcd_txn txn;

    etcd_keys_entry(&self->keys, self->flying->first, key);
    etcd_keys_entry(&self->keys, self->last_first, before);
    etcd_txn_init(&txn);
    etcd_txn_if_created(&txn, self->keys.leader, self->flying_term);
    etcd_txn_if_created(&txn, key, 0);
    if (self->last_first)
        etcd_txn_if_exists(&txn, before);
    else if (self->trimmed.index)
        etcd_txn_if_exists(&txn, self->keys.trim);
    etcd_txn_put(&txn, key, (struct span){ self->flying_value.data, self->flying_value.len }, 0);
    ask_fate(self, &txn, ETCD_ELSE, key);
    self->append_call = send_patiently(self, &txn, on_append);
}

void etcd_append_stop(struct etcd_log *self)
{
    etcd_cancel(self, &self->append_call);
    etcd_untimer(self, &self->append_timer);
    etcd_untimer(self, &self->gather_timer);
}
