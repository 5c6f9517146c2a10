// SPDX-License-Identifier: Apache-2.0
/*
 * sstat_fields.c - the columns of sstat: what tasks use, and what their nodes do
 */
#include <inttypes.h>
#include <string.h>

#include "base/hostlist.h"
#include "base/timefmt.h"
#include "cli/sstat.h"
#include "schema/freq.h"

enum what { CPU, RSS, VM, PAGES, READ, WRITE };

static uint64_t value_of(const Usage *usage, enum what what)
{
    switch (what) {
    case CPU:
        return (uint64_t)(usage->user_us + usage->system_us) / 1000000;
    case RSS:
        return usage->max_rss_bytes;
    case VM:
        return usage->max_vm_bytes;
    case PAGES:
        return usage->page_faults;
    case READ:
        return usage->read_bytes;
    case WRITE:
        return usage->write_bytes;
    }
    return 0;
}

struct sum {
    uint64_t min, max, total, count;
    const struct task *min_task, *max_task;
};

static struct sum sum_of(const struct stat *stat, enum what what)
{
    struct sum sum = { .min = UINT64_MAX };

    for (size_t i = 0; i < stat->tasks.len; i++) {
        const struct task *task = &stat->tasks.items[i];
        uint64_t value = value_of(task->usage->usage, what);
        if (value < sum.min || !sum.min_task)
            sum.min = value, sum.min_task = task;
        if (value > sum.max || !sum.max_task)
            sum.max = value, sum.max_task = task;
        sum.total += value;
        sum.count++;
    }
    if (!sum.count)
        sum.min = 0;
    return sum;
}

static void add_value(const struct stat *stat, enum what what, uint64_t value, struct str *out)
{
    if (what == CPU)
        timefmt_write_duration(out, (int64_t)value, TIMEFMT_LONG);
    else if (what == PAGES || stat->noconvert)
        str_add_u64(out, value);
    else if ((what == READ || what == WRITE) && value >= 1024 * 1024)
        str_addf(out, "%.2fM", (double)value / (1024 * 1024));
    else if (what == READ || what == WRITE)
        str_add_u64(out, value);
    else
        str_addf(out, "%" PRIu64 "K", value / 1024);
}

enum part { AVE, MAX_OF, MAX_NODE, MAX_TASK, MIN_OF, MIN_NODE, MIN_TASK };

static void add_part(const struct stat *stat, enum what what, enum part part, struct str *out)
{
    struct sum sum = sum_of(stat, what);
    const struct task *task = part == MIN_NODE || part == MIN_TASK ? sum.min_task : sum.max_task;

    if (!sum.count)
        return;
    if (part == AVE)
        add_value(stat, what, sum.total / sum.count, out);
    else if (part == MAX_OF || part == MIN_OF)
        add_value(stat, what, part == MAX_OF ? sum.max : sum.min, out);
    else if (part == MAX_NODE || part == MIN_NODE)
        str_add(out, task->node);
    else
        str_add_u64(out, task->usage->task);
}

static void add_tres(const struct stat *stat, unsigned number, struct str *out);
static void add_id(const struct stat *stat, unsigned number, struct str *out);
static void add_alloc(const struct stat *stat, unsigned number, struct str *out);
static void add_ntasks(const struct stat *stat, unsigned number, struct str *out);
static void add_nodelist(const struct stat *stat, unsigned number, struct str *out);
static void add_pids(const struct stat *stat, unsigned number, struct str *out);

/* ---- what is the node's ---- */

enum node_what { ENERGY, GPU_MEM, GPU_UTIL };

static bool node_value(const Usage *usage, enum node_what what, uint64_t *out)
{
    if (!usage)
        return false;
    *out = what == ENERGY    ? usage->energy_j
           : what == GPU_MEM ? usage->gpu_mem_bytes
                             : usage->gpu_percent;
    return what == ENERGY    ? usage->has_energy_j
           : what == GPU_MEM ? usage->has_gpu_mem_bytes
                             : usage->has_gpu_percent;
}

struct node_sum {
    uint64_t min, max, total, count;
    size_t min_node, max_node;
};

static struct node_sum node_sum_of(const struct stat *stat, enum node_what what)
{
    struct node_sum sum = { 0 };

    for (size_t i = 0; i < stat->totals.len; i++) {
        uint64_t value;
        if (!node_value(stat->totals.items[i], what, &value))
            continue;
        if (!sum.count || value < sum.min)
            sum.min = value, sum.min_node = i;
        if (!sum.count || value > sum.max)
            sum.max = value, sum.max_node = i;
        sum.total += value;
        sum.count++;
    }
    return sum;
}

/* 1500 is 1.50K, as Slurm writes what is no size. */
static void add_thousands(uint64_t value, bool noconvert, struct str *out)
{
    static const char units[] = "KMGTP";
    double shown = (double)value;
    int unit = -1;

    while (shown >= 1000 && unit + 1 < (int)sizeof(units) - 1)
        shown /= 1000, unit++;
    if (noconvert || unit < 0)
        str_add_u64(out, value);
    else
        str_addf(out, "%.2f%c", shown, units[unit]);
}

static void add_energy(const struct stat *stat, unsigned raw, struct str *out)
{
    add_thousands(node_sum_of(stat, ENERGY).total, raw || stat->noconvert, out);
}

/* In kHz; 0 where the kernel does not say. */
static void add_frequency(const struct stat *stat, unsigned number, struct str *out)
{
    uint64_t total = 0, count = 0;

    (void)number;
    for (size_t i = 0; i < stat->totals.len; i++) {
        const Usage *usage = stat->totals.items[i];
        if (usage && usage->has_cpu_khz)
            total += usage->cpu_khz, count++;
    }
    uint64_t khz = count ? total / count : 0;
    if (khz == 0 || stat->noconvert)
        str_add_u64(out, khz);
    else if (khz >= 1000000)
        str_addf(out, "%.2fG", (double)khz / 1000000);
    else
        str_addf(out, "%.2fM", (double)khz / 1000);
}

static void add_unknown(const struct stat *stat, unsigned number, struct str *out)
{
    (void)number;
    str_add(out, stat->layout ? "Unknown" : "0");
}

/* Of the frequency that was asked for: 0 lowest, 1 highest, 2 governor, 3 all of it. */
static void add_asked_frequency(const struct stat *stat, unsigned part, struct str *out)
{
    struct freq freq;

    if (!stat->layout || str_is_empty(stat->layout->cpu_freq) ||
        freq_read(stat->layout->cpu_freq, &freq, NULL) < 0) {
        add_unknown(stat, 0, out);
        return;
    }
    if (part == 0 && freq.min)
        freq_add_one(freq.min, out);
    else if (part == 1 && freq.max)
        freq_add_one(freq.max, out);
    else if (part == 2 && freq.governor)
        str_add(out, freq.governor);
    else if (part == 3)
        freq_add(&freq, out);
    else
        str_add(out, "0");
}

static void add_usage(const struct stat *stat, unsigned number, struct str *out)
{
    add_part(stat, number >> 8, number & 0xff, out);
}

#define USAGE(what, part) add_usage, ((what) << 8 | (part))
enum { TRES_OUT = 16, TRES_TOT = 8 };

const struct stat_field stat_fields[] = {
    { "JobID", -12, add_id, 0 },
    { "AllocTRES", 10, add_alloc, 0 },
    { "MaxVMSize", 10, USAGE(VM, MAX_OF) },
    { "MaxVMSizeNode", 14, USAGE(VM, MAX_NODE) },
    { "MaxVMSizeTask", 14, USAGE(VM, MAX_TASK) },
    { "AveVMSize", 10, USAGE(VM, AVE) },
    { "MaxRSS", 10, USAGE(RSS, MAX_OF) },
    { "MaxRSSNode", 10, USAGE(RSS, MAX_NODE) },
    { "MaxRSSTask", 10, USAGE(RSS, MAX_TASK) },
    { "AveRSS", 10, USAGE(RSS, AVE) },
    { "MaxPages", 8, USAGE(PAGES, MAX_OF) },
    { "MaxPagesNode", 12, USAGE(PAGES, MAX_NODE) },
    { "MaxPagesTask", 14, USAGE(PAGES, MAX_TASK) },
    { "AvePages", 10, USAGE(PAGES, AVE) },
    { "MinCPU", 10, USAGE(CPU, MIN_OF) },
    { "MinCPUNode", 10, USAGE(CPU, MIN_NODE) },
    { "MinCPUTask", 10, USAGE(CPU, MIN_TASK) },
    { "AveCPU", 10, USAGE(CPU, AVE) },
    { "NTasks", 8, add_ntasks, 0 },
    { "AveCPUFreq", 10, add_frequency, 0 },
    { "ReqCPUFreqMin", 13, add_asked_frequency, 0 },
    { "ReqCPUFreqMax", 13, add_asked_frequency, 1 },
    { "ReqCPUFreqGov", 13, add_asked_frequency, 2 },
    { "ConsumedEnergy", 14, add_energy, 0 },
    { "MaxDiskRead", 12, USAGE(READ, MAX_OF) },
    { "MaxDiskReadNode", 15, USAGE(READ, MAX_NODE) },
    { "MaxDiskReadTask", 15, USAGE(READ, MAX_TASK) },
    { "AveDiskRead", 12, USAGE(READ, AVE) },
    { "MaxDiskWrite", 12, USAGE(WRITE, MAX_OF) },
    { "MaxDiskWriteNode", 16, USAGE(WRITE, MAX_NODE) },
    { "MaxDiskWriteTask", 16, USAGE(WRITE, MAX_TASK) },
    { "AveDiskWrite", 12, USAGE(WRITE, AVE) },
    { "TRESUsageInAve", 14, add_tres, AVE },
    { "TRESUsageInMax", 14, add_tres, MAX_OF },
    { "TRESUsageInMaxNode", 18, add_tres, MAX_NODE },
    { "TRESUsageInMaxTask", 18, add_tres, MAX_TASK },
    { "TRESUsageInMin", 14, add_tres, MIN_OF },
    { "TRESUsageInMinNode", 18, add_tres, MIN_NODE },
    { "TRESUsageInMinTask", 18, add_tres, MIN_TASK },
    { "TRESUsageInTot", 14, add_tres, TRES_TOT },
    { "TRESUsageOutAve", 15, add_tres, TRES_OUT | AVE },
    { "TRESUsageOutMax", 15, add_tres, TRES_OUT | MAX_OF },
    { "TRESUsageOutMaxNode", 19, add_tres, TRES_OUT | MAX_NODE },
    { "TRESUsageOutMaxTask", 19, add_tres, TRES_OUT | MAX_TASK },
    { "TRESUsageOutMin", 15, add_tres, TRES_OUT | MIN_OF },
    { "TRESUsageOutMinNode", 19, add_tres, TRES_OUT | MIN_NODE },
    { "TRESUsageOutMinTask", 19, add_tres, TRES_OUT | MIN_TASK },
    { "TRESUsageOutTot", 15, add_tres, TRES_OUT | TRES_TOT },
    { "ConsumedEnergyRaw", 17, add_energy, 1 },
    { "Nodelist", 20, add_nodelist, 0 },
    { "Pids", 20, add_pids, 0 },
    { "ReqCPUFreq", 10, add_asked_frequency, 3 },
};
const size_t stat_field_count = ARRAY_LEN(stat_fields);

static void add_id(const struct stat *stat, unsigned number, struct str *out)
{
    (void)number;
    str_addf(out, "%u.%s", stat->job, stat->here->name);
}

static void add_alloc(const struct stat *stat, unsigned number, struct str *out)
{
    uint64_t cpus = 0, mem_mb = 0;

    (void)number;
    for (size_t i = 0; stat->layout && i < stat->layout->n_nodes; i++) {
        cpus += stat->layout->nodes[i]->cpus;
        mem_mb += stat->layout->nodes[i]->mem_mb;
    }
    if (!stat->layout)
        return;
    str_addf(out, "cpu=%" PRIu64, cpus);
    if (mem_mb)
        str_addf(out, ",mem=%" PRIu64 "M", mem_mb);
    str_addf(out, ",node=%zu", stat->layout->n_nodes);
}

static void add_ntasks(const struct stat *stat, unsigned number, struct str *out)
{
    (void)number;
    str_add_u64(out, stat->tasks.len);
}

static void add_nodelist(const struct stat *stat, unsigned number, struct str *out)
{
    CLEANUP(hostlist_done) struct hostlist hosts = { 0 };

    (void)number;
    if (stat->node) {
        str_add(out, stat->node);
        return;
    }
    vec_each (const char *const, node, &stat->nodes)
        hostlist_push(&hosts, *node, NULL);
    hostlist_format(&hosts, out);
}

static void add_pids(const struct stat *stat, unsigned number, struct str *out)
{
    size_t before = out->len;

    (void)number;
    for (size_t i = 0; i < stat->tasks.len; i++) {
        const struct task *task = &stat->tasks.items[i];
        for (size_t k = 0; k < task->usage->n_pids; k++) {
            if (!stat->node || strcmp(stat->node, task->node) == 0)
                str_addf(out, "%s%u", out->len > before ? "," : "", task->usage->pids[k]);
        }
    }
}

/* The task that stands for a node: its first. */
static uint32_t first_task(const struct stat *stat, size_t node)
{
    for (size_t i = 0; i < stat->tasks.len; i++) {
        if (strcmp(stat->tasks.items[i].node, stat->nodes.items[node]) == 0)
            return stat->tasks.items[i].usage->task;
    }
    return 0;
}

static void add_node_part(const struct stat *stat, enum node_what what, unsigned number,
                          struct str *out)
{
    struct node_sum sum = node_sum_of(stat, what);
    enum part part = number & 7;
    size_t node = part == MIN_NODE || part == MIN_TASK ? sum.min_node : sum.max_node;
    uint64_t value = number & TRES_TOT ? sum.total
                     : part == AVE     ? sum.total / MAX(sum.count, 1)
                     : part == MIN_OF  ? sum.min
                                       : sum.max;

    if (!(number & TRES_TOT) && (part == MAX_NODE || part == MIN_NODE))
        str_add(out, stat->nodes.items[node]);
    else if (!(number & TRES_TOT) && (part == MAX_TASK || part == MIN_TASK))
        str_add_u64(out, first_task(stat, node));
    else if (what == GPU_MEM && !stat->noconvert)
        str_addf(out, "%" PRIu64 "M", value >> 20);
    else
        str_add_u64(out, value);
}

/* "cpu=00:00:00,energy=0,fs/disk=0,gres/gpumem=0,…": in the order of their names. */
static void add_tres(const struct stat *stat, unsigned number, struct str *out)
{
    static const struct {
        const char *name;
        bool of_node, in, out;
        unsigned read, write; /* enum what, or enum node_what */
    } parts[] = { { "cpu", false, true, false, CPU, CPU },
                  { "energy", true, true, true, ENERGY, ENERGY },
                  { "fs/disk", false, true, true, READ, WRITE },
                  { "gres/gpumem", true, true, false, GPU_MEM, GPU_MEM },
                  { "gres/gpuutil", true, true, false, GPU_UTIL, GPU_UTIL },
                  { "mem", false, true, false, RSS, RSS },
                  { "pages", false, true, false, PAGES, PAGES },
                  { "vmem", false, true, false, VM, VM } };
    bool outward = number & TRES_OUT;
    size_t before = out->len;

    for (size_t i = 0; i < ARRAY_LEN(parts) && stat->tasks.len; i++) {
        unsigned what = outward ? parts[i].write : parts[i].read;
        if (!(outward ? parts[i].out : parts[i].in) ||
            (parts[i].of_node && !node_sum_of(stat, what).count))
            continue;
        str_addf(out, "%s%s=", out->len > before ? "," : "", parts[i].name);
        if (parts[i].of_node)
            add_node_part(stat, what, number, out);
        else if (number & TRES_TOT)
            add_value(stat, what, sum_of(stat, what).total, out);
        else
            add_part(stat, what, number & 7, out);
    }
}
