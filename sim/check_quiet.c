/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_quiet.c - the end of a run: everything has ended, is free and agrees
 */
#include <stdarg.h>
#include <stdio.h>

#include "sim/world.h"
#include "spurctld/ctl/ctl_priv.h"

static bool not_yet(struct world *world, bool complain, const char *fmt, ...) PRINTF(3, 4);
static bool not_yet(struct world *world, bool complain, const char *fmt, ...)
{
    char text[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (complain)
        world_violation(world, "stuck: %s", text);
    return false;
}

static bool job_not_yet(struct world *world, bool complain, const struct state *state,
                        const struct job *job)
{
    struct explanation about = { 0 };
    struct arena arena;

    if (!complain)
        return false;
    arena_init(&arena);
    const struct host *leader = world_leader(world);
    sched_explain(leader->ctl->sched, job, host_wall(leader), &arena, &about);
    not_yet(world, true, "job %u (request %u): state %d, phase %d, attempt %u, reason %u: %s",
            job->id, check_request_of(job), job->state, job_phase(job), job->attempt,
            core_job_reason(state, job), about.sentence ? about.sentence : "");
    arena_done(&arena);
    return false;
}

static bool state_is_quiet(struct world *world, const struct state *state, bool complain)
{
    for (const struct job *job = state_job_from(state, 1); job;
         job = state_job_from(state, (uint64_t)job->id + 1)) {
        if (job_phase(job) != PHASE_ENDED)
            return job_not_yet(world, complain, state, job);
    }
    for (size_t i = 0; i < state_node_count(state); i++) {
        const struct node *node = state_node_at(state, i);
        if (node->cpus_used || node->mem_used_mb || node->jobs.len)
            return not_yet(world, complain, "%s: %u CPUs in use", node->spec->name,
                           node->cpus_used);
        if (!node_is_usable(node))
            return not_yet(world, complain, "%s: state %d flags %x reason %s", node->spec->name,
                           node->state, node->flags, node->reason ? node->reason : "-");
    }
    return true;
}

/* Nobody waits at it, and it is where the leader is. */
static bool host_is_quiet(struct world *world, struct host *host, const struct host *leader,
                          bool complain)
{
    map_each (entry, &host->asks) {
        const struct ask *ask = entry->value;
        return not_yet(world, complain, "request %u was never answered by %s", ask->request,
                       host->name);
    }
    if (!host->ctl)
        return not_yet(world, complain, "%s is down", host->name);
    if (check_is_flipped(host))
        return not_yet(world, complain, "%s has a wrong state: %s", host->name, host->flipped_what);
    struct state_head head = state_head(ctl_state(host->ctl));
    if (head.index != state_head(ctl_state(leader->ctl)).index)
        return not_yet(world, complain, "%s is at index %llu and its leader is not", host->name,
                       (unsigned long long)head.index);
    return true;
}

static bool machines_are_quiet(struct world *world, bool complain)
{
    for (unsigned i = 0; i < world->machine_count; i++) {
        const struct machine *machine = &world->machines[i];
        if (machine->grants.len || machine->reports.len)
            return not_yet(world, complain, "%s keeps %zu grants and %zu reports", machine->name,
                           machine->grants.len, machine->reports.len);
    }
    return true;
}

bool check_quiet(struct world *world, bool complain)
{
    const struct host *leader = world_leader(world);

    if (!leader)
        return not_yet(world, complain, "no controller leads");
    if (!state_is_quiet(world, ctl_state(leader->ctl), complain))
        return false;
    map_each (entry, &world->truth.alive) {
        const struct run *run = entry->value;
        return not_yet(world, complain, "the script of job %u attempt %u still runs", run->job_id,
                       run->attempt);
    }
    if (!machines_are_quiet(world, complain))
        return false;
    for (unsigned i = 0; i < world->host_count; i++) {
        if (!host_is_quiet(world, &world->hosts[i], leader, complain))
            return false;
    }
    if (people_waiting(world))
        return not_yet(world, complain, "somebody waits for an answer");
    check_whole(world, ctl_state(leader->ctl), UINT64_MAX);
    return !world->violated;
}
