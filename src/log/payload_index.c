/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload_index.c - which row of the log holds a payload, and where in it
 */
#include "log/payload_index.h"

#include <stdlib.h>
#include <string.h>

void payload_index_done(struct payload_index *index)
{
    free(index->places);
    free(index->slots);
    *index = (struct payload_index){ 0 };
}

/* A digest is spread evenly as it is. */
static size_t home_of(const struct payload_index *index, const uint8_t *digest)
{
    uint64_t word;

    memcpy(&word, digest, sizeof(word));
    return (size_t)word & (index->slot_count - 1);
}

static size_t find_slot(const struct payload_index *index, const uint8_t *digest)
{
    size_t at = home_of(index, digest);

    while (index->slots[at] &&
           memcmp(index->places[index->slots[at] - 1].digest, digest, LOG_DIGEST_BYTES) != 0)
        at = (at + 1) & (index->slot_count - 1);
    return at;
}

/* Moves later members of the same run up, so that no search stops at the hole. */
static void clear_slot(struct payload_index *index, size_t hole)
{
    size_t mask = index->slot_count - 1;

    index->used--;
    for (size_t at = (hole + 1) & mask; index->slots[at]; at = (at + 1) & mask) {
        size_t home = home_of(index, index->places[index->slots[at] - 1].digest);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            index->slots[hole] = index->slots[at];
            hole = at;
        }
    }
    index->slots[hole] = 0;
}

static void rebuild(struct payload_index *index)
{
    size_t live = 0, want = 1024;

    /* Close up: forget the front and the dead. */
    for (size_t i = index->head; i < index->len; i++) {
        if (!index->places[i].dead)
            index->places[live++] = index->places[i];
    }
    index->head = 0;
    index->len = live;
    while (want < live * 3)
        want *= 2;
    free(index->slots);
    index->slots = NEW_ARRAY(uint32_t, want);
    index->slot_count = want;
    index->used = live;
    for (size_t i = 0; i < live; i++)
        index->slots[find_slot(index, index->places[i].digest)] = (uint32_t)i + 1;
}

static void make_room(struct payload_index *index)
{
    if (index->len == index->cap || index->slot_count == 0 || index->used * 2 >= index->slot_count)
        rebuild(index);
    if (index->len * 2 >= index->cap) {
        index->cap = MAX(index->len * 2, (size_t)1024);
        index->places = mem_resize(index->places, index->cap * sizeof(*index->places));
    }
}

static void put(struct payload_index *index, const uint8_t *digest, uint64_t row, size_t offset,
                size_t len)
{
    if (index->len == index->cap || index->used * 2 >= index->slot_count)
        make_room(index);
    size_t slot = find_slot(index, digest);
    if (index->slots[slot])
        index->places[index->slots[slot] - 1].dead = true;
    else
        index->used++;
    struct payload_place *place = &index->places[index->len++];
    *place = (struct payload_place){ .row = row, .offset = (uint32_t)offset, .len = (uint32_t)len };
    memcpy(place->digest, digest, LOG_DIGEST_BYTES);
    index->slots[slot] = (uint32_t)index->len;
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
    if (index->slot_count == 0)
        return NULL;
    uint32_t at = index->slots[find_slot(index, digest)];
    return at ? &index->places[at - 1] : NULL;
}

bool payload_index_drop(struct payload_index *index, const uint8_t digest[LOG_DIGEST_BYTES])
{
    if (index->slot_count == 0)
        return false;
    size_t slot = find_slot(index, digest);
    if (!index->slots[slot])
        return false;
    index->places[index->slots[slot] - 1].dead = true;
    clear_slot(index, slot);
    return true;
}

size_t payload_index_upto(const struct payload_index *index, uint64_t row,
                          const struct payload_place **first)
{
    size_t count = 0;

    while (index->head + count < index->len && index->places[index->head + count].row <= row)
        count++;
    *first = index->places ? index->places + index->head : NULL;
    return count;
}

void payload_index_forget(struct payload_index *index, uint64_t row)
{
    for (; index->head < index->len && index->places[index->head].row <= row; index->head++) {
        struct payload_place *place = &index->places[index->head];
        if (!place->dead)
            payload_index_drop(index, place->digest);
    }
}
