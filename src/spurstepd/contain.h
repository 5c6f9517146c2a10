/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contain.h - where the processes of a step are held, so that none gets away
 *
 * A cgroup of version 2 when the task names one and we may make it; otherwise the tree of processes
 * below this one, which is a subreaper. Either way every process of the step is a descendant of the
 * supervisor: when wait() has nobody left, nothing of the step is left.
 */
#ifndef SPURSTEPD_CONTAIN_H
#define SPURSTEPD_CONTAIN_H

#include "base/err.h"
#include "base/str.h"
#include "proto/step.pb-c.h"
#include "spurstepd/proc_tree.h"

struct contain {
    int cgroup_fd;  /* directory of the step; -1: by the process tree */
    char *step_dir; /* NULL without a cgroup */
    char *job_dir;  /* where limits are; NULL: the kernel offers none, one directory is enough */
    bool frozen;
    bool has_cpuset; /* the task's CPUs are enforced by the kernel */
    char how[128];   /* in words, for the node's description */
};

/* Never fails: what cannot be had is said in `how`. */
void contain_open(struct contain *contain, const StepTask *task);

/* To every process of the step. */
void contain_signal(struct contain *contain, int sig);
void contain_freeze(struct contain *contain, bool on);

/* SIGKILL to every process, frozen or not. To be repeated until wait() has nobody left. */
void contain_kill(struct contain *contain);

/* Adds what the kernel counted to `usage`; leaves it alone where nothing is counted. */
void contain_usage(const struct contain *contain, Usage *usage);
/* Appends the processes in the step's cgroup, in no order. False: there is none. */
bool contain_pids(const struct contain *contain, struct pids *out);

/* The most memory its cgroup held, files in memory too; 0: not counted. */
uint64_t contain_memory_peak(const struct contain *contain);
/* How many processes of the step the kernel killed for lack of memory. */
uint64_t contain_oom_kills(const struct contain *contain);

/* Removes the cgroups, which must be empty. */
void contain_close(struct contain *contain);

#endif
