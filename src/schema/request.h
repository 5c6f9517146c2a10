/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h - a job as a command asks for it: JobSpec, and what only the command itself acts on
 *
 * Filled by the walks of option.h over job_options, in the order script, environment, command line,
 * then finished: what one option says about another is settled there.
 *
 *     struct job_request request;
 *     job_request_init(&request);
 *     option_read_env(&sbatch_options, &ctx, &request, err) ...
 *     job_request_finish(&request, err) ...
 *     job_request_done(&request);
 */
#ifndef SCHEMA_REQUEST_H
#define SCHEMA_REQUEST_H

#include "base/arena.h"
#include "base/vec.h"
#include "proto/job.pb-c.h"
#include "schema/option.h"

enum { CMD_SBATCH = 1, CMD_SALLOC = 2, CMD_SRUN = 4, CMD_ALL = 7 };

struct job_request_given {
    const struct option *row;
    const char *value; /* NULL for a flag */
    enum option_level level;
};

struct job_request {
    JobSpec *spec; /* first: rows with INTO_MESSAGE go here */
    struct arena arena;
    VEC(struct job_request_given) given; /* one per option, the last one that was given */

    /* texts that become part of the spec when all are known */
    const char *gres, *gpus, *gpus_per_node, *gpus_per_socket, *gpus_per_task;
    enum option_level mem_level, mem_cpu_level, mem_gpu_level;

    /* the command's own business */
    const char *wrap, *export, *export_file, *nodefile, *propagate;
    bool parsable, quiet, test_only, wait, get_user_env, ignore_pbs;
    bool help, usage, version, watch;
    const char *topic; /* option whose value was "help" */
    uint32_t verbose;

    /* of srun and salloc */
    bool label, overlap, exact, multi_prog, unbuffered, pty, interactive, preserve_env,
        kill_on_bad_exit, disable_status, external_launcher;
    bool quit_on_interrupt, no_shell, bell;
    const char *het_group;
    bool wait_for_children;
    const char *mpi;
    const char *resv_ports; /* how many; "": by the number of tasks; NULL: none */
    const char *x11;        /* all, first, last, batch; NULL: not */
    const char *prolog, *epilog, *task_prolog, *task_epilog;  /* of srun */
    const char *bcast, *bcast_exclude, *compress, *send_libs; /* "": given without a value */
    uint32_t jobid, relative, wait_s;
    const char *run_uid, *run_gid;
    const char *ignore_signals;
    uint32_t msg_timeout_s, node_debug;
    uint32_t kill_command; /* a signal's number; 0: not asked for */
};

void job_request_init(struct job_request *request);
/* What the first component of a heterogeneous job says for all, where this one says nothing: times. */
void job_request_inherit(struct job_request *request, const struct job_request *first);
void job_request_done(struct job_request *request);

/* Settles what depends on several options: memory, GPUs, tasks. */
int job_request_finish(struct job_request *request, struct err *err);

/*
 * Nodes and tasks of a job that is to be made: no more nodes than tasks, and tasks by -B. True when
 * there are fewer nodes than were asked for; the warning says so.
 */
bool job_request_settle_counts(struct job_request *request, struct str *warning);

/* "gpu:a100:2,shard:4" as requests of one scope, appended to spec->gres; "none" is nothing. */
int job_request_add_gres(JobSpec *spec, const char *text, GresScope scope, bool gpus_only,
                         struct err *err);
void job_request_clear_gres(JobSpec *spec);

/* Was the option given, by whatever means? */
bool job_request_has(const struct job_request *request, const char *name);

/* For sbatch -v: every option that was given, one per line, sorted by name. */
void job_request_add_given(const struct job_request *request, const char *command, struct str *out);

/* What --cpu-bind=help and the like show; false: nothing was asked for. */
bool job_request_add_topic(const struct job_request *request, struct str *out);

extern const struct option_set sbatch_options, salloc_options, srun_options;

#endif
