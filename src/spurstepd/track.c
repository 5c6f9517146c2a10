/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track.c - what a step used from its start to its end: peaks of its tasks between samples, energy, GPUs
 *
 * Energy is the node's: processors count what they take, not for whom. A counter that went back has
 * wrapped at its range.
 */
#include "spurstepd/track.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SECOND_US = 1000000, MICRO = 1000000 };
enum { GPU_STALE_S = 30 }; /* written by one that is gone */

static bool read_number(const struct track *track, const char *dir, const char *file, uint64_t *out)
{
    const char *root = track->task->sysroot ? track->task->sysroot : "";
    char text[64];
    CLEANUP(freep) char *path = mem_printf("%s%s/%s", root, dir, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    ssize_t len = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (len <= 0)
        return false;
    text[len] = '\0';
    return sscanf(text, "%" SCNu64, out) == 1;
}

/* ---- energy ---- */

/* "intel-rapl:0" is a processor, "intel-rapl:0:1" a part of it that is already in its count. */
static bool is_package(const char *name)
{
    const char *colon = strchr(name, ':');

    return strncmp(name, "intel-rapl:", 11) == 0 && !strchr(colon + 1, ':');
}

static void find_zones(struct track *track)
{
    const char *root = track->task->sysroot ? track->task->sysroot : "";
    static bool has_none; /* on this machine, for all steps of this process */
    if (has_none && !*root)
        return;
    CLEANUP(freep) char *path = mem_printf("%s/sys/class/powercap", root);
    DIR *dir = opendir(path);
    struct dirent *item;

    has_none = !dir && !*root && errno == ENOENT;

    while (dir && track->n_zones < TRACK_ZONES && (item = readdir(dir))) {
        struct track_zone *zone = &track->zones[track->n_zones];
        if (!is_package(item->d_name))
            continue;
        snprintf(zone->dir, sizeof(zone->dir), "/sys/class/powercap/%.64s", item->d_name);
        if (!read_number(track, zone->dir, "energy_uj", &zone->last_uj))
            continue;
        zone->range_uj = 0;
        read_number(track, zone->dir, "max_energy_range_uj", &zone->range_uj);
        track->n_zones++;
    }
    if (dir)
        closedir(dir);
}

static void read_energy(struct track *track)
{
    for (size_t i = 0; i < track->n_zones; i++) {
        struct track_zone *zone = &track->zones[i];
        uint64_t now_uj;
        if (!read_number(track, zone->dir, "energy_uj", &now_uj))
            continue;
        if (now_uj >= zone->last_uj)
            track->energy_uj += now_uj - zone->last_uj;
        else if (zone->range_uj >= zone->last_uj)
            track->energy_uj += zone->range_uj - zone->last_uj + now_uj;
        zone->last_uj = now_uj;
    }
}

/* ---- GPUs ---- */

static bool is_of(const StepHere *here, uint32_t pid)
{
    for (size_t i = 0; i < here->n_tasks; i++) {
        const StepTaskUsage *task = here->tasks[i];
        for (size_t k = 0; k < task->n_pids; k++) {
            if (task->pids[k] == pid)
                return true;
        }
    }
    return false;
}

/* What our processes do on one GPU, or all that is done there when the driver does not tell them apart. */
static bool read_written(const char *path, const StepHere *here, uint64_t *percent, uint64_t *bytes)
{
    char line[128];
    uint64_t all_percent, all_bytes;
    struct stat info;
    FILE *file = fopen(path, "re");
    bool known = file && fstat(fileno(file), &info) == 0 &&
                 info.st_mtime + GPU_STALE_S >= time(NULL) && fgets(line, sizeof(line), file) &&
                 sscanf(line, "device %" SCNu64 " %" SCNu64, &all_percent, &all_bytes) == 2;

    if (known && fgets(line, sizeof(line), file)) {
        uint32_t pid;
        uint64_t one, held;
        while (fgets(line, sizeof(line), file)) {
            if (sscanf(line, "%" SCNu32 " %" SCNu64 " %" SCNu64, &pid, &one, &held) == 3 &&
                is_of(here, pid))
                *percent += one, *bytes += held;
        }
    } else if (known) {
        *percent += all_percent;
        *bytes += all_bytes;
    }
    if (file)
        fclose(file);
    return known;
}

/* AMD's driver says both in files, for NVIDIA's spurd-nvml does; what has none is left out. */
static void read_gpus(struct track *track, const StepHere *here)
{
    uint64_t percent = 0, bytes = 0, one;

    for (size_t i = 0; i < track->task->n_gpus; i++) {
        const char *dir = track->task->gpus[i];
        if (strncmp(dir, "/sys/", 5) != 0) {
            if (here && read_written(dir, here, &percent, &bytes))
                track->has_gpu = true;
            continue;
        }
        if (read_number(track, dir, "gpu_busy_percent", &one))
            percent += one, track->has_gpu = true;
        if (read_number(track, dir, "mem_info_vram_used", &one))
            bytes += one, track->has_gpu = true;
    }
    track->gpu_percent = MAX(track->gpu_percent, (uint32_t)MIN(percent, UINT32_MAX));
    track->gpu_mem_bytes = MAX(track->gpu_mem_bytes, bytes);
}

static void put_shared(const struct track *track, Usage *usage)
{
    usage->has_energy_j = track->n_zones > 0;
    usage->energy_j = track->energy_uj / MICRO;
    usage->has_gpu_percent = usage->has_gpu_mem_bytes = track->has_gpu;
    usage->has_cpu_khz = track->khz_samples > 0;
    usage->cpu_khz = track->khz_samples ? track->khz_total / track->khz_samples : 0;
    usage->gpu_percent = track->gpu_percent;
    usage->gpu_mem_bytes = track->gpu_mem_bytes;
}

/* ---- tasks ---- */

void track_start(struct track *track, const StepTask *task, size_t tasks, int64_t now_us)
{
    *track = (struct track){ .task = task, .next_us = -1, .count = tasks };
    track->peaks = NEW_ARRAY(Usage, tasks);
    for (size_t i = 0; i < tasks; i++)
        usage__init(&track->peaks[i]);
    track->every_us = task->sample_s * (int64_t)SECOND_US;
    if (task->sample_memory && (!track->every_us || task->sample_s > TRACK_LIMIT_S))
        track->every_us = TRACK_LIMIT_S * (int64_t)SECOND_US;
    if (track->every_us)
        track->next_us = now_us + track->every_us;
    find_zones(track);
}

void track_done(struct track *track)
{
    free(track->peaks);
    track->peaks = NULL;
    track->next_us = -1;
}

/* Each becomes the higher of the two. */
static void lift(Usage *peak, Usage *seen)
{
#define RAISE(field) peak->field = seen->field = MAX(peak->field, seen->field)
    RAISE(user_us);
    RAISE(system_us);
    RAISE(max_rss_bytes);
    RAISE(max_vm_bytes);
    RAISE(read_bytes);
    RAISE(write_bytes);
    RAISE(page_faults);
#undef RAISE
}

bool track_sample(struct track *track, const struct contain *contain,
                  const struct sample_task *tasks, int64_t now_us, struct arena *arena,
                  StepHere *out)
{
    const StepTask *task = track->task;
    uint64_t held = sample_take(contain, tasks, track->count, task->sysroot, arena, out);
    uint64_t limit = task->step_mem_bytes ? task->step_mem_bytes : task->mem_bytes;

    for (size_t i = 0; i < track->count; i++)
        lift(&track->peaks[i], out->tasks[i]->usage);
    track->held_bytes = MAX(track->held_bytes, held);
    track->samples++;
    if (out->usage->has_cpu_khz) {
        track->khz_total += out->usage->cpu_khz;
        track->khz_samples++;
    }
    read_energy(track);
    read_gpus(track, out);
    put_shared(track, out->usage);
    if (track->every_us)
        track->next_us = now_us + track->every_us;
    return task->sample_memory && limit && held > limit;
}

/* Whose it is, when it is more than anybody's before. */
static void keep_max(uint64_t value, uint32_t task, protobuf_c_boolean *has, uint64_t *max,
                     uint32_t *of)
{
    if (*has && value <= *max)
        return;
    *has = true;
    *max = value;
    *of = task;
}

static void add_task(Usage *usage, const Usage *peak, uint32_t number)
{
    int64_t cpu_us = peak->user_us + peak->system_us;

    keep_max(peak->read_bytes, number, &usage->has_max_read_bytes, &usage->max_read_bytes,
             &usage->max_read_task);
    keep_max(peak->write_bytes, number, &usage->has_max_write_bytes, &usage->max_write_bytes,
             &usage->max_write_task);
    keep_max(peak->page_faults, number, &usage->has_max_page_faults, &usage->max_page_faults,
             &usage->max_page_faults_task);
    if (!usage->has_min_cpu_us || cpu_us < usage->min_cpu_us) {
        usage->has_min_cpu_us = true;
        usage->min_cpu_us = cpu_us;
        usage->min_cpu_task = number;
    }
    usage->tot_rss_bytes += peak->max_rss_bytes;
    usage->tot_vm_bytes += peak->max_vm_bytes;
}

void track_end(struct track *track, const struct sample_task *tasks, Usage *usage)
{
    protobuf_c_boolean has_rss = false, has_vm = false;
    uint64_t max_rss = 0, max_vm = 0;

    for (size_t i = 0; i < track->count; i++) {
        Usage *peak = &track->peaks[i], last = USAGE__INIT;
        if (tasks[i].ended)
            last = *tasks[i].ended;
        lift(peak, &last);
        add_task(usage, peak, tasks[i].number);
        keep_max(peak->max_rss_bytes, tasks[i].number, &has_rss, &max_rss, &usage->max_rss_task);
        keep_max(peak->max_vm_bytes, tasks[i].number, &has_vm, &max_vm, &usage->max_vm_task);
        usage->read_bytes = MAX(usage->read_bytes, peak->read_bytes);
        usage->write_bytes = MAX(usage->write_bytes, peak->write_bytes);
    }
    usage->has_read_bytes = usage->has_write_bytes = true;
    usage->max_rss_bytes = MAX(usage->max_rss_bytes, max_rss);
    usage->max_vm_bytes = MAX(usage->max_vm_bytes, max_vm);
    usage->has_max_vm_bytes = usage->has_max_rss_task = usage->has_max_vm_task = true;
    usage->has_tot_rss_bytes = usage->has_tot_vm_bytes = usage->has_samples = true;
    usage->has_max_read_task = usage->has_max_write_task = true;
    usage->has_max_page_faults_task = usage->has_min_cpu_task = true;
    usage->samples = track->samples;
    read_energy(track);
    read_gpus(track, NULL);
    put_shared(track, usage);
}

void track_out_of_memory(const struct track *track, const struct contain *contain, uint64_t kills,
                         Usage *usage, char *out, size_t out_bytes)
{
    const StepTask *task = track->task;
    uint64_t limit = task->step_mem_bytes ? task->step_mem_bytes : task->mem_bytes;
    uint64_t had = MAX(contain_memory_peak(contain), track->held_bytes);

    usage->has_out_of_memory = usage->out_of_memory = true;
    usage->has_mem_limit_bytes = limit > 0;
    usage->mem_limit_bytes = limit;
    had = MAX(had, usage->max_rss_bytes);
    snprintf(out, out_bytes,
             "step %u.%.32s on %.64s had no memory left: %" PRIu64 " MB of %" PRIu64
             " MB used, %" PRIu64 " process%s killed",
             task->id->job_id, task->name, task->node, had >> 20, limit >> 20, MAX(kills, 1),
             kills > 1 ? "es" : "");
}
