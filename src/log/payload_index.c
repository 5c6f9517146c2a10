/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload_index.c - which row of the log holds a payload, and where in it
 */
#include "log/payload_index.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1024, SLOTS_FIRST = 16 };

void payload_index_done(struct payload_index *index)
{
    vec_each (struct payload_place *, block, &index->blocks)
        free(*block);
    vec_done(&index->blocks);
    for (size_t i = 0; i < PAYLOAD_SHARDS; i++)
        free(index->shards[i].slots);
    *index = (struct payload_index){ 0 };
}

static struct payload_place *place_of(const struct payload_index *index, uint64_t number)
{
    uint64_t at = number - index->base;

    return &index->blocks.items[at / BLOCK][at % BLOCK];
}

static const struct payload_shard *shard_of(const struct payload_index *index,
                                            const uint8_t *digest)
{
    return &index->shards[digest[0]];
}

/* A digest is spread evenly as it is; its first byte has chosen the shard. */
static size_t home_of(const struct payload_shard *shard, const uint8_t *digest)
{
    uint64_t word;

    memcpy(&word, digest + sizeof(word), sizeof(word));
    return (size_t)word & (shard->slot_count - 1);
}

static size_t find_slot(const struct payload_index *index, const struct payload_shard *shard,
                        const uint8_t *digest)
{
    size_t at = home_of(shard, digest);

    while (shard->slots[at] &&
           memcmp(place_of(index, shard->slots[at] - 1)->digest, digest, LOG_DIGEST_BYTES) != 0)
        at = (at + 1) & (shard->slot_count - 1);
    return at;
}

/* Moves later members of the same run up, so that no search stops at the hole. */
static void clear_slot(const struct payload_index *index, struct payload_shard *shard, size_t hole)
{
    size_t mask = shard->slot_count - 1;

    shard->used--;
    for (size_t at = (hole + 1) & mask; shard->slots[at]; at = (at + 1) & mask) {
        size_t home = home_of(shard, place_of(index, shard->slots[at] - 1)->digest);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            shard->slots[hole] = shard->slots[at];
            hole = at;
        }
    }
    shard->slots[hole] = 0;
}

static void grow(const struct payload_index *index, struct payload_shard *shard)
{
    struct payload_shard old = *shard;

    shard->slot_count = old.slot_count ? old.slot_count * 2 : SLOTS_FIRST;
    shard->slots = NEW_ARRAY(uint64_t, shard->slot_count);
    for (size_t i = 0; i < old.slot_count; i++) {
        if (old.slots[i])
            shard->slots[find_slot(index, shard, place_of(index, old.slots[i] - 1)->digest)] =
                old.slots[i];
    }
    free(old.slots);
}

static void put(struct payload_index *index, const uint8_t *digest, uint64_t row, size_t offset,
                size_t len)
{
    struct payload_shard *shard = &index->shards[digest[0]];

    if (shard->used * 2 >= shard->slot_count)
        grow(index, shard);
    if (index->end - index->base == index->blocks.len * BLOCK)
        vec_push(&index->blocks, NEW_ARRAY(struct payload_place, BLOCK));
    size_t slot = find_slot(index, shard, digest);
    if (shard->slots[slot])
        place_of(index, shard->slots[slot] - 1)->dead = true;
    else
        shard->used++;
    struct payload_place *place = place_of(index, index->end++);
    *place = (struct payload_place){ .row = row, .offset = (uint32_t)offset, .len = (uint32_t)len };
    memcpy(place->digest, digest, LOG_DIGEST_BYTES);
    shard->slots[slot] = index->end;
}

void payload_index_add(struct payload_index *index, const struct log_batch *batch)
{
    struct log_walk walk;
    struct log_entry entry;
    struct log_payload payload;

    log_walk_init(&walk, batch);
    while (log_walk_next(&walk, &entry)) {
        while (log_walk_payload(&walk, &payload))
            put(index, payload.digest, batch->first, (size_t)(payload.bytes.ptr - batch->bytes.ptr),
                payload.bytes.len);
    }
}

const struct payload_place *payload_index_get(const struct payload_index *index,
                                              const uint8_t digest[LOG_DIGEST_BYTES])
{
    const struct payload_shard *shard = shard_of(index, digest);

    if (shard->slot_count == 0)
        return NULL;
    uint64_t at = shard->slots[find_slot(index, shard, digest)];
    return at ? place_of(index, at - 1) : NULL;
}

bool payload_index_drop(struct payload_index *index, const uint8_t digest[LOG_DIGEST_BYTES])
{
    struct payload_shard *shard = &index->shards[digest[0]];

    if (shard->slot_count == 0)
        return false;
    size_t slot = find_slot(index, shard, digest);
    if (!shard->slots[slot])
        return false;
    place_of(index, shard->slots[slot] - 1)->dead = true;
    clear_slot(index, shard, slot);
    return true;
}

const struct payload_place *payload_index_nth(const struct payload_index *index, size_t n)
{
    return place_of(index, index->head + n);
}

size_t payload_index_upto(const struct payload_index *index, uint64_t row, size_t most,
                          uint64_t *upto)
{
    size_t all = (size_t)(index->end - index->head), count = 0;
    uint64_t last = 0;

    for (; count < all && payload_index_nth(index, count)->row <= row; count++) {
        uint64_t next = payload_index_nth(index, count)->row;
        if (count >= most && next != last) {
            *upto = last;
            return count;
        }
        last = next;
    }
    *upto = row;
    return count;
}

void payload_index_forget(struct payload_index *index, uint64_t row)
{
    while (index->head < index->end && place_of(index, index->head)->row <= row) {
        struct payload_place *place = place_of(index, index->head);
        if (!place->dead)
            payload_index_drop(index, place->digest);
        index->head++;
    }
    size_t gone = (size_t)((index->head - index->base) / BLOCK);
    for (size_t i = 0; i < gone; i++)
        free(index->blocks.items[i]);
    index->blocks.len -= gone;
    memmove(index->blocks.items, index->blocks.items + gone,
            index->blocks.len * sizeof(*index->blocks.items));
    index->base += gone * BLOCK;
}
