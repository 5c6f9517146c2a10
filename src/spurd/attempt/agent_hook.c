/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_hook.c - prolog and epilog of a grant; what runs where processes cannot be killed
 *
 * With `Serial` of prolog_flags one program at a time runs on the node: who has to wait says so
 * (hook_waits), and whoever is done has the next one go on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spurd/access/private.h"
#include "spurd/attempt/life.h"
#include "spurd/link/send.h"
#include "spurd/root.h"
#include "spurd/step/step.h"
#include "spurd/task/hook.h"
#include "spurd/task/task.h"
#include "sys/log.h"

/* PrologTimeout and EpilogTimeout come before what is said for both. */
static unsigned hook_timeout_s(const struct agent *agent, enum env_where where)
{
    const Config *config = agent_common(agent);

    if (config && where == ENV_PROLOG && config->prolog_timeout_s)
        return config->prolog_timeout_s;
    if (config && where == ENV_EPILOG && config->epilog_timeout_s)
        return config->epilog_timeout_s;
    return config && config->prolog_epilog_timeout_s ? config->prolog_epilog_timeout_s : 300;
}

/* What plugins said of the job where it was submitted. */
static void put_spank(struct env *env, const JobSpec *spec)
{
    for (size_t i = 0; i < spec->n_spank_env; i++) {
        CLEANUP(freep) char *entry = mem_printf("SPANK_%s", spec->spank_env[i]);
        if (strchr(entry, '='))
            env_put(env, entry, strlen(entry));
    }
}

/* `step` is NULL unless the program runs because of one. */
static struct hook *start_hook_of(struct agent *agent, struct attempt *held, const char *path,
                                  enum env_where where, const char *context, const char *step,
                                  hook_done_fn done)
{
    struct arena arena;
    struct task_node node;
    struct env_job job;
    struct env env;
    char *in = NULL, *out = NULL, *error = NULL;

    arena_init(&arena);
    env_init(&env, &arena);
    agent_task_node(agent, &node);
    if (held->grant && task_spec(held->grant)) {
        task_env_job(&node, held->grant, &job);
        if (!str_is_empty(job.spec->work_dir))
            task_files(&node, held->grant, &arena, &in, &out, &error, NULL);
        job.std_in = in;
        job.std_out = out;
        job.std_err = error;
        job.ended = held->report;
        job.derived_status = held->derived_status;
        env_fill(&env, &job, where);
        put_spank(&env, job.spec);
    }
    if (context)
        env_set(&env, "SLURM_SCRIPT_CONTEXT", context);
    if (step)
        env_set(&env, "SLURM_STEP_ID", step);
    char **list = env_copy(&env);
    env_done(&env);
    arena_done(&arena);
    return hook_start(agent->uv, path, list, hook_timeout_s(agent, where), done,
                      agent_ref_new(agent, held));
}

static struct hook *start_hook(struct agent *agent, struct attempt *held, const char *path,
                               enum env_where where, hook_done_fn done)
{
    return start_hook_of(agent, held, path, where, NULL, NULL, done);
}

/* ---- one at a time ---- */

static bool hook_runs(const struct agent *agent)
{
    map_each (entry, &agent->table.held) {
        if (((const struct attempt *)entry->value)->hook)
            return true;
    }
    return false;
}

bool agent_hook_waits(struct agent *agent, struct attempt *held)
{
    held->hook_waits = agent_prolog_flag(agent, "Serial") && hook_runs(agent);
    return held->hook_waits;
}

/* The job that came first of those that wait. */
static struct attempt *next_waiting(const struct agent *agent)
{
    struct attempt *first = NULL;

    map_each (entry, &agent->table.held) {
        struct attempt *held = entry->value;
        if (held->hook_waits && (!first || held->job < first->job))
            first = held;
    }
    return first;
}

/* Somebody is done. Who goes on may need no program any more: then it is the turn of another. */
static void next_hook(struct agent *agent)
{
    struct attempt *held;

    while (!agent->stopping && !hook_runs(agent) && (held = next_waiting(agent))) {
        held->hook_waits = false;
        agent_advance(agent, held);
    }
}

static void write_ready(struct agent *agent, struct attempt *held)
{
    SpoolRecord record = SPOOL_RECORD__INIT;
    SpoolReady ready = SPOOL_READY__INIT;

    ready.has_job_id = ready.has_attempt = true;
    ready.job_id = held->job;
    ready.attempt = held->attempt;
    record.what_case = SPOOL_RECORD__WHAT_READY;
    record.ready = &ready;
    agent_write_record(agent, &record, NULL);
}

static void prolog_done(void *ctx, int status, const struct err *err)
{
    struct agent_ref *hook = ctx;
    struct agent *agent = hook->agent;
    struct attempt *held = attempt_find(&agent->table, hook->job, hook->attempt);
    struct err refused = { 0 };

    (void)status;
    if (!held)
        return;
    held->hook = NULL;
    uint32_t job = held->job;
    if (held->revoked) {
        agent_advance(agent, held);
        steps_prepared(agent, job);
        next_hook(agent);
        return;
    }
    if (err) {
        log_error("prolog.failed", "job=%u attempt=%u error=%s", held->job, held->attempt,
                  err->text);
        err_set(&refused, ERR_PROLOG_FAILED, "Prolog failed: %s", err->text);
        agent_send_grant_ack(agent, held->job, held->attempt, &refused, true);
        agent_forget(agent, held);
        steps_prepared(agent, job);
        next_hook(agent);
        return;
    }
    held->ready = true;
    write_ready(agent, held);
    agent_advance(agent, held);
    steps_prepared(agent, job);
    next_hook(agent);
}

/* ---- private directories ---- */

static void refuse_prepared(struct agent *agent, struct attempt *held, const struct err *err)
{
    struct err refused = { 0 };

    log_error("private.failed", "job=%u attempt=%u error=%s", held->job, held->attempt, err->text);
    err_set(&refused, ERR_PROLOG_FAILED, "%s", err->text);
    agent_send_grant_ack(agent, held->job, held->attempt, &refused, true);
    agent_forget(agent, held);
}

static void init_done(void *ctx, int status, const struct err *err)
{
    struct agent_ref *hook = ctx;
    struct agent *agent = hook->agent;
    struct attempt *held = attempt_find(&agent->table, hook->job, hook->attempt);

    (void)status;
    if (!held)
        return;
    held->hook = NULL;
    if (err && !held->revoked)
        refuse_prepared(agent, held, err);
    else
        agent_advance(agent, held);
    next_hook(agent);
}

bool agent_prepare(struct agent *agent, struct attempt *held)
{
    const Config *config = agent_common(agent);
    struct err err = { 0 };

    held->prepared = true;
    agent_extern_open(agent, held);
    if (private_make(agent, held, &err) < 0) {
        refuse_prepared(agent, held, &err);
        return false;
    }
    if (held->is_private && !str_is_empty(config->private_init_script))
        held->hook = start_hook(agent, held, config->private_init_script, ENV_PROLOG, init_done);
    return true;
}

static void epilog_done(void *ctx, int status, const struct err *err)
{
    struct agent_ref *hook = ctx;
    struct agent *agent = hook->agent;
    struct attempt *held = attempt_find(&agent->table, hook->job, hook->attempt);

    (void)status;
    if (!held)
        return;
    held->hook = NULL;
    held->epilog_done = true;
    if (err) {
        log_error("epilog.failed", "job=%u attempt=%u error=%s", held->job, held->attempt,
                  err->text);
        agent_ask_drain(agent, "Epilog error");
        agent_send_released(agent, held->job, held->attempt, err);
        held->released = agent->welcomed;
    }
    agent_advance(agent, held);
    next_hook(agent);
}

static const char *program_of(const struct agent *agent, enum env_where where)
{
    const Config *config = agent_common(agent);

    return !config ? NULL : where == ENV_PROLOG ? config->prolog : config->epilog;
}

/* Plugins come before the site's program. */
static void add_plugins(struct agent *agent, struct hook *hook, const char *what)
{
    if (task_spank_used(agent->spank))
        hook_first(hook, task_spank_words(agent->spank, what));
}

void agent_start_prolog(struct agent *agent, struct attempt *held)
{
    held->hook = start_hook(agent, held, program_of(agent, ENV_PROLOG), ENV_PROLOG, prolog_done);
    add_plugins(agent, held->hook, "--prolog");
    agent_extern_run(agent, held, held->hook);
}

void agent_start_epilog(struct agent *agent, struct attempt *held)
{
    agent_extern_kill(agent, held);
    held->hook = start_hook(agent, held, program_of(agent, ENV_EPILOG), ENV_EPILOG, epilog_done);
    add_plugins(agent, held->hook, "--epilog");
    agent_extern_run(agent, held, held->hook);
}

/* ---- processes that outlive SIGKILL ---- */

static void unkillable_done(void *ctx, int status, const struct err *err)
{
    struct agent_ref *hook = ctx;

    (void)status;
    hook->agent->unkillable = NULL;
    if (err)
        log_warn("unkillable.program", "job=%u ignored: %s", hook->job, err->text);
}

void agent_unkillable(struct agent *agent, struct attempt *held, uint32_t step)
{
    const Config *config = agent_common(agent);
    char number[16];

    log_error("step.unkillable", "job=%u attempt=%u step=%u", held->job, held->attempt, step);
    agent_ask_drain(agent, "Kill task failed");
    if (!config || str_is_empty(config->unkillable_program))
        return;
    if (agent->unkillable) {
        log_warn("unkillable.program", "job=%u ignored: it runs already", held->job);
        return;
    }
    snprintf(number, sizeof(number), step == TASK_STEP_BATCH ? "batch" : "%u", step);
    agent->unkillable = start_hook_of(agent, held, config->unkillable_program, ENV_PROLOG,
                                      "unkillable_step", number, unkillable_done);
}

void agent_unkillable_stop(struct agent *agent)
{
    if (agent->unkillable)
        hook_abandon(TAKE(agent->unkillable));
}
