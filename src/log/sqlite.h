/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite.h - the log of a lone controller: SQLite, one disk, group commit
 *
 * In config->dir: log.db (with -wal and -shm), watermark, snapshot-INDEX, lock. A full disk refuses
 * batches with ERR_DISK_FULL until there is room. Any other error is the end (failed()).
 */
#ifndef LOG_SQLITE_H
#define LOG_SQLITE_H

#include "log/log.h"

struct log *log_sqlite_new(const struct log_config *config);

#endif
