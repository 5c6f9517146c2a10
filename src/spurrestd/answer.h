/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer.h - the objects around what handlers answer: meta, errors, warnings
 *
 * Under /slurm the form is Slurm's: protocol errors are plain text, operations that fail have an envelope and 422,
 * as a real slurmrestd was recorded to answer. Elsewhere the same envelope comes with the usual status codes.
 */
#ifndef SPURRESTD_ANSWER_H
#define SPURRESTD_ANSWER_H

#include "schema/field.h"
#include "schema/jsonw.h"
#include "spurrestd/exchange.h"

struct warning {
    const char *text, *source;
};

/* An answer that is being written; its memory is its own until it is sent. */
struct answer {
    struct exchange *x;
    struct str out;
    struct jsonw json;
    struct warning warnings[32];
    size_t warning_count;
};

const char *answer_type(const struct exchange *x); /* application/json or yaml */

/* Begins the outermost object. */
struct answer *answer_new(struct exchange *x);
void answer_warn(struct answer *answer, const char *source, const char *fmt, ...) PRINTF(3, 4);
/* Adds meta, errors and warnings, and sends it. With exchange_begin() done, ends it. Frees it. */
void answer_send(struct answer *answer);
void answer_free(struct answer *answer);
/* What is written so far goes out, when it is much; the rest comes in parts. */
void answer_flush(struct answer *answer);

/* One error and nothing else. `source` may be NULL. */
void answer_error(struct exchange *x, const struct err *err, const char *source);
/* The same in Slurm's words and with its status. */
void answer_failed(struct exchange *x, int status, int number, const char *error,
                   const char *description, const char *source);
void answer_failed_warned(struct exchange *x, int status, int number, const char *error,
                          const char *description, const char *source,
                          const struct warning *warnings, size_t count);
void answer_unauthenticated(struct exchange *x, const struct err *err);
void answer_forbidden(struct exchange *x, const struct err *err);
void answer_not_found(struct exchange *x);

/* For field tables: what writers may know. */
struct field_ctx answer_ctx(const struct exchange *x, int64_t now_us);

#endif
