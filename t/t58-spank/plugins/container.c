/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container.c - a plugin in the manner of those that start containers
 *
 * Eight callbacks and sixteen options. The step's callbacks prepare a root for the tasks, a directory here, as the user;
 * each task enters it (a mount namespace when it may, a variable and its directory in any case) and starts its program
 * through a word put before it.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/stat.h>

#include "record.h"

SPANK_PLUGIN(container, 1)

enum { OPTIONS = 16 };

static const char *const names[OPTIONS] = {
    "image",    "mounts",        "workdir",   "name",        "save",      "mount-home",
    "no-mount-home", "remap-root", "no-remap-root", "entrypoint", "no-entrypoint", "entrypoint-log",
    "writable", "readonly", "env", "umask",
};
static char *given[OPTIONS], option_names[OPTIONS][32], root[512];

static int hear(int val, const char *arg, int remote)
{
    (void)remote;
    if (val == 0 && (!arg || !*arg)) {
        slurm_error("container: --box-image needs a name");
        return -1;
    }
    given[val] = strdup(arg ? arg : "");
    return 0;
}

int slurm_spank_init(spank_t spank, int ac, char *av[])
{
    begin(spank, "init", ac, av);
    if (spank_context() == S_CTX_SLURMD)
        return 0;
    for (int i = 0; i < OPTIONS; i++) {
        bool takes = i < 5 || i == 14;
        snprintf(option_names[i], sizeof(option_names[i]), "box-%s", names[i]);
        struct spank_option option = { option_names[i], takes ? (char *)"VALUE" : NULL,
                                       (char *)"Of the box.", takes, i, hear };
        if (spank_option_register(spank, &option) != ESPANK_SUCCESS)
            return -1;
    }
    return 0;
}

int slurm_spank_init_post_opt(spank_t spank, int ac, char *av[])
{
    (void)spank, (void)ac, (void)av;
    if (given[1] && !given[0]) {
        slurm_error("container: --box-mounts without --box-image");
        return -1;
    }
    return 0;
}

int slurm_spank_user_init(spank_t spank, int ac, char *av[])
{
    char home[256] = "";
    uint32_t job = 0, step = 0;

    begin(spank, "user_init", ac, av);
    if (!given[0])
        return 0;
    spank_get_item(spank, S_JOB_ID, &job);
    spank_get_item(spank, S_JOB_STEPID, &step);
    if (spank_getenv(spank, "BOX_BASE", home, sizeof(home)) != ESPANK_SUCCESS)
        return -1;
    snprintf(root, sizeof(root), "%s/box.%u.%u", home, job, step);
    if (mkdir(root, 0700) < 0)
        return -1;
    note("user_init", "small %d", (int)spank_getenv(spank, "BOX_BASE", home, 2));
    note("user_init", "missing %d", (int)spank_getenv(spank, "BOX_NOT_THERE", home, 2));
    note("user_init", "kept %d", (int)spank_setenv(spank, "BOX_BASE", "x", 0));
    spank_setenv(spank, "BOX_IMAGE", given[0], 1);
    spank_unsetenv(spank, "BOX_SECRET");
    slurm_spank_log("box: importing %s", given[0]);
    return 0;
}

int slurm_spank_task_init(spank_t spank, int ac, char *av[])
{
    char number[16] = "";

    begin(spank, "task_init", ac, av);
    if (!given[0])
        return 0;
    spank_getenv(spank, "SLURM_PROCID", number, sizeof(number));
    spank_setenv(spank, "BOX_TASK", number, 1);
    spank_setenv(spank, "BOX_NAMESPACE", unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 ? "own" : "none",
                 1);
    return chdir(root);
}

int slurm_spank_task_exit(spank_t spank, int ac, char *av[])
{
    int status = 0;

    begin(spank, "task_exit", ac, av);
    spank_get_item(spank, S_TASK_EXIT_STATUS, &status);
    note("task_exit", "status %d", status);
    return 0;
}

int slurm_spank_exit(spank_t spank, int ac, char *av[])
{
    begin(spank, "exit", ac, av);
    if (*root)
        note("exit", "removed %d", rmdir(root));
    return 0;
}

int slurm_spank_job_epilog(spank_t spank, int ac, char *av[])
{
    begin(spank, "job_epilog", ac, av);
    return 0;
}

int slurm_spank_slurmd_exit(spank_t spank, int ac, char *av[])
{
    begin(spank, "slurmd_exit", ac, av);
    return 0;
}
