/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc_tree.h - the processes below one process, read from /proc
 *
 * For machines where we may not make cgroups. The root is a subreaper, so a process that
 * daemonises becomes its child and is found all the same.
 */
#ifndef SPURSTEPD_PROC_TREE_H
#define SPURSTEPD_PROC_TREE_H

#include <sys/types.h>

#include "base/vec.h"

struct pids {
    VEC(pid_t) list;
};
void pids_done(struct pids *pids);

/* Appends every living descendant of `root` by rising number; zombies are left out. */
void proc_tree_list(pid_t root, struct pids *out);

/* Sends `sig` to each; returns how many there were. */
size_t proc_tree_signal(pid_t root, int sig);

/*
 * SIGSTOP in rounds until one finds nobody running: who forks while we walk is met in the next.
 * Returns false when they outran every round.
 */
bool proc_tree_stop(pid_t root);

/*
 * SIGKILL to all of them. A process that forks faster than we read /proc is stopped first: rounds
 * of SIGSTOP until a round finds nobody new, then the kill. Returns how many were found.
 */
size_t proc_tree_kill(pid_t root);

#endif
