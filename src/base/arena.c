/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.c - bump allocation in a chain of blocks
 *
 * (1) The first block in the chain is the one being filled; older ones follow.
 * (2) A request larger than a block gets a block of its own behind the first, so that the
 *     space left in the first is not wasted.
 * (3) A thread keeps some blocks that were given back, zeroed where they were used: a call takes and
 *     gives one or two, thousands of times a second. Not where a sanitizer looks for what is used
 *     after it was given back.
 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena_thread.h"

enum { BLOCK_BYTES = 4096 - 64, ALIGN = 16, SPARES = 16 };

#if defined(__SANITIZE_ADDRESS__)
enum { KEEPS_BLOCKS = 0 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
enum { KEEPS_BLOCKS = 0 };
#else
enum { KEEPS_BLOCKS = 1 };
#endif
#else
enum { KEEPS_BLOCKS = 1 };
#endif

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(ALIGN) char data[];
};

/* (3) */
static __thread struct arena_block *spare;
static __thread unsigned spares;

static void block_free(struct arena_block *block)
{
    if (!KEEPS_BLOCKS || block->size != BLOCK_BYTES || spares == SPARES) {
        free(block);
        return;
    }
    memset(block->data, 0, block->used);
    block->used = 0;
    block->next = spare;
    spare = block;
    spares++;
}

void arena_thread_done(void)
{
    while (spare) {
        struct arena_block *next = spare->next;
        free(spare);
        spare = next;
    }
    spares = 0;
}

void arena_init(struct arena *arena)
{
    *arena = (struct arena){ 0 };
}

void arena_done(struct arena *arena)
{
    struct arena_block *block = arena->block;

    while (block) {
        struct arena_block *next = block->next;
        block_free(block);
        block = next;
    }
    arena_init(arena);
}

void arena_reset(struct arena *arena)
{
    struct arena_block *keep = arena->block;

    if (!keep)
        return;
    struct arena rest = { .block = keep->next };
    arena_done(&rest);
    memset(keep->data, 0, keep->used);
    keep->used = 0;
    keep->next = NULL;
    arena->total = 0;
}

static struct arena_block *block_new(size_t size)
{
    struct arena_block *block = size == BLOCK_BYTES ? spare : NULL;

    if (block) {
        spare = block->next;
        spares--;
        block->next = NULL;
        return block;
    }
    block = mem_new(sizeof(*block) + size);
    block->size = size;
    return block;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    struct arena_block *block = arena->block;

    size = (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    arena->total += size;
    if (block && block->size - block->used >= size) {
        void *out = block->data + block->used;
        block->used += size;
        return out;
    }
    struct arena_block *fresh = block_new(MAX(size, (size_t)BLOCK_BYTES));
    fresh->used = size;
    if (block && size >= BLOCK_BYTES / 2) { /* (2) */
        fresh->next = block->next;
        block->next = fresh;
    } else { /* (1) */
        fresh->next = block;
        arena->block = fresh;
    }
    return fresh->data;
}

void *arena_copy(struct arena *arena, const void *data, size_t size)
{
    void *out = arena_alloc(arena, size);

    if (size)
        memcpy(out, data, size);
    return out;
}

char *arena_strndup(struct arena *arena, const char *text, size_t len)
{
    char *out = arena_alloc(arena, len + 1);

    memcpy(out, text, len);
    return out;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    return text ? arena_strndup(arena, text, strlen(text)) : NULL;
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
    va_list args, again;

    va_start(args, fmt);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *out = arena_alloc(arena, len < 0 ? 1 : (size_t)len + 1);
    if (len > 0)
        vsnprintf(out, (size_t)len + 1, fmt, again);
    va_end(again);
    return out;
}
