/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spank_main.c - spurstepd-spank: what runs SPANK plugins on a node
 *
 * A supervisor becomes it before a step begins on a node that has plugins (step_spank.c). spurd runs it for callbacks that
 * are of no step: with --slurmd as long as spurd runs, with --prolog and --epilog beside the programs of the site. A plugin
 * that crashes ends this process, and with it the step or the call.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "spank/host.h"
#include "spurstepd/prolog.h"
#include "spurstepd/spank_step.h"
#include "spurstepd/step.h"
#include "spurstepd/step_spank.h"
#include "spurstepd/tasks.h"
#include "sys/files.h"

static int usage(FILE *to, int status)
{
    fputs("usage: spurstepd-spank --step DIRECTORY-FD CHANNEL-FD TASK-FD [TITLE]\n"
          "       spurstepd-spank --slurmd | --prolog | --epilog PLUGSTACK DIRECTORIES\n"
          "       spurstepd-spank --version | --help\n"
          "Runs SPANK plugins on a node; spurd and spurstepd start it.\n",
          to);
    return status;
}

/* ---- a step ---- */

static bool read_fd(const char *text, int *fd)
{
    int64_t number;

    if (!str_to_i64(text, 3, INT32_MAX, &number) || fcntl((int)number, F_SETFD, FD_CLOEXEC) < 0)
        return false;
    *fd = (int)number;
    return true;
}

static int run_step(char **words)
{
    struct str text = { 0 };
    int dir_fd, chan_fd, task_fd;
    bool clean;

    if (!read_fd(words[0], &dir_fd) || !read_fd(words[1], &chan_fd) ||
        !read_fd(words[2], &task_fd) || file_read_fd(task_fd, LIMIT_MESSAGE_BYTES, &text, NULL) < 0)
        return usage(stderr, 2);
    close(task_fd);
    StepTask *task = step_task__unpack(NULL, text.len, (const uint8_t *)str_text(&text));
    str_done(&text);
    if (!task || !task->spank)
        return usage(stderr, 2);
    step_split_env(task);
    spank_step_use();
    return task->tasks ? tasks_run(task, dir_fd, chan_fd) : step_run(task, dir_fd, chan_fd, &clean);
}

/* ---- no step ---- */

static int fail(const struct err *err)
{
    fprintf(stderr, "spurstepd-spank: error: %s\n", err->text);
    return 1;
}

/* The helper of a spurd: ends when spurd closes our standard input, or dies. */
static int run_slurmd(const struct plugstack_place *place)
{
    struct err err = { 0 };
    char byte;
    struct spank_host *host = spank_host_open(SPANK_SLURMD, place, NULL, NULL, NULL, &err);

    if (!host || spank_host_call(host, SPANK_SLURMD_INIT, -1, &err) < 0)
        return fail(&err);
    while (read(STDIN_FILENO, &byte, 1) > 0 || errno == EINTR)
        errno = 0;
    int ret = spank_host_call(host, SPANK_SLURMD_EXIT, -1, &err);
    spank_host_close(host);
    return ret < 0 ? fail(&err) : 0;
}

static uint32_t env_number(const char *name)
{
    const char *text = getenv(name);
    uint64_t number;

    return text && str_to_u64(text, UINT32_MAX, &number) ? (uint32_t)number : 0;
}

static int run_job_script(const struct plugstack_place *place, enum spank_call call)
{
    struct err err = { 0 };
    struct spank_job job = { .uid = env_number("SLURM_JOB_UID"),
                             .gid = env_number("SLURM_JOB_GID"),
                             .job_id = env_number("SLURM_JOB_ID") };
    struct spank_host *host = spank_host_open(SPANK_JOB_SCRIPT, place, NULL, &job, NULL, &err);

    if (!host)
        return fail(&err);
    int ret = spank_host_call(host, call, -1, &err);
    spank_host_close(host);
    return ret < 0 ? fail(&err) : 0;
}

int main(int argc, char **argv)
{
    struct plugstack_place place = { 0 };

    if (argc > 1 && str_eq(argv[1], "--task"))
        return prolog_main(argc - 2, argv + 2);
    if (argc >= 5 && str_eq(argv[1], "--step"))
        return run_step(argv + 2);
    if (argc == 2 && (str_eq(argv[1], "--help") || str_eq(argv[1], "-h")))
        return usage(stdout, 0);
    if (argc == 2 && (str_eq(argv[1], "--version") || str_eq(argv[1], "-V")))
        return printf("spur %s\n", SPUR_VERSION) < 0;
    if (argc != 4)
        return usage(stderr, 2);
    place.file = argv[2];
    place.dirs = argv[3];
    if (str_eq(argv[1], "--slurmd"))
        return run_slurmd(&place);
    if (str_eq(argv[1], "--prolog"))
        return run_job_script(&place, SPANK_JOB_PROLOG);
    if (str_eq(argv[1], "--epilog"))
        return run_job_script(&place, SPANK_JOB_EPILOG);
    return usage(stderr, 2);
}
