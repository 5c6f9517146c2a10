/* SPDX-License-Identifier: Apache-2.0 */
/*
 * track.h - what a step used from its start to its end: peaks of its tasks between samples, energy, GPUs
 */
#ifndef SPURSTEPD_TRACK_H
#define SPURSTEPD_TRACK_H

#include "base/arena.h"
#include "proto/step.pb-c.h"
#include "spurstepd/sample.h"

enum { TRACK_ZONES = 16, TRACK_LIMIT_S = 30 };

struct track_zone {
    char dir[96]; /* below sysroot */
    uint64_t last_uj, range_uj;
};

struct track {
    const StepTask *task;
    int64_t every_us; /* 0: never by itself */
    int64_t next_us;  /* boot time; -1: nothing is due */
    uint32_t samples;
    uint64_t held_bytes; /* highest: of all tasks at one time */
    Usage *peaks;        /* one per task */
    size_t count;
    struct track_zone zones[TRACK_ZONES];
    size_t n_zones;
    uint64_t energy_uj;
    uint64_t khz_total, khz_samples;
    uint32_t gpu_percent;
    uint64_t gpu_mem_bytes;
    bool has_gpu;
};

void track_start(struct track *track, const StepTask *task, size_t tasks, int64_t now_us);
void track_done(struct track *track);

/*
 * Takes a sample into `out` (in the arena) and keeps its peaks; peaks of earlier samples are put into `out`.
 * The next one is due `every_us` later. Returns true when the step is over the memory that the kernel does
 * not hold it to.
 */
bool track_sample(struct track *track, const struct contain *contain,
                  const struct sample_task *tasks, int64_t now_us, struct arena *arena,
                  StepHere *out);

/* Puts what was seen of tasks, energy and GPUs into the report of the end. `tasks` are what wait() said of each. */
void track_end(struct track *track, const struct sample_task *tasks, Usage *usage);

/*
 * When the step ended for lack of memory (`kills` by the kernel; 0: by us) marks `usage` and writes a sentence:
 * which step, how much it had and might have.
 */
void track_out_of_memory(const struct track *track, const struct contain *contain, uint64_t kills,
                         Usage *usage, char *out, size_t out_bytes);

#endif
