// SPDX-License-Identifier: Apache-2.0
/*
 * node.c - `spur node`: list, show, drain, resume, down
 */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "proto/controller.pb-c.h"

static int usage(bool asked)
{
    fprintf(
        asked ? stdout : stderr,
        "Usage: spur node list                       partitions, nodes and their states\n"
        "       spur node show [NODES]               all about them\n"
        "       spur node drain NODES REASON...      no new jobs there\n"
        "       spur node down NODES REASON...       not usable; its jobs end\n"
        "       spur node resume NODES               back into use\n"
        "       spur node forget NODE                refuse its key; it joins again with a token\n");
    return !asked;
}

static int change(struct cli *cli, const char *state, char *nodes, int words, char **reason)
{
    UpdateNodeRequest request = UPDATE_NODE_REQUEST__INIT;
    struct err err = { 0 };
    struct str text = { 0 };
    DoneReply *reply;
    int code;

    for (int i = 0; i < words; i++)
        str_addf(&text, "%s%s", i ? " " : "", reason[i]);
    request.names = nodes;
    request.state = (char *)state;
    request.reason = words ? (char *)str_text(&text) : NULL;
    code = cli_call(cli, "UpdateNode", &request.base, &done_reply__descriptor,
                    (ProtobufCMessage **)&reply, &err) < 0;
    if (code)
        cli_error(cli, "%s: %s", nodes, err.text);
    str_done(&text);
    return code;
}

static int forget(struct cli *cli, char *node)
{
    ForgetNodeRequest request = FORGET_NODE_REQUEST__INIT;
    struct err err = { 0 };
    DoneReply *reply;

    request.node = node;
    if (cli_call(cli, "ForgetNode", &request.base, &done_reply__descriptor,
                 (ProtobufCMessage **)&reply, &err) == 0)
        return 0;
    cli_error(cli, "%s: %s", node, err.text);
    return 1;
}

int node_main(int argc, char **argv)
{
    static const struct {
        const char *verb, *state;
        bool reason;
    } changes[] = {
        { "drain", "DRAIN", true },
        { "down", "DOWN", true },
        { "resume", "RESUME", false },
    };
    const char *verb = argc > 1 ? argv[1] : "";
    struct cli cli;
    int code;

    if (strcmp(verb, "list") == 0) {
        argv[1] = (char *)"spur node list";
        return sinfo_main(argc - 1, argv + 1);
    }
    if (strcmp(verb, "show") == 0) {
        argv[0] = (char *)"spur node";
        argv[1] = (char *)"node";
        return show_main(argc, argv);
    }
    if (strcmp(verb, "forget") == 0 && argc == 3) {
        cli_init(&cli, "spur node");
        code = forget(&cli, argv[2]);
        cli_done(&cli);
        return code;
    }
    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        if (strcmp(verb, changes[i].verb) != 0)
            continue;
        if (argc < (changes[i].reason ? 4 : 3) || (!changes[i].reason && argc > 3))
            return usage(false);
        cli_init(&cli, "spur node");
        code = change(&cli, changes[i].state, argv[2], argc - 3, argv + 3);
        cli_done(&cli);
        return code;
    }
    return usage(strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0);
}
