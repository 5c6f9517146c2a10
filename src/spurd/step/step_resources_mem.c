/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_resources_mem.c - --mem-bind: the NUMA nodes of each task, what is said of them, their variables
 *
 * The machine's own NUMA nodes count, also where the configuration overrides its CPUs: then `local` is all of
 * them, because no task is bound to CPUs.
 */
#include <stdio.h>

#include "base/limits.h"
#include "spurd/step/step_mem.h"
#include "spurd/step/step_resources.h"
#include "spurd/task/env_priv.h"
#include "spurd/task/task.h"

static void describe(const struct task_node *node, struct mem_node *out)
{
    const struct inventory *found = node->inventory;

    *out = (struct mem_node){ 0 };
    if (found)
        *out = (struct mem_node){ .cpus = found->node.numa_cpus,
                                  .ids = found->numa_map,
                                  .count = found->node.n_numa_cpus };
}

static void say(const struct step_resources *give, const struct bind_mem *bind, size_t index,
                const struct bitset *nodes, struct arena *arena, StepTaskOne *one)
{
    CLEANUP(str_done) struct str mask = { 0 };

    bind_add_mask(&mask, nodes, 0);
    one->mem_before =
        arena_printf(arena, "mem-bind%s%s - %s, task %2u %2zu [", bind->prefer ? " PREFER " : "=",
                     mem_word(bind), give->node->name, one->number, index);
    one->mem_after = arena_printf(arena, "]: mask %s", str_text(&mask));
}

/* The CPUs that the kernel holds it to; NULL: all. */
static const struct bitset *cpus_of(const StepTask *out, const StepTaskOne *one, struct bitset *set)
{
    const char *cpus = one->cpus ? one->cpus : out->step_cpuset ? out->step_cpuset : out->cpuset;

    bitset_clear(set);
    return !str_is_empty(cpus) && bitset_parse(set, cpus) && !bitset_is_empty(set) ? set : NULL;
}

static void give_task(const struct step_resources *give, const struct mem_node *node,
                      const struct bind_mem *bind, size_t index, struct arena *arena, StepTask *out)
{
    StepTaskOne *one = out->tasks->list[index];
    CLEANUP(str_done) struct str text = { 0 };
    struct bitset nodes, cpus;
    struct err err = { 0 };

    bitset_init(&nodes, LIMIT_NUMA_NODES);
    bitset_init(&cpus, LIMIT_CPU_NUMBER);
    if (mem_plan(node, bind, index, cpus_of(out, one, &cpus), &nodes, &err) < 0) {
        one->mem_before =
            arena_printf(arena, "slurmstepd: error: mem-bind: %s: task %u is not bound\n", err.text,
                         one->number);
    } else {
        bitset_format(&nodes, &text);
        if (bind->kind > BIND_MEM_NONE)
            one->mem_nodes = arena_strdup(arena, str_text(&text));
        one->has_mem_prefer = one->mem_prefer = bind->prefer;
        if (bind->verbose)
            say(give, bind, index, &nodes, arena, one);
    }
    bitset_done(&nodes);
    bitset_done(&cpus);
}

static void put_env(const char *asked, struct env *env)
{
    static const struct {
        const char *name, *which;
    } rows[] = {
        { "SLURM_MEM_BIND", "" },
        { "SLURM_MEM_BIND_VERBOSE", "VERBOSE" },
        { "SLURM_MEM_BIND_TYPE", "TYPE" },
        { "SLURM_MEM_BIND_LIST", "LIST" },
        { "SLURM_MEM_BIND_PREFER", "PREFER" },
        { "SLURM_MEM_BIND_SORT", "SORT" },
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        CLEANUP(str_done) struct str value = { 0 };
        if (bind_mem_variable(asked, rows[i].which, &value))
            env_set(env, rows[i].name, str_text(&value));
    }
}

static void sort_nodes(const struct mem_node *node, struct arena *arena, StepTasks *out)
{
    out->sort_nodes = ARENA_ARRAY(arena, uint32_t, node->count + 1);
    for (size_t i = 0; i < node->count; i++)
        out->sort_nodes[out->n_sort_nodes++] = node->ids ? node->ids[i] : (uint32_t)i;
}

int step_resources_memory(const struct step_resources *give, struct arena *arena, struct env *env,
                          StepTask *out, struct err *err)
{
    const char *asked = give->launch->bind ? give->launch->bind->mem_bind : NULL;
    struct bind_mem bind;
    struct mem_node node;

    if (bind_read_mem(asked, &bind, err) < 0)
        return -(int)err->code;
    describe(give->node, &node);
    if (bind.sort || (!bind.nosort && task_launches(give->node->config, "mem_sort")))
        sort_nodes(&node, arena, out->tasks);
    if (str_is_empty(asked))
        return 0;
    for (size_t i = 0; i < out->tasks->n_list && (bind.kind > BIND_MEM_NONE || bind.verbose); i++)
        give_task(give, &node, &bind, i, arena, out);
    put_env(asked, env);
    return 0;
}
