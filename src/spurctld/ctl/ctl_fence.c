/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_fence.c - a program of the site makes sure that a silent node runs nothing any more
 *
 * Without it nobody knows of a silent host whether its jobs still run: they go elsewhere when their lease is
 * over, or when the host has been silent for long. When the program says that the node is off, all of
 * them may go at once.
 *
 * (1) It runs once for each silence of a node that has jobs, of the leader that notices it.
 * (2) What it says is of no use when the node has been heard of meanwhile.
 */
#include <stdlib.h>
#include <string.h>

#include "spurctld/ctl/ctl_priv.h"
#include "sys/log.h"

enum { FENCE_TIMEOUT_S = 120 };

void ctl_fence_start(struct ctl *ctl, struct agent *agent)
{
    const struct node *node = state_node(ctl->state, agent->name);
    char *path = state_config(ctl->state)->fence_program;

    if (str_is_empty(path) || agent->host_answers || agent->fence || !node || !node->jobs.len)
        return;
    char *argv[] = { path, agent->name, NULL };
    char *name = mem_printf("SLURMD_NODENAME=%s", agent->name);
    char *env[] = { (char *)"PATH=/usr/sbin:/usr/bin:/sbin:/bin", name, NULL };
    agent->fence = ++ctl->nodes.fences; /* (1) */
    log_info("node.fence", "node=%s program=%s", agent->name, path);
    struct ctl_hook hook = { .what = CTL_FENCE,
                             .argv = argv,
                             .env = env,
                             .timeout_s = FENCE_TIMEOUT_S,
                             .must_run = true,
                             .job_id = agent->fence };
    ctl->io.hook(ctl->io.ctx, &hook);
    free(name);
}

static void propose_lost(struct ctl *ctl, struct agent *agent)
{
    CmdNodeDown down = CMD_NODE_DOWN__INIT;
    Command command = CTL_COMMAND(NODE_DOWN, .node_down = &down);

    agent->down_proposed = agent->loss_proposed = agent->lease_proposed = true;
    down.node = agent->name;
    down.reason = (char *)"Not responding";
    down.has_no_respond = down.no_respond = true;
    down.has_jobs_lost = down.jobs_lost = true;
    log_warn("node.fenced", "node=%s", agent->name);
    ctl_propose(ctl, &command, NULL, NULL);
}

void ctl_fence_done(struct ctl *ctl, uint32_t fence, int exit_status)
{
    map_each (entry, &ctl->nodes.agents) {
        struct agent *agent = entry->value;
        if (agent->fence != fence)
            continue;
        if (exit_status == 0 && ctl->leading && !agent->session && agent->lost_us) /* (2) */
            propose_lost(ctl, agent);
        return;
    }
}
