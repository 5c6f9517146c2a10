/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intern.h - values that many records share, each kept once and counted
 *
 * An interned value begins with struct interned; the table finds it by its key bytes. Tables are
 * never walked, so their order cannot leak into the state.
 */
#ifndef CORE_INTERN_H
#define CORE_INTERN_H

#include "base/str.h"
#include "base/util.h"

struct interned {
    uint32_t refs, hash;
};

typedef struct span intern_key_fn(const struct interned *value);

struct intern {
    struct interned **slots; /* open addressing, at most 3/4 full */
    size_t cap, count;
    struct interned **old; /* what is not in slots yet */
    size_t old_cap, moved;
    intern_key_fn *key;
};

void intern_init(struct intern *table, intern_key_fn *key);
/* The slots only: every value must have been dropped. */
void intern_done(struct intern *table);

struct interned *intern_find(const struct intern *table, const void *key, size_t len);
/* Puts a new value, which has one reference then. Its key must not be in the table. */
void intern_put(struct intern *table, struct interned *value);
/* Gives up one reference; true when it was the last: the value is out and the caller frees it. */
bool intern_drop(struct intern *table, struct interned *value);

/* Text, kept once. */
void words_init(struct intern *words);
const char *words_take(struct intern *words, const char *text); /* NULL gives NULL */
uint32_t words_hash(const char *word);     /* of one that was taken: of its text; 0 for NULL */
const char *words_again(const char *word); /* one that was taken, once more; NULL gives NULL */
void words_drop(struct intern *words, const char *word); /* NULL is nothing */

#endif
