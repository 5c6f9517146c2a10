/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload_index.h - which row of the log holds a payload, and where in it
 *
 * In memory, for rows that are not trimmed yet; 56 bytes each and twice to four times 8 for finding it.
 * Places are kept in the order of their rows, so that trimming takes them from the front. Nothing here takes
 * long because there are many: places are in blocks that never move, and there are many small tables to
 * find them, each of which grows by itself.
 */
#ifndef LOG_PAYLOAD_INDEX_H
#define LOG_PAYLOAD_INDEX_H

#include "base/vec.h"
#include "log/log.h"

struct payload_place {
    uint8_t digest[LOG_DIGEST_BYTES];
    uint64_t row; /* first index of its batch */
    uint32_t offset, len;
    bool dead;
};

/* Open addressing: number of the place + 1. */
struct payload_shard {
    uint64_t *slots;
    uint32_t slot_count, used;
};

enum { PAYLOAD_SHARDS = 256 };

struct payload_index {
    VEC(struct payload_place *) blocks;
    uint64_t base;      /* number of the first place of blocks[0] */
    uint64_t head, end; /* numbers that are in use; places are numbered as they come */
    struct payload_shard shards[PAYLOAD_SHARDS];
};

void payload_index_done(struct payload_index *index);
/* Every payload of the batch. A digest that is there already moves to the new place. */
void payload_index_add(struct payload_index *index, const struct log_batch *batch);
const struct payload_place *payload_index_get(const struct payload_index *index,
                                              const uint8_t digest[LOG_DIGEST_BYTES]);
bool payload_index_drop(struct payload_index *index, const uint8_t digest[LOG_DIGEST_BYTES]);
/*
 * How many places there are in rows up to `row`, the dead too; when these are more than `most`, those of
 * so many whole rows, one at least. *upto: the last row of them, or `row` when there are no more.
 */
size_t payload_index_upto(const struct payload_index *index, uint64_t row, size_t most,
                          uint64_t *upto);
const struct payload_place *payload_index_nth(const struct payload_index *index,
                                              size_t n);              /* from the oldest */
void payload_index_forget(struct payload_index *index, uint64_t row); /* all in rows up to it */

#endif
