/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz.h - what every target begins with
 *
 * A target reads bytes as its parser would and asserts what must hold of the result. CHECK() stops
 * the program, in every build, so that the fuzzer and the replay of the corpus both notice.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(what)                                                                   \
    do {                                                                              \
        if (!(what)) {                                                                \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #what); \
            abort();                                                                  \
        }                                                                             \
    } while (0)

#define FUZZ_TEXT CLEANUP(str_done) struct str

/* The input as text; what follows a NUL is not seen. The caller frees it. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = mem_new(size + 1);

    if (size)
        memcpy(text, data, size);
    return text;
}

#endif
