/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem_sort.c - --mem-bind=sort: free pages of NUMA nodes are sorted before the tasks start
 *
 * Kernels of processors with memory used as a cache have a file for it; where it is not, there is nothing to
 * sort.
 */
#include "spurstepd/mem_sort.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/limits.h"
#include "spurstepd/tasks_priv.h"
#include "sys/files.h"

#define SORT_FILE "/sys/kernel/zone_sort_free_pages/nodeid"

bool mem_sort_wanted(const StepTask *task)
{
    return task->tasks->n_sort_nodes > 0;
}

int mem_sort_begin(struct tasks *tasks, struct err *err)
{
    const StepTask *task = tasks->task;
    char path[LIMIT_PATH_BYTES], text[16];

    (void)err;
    snprintf(path, sizeof(path), "%s" SORT_FILE, task->sysroot ? task->sysroot : "");
    for (size_t i = 0; i < task->tasks->n_sort_nodes; i++) {
        CLEANUP(file_close) int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
            return 0;
        int len = snprintf(text, sizeof(text), "%u\n", task->tasks->sort_nodes[i]);
        if (write(fd, text, (size_t)len) != len)
            return 0;
    }
    return 0;
}
