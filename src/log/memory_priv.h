/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_priv.h - the pretended disk, for the engine whose log is elsewhere
 */
#ifndef LOG_MEMORY_PRIV_H
#define LOG_MEMORY_PRIV_H

#include "log/memory.h"

/* ERR_NOT_FOUND when there is none. */
int memory_disk_open_snapshot(struct memory_disk *disk, struct snapshot_reader **out,
                              struct err *err);
void memory_disk_put(struct memory_disk *disk, const struct log_payload *payload);
int memory_disk_get(struct memory_disk *disk, const uint8_t digest[LOG_DIGEST_BYTES],
                    struct str *out, struct err *err);
void memory_disk_drop(struct memory_disk *disk, const uint8_t digest[LOG_DIGEST_BYTES]);

#endif
