/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - numbers that people read and write as words: states, flags, signals, mail types
 *
 * A table is a list of rows; the walks below find a word in any of them. Values are Slurm's numbers
 * and so are the words, because scripts match on both.
 */
#ifndef SCHEMA_NAMES_H
#define SCHEMA_NAMES_H

#include "base/err.h"
#include "base/str.h"

struct name_row {
    const char *name; /* "RUNNING" */
    const char *code; /* "R"; NULL when there is no short form */
    uint32_t value;
    const char *help;
};

struct name_table {
    const char *what; /* "job state", for messages */
    const struct name_row *rows;
    size_t count;
};

extern const struct name_table job_state_names; /* base states: JobState */
extern const struct name_table
    job_flag_names; /* JobFlag, in the order in which they hide a state */
extern const struct name_table node_state_names; /* NodeState */
extern const struct name_table node_flag_names;  /* NodeFlag, in the order "IDLE+DRAIN+..." has */
extern const struct name_table partition_state_names;
extern const struct name_table mail_type_names;
extern const struct name_table signal_names; /* without "SIG" */
extern const struct name_table dependency_names;
extern const struct name_table exclusive_names;

/* By name or code, ASCII case ignored; NULL when there is none. */
const struct name_row *name_find(const struct name_table *table, const char *text, size_t len);
/* The row of a value, or NULL. */
const struct name_row *name_row_of(const struct name_table *table, uint32_t value);
/* Its name, or "?" so that a number from a newer peer does no harm. */
const char *name_of(const struct name_table *table, uint32_t value);
/* Adds all names of the bits in mask, joined; returns how many. */
size_t name_add_mask(const struct name_table *table, uint32_t mask, const char *joiner,
                     struct str *out);

/* What a job's state is called: a flag such as COMPLETING hides the base state. */
const char *job_state_text(uint32_t state, uint32_t flags); /* "COMPLETING" */
const char *job_state_code(uint32_t state, uint32_t flags); /* "CG" */
bool job_state_ended(uint32_t state);                       /* COMPLETED and everything after it */

/* A word of squeue --states: exactly one of *state (with *is_flag false) or a flag is set. */
bool job_state_find(const char *text, size_t len, uint32_t *value, bool *is_flag);

/*
 * The same for nodes. Flags change the word and the last character: DRAIN makes DRAINED of IDLE and
 * DRAINING of ALLOCATED, NO_RESPOND adds '*'. Upper case; sinfo prints them in lower case.
 */
void node_state_add_text(struct str *out, uint32_t state, uint32_t flags); /* "DRAINING*" */
void node_state_add_code(struct str *out, uint32_t state, uint32_t flags); /* "DRNG*" */
void node_state_add_full(struct str *out, uint32_t state, uint32_t flags); /* "MIXED+DRAIN" */

/* "USR1", "SIGUSR1", "10"; false when there is no such signal. */
bool signal_find(const char *text, uint32_t *number);
const char *signal_name(uint32_t number); /* "USR1", or NULL */

#endif
