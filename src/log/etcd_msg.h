/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd_msg.h - keys, values and transactions of the log in etcd
 *
 *     PREFIX/leader          name of the leader, bound to its lease; create_revision is its term
 *     PREFIX/log/HEX         a batch by the index of its first command
 *     PREFIX/trim            entries up to this index are gone: "INDEX CRC"
 *     PREFIX/member/NAME     what a controller holds on its own disk: "INDEX CRC" of its snapshot
 */
#ifndef LOG_ETCD_MSG_H
#define LOG_ETCD_MSG_H

#include "log/batch.h"
#include "proto/etcd.pb-c.h"

enum {
    ETCD_KEY_BYTES = 512,
    ETCD_BATCH_COMMANDS = 128,     /* two milliseconds of applying them, less than a commit takes */
    ETCD_BATCH_BYTES = 512 * 1024, /* a batch is full after that; compressed it is a quarter */
    ETCD_RECORD_BYTES = 1024 * 1024, /* one command with its payload, at most */
    ETCD_TXN_COMPARES = 4,
    ETCD_TXN_OPS = 8,
};

struct etcd_keys {
    char leader[ETCD_KEY_BYTES], trim[ETCD_KEY_BYTES], log[ETCD_KEY_BYTES], log_end[ETCD_KEY_BYTES],
        member[ETCD_KEY_BYTES], member_end[ETCD_KEY_BYTES], all[ETCD_KEY_BYTES],
        all_end[ETCD_KEY_BYTES];
};
int etcd_keys_init(struct etcd_keys *keys, const char *prefix, struct err *err);
void etcd_keys_entry(const struct etcd_keys *keys, uint64_t first, char out[ETCD_KEY_BYTES]);
bool etcd_key_is(const EtcdKeyValue *kv, const char *key);
bool etcd_key_under(const EtcdKeyValue *kv, const char *prefix);

/*
 * A batch as a value: a head of 32 bytes and the batch's bytes, compressed when that is smaller.
 * The view borrows from `kv` or from `room`.
 */
/* etcd_seal.c; a value has one or not. */
enum { ETCD_SEAL_BYTES = 32 };
struct etcd_seal {
    uint8_t before[ETCD_SEAL_BYTES], seal[ETCD_SEAL_BYTES];
};
void etcd_value_write(struct str *out, const struct log_batch *batch, const struct etcd_seal *seal);
bool etcd_value_seal(struct span value, struct etcd_seal *seal); /* false: it has none */
bool etcd_value_read(const EtcdKeyValue *kv, struct str *room, struct log_batch *batch);
bool etcd_value_decode(struct span value, struct str *room, struct log_batch *batch);
bool etcd_value_head(const EtcdKeyValue *kv, struct log_batch *batch); /* without its bytes */

void etcd_point_write(struct str *out, struct log_point point);
bool etcd_point_read(const EtcdKeyValue *kv, struct log_point *point);

/* A transaction being put together. Keys and values are borrowed until it is sent. */
struct etcd_txn {
    EtcdTxnRequest request;
    EtcdCompare compares[ETCD_TXN_COMPARES], *compare_list[ETCD_TXN_COMPARES];
    EtcdRequestOp ops[ETCD_TXN_OPS], *success_list[ETCD_TXN_OPS], *failure_list[ETCD_TXN_OPS];
    union {
        EtcdRangeRequest range;
        EtcdPutRequest put;
        EtcdDeleteRequest del;
    } bodies[ETCD_TXN_OPS];
    unsigned op_count;
};
enum etcd_branch { ETCD_THEN, ETCD_ELSE };

void etcd_txn_init(struct etcd_txn *txn);
void etcd_txn_if_created(struct etcd_txn *txn, const char *key, int64_t revision); /* 0: absent */
void etcd_txn_if_exists(struct etcd_txn *txn, const char *key);
void etcd_txn_put(struct etcd_txn *txn, const char *key, struct span value, int64_t lease);
void etcd_txn_get(struct etcd_txn *txn, enum etcd_branch branch, const char *key);
void etcd_txn_range(struct etcd_txn *txn, const char *from, const char *end, int64_t limit,
                    EtcdOrder order);
void etcd_txn_delete(struct etcd_txn *txn, const char *from, const char *end);

/* The n-th answer as a range; never NULL (an answer of another kind is an empty range). */
const EtcdRangeResponse *etcd_reply_range(const EtcdTxnResponse *reply, size_t n);
/* The first key of it, or NULL. */
const EtcdKeyValue *etcd_reply_first(const EtcdTxnResponse *reply, size_t n);
int64_t etcd_reply_revision(const EtcdTxnResponse *reply);

#endif
