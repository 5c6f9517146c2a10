/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.h - the bytes of a batch
 *
 * A batch is what is written, sent and synced in one step: records back to back, little-endian.
 *
 *     record  = u32 command bytes, u32 payload count, command, payload …
 *     payload = digest[32], u32 bytes, bytes
 *
 * Its checksum continues that of the batch before it, so a batch that is missing, repeated, or
 * written by somebody else is found at the next one, whatever the batch itself says.
 */
#ifndef LOG_BATCH_H
#define LOG_BATCH_H

#include "log/log.h"

enum { BATCH_BYTES = 1024 * 1024 }; /* full after that; one command alone may be larger */

struct batch {
    struct batch *next;
    uint64_t first, epoch;
    uint32_t count, crc;
    struct str bytes;
    int rc; /* what became of it, with the reason */
    struct err err;
};

void batch_free(struct batch *batch);
void batch_reset(struct batch *batch); /* empty, keeping its memory */

/* Bytes that the record takes; 0 when the command or a payload is larger than allowed. */
size_t batch_record_bytes(struct span command, const struct log_payload *payloads, uint32_t count);
void batch_add(struct batch *batch, struct span command, const struct log_payload *payloads,
               uint32_t count);

uint32_t batch_crc(uint32_t before, const struct log_batch *batch);
struct log_batch batch_view(const struct batch *batch, bool own);
/* Every record lies inside the bytes, and there are `count` of them. */
bool batch_is_whole(const struct log_batch *batch);

#endif
