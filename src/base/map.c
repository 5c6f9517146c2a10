/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.c - keys to pointers, walked in the order they were put in
 *
 * (1) slots[] holds entry index + 1, 0 for never used, GONE for removed.
 * (2) The table is rebuilt when entries are full or holes outnumber the living; at least half of
 *     slots[] is unused, so a search ends.
 * (3) A small one that becomes empty begins anew: many are filled and emptied again and again.
 */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static const uint32_t GONE = UINT32_MAX;
enum { SMALL_SLOTS = 256 };

void map_init(struct map *map)
{
    *map = (struct map){ 0 };
}

void map_clear(struct map *map)
{
    for (size_t i = 0; i < map->used; i++)
        free(map->entries[i].key);
    map->used = map->live = 0;
    if (map->slots)
        memset(map->slots, 0, map->slot_count * sizeof(*map->slots));
}

void map_done(struct map *map)
{
    map_clear(map);
    free(map->entries);
    free(map->slots);
    map_init(map);
}

static void place(struct map *map, uint32_t index)
{
    size_t at = map->entries[index].hash & (map->slot_count - 1);

    while (map->slots[at] != 0)
        at = (at + 1) & (map->slot_count - 1);
    map->slots[at] = index + 1;
}

static void rebuild(struct map *map)
{
    size_t cap = 8, kept = 0;

    while (cap < map->live + map->live / 2 + 1)
        cap *= 2;
    struct map_entry *entries = NEW_ARRAY(struct map_entry, cap);
    for (size_t i = 0; i < map->used; i++) {
        if (map->entries[i].live)
            entries[kept++] = map->entries[i];
        else
            free(map->entries[i].key);
    }
    free(map->entries);
    free(map->slots);
    map->entries = entries;
    map->cap = cap;
    map->used = kept;
    map->slot_count = cap * 2;
    map->slots = NEW_ARRAY(uint32_t, map->slot_count);
    for (size_t i = 0; i < kept; i++)
        place(map, (uint32_t)i);
}

static uint32_t *find(const struct map *map, const char *key, size_t len, uint64_t num,
                      uint64_t hash)
{
    if (!map->live)
        return NULL;
    for (size_t at = hash & (map->slot_count - 1); map->slots[at];
         at = (at + 1) & (map->slot_count - 1)) {
        if (map->slots[at] == GONE)
            continue;
        struct map_entry *entry = &map->entries[map->slots[at] - 1];
        if (entry->hash != hash || !entry->key != !key)
            continue;
        if (key ? strncmp(entry->key, key, len) == 0 && !entry->key[len] : entry->num == num)
            return &map->slots[at];
    }
    return NULL;
}

static void *put(struct map *map, const char *key, size_t len, uint64_t num, uint64_t hash,
                 void *value)
{
    uint32_t *slot = find(map, key, len, num, hash);

    if (slot) {
        struct map_entry *entry = &map->entries[*slot - 1];
        void *old = entry->value;
        entry->value = value;
        return old;
    }
    if (map->used == map->cap)
        rebuild(map);
    map->entries[map->used] = (struct map_entry){
        .key = key ? mem_strndup(key, len) : NULL,
        .num = num,
        .value = value,
        .hash = hash,
        .live = true,
    };
    place(map, (uint32_t)map->used);
    map->used++;
    map->live++;
    return NULL;
}

static void *del(struct map *map, const char *key, size_t len, uint64_t num, uint64_t hash)
{
    uint32_t *slot = find(map, key, len, num, hash);

    if (!slot)
        return NULL;
    struct map_entry *entry = &map->entries[*slot - 1];
    void *old = entry->value;
    free(entry->key);
    *entry = (struct map_entry){ 0 };
    *slot = GONE;
    if (--map->live == 0 && map->slot_count <= SMALL_SLOTS) /* (3) */
        map_clear(map);
    return old;
}

static uint64_t hash_num(uint64_t num)
{
    return hash_mix(num + UINT64_C(0x9e3779b97f4a7c15));
}

void *map_put(struct map *map, const char *key, void *value)
{
    size_t len = strlen(key);

    return put(map, key, len, 0, hash_bytes(key, len, 0), value);
}

void *map_get_len(const struct map *map, const char *key, size_t len)
{
    uint32_t *slot = find(map, key, len, 0, hash_bytes(key, len, 0));

    return slot ? map->entries[*slot - 1].value : NULL;
}

void *map_get(const struct map *map, const char *key)
{
    return key ? map_get_len(map, key, strlen(key)) : NULL;
}

bool map_has(const struct map *map, const char *key)
{
    size_t len = strlen(key);

    return find(map, key, len, 0, hash_bytes(key, len, 0)) != NULL;
}

void *map_del(struct map *map, const char *key)
{
    size_t len = strlen(key);

    return del(map, key, len, 0, hash_bytes(key, len, 0));
}

void *map_put_num(struct map *map, uint64_t num, void *value)
{
    return put(map, NULL, 0, num, hash_num(num), value);
}

void *map_get_num(const struct map *map, uint64_t num)
{
    uint32_t *slot = find(map, NULL, 0, num, hash_num(num));

    return slot ? map->entries[*slot - 1].value : NULL;
}

void *map_del_num(struct map *map, uint64_t num)
{
    return del(map, NULL, 0, num, hash_num(num));
}

struct map_entry *map_live_from(const struct map *map, struct map_entry *entry)
{
    if (!entry)
        return NULL;
    for (; entry < map->entries + map->used; entry++) {
        if (entry->live)
            return entry;
    }
    return NULL;
}
