/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.h - tables of squeue and sinfo: what -o and -O ask for, header and rows
 *
 *     "%.18i %9P %j"              letters: right-justified in 18, left in 9, as wide as it is
 *     "JobID:20,Name:.8,State: |" names: width (20 when not given), '.' justifies right, other
 *                                 text after the colon follows the value as it is
 */
#ifndef SCHEMA_COLUMNS_H
#define SCHEMA_COLUMNS_H

#include "base/err.h"
#include "base/vec.h"
#include "schema/field.h"

enum { COLUMNS_MAX = 512, COLUMN_WIDTH_MAX = 65536, COLUMN_DEFAULT_WIDTH = 20 };

struct column {
    const struct field *field; /* NULL: only `before` and `after` */
    unsigned width;            /* 0: as wide as the value */
    bool right;
    bool fit; /* %#P: as wide as the widest value; columns_fit() sets the width */
    char *before, *after;
};

struct columns {
    const struct field_table *table;
    VEC(struct column) list;
};

void columns_done(struct columns *columns);

/*
 * Both append. What no field is called goes to `unknown` (one name a line) and shows as it was
 * written, as in Slurm. Fails only when a bound is exceeded.
 */
int columns_read_letters(struct columns *columns, const struct field_table *table,
                         const char *format, struct str *unknown, struct err *err);
int columns_read_names(struct columns *columns, const struct field_table *table, const char *format,
                       struct str *unknown, struct err *err);

/* Sets the width of %# columns from one more object; at least `least`, and the header. */
void columns_fit(struct columns *columns, const void *object, const struct field_ctx *ctx,
                 unsigned least);

void columns_add_header(const struct columns *columns, struct str *out);
void columns_add_row(const struct columns *columns, const void *object, const struct field_ctx *ctx,
                     struct str *out);

/* All letters or names, in the order people expect to read them: --helpformat, --helpFormat. */
void columns_add_letters(const struct field_table *table, struct str *out);
void columns_add_names(const struct field_table *table, struct str *out);

#endif
