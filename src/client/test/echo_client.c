/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo_client.c - the blocking client as a program, for t/
 *
 *     echo-client ADDRESS METHOD [TEXT [NUMBER]]
 *
 * Prints the answer, or the error on standard error with its code's name, and exits 1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "proto/echo.pb-c.h"

static void print(const ProtobufCMessage *reply)
{
    if (reply->descriptor == &echo_message__descriptor) {
        puts(((const EchoMessage *)(const void *)reply)->text);
    } else {
        const EchoWho *who = (const void *)reply;
        printf("%s uid=%d user=%s node=%s\n", who->how, who->has_uid ? (int)who->uid : -1,
               who->user, who->node);
    }
}

int main(int argc, char **argv)
{
    EchoMessage request = ECHO_MESSAGE__INIT;
    struct arena arena = { 0 };
    ProtobufCMessage *reply;
    struct err err = { 0 };
    char path[128];

    if (argc < 3)
        return 2;
    bool who = strcmp(argv[2], "Who") == 0 || strcmp(argv[2], "Known") == 0;
    snprintf(path, sizeof(path), "/echo.Echo/%.64s", argv[2]);
    request.text = argc > 3 ? argv[3] : (char *)(uintptr_t) "";
    request.has_number = argc > 4;
    request.number = argc > 4 ? (uint32_t)atoi(argv[4]) : 0;
    struct client *client = client_new(
        &(struct client_options){ .addresses = argv[1], .retry_ms = 200, .timeout_ms = 10000 },
        &err);
    if (!client || client_call(client, path, &request.base,
                               who ? &echo_who__descriptor : &echo_message__descriptor, &arena,
                               &reply, &err) < 0) {
        fprintf(stderr, "%s: %s\n", err_name(err.code), err.text);
        client_free(client);
        arena_done(&arena);
        return 1;
    }
    print(reply);
    client_free(client);
    arena_done(&arena);
    return 0;
}
