/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_toml.c - a document is refused with a place, or is a tree whose keys are all found again
 */
#include "base/toml.h"

#include "base/limits.h"
#include "fuzz/fuzz.h"

static void walk(const struct toml_value *value, unsigned depth)
{
    CHECK(depth <= LIMIT_TOML_DEPTH + 1);
    CHECK(value->pos.line >= 1 && toml_kind_name(value->kind));
    if (value->kind == TOML_STRING) {
        CHECK(value->string.text[value->string.len] == '\0');
    } else if (value->kind == TOML_ARRAY) {
        for (size_t i = 0; i < value->array.len; i++)
            walk(value->array.items[i], depth + 1);
    } else if (value->kind == TOML_TABLE) {
        for (size_t i = 0; i < value->table.len; i++) {
            const struct toml_entry *entry = &value->table.entries[i];
            CHECK(toml_find(value, entry->key, entry->key_len) == entry);
            walk(entry->value, depth + 1);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(toml_freep) struct toml *doc = NULL;
    struct err err = { 0 };
    CLEANUP(freep) char *exact = mem_new(size); /* no byte behind the last one may be read */

    memcpy(exact, data, size);
    if (toml_parse("f", exact, size, &doc, &err) < 0)
        CHECK(!doc && (err.code == ERR_SYNTAX || err.code == ERR_TOO_LARGE) &&
              str_starts(err.text, "f:"));
    else
        walk(toml_root(doc), 0);
    return 0;
}
