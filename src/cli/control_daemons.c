// SPDX-License-Identifier: Apache-2.0
/*
 * control_daemons.c - scontrol getaddrs, show daemons: what runs where
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/control.h"
#include "schema/node_view.h"
#include "sys/host.h"

int control_getaddrs(struct control *control, int argc, char **argv)
{
    ListNodesRequest request = LIST_NODES_REQUEST__INIT;
    ListNodesReply *reply;
    struct err err = { 0 };

    (void)argc;
    request.n_names = 1;
    request.names = argv;
    if (cli_call(&control->cli, "ListNodes", &request.base, &list_nodes_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) < 0) {
        fprintf(stderr, "slurm_get_node_alias_addrs error: %s\n", err.text);
        return 1;
    }
    for (size_t i = 0; i < reply->n_nodes; i++) {
        const NodeSpec *spec = node_spec(reply->nodes[i]);

        printf("%s: %s:%u\n", spec->name, node_address(reply->nodes[i]),
               spec->port ? spec->port : 6818);
    }
    return 0;
}

/* Commands use the controller's socket on its own host. */
static bool has_controller(const ConfLocal *local, const char *host)
{
    const char *address = getenv("SPUR_CONTROLLER_ADDR");

    for (size_t i = 0; local && i < local->n_hosts; i++) {
        size_t len = strcspn(local->hosts[i], "(");
        if (strlen(host) == len && strncmp(local->hosts[i], host, len) == 0)
            return true;
    }
    return address && str_starts(address, "unix:");
}

int control_show_daemons(struct control *control, int argc, char **argv)
{
    GetConfigRequest ask = GET_CONFIG_REQUEST__INIT;
    ListNodesRequest ask_nodes = LIST_NODES_REQUEST__INIT;
    GetConfigReply *config;
    ListNodesReply *nodes;
    struct err err = { 0 };
    char host[HOST_NAME_BYTES];
    bool node = getenv("SLURMD_NODENAME") != NULL;

    (void)argc, (void)argv;
    host_short(host);
    if (cli_call(&control->cli, "GetConfig", &ask.base, &get_config_reply__descriptor,
                 (ProtobufCMessage **)&config, &err) < 0 ||
        cli_call(&control->cli, "ListNodes", &ask_nodes.base, &list_nodes_reply__descriptor,
                 (ProtobufCMessage **)&nodes, &err) < 0)
        return cli_load_error(&control->cli, "slurm_load_ctl_conf error:", &err);
    for (size_t i = 0; i < nodes->n_nodes && !node; i++)
        node = str_eq(node_hostname(nodes->nodes[i]), host);
    printf("%s%s\n", has_controller(config->local, host) ? "slurmctld " : "",
           node ? "slurmd " : "");
    return 0;
}
