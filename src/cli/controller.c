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

enum { ASK_AGAIN_MS = 300, WAIT_S = 600 };

struct change_args {
    const char *name, *address; /* operands */
    const char *invitation;
    uint32_t wait_s, pin;
    bool unpin, help;
};

static const struct option rows[] = {
    { .name = "invitation",
      .arg = "FILE",
      .read = option_text,
      .into = OPTION_TEXT(struct change_args, invitation),
      .help =
          "add: where the invitation of the new controller is written; NAME.invitation when not "
          "given. It is good for an hour; the new controller is started with spurctld --join "
          "FILE." },
    { .name = "wait",
      .arg = "SECONDS",
      .read = option_positive,
      .into = OPTION_U32(struct change_args, wait_s),
      .help =
          "add, remove, transfer: give up after so long, 600 when not given. What was begun can "
          "be asked for again and goes on where it stands." },
    { .name = "pin",
      .arg = "LEVEL",
      .read = option_positive,
      .into = OPTION_U32(struct change_args, pin),
      .help =
          "level: the cluster's feature level does not rise above this one, so that controllers of "
          "an older build can still be started." },
    { .name = "unpin",
      .read = option_flag,
      .into = OPTION_BOOL(struct change_args, unpin),
      .help = "level: the feature level rises again when all controllers know the next one." },
    { .name = "help",
      .key = 'h',
      .read = option_flag,
      .into = OPTION_BOOL(struct change_args, help),
      .help = "Show this text." },
};

const struct option_set controller_options = {
    .command = "spur controller",
    .usage = "list\n"
             "       spur controller ping\n"
             "       spur controller add NAME [HOST:PORT] [--invitation FILE] [--wait SECONDS]\n"
             "       spur controller remove NAME [--wait SECONDS]\n"
             "       spur controller transfer NAME\n"
             "       spur controller trust NAME\n"
             "       spur controller level [--pin LEVEL | --unpin]",
    .about =
        "Shows who the controllers are, who leads and how far each is; adds and removes "
        "controllers and changes who leads, while jobs run. A controller that is alone keeps its "
        "log in SQLite; with the second one it moves to etcd, and back when one is left. The feature "
        "level says what the log may hold; it rises by itself when every controller's build knows "
        "the next one, and never goes back. trust says which controller has the right state, when some differ "
        "and no majority of them agrees: until then nobody writes.",
    .bit = 1,
    .usage_exit = 1,
    .rows = rows,
    .count = ARRAY_LEN(rows),
};

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
    char level[32];

    if (!reply || !reply->has_index) {
        printf("%-16s %-8s %10s %12s %8s %-16s %-7s %-6s %-16s %s\n", reply ? reply->name : "?",
               "down", "", "", "", "", "", "", "", pinged->address);
        return;
    }
    printf("%-16s %-8s %10llu %12llu %8llu %016llx %-7s ", reply->name ? reply->name : "",
           reply->leader ? "leader" : "follower", (unsigned long long)reply->epoch,
           (unsigned long long)reply->index, (unsigned long long)(newest - reply->index),
           (unsigned long long)reply->digest, reply->engine ? reply->engine : "");
    /* in force, and known: "2/3" */
    snprintf(level, sizeof(level), "%u/%u", reply->has_level ? reply->level : 1,
             reply->has_level_known ? reply->level_known : 1);
    printf("%-6s %-16s %s\n", level,
           reply->build     ? reply->build
           : reply->version ? reply->version
                            : "",
           pinged->address);
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
    printf("%-16s %-8s %10s %12s %8s %-16s %-7s %-6s %-16s %s\n", "NAME", "ROLE", "EPOCH", "INDEX",
           "LAG", "DIGEST", "LOG", "LEVEL", "BUILD", "ADDRESS");
    for (size_t i = 0; i < count; i++) {
        print_row(&all[i], newest);
        if (!all[i].reply)
            cli_error(cli, "%s: %s", all[i].address, all[i].err.text);
    }
    return up == 0;
}

/* ---- the feature level ---- */

static int pin_level(struct cli *cli, uint32_t pin)
{
    SetLevelRequest request = SET_LEVEL_REQUEST__INIT;
    struct err err = { 0 };

    request.has_pin = true;
    request.pin = pin;
    struct client *client = client_new(&(struct client_options){ 0 }, &err);
    ProtobufCMessage *reply = NULL;
    int code = client ? client_call(client, "/spur.Controller/SetLevel", &request.base,
                                    &done_reply__descriptor, &cli->arena, &reply, &err)
                      : -(int)err.code;
    client_free(client);
    if (code < 0)
        cli_error(cli, "level: %s", err.text);
    return code < 0;
}

static int show_level(struct cli *cli)
{
    struct pinged all[PING_MAX];
    size_t count = gather(cli, all);
    const PingReply *leader = NULL;

    for (size_t i = 0; i < count; i++) {
        if (all[i].reply && all[i].reply->leader)
            leader = all[i].reply;
    }
    if (!leader) {
        cli_error(cli, "level: no controller leads");
        return 1;
    }
    printf("feature level %u", leader->has_level ? leader->level : 1);
    if (leader->has_level_pin)
        printf(", pinned at %u", leader->level_pin);
    printf("; the leader's build knows %u\n", leader->has_level_known ? leader->level_known : 1);
    for (size_t i = 0; i < count; i++) {
        const PingReply *reply = all[i].reply;
        bool heard = reply && reply->has_index;
        unsigned known = heard && reply->has_level_known ? reply->level_known : 1;
        if (leader->level < leader->level_known && known <= leader->level)
            printf("%s holds it back: %s\n", reply && reply->name ? reply->name : all[i].address,
                   heard ? "its build is older" : "it does not answer");
    }
    return 0;
}

static int level(struct cli *cli, const struct change_args *args)
{
    if (args->pin && args->unpin) {
        cli_error(cli, "level: --pin and --unpin exclude each other");
        return 1;
    }
    if ((args->pin || args->unpin) && pin_level(cli, args->pin) != 0)
        return 1;
    return show_level(cli);
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
    printf("invitation in %s, good for an hour; take it to host %s and start spurctld there with\n"
           "    --join FILE (SPURCTLD_OPTIONS in /etc/default/spurctld)\n",
           path, args->name);
    fflush(stdout);
    return 0;
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
    bool known; /* it must be there */
    int most;   /* operands */
} verbs[] = {
    { "add", "AddController", "is a controller", false, 2 },
    { "remove", "RemoveController", "is no longer a controller", true, 1 },
    { "transfer", "TransferLeader", "leads", true, 1 },
};

static int change(struct cli *cli, const struct verb *verb, struct change_args *args)
{
    struct controller_watch watch = { args, keep_invitation, say_phase };
    struct err err = { 0 };
    int code;

    if (verb->known && !is_known(cli, args->name)) {
        cli_error(cli, "there is no controller '%s'", args->name);
        return 1;
    }
    struct client *client = client_new(&(struct client_options){ 0 }, &err);
    code = client ? controller_change(client, verb->method, args->name, args->address, &watch,
                                      args->wait_s ? args->wait_s : WAIT_S, &err)
                  : -(int)err.code;
    client_free(client);
    if (code < 0)
        cli_error(cli, "%s", err.text);
    else
        printf("%s %s\n", args->name, verb->done);
    return code < 0;
}

/* That one is asked itself: nobody leads. */
static int trust(struct cli *cli, const char *name)
{
    ChangeControllerRequest request = CHANGE_CONTROLLER_REQUEST__INIT;
    struct pinged all[PING_MAX];
    size_t count = gather(cli, all), at = 0;
    ProtobufCMessage *reply = NULL;
    struct err err = { 0 };

    while (at < count && !(all[at].reply && str_eq(all[at].reply->name, name)))
        at++;
    if (at == count) {
        cli_error(cli, "there is no controller '%s'", name);
        return 1;
    }
    request.name = (char *)(uintptr_t)name;
    struct client *client =
        client_new(&(struct client_options){ .addresses = all[at].address }, &err);
    int code = client ? client_call(client, "/spur.Controller/TrustController", &request.base,
                                    &done_reply__descriptor, &cli->arena, &reply, &err)
                      : -(int)err.code;
    client_free(client);
    if (code < 0)
        cli_error(cli, "trust: %s", err.text);
    else
        printf("the state of %s is the right one\n", name);
    return code < 0;
}

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        if (strcmp(name, verbs[i].name) == 0)
            return &verbs[i];
    }
    return NULL;
}

/* operands[0] is what to do. */
static int run(struct cli *cli, struct change_args *args, char **operands, int count)
{
    const struct verb *verb = find_verb(operands[0]);

    if (count == 1 && strcmp(operands[0], "level") == 0)
        return level(cli, args);
    if (args->pin || args->unpin) {
        cli_error(cli, "--pin and --unpin are for 'spur controller level'");
        return 1;
    }
    if (count == 1 && strcmp(operands[0], "list") == 0)
        return list(cli);
    if (count == 1 && strcmp(operands[0], "ping") == 0)
        return ping_print(cli, false, false, 0, NULL);
    if (count == 2 && strcmp(operands[0], "trust") == 0)
        return trust(cli, operands[1]);
    if (!verb) {
        cli_error(cli, "'%s' is not list, ping, add, remove, transfer, trust NAME or level",
                  operands[0]);
        return 1;
    }
    if (count < 2 || count > 1 + verb->most) {
        cli_error(cli,
                  count < 2 ? "%s: the name of a controller is needed" : "%s: too many arguments",
                  verb->name);
        return 1;
    }
    args->name = operands[1];
    args->address = count > 2 ? operands[2] : NULL;
    return change(cli, verb, args);
}

int controller_main(int argc, char **argv)
{
    const struct option_set *set = &controller_options;
    struct option_ctx ctx = cli_option_ctx();
    struct change_args args = { 0 };
    struct err err = { 0 };
    char **operands = NEW_ARRAY(char *, argc + 1);
    struct cli cli;
    int count = 0, code;

    cli_init(&cli, cli_name(argv));
    if (option_read_argv(set, &ctx, &args, argc, argv, OPTION_PERMUTE, operands, &count, &err) < 0)
        code = cli_option_error(set, &err);
    else if (cli_help(set, args.help, count == 0, false))
        code = !args.help;
    else
        code = run(&cli, &args, operands, count);
    cli_done(&cli);
    free(operands);
    return code;
}
