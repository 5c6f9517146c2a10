/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert.h - from one controller to several and back, in the same directory
 *
 * The log itself is not carried over: a snapshot of its very end is, with the payloads that the state
 * refers to. Indexes and the chained checksum go on. No log may be open on the directory. Both calls may
 * be repeated after a crash; what was there before is kept beside as *.before.
 *
 *     log_stop(); snapshot of log_point(); convert_to_etcd(); log_etcd_new({ .bootstrap = true });
 *     log_stop(); snapshot of log_point(); convert_to_sqlite(); log_sqlite_new();
 */
#ifndef LOG_CONVERT_H
#define LOG_CONVERT_H

#include "log/log.h"

typedef bool (*convert_live_fn)(void *ctx, const uint8_t digest[LOG_DIGEST_BYTES]);

/* log.db must end at `point`. */
int convert_to_etcd(const char *dir, struct log_point point, convert_live_fn live, void *ctx,
                    struct err *err);
int convert_to_sqlite(const char *dir, struct log_point point, convert_live_fn live, void *ctx,
                      struct err *err);

#endif
