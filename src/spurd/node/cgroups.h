/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroups.h - where the cgroups of jobs are, and ending what is in them
 */
#ifndef SPURD_NODE_CGROUPS_H
#define SPURD_NODE_CGROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

char *cgroups_open(const char *root, const char *cluster, const char *node, char *words,
                   size_t words_bytes);
/* Does the kernel offer the controller to jobs in `dir`? NULL: any. */
bool cgroups_have(const char *dir, const char *controller);
/* Ends what is in the cgroup of an attempt and removes it; blocks a little. False: something lives. */
bool cgroups_end(const char *step_dir);
void cgroups_kill(const char *dir);                             /* what is in it; does not wait */
void cgroups_end_node(const char *cgroup, const char *run_dir); /* everything; for SIGQUIT */
/*
 * The same by marks in the environment of processes, where there are no cgroups. The socket is the
 * agent's: another cluster on this machine may have a node and a job of the same names.
 */
void cgroups_end_marked(uint32_t job, uint32_t attempt, const char *socket);

#endif
