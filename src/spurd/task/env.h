/* SPDX-License-Identifier: Apache-2.0 */
/*
 * env.h - the variables that a batch script, a prolog and an epilog find
 *
 * One row per variable in env_rows.c. Values follow Slurm's, which programs read: MPI libraries,
 * frameworks, users' scripts.
 */
#ifndef SPURD_ENV_H
#define SPURD_ENV_H

#include "base/arena.h"
#include "base/str.h"
#include "base/vec.h"
#include "proto/agent.pb-c.h"

enum env_where { ENV_BATCH = 1, ENV_PROLOG = 2, ENV_EPILOG = 4 };

/* Of "1-9:2%4" or "1,5,7-8": how many, the least, the greatest, and the step (1 when irregular). */
struct env_array {
    uint64_t count;
    uint32_t min, max, step;
};

/* What the values are made from. Only job_id, owner, spec, here, node need be given. */
struct env_job {
    uint32_t job_id, attempt;
    const JobOwner *owner;
    const JobSpec *spec;
    const JobStatus *status;
    const Allocation *allocation;
    const NodeAlloc *here;
    bool gpu_local;             /* other GPUs cannot be opened, so those of the job count from 0 */
    const NodeInventory *found; /* of this node: which make its GPUs are */
    const Config *config;
    const char *node;
    const char *socket; /* of spurd; NULL: none */
    const char *cluster;
    const char *topology; /* "switch1.node1"; NULL: no topology */
    const char *std_in, *std_out, *std_err;
    const char *ml_address; /* of the first node; NULL: only its name is known */
    const char *ml_port;    /* --ml-env: of the user's own; NULL: made from the job */
    int64_t start_us;
    int64_t time_limit_s;    /* negative: none */
    uint32_t derived_status; /* epilog: the highest of the job's steps here */
    const StepEnded *ended;  /* epilog: how the script ended; may be NULL */
    struct env_array array;  /* set by env_fill() */
};

/* --oom-kill-step of the job, else TaskPluginParam. */
bool env_oom_kill_step(const JobSpec *spec, const Config *config);

/*
 * An environment under construction: names are unique, the last value counts. Everything is in the
 * arena; the index holds places in the list by a hash of the name, and names nothing itself.
 */
struct env {
    struct arena *arena;
    VEC(char *) list; /* NAME=value */
    uint32_t *slots;  /* place + 1; 0: free */
    size_t slot_count;
};

void env_init(struct env *env, struct arena *arena);
void env_done(struct env *env); /* the entries live on in the arena */
/* "NAME=value" of `len` bytes; what has no '=' or holds a NUL is left out. */
void env_put(struct env *env, const char *entry, size_t len);
void env_set(struct env *env, const char *name, const char *value);
const char *env_get(const struct env *env, const char *name); /* NULL: absent */

/* A copy of the entries, ended by NULL, on the heap: for whoever outlives the arena. */
char **env_copy(const struct env *env);
void env_list_free(char **list);

/* Sets every row that `where` has and that says something about this job. */
void env_fill(struct env *env, const struct env_job *job, enum env_where where);

/* What is known of each component of a heterogeneous job, and how many there are. */
void env_fill_het(struct env *env, const struct env_job *job, Job *const *components, size_t count);

/* "2(x3),1": counts per node as Slurm writes them. */
void env_add_counts(struct str *out, const uint32_t *counts, size_t len);

/* "2,5,7" from there on becomes "0,1,2". */
bool env_gpu_renumber(struct str *out, size_t from);

/*
 * --ml-env (env_ml.c). The port where processes of a step meet; the host of "http://host:port", or the
 * node's name; MASTER_PORT when it is the user's, not ours of the script around: NULL.
 */
uint16_t env_ml_port(uint32_t job, uint32_t step);
bool env_ml_host(const char *address, const char *node, struct str *out);
const char *env_ml_own_port(const struct env *env);

/* False when it is not one. */
bool env_read_array(const char *text, struct env_array *out);

#endif
