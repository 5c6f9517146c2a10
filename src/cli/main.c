/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - the multi-call binary: `spur NAME ...`, or a symlink called NAME
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "base/util.h"
#include "cli/commands.h"
#include "sys/files.h"

static int help_main(int argc, char **argv);
static int version_main(int argc, char **argv);

/* What people come for; `spur` lists its commands by these. */
enum task {
    TASK_OTHER, /* a row that says nothing else */
    TASK_SUBMIT,
    TASK_JOBS,
    TASK_CLUSTER,
    TASK_ADMIN,
    TASK_LOCAL,
    TASK_COUNT,
};

static const char *const task_titles[TASK_COUNT] = {
    [TASK_SUBMIT] = "Run something",    [TASK_JOBS] = "See and change jobs",
    [TASK_CLUSTER] = "See the cluster", [TASK_ADMIN] = "Run the cluster",
    [TASK_LOCAL] = "Try it out",        [TASK_OTHER] = "Other",
};

/* `name` is ours, `slurm` is Slurm's name for the same; either may be missing. */
static const struct command {
    const char *name, *slurm;
    int (*run)(int argc, char **argv);
    const char *help; /* NULL: not listed */
    enum task task;
} commands[] = {
    { "submit", "sbatch", sbatch_main, "submit a batch script", TASK_SUBMIT },
    { "run", "srun", srun_main, "run a parallel program", TASK_SUBMIT },
    { "alloc", "salloc", salloc_main, "get an allocation and run a command in it", TASK_SUBMIT },
    { "exec", NULL, exec_main, "run a command or a shell inside a running job", TASK_SUBMIT },
    { "broadcast", "sbcast", sbcast_main, "copy a file to every node of a job", TASK_SUBMIT },
    { "gather", "sgather", sgather_main, "fetch a file from every node of a job", TASK_SUBMIT },
    { "image", NULL, image_main, "import, list and remove the images that jobs run in",
      TASK_SUBMIT },
    { "queue", "squeue", squeue_main, "list jobs", TASK_JOBS },
    { "explain", NULL, explain_main, "say what a job waits for, and until when", TASK_JOBS },
    { "logs", NULL, logs_main, "show the output of a job", TASK_JOBS },
    { "wait", NULL, wait_main, "wait until jobs have ended, and end as they did", TASK_JOBS },
    { "cancel", "scancel", scancel_main, "end or signal jobs", TASK_JOBS },
    { "attach", "sattach", sattach_main, "join a running step", TASK_JOBS },
    { "stat", "sstat", sstat_main, "show what running steps use", TASK_JOBS },
    { "history", NULL, history_main, "list the jobs of the last days", TASK_JOBS },
    { "report", NULL, report_main, "write a page with plots of use and waiting times",
      TASK_CLUSTER },
    { "usage", NULL, usage_main, "show what I and my accounts used, and what is left of limits",
      TASK_JOBS },
    { "seff", "seff", seff_main, "show what a job used of what it had", TASK_JOBS },
    { NULL, "sacct", sacct_main, "show the history of jobs and steps", TASK_JOBS },
    { "priority", "sprio", sprio_main, "show what the priority of a waiting job consists of",
      TASK_JOBS },
    { "journal", NULL, journal_main, "show what became of jobs and steps", TASK_JOBS },
    { "nodes", "sinfo", sinfo_main, "list partitions and nodes", TASK_CLUSTER },
    { "show", NULL, show_main, "show a job, node, partition or the configuration", TASK_CLUSTER },
    { "trigger", "strigger", strigger_main, "run a program when something happens", TASK_CLUSTER },
    { "cron", "scrontab", scrontab_main, "run jobs at their times, again and again", TASK_CLUSTER },
    { "diag", "sdiag", sdiag_main, "show what the controller has been doing", TASK_CLUSTER },
    { "web", NULL, web_main, "print a link that opens the web page and logs in", TASK_CLUSTER },
    { "sim", NULL, sim_main, "try a policy on a trace, or a change on the present queue",
      TASK_CLUSTER },
    { NULL, "scontrol", scontrol_main, "show and change everything, in Slurm's words", TASK_ADMIN },
    { NULL, "sshare", sshare_main, "show shares and usage of accounts and users", TASK_CLUSTER },
    { NULL, "sreport", sreport_main, "report what clusters, accounts and users used",
      TASK_CLUSTER },
    { NULL, "sacctmgr", sacctmgr_main, "show and change accounts, users and QOS", TASK_ADMIN },
    { "accounting", NULL, spur_accounting_main, "give accounts to the database; sum up use again",
      TASK_ADMIN },
    { "node", NULL, node_main, "drain, resume or show nodes", TASK_ADMIN },
    { "controller", NULL, controller_main, "list, add and remove controllers; change the leader",
      TASK_ADMIN },
    { "config", NULL, config_main, "check, show or import a configuration", TASK_ADMIN },
    { "token", NULL, token_main, "make a token", TASK_ADMIN },
    { "up", NULL, up_main, "start a private cluster on this machine", TASK_LOCAL },
    { "down", NULL, down_main, "end it", TASK_LOCAL },
    /* Of PBS and LSF: `slurm` is their name. */
    { NULL, "qsub", qsub_main, NULL, TASK_OTHER },
    { NULL, "qstat", qstat_main, NULL, TASK_OTHER },
    { NULL, "qdel", qdel_main, NULL, TASK_OTHER },
    { NULL, "qhold", qhold_main, NULL, TASK_OTHER },
    { NULL, "qrls", qrls_main, NULL, TASK_OTHER },
    { NULL, "pbsnodes", pbsnodes_main, NULL, TASK_OTHER },
    { NULL, "bsub", bsub_main, NULL, TASK_OTHER },
    { NULL, "bjobs", bjobs_main, NULL, TASK_OTHER },
    { NULL, "bkill", bkill_main, NULL, TASK_OTHER },
    { "complete", NULL, complete_main, NULL, TASK_OTHER },
    { "completion", NULL, completion_main, "print the completion script of a shell", TASK_OTHER },
    { "man", NULL, man_main, "print a manual page, for man -l", TASK_OTHER },
    { "version", NULL, version_main, "show the version", TASK_OTHER },
    { "help", NULL, help_main, "list the commands, or help with one: spur help submit",
      TASK_OTHER },
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

void commands_add_names(struct str *out)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (commands[i].help)
            str_addf(out, "%s\n", commands[i].name ? commands[i].name : commands[i].slurm);
    }
}

void commands_add_slurm_names(struct str *out)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (commands[i].slurm)
            str_addf(out, "%s\n", commands[i].slurm);
    }
}

const char *command_slurm_name(const char *name)
{
    const struct command *command = find(name);

    return command ? command->slurm : NULL;
}

static void nearest(const char *name, const char *other, unsigned *distance, const char **best)
{
    unsigned d = other ? str_distance(name, other) : UINT_MAX;

    if (other && str_starts(other, name))
        d = 0;
    if (d < *distance) {
        *distance = d;
        *best = other;
    }
}

static int unknown(const char *name)
{
    const char *best = NULL;
    unsigned distance = 3;

    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        nearest(name, commands[i].name, &distance, &best);
        nearest(name, commands[i].slurm, &distance, &best);
    }
    fprintf(stderr, "spur: error: '%s' is not a command", name);
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

static void list_task(enum task task)
{
    printf("\n%s\n", task_titles[task]);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        const struct command *command = &commands[i];

        if (command->task == task && command->help)
            printf("  %-12s %-10s %s\n", command->name ? command->name : "",
                   command->slurm ? command->slurm : "", command->help);
    }
}

static void list_commands(void)
{
    puts("Usage: spur COMMAND [ARGUMENT...]");
    for (int task = TASK_OTHER + 1; task < TASK_COUNT; task++)
        list_task(task);
    list_task(TASK_OTHER);
    puts(
        "\nThe second column is Slurm's name for the same command. `spur help COMMAND` shows its options;\n"
        "a program called spur-NAME on the PATH is `spur NAME`.");
}

/* `spur help X` is `spur X --help`: each command prints its own. */
static int help_main(int argc, char **argv)
{
    const struct command *command;

    if (argc < 2) {
        list_commands();
        return 0;
    }
    command = find(argv[1]);
    if (!command)
        return unknown(argv[1]);
    if (command->run == help_main || command->run == version_main) {
        printf("Usage: spur %s%s\n\n%s\n", command->name,
               command->run == help_main ? " [COMMAND]" : "", command->help);
        return 0;
    }
    return run_named(command, 2, (char *[]){ argv[1], (char[]){ "--help" }, NULL });
}

static int version_main(int argc, char **argv)
{
    puts("spur " SPUR_VERSION);
    return 0;
}

/* A site adds a command by putting spur-NAME on the PATH, as with git. */
static int run_extension(char **argv)
{
    char program[NAME_MAX + 1];
    int len = snprintf(program, sizeof(program), "spur-%s", argv[0]);

    if (argv[0][0] != '-' && !strchr(argv[0], '/') && len < (int)sizeof(program)) {
        signal(SIGPIPE, SIG_DFL);
        execvp(program, argv);
        if (errno != ENOENT) {
            fprintf(stderr, "spur: error: cannot run %s: %s\n", program, strerror(errno));
            return 126;
        }
    }
    return unknown(argv[0]);
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
    return command ? run_named(command, argc - 1, argv + 1) : run_extension(argv + 1);
}
