/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_node.c - this node, as those see it who build a task
 */
#include <unistd.h>

#include "spurd/root.h"
#include "spurd/task/task.h"

void agent_task_node(const struct agent *agent, struct task_node *out)
{
    *out = (struct task_node){
        .name = agent->name,
        .cluster = agent->config ? agent->config->cluster_name : NULL,
        .run_dir = agent->run_dir,
        .spool_dir = agent->spool_dir,
        .socket = agent->socket,
        .cgroup = agent->cgroup,
        .has_controllers = agent->has_controllers,
        .has_memory = agent->has_memory,
        .sysroot = agent->sysroot,
        .lease_file = agent->lease_ms ? agent->lease_file : NULL,
        .container = agent->container,
        .pmix = agent->pmix,
        .spank = task_spank_used(agent->spank) ? agent->spank : NULL,
        .config = agent_common(agent),
        .spec = agent->config ? agent->config->spec : NULL,
        .inventory = &agent->inventory,
        .change_user = geteuid() == 0,
    };
}

bool agent_has_prolog(const struct agent *agent)
{
    const Config *config = agent_common(agent);

    return (config && !str_is_empty(config->prolog)) || task_spank_used(agent->spank);
}

bool agent_has_epilog(const struct agent *agent)
{
    const Config *config = agent_common(agent);

    return (config && !str_is_empty(config->epilog)) || task_spank_used(agent->spank);
}
