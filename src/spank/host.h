/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - loads SPANK plugins and calls them, in one context
 *
 * A process has at most one stack: plugins ask for their context without saying whose. What a plugin may ask for is in
 * struct spank_job, which the caller fills as it learns it. The functions of slurm/spank.h that plugins call are
 * exported by the program that links this folder.
 *
 *     init      load, slurm_spank_init                 options are registered here
 *     options   spank_host_set_option() for each       the plugin's own function hears of it
 *     the rest  spank_host_call()
 *     end       spank_host_call(SPANK_EXIT), spank_host_close()
 *
 * A required plugin that fails ends the call with an error. An optional one is logged and the next is called.
 */
#ifndef SPANK_HOST_H
#define SPANK_HOST_H

#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"
#include "spank/plugstack.h"

/* The same numbers as spank_context_t. */
enum spank_where {
    SPANK_LOCAL = 1,
    SPANK_REMOTE = 2,
    SPANK_ALLOCATOR = 3,
    SPANK_SLURMD = 4,
    SPANK_JOB_SCRIPT = 5,
};

enum spank_call {
    SPANK_INIT,
    SPANK_SLURMD_INIT, /* of old plugins */
    SPANK_INIT_POST_OPT,
    SPANK_LOCAL_USER_INIT,
    SPANK_USER_INIT,
    SPANK_TASK_INIT_PRIVILEGED,
    SPANK_TASK_INIT,
    SPANK_TASK_POST_FORK,
    SPANK_TASK_EXIT,
    SPANK_JOB_PROLOG,
    SPANK_JOB_EPILOG,
    SPANK_SLURMD_EXIT,
    SPANK_EXIT,
    SPANK_CALLS,
};

/* NAME=value, each of them owned by the list. */
struct spank_env {
    VEC(char *) list;
};
const char *spank_env_get(const struct spank_env *env, const char *name);
void spank_env_set(struct spank_env *env, const char *name, const char *value);
bool spank_env_unset(struct spank_env *env, const char *name);
void spank_env_copy(struct spank_env *env, char *const *from, size_t count);
void spank_env_done(struct spank_env *env);

struct spank_task {
    uint32_t number; /* in the step */
    pid_t pid;       /* 0: not started */
    bool exited;
    int status; /* as wait() gives it */
};

/* What plugins may ask for. Texts are the caller's. */
struct spank_job {
    uid_t uid;
    gid_t gid;
    uint32_t job_id, step_id;
    uint32_t nnodes, node_id, total_tasks;
    uint16_t cpus;
    uint32_t cpus_per_task;
    int argc;
    char **argv;
    gid_t *gids;
    int gid_count;
    const char *job_cores, *step_cores;
    uint64_t job_mem_mb, step_mem_mb;
    uint32_t restarts, array_id, array_task;
    struct spank_task *tasks;
    size_t task_count;
};

/* An option that a plugin registered. */
struct spank_host_option {
    const char *name, *arg, *help, *plugin;
    int has_arg;    /* 0: none, 1: needed, 2: may be left out */
    char *variable; /* _SLURM_SPANK_OPTION_PLUGIN_NAME */
    bool given;
    char *value; /* NULL: it was given without one */
};

/* What the log functions of plugins write: a whole line, without its end. `shown` is for the user in any case. */
enum spank_log_level {
    SPANK_LOG_ERROR = 2,
    SPANK_LOG_INFO,
    SPANK_LOG_VERBOSE,
    SPANK_LOG_DEBUG,
    SPANK_LOG_DEBUG2,
    SPANK_LOG_DEBUG3,
    SPANK_LOG_PLAIN = 100, /* slurm_spank_log(): as it is, for the user */
};
typedef void spank_log_fn(void *ctx, enum spank_log_level level, const char *text);

struct spank_host;

/*
 * Loads the plugins and calls slurm_spank_init, but for SPANK_JOB_SCRIPT, where Slurm does not call it. On failure
 * everything is undone. `taken` says whether a command has an option of that name itself; NULL: none has. `job` and `env` as for
 * spank_host_set_job().
 */
struct spank_host *spank_host_open(enum spank_where where, const struct plugstack_place *place,
                                   bool (*taken)(const char *name), struct spank_job *job,
                                   struct spank_env *env, struct err *err);
void spank_host_close(struct spank_host *host);

/* The functions of plugins write there. NULL: to standard error, as the program says its own. */
void spank_host_log(spank_log_fn *fn, void *ctx);

/* The job as far as it is known now; NULL: not yet. `env` is what spank_setenv() changes. */
void spank_host_set_job(struct spank_host *host, struct spank_job *job, struct spank_env *env);
/* Words that spank_prepend_task_argv() puts before the task's own; NULL: not possible now. */
void spank_host_set_prepend(struct spank_host *host, struct spank_env *words);

/* Calls the function in every plugin that has it. `task` is the place in job->tasks, -1: none. */
int spank_host_call(struct spank_host *host, enum spank_call call, int task, struct err *err);
const char *spank_host_call_name(enum spank_call call);

size_t spank_host_option_count(const struct spank_host *host);
const struct spank_host_option *spank_host_option(const struct spank_host *host, size_t index);
/* The user gave it: remembers it and tells the plugin. */
int spank_host_set_option(struct spank_host *host, size_t index, const char *value,
                          struct err *err);
/* Options that variables of `env` stand for, named `prefix` and the option's own variable. */
int spank_host_set_options_from(struct spank_host *host, const struct spank_env *env,
                                const char *prefix, struct err *err);

/* What prolog and epilog get: the job-control environment. */
struct spank_env *spank_host_job_control(struct spank_host *host);

#endif
