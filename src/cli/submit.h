/* SPDX-License-Identifier: Apache-2.0 */
/*
 * submit.h - the parts of sbatch
 */
#ifndef CLI_SUBMIT_H
#define CLI_SUBMIT_H

#include "cli/cli.h"
#include "proto/controller.pb-c.h"
#include "schema/request.h"

/* submit_env.c */

/*
 * What --export, --export-file and --get-user-env ask for, as the payload's environment; adds
 * SLURM_SUBMIT_DIR, SLURM_SUBMIT_HOST and SLURM_EXPORT_ENV. Pure but for --export-file.
 */
struct submit_env {
    const char *export, *export_file;
    const char *submit_dir, *submit_host;
    char *const *env;
    bool step; /* of a step with --export of its own: its tasks' steps do not inherit it */
};
int submit_env(const struct submit_env *from, struct arena *arena, JobPayload *payload,
               struct err *err);

/* The limits of this shell that `propagate` names ("ALL" when NULL). */
void submit_rlimits(const char *propagate, struct arena *arena, JobPayload *payload);

/* submit_wait.c */

/* Waits until the job has ended; the exit code is the job's, the highest of an array. */
int submit_wait(struct cli *cli, uint32_t job_id);
/* The same of a job or one task of an array: "12", "12_3". */
int submit_wait_id(struct cli *cli, const char *id);
/* The same, showing every change of state and the output. */
int submit_watch(struct cli *cli, uint32_t job_id);

/* logs.c: copies the output of a running or ended job to standard output until it ends. */
int logs_copy(struct cli *cli, const char *id, bool error, bool follow, uint64_t tail_lines,
              struct err *err);

#endif
