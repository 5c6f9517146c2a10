/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script.h - options inside a batch script: #SBATCH and #PBS lines
 *
 * Lines count until the first one that is neither blank nor a comment. Words are split as a shell
 * would, with quotes and backslashes but without expansion: $HOME stays $HOME. A `#` at the start
 * of a word ends the line. "#SBATCH hetjob" begins the next component of a heterogeneous job.
 */
#ifndef SCHEMA_SCRIPT_H
#define SCHEMA_SCRIPT_H

#include "schema/request.h"

/*
 * Reads the options of one component (0 is the first) into `request`; *components (may be NULL)
 * becomes how many the script has. #PBS lines are translated unless request->ignore_pbs.
 */
int script_read_options(const struct option_set *set, const struct option_ctx *ctx,
                        struct job_request *request, const char *script, size_t len,
                        unsigned component, unsigned *components, struct err *err);

/* What is wrong with the file itself, in Slurm's words: empty, no #!, DOS line breaks, NUL. */
int script_check(const char *script, size_t len, struct err *err);

/* The words of one line, in `arena`; -1 with err for an unmatched quote. */
int script_split(struct arena *arena, const char *line, size_t len, char ***words, int *count,
                 struct err *err);

/* One #PBS line's words (script_pbs.c). */
int script_read_pbs(const struct option_set *set, const struct option_ctx *ctx,
                    struct job_request *request, int count, char **words, struct err *err);

#endif
