/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task.c - from what the controller says of a job to what a supervisor needs to run it
 */
#include "spurd/task/task.h"

#include "spurd/task/container.h"

#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "schema/job_container.h"
#include "schema/pattern.h"

const JobSpec *task_spec(const Grant *grant)
{
    return grant->launch && grant->launch->spec ? grant->launch->spec : grant->spec;
}

static const JobStatus *status_of(const Grant *grant)
{
    return grant->launch ? grant->launch->status : NULL;
}

int64_t task_time_limit_s(const Grant *grant, const Config *config)
{
    int64_t limit_s = -1;

    if (grant->launch && grant->launch->has_time_limit_s)
        limit_s = grant->launch->time_limit_s;
    if (grant->has_time_limit_s)
        limit_s = grant->time_limit_s;
    if (limit_s < 0)
        return -1;
    return limit_s + (config ? config->over_time_limit_min * INT64_C(60) : 0);
}

/* A stand-in for what the schema's patterns want. */
static Job as_job(const Grant *grant)
{
    Job job = JOB__INIT;

    job.has_id = true;
    job.id = grant->job_id;
    job.owner = grant->owner;
    job.spec = (JobSpec *)task_spec(grant);
    job.status = (JobStatus *)status_of(grant);
    return job;
}

static int expand(const Job *job, const char *host, const char *text, struct arena *arena,
                  char **out, struct err *err)
{
    CLEANUP(str_done) struct str path = { 0 };
    struct pattern_job pattern;

    pattern_of_job(&pattern, job);
    pattern.host = host;
    if (text[0] != '/')
        str_addf(&path, "%s/", job->spec->work_dir);
    if (pattern_expand(text, &pattern, &path, err) < 0)
        return -(int)ERR_TOO_LARGE;
    *out = arena_strdup(arena, str_text(&path));
    return 0;
}

int task_files(const struct task_node *node, const Grant *grant, struct arena *arena, char **std_in,
               char **std_out, char **std_err, struct err *err)
{
    Job job = as_job(grant);
    const JobSpec *spec = job.spec;
    bool task = job.status && job.status->has_array_job_id;
    const char *out = spec->std_out;

    *std_in = *std_out = *std_err = NULL;
    if (str_is_empty(spec->work_dir))
        return err_code(err, ERR_WORK_DIR);
    if (str_is_empty(out))
        out = task ? "slurm-%A_%a.out" : "slurm-%j.out";
    if (expand(&job, node->name, out, arena, std_out, err) < 0)
        return err_wrap(err, "standard output");
    if (!str_is_empty(spec->std_err) &&
        expand(&job, node->name, spec->std_err, arena, std_err, err) < 0)
        return err_wrap(err, "standard error");
    if (!str_is_empty(spec->std_in) &&
        expand(&job, node->name, spec->std_in, arena, std_in, err) < 0)
        return err_wrap(err, "standard input");
    if (str_eq(*std_err, *std_out))
        *std_err = NULL;
    return 0;
}

char *task_dir(const struct task_node *node, uint32_t job, uint32_t attempt, struct arena *arena)
{
    return arena_printf(arena, "%s/%u.%u", node->run_dir, job, attempt);
}

char *task_keep_file(const struct task_node *node, uint32_t job, uint32_t attempt,
                     struct arena *arena)
{
    return arena_printf(arena, "%s/ended/%u.%u.batch", node->spool_dir, job, attempt);
}

char *task_cgroup(const struct task_node *node, uint32_t job, uint32_t attempt, struct arena *arena)
{
    if (!node->cgroup)
        return NULL;
    return arena_printf(arena, "%s/%u.%u%cbatch", node->cgroup, job, attempt,
                        node->has_controllers ? '/' : '.');
}

/* A directory of the job around those of its steps is for limits that they share. */
static void build_cgroup(const struct task_node *node, const Grant *grant, const char *step,
                         struct arena *arena, StepTask *out)
{
    if (!node->cgroup)
        return;
    out->cgroup = arena_printf(arena, "%s/%u.%u%c%s", node->cgroup, grant->job_id, grant->attempt,
                               node->has_controllers ? '/' : '.', step);
    if (node->has_controllers)
        out->job_cgroup =
            arena_printf(arena, "%s/%u.%u", node->cgroup, grant->job_id, grant->attempt);
}

void task_env_job(const struct task_node *node, const Grant *grant, struct env_job *out)
{
    *out = (struct env_job){
        .job_id = grant->job_id,
        .attempt = grant->attempt,
        .owner = grant->owner,
        .spec = task_spec(grant),
        .status = status_of(grant),
        .allocation = grant->allocation,
        .here = grant->alloc,
        .found = node->inventory ? &node->inventory->node : NULL,
        .config = node->config,
        .node = node->name,
        .socket = node->socket,
        .cluster = node->cluster,
        .topology = node->spec && !str_is_empty(node->spec->topology) ? node->spec->topology : NULL,
        .start_us = grant->start_us,
        .time_limit_s = task_time_limit_s(grant, NULL),
        .ml_address = grant->n_addresses ? grant->addresses[0] : NULL,
    };
}

bool task_hides_devices(const struct task_node *node, const StepTask *task)
{
    return node->change_user && node->cgroup && task->n_denied > 0;
}

static int check_payload(const JobPayload *payload, struct err *err)
{
    size_t env_bytes = 0;

    for (size_t i = 0; i < payload->n_env; i++)
        env_bytes += payload->env[i].len + 1;
    if (payload->script.len == 0)
        return err_code(err, ERR_NO_SCRIPT);
    if (payload->script.len > LIMIT_SCRIPT_BYTES)
        return err_set(err, ERR_TOO_LARGE, "batch script");
    if (env_bytes > LIMIT_ENV_BYTES || payload->n_env > LIMIT_ENV_COUNT)
        return err_set(err, ERR_TOO_LARGE, "environment");
    if (payload->n_args > LIMIT_ARGS_COUNT)
        return err_set(err, ERR_TOO_MANY, "script arguments");
    return 0;
}

static void set_if_absent(struct env *env, const char *name, const char *value)
{
    if (!str_is_empty(value) && !env_get(env, name))
        env_set(env, name, value);
}

/* One block: a hundred small fields cost more on both sides than all the rest of a task. */
static void build_block(const struct env *env, struct arena *arena, StepTask *out)
{
    size_t len = 0;

    vec_each (char *, entry, &env->list)
        len += strlen(*entry) + 1;
    uint8_t *at = arena_alloc(arena, len + 1);
    out->has_env_block = true;
    out->env_block = (ProtobufCBinaryData){ .data = at, .len = len };
    vec_each (char *, entry, &env->list)
        at = (uint8_t *)stpcpy((char *)at, *entry) + 1;
}

static void build_env(const struct task_node *node, const Grant *grant, const JobPayload *payload,
                      const struct task_login *login, struct arena *arena, StepTask *out)
{
    struct env env;
    struct env_job job;

    env_init(&env, arena);
    for (size_t i = 0; i < payload->n_env; i++)
        env_put(&env, (const char *)payload->env[i].data, payload->env[i].len);
    task_env_job(node, grant, &job);
    job.gpu_local = task_hides_devices(node, out);
    job.ml_port = env_ml_own_port(&env);
    env_fill(&env, &job, ENV_BATCH);
    if (grant->launch)
        env_fill_het(&env, &job, grant->launch->components, grant->launch->n_components);
    set_if_absent(&env, "SLURM_SUBMIT_DIR", job.spec->work_dir);
    set_if_absent(&env, "SLURM_SUBMIT_HOST", job.spec->alloc_node);
    set_if_absent(&env, "USER", grant->owner->user);
    set_if_absent(&env, "LOGNAME", grant->owner->user);
    if (login) {
        set_if_absent(&env, "HOME", login->home);
        set_if_absent(&env, "SHELL", login->shell);
        env_set(&env, "SLURM_GET_USER_ENV", "1");
    } else {
        set_if_absent(&env, "PATH", "/usr/local/bin:/usr/bin:/bin");
    }
    set_if_absent(&env, "TMPDIR", "/tmp");
    if (node->display) {
        env_set(&env, "DISPLAY", node->display);
        env_set(&env, "XAUTHORITY", node->xauthority);
    }
    build_block(&env, arena, out);
    env_done(&env);
}

static bool in_list(const char *list, const char *name)
{
    struct span word;

    while (str_next(&list, ", ", &word)) {
        if (span_ieq(word, name) || span_ieq(word, "ALL"))
            return true;
    }
    return false;
}

bool task_keeps_rlimit(const Config *config, const char *name)
{
    const char *except = config ? config->propagate_rlimits_except : NULL;
    const char *only = config ? config->propagate_rlimits : NULL;

    if (str_is_empty(name) || (!str_is_empty(except) && in_list(except, name)))
        return false;
    return str_is_empty(only) || in_list(only, name);
}

static void build_rlimits(const Config *config, const JobPayload *payload, struct arena *arena,
                          StepTask *out)
{
    out->rlimits = ARENA_ARRAY(arena, Rlimit *, payload->n_rlimits + 1);
    for (size_t i = 0; i < payload->n_rlimits; i++) {
        if (task_keeps_rlimit(config, payload->rlimits[i]->name))
            out->rlimits[out->n_rlimits++] = payload->rlimits[i];
    }
}

static void build_id(const Grant *grant, struct arena *arena, StepTask *out)
{
    out->id = ARENA_NEW(arena, StepId);
    step_id__init(out->id);
    out->id->has_job_id = out->id->has_attempt = out->id->has_step = true;
    out->id->job_id = grant->job_id;
    out->id->attempt = grant->attempt;
    out->id->step = TASK_STEP_BATCH;
}

bool task_is_bound(const Grant *grant, const Config *config)
{
    const JobSpec *spec = task_spec(grant);

    if (grant->has_lease_bound)
        return grant->lease_bound;
    return spec->has_requeue ? spec->requeue
                             : !config || !config->has_job_requeue || config->job_requeue;
}

/* The script stays a file of the node; it is seen inside under the same name. */
static int build_container(const struct task_node *node, const JobSpec *spec, struct arena *arena,
                           StepTask *out, struct err *err)
{
    StepContainer asked;

    if (!job_container(spec, &asked))
        return 0;
    if (!node->container)
        return err_set(err, ERR_UNSUPPORTED, "this node has no spur-container");
    out->wrapper =
        container_words(node->container, &asked, arena_printf(arena, "%s/slurm_script", out->dir),
                        node->xauthority, arena, &out->n_wrapper);
    return 0;
}

static void add_hook(char **list, size_t *count, char *path)
{
    if (!str_is_empty(path))
        list[(*count)++] = path;
}

void task_hooks(const struct task_node *node, char *prolog, char *epilog, struct arena *arena,
                StepTask *out)
{
    const Config *config = node->config;

    out->task_prolog = ARENA_ARRAY(arena, char *, 2);
    out->task_epilog = ARENA_ARRAY(arena, char *, 2);
    add_hook(out->task_prolog, &out->n_task_prolog, config ? config->task_prolog : NULL);
    add_hook(out->task_prolog, &out->n_task_prolog, prolog);
    add_hook(out->task_epilog, &out->n_task_epilog, epilog);
    add_hook(out->task_epilog, &out->n_task_epilog, config ? config->task_epilog : NULL);
}

int task_build(const struct task_node *node, const Grant *grant, const JobPayload *payload,
               const struct task_login *login, struct arena *arena, StepTask *out, struct err *err)
{
    const JobSpec *spec = task_spec(grant);
    char batch[] = "batch";

    step_task__init(out);
    if (!spec || !grant->owner)
        return err_set(err, ERR_BAD_MESSAGE, "a launch without a specification or an owner");
    if (check_payload(payload, err) < 0 ||
        task_files(node, grant, arena, &out->std_in, &out->std_out, &out->std_err, err) < 0)
        return -(int)(err ? err->code : ERR_INVALID);
    build_id(grant, arena, out);
    out->name = arena_strdup(arena, batch);
    out->dir = task_dir(node, grant->job_id, grant->attempt, arena);
    out->keep_file = task_keep_file(node, grant->job_id, grant->attempt, arena);
    build_cgroup(node, grant, batch, arena, out);
    out->node = arena_strdup(arena, node->name);
    out->owner = grant->owner;
    out->has_change_user = true;
    out->change_user = node->change_user;
    out->has_script = true;
    out->script = payload->script;
    out->n_args = payload->n_args;
    out->args = payload->args;
    out->work_dir = spec->work_dir;
    out->has_open_append = out->has_umask = true;
    out->open_append =
        spec->has_open_append ? spec->open_append : node->config && node->config->append_output;
    out->umask = spec->has_umask ? spec->umask & 0777 : 022;
    task_limits(node, grant, arena, out);
    out->has_oom_kill_step = true;
    out->oom_kill_step = env_oom_kill_step(spec, node->config);
    if (task_launches(node->config, "batch_step_set_cpu_freq"))
        task_freq(node, spec->cpu_freq, grant->alloc ? grant->alloc->cpu_ids : NULL, arena, out);
    build_env(node, grant, payload, login, arena, out);
    build_rlimits(node->config, payload, arena, out);
    task_limit_vsize(node, grant, arena, out);
    task_hooks(node, NULL, NULL, arena, out);
    if (build_container(node, spec, arena, out, err) < 0)
        return -(int)err->code;
    if (node->spank)
        task_spank_batch(node->spank, grant, arena, out);
    if (login) {
        out->login_shell =
            arena_strdup(arena, str_is_empty(login->shell) ? "/bin/sh" : login->shell);
    }
    if (node->lease_file && task_is_bound(grant, node->config))
        out->lease_file = arena_strdup(arena, node->lease_file);
    return 0;
}

void task_build_step(const struct task_node *node, const Grant *grant, uint32_t step,
                     struct arena *arena, StepTask *out)
{
    char number[16];

    snprintf(number, sizeof(number), "%u", step);
    build_id(grant, arena, out);
    out->id->step = step;
    build_cgroup(node, grant, number, arena, out);
    out->node = arena_strdup(arena, node->name);
    out->owner = grant->owner;
    out->has_change_user = true;
    out->change_user = node->change_user;
    task_limits(node, grant, arena, out);
    if (node->lease_file && task_is_bound(grant, node->config))
        out->lease_file = arena_strdup(arena, node->lease_file);
    const JobSpec *spec = task_spec(grant);
    out->has_warn_signal = out->has_warn_before_s = spec->signal && !spec->signal_batch_only;
    out->warn_signal = out->has_warn_signal ? spec->signal : 0;
    out->warn_before_s = spec->has_signal_before_s ? spec->signal_before_s : 60;
}
