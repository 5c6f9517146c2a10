/* SPDX-License-Identifier: Apache-2.0 */
/*
 * toml_priv.h - what the files of the TOML reader share
 *
 * toml.c        the document, its grammar: lines, headers, arrays, inline tables
 * toml_text.c   the reader's position and errors, characters, strings, keys
 * toml_scalar.c numbers, truth values, dates and times
 * toml_table.c  tables: finding and adding keys, and who may add to what
 *
 * (1) The text was checked to be UTF-8 without control characters other than tab and line ends
 *     before anything else looks at it, so a NUL from toml_peek() means the end.
 * (2) No value lies deeper than LIMIT_TOML_DEPTH + 1 (an element of [[a]] is two levels down), so
 *     whoever walks the tree may recurse.
 */
#ifndef BASE_TOML_PRIV_H
#define BASE_TOML_PRIV_H

#include "base/arena.h"
#include "base/str.h"
#include "base/toml.h"

struct toml {
    struct arena arena;
    struct toml_value *root;
};

struct toml_reader {
    const char *name;
    const char *start, *p, *end;
    const char *line_start;
    unsigned line;
    const char *column_at; /* where `column` was counted to, so that counting goes on from there */
    unsigned column;
    unsigned depth;
    size_t values;
    struct arena *arena;
    struct str scratch;
    struct err *err;
};

struct toml_key {
    const char *text;
    size_t len;
    struct toml_pos pos;
};

/* How a table came to be. */
enum toml_how {
    TOML_BY_HEADER = 1, /* [a]: complete once its section ends */
    TOML_BY_PATH,       /* the a of [a.b]: a later [a] may still define it */
    TOML_BY_DOTS,       /* the a of a.b = 1: more dotted keys may add to it, a header may not */
    TOML_INLINE,        /* {...}: closed */
};

/* toml_text.c */
int toml_check_text(struct toml_reader *r);
int toml_fail(struct toml_reader *r, struct toml_pos pos, const char *fmt, ...) PRINTF(3, 4);
int toml_fail_here(struct toml_reader *r, const char *fmt, ...) PRINTF(2, 3);
struct toml_pos toml_pos(struct toml_reader *r);
const char *toml_shown(struct toml_reader *r); /* the character at the position, for an error */
void toml_skip_blanks(struct toml_reader *r);
int toml_skip_lines(struct toml_reader *r); /* blanks, comments, line ends */
bool toml_at_newline(const struct toml_reader *r);
void toml_newline(struct toml_reader *r);
void toml_skip_comment(struct toml_reader *r);
int toml_read_string(struct toml_reader *r, const char **text, size_t *len);
int toml_read_key(struct toml_reader *r, struct toml_key *key);

static inline char toml_peek(const struct toml_reader *r)
{
    return r->p < r->end ? *r->p : '\0';
}

static inline bool toml_starts(const struct toml_reader *r, const char *text, size_t len)
{
    return (size_t)(r->end - r->p) >= len && !__builtin_memcmp(r->p, text, len);
}

/* toml_scalar.c */
int toml_read_scalar(struct toml_reader *r, struct toml_value *value);

/* toml_table.c */
struct toml_entry *toml_table_find(const struct toml_table *table, const char *key, size_t len);
int toml_add_value(struct toml_reader *r, struct toml_value *table, const struct toml_key *key,
                   struct toml_value *value);
int toml_open_dotted(struct toml_reader *r, struct toml_value **table, const struct toml_key *key);
int toml_open_path(struct toml_reader *r, struct toml_value **table, const struct toml_key *key);
int toml_open_header(struct toml_reader *r, struct toml_value **table, const struct toml_key *key);
int toml_open_element(struct toml_reader *r, struct toml_value **table, const struct toml_key *key);
void toml_array_add(struct toml_reader *r, struct toml_array *array, struct toml_value *value);
int toml_new_value(struct toml_reader *r, enum toml_kind kind, struct toml_pos pos,
                   struct toml_value **out);

#endif
