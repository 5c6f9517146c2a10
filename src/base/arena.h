/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - memory with one lifetime, freed whole
 *
 * A call or an object takes everything it needs from its arena and frees the arena. Nothing in an
 * arena is freed alone. arena_reset() keeps one block, so that a loop which serves many calls
 * settles at no allocation at all.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include "base/util.h"

struct arena_block;
struct arena {
    struct arena_block *block;
    size_t total; /* bytes handed out since init or reset */
};

void arena_init(struct arena *arena);
void arena_done(struct arena *arena);
void arena_reset(struct arena *arena);

void *arena_alloc(struct arena *arena, size_t size); /* zeroed, aligned for any type */
void *arena_copy(struct arena *arena, const void *data, size_t size);
char *arena_strdup(struct arena *arena, const char *text); /* NULL gives NULL */
char *arena_strndup(struct arena *arena, const char *text, size_t len);
char *arena_printf(struct arena *arena, const char *fmt, ...) PRINTF(2, 3);

#define ARENA_NEW(arena, type)      ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, type, n) ((type *)arena_alloc((arena), sizeof(type) * (size_t)(n)))

#endif
