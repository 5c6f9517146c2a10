/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spank.c - SPANK plugins of this node: whether there are any, and what a step with them needs
 */
#include "spurd/task/spank.h"

#include "spurd/task/task.h"
#include "sys/clock.h"

enum { LOOK_EVERY_US = 1000000 };

bool task_spank_used(struct task_spank *spank)
{
    int64_t now_us = clock_boot_us();

    if (!spank || !spank->place.file ||
        (spank->looked_us && now_us - spank->looked_us < LOOK_EVERY_US))
        return spank && spank->used;
    spank->looked_us = now_us;
    spank->used = plugstack_is_used(&spank->place);
    return spank->used;
}

void task_spank_done(struct task_spank *spank)
{
    if (!spank)
        return;
    free(spank->program);
    plugstack_place_done(&spank->place);
    free(spank);
}

static StepSpank *begin(const struct task_spank *spank, const Grant *grant, struct arena *arena,
                        StepTask *out)
{
    const JobStatus *status = grant->launch ? grant->launch->status : NULL;
    StepSpank *more = out->spank = ARENA_NEW(arena, StepSpank);

    step_spank__init(more);
    more->program = spank->program ? spank->program : (char *)"spurstepd-spank";
    more->plugstack = spank->place.file;
    more->plugin_dirs = spank->place.dirs;
    more->has_job_mem_mb = more->has_step_mem_mb = true;
    if (grant->alloc) {
        more->job_cores = more->step_cores = grant->alloc->cpu_ids;
        more->job_mem_mb = more->step_mem_mb = grant->alloc->mem_mb;
    }
    if (status) {
        more->has_restarts = more->has_array_job = more->has_array_task = true;
        more->restarts = status->restarts;
        more->array_job = status->array_job_id;
        more->array_task = status->array_task_id;
    }
    more->has_nnodes = more->has_node_id = more->has_ntasks = more->has_cpus = true;
    more->has_cpus_per_task = true;
    return more;
}

void task_spank_batch(const struct task_spank *spank, const Grant *grant, struct arena *arena,
                      StepTask *out)
{
    const JobSpec *spec = task_spec(grant);
    StepSpank *more = begin(spank, grant, arena, out);

    more->nnodes = more->ntasks = 1;
    more->cpus = grant->alloc ? grant->alloc->cpus : 0;
    more->cpus_per_task = spec->has_cpus_per_task ? spec->cpus_per_task : 1;
}

void task_spank_step(const struct task_spank *spank, const Grant *grant, const StepLayout *layout,
                     size_t here, struct arena *arena, StepTask *out)
{
    const StepNode *node = layout->nodes[here];
    StepSpank *more = begin(spank, grant, arena, out);

    more->nnodes = (uint32_t)layout->n_nodes;
    more->node_id = (uint32_t)here;
    more->ntasks = layout->ntasks;
    more->cpus = node->cpus;
    more->cpus_per_task = layout->has_cpus_per_task ? layout->cpus_per_task : 1;
    if (!str_is_empty(node->cpu_ids))
        more->step_cores = node->cpu_ids;
    if (node->mem_mb)
        more->step_mem_mb = node->mem_mb;
}

char **task_spank_words(const struct task_spank *spank, const char *what)
{
    char **words = NEW_ARRAY(char *, 5);

    words[0] = mem_strdup(spank->program ? spank->program : "spurstepd-spank");
    words[1] = mem_strdup(what);
    words[2] = mem_strdup(spank->place.file);
    words[3] = mem_strdup(spank->place.dirs);
    return words;
}
