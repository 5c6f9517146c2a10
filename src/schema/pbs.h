/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pbs.h - the words of qsub as those of sbatch
 */
#ifndef SCHEMA_PBS_H
#define SCHEMA_PBS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/vec.h"

struct pbs_words {
    struct arena *arena;
    VEC(char *) words;        /* "--nodes=2", "--hold"; in the arena */
    VEC(const char *) unused; /* "-S", "-l vmem": understood, but nothing here does it */
    bool has_umask;
    unsigned umask;
    bool named, joined, has_output; /* -N; -j oe; -o */
};

/*
 * Reads options as qsub has them up to the first word that is none; *used becomes how many words they
 * are. The rows are those of #PBS lines.
 */
int pbs_read_words(struct pbs_words *out, int count, char **words, int *used, struct err *err);
void pbs_words_done(struct pbs_words *words);

#endif
