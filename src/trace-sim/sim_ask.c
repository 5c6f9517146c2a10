/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_ask.c - what a job of a trace asks of the cluster
 *
 * As a user would: GPUs, or shares of one (`shard`, `mps`) where the cluster gives out shares. A
 * partition or QOS that the cluster has not is left out and counted: a trace may come from elsewhere.
 */
#include "core/accounts.h"
#include "core/state.h"
#include "trace-sim/sim_going.h"
#include "wire/set.h"

static void ask_gpus(struct sim_going *going, const struct sim_job *line, struct sim_asked *asked,
                     uint32_t nodes)
{
    bool even = line->gpus % nodes == 0 && line->gpus / nodes <= going->gpus_most;
    bool part = line->gpu_milli && going->share;
    uint64_t shares = ((uint64_t)line->gpu_milli * going->share_per + SIM_MILLI - 1) / SIM_MILLI;

    gres_request__init(&asked->gres);
    asked->gres.name = (char *)(uintptr_t)(part ? going->share : "gpu");
    SET(&asked->gres, count, part ? shares : even ? line->gpus / nodes : line->gpus);
    SET(&asked->gres, scope, even ? GRES_PER_NODE : GRES_PER_JOB);
    asked->gres_list[0] = &asked->gres;
    asked->spec.gres = asked->gres_list;
    asked->spec.n_gres = 1;
    going->run->sum.rounded += line->gpu_milli && !part;
}

static void ask_where(struct sim_going *going, const struct sim_job *line, JobSpec *spec)
{
    const struct state *state = going->cluster.state;
    char *partition = going->run->trace->names.items[line->partition];
    char *qos = going->run->trace->names.items[line->qos];

    if (*partition && state_partition(state, partition))
        spec->partition = partition;
    if (*qos && state_qos(state, qos))
        spec->qos = qos;
    going->run->sum.unnamed += (*partition && !spec->partition) || (*qos && !spec->qos);
}

void sim_ask(struct sim_going *going, const struct sim_job *line, struct sim_asked *asked)
{
    JobSpec *spec = &asked->spec;
    uint32_t nodes = line->nodes;

    *spec = (JobSpec)JOB_SPEC__INIT;
    spec->name = going->run->trace->names.items[line->name];
    if (!*spec->name)
        spec->name = (char *)"job";
    spec->work_dir = (char *)"/";
    SET(spec, batch, true);
    SET(spec, time_limit_s, line->limit_s);
    if (line->gpus && going->gpus_most && !nodes)
        nodes = (line->gpus + going->gpus_most - 1) / going->gpus_most;
    if (nodes) {
        SET(spec, min_nodes, nodes);
        SET(spec, max_nodes, nodes);
        SET(spec, ntasks, nodes);
        SET(spec, cpus_per_task, MAX((line->cpus + nodes - 1) / nodes, 1));
    } else {
        SET(spec, ntasks, MAX(line->cpus, 1));
    }
    if (line->gpus)
        ask_gpus(going, line, asked, MAX(nodes, 1));
    if (line->mem_mb)
        SET(spec, mem_per_node_mb, line->mem_mb);
    ask_where(going, line, spec);
}
