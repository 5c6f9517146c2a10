/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_uv.h - a log on a libuv loop
 *
 * log_poll() runs when the log's threads have something, log_flush() at the end of every turn of
 * the loop, so that all commands which one turn brought travel together.
 *
 *     binding = log_uv_new(loop);                     // owner.wake calls log_uv_wake(binding)
 *     log = log_sqlite_new(&config);
 *     log_uv_bind(binding, log);
 *     log_start(log, &err);
 *     …
 *     log_free(log); log_uv_close(binding);           // in this order
 */
#ifndef LOG_LOG_UV_H
#define LOG_LOG_UV_H

#include <uv.h>

#include "log/log.h"

struct log_uv;

struct log_uv *log_uv_new(uv_loop_t *loop);
void log_uv_bind(struct log_uv *binding, struct log *log);
void log_uv_wake(struct log_uv *binding); /* from any thread */
/* The loop must run once more for its handles to go. */
void log_uv_close(struct log_uv *binding);

#endif
