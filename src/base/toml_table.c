/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml_table.c - tables of a TOML document, and who may add to which
 *
 * Entries stand in file order in one array. A table with more than INDEX_FROM of them also has an
 * open-addressing index, so that a document of many keys is read in linear time.
 */
#include <string.h>

#include "base/hash.h"
#include "base/limits.h"
#include "base/toml_priv.h"

enum { INDEX_FROM = 8 };

static bool entry_is(const struct toml_entry *entry, const char *key, size_t len)
{
    return entry->key_len == len && memcmp(entry->key, key, len) == 0;
}

static void index_put(struct toml_table *table, size_t i)
{
    size_t mask = table->slot_count - 1;
    size_t slot = hash_bytes(table->entries[i].key, table->entries[i].key_len, 0) & mask;

    while (table->slots[slot])
        slot = (slot + 1) & mask;
    table->slots[slot] = (uint32_t)i + 1;
}

static void index_grow(struct arena *arena, struct toml_table *table)
{
    table->slot_count = table->slot_count ? table->slot_count * 2 : (size_t)INDEX_FROM * 4;
    table->slots = ARENA_ARRAY(arena, uint32_t, table->slot_count);
    for (size_t i = 0; i < table->len; i++)
        index_put(table, i);
}

struct toml_entry *toml_table_find(const struct toml_table *table, const char *key, size_t len)
{
    if (!table->slots) {
        for (size_t i = 0; i < table->len; i++) {
            if (entry_is(&table->entries[i], key, len))
                return &table->entries[i];
        }
        return NULL;
    }
    size_t mask = table->slot_count - 1;
    size_t slot = hash_bytes(key, len, 0) & mask;

    for (; table->slots[slot]; slot = (slot + 1) & mask) {
        struct toml_entry *entry = &table->entries[table->slots[slot] - 1];

        if (entry_is(entry, key, len))
            return entry;
    }
    return NULL;
}

static void table_add(struct toml_reader *r, struct toml_table *table, const struct toml_key *key,
                      struct toml_value *value)
{
    if (table->len == table->cap) {
        size_t cap = table->cap ? table->cap * 2 : 4;
        struct toml_entry *grown = ARENA_ARRAY(r->arena, struct toml_entry, cap);

        if (table->len)
            memcpy(grown, table->entries, table->len * sizeof(*grown));
        table->entries = grown;
        table->cap = cap;
    }
    table->entries[table->len++] = (struct toml_entry){
        .key = key->text, .key_len = key->len, .pos = key->pos, .value = value
    };
    if (table->len > INDEX_FROM && table->len * 2 > table->slot_count)
        index_grow(r->arena, table);
    else if (table->slots)
        index_put(table, table->len - 1);
}

void toml_array_add(struct toml_reader *r, struct toml_array *array, struct toml_value *value)
{
    if (array->len == array->cap) {
        size_t cap = array->cap ? array->cap * 2 : 4;
        struct toml_value **grown = ARENA_ARRAY(r->arena, struct toml_value *, cap);

        if (array->len)
            memcpy(grown, array->items, array->len * sizeof(*grown));
        array->items = grown;
        array->cap = cap;
    }
    array->items[array->len++] = value;
}

int toml_new_value(struct toml_reader *r, enum toml_kind kind, struct toml_pos pos,
                   struct toml_value **out)
{
    if (++r->values > LIMIT_TOML_VALUES) {
        toml_fail(r, pos, "more than %d values", LIMIT_TOML_VALUES);
        if (r->err)
            r->err->code = ERR_TOO_LARGE;
        return -ERR_TOO_LARGE;
    }
    *out = ARENA_NEW(r->arena, struct toml_value);
    (*out)->kind = kind;
    (*out)->pos = pos;
    return 0;
}

static int fail_taken(struct toml_reader *r, const struct toml_key *key,
                      const struct toml_entry *entry)
{
    return toml_fail(r, key->pos, "the key '%.64s' was given already at line %u", key->text,
                     entry->pos.line);
}

static int add_table(struct toml_reader *r, struct toml_value **table, const struct toml_key *key,
                     enum toml_how how)
{
    struct toml_value *fresh;

    if (toml_new_value(r, TOML_TABLE, key->pos, &fresh) < 0)
        return -1;
    fresh->table.how = how;
    table_add(r, &(*table)->table, key, fresh);
    *table = fresh;
    return 0;
}

int toml_add_value(struct toml_reader *r, struct toml_value *table, const struct toml_key *key,
                   struct toml_value *value)
{
    const struct toml_entry *entry = toml_table_find(&table->table, key->text, key->len);

    if (entry)
        return fail_taken(r, key, entry);
    table_add(r, &table->table, key, value);
    return 0;
}

/* The a of `a.b = 1`: made here, or made by another dotted key of the same section. */
int toml_open_dotted(struct toml_reader *r, struct toml_value **table, const struct toml_key *key)
{
    const struct toml_entry *entry = toml_table_find(&(*table)->table, key->text, key->len);

    if (!entry)
        return add_table(r, table, key, TOML_BY_DOTS);
    if (entry->value->kind != TOML_TABLE || entry->value->table.how != TOML_BY_DOTS)
        return toml_fail(r, key->pos,
                         "cannot add to '%.64s' by a dotted key: it was defined at line %u",
                         key->text, entry->pos.line);
    *table = entry->value;
    return 0;
}

/* The a of `[a.b]`: any table but an inline one, or the last element of [[a]]. */
int toml_open_path(struct toml_reader *r, struct toml_value **table, const struct toml_key *key)
{
    const struct toml_entry *entry = toml_table_find(&(*table)->table, key->text, key->len);
    struct toml_value *at;

    if (!entry)
        return add_table(r, table, key, TOML_BY_PATH);
    at = entry->value;
    if (at->kind == TOML_ARRAY && at->array.of_tables) {
        at = at->array.items[at->array.len - 1];
        r->depth++;
    }
    if (at->kind != TOML_TABLE || at->table.how == TOML_INLINE)
        return toml_fail(
            r, key->pos, "cannot add a table to '%.64s': it was given as %s at line %u", key->text,
            at->kind == TOML_TABLE ? "an inline table" : toml_kind_name(at->kind), entry->pos.line);
    *table = at;
    return 0;
}

/* The last key of `[a.b]`. */
int toml_open_header(struct toml_reader *r, struct toml_value **table, const struct toml_key *key)
{
    struct toml_entry *entry = toml_table_find(&(*table)->table, key->text, key->len);

    if (!entry)
        return add_table(r, table, key, TOML_BY_HEADER);
    if (entry->value->kind != TOML_TABLE || entry->value->table.how != TOML_BY_PATH)
        return fail_taken(r, key, entry);
    *table = entry->value;
    (*table)->table.how = TOML_BY_HEADER;
    (*table)->pos = entry->pos = key->pos;
    return 0;
}

/* The last key of `[[a.b]]`: one more element. */
int toml_open_element(struct toml_reader *r, struct toml_value **table, const struct toml_key *key)
{
    const struct toml_entry *entry = toml_table_find(&(*table)->table, key->text, key->len);
    struct toml_value *array, *fresh;

    if (entry) {
        array = entry->value;
        if (array->kind != TOML_ARRAY || !array->array.of_tables)
            return fail_taken(r, key, entry);
    } else {
        if (toml_new_value(r, TOML_ARRAY, key->pos, &array) < 0)
            return -1;
        array->array.of_tables = true;
        table_add(r, &(*table)->table, key, array);
    }
    if (toml_new_value(r, TOML_TABLE, key->pos, &fresh) < 0)
        return -1;
    fresh->table.how = TOML_BY_HEADER;
    toml_array_add(r, &array->array, fresh);
    r->depth++;
    *table = fresh;
    return 0;
}
