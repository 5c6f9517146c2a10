/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounting_cmd.c - `spur accounting`: how database and controllers stand, adopting and repairing accounts
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/timefmt.h"
#include "cli/accounting.h"
#include "cli/commands.h"
#include "client/client.h"
#include "proto/acct.pb-c.h"
#include "proto/usage.pb-c.h"

static const char usage[] =
    "Usage: spur accounting status\n"
    "       spur accounting adopt [CLUSTER]\n"
    "       spur accounting recompute [CLUSTER]\n"
    "       spur accounting repair --from database|controllers [CLUSTER]\n"
    "status  shows how far the history is, what is missing in it, and who owns accounts\n"
    "adopt   gives accounts, users and QOS of a cluster's configuration file to the database\n"
    "recompute sums up use by hour, day and month again, from the history\n"
    "repair  settles whose accounts hold after the database or the controllers were restored\n";

static int call(struct cli *cli, const char *path, const ProtobufCMessage *request,
                const ProtobufCMessageDescriptor *type, ProtobufCMessage **reply)
{
    struct err err = { 0 };
    struct client *client = accounting_connect(cli, &err);
    int code = client ? client_call(client, path, request, type, &cli->arena, reply, &err)
                      : -(int)err.code;

    if (client)
        client_free(client);
    return code < 0 ? accounting_error(cli, &err) : 0;
}

static void add_time(struct str *out, int64_t us)
{
    if (us)
        timefmt_write_point(out, us / 1000000, 0, NULL);
    else
        str_add(out, "never");
}

static void add_gaps(struct str *out, const AcctCluster *cluster)
{
    for (size_t i = 0; i < cluster->n_gaps; i++) {
        const AcctGap *gap = cluster->gaps[i];
        str_addf(out, "  missing:    entries %" PRIu64 " to %" PRIu64 ": %s (noticed ", gap->from,
                 gap->upto, gap->why);
        add_time(out, gap->noticed_us);
        str_add(out, ")\n");
    }
}

static void add_cluster(struct str *out, const AcctCluster *cluster)
{
    str_addf(out, "Cluster %s\n  controller: ", cluster->name);
    if (cluster->connected)
        str_addf(out, "%s is connected", cluster->controller);
    else
        str_add(out, "not connected, last heard of ");
    if (!cluster->connected)
        add_time(out, cluster->heard_us);
    str_addf(out,
             "\n  history:    %" PRIu64 " runs of jobs, %" PRIu64 " steps, up to entry %" PRIu64,
             cluster->jobs, cluster->steps, cluster->index);
    if (cluster->connected && cluster->leader_index > cluster->index)
        str_addf(out, " of %" PRIu64, cluster->leader_index);
    str_add_char(out, '\n');
    add_gaps(out, cluster);
    str_addf(out, "  accounts:   %s, change %" PRIu64 "\n",
             cluster->file_owns && !cluster->changes ? "of the configuration file"
                                                     : "of the database",
             cluster->changes);
    if (!str_is_empty(cluster->repair))
        str_addf(out, "  REPAIR:     %s; changes of accounts wait for 'spur accounting repair'\n",
                 cluster->repair);
}

static int show_status(struct cli *cli)
{
    AcctStatusRequest request = ACCT_STATUS_REQUEST__INIT;
    ProtobufCMessage *message = NULL;
    CLEANUP(str_done) struct str out = { 0 };

    if (call(cli, "/spur.Accounting/Status", &request.base, &acct_status_reply__descriptor,
             &message))
        return 1;
    const AcctStatusReply *reply = (const void *)message;
    str_addf(&out, "spurdbd %s, database %s, tables of version %u, since ", reply->version,
             reply->database, reply->schema);
    add_time(&out, reply->start_us);
    str_add_char(&out, '\n');
    bool broken = false;
    for (size_t i = 0; i < reply->n_clusters; i++) {
        add_cluster(&out, reply->clusters[i]);
        broken = broken || !str_is_empty(reply->clusters[i]->repair);
    }
    cli_flush(&out);
    return broken;
}

static int adopt(struct cli *cli, const char *cluster)
{
    AdoptRequest request = ADOPT_REQUEST__INIT;
    ProtobufCMessage *message = NULL;

    request.cluster = (char *)(uintptr_t)cluster;
    if (call(cli, "/spur.Accounts/Adopt", &request.base, &adopt_reply__descriptor, &message))
        return 1;
    const AdoptReply *reply = (const void *)message;
    printf("The database has %u accounts, %u users and %u QOS of the file now. Remove the "
           "sections [[accounts]], [[users]] and [[qos]] from it.\n",
           reply->accounts, reply->users, reply->qos);
    return 0;
}

static int recompute(struct cli *cli, const char *cluster)
{
    RecomputeRequest request = RECOMPUTE_REQUEST__INIT;
    ProtobufCMessage *message = NULL;

    request.cluster = (char *)(uintptr_t)cluster;
    if (call(cli, "/spur.Reports/Recompute", &request.base, &recompute_reply__descriptor, &message))
        return 1;
    puts("Use by hour, day and month was summed up again from the history.");
    return 0;
}

static int repair(struct cli *cli, int argc, char **argv)
{
    RepairRequest request = REPAIR_REQUEST__INIT;
    ProtobufCMessage *message = NULL;
    const char *from = NULL;

    for (int i = 0; i < argc; i++) {
        if (str_starts(argv[i], "--from="))
            from = argv[i] + 7;
        else if (str_eq(argv[i], "--from") && i + 1 < argc)
            from = argv[++i];
        else
            request.cluster = argv[i];
    }
    if (!from || (!str_eq(from, "database") && !str_eq(from, "controllers"))) {
        cli_error(cli, "repair needs --from database or --from controllers: whose accounts hold?");
        return 1;
    }
    request.has_from_database = true;
    request.from_database = str_eq(from, "database");
    if (call(cli, "/spur.Accounting/Repair", &request.base, &repair_reply__descriptor, &message))
        return 1;
    const RepairReply *reply = (const void *)message;
    printf("Accounts of cluster %s are those of the %s now (change %" PRIu64 ").\n", reply->cluster,
           from, reply->changes);
    return 0;
}

int spur_accounting_main(int argc, char **argv)
{
    struct cli cli;
    int code;

    cli_init(&cli, cli_name(argv));
    bool help = argc > 1 && (str_eq(argv[1], "--help") || str_eq(argv[1], "-h"));
    if (argc == 2 && str_eq(argv[1], "status")) {
        code = show_status(&cli);
    } else if (argc >= 2 && argc <= 3 && str_eq(argv[1], "adopt")) {
        code = adopt(&cli, argc > 2 ? argv[2] : NULL);
    } else if (argc >= 2 && argc <= 3 && str_eq(argv[1], "recompute")) {
        code = recompute(&cli, argc > 2 ? argv[2] : NULL);
    } else if (argc >= 2 && argc <= 5 && str_eq(argv[1], "repair")) {
        code = repair(&cli, argc - 2, argv + 2);
    } else {
        fputs(usage, help ? stdout : stderr);
        code = help ? 0 : 1;
    }
    cli_done(&cli);
    return code;
}
