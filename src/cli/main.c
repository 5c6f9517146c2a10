/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - the multi-call binary: `spur NAME ...`, or a symlink called NAME
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"
#include "cli/commands.h"

static int help_main(int argc, char **argv);
static int version_main(int argc, char **argv);

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    { "config", config_main, "check, show or import a configuration" },
    { "up", up_main, "start a private cluster on this machine" },
    { "down", down_main, "end it" },
    { "version", version_main, "show the version" },
    { "help", help_main, "show this" },
};

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static int help_main(int argc, char **argv)
{
    puts("usage: spur COMMAND [ARGUMENT...]\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        printf("  %-12s %s\n", commands[i].name, commands[i].help);
    return 0;
}

static int version_main(int argc, char **argv)
{
    puts("spur " SPUR_VERSION);
    return 0;
}

static int unknown(const char *name)
{
    const char *best = NULL;
    unsigned distance = 3;

    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        unsigned d = str_distance(name, commands[i].name);

        if (d < distance) {
            distance = d;
            best = commands[i].name;
        }
    }
    fprintf(stderr, "spur: there is no command '%s'", name);
    if (best)
        fprintf(stderr, "; did you mean '%s'?", best);
    fputs(" ('spur help' lists them)\n", stderr);
    return 1;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const struct command *command = find(slash ? slash + 1 : argv[0]);

    if (command)
        return command->run(argc, argv);
    if (argc < 2 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)
        return help_main(argc, argv) + (argc < 2);
    if (strcmp(argv[1], "-V") == 0 || strcmp(argv[1], "--version") == 0)
        return version_main(argc, argv);
    command = find(argv[1]);
    return command ? command->run(argc - 1, argv + 1) : unknown(argv[1]);
}
