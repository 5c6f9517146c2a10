/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - the multi-call binary: `spur NAME ...`, or a symlink called NAME
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/util.h"
#include "cli/commands.h"
#include "sys/files.h"

static int help_main(int argc, char **argv);
static int version_main(int argc, char **argv);

/* `name` is ours, `slurm` is Slurm's name for the same; either may be missing. */
static const struct command {
    const char *name, *slurm;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    { "submit", "sbatch", sbatch_main, "submit a batch script" },
    { "run", "srun", srun_main, "run a parallel program" },
    { "alloc", "salloc", salloc_main, "get an allocation and run a command in it" },
    { "attach", "sattach", sattach_main, "join a step that runs" },
    { "broadcast", "sbcast", sbcast_main, "copy a file to every node of a job" },
    { "gather", "sgather", sgather_main, "fetch a file from every node of a job" },
    { "exec", NULL, exec_main, "run a command or a shell inside a running job" },
    { "stat", "sstat", sstat_main, "show what running steps use" },
    { "queue", "squeue", squeue_main, "list jobs" },
    { "priority", "sprio", sprio_main, "show what priorities of waiting jobs are made of" },
    { "cancel", "scancel", scancel_main, "end or signal jobs" },
    { "explain", NULL, explain_main, "say what a job waits for, and until when" },
    { "logs", NULL, logs_main, "show the output of a job" },
    { "nodes", "sinfo", sinfo_main, "list partitions and nodes" },
    { "show", NULL, show_main, "show a job, node, partition or the configuration" },
    { NULL, "scontrol", scontrol_main, "show and change everything, in Slurm's words" },
    { "node", NULL, node_main, "drain, resume or show nodes" },
    { "controller", NULL, controller_main, "list, add and remove controllers; change who leads" },
    { "token", NULL, token_main, "make a token" },
    { "journal", NULL, journal_main, "show what became of jobs and steps" },
    { "config", NULL, config_main, "check, show or import a configuration" },
    { "image", NULL, image_main, "images that jobs run in: import, list, remove" },
    { "sim", NULL, sim_main, "try a policy on a trace of jobs, or a change on the present queue" },
    { "up", NULL, up_main, "start a private cluster on this machine" },
    { "down", NULL, down_main, "end it" },
    { "completion", NULL, completion_main, "completion for a shell" },
    { "man", NULL, man_main, "a manual page, for man -l" },
    { "version", NULL, version_main, "show the version" },
    { "help", NULL, help_main, "show this" },
};

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if ((commands[i].name && strcmp(commands[i].name, name) == 0) ||
            (commands[i].slurm && strcmp(commands[i].slurm, name) == 0))
            return &commands[i];
    }
    return NULL;
}

static int help_main(int argc, char **argv)
{
    puts("Usage: spur COMMAND [ARGUMENT...]\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        printf("  %-12s %-10s %s\n", commands[i].name ? commands[i].name : "",
               commands[i].slurm ? commands[i].slurm : "", commands[i].help);
    puts("\nThe second column is Slurm's name for the same; both take --help.");
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
        const char *other = commands[i].name ? commands[i].name : commands[i].slurm;
        unsigned d = str_distance(name, other);

        if (d < distance) {
            distance = d;
            best = other;
        }
    }
    fprintf(stderr, "spur: there is no command '%s'", name);
    if (best)
        fprintf(stderr, "; did you mean '%s'?", best);
    fputs(" ('spur help' lists them)\n", stderr);
    return 1;
}

/* Through `spur` a command of ours says its whole name in messages; one of Slurm's says its own. */
static int run_named(const struct command *command, int argc, char **argv)
{
    static char full[64];
    bool ours = command->name && strcmp(command->name, argv[0]) == 0;

    if (ours) {
        snprintf(full, sizeof(full), "spur %s", argv[0]);
        argv[0] = full;
    }
    return command->run(argc, argv);
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const struct command *command = find(slash ? slash + 1 : argv[0]);

    files_hold_standard();
    signal(SIGPIPE, SIG_IGN);
    if (command)
        return command->run(argc, argv);
    if (argc < 2 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)
        return help_main(argc, argv) + (argc < 2);
    if (strcmp(argv[1], "-V") == 0 || strcmp(argv[1], "--version") == 0)
        return version_main(argc, argv);
    command = find(argv[1]);
    return command ? run_named(command, argc - 1, argv + 1) : unknown(argv[1]);
}
