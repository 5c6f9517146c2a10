/* SPDX-License-Identifier: Apache-2.0 */
/*
 * het.h - heterogeneous jobs on the command line: `salloc -n1 : -n2 bash`, `srun a : -n2 b`
 */
#ifndef CLI_HET_H
#define CLI_HET_H

#include "base/arena.h"
#include "schema/option.h"

/* What the command line says of one component; everything is borrowed from it or in the arena. */
struct het_words {
    char **words; /* its options */
    int count;
    char **operands; /* what follows them, ended by NULL */
    int operand_count;
};

/*
 * Cuts a command line, without the command's name, where an operand is ":". There is room for one more
 * operand in each list. Fails for options that make no sense and for more than LIMIT_HET_COMPONENTS.
 */
int het_split(const struct option_set *set, const struct option_ctx *ctx, struct arena *arena,
              int argc, char **argv, struct het_words **out, size_t *count, struct err *err);

/* The environment as one component has it: of the variables of components only its own, without number. */
char **het_env(char *const *env, unsigned group, struct arena *arena);

#endif
