/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml.h - TOML 1.0 documents as a tree of values that remember where they stand
 *
 *     CLEANUP(toml_freep) struct toml *doc = NULL;
 *     if (toml_parse("spur.conf", text, len, &doc, err) < 0)
 *         return -1;                        "spur.conf:3:9: expected '=' after the key 'cpus'"
 *     const struct toml_value *v = toml_get(toml_root(doc), "cluster_name");
 *
 * The whole tree is in one arena and freed with the document. Tables keep the order of the file.
 * Text values are UTF-8 that was checked, end in NUL, and may contain NUL where the file says
 * "\u0000", so compare with the length where that matters.
 */
#ifndef BASE_TOML_H
#define BASE_TOML_H

#include "base/err.h"
#include "base/util.h"

enum toml_kind {
    TOML_TABLE,
    TOML_ARRAY,
    TOML_STRING,
    TOML_INTEGER,
    TOML_FLOAT,
    TOML_BOOL,
    TOML_DATETIME,       /* with an offset from UTC */
    TOML_DATETIME_LOCAL, /* date and time of nowhere in particular */
    TOML_DATE,
    TOML_TIME,
};

/* Counted from 1; columns count characters, not bytes. */
struct toml_pos {
    unsigned line, column;
};

/* Fields that a kind does not have are zero. Digits beyond nanoseconds are cut off. */
struct toml_time {
    int year, month, day;
    int hour, minute, second, nanosecond;
    int offset_min; /* east of UTC */
};

struct toml_value;

struct toml_entry {
    const char *key;
    size_t key_len;
    struct toml_pos pos; /* of the key */
    struct toml_value *value;
};

struct toml_table {
    struct toml_entry *entries;
    size_t len, cap;
    uint32_t *slots; /* finds a key in a large table; see toml_table.c */
    size_t slot_count;
    unsigned how; /* how it came to be, which decides who may add to it */
};

struct toml_array {
    struct toml_value **items;
    size_t len, cap;
    bool of_tables; /* made by [[name]], so a later [[name]] may add to it */
};

struct toml_value {
    enum toml_kind kind;
    struct toml_pos pos;
    union {
        struct toml_table table;
        struct toml_array array;
        struct {
            const char *text;
            size_t len;
        } string;
        int64_t integer;
        double real;
        bool boolean;
        struct toml_time time;
    };
};

struct toml;

/*
 * Reads a whole document of `len` bytes. `name` begins every error text ("name:line:column: ..."),
 * NULL stands for "line"; ERR_SYNTAX for what TOML forbids, ERR_TOO_LARGE for what LIMIT_CONFIG_BYTES,
 * LIMIT_TOML_DEPTH or LIMIT_TOML_VALUES forbid. The document keeps no pointer into `text`.
 */
int toml_parse(const char *name, const char *text, size_t len, struct toml **out, struct err *err);
void toml_free(struct toml *doc);
void toml_freep(struct toml **doc);

const struct toml_value *toml_root(const struct toml *doc); /* always a table */

/* The value under a key of a table, or NULL. */
const struct toml_value *toml_get(const struct toml_value *table, const char *key);
const struct toml_entry *toml_find(const struct toml_value *table, const char *key, size_t len);

/* "a table", "a string": for sentences about what was found. */
const char *toml_kind_name(enum toml_kind kind);

#endif
