/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage.c - parts of steps, as nodes report them, become steps
 */
#include "spurdbd/usage.h"

#include <string.h>

#include "base/hostlist.h"
#include "schema/job_view.h"

enum { STEP_BATCH = 0xfffffffb };

/* ---- what tasks used ---- */

/* What one node says of one thing. */
struct sample {
    bool known, has_max, has_min;
    uint64_t total, max;
    uint32_t max_task;
    uint64_t min;
    uint32_t min_task;
};

static AcctPeak *peak_new(struct arena *arena)
{
    AcctPeak *peak = ARENA_NEW(arena, AcctPeak);

    acct_peak__init(peak);
    return peak;
}

static void add_sample(AcctPeak **into, const struct sample *sample, const char *node,
                       struct arena *arena)
{
    if (!sample->known)
        return;
    bool first = !*into;
    AcctPeak *peak = *into = first ? peak_new(arena) : *into;
    peak->has_total = true;
    peak->total += sample->total;
    if (!sample->has_max) {
        peak->has_max = peak->has_max_task = false; /* one node does not know: nobody does */
        peak->max_node = NULL;
    } else if (first || (peak->has_max && sample->max > peak->max)) {
        peak->has_max = peak->has_max_task = true;
        peak->max = sample->max;
        peak->max_node = (char *)node;
        peak->max_task = sample->max_task;
    }
    if (!sample->has_min) {
        peak->has_min = peak->has_min_task = false;
        peak->min_node = NULL;
    } else if (first || (peak->has_min && sample->min < peak->min)) {
        peak->has_min = peak->has_min_task = true;
        peak->min = sample->min;
        peak->min_node = (char *)node;
        peak->min_task = sample->min_task;
    }
}

/* A peak of single tasks; with one task it is the least too. */
static struct sample peak_sample(bool known, uint64_t total, uint64_t max, uint32_t task,
                                 uint32_t tasks)
{
    return (struct sample){ .known = known,
                            .total = tasks <= 1 ? max : total,
                            .has_max = true,
                            .max = max,
                            .max_task = task,
                            .has_min = tasks <= 1,
                            .min = max,
                            .min_task = task };
}

static struct sample sum_sample(bool known, uint64_t total, bool has_max, uint64_t max,
                                uint32_t task, uint32_t tasks)
{
    uint64_t most = has_max && tasks > 1 ? max : total;
    struct sample sample = peak_sample(known, total, most, task, tasks);

    sample.total = total;
    return sample;
}

static struct sample cpu_sample(const Usage *usage, uint32_t tasks)
{
    uint64_t total = (uint64_t)(usage->user_us + usage->system_us);
    bool single = tasks <= 1;

    return (struct sample){
        .known = true,
        .total = total,
        .has_max = single, /* nodes say whose is the least */
        .max = total,
        .max_task = usage->min_cpu_task,
        .has_min = single || usage->has_min_cpu_us,
        .min = single ? total : (uint64_t)usage->min_cpu_us,
        .min_task = usage->min_cpu_task,
    };
}

static void add_usage(AcctUsage *into, const Usage *usage, const char *node, uint32_t tasks,
                      struct arena *arena)
{
    struct sample cpu = cpu_sample(usage, tasks);
    struct sample rss = peak_sample(usage->has_max_rss_bytes, usage->tot_rss_bytes,
                                    usage->max_rss_bytes, usage->max_rss_task, tasks);
    struct sample vm = peak_sample(usage->has_max_vm_bytes, usage->tot_vm_bytes,
                                   usage->max_vm_bytes, usage->max_vm_task, tasks);
    struct sample pages =
        sum_sample(usage->has_page_faults, usage->page_faults, usage->has_max_page_faults,
                   usage->max_page_faults, usage->max_page_faults_task, tasks);
    struct sample in =
        sum_sample(usage->has_read_bytes, usage->read_bytes, usage->has_max_read_bytes,
                   usage->max_read_bytes, usage->max_read_task, tasks);
    struct sample out =
        sum_sample(usage->has_write_bytes, usage->write_bytes, usage->has_max_write_bytes,
                   usage->max_write_bytes, usage->max_write_task, tasks);
    struct sample energy = peak_sample(usage->has_energy_j, usage->energy_j, usage->energy_j, 0, 1);
    struct sample gpu =
        peak_sample(usage->has_gpu_percent, usage->gpu_percent, usage->gpu_percent, 0, 1);
    struct sample gpu_mem =
        peak_sample(usage->has_gpu_mem_bytes, usage->gpu_mem_bytes, usage->gpu_mem_bytes, 0, 1);

    into->has_user_us = into->has_system_us = into->has_tasks = true;
    into->user_us += usage->user_us;
    into->system_us += usage->system_us;
    into->tasks += tasks;
    add_sample(&into->cpu_us, &cpu, node, arena);
    add_sample(&into->rss_bytes, &rss, node, arena);
    add_sample(&into->vm_bytes, &vm, node, arena);
    add_sample(&into->pages, &pages, node, arena);
    add_sample(&into->read_bytes, &in, node, arena);
    add_sample(&into->write_bytes, &out, node, arena);
    add_sample(&into->energy_j, &energy, node, arena);
    add_sample(&into->gpu_percent, &gpu, node, arena);
    add_sample(&into->gpu_mem_bytes, &gpu_mem, node, arena);
    if (usage->has_cpu_khz) {
        uint64_t sum = into->cpu_khz * into->cpu_khz_nodes + usage->cpu_khz;
        into->has_cpu_khz = into->has_cpu_khz_nodes = true;
        into->cpu_khz = sum / ++into->cpu_khz_nodes;
    }
}

static AcctUsage *usage_new(struct arena *arena)
{
    AcctUsage *usage = ARENA_NEW(arena, AcctUsage);

    acct_usage__init(usage);
    return usage;
}

/* ---- steps ---- */

AcctStep *usage_step_new(const StepPart *part, struct arena *arena)
{
    AcctStep *step = ARENA_NEW(arena, AcctStep);

    acct_step__init(step);
    step->has_step = step->has_node_count = step->has_ntasks = step->has_cpus = true;
    step->step = part->id->step;
    step->name = part->name;
    step->nodes = part->nodes;
    step->node_count = part->node_count;
    step->ntasks = part->ntasks;
    step->cpus = part->cpus;
    step->tres = part->tres;
    step->submit_line = part->submit_line;
    step->waits_for = str_is_empty(part->nodes) ? part->node : part->nodes;
    return step;
}

/* (1) */
static bool take_node(AcctStep *step, const char *node, struct arena *arena)
{
    CLEANUP(hostlist_done) struct hostlist waits = { 0 }, gone = { 0 };
    CLEANUP(str_done) struct str text = { 0 };

    if (str_is_empty(step->waits_for) || str_is_empty(node))
        return false;
    if (strcmp(step->waits_for, node) == 0) {
        step->waits_for = NULL;
        return true;
    }
    if (hostlist_parse(&waits, step->waits_for, NULL) < 0 || hostlist_find(&waits, node) < 0 ||
        hostlist_push(&gone, node, NULL) < 0 || hostlist_minus(&waits, &gone, NULL) < 0)
        return false;
    hostlist_format(&waits, &text);
    step->waits_for = text.len ? arena_strdup(arena, str_text(&text)) : NULL;
    return true;
}

/* Which of two ends says more: a failure hides a success. */
static bool is_worse(JobState a, JobState b)
{
    return b == JOB_COMPLETED && a != JOB_COMPLETED;
}

bool usage_step_add(AcctStep *step, const StepPart *part, struct arena *arena)
{
    if (!take_node(step, part->node, arena))
        return false;
    if (!step->has_state || step->state == JOB_RUNNING || is_worse(part->state, step->state)) {
        step->has_state = true;
        step->state = part->state;
    }
    step->has_exit_status = true;
    step->exit_status = MAX(step->exit_status, part->exit_status);
    if (!step->has_start_us || part->started_us < step->start_us) {
        step->has_start_us = true;
        step->start_us = part->started_us;
    }
    if (!step->has_end_us || part->ended_us > step->end_us) {
        step->has_end_us = true;
        step->end_us = part->ended_us;
    }
    if (part->usage) {
        step->usage = step->usage ? step->usage : usage_new(arena);
        add_usage(step->usage, part->usage, part->node, part->tasks_here, arena);
    }
    return true;
}

AcctStep *usage_batch_step(const Job *job, const Usage *usage, JobState state, int64_t start_us,
                           int64_t end_us, struct arena *arena)
{
    const JobStatus *status = job_status(job);
    const NodeAlloc *first =
        status->allocation && status->allocation->n_nodes ? status->allocation->nodes[0] : NULL;
    AcctStep *step = ARENA_NEW(arena, AcctStep);
    struct str tres = { 0 };

    acct_step__init(step);
    step->has_step = step->has_state = step->has_exit_status = step->has_start_us = true;
    step->has_node_count = step->has_ntasks = step->has_cpus = true;
    step->step = STEP_BATCH;
    step->name = (char *)"batch";
    step->state = state;
    step->exit_status = status->exit_status;
    step->start_us = start_us;
    step->has_end_us = end_us > 0;
    step->end_us = end_us;
    step->nodes = first ? first->node : NULL;
    step->node_count = step->ntasks = 1;
    step->cpus = first ? first->cpus : 0;
    if (first) {
        str_addf(&tres, "cpu=%u", first->cpus);
        if (first->mem_mb)
            str_addf(&tres, ",mem=%lluM", (unsigned long long)first->mem_mb);
        str_add(&tres, ",node=1");
        for (size_t i = 0; i < first->n_gres; i++)
            str_addf(&tres, ",gres/%s=%llu", first->gres[i]->name,
                     (unsigned long long)first->gres[i]->count);
        step->tres = arena_strdup(arena, str_text(&tres));
        str_done(&tres);
    }
    if (usage && first) {
        step->usage = usage_new(arena);
        add_usage(step->usage, usage, first->node, 1, arena);
    }
    return step;
}
