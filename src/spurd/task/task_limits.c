/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_limits.c - what a job may use of this node: time, memory, CPUs, devices
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/bitset.h"
#include "base/limits.h"
#include "spurd/task/task.h"
#include "sys/clock.h"
#include "sys/files.h"

enum {
    MB = 1024 * 1024,
    CPU_WEIGHT_MAX = 10000,
    SAMPLE_DEFAULT_S = 30,
    SAMPLE_MAX_S = 24 * 3600,
    PROCESSES_AGAIN_US = 10 * 1000000, /* what the kernel can have is read again after that */
};

/* Where the configuration overrides what was found, CPU numbers mean nothing here. */
static void limit_cpus(const struct task_node *node, const Grant *grant, struct arena *arena,
                       StepTask *out)
{
    CLEANUP(str_done) struct str cpus = { 0 };

    if (!grant->alloc || str_is_empty(grant->alloc->cpu_ids) || !node->inventory ||
        (node->config && (node->config->config_overrides ||
                          (node->config->has_constrain_cores && !node->config->constrain_cores))))
        return;
    if (inventory_map_cpus(node->inventory, grant->alloc->cpu_ids, &cpus))
        out->cpuset = arena_strdup(arena, str_text(&cpus));
}

static void limit_time(const struct task_node *node, const Grant *grant, StepTask *out)
{
    const JobSpec *spec = task_spec(grant);
    const Config *config = node->config;

    out->has_time_limit_s = true;
    out->time_limit_s = task_time_limit_s(grant, config);
    if (spec->signal && spec->signal_batch_only) { /* without B: the signal is for steps */
        out->has_warn_signal = out->has_warn_before_s = true;
        out->warn_signal = spec->signal;
        out->warn_before_s = spec->has_signal_before_s ? spec->signal_before_s : 60;
    }
    out->has_kill_wait_s = out->has_unkillable_s = true;
    out->kill_wait_s = config && config->has_kill_wait_s ? config->kill_wait_s : TASK_KILL_WAIT_S;
    out->unkillable_s = config ? config->unkillable_timeout_s : 0;
}

/* `percent` of `mb`, but no more than `most_percent` of the node's memory. */
static uint64_t share_mb(uint64_t mb, uint32_t percent, uint32_t most_percent, uint64_t node_mb)
{
    uint64_t most = node_mb / 100 * most_percent + node_mb % 100 * most_percent / 100;
    uint64_t share = mb / 100 * percent + mb % 100 * percent / 100;

    return node_mb && share > most ? most : share;
}

static void limit_memory(const struct task_node *node, const Grant *grant, StepTask *out)
{
    const Config *config = node->config;
    uint64_t node_mb = node->spec ? node->spec->memory_mb : 0;
    uint64_t mb = grant->alloc ? grant->alloc->mem_mb : 0;

    if (mb == 0 || (config && config->has_constrain_ram && !config->constrain_ram))
        return;
    uint32_t ram = config && config->has_allowed_ram_percent ? config->allowed_ram_percent : 100;
    uint32_t most = config && config->has_max_ram_percent ? config->max_ram_percent : 100;
    uint64_t limit_mb = share_mb(mb, ram, most, node_mb);
    if (config && config->has_min_ram_mb && limit_mb < config->min_ram_mb)
        limit_mb = config->min_ram_mb;
    out->has_mem_bytes = true;
    out->mem_bytes = limit_mb * MB;
    /* Between what it was given and its limit it goes on, but slowly. */
    out->has_mem_high_bytes = limit_mb > mb && ram > 100;
    out->mem_high_bytes = out->has_mem_high_bytes ? mb * MB : 0;
    if (!config || !config->constrain_swap)
        return;
    most = config->has_max_swap_percent ? config->max_swap_percent : 100;
    out->has_swap_bytes = true;
    out->swap_bytes = share_mb(mb, config->allowed_swap_percent, most, node_mb) * MB;
}

/* Half of what the kernel can have: a job that forks without end leaves room for everybody else. */
static uint64_t default_processes(void)
{
    static const char *const files[] = { "/proc/sys/kernel/threads-max",
                                         "/proc/sys/kernel/pid_max" };
    static int64_t read_us;
    static uint64_t most;

    if (read_us && clock_mono_us() - read_us < PROCESSES_AGAIN_US)
        return most / 2;
    read_us = clock_mono_us();
    most = 0;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        CLEANUP(str_done) struct str text = { 0 };
        uint64_t value = 0;
        if (file_read(files[i], 64, &text, NULL) == 0)
            value = strtoull(str_text(&text), NULL, 10);
        if (value && (!most || value < most))
            most = value;
    }
    return most / 2;
}

static void limit_processes(const struct task_node *node, StepTask *out)
{
    int64_t most = node->config && node->config->has_max_processes ? node->config->max_processes
                                                                   : (int64_t)default_processes();

    out->has_max_processes = most > 0;
    out->max_processes = out->has_max_processes ? (uint64_t)most : 0;
}

/* Where CPUs are shared, a job's part follows from how many it was given. */
static void limit_weight(const Grant *grant, StepTask *out)
{
    if (!str_is_empty(out->cpuset) || !grant->alloc || !grant->alloc->cpus)
        return;
    out->has_cpu_weight = true;
    out->cpu_weight = MIN(grant->alloc->cpus * 10, CPU_WEIGHT_MAX);
}

/* The numbers of a block device, for the kernel; false: this node has none of that name. */
static bool add_disk(const char *path, size_t len, struct str *out)
{
    CLEANUP(freep) char *file = mem_strndup(path, len);
    struct stat info;

    if (stat(file, &info) < 0 || !S_ISBLK(info.st_mode))
        return false;
    str_addf(out, "%u:%u", major(info.st_rdev), minor(info.st_rdev));
    return true;
}

/* "/dev/sda rbps=1M" as "8:0 rbps=1048576". */
static char *io_line(const char *text, struct arena *arena)
{
    CLEANUP(str_done) struct str line = { 0 };
    const char *cursor = text;
    struct span word;

    if (!str_next(&cursor, " ", &word) || !add_disk(word.ptr, word.len, &line))
        return NULL;
    while (str_next(&cursor, " ", &word)) {
        const char *equals = memchr(word.ptr, '=', word.len);
        char *end = NULL;
        if (!equals)
            return NULL;
        unsigned long long value = strtoull(equals + 1, &end, 10);
        static const char units[] = "KMGT";
        const char *unit = *end && end < word.ptr + word.len ? strchr(units, *end) : NULL;
        if (unit)
            value <<= 10 * (unit - units + 1);
        str_addf(&line, " %.*s=%llu", (int)(equals - word.ptr), word.ptr, value);
    }
    return arena_strdup(arena, str_text(&line));
}

static void limit_disks(const struct task_node *node, const Grant *grant, struct arena *arena,
                        StepTask *out)
{
    const Config *config = node->config;

    if (!config)
        return;
    out->io_max = ARENA_ARRAY(arena, char *, config->n_io_max + 1);
    for (size_t i = 0; i < config->n_io_max; i++) {
        char *line = io_line(config->io_max[i], arena);
        if (line)
            out->io_max[out->n_io_max++] = line;
    }
    uint32_t cpus = grant->alloc ? grant->alloc->cpus : 0;
    out->has_io_weight = config->io_weight && cpus;
    out->io_weight = MIN(cpus * 10, CPU_WEIGHT_MAX);
    out->has_cpu_quota = config->cpu_quota && cpus;
    out->cpu_quota = out->has_cpu_quota ? cpus : 0;
}

/* "30", "task=30,energy=60": seconds between samples of tasks; negative: not said. */
static int64_t sample_seconds(const char *text)
{
    for (const char *word = text; word && *word; word = strchr(word, ',')) {
        word += *word == ',';
        if (strncasecmp(word, "task=", 5) == 0)
            word += 5;
        if (*word >= '0' && *word <= '9')
            return MIN(strtoll(word, NULL, 10), SAMPLE_MAX_S);
    }
    return -1;
}

void task_sample(const char *text, StepTask *out)
{
    int64_t every_s = sample_seconds(text);

    if (every_s < 0)
        return;
    out->has_sample_s = true;
    out->sample_s = (uint32_t)every_s;
}

static void sample_usage(const struct task_node *node, const Grant *grant, StepTask *out)
{
    int64_t every_s = sample_seconds(task_spec(grant)->acctg_freq);

    if (every_s < 0 && node->config)
        every_s = sample_seconds(node->config->sample_interval);
    out->has_sample_s = true;
    out->sample_s = every_s < 0 ? SAMPLE_DEFAULT_S : (uint32_t)every_s;
    out->has_sample_memory = true;
    out->sample_memory = out->has_mem_bytes && !node->has_memory;
    out->sysroot = (char *)node->sysroot;
}

/* The devices of kind `gres` that the job has, as a set of indexes. */
static void devices_of_job(const Grant *grant, const GresInventory *gres, struct bitset *out)
{
    for (size_t i = 0; grant->alloc && i < grant->alloc->n_gres; i++) {
        const GresAlloc *own = grant->alloc->gres[i];
        struct bitset part;
        /* The index of a share is that of its GPU. */
        bool share = str_eq(gres->name, "gpu") &&
                     (str_eq(own->name, "shard") || str_eq(own->name, "mps")) &&
                     (str_is_empty(own->type) || str_eq(own->type, gres->type));
        bool same = str_eq(own->name, gres->name) && str_eq(own->type, gres->type);
        if ((!same && !share) || str_is_empty(own->index))
            continue;
        bitset_init(&part, LIMIT_GRES_PER_NODE);
        if (bitset_parse(&part, own->index))
            bitset_or(out, &part);
        bitset_done(&part);
    }
}

static bool add_denied(StepTask *out, const char *file, struct arena *arena)
{
    struct stat info;

    if (stat(file, &info) < 0 || !(S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)))
        return false;
    StepDevice *device = ARENA_NEW(arena, StepDevice);
    step_device__init(device);
    device->has_block = device->has_major = device->has_minor = true;
    device->block = S_ISBLK(info.st_mode);
    device->major = major(info.st_rdev);
    device->minor = minor(info.st_rdev);
    out->denied[out->n_denied++] = device;
    return true;
}

static bool is_nvidia(const char *file)
{
    return str_starts(file, "/dev/nvidia");
}

/* Where the kernel's driver says how busy it is, or spurd-nvml does. */
static void add_gpu(const struct task_node *node, const char *file, struct arena *arena,
                    StepTask *out)
{
    const char *name = strrchr(file, '/');

    if (name && (str_starts(name, "/renderD") || str_starts(name, "/card")))
        out->gpus[out->n_gpus++] = arena_printf(arena, "/sys/class/drm%s/device", name);
    else if (name && is_nvidia(file))
        out->gpus[out->n_gpus++] = arena_printf(arena, "%s/gpus%s", node->run_dir, name);
}

bool task_node_has_nvidia(const NodeInventory *found)
{
    for (size_t i = 0; i < found->n_gres; i++) {
        for (size_t k = 0; k < found->gres[i]->n_files; k++) {
            if (is_nvidia(found->gres[i]->files[k]))
                return true;
        }
    }
    return false;
}

bool task_has_nvidia(const struct task_node *node, const Grant *grant)
{
    const NodeInventory *found = node->inventory ? &node->inventory->node : NULL;
    bool has = false;

    for (size_t i = 0; found && i < found->n_gres && !has; i++) {
        const GresInventory *gres = found->gres[i];
        struct bitset own;
        bitset_init(&own, LIMIT_GRES_PER_NODE);
        devices_of_job(grant, gres, &own);
        for (size_t k = 0; k < gres->n_files && k < LIMIT_GRES_PER_NODE; k++)
            has = has || (bitset_has(&own, k) && is_nvidia(gres->files[k]));
        bitset_done(&own);
    }
    return has;
}

/* What is shared belongs to whoever was given a share of it. */
static void limit_devices(const struct task_node *node, const Grant *grant, struct arena *arena,
                          StepTask *out)
{
    const NodeInventory *found = node->inventory ? &node->inventory->node : NULL;
    size_t files = 0;

    bool deny =
        !(node->config && node->config->has_constrain_devices && !node->config->constrain_devices);

    for (size_t i = 0; found && i < found->n_gres; i++)
        files += found->gres[i]->n_files;
    if (files == 0)
        return;
    out->denied = ARENA_ARRAY(arena, StepDevice *, files);
    out->gpus = ARENA_ARRAY(arena, char *, files);
    for (size_t i = 0; i < found->n_gres; i++) {
        const GresInventory *gres = found->gres[i];
        struct bitset own;
        if (gres->shared)
            continue;
        bitset_init(&own, LIMIT_GRES_PER_NODE);
        devices_of_job(grant, gres, &own);
        for (size_t k = 0; k < gres->n_files && k < LIMIT_GRES_PER_NODE; k++) {
            if (bitset_has(&own, k))
                add_gpu(node, gres->files[k], arena, out);
            else if (deny)
                add_denied(out, gres->files[k], arena);
        }
        bitset_done(&own);
    }
}

void task_limit_vsize(const struct task_node *node, const Grant *grant, struct arena *arena,
                      StepTask *out)
{
    uint64_t mb = grant->alloc ? grant->alloc->mem_mb : 0;
    uint64_t most = node->config ? mb * MB / 100 * node->config->vsize_factor : 0;
    Rlimit *limit = ARENA_NEW(arena, Rlimit);

    if (!most)
        return;
    rlimit__init(limit);
    limit->name = arena_strdup(arena, "AS");
    limit->has_soft = limit->has_hard = true;
    limit->soft = limit->hard = most;
    for (size_t i = 0; i < out->n_rlimits; i++) {
        if (!str_eq(out->rlimits[i]->name, "AS"))
            continue;
        limit->soft = MIN(most, out->rlimits[i]->soft);
        limit->hard = MIN(most, out->rlimits[i]->hard);
        out->rlimits[i] = limit;
        return;
    }
    out->rlimits[out->n_rlimits++] = limit;
}

void task_limits(const struct task_node *node, const Grant *grant, struct arena *arena,
                 StepTask *out)
{
    limit_time(node, grant, out);
    limit_memory(node, grant, out);
    limit_cpus(node, grant, arena, out);
    limit_weight(grant, out);
    limit_processes(node, out);
    limit_devices(node, grant, arena, out);
    limit_disks(node, grant, arena, out);
    sample_usage(node, grant, out);
}
