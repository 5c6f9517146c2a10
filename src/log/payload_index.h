/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload_index.h - which row of the log holds a payload, and where in it
 *
 * In memory, for rows that are not trimmed yet; 56 bytes each. Places are kept in the order of
 * their rows, so that trimming takes them from the front.
 */
#ifndef LOG_PAYLOAD_INDEX_H
#define LOG_PAYLOAD_INDEX_H

#include "log/log.h"

struct payload_place {
    uint8_t digest[LOG_DIGEST_BYTES];
    uint64_t row; /* first index of its batch */
    uint32_t offset, len;
    bool dead;
};

struct payload_index {
    struct payload_place *places; /* those from head on are in use */
    size_t head, len, cap;
    uint32_t *slots; /* open addressing: position in places + 1 */
    size_t slot_count, used;
};

void payload_index_done(struct payload_index *index);
/* Every payload of the batch. A digest that is there already moves to the new place. */
void payload_index_add(struct payload_index *index, const struct log_batch *batch);
const struct payload_place *payload_index_get(const struct payload_index *index,
                                              const uint8_t digest[LOG_DIGEST_BYTES]);
bool payload_index_drop(struct payload_index *index, const uint8_t digest[LOG_DIGEST_BYTES]);
/* Places in rows up to `row`, oldest first, the dead too; valid until the next change. */
size_t payload_index_upto(const struct payload_index *index, uint64_t row,
                          const struct payload_place **first);
void payload_index_forget(struct payload_index *index, uint64_t row); /* all of those */

#endif
