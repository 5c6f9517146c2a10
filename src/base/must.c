/* SPDX-License-Identifier: Apache-2.0 */
/*
 * must.c - what happens when an assertion fails
 */
#include "base/must.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local uint64_t entry;

void must_set_entry(uint64_t index)
{
    entry = index;
}

void must_fail(const char *file, int line, const char *function, const char *condition)
{
    fprintf(stderr, "fatal: %s:%d: %s: '%s' does not hold", file, line, function, condition);
    if (entry)
        fprintf(stderr, " while log entry %" PRIu64 " is applied", entry);
    fprintf(stderr, "\n");
    abort();
}
