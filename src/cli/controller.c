/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controller.c - spur controller: who the controllers are, how far each is, and changing that
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/ping.h"

static const char help[] =
    "Usage: spur controller list    every controller: who leads, how far each is, its state's digest\n"
    "       spur controller ping    which of them are up\n";

/* ---- list ---- */

static bool is_listed(const struct pinged *all, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (all[i].reply && str_eq(all[i].reply->name, name))
            return true;
    }
    return false;
}

/* Those that the cluster has and no address of ours led to. */
static size_t ping_others(struct cli *cli, struct pinged *all, size_t count)
{
    const PingReply *knows = NULL;

    for (size_t i = 0; i < count; i++) {
        if (all[i].reply && (!knows || all[i].reply->index > knows->index))
            knows = all[i].reply;
    }
    for (size_t i = 0; knows && i < knows->n_controllers && count < PING_MAX; i++) {
        const ControllerSpec *spec = knows->controllers[i];
        if (is_listed(all, count, spec->name))
            continue;
        all[count] = (struct pinged){ .address = spec->address };
        ping_one(cli, &all[count]);
        if (!all[count].reply) {
            PingReply *unheard = ARENA_NEW(&cli->arena, PingReply);
            ping_reply__init(unheard);
            unheard->name = spec->name;
            all[count].reply = unheard;
        }
        count++;
    }
    return count;
}

static void print_row(const struct pinged *pinged, uint64_t newest)
{
    const PingReply *reply = pinged->reply;

    if (!reply || !reply->has_index) {
        printf("%-16s %-8s %10s %12s %8s %-16s %-7s %s\n", reply ? reply->name : "?", "down", "",
               "", "", "", "", pinged->address);
        return;
    }
    printf("%-16s %-8s %10llu %12llu %8llu %016llx %-7s %s\n", reply->name ? reply->name : "",
           reply->leader ? "leader" : "follower", (unsigned long long)reply->epoch,
           (unsigned long long)reply->index, (unsigned long long)(newest - reply->index),
           (unsigned long long)reply->digest, reply->engine ? reply->engine : "", pinged->address);
}

/*
 * Those that answered, then those that the cluster names, then addresses that lead to nobody; a
 * controller that is down and has a name is not counted again by its address.
 */
static size_t gather(struct cli *cli, struct pinged *all)
{
    struct pinged silent[PING_MAX];
    size_t count = ping_all(cli, all), heard = 0, silent_count = 0, down = 0;

    for (size_t i = 0; i < count; i++) {
        if (all[i].reply)
            all[heard++] = all[i];
        else
            silent[silent_count++] = all[i];
    }
    count = ping_others(cli, all, heard);
    for (size_t i = heard; i < count; i++)
        down += !all[i].reply->has_index;
    for (size_t i = down; i < silent_count && count < PING_MAX; i++)
        all[count++] = silent[i];
    return count;
}

static int list(struct cli *cli)
{
    struct pinged all[PING_MAX];
    size_t count = gather(cli, all), up = 0;
    uint64_t newest = 0;

    for (size_t i = 0; i < count; i++) {
        up += all[i].reply && all[i].reply->has_index;
        newest = MAX(newest, all[i].reply ? all[i].reply->index : 0);
    }
    printf("%-16s %-8s %10s %12s %8s %-16s %-7s %s\n", "NAME", "ROLE", "EPOCH", "INDEX", "LAG",
           "DIGEST", "LOG", "ADDRESS");
    for (size_t i = 0; i < count; i++) {
        print_row(&all[i], newest);
        if (!all[i].reply)
            cli_error(cli, "%s: %s", all[i].address, all[i].err.text);
    }
    return up == 0;
}

int controller_main(int argc, char **argv)
{
    bool asked = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    struct cli cli;
    int code;

    cli_init(&cli, cli_name(argv));
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        code = list(&cli);
    } else if (argc == 2 && strcmp(argv[1], "ping") == 0) {
        code = ping_print(&cli, false, argc, argv);
    } else {
        fputs(help, asked ? stdout : stderr);
        code = !asked;
    }
    cli_done(&cli);
    return code;
}
