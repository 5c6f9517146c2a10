/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.c - the bytes of a batch
 */
#include "log/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"

enum { RECORD_HEAD = 8, PAYLOAD_HEAD = LOG_DIGEST_BYTES + 4 };

static void add_u32(struct str *str, uint32_t value)
{
    unsigned char bytes[4] = { (unsigned char)value, (unsigned char)(value >> 8),
                               (unsigned char)(value >> 16), (unsigned char)(value >> 24) };

    str_add_len(str, bytes, sizeof(bytes));
}

static uint32_t get_u32(const char *at)
{
    const unsigned char *byte = (const unsigned char *)at;

    return (uint32_t)byte[0] | (uint32_t)byte[1] << 8 | (uint32_t)byte[2] << 16 |
           (uint32_t)byte[3] << 24;
}

static void put_u64(unsigned char *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

void batch_free(struct batch *batch)
{
    if (batch)
        str_done(&batch->bytes);
    free(batch);
}

void batch_reset(struct batch *batch)
{
    struct str bytes = batch->bytes;

    str_clear(&bytes);
    *batch = (struct batch){ .bytes = bytes };
}

size_t batch_record_bytes(struct span command, const struct log_payload *payloads, uint32_t count)
{
    size_t total = RECORD_HEAD + command.len;

    if (command.len > LIMIT_BATCH_BYTES || count > LIMIT_HET_COMPONENTS)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        if (payloads[i].bytes.len > LOG_PAYLOAD_BYTES)
            return 0;
        total += PAYLOAD_HEAD + payloads[i].bytes.len;
    }
    return total <= LOG_QUEUE_BYTES ? total : 0;
}

void batch_add(struct batch *batch, struct span command, const struct log_payload *payloads,
               uint32_t count)
{
    struct str *bytes = &batch->bytes;

    str_reserve(bytes, batch_record_bytes(command, payloads, count));
    add_u32(bytes, (uint32_t)command.len);
    add_u32(bytes, count);
    str_add_len(bytes, command.ptr, command.len);
    for (uint32_t i = 0; i < count; i++) {
        str_add_len(bytes, payloads[i].digest, LOG_DIGEST_BYTES);
        add_u32(bytes, (uint32_t)payloads[i].bytes.len);
        str_add_len(bytes, payloads[i].bytes.ptr, payloads[i].bytes.len);
    }
    batch->count++;
}

uint32_t batch_crc(uint32_t before, const struct log_batch *batch)
{
    unsigned char head[20];

    put_u64(head, batch->first);
    put_u64(head + 8, batch->epoch);
    for (int i = 0; i < 4; i++)
        head[16 + i] = (unsigned char)(batch->count >> (8 * i));
    return crc32c(crc32c(before, head, sizeof(head)), batch->bytes.ptr, batch->bytes.len);
}

struct log_batch batch_view(const struct batch *batch, bool own)
{
    return (struct log_batch){
        .first = batch->first,
        .count = batch->count,
        .epoch = batch->epoch,
        .crc = batch->crc,
        .own = own,
        .bytes = { str_text(&batch->bytes), batch->bytes.len },
    };
}

void log_walk_init(struct log_walk *walk, const struct log_batch *batch)
{
    *walk = (struct log_walk){ .batch = batch };
}

bool log_walk_payload(struct log_walk *walk, struct log_payload *payload)
{
    struct span bytes = walk->batch->bytes;

    if (walk->payloads_left == 0 || bytes.len - walk->payload_at < PAYLOAD_HEAD)
        return false;
    const char *at = bytes.ptr + walk->payload_at;
    uint32_t len = get_u32(at + LOG_DIGEST_BYTES);
    if (bytes.len - walk->payload_at - PAYLOAD_HEAD < len)
        return false;
    payload->digest = (const uint8_t *)at;
    payload->bytes = (struct span){ at + PAYLOAD_HEAD, len };
    walk->payload_at += PAYLOAD_HEAD + len;
    walk->payloads_left--;
    return true;
}

bool log_walk_next(struct log_walk *walk, struct log_entry *entry)
{
    struct span bytes = walk->batch->bytes;
    struct log_payload skipped;

    if (walk->done > 0) { /* payloads that the caller did not ask for */
        while (log_walk_payload(walk, &skipped))
            ;
        if (walk->payloads_left)
            return false;
        walk->at = walk->payload_at;
    }
    if (walk->done == walk->batch->count || bytes.len - walk->at < RECORD_HEAD)
        return false;
    uint32_t len = get_u32(bytes.ptr + walk->at);
    uint32_t payloads = get_u32(bytes.ptr + walk->at + 4);
    if (bytes.len - walk->at - RECORD_HEAD < len)
        return false;
    entry->index = walk->batch->first + walk->done;
    entry->command = (struct span){ bytes.ptr + walk->at + RECORD_HEAD, len };
    entry->payload_count = payloads;
    walk->payload_at = walk->at + RECORD_HEAD + len;
    walk->payloads_left = payloads;
    walk->done++;
    return true;
}

bool batch_is_whole(const struct log_batch *batch)
{
    struct log_walk walk;
    struct log_entry entry;
    struct log_payload payload;

    log_walk_init(&walk, batch);
    while (log_walk_next(&walk, &entry)) {
        while (log_walk_payload(&walk, &payload))
            ;
        if (walk.payloads_left)
            return false;
    }
    return walk.done == batch->count && walk.payload_at == batch->bytes.len && batch->count > 0;
}
