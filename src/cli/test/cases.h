/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases.h - recorded commands and what they printed
 *
 * A file of cases has "=== WORDS... $COMMAND" and the output of each. case_next() gives them one by
 * one; capture_begin() and capture_end() catch what is printed to standard output meanwhile.
 */
#ifndef CLI_TEST_CASES_H
#define CLI_TEST_CASES_H

#include "base/str.h"

struct cases {
    char *text, *at;
};
struct one_case {
    char *words[4]; /* before the command */
    int argc;
    char *argv[32];
    char *output; /* begin with NULL; free it at the end */
};

void cases_open(struct cases *cases, const char *name);
bool case_next(struct cases *cases, struct one_case *one, int words);
void cases_close(struct cases *cases);

void capture_begin(void);
char *capture_end(void); /* the caller frees it */

#endif
