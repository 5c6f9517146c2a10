/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc.h - an allocation as srun and salloc get it, hold it and give it back
 */
#ifndef CLI_ALLOC_H
#define CLI_ALLOC_H

#include "cli/cli.h"
#include "proto/controller.pb-c.h"
#include "schema/request.h"

struct client_stream;

struct alloc {
    struct cli *cli;
    bool is_salloc;
    uint32_t id;
    Job *job;                    /* as it was when it began to run */
    Job **jobs;                  /* the same of every component, `job` first; see alloc_get() */
    size_t count;                /* of them; 0: not submitted */
    struct client_stream **near; /* streams of the components, while they are waited for */
    struct client_stream *watch; /* holds it: the controller ends it when this breaks */
    bool ended;                  /* the controller says so */
    JobState state;
    uint32_t reason;     /* why it waits, as last heard */
    int64_t immediate_s; /* give up after so long; negative: never */
    bool hold;           /* ends with us */
};

/* Whether an option came on the command line; *value is what was said, when not NULL. */
bool alloc_given(const struct job_request *request, const char *name, const char **value);

/* What of the spec the command itself says: name, directory, host, session. */
void alloc_fill_spec(struct job_request *request, const char *name, char **argv, int argc);

/*
 * Submits a job of `count` components (one: an ordinary job) and waits until all of them run, saying so as
 * Slurm does. *interrupted (set by a signal handler) cancels. Returns 0, or the exit code after having
 * complained.
 */
int alloc_get(struct alloc *alloc, struct job_request *const *requests, size_t count,
              volatile int *interrupted);

/* Looks whether the controller has something to say, without waiting. False: the job has ended. */
bool alloc_check(struct alloc *alloc);
int alloc_fd(const struct alloc *alloc); /* for poll(); -1: none */

/* Ends the job with that status, as wait(2) gives it; or cancels it. */
void alloc_finish(struct alloc *alloc, int status);
void alloc_cancel(struct alloc *alloc);
void alloc_done(struct alloc *alloc);

/* The variables of an allocation, set in our own environment: what salloc's command and srun see. */
/* Of these, what follows from the options. */
void alloc_put_asked(const Job *job, const struct job_request *request);
void alloc_set_env(const Job *job, const struct job_request *request, const char *cluster);
/* The same for every component of a heterogeneous job, each with its number; ours are the first's. */
void alloc_set_het_env(const struct alloc *alloc, struct job_request *const *requests);
/* The variables that say which nodes an allocation has. */
void alloc_put_nodes(const Allocation *allocation);

#endif
