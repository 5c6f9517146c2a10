/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intern.c - values that many records share, each kept once and counted
 *
 * (1) A table that is full is moved into one of twice the size, some with each put, so that no put
 *     costs more when there are millions (see base/slots.c).
 */
#include "core/intern.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/must.h"

enum { MOVES = 16 };
static struct interned gone; /* was moved or taken out of the old table */

void intern_init(struct intern *table, intern_key_fn *key)
{
    *table = (struct intern){ .key = key };
}

void intern_done(struct intern *table)
{
    free(table->slots);
    free(table->old);
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

/* (1) */
static void move_some(struct intern *table)
{
    for (unsigned i = 0; table->old && i < MOVES; i++) {
        struct interned **from = &table->old[table->moved++];
        if (*from && *from != &gone)
            place(table, *from);
        *from = *from ? &gone : NULL;
        if (table->moved == table->old_cap) {
            free(table->old);
            table->old = NULL;
        }
    }
}

static void grow(struct intern *table)
{
    while (table->old)
        move_some(table);
    table->old = table->slots;
    table->old_cap = table->cap;
    table->moved = 0;
    table->cap = table->cap ? table->cap * 2 : 64;
    table->slots = NEW_ARRAY(struct interned *, table->cap);
}

static struct interned *find_in(const struct intern *table, struct interned *const *slots,
                                size_t cap, uint32_t hash, struct span key)
{
    for (size_t at = hash & (cap - 1); slots[at]; at = (at + 1) & (cap - 1)) {
        struct interned *value = slots[at];
        if (value == &gone || value->hash != hash)
            continue;
        struct span have = table->key(value);
        if (have.len == key.len && memcmp(have.ptr, key.ptr, key.len) == 0)
            return value;
    }
    return NULL;
}

struct interned *intern_find(const struct intern *table, const void *key, size_t len)
{
    struct span want = { key, len };

    if (!table->cap)
        return NULL;
    uint32_t hash = hash_of(key, len);
    struct interned *value = find_in(table, table->slots, table->cap, hash, want);
    return value || !table->old ? value : find_in(table, table->old, table->old_cap, hash, want);
}

void intern_put(struct intern *table, struct interned *value)
{
    struct span key = table->key(value);

    if (table->count + 1 > table->cap / 4 * 3)
        grow(table);
    move_some(table);
    value->refs = 1;
    value->hash = hash_of(key.ptr, key.len);
    place(table, value);
    table->count++;
}

static void take_out_old(struct intern *table, const struct interned *value)
{
    size_t mask = table->old_cap - 1;

    for (size_t at = value->hash & mask; table->old && table->old[at]; at = (at + 1) & mask) {
        if (table->old[at] == value) {
            table->old[at] = &gone;
            table->count--;
            return;
        }
    }
}

/* Closes the gap so that a search never needs a mark for removed values. */
static void take_out(struct intern *table, const struct interned *value)
{
    size_t mask = table->cap - 1, at = value->hash & mask;

    while (table->slots[at] && table->slots[at] != value)
        at = (at + 1) & mask;
    if (!table->slots[at]) {
        take_out_old(table, value);
        return;
    }
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
    MUST(value->refs > 0);
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

static struct word *word_of(const char *text)
{
    return CONTAINER_OF((uintptr_t)text, struct word, text);
}

const char *words_again(const char *text)
{
    if (text)
        word_of(text)->head.refs++;
    return text;
}

uint32_t words_hash(const char *text)
{
    return text ? word_of(text)->head.hash : 0;
}

void words_drop(struct intern *words, const char *text)
{
    if (!text)
        return;
    struct word *word = word_of(text);
    if (intern_drop(words, &word->head))
        free(word);
}
