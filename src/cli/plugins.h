/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugins.h - SPANK plugins in sbatch, salloc and srun
 *
 * The process has one stack of plugins, or none: then every function here does nothing, and costs nothing.
 *
 *     plugins_open      loads them; their options are in plugins_set() from then on
 *     plugins_options   after all options were read: tells the plugins theirs, slurm_spank_init_post_opt
 *     plugins_fill_*    what travels with the job
 *     plugins_user_init srun: the step is known and not yet launched
 *     plugins_close     slurm_spank_exit
 */
#ifndef CLI_PLUGINS_H
#define CLI_PLUGINS_H

#include "cli/cli.h"
#include "proto/job.pb-c.h"
#include "schema/request.h"

struct srun;

/* 0, or the exit code after a complaint. `set` is the command's own options. */
int plugins_open(struct cli *cli, const struct option_set *set);
void plugins_close(struct cli *cli);

/* The command's options with those of plugins; `set` itself when there are none. */
const struct option_set *plugins_set(const struct option_set *set);

int plugins_options(struct cli *cli, const struct job_request *request);

/* The job-control environment and the options: of every component. */
void plugins_fill_spec(JobSpec *spec);
/* The options as variables: of a batch script, of salloc's own environment, of a step. */
void plugins_fill_payload(struct cli *cli, JobPayload *payload);
void plugins_set_env(void);
void plugins_fill_step(struct cli *cli, JobPayload *env);

bool plugins_loaded(void);
int plugins_user_init(struct srun *srun);
/* An allocation of salloc: plugins may ask whose it is. */
void plugins_allocated(void);

#endif
