// SPDX-License-Identifier: Apache-2.0
/*
 * ping.c - scontrol ping: each address of the cluster is asked by itself
 */
#include "cli/ping.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "client/client.h"
#include "proto/controller.pb-c.h"
#include "schema/jsonw.h"

enum { PING_MS = 2000 };

void ping_one(struct cli *cli, struct pinged *pinged)
{
    Empty request = EMPTY__INIT;
    struct client *client = client_new(&(struct client_options){ .addresses = pinged->address,
                                                                 .token = "", /* it asks for none */
                                                                 .timeout_ms = PING_MS,
                                                                 .retry_ms = PING_MS / 4 },
                                       &pinged->err);

    if (client &&
        client_call(client, "/spur.Controller/Ping", &request.base, &ping_reply__descriptor,
                    &cli->arena, (ProtobufCMessage **)&pinged->reply, &pinged->err) < 0)
        pinged->reply = NULL;
    client_free(client);
}

/* A controller may have two addresses in the list: its socket and its port. */
static bool is_known(const struct pinged *all, size_t last)
{
    for (size_t i = 0; i < last && all[last].reply; i++) {
        if (all[i].reply && str_eq(all[i].reply->name, all[last].reply->name))
            return true;
    }
    return false;
}

size_t ping_all(struct cli *cli, struct pinged *all)
{
    CLEANUP(str_done) struct str addresses = { 0 };
    struct err err = { 0 };
    struct client *any = client_new(&(struct client_options){ 0 }, &err); /* it knows where */
    char **list = NULL;
    size_t count = 0, kept = 0;

    if (!any) {
        cli_error(cli, "%s", err.text);
        return 0;
    }
    client_addresses(any, &addresses);
    client_free(any);
    cli_split(cli, str_text(&addresses), ", ", &list, &count);
    for (size_t i = 0; i < count && kept < PING_MAX; i++) {
        all[kept] = (struct pinged){ .address = list[i] };
        ping_one(cli, &all[kept]);
        if (!is_known(all, kept))
            kept++;
    }
    return kept;
}

static const char *name_of(const struct pinged *pinged)
{
    return pinged->reply && pinged->reply->name ? pinged->reply->name : pinged->address;
}

/* The leader is what Slurm calls primary; without one, the first. */
static size_t primary_of(const struct pinged *all, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (all[i].reply && all[i].reply->leader)
            return i;
    }
    return 0;
}

static void print_json(const struct pinged *all, size_t count, size_t primary, bool yaml, int argc,
                       char **argv)
{
    struct str out = { 0 };
    struct jsonw json;

    cli_json_begin(&json, &out, yaml, argv, "openapi_ping_array_resp");
    jsonw_list(&json, "pings");
    for (size_t i = 0; i < count; i++) {
        jsonw_object(&json, NULL);
        jsonw_text(&json, "hostname", name_of(&all[i]));
        jsonw_text(&json, "pinged", all[i].reply ? "UP" : "DOWN");
        jsonw_bool(&json, "responding", all[i].reply != NULL);
        jsonw_bool(&json, "primary", i == primary);
        jsonw_text(&json, "mode", i == primary ? "primary" : "backup");
        jsonw_object_end(&json);
    }
    jsonw_list_end(&json);
    cli_json_end(&json, argc, argv,
                 count && all[primary].reply ? all[primary].reply->cluster_name : NULL);
    cli_flush(&out);
    str_done(&out);
}

int ping_print(struct cli *cli, bool as_json, bool yaml, int argc, char **argv)
{
    struct pinged all[PING_MAX];
    size_t count = ping_all(cli, all), primary = primary_of(all, count), backup = 0, up = 0;

    if (as_json)
        print_json(all, count, primary, yaml, argc, argv);
    for (size_t i = 0; i < count; i++) {
        up += all[i].reply != NULL;
        if (as_json)
            continue;
        if (i == primary)
            printf("Slurmctld(primary)");
        else
            printf("Slurmctld(backup%zu)", ++backup);
        printf(" at %s is %s\n", name_of(&all[i]), all[i].reply ? "UP" : "DOWN");
    }
    return up == 0;
}
