/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watermark.h - the last index that was acknowledged, beside the database
 *
 * SQLite drops the end of a damaged write-ahead log without a word. This file lets us notice: it is
 * written after every commit, before the commit is told to anybody, and never synced, so it costs a
 * system call. After a power cut it may be behind the database, which is fine; the database behind
 * it is not. Two slots in blocks of their own are written in turn: one torn write leaves the other.
 */
#ifndef LOG_WATERMARK_H
#define LOG_WATERMARK_H

#include "log/log.h"

/* Opens or creates it (synced then); returns the descriptor. */
int watermark_open(const char *dir, bool create, struct err *err);
/* The newer slot; ERR_CORRUPT when neither is whole. */
int watermark_read(int fd, struct log_point *out, struct err *err);
int watermark_write(int fd, struct log_point point, uint64_t turn, struct err *err);

#endif
