/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.h - names of output files: "slurm-%A_%a.out" becomes "slurm-136_7.out"
 *
 * One implementation, used where files are made (spurstepd, srun) and where their names are shown
 * (scontrol, spur logs).
 */
#ifndef SCHEMA_PATTERN_H
#define SCHEMA_PATTERN_H

#include "base/err.h"
#include "base/str.h"
#include "proto/job.pb-c.h"

struct pattern_job {
    uint32_t job_id;
    uint32_t array_job_id; /* 0: not a task of an array */
    uint32_t array_task_id;
    const char *step; /* "batch" or "0"; NULL is batch */
    const char *user;
    const char *name;
    const char *host; /* %N; what follows a dot is left out */
    uint32_t node_index;
    uint32_t task;
    uint32_t restarts;
};

/*
 * %j %A %a %b %J %N %n %r %s %t %u %x %%, with digits before the letter for zero padding (at most
 * 10). A backslash anywhere is taken out and turns patterns off. Unknown letters stay as they are.
 * ERR_TOO_LARGE when the result is longer than LIMIT_PATH_BYTES.
 */
int pattern_expand(const char *text, const struct pattern_job *job, struct str *out,
                   struct err *err);

/* What of a job patterns may show. Borrows from `job`. */
void pattern_of_job(struct pattern_job *pattern, const Job *job);

/*
 * The file that a job's standard output goes to (or its error, when `error`), absolute: as asked,
 * else slurm-%j.out or slurm-%A_%a.out in the working directory.
 */
int pattern_output_path(const Job *job, bool error, struct str *out, struct err *err);

#endif
