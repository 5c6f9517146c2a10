/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reasons.h - why a job waits or failed: JobStatus.reason
 *
 * The numbers and words are Slurm's; reasons_list.h holds the rows.
 */
#ifndef SCHEMA_REASONS_H
#define SCHEMA_REASONS_H

#include "base/str.h"

enum job_reason {
#define REASON(symbol, number, word, help) symbol = number,
#include "schema/reasons_list.h"
#undef REASON
    REASON_COUNT
};

const char *reason_word(
    uint32_t reason); /* "Resources"; "InvalidReason" for a number without a row */
const char *reason_help(uint32_t reason); /* in our words, or NULL */

/* The number of a word, case ignored; false when there is none. */
bool reason_find(const char *word, uint32_t *reason);

/*
 * Adds the reason as columns show it: the text that came with it when there is one
 * ("ReqNodeNotAvail, May be reserved for other job"), the signal of a RaisedSignal, else the word.
 */
void reason_add(struct str *out, uint32_t reason, const char *text, uint32_t exit_status);

#endif
