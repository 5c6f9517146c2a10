// SPDX-License-Identifier: Apache-2.0
/*
 * srun_verbose.c - what srun -v tells of an allocation and of a step, and what it finds wrong with options before it asks
 */
#include <stdlib.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/limits.h"
#include "base/size.h"
#include "cli/srun.h"
#include "schema/job_view.h"

static void add_cpus(struct str *out, uint32_t cpus, size_t times)
{
    if (times)
        str_addf(out, "%s%u(x%zu)", out->len ? "," : "", cpus, times);
}

void srun_verbose_allocation(struct srun *srun)
{
    const Job *job = srun->alloc.job;
    const Allocation *allocation = job ? job->status->allocation : NULL;
    CLEANUP(str_done) struct str nodes = { 0 };
    CLEANUP(str_done) struct str counts = { 0 };
    uint32_t cpus = 0;
    size_t times = 0;

    if (!srun->request.verbose || !allocation)
        return;
    for (size_t i = 0; i < allocation->n_nodes; i++) {
        if (allocation->nodes[i]->cpus != cpus) {
            add_cpus(&counts, cpus, times);
            times = 0;
        }
        cpus = allocation->nodes[i]->cpus;
        times++;
    }
    add_cpus(&counts, cpus, times);
    job_add_nodes(&nodes, job);
    cli_say(&srun->cli, "JobId=%u returned by the controller", srun->alloc.id);
    cli_say(&srun->cli, "Nodes %s are ready for job", str_text(&nodes));
    cli_say(&srun->cli, "jobid %u: nodes(%zu):`%s', cpu counts: %s", srun->alloc.id,
            allocation->n_nodes, str_text(&nodes), str_text(&counts));
    const char *bind = srun->request.spec->cpu_bind;
    cli_say(&srun->cli, "CpuBindType=%s", str_is_empty(bind) ? "(null type)" : bind);
}

void srun_verbose_launch(struct srun *srun, const struct srun_node *node)
{
    CLEANUP(str_done) struct str tasks = { 0 };

    if (!srun->request.verbose)
        return;
    bool several = node->node->n_tasks > 1;
    srun_add_ranges(&tasks, node->node->tasks, node->node->n_tasks);
    cli_say(&srun->cli, "launching StepId=%u.%u on host %s, %zu tasks: %s%s%s", node->of->job_id,
            node->of->layout->id->step, node->node->name, node->node->n_tasks, several ? "[" : "",
            str_text(&tasks), several ? "]" : "");
}

/* More nodes were named than may be taken: the first ones of them are. */
static void cut_nodelist(struct srun *srun)
{
    JobSpec *spec = srun->request.spec;
    CLEANUP(hostlist_done) struct hostlist all = { 0 };
    CLEANUP(hostlist_done) struct hostlist kept = { 0 };
    CLEANUP(str_done) struct str text = { 0 };

    if (!alloc_given(&srun->request, "nodes", NULL) || !spec->max_nodes ||
        str_is_empty(spec->nodelist) || strchr(spec->nodelist, '/') ||
        (spec->distribution && str_istarts(spec->distribution, "arbitrary")) ||
        hostlist_parse(&all, spec->nodelist, NULL) < 0 || hostlist_uniq(&all, NULL) < 0 ||
        hostlist_count(&all) <= spec->max_nodes)
        return;
    cli_error(&srun->cli,
              "Required nodelist includes more nodes than permitted by max-node count (%llu > %u). "
              "Eliminating nodes from the nodelist.",
              (unsigned long long)hostlist_count(&all), spec->max_nodes);
    hostlist_each (host, &all) {
        if (hostlist_count(&kept) < spec->max_nodes)
            hostlist_push(&kept, host.name, NULL);
    }
    hostlist_format(&kept, &text);
    free(spec->nodelist);
    spec->nodelist = mem_strdup(str_text(&text));
}

/* The largest of the numbers of nodes that the allocation has. */
uint32_t srun_size(const struct srun *srun)
{
    const JobSpec *spec = srun->request.spec;
    const char *had = getenv("SLURM_JOB_NUM_NODES");
    uint64_t nodes = spec->max_nodes;
    uint32_t *sizes = NULL, size = spec->min_nodes;
    size_t count = 0;

    if (had)
        str_to_u64(had, UINT32_MAX, &nodes);
    if (size_read_list(spec->node_sizes, LIMIT_NODES, &sizes, &count, NULL) < 0)
        return size;
    for (size_t i = 0; i < count && sizes[i] <= nodes; i++)
        size = sizes[i];
    free(sizes);
    return size;
}

int srun_check_options(struct srun *srun)
{
    const JobSpec *spec = srun->request.spec;
    const char *had = getenv("SLURM_JOB_NUM_NODES"), *id = getenv("SLURM_JOB_ID");
    uint64_t nodes, job;

    if (srun->own && srun->request.relative) {
        cli_fatal(&srun->cli, "--relative option invalid for job allocation request");
        return 1;
    }
    if (!srun->own && id && str_to_u64(id, UINT32_MAX, &job) && job == srun->request.jobid && had &&
        str_to_u64(had, UINT32_MAX, &nodes) && spec->has_min_nodes && !srun->request.het_group &&
        spec->min_nodes > nodes) {
        cli_error(&srun->cli, "Only allocated %llu nodes asked for %u", (unsigned long long)nodes,
                  spec->min_nodes);
        return 1;
    }
    cut_nodelist(srun);
    return 0;
}
