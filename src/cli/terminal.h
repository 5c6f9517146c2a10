/* SPDX-License-Identifier: Apache-2.0 */
/*
 * terminal.h - the terminal while a task has it: raw, and as it was whenever we are not there
 *
 * Whatever ends or stops the command (its end, a signal, a crash, a stop), the terminal is left as it was
 * found; a command that goes on makes it raw again.
 */
#ifndef CLI_TERMINAL_H
#define CLI_TERMINAL_H

#include <stdbool.h>

/*
 * Makes the terminal on standard input raw; false: there is none. Signals that nobody handles yet are
 * caught from now on: call it after the command's own handlers are there.
 */
bool terminal_raw(void);
/* As it was before. Nothing happens when it was not made raw. */
void terminal_restore(void);

#endif
