/* SPDX-License-Identifier: Apache-2.0 */
/*
 * etcd_io.h - what log/etcd.c asks of the world: calls to etcd, a watch, time
 *
 * etcd_rpc.c binds it to a real cluster on a libuv loop, etcd_model.c to a model of one, in which a
 * simulation decides what is delayed, repeated or lost. All callbacks come from the loop, never from
 * inside the function that was given them.
 */
#ifndef LOG_ETCD_IO_H
#define LOG_ETCD_IO_H

#include "base/err.h"
#include "proto/etcd.pb-c.h"

enum etcd_method {
    ETCD_CALL_TXN, /* every read and write of keys */
    ETCD_CALL_COMPACT,
    ETCD_CALL_LEASE_GRANT,
    ETCD_CALL_LEASE_REVOKE,
    ETCD_CALL_LEASE_KEEP_ALIVE, /* one exchange of the stream */
    ETCD_CALL_MEMBER_LIST,
    ETCD_CALL_MEMBER_ADD,
    ETCD_CALL_MEMBER_REMOVE,
    ETCD_CALL_MEMBER_PROMOTE,
    ETCD_CALL_STATUS,
    ETCD_CALL_ALARM,
    ETCD_CALL_MOVE_LEADER,
    ETCD_CALL_DEFRAGMENT,
    ETCD_CALL_COUNT
};

/* err == NULL: `reply` is the answer, valid during the call. Otherwise nobody knows what happened. */
typedef void (*etcd_done_fn)(void *arg, const ProtobufCMessage *reply, const struct err *err);
typedef void (*etcd_watch_fn)(void *arg, const EtcdWatchResponse *message);
typedef void (*etcd_end_fn)(void *arg, const struct err *err); /* the watch is over */

struct etcd_io {
    int64_t (*now_ms)(void *ctx); /* monotonic */
    /* The message is packed before it returns. `done` comes exactly once, unless cancelled. */
    void *(*call)(void *ctx, enum etcd_method method, const ProtobufCMessage *request,
                  unsigned timeout_ms, etcd_done_fn done, void *arg);
    void (*cancel)(void *ctx, void *call);
    void *(*watch)(void *ctx, const EtcdWatchRequest *request, etcd_watch_fn message,
                   etcd_end_fn end, void *arg);
    void (*unwatch)(void *ctx, void *watch); /* `end` does not come */
    void *(*timer)(void *ctx, unsigned ms, void (*fn)(void *arg), void *arg); /* once */
    void (*untimer)(void *ctx, void *timer);
};

#endif
