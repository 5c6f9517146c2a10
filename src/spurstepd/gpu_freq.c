/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_freq.c - --gpu-freq: the GPUs of a step run at its frequencies while it lives
 *
 * By the files that the kernel has for AMD's GPUs: a list of states for the GPU and one for its memory, and who
 * chooses among them. That is put back at the end.
 */
#include "spurstepd/gpu_freq.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "spurstepd/tasks_priv.h"
#include "sys/files.h"

enum { TEXT_BYTES = 1024, WORD_BYTES = 24, STATES_MAX = 64 };

#define LEVEL "power_dpm_force_performance_level"

/* One step in each process: what chose the states of its GPUs before. */
static char before[LIMIT_GRES_PER_NODE][WORD_BYTES];

static void make_path(const StepTask *task, size_t gpu, const char *name,
                      char path[LIMIT_PATH_BYTES])
{
    const char *dir = task->gpu_freq->dirs[gpu];
    bool below = task->sysroot && str_starts(dir, "/sys/");

    snprintf(path, LIMIT_PATH_BYTES, "%s%s/%s", below ? task->sysroot : "", dir, name);
}

static bool get(const StepTask *task, size_t gpu, const char *name, char *out, size_t size)
{
    char path[LIMIT_PATH_BYTES];

    make_path(task, gpu, name, path);
    CLEANUP(file_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, out, size - 1);
    out[len > 0 ? len : 0] = '\0';
    return len > 0;
}

static bool put(const StepTask *task, size_t gpu, const char *name, const char *text)
{
    char path[LIMIT_PATH_BYTES];

    make_path(task, gpu, name, path);
    CLEANUP(file_close) int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    return fd >= 0 && dprintf(fd, "%s\n", text) > 0;
}

struct state {
    unsigned number;
    unsigned long mhz;
};

static int by_mhz(const void *a, const void *b)
{
    const struct state *x = a, *y = b;

    return (x->mhz > y->mhz) - (x->mhz < y->mhz);
}

/* "0: 500Mhz", "1: 1700Mhz *": lowest first. */
static size_t list_states(const StepTask *task, size_t gpu, const char *name,
                          struct state out[STATES_MAX])
{
    char text[TEXT_BYTES];
    size_t count = 0;

    if (!get(task, gpu, name, text, sizeof(text)))
        return 0;
    for (char *line = text; line && *line && count < STATES_MAX; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (sscanf(line, "%u: %luM", &out[count].number, &out[count].mhz) == 2)
            count++;
    }
    qsort(out, count, sizeof(*out), by_mhz);
    return count;
}

/* The state that is meant by a word, or the nearest to a number; its megahertz, 0: it was not set. */
static unsigned long set_state(const StepTask *task, size_t gpu, const char *name, uint32_t asked)
{
    struct state list[STATES_MAX];
    size_t count = list_states(task, gpu, name, list), at = 0;
    char text[WORD_BYTES];

    if (count == 0)
        return 0;
    if (asked == STEP_FREQ_MEDIUM)
        at = (count - 1) / 2;
    else if (asked == STEP_FREQ_HIGHM1)
        at = count > 1 ? count - 2 : 0;
    else if (asked == STEP_FREQ_HIGH)
        at = count - 1;
    else if (asked > STEP_FREQ_HIGH) {
        for (size_t i = 1; i < count; i++) {
            if (labs((long)list[i].mhz - (long)asked) < labs((long)list[at].mhz - (long)asked))
                at = i;
        }
    }
    snprintf(text, sizeof(text), "%u", list[at].number);
    return put(task, gpu, name, text) ? list[at].mhz : 0;
}

static void note(struct containment *hold, const char *text)
{
    (hold->note ? hold->note : hold->say)(hold->owner, text);
}

static bool set_gpu(struct containment *hold, size_t gpu)
{
    const StepTask *task = hold->task;
    const StepGpuFreq *freq = task->gpu_freq;
    unsigned long core = 0, memory = 0;
    char text[128];

    if (gpu >= LIMIT_GRES_PER_NODE || !get(task, gpu, LEVEL, before[gpu], WORD_BYTES))
        return false;
    before[gpu][strcspn(before[gpu], "\n")] = '\0';
    if (!put(task, gpu, LEVEL, "manual")) {
        before[gpu][0] = '\0';
        return false;
    }
    if (freq->gpu)
        core = set_state(task, gpu, "pp_dpm_sclk", freq->gpu);
    if (freq->memory)
        memory = set_state(task, gpu, "pp_dpm_mclk", freq->memory);
    if (freq->verbose) {
        int len = snprintf(text, sizeof(text), "GpuFreq=");
        if (freq->memory)
            len += snprintf(text + len, sizeof(text) - (size_t)len, "memory_freq:%lu%s", memory,
                            freq->gpu ? "," : "");
        if (freq->gpu)
            snprintf(text + len, sizeof(text) - (size_t)len, "graphics_freq:%lu", core);
        note(hold, text);
    }
    return (!freq->gpu || core) && (!freq->memory || memory);
}

bool gpu_freq_wanted(const StepTask *task)
{
    return task->gpu_freq && task->gpu_freq->n_dirs > 0;
}

void gpu_freq_set(struct containment *hold)
{
    bool good = true;

    for (size_t i = 0; i < hold->task->gpu_freq->n_dirs; i++)
        good &= set_gpu(hold, i);
    if (!good)
        note(hold, "slurmstepd: error: GPU frequency setting not configured for this node");
}

void gpu_freq_reset(const StepTask *task)
{
    for (size_t i = 0; i < task->gpu_freq->n_dirs && i < LIMIT_GRES_PER_NODE; i++) {
        if (before[i][0])
            put(task, i, LEVEL, before[i]);
    }
}

int gpu_freq_begin(struct tasks *tasks, struct err *err)
{
    (void)err;
    gpu_freq_set(&tasks->hold);
    return 0;
}

void gpu_freq_end(struct tasks *tasks)
{
    gpu_freq_reset(tasks->task);
}
