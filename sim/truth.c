/* SPDX-License-Identifier: Apache-2.0 */
/*
 * truth.c - what really ran, whatever the controller believes
 *
 * (1) A script starts at most once for (job, attempt).
 * (2) It starts after its start was agreed on.
 * (3) It does not start while another attempt of the job runs anywhere, but for one on a node that
 *     was silent for so long that the controller may give it up (excused).
 */
#include <stdlib.h>

#include "sim/world.h"

static uint64_t key_of(uint32_t job_id, uint32_t attempt)
{
    return (uint64_t)job_id << 32 | attempt;
}

struct run *truth_run(struct world *world, uint32_t job_id, uint32_t attempt)
{
    return map_get_num(&world->truth.runs, key_of(job_id, attempt));
}

int64_t run_elapsed_us(const struct world *world, const struct run *run)
{
    return run->ran_us + (run->alive && !run->frozen ? world->now_us - run->resumed_us : 0);
}

static void check_start(struct world *world, const struct run *run)
{
    const struct known_job *job = map_get_num(&world->truth.jobs, run->job_id);

    if (run->starts > 1) /* (1) */
        world_violation(world, "the script of job %u attempt %u was started %u times", run->job_id,
                        run->attempt, run->starts);
    if (!job || job->attempt < run->attempt) /* (2) */
        world_violation(world, "job %u attempt %u runs and was not agreed on", run->job_id,
                        run->attempt);
    else if (job->request != run->request)
        world_violation(world, "job %u runs the script of another", run->job_id);
    map_each (entry, &world->truth.alive) {
        const struct run *other = entry->value;
        if (other != run && other->job_id == run->job_id && !other->excused) /* (3) */
            world_violation(world, "job %u attempt %u starts on n%u while attempt %u runs on n%u",
                            run->job_id, run->attempt, run->machine + 1, other->attempt,
                            other->machine + 1);
    }
}

void truth_started(struct world *world, struct run *run)
{
    map_put_num(&world->truth.runs, key_of(run->job_id, run->attempt), run);
    map_put_num(&world->truth.alive, key_of(run->job_id, run->attempt), run);
    run->starts++;
    run->alive = true;
    run->started_us = run->resumed_us = world->now_us;
    world_count(world, COUNT_RUNS);
    check_start(world, run);
}

void truth_stopped(struct world *world, struct run *run, uint32_t exit_status)
{
    run->ran_us = run_elapsed_us(world, run);
    run->alive = false;
    run->exit_status = exit_status;
    map_del_num(&world->truth.alive, key_of(run->job_id, run->attempt));
}

void truth_done(struct truth *truth)
{
    map_each (entry, &truth->runs)
        free(entry->value);
    map_each (entry, &truth->jobs)
        free(entry->value);
    map_done(&truth->runs);
    map_done(&truth->jobs);
    map_done(&truth->effects);
    map_done(&truth->alive);
}
