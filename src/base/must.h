/* SPDX-License-Identifier: Apache-2.0 */
/*
 * must.h - assertions that stay on in every build
 *
 * MUST(condition) is for what our own code has established: a record that is linked, a phase that the caller checked, a
 * number in range. When it does not hold, the program writes where, what, and at which entry of the log, and aborts.
 *
 * (1) Never use it for what a command, a peer, a file or a user says: one such input would end every replica. Those
 *     are errors (err.h).
 * (2) The condition has no side effects and costs little: it is evaluated in every build.
 */
#ifndef BASE_MUST_H
#define BASE_MUST_H

#include <stdint.h>

#define MUST(condition)                                          \
    do {                                                         \
        if (__builtin_expect(!(condition), 0))                   \
            must_fail(__FILE__, __LINE__, __func__, #condition); \
    } while (0)

/* The entry of the log that is applied now; 0: none. A failure names it. */
void must_set_entry(uint64_t index);
_Noreturn void must_fail(const char *file, int line, const char *function, const char *condition);

#endif
