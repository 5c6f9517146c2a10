/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.h - keys to pointers, walked in the order they were put in
 *
 * Two kinds share one table: text keys (copied in) and 64-bit numbers. Walking visits in insertion
 * order, which does not depend on the hash, so code that must be deterministic may walk one.
 *
 *     struct map jobs; map_init(&jobs);
 *     map_put_num(&jobs, 42, job);
 *     map_each(entry, &jobs) use(entry->num, entry->value);
 *     map_done(&jobs);
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/util.h"

struct map_entry {
    char *key; /* NULL for a number, and for a hole that a removal left */
    uint64_t num;
    void *value;
    uint64_t hash;
    bool live;
};

struct map {
    struct map_entry *entries; /* insertion order, with holes */
    uint32_t *slots;           /* open addressing: index into entries + 1 */
    size_t used, live, cap, slot_count;
};

void map_init(struct map *map);
void map_done(struct map *map); /* frees keys, not values */
void map_clear(struct map *map);

/* Puts or replaces; returns the value that was there, or NULL. A replaced key keeps its place. */
void *map_put(struct map *map, const char *key, void *value);
void *map_get(const struct map *map, const char *key);
void *map_get_len(const struct map *map, const char *key, size_t len);
void *map_del(struct map *map, const char *key);
bool map_has(const struct map *map, const char *key);

void *map_put_num(struct map *map, uint64_t num, void *value);
void *map_get_num(const struct map *map, uint64_t num);
void *map_del_num(struct map *map, uint64_t num);

static inline size_t map_len(const struct map *map)
{
    return map->live;
}

/* The first live entry at or after `entry`, or NULL. Entries may be removed while walking. */
struct map_entry *map_live_from(const struct map *map, struct map_entry *entry);

#define map_each(entry, map)                                                    \
    for (struct map_entry *entry = map_live_from((map), (map)->entries); entry; \
         entry = map_live_from((map), entry + 1))

#endif
