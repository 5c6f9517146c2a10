/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_resources.c - what the tasks of a step get of this node: limits, CPUs, GPUs, a nice value
 *
 * (1) Where the configuration overrides what was found, CPU numbers mean nothing here: bindings are worked
 *     out and said, but not set.
 * (2) GPUs that a step cannot open are not counted by the runtimes, so its own begin at 0 then.
 */
#include "spurd/step/step_resources.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "spurd/step/step_bind.h"
#include "spurd/task/env_priv.h"
#include "spurd/task/task.h"

static bool is_overridden(const struct task_node *node)
{
    return !node->inventory || (node->config && node->config->config_overrides);
}

/* ---- limits ---- */

void step_resources_limits(struct step_resources *give, struct arena *arena, StepTask *out)
{
    const StepNode *here = give->here;
    Grant grant = *give->grant;
    StepTask own = STEP_TASK__INIT;

    if (!grant.alloc)
        return;
    give->alloc = *grant.alloc;
    give->alloc.cpus = here->cpus;
    if (!str_is_empty(here->cpu_ids))
        give->alloc.cpu_ids = here->cpu_ids;
    if (here->mem_mb)
        give->alloc.mem_mb = here->mem_mb;
    give->alloc.n_gres = here->n_gres;
    give->alloc.gres = here->gres;
    grant.alloc = &give->alloc;
    task_limits(give->node, &grant, arena, &own);
    give->gpus = own.gpus;
    give->gpu_count = own.n_gpus;
    out->n_denied = own.n_denied;
    out->denied = own.denied;
    out->n_gpus = own.n_gpus;
    out->gpus = own.gpus;
    if (own.cpuset && !str_eq(own.cpuset, out->cpuset))
        out->step_cpuset = own.cpuset;
}

/* ---- CPUs ---- */

static void describe_node(const struct task_node *node, struct bind_node *out)
{
    const NodeInventory *found = node->inventory ? &node->inventory->node : NULL;

    *out = (struct bind_node){ .cpus = 1, .cores_per_socket = 1, .threads = 1 };
    if (is_overridden(node) && node->spec) {
        out->cpus = MAX(node->spec->cpus, 1);
        out->threads = MAX(node->spec->threads_per_core, 1);
        out->cores_per_socket = node->spec->cores_per_socket;
        if (out->cores_per_socket == 0)
            out->cores_per_socket = MAX(out->cpus / out->threads / MAX(node->spec->sockets, 1), 1);
    } else if (found) {
        *out = (struct bind_node){ .cpus = found->cpus,
                                   .cores_per_socket = found->cores_per_socket,
                                   .threads = found->threads_per_core,
                                   .map = node->inventory->cpu_map,
                                   .ldoms = found->numa_cpus,
                                   .ldom_count = found->n_numa_cpus };
    }
}

static bool has_word(const char *list, const char *wanted)
{
    struct span word;

    while (list && str_next(&list, ",", &word)) {
        if (span_ieq(word, wanted))
            return true;
    }
    return false;
}

static int plan_cpus(const struct step_resources *give, struct bind_node *node,
                     struct bind_plan *out, struct err *err)
{
    const Config *config = give->node->config;
    const StepBind *bind = give->launch->bind;
    struct bind_ask ask = { .cpu_ids = give->here->cpu_ids,
                            .cpus_per_task = give->layout->cpus_per_task,
                            .tasks = (uint32_t)give->here->n_tasks };

    describe_node(give->node, node);
    ask.affinity =
        !config || str_is_empty(config->task_plugin) || has_word(config->task_plugin, "affinity");
    ask.otherwise = bind_autobind(config ? config->task_plugin_param : NULL);
    if (bind) {
        ask.cpu_bind = bind->cpu_bind;
        ask.distribution = bind->distribution;
        ask.hint = bind->hint;
        ask.threads_per_core = bind->threads_per_core;
        ask.per_core = bind->ntasks_per_core;
        ask.per_socket = bind->ntasks_per_socket;
    }
    return bind_plan(node, &ask, out, err);
}

static void say_cpus(const struct step_resources *give, const struct bind_plan *plan, size_t index,
                     const char *mask, bool set, struct arena *arena, StepTaskOne *one)
{
    const char *after = plan->count == 0 ? ""
                        : set            ? " set"
                                         : " not set: the CPUs are only configured";

    one->bind_before = arena_printf(arena, "cpu-bind=%s - %s, task %2u %2zu [", plan->word,
                                    give->node->name, one->number, index);
    one->bind_after = arena_printf(arena, "]: mask %s%s\n", mask, after);
}

/* The whole node when nothing is bound. */
static void add_all_cpus(struct str *out, uint32_t cpus)
{
    struct bitset all;

    bitset_init(&all, LIMIT_CPU_NUMBER);
    bitset_add_range(&all, 0, MAX(cpus, 1) - 1);
    bind_add_mask(out, &all, 0);
    bitset_done(&all);
}

static void put_bind_env(struct env *env, bool verbose, const char *type, const char *list)
{
    CLEANUP(str_done) struct str all = { 0 };

    str_addf(&all, "%s,%s%s", verbose ? "verbose" : "quiet", type, list);
    env_set(env, "SLURM_CPU_BIND", str_text(&all));
    env_set(env, "SLURM_CPU_BIND_VERBOSE", verbose ? "verbose" : "quiet");
    env_set(env, "SLURM_CPU_BIND_TYPE", type);
    env_set(env, "SLURM_CPU_BIND_LIST", list);
}

static int give_cpus(const struct step_resources *give, struct bind_plan *plan, struct arena *arena,
                     struct env *env, StepTask *out, struct err *err)
{
    CLEANUP(str_done) struct str list = { 0 };
    struct bind_node node;
    bool set = !is_overridden(give->node);

    if (plan_cpus(give, &node, plan, err) < 0)
        return -(int)err->code;
    for (size_t i = 0; i < out->tasks->n_list; i++) {
        StepTaskOne *one = out->tasks->list[i];
        CLEANUP(str_done) struct str text = { 0 }, mask = { 0 };
        if (plan->count) {
            bitset_format(&plan->masks[i], &text);
            bind_add_mask(&mask, &plan->masks[i], 0);
            str_add(&list, i ? "," : "");
            bind_add_mask(&list, &plan->masks[i], node.cpus);
        } else {
            add_all_cpus(&mask, node.cpus);
        }
        if (plan->count && set)
            one->cpus = arena_strdup(arena, str_text(&text));
        if (plan->verbose)
            say_cpus(give, plan, i, str_text(&mask), set, arena, one);
    }
    if (plan->count)
        put_bind_env(env, plan->verbose, "mask_cpu:", str_text(&list));
    else if (give->launch->bind && !str_is_empty(give->launch->bind->cpu_bind))
        put_bind_env(env, plan->verbose, "none", "");
    return 0;
}

/* ---- GPUs ---- */

struct gpus {
    unsigned index[LIMIT_GRES_PER_NODE]; /* on the node */
    size_t count;
    struct bitset chosen; /* of them, for one task */
};

static void list_gpus(const struct env_job *job, struct gpus *out)
{
    CLEANUP(str_done) struct str text = { 0 };

    out->count = 0;
    if (!env_gpu_indexes(job, &text))
        return;
    for (char *at = text.data; *at && out->count < ARRAY_LEN(out->index);) {
        out->index[out->count++] = (unsigned)strtoul(at, &at, 10);
        at += *at == ',';
    }
}

/* Is GPU `index` of the node near one of these CPUs? */
static bool is_near(const struct task_node *node, unsigned index, const struct bitset *cpus)
{
    const NodeInventory *found = node->inventory ? &node->inventory->node : NULL;
    bool near = false;

    for (size_t i = 0; found && i < found->n_gres; i++) {
        const GresInventory *gres = found->gres[i];
        if (!str_eq(gres->name, "gpu"))
            continue;
        if (index < gres->count && index < gres->n_cpus) {
            struct bitset part;
            bitset_init(&part, LIMIT_CPU_NUMBER);
            near = bitset_parse(&part, gres->cpus[index]) && bitset_meets(&part, cpus);
            bitset_done(&part);
            return near;
        }
        index -= (unsigned)MIN(gres->count, index);
    }
    return false;
}

/* How they are asked to be bound; what other options imply when it is not said. */
static void read_gpu_bind(const StepBind *bind, struct bind_gpu *out)
{
    *out = (struct bind_gpu){ .count = 1 };
    if (!bind)
        return;
    bind_read_gpu(bind->gpu_bind, out, NULL);
    if (out->kind != BIND_GPU_DEFAULT)
        return;
    if (bind->gpus_per_task) {
        out->kind = BIND_GPU_PER_TASK;
        out->count = bind->gpus_per_task;
    } else if (bind->ntasks_per_gpu) {
        out->kind = BIND_GPU_SINGLE;
        out->count = bind->ntasks_per_gpu;
    }
}

static void choose_listed(const struct bind_gpu *bind, size_t task, bool local, struct gpus *gpus)
{
    struct bitset value;

    bitset_init(&value, LIMIT_CPU_NUMBER);
    if (bind_list_nth(bind->list, task, bind->kind == BIND_GPU_MASK, &value)) {
        for (size_t i = 0; i < gpus->count; i++) {
            if (bitset_has(&value, local ? i : gpus->index[i])) /* (2) */
                bitset_add(&gpus->chosen, i);
        }
    }
    bitset_done(&value);
}

static void choose_gpus(const struct step_resources *give, const struct bind_gpu *bind, size_t task,
                        const struct bind_plan *plan, bool local, struct gpus *gpus)
{
    bitset_clear(&gpus->chosen);
    switch (bind->kind) {
    case BIND_GPU_SINGLE:
        bitset_add(&gpus->chosen, task / bind->count % gpus->count);
        break;
    case BIND_GPU_PER_TASK:
        for (size_t i = 0; i < bind->count; i++)
            bitset_add(&gpus->chosen, (task * bind->count + i) % gpus->count);
        break;
    case BIND_GPU_MAP:
    case BIND_GPU_MASK:
        choose_listed(bind, task, local, gpus);
        break;
    case BIND_GPU_CLOSEST:
        for (size_t i = 0; plan->count && i < gpus->count; i++) {
            if (is_near(give->node, gpus->index[i], &plan->masks[task]))
                bitset_add(&gpus->chosen, i);
        }
        break;
    default:
        break;
    }
    if (bitset_is_empty(&gpus->chosen))
        bitset_add_range(&gpus->chosen, 0, gpus->count - 1);
}

/* Names that the runtimes read; one that the step does not have is not set for the task either. */
static const char *const gpu_names[] = { "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                         "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
                                         "ZE_AFFINITY_MASK" };

static void put_gpu_env(const struct gpus *gpus, bool local, bool amd, struct env *env,
                        struct arena *arena, StepTaskOne *one)
{
    CLEANUP(str_done) struct str list = { 0 };

    bitset_each (i, &gpus->chosen)
        str_addf(&list, "%s%zu", list.len ? "," : "", local ? i : gpus->index[i]);
    one->env = ARENA_ARRAY(arena, char *, ARRAY_LEN(gpu_names));
    for (size_t i = 0; i < ARRAY_LEN(gpu_names); i++) {
        CLEANUP(str_done) struct str own = { 0 };
        if (!env_get(env, gpu_names[i]))
            continue;
        str_add(&own, str_text(&list));
        if (amd && strcmp(gpu_names[i], "HIP_VISIBLE_DEVICES") == 0)
            env_gpu_renumber(&own, 0);
        one->env[one->n_env++] = arena_printf(arena, "%s=%s", gpu_names[i], str_text(&own));
    }
}

static void say_gpus(const struct gpus *gpus, bool local, struct arena *arena, StepTaskOne *one)
{
    CLEANUP(str_done) struct str text = { 0 }, global = { 0 }, own = { 0 };
    struct bitset all;

    bitset_init(&all, LIMIT_GRES_PER_NODE);
    bitset_add_range(&all, 0, gpus->count - 1);
    bitset_each (i, &gpus->chosen) {
        str_addf(&global, "%s%u", global.len ? "," : "", gpus->index[i]);
        str_addf(&own, "%s%zu", own.len ? "," : "", local ? i : gpus->index[i]);
    }
    str_add(&text, "gpu-bind: usable_gres=");
    bind_add_mask(&text, &gpus->chosen, 0);
    str_add(&text, "; bit_alloc=");
    bind_add_mask(&text, &all, 0);
    str_addf(&text, "; local_inx=%zu; global_list=%s; local_list=%s\n", gpus->count,
             str_text(&global), str_text(&own));
    bitset_done(&all);
    one->bind_before =
        arena_printf(arena, "%s%s", str_text(&text), one->bind_before ? one->bind_before : "");
}

/* The variables of the step itself replace those of the job. */
static void put_step_gpus(const struct step_resources *give, const StepTask *out, struct env *env,
                          struct env_job *job)
{
    static const char *const names[] = { "SLURM_GPUS_ON_NODE", "SLURM_SHARDS_ON_NODE" };
    Grant grant = *give->grant;
    struct env own;

    grant.alloc = (NodeAlloc *)&give->alloc;
    task_env_job(give->node, &grant, job);
    job->here = &give->alloc;
    job->gpu_local = task_hides_devices(give->node, out); /* (2) */
    env_init(&own, env->arena);
    env_fill(&own, job, ENV_BATCH);
    for (size_t i = 0; i < ARRAY_LEN(gpu_names); i++) {
        const char *value = env_get(&own, gpu_names[i]);
        if (value || (give->grant->alloc->n_gres && env_get(env, gpu_names[i])))
            env_set(env, gpu_names[i], value ? value : "");
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *value = env_get(&own, names[i]);
        if (value || env_get(env, names[i]))
            env_set(env, names[i], value ? value : "0");
    }
    const char *all = env_get(&own, "SLURM_JOB_GPUS");
    if (all)
        env_set(env, "SLURM_STEP_GPUS", all);
    env_done(&own);
}

static void give_gpus(const struct step_resources *give, const struct bind_plan *plan,
                      struct arena *arena, struct env *env, StepTask *out)
{
    struct bind_gpu bind;
    struct env_job job;
    CLEANUP(freep) struct gpus *gpus = NEW(struct gpus);

    put_step_gpus(give, out, env, &job);
    list_gpus(&job, gpus);
    read_gpu_bind(give->launch->bind, &bind);
    if (gpus->count == 0 || (bind.kind <= BIND_GPU_NONE && !bind.verbose))
        return;
    bool amd = !env_get(env, "CUDA_VISIBLE_DEVICES");
    bitset_init(&gpus->chosen, LIMIT_GRES_PER_NODE);
    for (size_t i = 0; i < out->tasks->n_list; i++) {
        StepTaskOne *one = out->tasks->list[i];
        choose_gpus(give, &bind, i, plan, job.gpu_local, gpus);
        if (bind.kind > BIND_GPU_NONE)
            put_gpu_env(gpus, job.gpu_local, amd, env, arena, one);
        if (bind.verbose)
            say_gpus(gpus, job.gpu_local, arena, one);
    }
    bitset_done(&gpus->chosen);
}

/* ---- and the rest ---- */

static void give_nice(const struct step_resources *give, struct env *env, StepTask *out)
{
    const Config *config = give->node->config;
    char text[16];

    if (!config || !config->propagate_nice)
        return;
    out->has_nice = true;
    out->nice = config->propagate_nice == 2 ? 1 : give->launch->nice;
    snprintf(text, sizeof(text), "%d", give->launch->nice);
    env_set(env, "SLURM_PRIO_PROCESS", text);
}

int step_resources_tasks(const struct step_resources *give, struct arena *arena, struct env *env,
                         StepTask *out, struct err *err)
{
    struct bind_plan plan = { 0 };
    int ret = give_cpus(give, &plan, arena, env, out, err);

    if (ret == 0)
        ret = step_resources_memory(give, arena, env, out, err);
    if (ret == 0 && give->grant->alloc)
        give_gpus(give, &plan, arena, env, out);
    give_nice(give, env, out);
    bind_done(&plan);
    return ret;
}
