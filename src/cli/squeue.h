/* SPDX-License-Identifier: Apache-2.0 */
/*
 * squeue.h - what squeue was asked for, which jobs that is, and how they are printed
 *
 * squeue.c asks the controller; everything else works on any list of jobs, so tests give it theirs.
 */
#ifndef CLI_SQUEUE_H
#define CLI_SQUEUE_H

#include "cli/cli.h"
#include "cli/queue.h"
#include "schema/columns.h"

struct squeue_args {
    const char *accounts, *format, *names_format, *jobs, *licenses, *names, *nodes, *partitions,
        *qos, *reservation, *sort, *states, *steps, *users, *json;
    bool all, array, hide, help, usage, version, long_form, me, not_me, no_header, only_state,
        priority, stale, start, job_flag, step_flag, noconvert, expand, help_letters, help_names,
        help_states, has_json, yaml;
    int64_t over_s, under_s;
    uint32_t iterate_s, verbose;
};

struct squeue {
    struct cli cli;
    struct option_set set;
    struct squeue_args args;
    struct queue_states states;
    struct columns columns;
    const char *sort;
    char **users;
    size_t user_count;
    bool nobody;         /* -u named only users that do not exist */
    const char *cluster; /* its name, as the controller says */
    ListJobsRequest request;
    struct arena round; /* what one answer needs */
    int argc;
    char **argv;
    ListStepsReply *steps; /* with --steps, of this round */
};

void squeue_init(struct squeue *squeue, int argc, char **argv);
void squeue_done(struct squeue *squeue);

/*
 * Reads options and environment and fills squeue->request. -1: go on; else the exit code, all that
 * was to be said being said.
 */
int squeue_read(struct squeue *squeue);

/* Adds the job to the list when it is asked for, several times with -P. */
void squeue_add(struct squeue *squeue, queue_jobs *jobs, const Job *job, int64_t now_us);

/* Sorts and prints to standard output; the exit code. */
int squeue_print(struct squeue *squeue, queue_jobs *jobs, const struct field_ctx *ctx);

#endif
