/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd_model_kv.c - the store of the model: keys with revisions, leases, history
 */
#include <stdlib.h>
#include <string.h>

#include "log/etcd_model_priv.h"

const ProtobufCMessageDescriptor *model_reply_type(enum etcd_method method)
{
    switch (method) {
    case ETCD_CALL_TXN:
        return &etcd_txn_response__descriptor;
    case ETCD_CALL_COMPACT:
        return &etcd_compact_response__descriptor;
    case ETCD_CALL_LEASE_GRANT:
        return &etcd_lease_grant_response__descriptor;
    case ETCD_CALL_LEASE_REVOKE:
        return &etcd_lease_revoke_response__descriptor;
    case ETCD_CALL_LEASE_KEEP_ALIVE:
        return &etcd_lease_keep_alive_response__descriptor;
    default:
        return NULL;
    }
}

static int compare_key(const struct model_key *a, const void *key, size_t len)
{
    int order = memcmp(str_text(&a->key), key, MIN(a->key.len, len));

    return order ? order : a->key.len < len ? -1 : a->key.len > len;
}

/* The position of the first key that is not less. */
static size_t lower_bound(const struct model_kv *kv, const void *key, size_t len)
{
    size_t at = 0;

    while (at < kv->keys.len && compare_key(&kv->keys.items[at], key, len) < 0)
        at++;
    return at;
}

static struct model_key *find(const struct model_kv *kv, ProtobufCBinaryData key)
{
    size_t at = lower_bound(kv, key.data, key.len);

    return at < kv->keys.len && compare_key(&kv->keys.items[at], key.data, key.len) == 0
               ? &kv->keys.items[at]
               : NULL;
}

static struct model_key copy_key(const struct model_key *from)
{
    struct model_key key = *from;

    key.key = key.value = (struct str){ 0 };
    str_add_len(&key.key, str_text(&from->key), from->key.len);
    str_add_len(&key.value, str_text(&from->value), from->value.len);
    return key;
}

static void free_key(struct model_key *key)
{
    str_done(&key->key);
    str_done(&key->value);
}

static void record(struct model_kv *kv, const struct model_key *key, bool gone)
{
    struct model_change change = { kv->revision, gone, copy_key(key) };

    vec_push(&kv->history, change);
}

static void put(struct model_kv *kv, const EtcdPutRequest *request)
{
    struct model_key *key = find(kv, request->key);

    if (!key) {
        size_t at = lower_bound(kv, request->key.data, request->key.len);
        struct model_key fresh = { .create = kv->revision };
        str_add_len(&fresh.key, request->key.data, request->key.len);
        vec_push(&kv->keys, fresh);
        memmove(&kv->keys.items[at + 1], &kv->keys.items[at],
                (kv->keys.len - at - 1) * sizeof(fresh));
        key = &kv->keys.items[at];
        *key = fresh;
    }
    str_clear(&key->value);
    str_add_len(&key->value, request->value.data, request->value.len);
    key->mod = kv->revision;
    key->version++;
    key->lease = request->lease;
    record(kv, key, false);
}

static void remove_at(struct model_kv *kv, size_t at)
{
    kv->keys.items[at].mod = kv->revision;
    record(kv, &kv->keys.items[at], true);
    free_key(&kv->keys.items[at]);
    vec_remove(&kv->keys, at);
}

static bool in_range(const struct model_key *key, ProtobufCBinaryData from, ProtobufCBinaryData end)
{
    if (end.len == 0)
        return compare_key(key, from.data, from.len) == 0;
    return compare_key(key, from.data, from.len) >= 0 && compare_key(key, end.data, end.len) < 0;
}

static size_t remove_range(struct model_kv *kv, const EtcdDeleteRequest *request)
{
    size_t count = 0;

    for (size_t at = kv->keys.len; at-- > 0;) {
        if (in_range(&kv->keys.items[at], request->key, request->range_end)) {
            remove_at(kv, at);
            count++;
        }
    }
    return count;
}

static EtcdKeyValue *show_key(const struct model_key *key)
{
    EtcdKeyValue *kv = NEW(EtcdKeyValue);

    etcd_key_value__init(kv);
    kv->has_key = kv->has_value = kv->has_create_revision = kv->has_mod_revision = true;
    kv->has_version = kv->has_lease = true;
    kv->key = (ProtobufCBinaryData){ key->key.len, (uint8_t *)key->key.data };
    kv->value = (ProtobufCBinaryData){ key->value.len, (uint8_t *)key->value.data };
    kv->create_revision = key->create;
    kv->mod_revision = key->mod;
    kv->version = key->version;
    kv->lease = key->lease;
    return kv;
}

static void range(const struct model_kv *kv, const EtcdRangeRequest *request,
                  EtcdRangeResponse *reply)
{
    bool down = request->sort_order == ETCD_ORDER_DESCEND;

    reply->kvs = NEW_ARRAY(EtcdKeyValue *, kv->keys.len + 1);
    reply->has_count = reply->has_more = true;
    for (size_t i = 0; i < kv->keys.len; i++) {
        const struct model_key *key = &kv->keys.items[down ? kv->keys.len - 1 - i : i];
        if (!in_range(key, request->key, request->range_end))
            continue;
        reply->count++;
        if (request->limit && reply->n_kvs >= (size_t)request->limit)
            reply->more = true;
        else
            reply->kvs[reply->n_kvs++] = show_key(key);
    }
}

static bool holds(const struct model_kv *kv, const EtcdCompare *compare)
{
    const struct model_key *key = find(kv, compare->key);
    int64_t have = !key                                     ? 0
                   : compare->target == ETCD_TARGET_VERSION ? key->version
                   : compare->target == ETCD_TARGET_CREATE  ? key->create
                                                            : key->mod;
    int64_t want = compare->target == ETCD_TARGET_VERSION  ? compare->version
                   : compare->target == ETCD_TARGET_CREATE ? compare->create_revision
                                                           : compare->mod_revision;

    switch (compare->result) {
    case ETCD_EQUAL:
        return have == want;
    case ETCD_GREATER:
        return have > want;
    case ETCD_LESS:
        return have < want;
    default:
        return have != want;
    }
}

static EtcdHeader *header(const struct model_kv *kv)
{
    EtcdHeader *head = NEW(EtcdHeader);

    etcd_header__init(head);
    head->has_revision = true;
    head->revision = kv->revision;
    return head;
}

static void run_op(struct model_kv *kv, const EtcdRequestOp *op, EtcdResponseOp *answer)
{
    if (op->range) {
        answer->range = NEW(EtcdRangeResponse);
        etcd_range_response__init(answer->range);
        range(kv, op->range, answer->range);
    } else if (op->put) {
        put(kv, op->put);
        answer->put = NEW(EtcdPutResponse);
        etcd_put_response__init(answer->put);
    } else if (op->delete_range) {
        answer->delete_range = NEW(EtcdDeleteResponse);
        etcd_delete_response__init(answer->delete_range);
        answer->delete_range->has_deleted = true;
        answer->delete_range->deleted = (int64_t)remove_range(kv, op->delete_range);
    }
}

static void free_txn_reply(EtcdTxnResponse *reply)
{
    for (size_t i = 0; i < reply->n_responses; i++) {
        EtcdResponseOp *op = reply->responses[i];
        for (size_t j = 0; op->range && j < op->range->n_kvs; j++)
            free(op->range->kvs[j]);
        if (op->range)
            free(op->range->kvs);
        free(op->range);
        free(op->put);
        free(op->delete_range);
        free(op);
    }
    free(reply->responses);
    free(reply->header);
}

static void pack(const ProtobufCMessage *message, struct str *out)
{
    size_t len = protobuf_c_message_get_packed_size(message);

    str_reserve(out, len + 1);
    out->len = protobuf_c_message_pack(message, (uint8_t *)out->data);
}

static bool writes(EtcdRequestOp *const *ops, size_t count, bool puts_only)
{
    for (size_t i = 0; i < count; i++) {
        if (ops[i]->put || (!puts_only && ops[i]->delete_range))
            return true;
    }
    return false;
}

static struct model_lease *find_lease(struct model_kv *kv, int64_t id)
{
    for (size_t i = 0; i < kv->leases.len; i++) {
        if (kv->leases.items[i].id == id)
            return &kv->leases.items[i];
    }
    return NULL;
}

/* A put under a lease that has ended fails the whole transaction. */
static bool leases_exist(struct model_kv *kv, EtcdRequestOp *const *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (ops[i]->put && ops[i]->put->lease && !find_lease(kv, ops[i]->put->lease))
            return false;
    }
    return true;
}

static int txn(struct model_kv *kv, const EtcdTxnRequest *request, struct str *out, struct err *err)
{
    EtcdTxnResponse reply = ETCD_TXN_RESPONSE__INIT;
    bool ok = true;

    for (size_t i = 0; i < request->n_compare; i++)
        ok = ok && holds(kv, request->compare[i]);
    EtcdRequestOp *const *ops = ok ? request->success : request->failure;
    size_t count = ok ? request->n_success : request->n_failure;
    if (kv->full && writes(request->success, request->n_success, true))
        return err_set(err, ERR_TOO_LARGE, "etcdserver: mvcc: database space exceeded");
    if (!leases_exist(kv, ops, count))
        return err_set(err, ERR_NOT_FOUND, "etcdserver: requested lease not found");
    if (writes(ops, count, false))
        kv->revision++;
    reply.responses = NEW_ARRAY(EtcdResponseOp *, count + 1);
    for (size_t i = 0; i < count; i++) {
        reply.responses[i] = NEW(EtcdResponseOp);
        etcd_response_op__init(reply.responses[i]);
        run_op(kv, ops[i], reply.responses[i]);
        reply.n_responses++;
    }
    reply.header = header(kv);
    reply.has_succeeded = true;
    reply.succeeded = ok;
    pack(&reply.base, out);
    free_txn_reply(&reply);
    return 0;
}

static void grant(struct model_kv *kv, int64_t now_ms, const EtcdLeaseGrantRequest *request,
                  struct str *out)
{
    EtcdLeaseGrantResponse reply = ETCD_LEASE_GRANT_RESPONSE__INIT;
    struct model_lease lease = { ++kv->next_lease, request->ttl, now_ms + request->ttl * 1000 };

    vec_push(&kv->leases, lease);
    reply.has_id = reply.has_ttl = true;
    reply.id = lease.id;
    reply.ttl = lease.ttl_s;
    pack(&reply.base, out);
}

static void keep_alive(struct model_kv *kv, int64_t now_ms,
                       const EtcdLeaseKeepAliveRequest *request, struct str *out)
{
    EtcdLeaseKeepAliveResponse reply = ETCD_LEASE_KEEP_ALIVE_RESPONSE__INIT;
    struct model_lease *lease = find_lease(kv, request->id);

    if (lease)
        lease->until_ms = now_ms + lease->ttl_s * 1000;
    reply.has_id = reply.has_ttl = true;
    reply.id = request->id;
    reply.ttl = lease ? lease->ttl_s : 0;
    pack(&reply.base, out);
}

static int compact(struct model_kv *kv, const EtcdCompactRequest *request, struct str *out,
                   struct err *err)
{
    EtcdCompactResponse reply = ETCD_COMPACT_RESPONSE__INIT;

    if (request->revision <= kv->compacted)
        return err_set(err, ERR_RANGE, "etcdserver: mvcc: required revision has been compacted");
    kv->compacted = request->revision;
    while (kv->history.len && kv->history.items[0].revision <= kv->compacted) {
        free_key(&kv->history.items[0].key);
        vec_remove(&kv->history, 0);
    }
    pack(&reply.base, out);
    return 0;
}

static void drop_lease(struct model_kv *kv, size_t at)
{
    int64_t id = kv->leases.items[at].id;
    bool first = true;

    vec_remove(&kv->leases, at);
    for (size_t i = kv->keys.len; i-- > 0;) {
        if (kv->keys.items[i].lease != id)
            continue;
        kv->revision += first;
        first = false;
        remove_at(kv, i);
    }
}

bool model_expire(struct model_kv *kv, int64_t now_ms)
{
    int64_t before = kv->revision;

    for (size_t i = kv->leases.len; i-- > 0;) {
        if (kv->leases.items[i].until_ms < now_ms)
            drop_lease(kv, i);
    }
    return kv->revision != before;
}

int model_apply(struct model_kv *kv, int64_t now_ms, enum etcd_method method,
                const struct str *request, struct str *reply, struct err *err)
{
    static const ProtobufCMessageDescriptor *const types[ETCD_CALL_COUNT] = {
        [ETCD_CALL_TXN] = &etcd_txn_request__descriptor,
        [ETCD_CALL_COMPACT] = &etcd_compact_request__descriptor,
        [ETCD_CALL_LEASE_GRANT] = &etcd_lease_grant_request__descriptor,
        [ETCD_CALL_LEASE_KEEP_ALIVE] = &etcd_lease_keep_alive_request__descriptor,
    };
    ProtobufCMessage *message;
    int rc = 0;

    if (!types[method])
        return err_set(err, ERR_UNSUPPORTED, "the model does not know this call");
    message = protobuf_c_message_unpack(types[method], NULL, request->len,
                                        (const uint8_t *)str_text(request));
    if (method == ETCD_CALL_TXN)
        rc = txn(kv, (const EtcdTxnRequest *)message, reply, err);
    else if (method == ETCD_CALL_COMPACT)
        rc = compact(kv, (const EtcdCompactRequest *)message, reply, err);
    else if (method == ETCD_CALL_LEASE_GRANT)
        grant(kv, now_ms, (const EtcdLeaseGrantRequest *)message, reply);
    else
        keep_alive(kv, now_ms, (const EtcdLeaseKeepAliveRequest *)message, reply);
    protobuf_c_message_free_unpacked(message, NULL);
    return rc;
}

bool model_watch_pack(const struct model_kv *kv, const struct str *key, const struct str *end,
                      int64_t *next, struct str *out)
{
    ProtobufCBinaryData from = { key->len, (uint8_t *)key->data };
    ProtobufCBinaryData to = { end->len, (uint8_t *)end->data };
    EtcdWatchResponse message = ETCD_WATCH_RESPONSE__INIT;

    if (*next <= kv->compacted) {
        message.has_canceled = message.has_compact_revision = true;
        message.canceled = true;
        message.compact_revision = kv->compacted;
        *next = INT64_MAX; /* nothing more comes */
        pack(&message.base, out);
        return true;
    }
    message.events = NEW_ARRAY(EtcdEvent *, kv->history.len + 1);
    for (size_t i = 0; i < kv->history.len; i++) {
        const struct model_change *change = &kv->history.items[i];
        if (change->revision < *next || !in_range(&change->key, from, to))
            continue;
        EtcdEvent *event = NEW(EtcdEvent);
        etcd_event__init(event);
        event->has_type = true;
        event->type = change->gone ? ETCD_DELETE : ETCD_PUT;
        event->kv = show_key(&change->key);
        message.events[message.n_events++] = event;
    }
    bool any = message.n_events > 0;
    if (any) {
        message.header = header(kv);
        pack(&message.base, out);
        *next = kv->revision + 1;
    }
    for (size_t i = 0; i < message.n_events; i++) {
        free(message.events[i]->kv);
        free(message.events[i]);
    }
    free(message.events);
    free(message.header);
    return any;
}

const char *model_kv_peek(struct model_kv *kv, const char *key, size_t *len)
{
    const struct model_key *found =
        find(kv, (ProtobufCBinaryData){ strlen(key), (uint8_t *)(uintptr_t)key });

    if (found && len)
        *len = found->value.len;
    return found ? str_text(&found->value) : NULL;
}

size_t model_kv_count(const struct model_kv *kv, const char *prefix)
{
    size_t count = 0;

    for (size_t i = 0; i < kv->keys.len; i++)
        count += str_starts(str_text(&kv->keys.items[i].key), prefix);
    return count;
}

void model_kv_done(struct model_kv *kv)
{
    for (size_t i = 0; i < kv->keys.len; i++)
        free_key(&kv->keys.items[i]);
    for (size_t i = 0; i < kv->history.len; i++)
        free_key(&kv->history.items[i].key);
    vec_done(&kv->keys);
    vec_done(&kv->history);
    vec_done(&kv->leases);
}
