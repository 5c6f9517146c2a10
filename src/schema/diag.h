/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diag.h - the controller's statistics in Slurm's words: sdiag's text and JSON, REST's /diag
 */
#ifndef SCHEMA_DIAG_H
#define SCHEMA_DIAG_H

#include "base/str.h"
#include "proto/controller.pb-c.h"
#include "schema/jsonw.h"

enum diag_order {
    DIAG_BY_COUNT, /* most calls first; the default */
    DIAG_BY_ID,    /* by Slurm's message number */
    DIAG_BY_AVERAGE,
    DIAG_BY_TOTAL,
};

/* Sorts the calls of a reply by method and by user. */
void diag_sort(DiagReply *reply, enum diag_order order);

/* sdiag's report. Times are local. `latency_us` is the cost of 1,000 gettimeofday() calls. */
void diag_add_text(const DiagReply *reply, int64_t latency_us, struct str *out);

/* The object "statistics". */
void diag_add_json(const DiagReply *reply, int64_t latency_us, struct jsonw *json);

#endif
