/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd_trim.c - telling the others what we hold, and trimming what a majority holds
 *
 * (1) The leader trims up to what a majority has announced, and never the newest entry: the next
 *     append is made on the condition that it is there.
 * (2) A snapshot is announced when a majority has confirmed the state that it holds: log_confirmed().
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "log/etcd_priv.h"
#include "sys/log.h"

void etcd_trim_note_member(struct etcd_log *self, const EtcdKeyValue *kv)
{
    size_t skip = strlen(self->keys.member), len = kv->key.len - skip;
    struct etcd_member_note note = { 0 };

    if (len >= sizeof(note.name) || !etcd_point_read(kv, &note.held))
        return;
    memcpy(note.name, kv->key.data + skip, len);
    for (size_t i = 0; i < self->members.len; i++) {
        if (str_eq(self->members.items[i].name, note.name)) {
            self->members.items[i] = note;
            etcd_trim(self);
            return;
        }
    }
    if (self->members.len < 64)
        vec_push(&self->members, note);
    etcd_trim(self);
}

static void on_announced(void *arg, const ProtobufCMessage *reply, const struct err *err)
{
    struct etcd_log *self = arg;

    (void)reply;
    self->announce_call = NULL;
    if (err)
        self->announced.index = 0; /* again after the next read or snapshot */
}

void etcd_trim_announce(struct etcd_log *self)
{
    CLEANUP(str_done) struct str value = { 0 };
    CLEANUP(freep) char *key = mem_printf("%s%s", self->keys.member, self->log.name);
    struct etcd_txn txn;

    if (!self->caught_up || self->held_back || self->announce_call || etcd_over(self) ||
        self->log.snapshot.index <= self->announced.index ||
        self->log.snapshot.index > self->confirmed)
        return;
    self->announced = self->log.snapshot;
    etcd_point_write(&value, self->announced);
    etcd_txn_init(&txn);
    etcd_txn_put(&txn, key, (struct span){ value.data, value.len }, 0);
    self->announce_call = etcd_send(self, &txn, on_announced);
}

static void on_forgotten(void *arg, const ProtobufCMessage *reply, const struct err *err)
{
    struct etcd_log *self = arg;

    (void)reply;
    self->forget_call = NULL;
    if (err)
        log_warn("log.forget", "failed: %s", err->text);
}

void log_etcd_forget_controller(struct log *log, const char *name)
{
    struct etcd_log *self = etcd_self(log);
    CLEANUP(freep) char *key = mem_printf("%s%s", self->keys.member, name);
    struct etcd_txn txn;

    for (size_t i = 0; i < self->members.len; i++) {
        if (str_eq(self->members.items[i].name, name)) {
            vec_remove(&self->members, i);
            break;
        }
    }
    if (etcd_over(self) || self->forget_call)
        return;
    etcd_txn_init(&txn);
    etcd_txn_delete(&txn, key, NULL);
    self->forget_call = etcd_send(self, &txn, on_forgotten);
}

static void on_compacted(void *arg, const ProtobufCMessage *reply, const struct err *err)
{
    struct etcd_log *self = arg;

    (void)reply, (void)err; /* the next one does it too */
    self->compact_call = NULL;
}

static void on_trimmed(void *arg, const ProtobufCMessage *message, const struct err *err)
{
    struct etcd_log *self = arg;
    const EtcdTxnResponse *reply = (const void *)message;
    EtcdCompactRequest request = ETCD_COMPACT_REQUEST__INIT;

    self->trim_call = NULL;
    if (err || !reply->succeeded || etcd_over(self) || self->compact_call)
        return;
    request.has_revision = true;
    request.revision = etcd_reply_revision(reply);
    self->compact_call = self->io->call(self->io_ctx, ETCD_CALL_COMPACT, &request.base,
                                        ETCD_CALL_MS * 10, on_compacted, self);
}

static int compare_held(const void *a, const void *b)
{
    uint64_t x = ((const struct log_point *)a)->index, y = ((const struct log_point *)b)->index;

    return x < y ? 1 : x > y ? -1 : 0;
}

/* The newest point that a majority has announced; index 0: none. */
static struct log_point majority_holds(const struct etcd_log *self)
{
    struct log_point held[64];
    size_t count = 0, majority = self->controllers / 2 + 1;

    for (size_t i = 0; i < self->members.len && count < ARRAY_LEN(held); i++)
        held[count++] = self->members.items[i].held;
    if (count < majority)
        return (struct log_point){ 0, 0 };
    qsort(held, count, sizeof(held[0]), compare_held);
    return held[majority - 1];
}

void etcd_trim(struct etcd_log *self)
{
    CLEANUP(str_done) struct str value = { 0 };
    struct log_point upto = majority_holds(self);
    char end[ETCD_KEY_BYTES];
    struct etcd_txn txn;

    if (!self->leading || self->doubted || self->trim_call || etcd_over(self) ||
        upto.index <= self->trimmed.index || upto.index >= self->last_first)
        return;
    log_info("log.trim", "upto=%" PRIu64, upto.index);
    etcd_point_write(&value, upto);
    etcd_keys_entry(&self->keys, upto.index + 1, end);
    etcd_txn_init(&txn);
    etcd_txn_if_created(&txn, self->keys.leader, self->term);
    etcd_txn_put(&txn, self->keys.trim, (struct span){ value.data, value.len }, 0);
    etcd_txn_delete(&txn, self->keys.log, end);
    self->trim_call = etcd_send(self, &txn, on_trimmed);
}

void etcd_trim_stop(struct etcd_log *self)
{
    etcd_cancel(self, &self->announce_call);
    etcd_cancel(self, &self->trim_call);
    etcd_cancel(self, &self->compact_call);
    etcd_cancel(self, &self->forget_call);
}
