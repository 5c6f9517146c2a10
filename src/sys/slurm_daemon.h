/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slurm_daemon.h - our daemons under Slurm's names: Slurm's options become ours
 *
 * slurmctld, slurmd, sackd and slurmrestd are symbolic links to our programs. Called by such a name, a
 * program takes the options of Slurm's daemon; each of them becomes one of ours, holds already, or is
 * refused with the reason. Under its own name a program takes its own options alone.
 */
#ifndef SYS_SLURM_DAEMON_H
#define SYS_SLURM_DAEMON_H

#include <stdbool.h>

/* The name in argv[0] is one of Slurm's. */
bool slurm_daemon_is(const char *program);

/*
 * When slurm_daemon_is(): replaces the arguments by ours, which live as long as the process. Returns
 * -1 to go on, otherwise the exit status: help or version were printed, or an option was refused.
 */
int slurm_daemon_arguments(int *argc, char ***argv);

/* The slurm.conf that holds: $SLURM_CONF, or /etc/slurm/slurm.conf. */
const char *slurm_conf_path(void);

#endif
