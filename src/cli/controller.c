/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controller.c - spur controller: who the controllers are, how far each is, and changing that
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/commands.h"
#include "cli/controller.h"
#include "cli/ping.h"
#include "sys/clock.h"
#include "sys/files.h"

static const char MOVES[] = "the log moves"; /* as spurctld says it */

enum { ASK_AGAIN_MS = 300, WAIT_S = 600, WAIT_MOST_S = 86400 };

static const char help[] =
    "Usage: spur controller list                  who leads, how far each is, its state's digest\n"
    "       spur controller ping                  which of them are up\n"
    "       spur controller add NAME [ADDRESS]    a new controller at HOST:PORT\n"
    "       spur controller remove NAME           one less, whether it runs or not\n"
    "       spur controller transfer NAME         that one leads from now on\n\n"
    "  --invitation FILE   add: where the newcomer's invitation goes (default NAME.invitation)\n"
    "  --wait S            give up after S seconds (default 600); what was begun can be asked for again\n\n"
    "A controller that is alone keeps its log in SQLite; with the second one it moves to etcd, and back when\n"
    "one is left.\n";

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

/* ---- changes ---- */

static void pause_ms(long ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

    nanosleep(&t, NULL);
}

int controller_change(struct client *client, const char *what, const char *name,
                      const char *address, const struct controller_watch *watch, unsigned wait_s,
                      struct err *err)
{
    ChangeControllerRequest request = CHANGE_CONTROLLER_REQUEST__INIT;
    CLEANUP(freep) char *path = mem_printf("/spur.Controller/%s", what);
    int64_t until_us = clock_mono_us() + (int64_t)wait_s * 1000000;
    CLEANUP(freep) char *last = NULL;
    bool invited = false, moves = false;

    request.name = (char *)(uintptr_t)name;
    request.address = (char *)(uintptr_t)address;
    for (;;) {
        ProtobufCMessage *message = NULL;
        struct arena arena;
        arena_init(&arena);
        int code = client_call(client, path, &request.base, &change_controller_reply__descriptor,
                               &arena, &message, err);
        const ChangeControllerReply *reply = (const void *)message;
        bool done = code == 0 && reply->done;
        if (code == 0 && reply->phase && !str_eq(reply->phase, last)) {
            /* How long it took is known when it is over. */
            bool over = moves && reply->has_pause_ms && !str_starts(reply->phase, MOVES);
            free(last);
            last = mem_strdup(reply->phase);
            watch->phase(watch->ctx, reply->phase, over ? reply->pause_ms : 0);
            moves = (moves || str_starts(last, MOVES)) && !over;
        }
        if (code == 0 && reply->invitation && !invited) {
            invited = true;
            code = watch->invited(watch->ctx, reply->invitation, err);
        }
        arena_done(&arena);
        /* A controller that is about to change may not answer for a while. */
        bool again = code == -(int)ERR_UNREACHABLE || code == -(int)ERR_NOT_LEADER ||
                     code == -(int)ERR_CONNECTION_LOST || code == -(int)ERR_SHUTTING_DOWN;
        if (done || (code < 0 && !again))
            return code;
        if (clock_mono_us() > until_us)
            return code < 0 ? code
                            : err_set(err, ERR_DEADLINE, "not done after %u s: %s", wait_s,
                                      last ? last : "");
        pause_ms(ASK_AGAIN_MS);
    }
}

struct change_args {
    const char *name, *address, *invitation;
    unsigned wait_s;
};

static void say_phase(void *ctx, const char *phase, uint32_t paused_ms)
{
    (void)ctx;
    if (strcmp(phase, "done") != 0)
        printf("%s\n", phase);
    if (paused_ms)
        printf("the log has moved: no writes for %u ms\n", paused_ms);
    fflush(stdout);
}

static int keep_invitation(void *ctx, const char *line, struct err *err)
{
    const struct change_args *args = ctx;
    CLEANUP(freep)
    char *path =
        args->invitation ? mem_strdup(args->invitation) : mem_printf("%s.invitation", args->name);
    CLEANUP(freep) char *text = mem_printf("%s\n", line);

    if (file_write(path, text, strlen(text), 0600, err) < 0)
        return -(int)err->code;
    printf("invitation in %s, good for an hour; take it to the new host and start there:\n"
           "    spurctld --join FILE --name %s --state-dir DIR\n",
           path, args->name);
    fflush(stdout);
    return 0;
}

/* -1 to go on, else the exit code. */
static int read_args(struct cli *cli, int argc, char **argv, struct change_args *args)
{
    *args = (struct change_args){ .wait_s = WAIT_S };
    for (int i = 2; i < argc; i++) {
        uint64_t seconds;
        if (strcmp(argv[i], "--invitation") == 0 && i + 1 < argc) {
            args->invitation = argv[++i];
        } else if (strcmp(argv[i], "--wait") == 0 && i + 1 < argc) {
            if (!str_to_u64(argv[++i], WAIT_MOST_S, &seconds)) {
                cli_error(cli, "Invalid numeric value \"%s\" for --wait.", argv[i]);
                return 1;
            }
            args->wait_s = (unsigned)seconds;
        } else if (argv[i][0] == '-' || args->address) {
            cli_error(cli, "unexpected argument '%s'", argv[i]);
            return 1;
        } else if (args->name) {
            args->address = argv[i];
        } else {
            args->name = argv[i];
        }
    }
    if (args->name)
        return -1;
    fputs(help, stderr);
    return 1;
}

/* A name that nobody has is a mistake, and not something that is gone already. */
static bool is_known(struct cli *cli, const char *name)
{
    struct pinged all[PING_MAX];
    size_t count = gather(cli, all);

    return count == 0 || is_listed(all, count, name);
}

static const struct verb {
    const char *name, *method, *done;
    bool known, address;
} verbs[] = {
    { "add", "AddController", "is a controller", false, true },
    { "remove", "RemoveController", "is no longer a controller", true, false },
    { "transfer", "TransferLeader", "leads", true, false },
};

static int change(struct cli *cli, const struct verb *verb, int argc, char **argv)
{
    struct change_args args;
    struct controller_watch watch = { &args, keep_invitation, say_phase };
    struct err err = { 0 };
    int code = read_args(cli, argc, argv, &args);

    if (code >= 0)
        return code;
    if (args.address && !verb->address) {
        cli_error(cli, "unexpected argument '%s'", args.address);
        return 1;
    }
    if (verb->known && !is_known(cli, args.name)) {
        cli_error(cli, "there is no controller '%s'", args.name);
        return 1;
    }
    struct client *client = client_new(&(struct client_options){ 0 }, &err);
    code = client ? controller_change(client, verb->method, args.name, args.address, &watch,
                                      args.wait_s, &err)
                  : -(int)err.code;
    client_free(client);
    if (code < 0)
        cli_error(cli, "%s", err.text);
    else
        printf("%s %s\n", args.name, verb->done);
    return code < 0;
}

int controller_main(int argc, char **argv)
{
    bool asked = argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
    const struct verb *verb = NULL;
    struct cli cli;
    int code;

    for (size_t i = 0; argc > 1 && i < ARRAY_LEN(verbs); i++) {
        if (strcmp(argv[1], verbs[i].name) == 0)
            verb = &verbs[i];
    }
    cli_init(&cli, cli_name(argv));
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        code = list(&cli);
    } else if (argc == 2 && strcmp(argv[1], "ping") == 0) {
        code = ping_print(&cli, false, argc, argv);
    } else if (verb) {
        code = change(&cli, verb, argc, argv);
    } else {
        fputs(help, asked ? stdout : stderr);
        code = !asked;
    }
    cli_done(&cli);
    return code;
}
