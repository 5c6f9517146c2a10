/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd_elect.c - who leads: lease, campaign, deposing, confirming
 *
 * The leader key belongs to whoever created it, until it is deleted: by the leader (handing over), by
 * a peer (deposing), or by etcd when the lease ends (the backstop). Its create_revision is the
 * term; it never comes back, so "the key is the one I created" is a fence.
 *
 * We learn of our own victory as of anybody's, by the watch or a read: every entry that was there
 * before has been delivered by then (etcd.h (3)).
 */
#include <stdio.h>
#include <string.h>

#include "log/etcd_priv.h"
#include "sys/log.h"
#include "sys/rng.h"

enum {
    CAMPAIGN_SPREAD_MS = 20,
    LEASE_RETRY_MS = 300,
    DEPOSE_AGAIN_MS = 500,
    RESIGN_HOLD_MS = 2000,
    DEPOSED_HOLD_MS = 1000, /* whoever deposed us has reasons: let another one lead */
};

static int64_t now_ms(const struct etcd_log *self)
{
    return self->io->now_ms(self->io_ctx);
}

/* ---- leading and following ---- */

static void become(struct etcd_log *self, int64_t term)
{
    self->leading = true;
    self->term = term;
    log_info("log.lead", "name=%s term=%lld index=%llu", self->log.name, (long long)term,
             (unsigned long long)self->log.point.index);
    log_set_role(&self->log, LOG_LEADS, self->log.name);
}

void etcd_step_down(struct etcd_log *self)
{
    struct err why;

    if (!self->leading)
        return;
    etcd_settle(self);
    self->leading = false;
    self->resigning = false;
    self->term = 0;
    log_info("log.follow", "name=%s", self->log.name);
    bool unknown = str_eq(self->leader.name, self->log.name);
    log_set_role(&self->log, LOG_FOLLOWS, unknown ? "" : self->leader.name);
    if (!self->flying) { /* else its fate comes first */
        err_code(&why, ERR_NOT_LEADER);
        etcd_append_refuse_queue(self, &why);
    }
}

static void set_leader(struct etcd_log *self, const EtcdKeyValue *kv)
{
    size_t len = kv ? MIN(kv->value.len, (size_t)ETCD_NAME_BYTES - 1) : 0;

    if (len)
        memcpy(self->leader.name, kv->value.data, len);
    self->leader.name[len] = '\0';
    self->leader.term = kv ? kv->create_revision : 0;
}

void etcd_leader_seen(struct etcd_log *self, const EtcdKeyValue *kv)
{
    int64_t before = self->leader.term;
    bool mine = kv && self->lease && kv->lease == self->lease;

    set_leader(self, kv);
    if (mine && !self->leading) {
        become(self, kv->create_revision);
        return;
    }
    if (mine && kv->create_revision == self->term) {
        etcd_resign_next(self);
        return;
    }
    if (self->leading && !self->resigning)
        self->hold_until_ms = now_ms(self) + DEPOSED_HOLD_MS;
    if (self->leading)
        etcd_step_down(self);
    else if (self->leader.term != before)
        log_set_role(&self->log, LOG_FOLLOWS, self->leader.name);
    if (etcd_over(self))
        return;
    if (!kv)
        etcd_campaign_soon(self);
    else if (str_eq(self->leader.name, self->log.name))
        etcd_depose(self, self->leader.term); /* our dead predecessor: the lock says we are alone */
}

/* ---- campaign ---- */

/* Won or lost, the watch says so; unless the other one has gone again meanwhile. */
static void on_campaign(void *arg, const ProtobufCMessage *message, const struct err *err)
{
    struct etcd_log *self = arg;

    self->campaign_call = NULL;
    if (err)
        etcd_sync_later(self);
    else if (!((const EtcdTxnResponse *)message)->succeeded && self->leader.term == 0)
        etcd_campaign_soon(self);
}

static bool may_lead(const struct etcd_log *self)
{
    return self->caught_up && !self->held_back && !self->doubted && self->leader.term == 0 &&
           self->lease && now_ms(self) < self->lease_until_ms;
}

static void on_campaign_time(void *arg)
{
    struct etcd_log *self = arg;
    struct etcd_txn txn;

    self->campaign_timer = NULL;
    if (etcd_over(self) || !may_lead(self) || self->campaign_call)
        return;
    etcd_txn_init(&txn);
    etcd_txn_if_created(&txn, self->keys.leader, 0);
    etcd_txn_put(&txn, self->keys.leader, (struct span){ self->log.name, strlen(self->log.name) },
                 self->lease);
    self->campaign_call = etcd_send(self, &txn, on_campaign);
}

void etcd_campaign_soon(struct etcd_log *self)
{
    if (self->campaign_timer || self->campaign_call || self->held_back || self->doubted)
        return;
    int64_t hold = MAX(self->hold_until_ms - now_ms(self), 0);
    unsigned wait = (unsigned)hold + (unsigned)rng_below(CAMPAIGN_SPREAD_MS);
    self->campaign_timer = self->io->timer(self->io_ctx, wait, on_campaign_time, self);
}

/* ---- lease ---- */

static void on_lease_time(void *arg);

static void lease_again(struct etcd_log *self, unsigned ms)
{
    if (!self->lease_timer && !etcd_over(self))
        self->lease_timer = self->io->timer(self->io_ctx, ms, on_lease_time, self);
}

static void lose_lease(struct etcd_log *self)
{
    self->lease = 0;
    etcd_step_down(self);
    lease_again(self, LEASE_RETRY_MS);
}

static void on_keep_alive(void *arg, const ProtobufCMessage *message, const struct err *err)
{
    struct etcd_log *self = arg;
    const EtcdLeaseKeepAliveResponse *reply = (const void *)message;

    self->lease_call = NULL;
    if (!err && reply->ttl > 0) {
        self->lease_until_ms = self->lease_sent_ms + reply->ttl * 1000;
        lease_again(self, self->lease_s * 1000 / 3);
    } else if (!err || now_ms(self) >= self->lease_until_ms) {
        lose_lease(self);
    } else {
        lease_again(self, LEASE_RETRY_MS);
    }
}

static void on_grant(void *arg, const ProtobufCMessage *message, const struct err *err)
{
    struct etcd_log *self = arg;
    const EtcdLeaseGrantResponse *reply = (const void *)message;

    self->lease_call = NULL;
    if (err || reply->id == 0) {
        lease_again(self, LEASE_RETRY_MS);
        return;
    }
    self->lease = reply->id;
    self->lease_until_ms = self->lease_sent_ms + MAX(reply->ttl, 1) * 1000;
    lease_again(self, self->lease_s * 1000 / 3);
    if (self->caught_up && self->leader.term == 0)
        etcd_campaign_soon(self);
}

static void on_lease_time(void *arg)
{
    struct etcd_log *self = arg;

    self->lease_timer = NULL;
    if (etcd_over(self) || self->lease_call)
        return;
    self->lease_sent_ms = now_ms(self);
    if (self->lease) {
        EtcdLeaseKeepAliveRequest request = ETCD_LEASE_KEEP_ALIVE_REQUEST__INIT;
        request.has_id = true;
        request.id = self->lease;
        self->lease_call = self->io->call(self->io_ctx, ETCD_CALL_LEASE_KEEP_ALIVE, &request.base,
                                          self->lease_s * 1000 / 3, on_keep_alive, self);
    } else {
        EtcdLeaseGrantRequest request = ETCD_LEASE_GRANT_REQUEST__INIT;
        request.has_ttl = true;
        request.ttl = self->lease_s;
        self->lease_call = self->io->call(self->io_ctx, ETCD_CALL_LEASE_GRANT, &request.base,
                                          ETCD_CALL_MS, on_grant, self);
    }
}

void etcd_lease_start(struct etcd_log *self)
{
    on_lease_time(self);
}

/* ---- deposing and handing over ---- */

static void on_depose(void *arg, const ProtobufCMessage *reply, const struct err *err)
{
    struct etcd_log *self = arg;

    (void)reply; /* the watch says what became of the key */
    self->depose_call = NULL;
    if (err)
        etcd_sync_later(self);
}

static void delete_leader(struct etcd_log *self, int64_t term)
{
    struct etcd_txn txn;

    etcd_txn_init(&txn);
    etcd_txn_if_created(&txn, self->keys.leader, term);
    etcd_txn_delete(&txn, self->keys.leader, NULL);
    self->depose_call = etcd_send(self, &txn, on_depose);
}

void etcd_depose(struct etcd_log *self, int64_t term)
{
    int64_t now = now_ms(self);

    if (term == 0 || term != self->leader.term || self->leading || self->depose_call ||
        (term == self->depose_term && now < self->depose_after_ms))
        return;
    self->depose_term = term;
    self->depose_after_ms = now + DEPOSE_AGAIN_MS;
    log_warn("log.depose", "leader=%s term=%lld", self->leader.name, (long long)term);
    delete_leader(self, term);
}

void etcd_resign(struct log *log)
{
    struct etcd_log *self = etcd_self(log);

    if (!self->leading || self->resigning)
        return;
    self->resigning = true;
    self->hold_until_ms = now_ms(self) + RESIGN_HOLD_MS;
    etcd_resign_next(self);
}

void etcd_resign_next(struct etcd_log *self)
{
    if (self->resigning && self->leading && !self->flying && !self->applying && !self->queue &&
        !self->depose_call)
        delete_leader(self, self->term);
}

/* ---- confirming ---- */

static void ask(struct etcd_log *self);

static void answer(struct etcd_log *self, int rc)
{
    struct etcd_confirm *items = TAKE(self->confirm_asked.items);
    size_t len = self->confirm_asked.len;

    self->confirm_asked.len = self->confirm_asked.cap = 0;
    for (size_t i = 0; i < len; i++)
        items[i].fn(items[i].arg, rc);
    free(items);
}

static void on_confirm(void *arg, const ProtobufCMessage *message, const struct err *err)
{
    struct etcd_log *self = arg;
    const EtcdKeyValue *kv = err ? NULL : etcd_reply_first((const EtcdTxnResponse *)message, 0);

    self->confirm_call = NULL;
    bool mine = kv && self->leading && kv->create_revision == self->term;
    if (!err && !mine && self->leading)
        etcd_sync(self); /* the key is gone or another's: learn whose */
    answer(self, mine ? 0 : -(int)ERR_NOT_LEADER);
    ask(self);
}

/* One read under way serves all who asked before it was sent. */
static void ask(struct etcd_log *self)
{
    struct etcd_txn txn;

    if (self->confirm_call || self->confirm_waiting.len == 0)
        return;
    self->confirm_asked.items = TAKE(self->confirm_waiting.items);
    self->confirm_asked.len = self->confirm_waiting.len;
    self->confirm_asked.cap = self->confirm_waiting.cap;
    self->confirm_waiting.len = self->confirm_waiting.cap = 0;
    if (etcd_over(self)) {
        answer(self, -(int)ERR_NOT_LEADER);
        return;
    }
    etcd_txn_init(&txn);
    etcd_txn_get(&txn, ETCD_THEN, self->keys.leader);
    self->confirm_call = etcd_send(self, &txn, on_confirm);
}

void etcd_confirm(struct log *log, log_confirm_fn fn, void *arg)
{
    struct etcd_log *self = etcd_self(log);

    vec_push(&self->confirm_waiting, (struct etcd_confirm){ fn, arg });
    ask(self);
}

void etcd_elect_stop(struct etcd_log *self)
{
    etcd_cancel(self, &self->lease_call);
    etcd_untimer(self, &self->lease_timer);
    etcd_cancel(self, &self->campaign_call);
    etcd_untimer(self, &self->campaign_timer);
    etcd_cancel(self, &self->depose_call);
    etcd_cancel(self, &self->confirm_call);
    answer(self, -(int)ERR_NOT_LEADER);
    ask(self);
}
