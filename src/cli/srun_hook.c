// SPDX-License-Identifier: Apache-2.0
/*
 * srun_hook.c - programs that srun runs here before and after a step: --prolog, --epilog, or the site's
 *
 * They get the command's words as arguments and what is known of the step as variables. A prolog that fails
 * ends the step before it begins; an epilog that fails is said.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hostlist.h"
#include "cli/srun.h"
#include "sys/spawn.h"

static void put_number(const char *name, uint64_t value)
{
    char text[24];

    if (value == RLIM_INFINITY)
        snprintf(text, sizeof(text), "-1");
    else
        snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    setenv(name, text, 1);
}

/* In the child. */
static void put_env(const struct srun *srun, const char *context)
{
    const StepLayout *layout = srun->layout;
    struct hostlist hosts = { 0 };
    struct str nodes = { 0 };

    for (size_t i = 0; i < srun->task_nodes; i++) { /* components may share one */
        if (srun->part_count == 1 || hostlist_find(&hosts, srun->nodes[i].node->name) < 0)
            hostlist_push(&hosts, srun->nodes[i].node->name, NULL);
    }
    hostlist_format(&hosts, &nodes);
    setenv("SLURM_SCRIPT_CONTEXT", context, 1);
    setenv("SLURM_STEP_NODELIST", str_text(&nodes), 1);
    put_number("SLURM_JOB_ID", srun->job_id);
    put_number("SLURM_JOBID", srun->job_id);
    put_number("SLURM_STEP_ID", layout->id->step);
    put_number("SLURM_STEPID", layout->id->step);
    put_number("SLURM_STEP_NUM_NODES", hostlist_count(&hosts));
    put_number("SLURM_STEP_NUM_TASKS", srun->ntasks);
    put_number("SLURM_NTASKS", srun->ntasks);
    put_number("SLURM_NPROCS", srun->ntasks);
    for (size_t i = 0; i < srun->env.n_rlimits; i++) {
        char name[64];
        snprintf(name, sizeof(name), "SLURM_RLIMIT_%s", srun->env.rlimits[i]->name);
        put_number(name, srun->env.rlimits[i]->soft);
    }
}

static const char *hook_path(const struct srun *srun, bool epilog)
{
    const char *own = epilog ? srun->request.epilog : srun->request.prolog;
    const char *path = own ? own : epilog ? srun->created->srun_epilog : srun->created->srun_prolog;

    return str_is_empty(path) || str_ieq(path, "none") ? NULL : path;
}

int srun_hook(struct srun *srun, bool epilog)
{
    const char *path = srun->created ? hook_path(srun, epilog) : NULL;
    const char *what = epilog ? "epilog" : "prolog";
    int status = 0;

    if (!path || !srun->layout)
        return 0;
    char **argv = ARENA_ARRAY(&srun->cli.arena, char *, srun->argc + 2);
    argv[0] = arena_strdup(&srun->cli.arena, path);
    memcpy(argv + 1, srun->argv, (size_t)srun->argc * sizeof(*argv));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        for (int sig = 1; sig < 32; sig++)
            signal(sig, SIG_DFL);
        put_env(srun, epilog ? "epilog_srun" : "prolog_srun");
        execv(path, argv);
        fprintf(stderr, "srun: error: %s %s: %s\n", what, path, strerror(errno));
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (pid > 0 && status == 0)
        return 0;
    CLEANUP(str_done) struct str words = { 0 };
    if (pid > 0)
        spawn_describe(status, &words);
    cli_error(&srun->cli, "%s %s failed: %s", what, path,
              pid > 0 ? str_text(&words) : strerror(errno));
    return 1;
}
