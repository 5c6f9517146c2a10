/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd_msg.c - keys, values and transactions of the log in etcd
 */
#include "log/etcd_msg.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/lz.h"

enum { HEAD_BYTES = 32 };

static const char magic[4] = "SLB1", magic_sealed[4] = "SLB2";

int etcd_keys_init(struct etcd_keys *keys, const char *prefix, struct err *err)
{
    if (str_is_empty(prefix) || strlen(prefix) > ETCD_KEY_BYTES - 64 || !str_starts(prefix, "/"))
        return err_set(err, ERR_INVALID, "etcd prefix '%s': a path of at most %d bytes", prefix,
                       ETCD_KEY_BYTES - 64);
    snprintf(keys->leader, ETCD_KEY_BYTES, "%s/leader", prefix);
    snprintf(keys->trim, ETCD_KEY_BYTES, "%s/trim", prefix);
    snprintf(keys->log, ETCD_KEY_BYTES, "%s/log/", prefix);
    snprintf(keys->log_end, ETCD_KEY_BYTES, "%s/log0", prefix); /* '0' follows '/' */
    snprintf(keys->member, ETCD_KEY_BYTES, "%s/member/", prefix);
    snprintf(keys->member_end, ETCD_KEY_BYTES, "%s/member0", prefix);
    snprintf(keys->all, ETCD_KEY_BYTES, "%s/", prefix);
    snprintf(keys->all_end, ETCD_KEY_BYTES, "%s0", prefix);
    return 0;
}

void etcd_keys_entry(const struct etcd_keys *keys, uint64_t first, char out[ETCD_KEY_BYTES])
{
    snprintf(out, ETCD_KEY_BYTES, "%.480s%016" PRIx64, keys->log, first);
}

bool etcd_key_is(const EtcdKeyValue *kv, const char *key)
{
    return kv && kv->key.len == strlen(key) && memcmp(kv->key.data, key, kv->key.len) == 0;
}

bool etcd_key_under(const EtcdKeyValue *kv, const char *prefix)
{
    size_t len = strlen(prefix);

    return kv && kv->key.len > len && memcmp(kv->key.data, prefix, len) == 0;
}

static void put_le(unsigned char *at, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

static uint64_t get_le(const unsigned char *at, int bytes)
{
    uint64_t value = 0;

    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

void etcd_value_write(struct str *out, const struct log_batch *batch, const struct etcd_seal *seal)
{
    unsigned char head[HEAD_BYTES] = { 0 };

    memcpy(head, seal ? magic_sealed : magic, sizeof(magic));
    put_le(head + 4, batch->count, 4);
    put_le(head + 8, batch->first, 8);
    put_le(head + 16, batch->epoch, 8);
    put_le(head + 24, batch->crc, 4);
    size_t start = out->len;
    str_add_len(out, head, sizeof(head));
    if (seal) {
        str_add_len(out, seal->before, sizeof(seal->before));
        str_add_len(out, seal->seal, sizeof(seal->seal));
    }
    if (lz_compress(batch->bytes.ptr, batch->bytes.len, out))
        put_le((unsigned char *)out->data + start + 28, batch->bytes.len, 4);
    else
        str_add_len(out, batch->bytes.ptr, batch->bytes.len);
}

static bool is_sealed(struct span value)
{
    return value.len >= HEAD_BYTES + 2 * ETCD_SEAL_BYTES &&
           memcmp(value.ptr, magic_sealed, sizeof(magic_sealed)) == 0;
}

bool etcd_value_seal(struct span value, struct etcd_seal *seal)
{
    if (!is_sealed(value))
        return false;
    memcpy(seal->before, value.ptr + HEAD_BYTES, ETCD_SEAL_BYTES);
    memcpy(seal->seal, value.ptr + HEAD_BYTES + ETCD_SEAL_BYTES, ETCD_SEAL_BYTES);
    return true;
}

static bool read_head(struct span value, struct log_batch *batch)
{
    const unsigned char *at = (const unsigned char *)value.ptr;

    if (value.len < HEAD_BYTES || (memcmp(at, magic, sizeof(magic)) != 0 && !is_sealed(value)))
        return false;
    *batch = (struct log_batch){
        .count = (uint32_t)get_le(at + 4, 4),
        .first = get_le(at + 8, 8),
        .epoch = get_le(at + 16, 8),
        .crc = (uint32_t)get_le(at + 24, 4),
    };
    return batch->count > 0;
}

bool etcd_value_decode(struct span value, struct str *room, struct log_batch *batch)
{
    if (!read_head(value, batch))
        return false;
    size_t head = HEAD_BYTES + (is_sealed(value) ? 2 * ETCD_SEAL_BYTES : 0);
    batch->bytes = (struct span){ value.ptr + head, value.len - head };
    size_t whole = (size_t)get_le((const unsigned char *)value.ptr + 28, 4);
    if (whole > ETCD_BATCH_BYTES + LOG_PAYLOAD_BYTES + ETCD_RECORD_BYTES)
        return false;
    if (whole) { /* compressed */
        str_clear(room);
        if (!lz_expand(batch->bytes.ptr, batch->bytes.len, whole, room))
            return false;
        batch->bytes = (struct span){ room->data, room->len };
    }
    return batch_is_whole(batch);
}

static struct span value_of(const EtcdKeyValue *kv)
{
    return (struct span){ (const char *)kv->value.data, kv->value.len };
}

bool etcd_value_head(const EtcdKeyValue *kv, struct log_batch *batch)
{
    return read_head(value_of(kv), batch) && batch->first > 0;
}

bool etcd_value_read(const EtcdKeyValue *kv, struct str *room, struct log_batch *batch)
{
    return etcd_value_decode(value_of(kv), room, batch) && batch->first > 0;
}

void etcd_point_write(struct str *out, struct log_point point)
{
    str_addf(out, "%" PRIu64 " %" PRIu32, point.index, point.crc);
}

bool etcd_point_read(const EtcdKeyValue *kv, struct log_point *point)
{
    char text[64];
    uint64_t crc;

    if (kv->value.len == 0 || kv->value.len >= sizeof(text))
        return false;
    memcpy(text, kv->value.data, kv->value.len);
    text[kv->value.len] = '\0';
    char *blank = strchr(text, ' ');
    if (!blank)
        return false;
    *blank = '\0';
    if (!str_to_u64(text, UINT64_MAX, &point->index) || !str_to_u64(blank + 1, UINT32_MAX, &crc))
        return false;
    point->crc = (uint32_t)crc;
    return true;
}

static ProtobufCBinaryData text_data(const char *text)
{
    return (ProtobufCBinaryData){ strlen(text), (uint8_t *)(uintptr_t)text };
}

void etcd_txn_init(struct etcd_txn *txn)
{
    memset(txn, 0, sizeof(*txn));
    etcd_txn_request__init(&txn->request);
    txn->request.compare = txn->compare_list;
    txn->request.success = txn->success_list;
    txn->request.failure = txn->failure_list;
}

static EtcdCompare *add_compare(struct etcd_txn *txn, const char *key)
{
    EtcdCompare *compare = &txn->compares[txn->request.n_compare];

    etcd_compare__init(compare);
    compare->has_key = compare->has_result = compare->has_target = true;
    compare->key = text_data(key);
    txn->compare_list[txn->request.n_compare++] = compare;
    return compare;
}

void etcd_txn_if_created(struct etcd_txn *txn, const char *key, int64_t revision)
{
    EtcdCompare *compare = add_compare(txn, key);

    compare->result = ETCD_EQUAL;
    compare->target = ETCD_TARGET_CREATE;
    compare->has_create_revision = true;
    compare->create_revision = revision;
}

void etcd_txn_if_exists(struct etcd_txn *txn, const char *key)
{
    EtcdCompare *compare = add_compare(txn, key);

    compare->result = ETCD_GREATER;
    compare->target = ETCD_TARGET_VERSION;
    compare->has_version = true;
}

static EtcdRequestOp *add_op(struct etcd_txn *txn, enum etcd_branch branch)
{
    EtcdRequestOp *op = &txn->ops[txn->op_count];

    etcd_request_op__init(op);
    if (branch == ETCD_THEN)
        txn->success_list[txn->request.n_success++] = op;
    else
        txn->failure_list[txn->request.n_failure++] = op;
    return op;
}

void etcd_txn_put(struct etcd_txn *txn, const char *key, struct span value, int64_t lease)
{
    EtcdRequestOp *op = add_op(txn, ETCD_THEN);
    EtcdPutRequest *put = &txn->bodies[txn->op_count++].put;

    etcd_put_request__init(put);
    put->has_key = put->has_value = true;
    put->key = text_data(key);
    put->value = (ProtobufCBinaryData){ value.len, (uint8_t *)(uintptr_t)value.ptr };
    put->has_lease = lease != 0;
    put->lease = lease;
    op->put = put;
}

static EtcdRangeRequest *add_range(struct etcd_txn *txn, enum etcd_branch branch, const char *from)
{
    EtcdRequestOp *op = add_op(txn, branch);
    EtcdRangeRequest *range = &txn->bodies[txn->op_count++].range;

    etcd_range_request__init(range);
    range->has_key = true;
    range->key = text_data(from);
    op->range = range;
    return range;
}

void etcd_txn_get(struct etcd_txn *txn, enum etcd_branch branch, const char *key)
{
    add_range(txn, branch, key);
}

void etcd_txn_range(struct etcd_txn *txn, const char *from, const char *end, int64_t limit,
                    EtcdOrder order)
{
    EtcdRangeRequest *range = add_range(txn, ETCD_THEN, from);

    range->has_range_end = range->has_limit = range->has_sort_order = true;
    range->range_end = text_data(end);
    range->limit = limit;
    range->sort_order = order;
}

void etcd_txn_delete(struct etcd_txn *txn, const char *from, const char *end)
{
    EtcdRequestOp *op = add_op(txn, ETCD_THEN);
    EtcdDeleteRequest *del = &txn->bodies[txn->op_count++].del;

    etcd_delete_request__init(del);
    del->has_key = true;
    del->key = text_data(from);
    del->has_range_end = end != NULL;
    if (end)
        del->range_end = text_data(end);
    op->delete_range = del;
}

const EtcdRangeResponse *etcd_reply_range(const EtcdTxnResponse *reply, size_t n)
{
    static const EtcdRangeResponse none = ETCD_RANGE_RESPONSE__INIT;

    return n < reply->n_responses && reply->responses[n]->range ? reply->responses[n]->range
                                                                : &none;
}

const EtcdKeyValue *etcd_reply_first(const EtcdTxnResponse *reply, size_t n)
{
    const EtcdRangeResponse *range = etcd_reply_range(reply, n);

    return range->n_kvs ? range->kvs[0] : NULL;
}

int64_t etcd_reply_revision(const EtcdTxnResponse *reply)
{
    return reply->header ? reply->header->revision : 0;
}
