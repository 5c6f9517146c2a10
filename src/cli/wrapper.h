/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wrapper.h - commands of PBS and LSF: their words become those of ours, their lists come from ours
 */
#ifndef CLI_WRAPPER_H
#define CLI_WRAPPER_H

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"

struct wrapper {
    const char *name; /* before messages: "qsub" */
    struct arena arena;
    VEC(char *) words; /* of the command that is called; [0] is its name */
};

/* What the words of a command may be. One row each. */
struct wrapper_option {
    const char *name; /* "-u", "-Is" */
    bool has_value;
    const char *ours; /* "--user=%s", "--hold"; NULL: `why` */
    const char *why;  /* refused with it */
    char flag;        /* not 0: noted in wrapper_read()'s flags instead, as this letter */
};

void wrapper_init(struct wrapper *wrapper, const char *name, const char *program);
void wrapper_done(struct wrapper *wrapper);
void wrapper_add(struct wrapper *wrapper, const char *fmt, ...) PRINTF(2, 3);
int wrapper_error(const struct wrapper *wrapper, const char *fmt, ...) PRINTF(2, 3); /* 1 */

struct wrapper_table {
    const char *usage, *about;
    const struct wrapper_option *rows;
    size_t count;
};

/*
 * Reads options up to the first word that is none, `*used` words; each adds what it becomes. Letters of rows
 * with a flag are set in flags['x']. Returns -1 to go on, otherwise the exit code, after help or a complaint.
 */
int wrapper_read(struct wrapper *wrapper, const struct wrapper_table *table, int argc, char **argv,
                 int *used, const char *flags[128]);

/* Calls `run` with the words. */
int wrapper_call(struct wrapper *wrapper, int (*run)(int argc, char **argv));
/* The same, what it prints as text; 0 or its exit code. */
int wrapper_capture(struct wrapper *wrapper, int (*run)(int argc, char **argv), struct str *out);
/* Standard input becomes this text. */
int wrapper_give_input(struct wrapper *wrapper, const char *text, size_t len);

/* "12.server", "12[3].server", "12[]" are 12, 12_3 and 12. */
const char *wrapper_job_id(struct wrapper *wrapper, const char *text);

/* Splits a line of fields at '|', in place; missing ones are "". */
void wrapper_fields(char *line, char **fields, size_t count);

#endif
