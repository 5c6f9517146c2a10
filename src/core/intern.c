/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intern.c - values that many records share, each kept once and counted
 */
#include "core/intern.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

void intern_init(struct intern *table, intern_key_fn *key)
{
    *table = (struct intern){ .key = key };
}

void intern_done(struct intern *table)
{
    free(table->slots);
    *table = (struct intern){ .key = table->key };
}

static uint32_t hash_of(const void *key, size_t len)
{
    return (uint32_t)hash_bytes(key, len, 0);
}

static void place(struct intern *table, struct interned *value)
{
    size_t at = value->hash & (table->cap - 1);

    while (table->slots[at])
        at = (at + 1) & (table->cap - 1);
    table->slots[at] = value;
}

static void grow(struct intern *table)
{
    struct interned **old = table->slots;
    size_t old_cap = table->cap;

    table->cap = old_cap ? old_cap * 2 : 64;
    table->slots = NEW_ARRAY(struct interned *, table->cap);
    for (size_t i = 0; i < old_cap; i++) {
        if (old[i])
            place(table, old[i]);
    }
    free(old);
}

struct interned *intern_find(const struct intern *table, const void *key, size_t len)
{
    if (!table->cap)
        return NULL;
    uint32_t hash = hash_of(key, len);
    for (size_t at = hash & (table->cap - 1); table->slots[at]; at = (at + 1) & (table->cap - 1)) {
        struct interned *value = table->slots[at];
        if (value->hash != hash)
            continue;
        struct span have = table->key(value);
        if (have.len == len && memcmp(have.ptr, key, len) == 0)
            return value;
    }
    return NULL;
}

void intern_put(struct intern *table, struct interned *value)
{
    struct span key = table->key(value);

    if (table->count + 1 > table->cap / 4 * 3)
        grow(table);
    value->refs = 1;
    value->hash = hash_of(key.ptr, key.len);
    place(table, value);
    table->count++;
}

/* Closes the gap so that a search never needs a mark for removed values. */
static void take_out(struct intern *table, const struct interned *value)
{
    size_t mask = table->cap - 1, at = value->hash & mask;

    while (table->slots[at] != value)
        at = (at + 1) & mask;
    for (size_t next = (at + 1) & mask; table->slots[next]; next = (next + 1) & mask) {
        size_t home = table->slots[next]->hash & mask;
        if (((next - home) & mask) >= ((next - at) & mask)) {
            table->slots[at] = table->slots[next];
            at = next;
        }
    }
    table->slots[at] = NULL;
    table->count--;
}

bool intern_drop(struct intern *table, struct interned *value)
{
    if (--value->refs > 0)
        return false;
    take_out(table, value);
    return true;
}

struct word {
    struct interned head;
    char text[];
};

static struct span word_key(const struct interned *value)
{
    const struct word *word = (const struct word *)value;

    return (struct span){ word->text, strlen(word->text) };
}

void words_init(struct intern *words)
{
    intern_init(words, word_key);
}

const char *words_take(struct intern *words, const char *text)
{
    if (!text)
        return NULL;
    size_t len = strlen(text);
    struct word *word = (struct word *)intern_find(words, text, len);
    if (word) {
        word->head.refs++;
        return word->text;
    }
    word = mem_new(sizeof(*word) + len + 1);
    memcpy(word->text, text, len);
    intern_put(words, &word->head);
    return word->text;
}

void words_drop(struct intern *words, const char *text)
{
    if (!text)
        return;
    struct word *word = CONTAINER_OF(text, struct word, text);
    if (intern_drop(words, &word->head))
        free(word);
}
