// SPDX-License-Identifier: Apache-2.0
/*
 * control_topology.c - scontrol show topology: switches and blocks
 */
#include <stdio.h>

#include "base/hostlist.h"
#include "cli/control.h"
#include "schema/conf.h"

/* Deeper than this is a loop, which the configuration does not allow. */
enum { LEVELS_MOST = 32 };

static const ConfSwitch *find(const Config *config, const char *name)
{
    for (size_t i = 0; i < config->n_switches; i++) {
        if (str_eq(config->switches[i]->name, name))
            return config->switches[i];
    }
    return NULL;
}

/* How many levels are below it; all nodes below it are added to the list. */
static unsigned descend(const Config *config, const ConfSwitch *at, unsigned depth,
                        struct hostlist *nodes)
{
    CLEANUP(hostlist_done) struct hostlist below = { 0 };
    unsigned level = 0;

    if (!str_is_empty(at->nodes)) {
        conf_hosts(config, at->nodes, &below, NULL);
        hostlist_each (host, &below)
            hostlist_push(nodes, host.name, NULL);
        return 0;
    }
    if (depth == LEVELS_MOST || hostlist_parse(&below, at->switches, NULL) < 0)
        return 0;
    hostlist_each (name, &below) {
        const ConfSwitch *child = find(config, name.name);
        unsigned under = child ? descend(config, child, depth + 1, nodes) : 0;
        level = MAX(level, under + 1);
    }
    return level;
}

static void print_switch(const Config *config, const ConfSwitch *one)
{
    CLEANUP(hostlist_done) struct hostlist nodes = { 0 };
    struct str text = { 0 };
    unsigned level = descend(config, one, 0, &nodes);

    hostlist_format(&nodes, &text);
    printf("SwitchName=%s Level=%u LinkSpeed=1 Nodes=%s", one->name, level, str_text(&text));
    if (!str_is_empty(one->switches))
        printf(" Switches=%s", one->switches);
    printf("\n");
    str_done(&text);
}

int control_show_topology(struct control *control, int argc, char **argv)
{
    GetConfigRequest request = GET_CONFIG_REQUEST__INIT;
    GetConfigReply *reply;
    struct err err = { 0 };
    size_t count = 0;

    if (cli_call(&control->cli, "GetConfig", &request.base, &get_config_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0)
        return cli_load_error(&control->cli, "slurm_load_topo error:", &err);
    const Config *config = reply->config;
    const char *plugin = config && config->topology_plugin ? config->topology_plugin : "flat";
    for (size_t i = 0; str_eq(plugin, "tree") && i < config->n_switches; i++) {
        if (argc && !str_eq(argv[0], config->switches[i]->name))
            continue;
        print_switch(config, config->switches[i]);
        count++;
    }
    for (size_t i = 0; str_eq(plugin, "block") && i < config->n_blocks; i++) {
        const ConfBlock *block = config->blocks[i];
        if (argc && !str_eq(argv[0], block->name))
            continue;
        printf("BlockName=%s BlockIndex=%zu Nodes=%s\n", block->name, i, block->nodes);
        count++;
    }
    if (argc && !count)
        fprintf(stderr, "Topology information contains no switch or block named %s\n", argv[0]);
    return argc && !count;
}
