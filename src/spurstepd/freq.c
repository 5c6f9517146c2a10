/* SPDX-License-Identifier: Apache-2.0 */
/*
 * freq.c - --cpu-freq: the CPUs of a step run at its frequency while it lives
 *
 * (1) A file for each CPU, "JOB.STEP GOVERNOR MIN MAX SPEED", says whose request holds and how the CPU was before
 *     anybody asked. A step that finds one keeps what it says of before: the last step to go restores that, also
 *     when a supervisor was killed in between.
 * (2) Only who is named in the file restores and removes it. All of it happens under a lock of the directory.
 */
#include "spurstepd/freq.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bitset.h"
#include "base/limits.h"
#include "base/str.h"
#include "spurstepd/tasks_priv.h"
#include "sys/files.h"

enum { WORD_BYTES = 32, STEPS_MAX = 64, STEPS_MADE = 32, TEXT_BYTES = 1024, NAME_BYTES = 64 };

struct one {
    const StepTask *task;
    unsigned cpu;
    int error;         /* the first that happened, and on what */
    const char *where; /* NULL: nothing went wrong */
};
struct before {
    char governor[WORD_BYTES];
    uint64_t min, max, speed;
};

/* ---- the kernel's files ---- */

static void make_path(const struct one *one, const char *name, char path[LIMIT_PATH_BYTES])
{
    snprintf(path, LIMIT_PATH_BYTES, "%s/sys/devices/system/cpu/cpu%u/cpufreq/%s",
             one->task->sysroot ? one->task->sysroot : "", one->cpu, name);
}

static bool get(const struct one *one, const char *name, char *out, size_t size)
{
    char path[LIMIT_PATH_BYTES];

    make_path(one, name, path);
    CLEANUP(file_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, out, size - 1);
    out[len > 0 ? len : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return len > 0;
}

static uint64_t get_khz(const struct one *one, const char *name)
{
    char text[WORD_BYTES];

    return get(one, name, text, sizeof(text)) ? strtoull(text, NULL, 10) : 0;
}

static bool put(struct one *one, const char *name, const char *text)
{
    char path[LIMIT_PATH_BYTES];

    make_path(one, name, path);
    CLEANUP(file_close) int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (fd >= 0 && dprintf(fd, "%s\n", text) > 0)
        return true;
    if (!one->where) {
        one->error = errno;
        one->where = name;
    }
    return false;
}

static void put_khz(struct one *one, const char *name, uint64_t khz)
{
    char text[WORD_BYTES];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)khz);
    put(one, name, text);
}

/* At no moment is the lowest above the highest. */
static void put_limits(struct one *one, uint64_t min, uint64_t max)
{
    bool down = max < get_khz(one, "scaling_min_freq");

    if (down)
        put_khz(one, "scaling_min_freq", min);
    put_khz(one, "scaling_max_freq", max);
    if (!down)
        put_khz(one, "scaling_min_freq", min);
}

/* ---- frequencies ---- */

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Those there are, lowest first; where the kernel does not list them, some between lowest and highest. */
static size_t list_khz(const struct one *one, uint64_t out[STEPS_MAX])
{
    char text[TEXT_BYTES];
    size_t count = 0;

    if (get(one, "scaling_available_frequencies", text, sizeof(text))) {
        for (char *at = text, *end; count < STEPS_MAX; at = end) {
            uint64_t khz = strtoull(at, &end, 10);
            if (end == at)
                break;
            out[count++] = khz;
        }
        qsort(out, count, sizeof(*out), by_number);
    }
    uint64_t low = get_khz(one, "cpuinfo_min_freq"), high = get_khz(one, "cpuinfo_max_freq");
    while (count == 0 && low && high > low && count < STEPS_MADE) {
        for (; count < STEPS_MADE; count++)
            out[count] = low + (high - low) * count / (STEPS_MADE - 1);
    }
    return count;
}

/* The one that is meant by a number or a word; a number between two is the higher of them. */
static uint64_t khz_of(const struct one *one, uint32_t asked)
{
    uint64_t list[STEPS_MAX];
    size_t count = list_khz(one, list), at = 0;

    if (count == 0)
        return asked <= STEP_FREQ_HIGH ? 0 : asked;
    switch (asked) {
    case STEP_FREQ_LOW:
        return list[0];
    case STEP_FREQ_MEDIUM:
        return list[(count - 1) / 2];
    case STEP_FREQ_HIGHM1:
        return list[count > 1 ? count - 2 : 0];
    case STEP_FREQ_HIGH:
        return list[count - 1];
    default:
        while (at + 1 < count && list[at] < asked)
            at++;
        return list[at];
    }
}

/* ---- one CPU ---- */

/* The governor's name as the kernel writes it; false: it has none of that name. */
static bool find_governor(const struct one *one, const char *asked, char out[WORD_BYTES])
{
    char text[TEXT_BYTES];
    struct span word;

    if (!get(one, "scaling_available_governors", text, sizeof(text)))
        return false;
    for (const char *cursor = text; str_next(&cursor, " ", &word);) {
        if (word.len >= WORD_BYTES || !span_ieq(word, asked))
            continue;
        memcpy(out, word.ptr, word.len);
        out[word.len] = '\0';
        return true;
    }
    return false;
}

static void set_cpu(struct one *one)
{
    const StepFreq *freq = one->task->freq;
    uint64_t max = freq->max ? khz_of(one, freq->max) : 0;
    uint64_t min = freq->min ? khz_of(one, freq->min) : 0;
    char governor[WORD_BYTES];
    bool has = freq->governor && find_governor(one, freq->governor, governor);
    bool fixed = freq->max && !freq->min;

    if (fixed && max && !has)
        min = max; /* without that governor its limits hold it there */
    else if (freq->governor && !has && !one->where) {
        one->error = EINVAL;
        one->where = "scaling_governor";
    }
    if (min && max)
        put_limits(one, min, max);
    if (!has || !put(one, "scaling_governor", governor) || strcasecmp(governor, "userspace") != 0)
        return;
    uint64_t now = get_khz(one, "scaling_cur_freq");
    if (max)
        put_khz(one, "scaling_setspeed", fixed || now > max ? max : now < min ? min : now);
}

static void reset_cpu(struct one *one, const struct before *before)
{
    put(one, "scaling_governor", before->governor);
    if (before->min && before->max)
        put_limits(one, before->min, before->max);
    if (strcasecmp(before->governor, "userspace") == 0 && before->speed)
        put_khz(one, "scaling_setspeed", before->speed);
}

/* ---- (1) ---- */

static void own_name(const StepTask *task, char out[NAME_BYTES])
{
    snprintf(out, NAME_BYTES, "%u.%u.%.20s", task->id->job_id, task->id->attempt, task->name);
}

/* True when the file is there and makes sense. */
static bool read_file(int dir, const struct one *one, char owner[NAME_BYTES], struct before *out)
{
    unsigned long long min, max, speed;
    char name[16], text[TEXT_BYTES];

    snprintf(name, sizeof(name), "%u", one->cpu);
    CLEANUP(file_close) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    text[len > 0 ? len : 0] = '\0';
    if (sscanf(text, "%63s %31s %llu %llu %llu", owner, out->governor, &min, &max, &speed) != 5)
        return false;
    out->min = min;
    out->max = max;
    out->speed = speed;
    return true;
}

static void write_file(int dir, const struct one *one, const struct before *before)
{
    char name[16], owner[NAME_BYTES];

    snprintf(name, sizeof(name), "%u", one->cpu);
    own_name(one->task, owner);
    CLEANUP(file_close)
    int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd >= 0)
        dprintf(fd, "%s %s %llu %llu %llu\n", owner, before->governor,
                (unsigned long long)before->min, (unsigned long long)before->max,
                (unsigned long long)before->speed);
}

static int lock_dir(const StepFreq *freq)
{
    if (str_is_empty(freq->dir))
        return -1;
    mkdir(freq->dir, 0700);
    int fd = open(freq->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0)
        flock(fd, LOCK_EX);
    return fd;
}

/* ---- all CPUs ---- */

bool freq_wanted(const StepTask *task)
{
    return task->freq != NULL;
}

static void complain(struct containment *hold, const struct one *one)
{
    char text[256];

    if (hold->task->freq->by_default)
        return;
    if (one->where)
        snprintf(text, sizeof(text), "slurmstepd: error: cpu_freq: Can not set %s of CPU %u: %s",
                 one->where, one->cpu, strerrordesc_np(one->error));
    else
        snprintf(text, sizeof(text),
                 "slurmstepd: error: CPU frequency setting not configured for this node");
    (hold->note ? hold->note : hold->say)(hold->owner, text);
}

void freq_set(struct containment *hold)
{
    const StepTask *task = hold->task;
    struct bitset cpus;
    bool any = false, said = false;

    CLEANUP(file_close) int dir = lock_dir(task->freq);
    bitset_init(&cpus, LIMIT_CPU_NUMBER);
    if (!str_is_empty(task->freq->cpus))
        bitset_parse(&cpus, task->freq->cpus);
    bitset_each (cpu, &cpus) {
        struct one one = { .task = task, .cpu = (unsigned)cpu };
        struct before before = { 0 };
        char owner[NAME_BYTES];
        if (dir < 0 || !get(&one, "scaling_governor", before.governor, WORD_BYTES))
            continue;
        any = true;
        if (!read_file(dir, &one, owner, &before)) {
            before.min = get_khz(&one, "scaling_min_freq");
            before.max = get_khz(&one, "scaling_max_freq");
            before.speed = get_khz(&one, "scaling_setspeed");
        }
        write_file(dir, &one, &before);
        set_cpu(&one);
        if (one.where && !said)
            complain(hold, &one);
        said |= one.where != NULL;
    }
    if (!any)
        complain(hold, &(struct one){ 0 });
    bitset_done(&cpus);
}

void freq_reset(const StepTask *task) /* (2) */
{
    struct bitset cpus;
    char own[NAME_BYTES];

    CLEANUP(file_close) int dir = lock_dir(task->freq);
    own_name(task, own);
    bitset_init(&cpus, LIMIT_CPU_NUMBER);
    if (dir >= 0 && !str_is_empty(task->freq->cpus))
        bitset_parse(&cpus, task->freq->cpus);
    bitset_each (cpu, &cpus) {
        struct one one = { .task = task, .cpu = (unsigned)cpu };
        struct before before;
        char owner[NAME_BYTES], name[16];
        if (!read_file(dir, &one, owner, &before) || strcmp(owner, own) != 0)
            continue;
        reset_cpu(&one, &before);
        snprintf(name, sizeof(name), "%u", one.cpu);
        unlinkat(dir, name, 0);
    }
    bitset_done(&cpus);
}

int freq_begin(struct tasks *tasks, struct err *err)
{
    (void)err;
    freq_set(&tasks->hold);
    return 0;
}

void freq_end(struct tasks *tasks)
{
    freq_reset(tasks->task);
}
