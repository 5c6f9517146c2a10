/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h - every command of the `spur` binary
 *
 * A command is a function like main(): argv[0] is its own name, the result its exit code. It is
 * reached as `spur NAME` or through a symlink called NAME; its row is in main.c.
 */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include <stdbool.h>

struct option_set;
struct str;
extern const struct option_set explain_options, logs_options, scancel_options, scontrol_options,
    sinfo_options, sprio_options, squeue_options, token_options, sattach_options, sstat_options,
    web_options, exec_options, sacct_options, sacctmgr_options, sreport_options, sshare_options,
    seff_options, history_options, sdiag_options, strigger_options, scrontab_options,
    sbcast_options, sgather_options, journal_options,
    wait_options; /* sbatch_options is in schema/request.h */

int complete_main(int argc, char **argv); /* what the completion scripts call */
int completion_main(int argc, char **argv);
int config_main(int argc, char **argv);
int controller_main(int argc, char **argv);
int down_main(int argc, char **argv);
int exec_main(int argc, char **argv);
int explain_main(int argc, char **argv);
int journal_main(int argc, char **argv);
int logs_main(int argc, char **argv);
int man_main(int argc, char **argv);
int node_main(int argc, char **argv);
/* A file of `sacctmgr dump` as sections of spur.conf; false after a complaint. */
bool sacctmgr_sections(const char *path, struct str *out);
int sacctmgr_main(int argc, char **argv);
int salloc_main(int argc, char **argv);
int sattach_main(int argc, char **argv);
int sbatch_main(int argc, char **argv);
int sbcast_main(int argc, char **argv);
int scancel_main(int argc, char **argv);
int scontrol_main(int argc, char **argv);
int sdiag_main(int argc, char **argv);
int sgather_main(int argc, char **argv);
int show_main(int argc, char **argv); /* spur show ... is scontrol show ... */
int sim_main(int argc, char **argv);
int image_main(int argc, char **argv);
int sinfo_main(int argc, char **argv);
int sprio_main(int argc, char **argv);
int sreport_main(int argc, char **argv);
int sshare_main(int argc, char **argv);
int spur_accounting_main(int argc, char **argv);
int squeue_main(int argc, char **argv);
int srun_main(int argc, char **argv);
int scrontab_main(int argc, char **argv);
int strigger_main(int argc, char **argv);
int sstat_main(int argc, char **argv);
int sacct_main(int argc, char **argv);
int seff_main(int argc, char **argv);
int history_main(int argc, char **argv);
int token_main(int argc, char **argv);
int up_main(int argc, char **argv);
int wait_main(int argc, char **argv);
extern const struct option_set usage_options, report_options;
int report_main(int argc, char **argv);
int usage_main(int argc, char **argv);
int web_main(int argc, char **argv);

/* pbs.c, lsf.c: by the names that PBS and LSF have */
int bjobs_main(int argc, char **argv);
int bkill_main(int argc, char **argv);
int bsub_main(int argc, char **argv);
int pbsnodes_main(int argc, char **argv);
int qdel_main(int argc, char **argv);
int qhold_main(int argc, char **argv);
int qrls_main(int argc, char **argv);
int qstat_main(int argc, char **argv);
int qsub_main(int argc, char **argv);

/* For completion, one a line: every name after `spur`; every symlink. */
void commands_add_names(struct str *out);
void commands_add_slurm_names(struct str *out);
/* Slurm's name of our command `name`, or NULL. */
const char *command_slurm_name(const char *name);
/* The verbs of scontrol, one a line. */
void scontrol_add_verbs(struct str *out);

#endif
