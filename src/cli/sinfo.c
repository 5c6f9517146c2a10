// SPDX-License-Identifier: Apache-2.0
/*
 * sinfo.c - lists partitions and nodes: `sinfo`, `spur nodes`
 */
#include "cli/sinfo.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/timefmt.h"
#include "cli/commands.h"
#include "client/client.h"

static int show_reservations(struct sinfo *sinfo)
{
    ListReservationsRequest request = LIST_RESERVATIONS_REQUEST__INIT;
    ListReservationsReply *reply;
    struct field_ctx ctx = cli_field_ctx(0);
    struct err err = { 0 };
    struct str out = { 0 };

    if (cli_call(&sinfo->cli, "ListReservations", &request.base,
                 &list_reservations_reply__descriptor, (ProtobufCMessage **)&reply, &err) < 0) {
        return cli_load_error(&sinfo->cli, "slurm_load_reservations error:", &err);
    }
    if (!reply->n_reservations) {
        puts("No reservations in the system");
        return 0;
    }
    if (!sinfo->args.no_header)
        str_addf(&out, "%-10s %8s %20s %20s %12s  %s\n", "RESV_NAME", "STATE", "START_TIME",
                 "END_TIME", "DURATION", "NODELIST");
    for (size_t i = 0; i < reply->n_reservations; i++) {
        const Reservation *one = reply->reservations[i];
        struct str start = { 0 }, end = { 0 }, length = { 0 };

        field_add_moment(&start, &ctx, one->spec->start_us);
        field_add_moment(&end, &ctx, one->spec->end_us);
        timefmt_write_duration(&length, (one->spec->end_us - one->spec->start_us) / 1000000,
                               TIMEFMT_LONG);
        str_addf(&out, "%-10s %8s %20s %20s %12s  %s\n", one->spec->name,
                 one->state ? one->state : "", str_text(&start), str_text(&end), str_text(&length),
                 one->node_names ? one->node_names : "");
        str_done(&start);
        str_done(&end);
        str_done(&length);
    }
    cli_flush(&out);
    str_done(&out);
    return 0;
}

static int load(struct sinfo *sinfo, ListPartitionsReply **partitions, ListNodesReply **nodes,
                struct err *err)
{
    ListPartitionsRequest ask_partitions = LIST_PARTITIONS_REQUEST__INIT;
    ListNodesRequest ask_nodes = LIST_NODES_REQUEST__INIT;
    bool hidden = (sinfo->args.all || sinfo->filter.partitions) && !sinfo->args.hide;

    ask_partitions.has_hidden_too = ask_partitions.hidden_too = hidden;
    ask_partitions.has_stale = ask_partitions.stale = sinfo->args.stale;
    ask_nodes.has_stale = ask_nodes.stale = sinfo->args.stale;
    if (cli_call(&sinfo->cli, "ListPartitions", &ask_partitions.base,
                 &list_partitions_reply__descriptor, (ProtobufCMessage **)partitions, err) < 0)
        return -1;
    return cli_call(&sinfo->cli, "ListNodes", &ask_nodes.base, &list_nodes_reply__descriptor,
                    (ProtobufCMessage **)nodes, err);
}

static int show_once(struct sinfo *sinfo)
{
    ListPartitionsReply *partitions;
    ListNodesReply *nodes;
    struct err err = { 0 };

    if (sinfo->args.reservations)
        return show_reservations(sinfo);
    if (load(sinfo, &partitions, &nodes, &err) < 0)
        return cli_load_error(&sinfo->cli, "slurm_load_partitions:", &err);
    if (nodes->stale || partitions->stale)
        fprintf(stderr, "%s: this may be old: the controller did not ask the others\n",
                sinfo->cli.name);
    return sinfo_print(sinfo, partitions, nodes, cli_field_ctx(nodes->now_us));
}

int sinfo_main(int argc, char **argv)
{
    struct sinfo sinfo;
    int code;

    sinfo_init(&sinfo, argc, argv);
    code = sinfo_read(&sinfo);
    while (code < 0) {
        code = show_once(&sinfo);
        if (!sinfo.args.iterate_s || (code && !sinfo.cli.client))
            break;
        sleep(sinfo.args.iterate_s);
        puts("");
        arena_reset(&sinfo.cli.arena);
        code = -1;
    }
    sinfo_done(&sinfo);
    return code;
}
