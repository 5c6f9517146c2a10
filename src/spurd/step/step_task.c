/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_task.c - from a launch of srun to what a supervisor needs, and the environment of tasks
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/limits.h"
#include "spurd/access/private.h"
#include "spurd/step/step.h"
#include "spurd/step/step_layout.h"
#include "spurd/step/step_resources.h"
#include "spurd/step/step_whole.h"
#include "spurd/task/container.h"
#include "spurd/task/task.h"
#include "sys/clock.h"

enum { ALONE_MAX_S = 24 * 3600 };

/* What tasks know of their job, by the same rows as the batch script. */
static const char *const job_names[] = {
    "SLURM_JOB_ID",
    "SLURM_JOBID",
    "SLURM_JOB_NAME",
    "SLURM_JOB_UID",
    "SLURM_JOB_GID",
    "SLURM_JOB_USER",
    "SLURM_JOB_ACCOUNT",
    "SLURM_JOB_QOS",
    "SLURM_JOB_PARTITION",
    "SLURM_JOB_RESERVATION",
    "SLURM_JOB_START_TIME",
    "SLURM_JOB_END_TIME",
    "SLURM_JOB_NODELIST",
    "SLURM_NODELIST",
    "SLURM_JOB_NUM_NODES",
    "SLURM_JOB_DEPENDENCY",
    "SLURM_JOB_LICENSES",
    "SLURM_JOB_SEGMENT_SIZE",
    "SLURM_JOB_CPUS_PER_NODE",
    "SLURM_CLUSTER_NAME",
    "SLURMD_NODENAME",
    "SLURM_TOPOLOGY_ADDR",
    "SLURM_TOPOLOGY_ADDR_PATTERN",
    "SLURM_GPUS_ON_NODE",
    "SLURM_JOB_GPUS",
    "SLURM_SHARDS_ON_NODE",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
    "ZE_AFFINITY_MASK",
    "SLURM_OOM_KILL_STEP",
    "SLURM_PRIO_PROCESS",
    "OMPI_MCA_plm_slurm_args",
    "SPUR_JOB",
    "SPUR_NODE_SOCKET",
};

static void put_number(struct env *env, const char *name, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    env_set(env, name, text);
}

/* The components of a heterogeneous job go by the number of the first. */
static void put_het(const Grant *grant, struct env *env)
{
    if (!grant->has_het_job_id)
        return;
    put_number(env, "SLURM_JOB_ID", grant->het_job_id);
    put_number(env, "SLURM_JOBID", grant->het_job_id);
}

static void put_job(const struct task_node *node, const Grant *grant, struct env *env)
{
    struct env_job job;
    struct env own;

    env_init(&own, env->arena);
    task_env_job(node, grant, &job);
    env_fill(&own, &job, ENV_BATCH);
    for (size_t i = 0; i < ARRAY_LEN(job_names); i++) {
        const char *value = env_get(&own, job_names[i]);
        if (value)
            env_set(env, job_names[i], value);
    }
    if (grant->owner && !str_is_empty(grant->owner->group))
        env_set(env, "SLURM_JOB_GROUP", grant->owner->group);
    put_het(grant, env);
    env_done(&own);
}

/* --preserve-env: what the allocation said stays. */
static void put_own(const StepLaunch *launch, struct env *env, const char *name, uint64_t value)
{
    if (!launch->preserve_env || !env_get(env, name))
        put_number(env, name, value);
}

static void put_nodes(const StepLaunch *launch, const StepLayout *layout, size_t index,
                      struct env *env)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };
    CLEANUP(str_done) struct str text = { 0 }, counts = { 0 };
    CLEANUP(freep) uint32_t *tasks = NEW_ARRAY(uint32_t, layout->n_nodes + 1);
    CLEANUP(freep) size_t *places = NEW_ARRAY(size_t, layout->n_nodes + 1);
    size_t nodes = step_whole_places(layout, places);

    for (size_t i = 0, next = 0; i < layout->n_nodes; i++) {
        if (places[i] == next) {
            hostlist_push(&hosts, layout->nodes[i]->name, NULL);
            next++;
        }
        tasks[places[i]] += (uint32_t)layout->nodes[i]->n_tasks;
    }
    hostlist_format(&hosts, &text);
    env_add_counts(&counts, tasks, nodes);
    env_set(env, "SLURM_STEP_NODELIST", str_text(&text));
    env_set(env, "SLURM_STEP_TASKS_PER_NODE", str_text(&counts));
    if (!launch->preserve_env || !env_get(env, "SLURM_TASKS_PER_NODE"))
        env_set(env, "SLURM_TASKS_PER_NODE", str_text(&counts));
    put_number(env, "SLURM_STEP_NUM_NODES", nodes);
    put_own(launch, env, "SLURM_NNODES", nodes);
    put_number(env, "SLURM_NODEID", places[index]);
}

static void put_step(const StepLaunch *launch, const StepLayout *layout, const StepNode *here,
                     size_t index, struct env *env)
{
    CLEANUP(str_done) struct str gtids = { 0 };
    char umask_text[16];

    put_number(env, "SLURM_STEP_ID", layout->id->step);
    put_number(env, "SLURM_STEPID", layout->id->step);
    put_own(launch, env, "SLURM_NTASKS", layout->ntasks);
    put_own(launch, env, "SLURM_NPROCS", layout->ntasks);
    put_number(env, "SLURM_STEP_NUM_TASKS", layout->ntasks);
    put_nodes(launch, layout, index, env);
    for (size_t i = 0; i < here->n_tasks; i++)
        str_addf(&gtids, "%s%u", i ? "," : "", here->tasks[i]);
    env_set(env, "SLURM_GTIDS", str_text(&gtids));
    put_number(env, "SLURM_CPUS_ON_NODE", here->cpus);
    if (!str_is_empty(launch->launch_host)) {
        env_set(env, "SLURM_LAUNCH_NODE_IPADDR", launch->launch_host);
        env_set(env, "SLURM_SRUN_COMM_HOST", launch->launch_host);
    }
    const char *port = layout->nodes[0]->address ? strrchr(layout->nodes[0]->address, ':') : NULL;
    if (port && port[1]) /* srun listens nowhere: where the step can be spoken to is its node */
        env_set(env, "SLURM_SRUN_COMM_PORT", port + 1);
    snprintf(umask_text, sizeof(umask_text), "%04o", launch->umask & 0777);
    env_set(env, "SLURM_UMASK", umask_text);
    env_set(env, "PWD", launch->work_dir);
}

/* ---- --ml-env ---- */

static void put_ml(const struct step_resources *give, size_t index, struct env *env)
{
    const StepLayout *layout = give->whole;
    const StepNode *first = layout->nodes[0];
    CLEANUP(str_done) struct str host = { 0 };
    char port[8];
    const char *own = env_ml_own_port(env);

    snprintf(port, sizeof(port), "%u", env_ml_port(layout->id->job_id, layout->id->step));
    env_ml_host(first->address, first->name, &host);
    env_set(env, "SPUR_ML_ENV", "1");
    env_set(env, "MASTER_ADDR", str_text(&host));
    env_set(env, "MASTER_PORT", own ? own : port);
    env_set(env, "SPUR_ML_PORT", port);
    put_number(env, "WORLD_SIZE", layout->ntasks);
    put_number(env, "LOCAL_WORLD_SIZE", give->here->n_tasks);
    put_number(env, "NODE_RANK", index);
    /* What torchrun takes for its options of these names: each task is one agent. */
    env_set(env, "PET_MASTER_ADDR", str_text(&host));
    env_set(env, "PET_MASTER_PORT", own ? own : port);
    put_number(env, "PET_NNODES", layout->ntasks);
}

static void put_ml_ranks(struct arena *arena, StepTasks *tasks)
{
    static const char *const names[] = { "RANK", "LOCAL_RANK", "PET_NODE_RANK" };

    for (size_t i = 0; i < tasks->n_list; i++) {
        StepTaskOne *one = tasks->list[i];
        const size_t values[] = { one->number, i, one->number };
        char **env = ARENA_ARRAY(arena, char *, one->n_env + ARRAY_LEN(names));
        if (one->n_env)
            memcpy(env, one->env, one->n_env * sizeof(*env));
        one->env = env;
        for (size_t k = 0; k < ARRAY_LEN(names); k++)
            env[one->n_env++] = arena_printf(arena, "%s=%zu", names[k], values[k]);
    }
}

/* Steps over several components have the nodes of each under a second name. */
static void put_groups(struct env *env)
{
    char from[64], to[64];

    for (unsigned i = 0; i < LIMIT_HET_COMPONENTS; i++) {
        snprintf(from, sizeof(from), "SLURM_JOB_NODELIST_HET_GROUP_%u", i);
        snprintf(to, sizeof(to), "SLURM_NODELIST_HET_GROUP_%u", i);
        const char *nodes = env_get(env, from);
        if (!nodes)
            break;
        env_set(env, to, nodes);
    }
}

static int build_env(const struct step_resources *give, struct arena *arena, StepTask *out,
                     struct err *err)
{
    size_t index = give->whole_node;
    const StepLaunch *launch = give->launch;
    const StepLayout *layout = give->layout;
    struct env env;
    size_t bytes = 0;

    for (size_t i = 0; i < launch->n_env; i++)
        bytes += launch->env[i].len + 1;
    if (bytes > LIMIT_ENV_BYTES || launch->n_env > LIMIT_ENV_COUNT)
        return err_set(err, ERR_TOO_LARGE, "environment");
    env_init(&env, arena);
    for (size_t i = 0; i < launch->n_env; i++)
        env_put(&env, (const char *)launch->env[i].data, launch->env[i].len);
    put_job(give->node, give->grant, &env);
    if (give->whole != layout && give->grant->has_het_job_id) {
        step_whole_env(give->whole, &env);
        put_groups(&env);
    }
    put_step(launch, give->whole, give->here, index, &env);
    if (layout->has_cpus_per_task)
        put_number(&env, "SLURM_CPUS_PER_TASK", layout->cpus_per_task);
    if (!str_is_empty(layout->resv_ports))
        env_set(&env, "SLURM_STEP_RESV_PORTS", layout->resv_ports);
    env_set(&env, "SLURM_OOM_KILL_STEP", out->oom_kill_step ? "1" : "0");
    if (!str_is_empty(layout->cpu_freq))
        env_set(&env, "SLURM_CPU_FREQ_REQ", layout->cpu_freq);
    if (!env_get(&env, "PATH"))
        env_set(&env, "PATH", "/usr/local/bin:/usr/bin:/bin");
    if (!env_get(&env, "TMPDIR"))
        env_set(&env, "TMPDIR", "/tmp");
    if (step_resources_tasks(give, arena, &env, out, err) < 0) {
        env_done(&env);
        return -(int)err->code;
    }
    if (launch->ml_env) {
        put_ml(give, index, &env);
        put_ml_ranks(arena, out->tasks);
    }
    out->n_env = env.list.len;
    out->env = arena_copy(arena, env.list.items, env.list.len * sizeof(char *));
    env_done(&env);
    return 0;
}

static StepProgram *program_of(const StepLaunch *launch, uint32_t task)
{
    StepProgram *any = NULL;

    for (size_t i = 0; i < launch->n_programs; i++) {
        StepProgram *program = launch->programs[i];
        if (program->n_tasks == 0)
            any = program;
        for (size_t k = 0; k < program->n_tasks; k++) {
            if (program->tasks[k] == task)
                return program;
        }
    }
    return any;
}

static void put_mpi(const struct task_node *node, const char *mpi, struct arena *arena,
                    StepTask *out)
{
    out->tasks->mpi = arena_strdup(arena, mpi);
    if (!node->pmix || !str_eq(mpi, "pmix"))
        return;
    out->tasks->mpi_program = arena_strdup(arena, node->pmix);
    out->tasks->mpi_dir = arena_printf(arena, "%s/%s.pmix", out->dir, out->name);
}

/* The file of a display that we made for the step. */
static const char *own_xauthority(const struct task_node *node, const StepLaunch *launch,
                                  struct arena *arena)
{
    char *begin = arena_printf(arena, "XAUTHORITY=%s/x11/", node->run_dir);
    size_t len = strlen(begin);

    for (size_t i = 0; i < launch->n_env; i++) {
        const ProtobufCBinaryData *env = &launch->env[i];
        if (env->len > len && memcmp(env->data, begin, len) == 0 &&
            !memchr(env->data + len, '/', env->len - len) &&
            !memchr(env->data + len, ',', env->len - len))
            return arena_printf(arena, "%.*s", (int)(env->len - strlen("XAUTHORITY=")),
                                (const char *)env->data + strlen("XAUTHORITY="));
    }
    return NULL;
}

static int put_in_container(const struct task_node *node, const StepLaunch *launch,
                            struct arena *arena, StepTasks *tasks, struct err *err)
{
    size_t count;

    if (!launch->container)
        return 0;
    if (!node->container)
        return err_set(err, ERR_UNSUPPORTED, "node %s has no spur-container", node->name);
    char **words = container_words(node->container, launch->container, tasks->mpi_dir,
                                   own_xauthority(node, launch, arena), arena, &count);
    for (size_t i = 0; i < tasks->n_list; i++) {
        StepTaskOne *one = tasks->list[i];
        char **args = ARENA_ARRAY(arena, char *, count + one->n_args);
        memcpy(args, words, count * sizeof(char *));
        memcpy(args + count, one->args, one->n_args * sizeof(char *));
        one->args = args;
        one->n_args += count;
    }
    return 0;
}

static int build_tasks(const StepLaunch *launch, const StepNode *here, struct arena *arena,
                       StepTask *out, struct err *err)
{
    StepTasks *tasks = out->tasks = ARENA_NEW(arena, StepTasks);

    step_tasks__init(tasks);
    if (here->n_tasks == 0 || here->n_tasks > STEP_TASKS_PER_NODE_MAX)
        return err_code(err, ERR_TASK_COUNT);
    tasks->list = ARENA_ARRAY(arena, StepTaskOne *, here->n_tasks);
    for (size_t i = 0; i < here->n_tasks; i++) {
        StepTaskOne *one = tasks->list[i] = ARENA_NEW(arena, StepTaskOne);
        StepProgram *program = program_of(launch, here->tasks[i]);
        step_task_one__init(one);
        if (!program || program->n_args == 0 || program->n_args > LIMIT_ARGS_COUNT)
            return err_set(err, ERR_INVALID, "task %u has no program", here->tasks[i]);
        one->has_number = true;
        one->number = here->tasks[i];
        one->n_args = program->n_args;
        one->args = program->args;
        if (launch->n_inputs == here->n_tasks)
            one->std_in = launch->inputs[i];
    }
    tasks->n_list = here->n_tasks;
    tasks->has_pty = tasks->has_no_input = tasks->has_no_output = tasks->has_no_error = true;
    tasks->pty = launch->pty;
    tasks->has_rows = tasks->has_cols = true;
    tasks->rows = launch->rows;
    tasks->cols = launch->cols;
    tasks->no_input = launch->no_input;
    tasks->has_input_task = launch->has_input_task;
    tasks->input_task = launch->input_task;
    tasks->no_output = launch->no_output;
    tasks->no_error = launch->no_error;
    tasks->has_debug = true;
    tasks->debug = launch->debug;
    tasks->has_wait_for_children = tasks->wait_for_children = launch->wait_for_children;
    return 0;
}

/* What is left of the job's time. */
static int64_t time_limit_s(const Grant *grant, const Config *config)
{
    int64_t job_s = task_time_limit_s(grant, config);

    return job_s < 0 ? job_s : MAX(job_s - (clock_wall_us() - grant->start_us) / 1000000, 1);
}

/* Tests do not wait for a day. */
static void set_alone(StepTask *out)
{
    const char *given = getenv("SPUR_STEP_ALONE_S");
    uint64_t seconds;

    if (given && str_to_u64(given, ALONE_MAX_S, &seconds)) {
        out->has_alone_s = true;
        out->alone_s = (uint32_t)seconds;
    }
}

int step_task(struct agent *agent, const struct attempt *held, const StepLaunch *launch,
              const StepLayout *layout, struct arena *arena, StepTask *out, struct err *err)
{
    const Grant *grant = held->grant;
    struct task_node node;
    size_t index = 0;

    agent_task_node(agent, &node);
    while (index < layout->n_nodes && !str_eq(layout->nodes[index]->name, agent->name))
        index++;
    if (index == layout->n_nodes)
        return err_set(err, ERR_INVALID, "the step has no tasks on node %s", agent->name);
    if (str_is_empty(launch->work_dir) || launch->work_dir[0] != '/')
        return err_code(err, ERR_WORK_DIR);
    step_task__init(out);
    task_build_step(&node, grant, layout->id->step, arena, out);
    set_alone(out);
    out->name = layout->id->step == STEP_INTERACTIVE ? arena_strdup(arena, "interactive")
                                                     : arena_printf(arena, "%u", layout->id->step);
    out->dir = arena_printf(arena, "%s/steps/%u.%u.%u", node.run_dir, held->job, held->attempt,
                            layout->id->step);
    out->work_dir = launch->work_dir;
    out->has_umask = true;
    out->umask = launch->umask & 0777;
    out->rlimits = ARENA_ARRAY(arena, Rlimit *, launch->n_rlimits + 1);
    for (size_t i = 0; i < launch->n_rlimits; i++) {
        if (task_keeps_rlimit(node.config, launch->rlimits[i]->name))
            out->rlimits[out->n_rlimits++] = launch->rlimits[i];
    }
    task_limit_vsize(&node, grant, arena, out);
    task_hooks(&node, launch->task_prolog, launch->task_epilog, arena, out);
    out->has_time_limit_s = true;
    out->time_limit_s = time_limit_s(grant, node.config);
    uint64_t mem_bytes = layout->nodes[index]->mem_mb * 1024 * 1024;
    if (mem_bytes && out->has_mem_bytes && mem_bytes < out->mem_bytes) {
        out->has_step_mem_bytes = true;
        out->step_mem_bytes = mem_bytes;
    }
    if (launch->has_warn_signal) {
        out->has_warn_signal = out->has_warn_before_s = true;
        out->warn_signal = launch->warn_signal;
        out->warn_before_s = launch->warn_before_s;
    }
    if (build_tasks(launch, layout->nodes[index], arena, out, err) < 0)
        return -(int)err->code;
    if (layout->mpi)
        put_mpi(&node, layout->mpi, arena, out);
    if (put_in_container(&node, launch, arena, out->tasks, err) < 0)
        return -(int)err->code;
    out->tasks->has_layout = true;
    out->tasks->layout = launch->layout;
    out->tasks->has_own_limit_s = layout->has_time_limit_s && layout->time_limit_s > 0;
    out->tasks->own_limit_s = layout->time_limit_s;
    struct step_resources give = { .node = &node,
                                   .grant = grant,
                                   .launch = launch,
                                   .layout = layout,
                                   .here = layout->nodes[index] };
    if (step_whole(&give, index, arena, out->tasks, err) < 0)
        return -(int)err->code;
    step_resources_limits(&give, arena, out);
    if (launch->bind)
        task_gpu_freq(launch->bind->gpu_freq, give.gpus, give.gpu_count, arena, out);
    if (launch->acctg_freq)
        task_sample(launch->acctg_freq, out);
    out->has_oom_kill_step = true;
    out->oom_kill_step = launch->has_oom_kill_step
                             ? launch->oom_kill_step
                             : env_oom_kill_step(task_spec(grant), node.config);
    if (layout->id->step != STEP_INTERACTIVE ||
        task_launches(node.config, "interactive_step_set_cpu_freq"))
        task_freq(&node, layout->cpu_freq, give.here->cpu_ids, arena, out);
    if (private_fill(agent, held, arena, out, err) < 0)
        return -(int)err->code;
    if (node.spank)
        task_spank_step(node.spank, grant, layout, index, arena, out);
    return build_env(&give, arena, out, err);
}
