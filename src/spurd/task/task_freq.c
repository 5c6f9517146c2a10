/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_freq.c - --cpu-freq: who may have which frequency, and what a supervisor is told of it
 */
#include "schema/freq.h"
#include "spurd/root.h"
#include "spurd/task/task.h"

int step_freq_check(const struct agent *agent, const StepRequest *request, struct err *err)
{
    const Config *config = agent_common(agent);
    struct freq freq;

    int ret = freq_read(request->cpu_freq, &freq, err);
    return ret < 0 || !config ? ret : freq_allowed(&freq, config->cpu_freq_governors, err);
}

bool task_launches(const Config *config, const char *wanted)
{
    const char *cursor = config ? config->launch_parameters : NULL;
    struct span word;

    while (cursor && str_next(&cursor, ",", &word)) {
        if (span_ieq(word, wanted))
            return true;
    }
    return false;
}

/* The kernel's numbers. On a recorded machine whose CPUs are only configured, these are taken for them. */
static char *cpus_of(const struct task_node *node, const char *cpu_ids, const StepTask *out)
{
    if (out->step_cpuset || out->cpuset)
        return out->step_cpuset ? out->step_cpuset : out->cpuset;
    return node->sysroot ? (char *)cpu_ids : NULL;
}

void task_freq(const struct task_node *node, const char *asked, const char *cpu_ids,
               struct arena *arena, StepTask *out)
{
    bool by_default = str_is_empty(asked);
    struct freq freq;

    if (by_default)
        asked = node->config ? node->config->cpu_freq_def : NULL;
    if (str_is_empty(asked) || freq_read(asked, &freq, NULL) < 0)
        return;
    StepFreq *own = out->freq = ARENA_NEW(arena, StepFreq);
    step_freq__init(own);
    own->has_min = own->has_max = own->has_by_default = true;
    own->min = freq.min;
    own->max = freq.max;
    own->by_default = by_default;
    own->governor = freq.governor ? arena_strdup(arena, freq.governor) : NULL;
    own->cpus = cpus_of(node, cpu_ids, out);
    own->dir = arena_printf(arena, "%s/cpu_freq", node->run_dir);
}

void task_gpu_freq(const char *asked, char **dirs, size_t count, struct arena *arena, StepTask *out)
{
    struct freq_gpu freq;

    if (str_is_empty(asked) || count == 0 || freq_read_gpu(asked, &freq, NULL) < 0)
        return;
    StepGpuFreq *own = out->gpu_freq = ARENA_NEW(arena, StepGpuFreq);
    step_gpu_freq__init(own);
    own->has_gpu = own->has_memory = own->has_verbose = true;
    own->gpu = freq.gpu;
    own->memory = freq.memory;
    own->verbose = freq.verbose;
    own->n_dirs = count;
    own->dirs = dirs;
}
