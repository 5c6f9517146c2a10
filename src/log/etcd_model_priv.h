/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd_model_priv.h - the store of the model: keys with revisions, leases, history
 */
#ifndef LOG_ETCD_MODEL_PRIV_H
#define LOG_ETCD_MODEL_PRIV_H

#include "base/str.h"
#include "base/vec.h"
#include "log/etcd_io.h"

struct model_key {
    struct str key, value;
    int64_t create, mod, version, lease;
};

struct model_change {
    int64_t revision;
    bool gone;
    struct model_key key;
};

struct model_lease {
    int64_t id, ttl_s, until_ms;
};

struct model_kv {
    int64_t revision, compacted, next_lease;
    bool full;
    VEC(struct model_key) keys; /* by key */
    VEC(struct model_change) history;
    VEC(struct model_lease) leases;
};

const ProtobufCMessageDescriptor *model_reply_type(enum etcd_method method);
int model_apply(struct model_kv *kv, int64_t now_ms, enum etcd_method method,
                const struct str *request, struct str *reply, struct err *err);
bool model_expire(struct model_kv *kv, int64_t now_ms); /* true: keys went */
/* What a watch has not been told; moves *next on. False: nothing. */
bool model_watch_pack(const struct model_kv *kv, const struct str *key, const struct str *end,
                      int64_t *next, struct str *out);
const char *model_kv_peek(struct model_kv *kv, const char *key, size_t *len);
size_t model_kv_count(const struct model_kv *kv, const char *prefix);
void model_kv_done(struct model_kv *kv);

#endif
