/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jsonw.h - writes JSON, or the same as YAML, as it goes, into a struct str
 *
 * Two blanks per level, "/" written "\/", an empty list on two lines: the form that Slurm's commands
 * print. Text that is not UTF-8 becomes U+FFFD byte by byte, so that the result is always JSON.
 * As YAML every text is quoted: none can be taken for a number or a truth value.
 */
#ifndef SCHEMA_JSONW_H
#define SCHEMA_JSONW_H

#include "base/str.h"
#include "schema/api.h"

enum { JSONW_DEPTH_MAX = 32, JSONW_FIELDS_MAX = 512 };

/* What is expected at a level: fields of an object, or items of a list; neither: whatever comes. */
struct jsonw_level {
    const struct api_type *type;
    const struct api_shape *item;
    uint64_t seen[JSONW_FIELDS_MAX / 64]; /* fields that were written */
};

struct jsonw {
    struct str *out;
    unsigned version; /* of Slurm's API that is written, 42 for v0.0.42; 0: the newest */
    unsigned depth;
    bool any[JSONW_DEPTH_MAX]; /* something was written at this level */
    bool yaml;
    bool list[JSONW_DEPTH_MAX];       /* YAML: this level is one */
    bool same_line[JSONW_DEPTH_MAX];  /* its first entry follows the mark of a list's entry */
    unsigned column[JSONW_DEPTH_MAX]; /* where its entries begin */
    const struct api_type *expected;  /* of the outermost object, or NULL */
    struct jsonw_level levels[JSONW_DEPTH_MAX];
    unsigned skipped; /* levels of something that is left out */
};

void jsonw_init(struct jsonw *json, struct str *out);
/* Instead: the same calls write YAML. */
void jsonw_init_yaml(struct jsonw *json, struct str *out);

/*
 * Says which object of Slurm's API is written. What that does not have is left out, a value gets the shape that it
 * has there, and at the end of an object follows what it has and nobody wrote, as absent. NULL: whatever comes.
 */
void jsonw_expect(struct jsonw *json, unsigned version, const struct api_type *type);

/* Whether the version that is written has what came with version `since` and went after `until`; 0: no bound. */
bool jsonw_has(const struct jsonw *json, unsigned since, unsigned until);

/* Inside an object every value begins with its key; NULL inside a list and at the top. */
void jsonw_object(struct jsonw *json, const char *key);
void jsonw_object_end(struct jsonw *json);
void jsonw_list(struct jsonw *json, const char *key);
void jsonw_list_end(struct jsonw *json);
void jsonw_text(struct jsonw *json, const char *key, const char *text); /* NULL is "" */
void jsonw_text_len(struct jsonw *json, const char *key, const char *text, size_t len);
void jsonw_number(struct jsonw *json, const char *key, int64_t number);
/* `number` / 10^digits, written with so many digits behind the point. */
void jsonw_decimal(struct jsonw *json, const char *key, int64_t number, unsigned digits);
void jsonw_double(struct jsonw *json, const char *key, double number);
void jsonw_bool(struct jsonw *json, const char *key, bool value);
/* Slurm's optional number. */
void jsonw_set(struct jsonw *json, const char *key, bool set, bool infinite, int64_t number);
void jsonw_set_double(struct jsonw *json, const char *key, bool set, bool infinite, double number);

#endif
