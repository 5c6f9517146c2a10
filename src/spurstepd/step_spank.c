/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_spank.c - where SPANK plugins join in a step
 */
#include "spurstepd/step_spank.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "spurstepd/tasks_priv.h"
#include "sys/files.h"

const struct step_spank *step_spank;

/* The whole task in a file without a name. */
static int pack(const StepTask *task)
{
    size_t len = step_task__get_packed_size(task);
    CLEANUP(freep) uint8_t *bytes = mem_try(len + 1);
    int fd = bytes ? memfd_create("step", 0) : -1;

    if (fd < 0)
        return -1;
    step_task__pack(task, bytes);
    if (file_write_all(fd, bytes, len, NULL) < 0 || lseek(fd, 0, SEEK_SET) < 0)
        file_close(&fd);
    return fd;
}

int step_spank_become(const StepTask *task, int dir_fd, int chan_fd)
{
    char numbers[3][16], title[80];
    char *argv[] = {
        (char *)"spurstepd-spank", (char *)"--step", numbers[0], numbers[1], numbers[2], title, NULL
    };
    extern char **environ;
    int fd = pack(task);

    if (fd < 0)
        return errno ? errno : ENOMEM;
    snprintf(numbers[0], sizeof(numbers[0]), "%d", dir_fd);
    snprintf(numbers[1], sizeof(numbers[1]), "%d", chan_fd);
    snprintf(numbers[2], sizeof(numbers[2]), "%d", fd);
    snprintf(title, sizeof(title), "[%u.%s]", task->id->job_id, task->name);
    /* The lock is of the open directory, so it lives on. */
    if (fcntl(dir_fd, F_SETFD, 0) < 0 || fcntl(chan_fd, F_SETFD, 0) < 0)
        return errno;
    execve(task->spank->program, argv, environ);
    return errno;
}

void step_split_env(StepTask *task)
{
    char *block = (char *)task->env_block.data, *end = block + task->env_block.len;
    size_t count = 0;

    if (task->env_block.len == 0 || end[-1] != '\0')
        return;
    for (char *at = block; at < end; at += strlen(at) + 1)
        count++;
    for (size_t i = 0; i < task->n_env; i++)
        free(task->env[i]);
    free(task->env);
    task->env = NEW_ARRAY(char *, count);
    task->n_env = 0;
    for (char *at = block; at < end; at += strlen(at) + 1)
        task->env[task->n_env++] = at;
}

/* ---- a row of step_plugins.c ---- */

bool step_spank_wanted(const StepTask *task)
{
    (void)task;
    return step_spank != NULL;
}

int step_spank_begin(struct tasks *tasks, struct err *err)
{
    return step_spank->begin(tasks->task, tasks->hold.note, tasks, err);
}

void step_spank_exited(struct tasks *tasks, size_t index)
{
    step_spank->exited(index, tasks->list[index].status);
}

void step_spank_end(struct tasks *tasks)
{
    (void)tasks;
    step_spank->end();
}
