/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private.h - directories that each job has for itself: its own /tmp and /dev/shm
 *
 * The site names a base path. A job gets BASE/NODE/JOB.ATTEMPT on each of its nodes before anything of it
 * runs there, and in it one directory for each that is private; those below /dev/shm are in memory. Every
 * process of the job begins in a mount namespace of its own in which these lie over the node's. So all its
 * steps see the same files, nobody else sees them, and no mount is left on the node.
 *
 * (1) SPOOL/private/JOB.ATTEMPT says which directories there are, from before they are made until they are
 *     removed: also when the settings, the agent or the machine have changed meanwhile.
 * (2) A job that began without has none until it ends.
 */
#ifndef SPURD_PRIVATE_H
#define SPURD_PRIVATE_H

#include "spurd/root.h"

/* After new settings: can this be done here? Says so when it cannot. */
void private_check(struct agent *agent);

/* Makes the directories of a job that is to begin; sets held->is_private when it gets some. */
int private_make(struct agent *agent, struct attempt *held, struct err *err);

/* What a supervisor needs to know of them. */
int private_fill(struct agent *agent, const struct attempt *held, struct arena *arena,
                 StepTask *out, struct err *err);

/* In a worker, when nothing of the job is left. */
void private_remove(struct agent *agent, uint32_t job, uint32_t attempt);

/* After a restart: finds out who has some, and removes what is nobody's. */
void private_recover(struct agent *agent);

/*
 * A job's file as a path for us, on the heap. When it is in a private directory, *fd is that directory, for the
 * caller to close, and the path begins with "./" and is relative to it; otherwise *fd is AT_FDCWD. `held` may be NULL.
 */
char *private_path(struct agent *agent, const struct attempt *held, const char *path, int *fd);

#endif
