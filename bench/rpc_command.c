/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rpc_command.c - the smallest command: one call, then the end (bench_rpc.c starts it)
 *
 *     rpc-command ADDRESS        makes one call
 *     rpc-command --libraries    prints how many shared libraries it has beyond libc, and its threads
 *     rpc-command --nothing      only starts and ends
 */
#include <dirent.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "client/client.h"
#include "proto/echo.pb-c.h"

static int count_library(struct dl_phdr_info *info, size_t size, void *ctx)
{
    const char *name = info->dlpi_name;

    (void)size;
    if (name[0] && !strstr(name, "/libc.so") && !strstr(name, "ld-linux") && !strstr(name, "vdso"))
        ++*(int *)ctx;
    return 0;
}

static int count_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    int count = 0;

    while (dir && readdir(dir))
        count++;
    if (dir)
        closedir(dir);
    return count - 2;
}

static int call(const char *address)
{
    EchoMessage request = ECHO_MESSAGE__INIT;
    struct arena arena = { 0 };
    ProtobufCMessage *reply;
    struct err err;
    struct client *client = client_new(&(struct client_options){ .addresses = address }, &err);

    if (!client || client_call(client, "/echo.Echo/Say", &request.base, &echo_message__descriptor,
                               &arena, &reply, &err) < 0) {
        fprintf(stderr, "rpc-command: %s\n", err.text);
        return 1;
    }
    arena_done(&arena);
    client_free(client);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--libraries") == 0) {
        int count = 0;
        dl_iterate_phdr(count_library, &count);
        printf("%d %d\n", count, count_threads());
        return 0;
    }
    return argc == 2 && strcmp(argv[1], "--nothing") != 0 ? call(argv[1]) : 0;
}
