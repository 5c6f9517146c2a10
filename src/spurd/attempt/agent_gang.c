/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_gang.c - jobs that take turns on the same CPUs never run at once
 *
 * The controller says who stops and who goes on, in this order; supervisors carry it out on their
 * own. A job goes on when all who are to stop and have CPUs of it have said that they did.
 */
#include <stdlib.h>

#include "base/bitset.h"
#include "spurd/attempt/life.h"
#include "spurd/root.h"
#include "spurd/step/step.h"
#include "sys/log.h"

/* More than any node has. */
enum { CPUS_MOST = 65536 };

static bool read_cpus(const struct attempt *held, struct bitset *out)
{
    const NodeAlloc *alloc = held->grant ? held->grant->alloc : NULL;

    if (!alloc || str_is_empty(alloc->cpu_ids))
        return false;
    bitset_init(out, CPUS_MOST);
    if (bitset_parse(out, alloc->cpu_ids))
        return true;
    bitset_done(out);
    return false;
}

static bool share_cpus(const struct attempt *a, const struct attempt *b)
{
    struct bitset one, other;
    bool meet = false;

    if (!read_cpus(a, &one))
        return false;
    if (read_cpus(b, &other)) {
        meet = bitset_meets(&one, &other);
        bitset_done(&other);
    }
    bitset_done(&one);
    return meet;
}

/* It was told to stop, and something of it has not said that it did. */
static bool is_stopping(const struct agent *agent, const struct attempt *held)
{
    if (!(held->freeze_wanted & FREEZE_ASKED))
        return false;
    if (held->chan && held->running && !held->ended && !(held->frozen & FREEZE_ASKED))
        return true;
    for (size_t i = 0; i < agent->steps->procs.len; i++) {
        const struct step_proc *proc = agent->steps->procs.items[i];
        if (proc->job == held->job && proc->attempt == held->attempt && !proc->ended &&
            proc->chan && proc->started_us && !(proc->frozen & FREEZE_ASKED))
            return true;
    }
    return false;
}

static bool must_wait(struct agent *agent, const struct attempt *held)
{
    map_each (entry, &agent->table.held) {
        const struct attempt *other = entry->value;
        if (other != held && is_stopping(agent, other) && share_cpus(held, other))
            return true;
    }
    return false;
}

void agent_gang_turn(struct agent *agent, struct attempt *held, bool go)
{
    held->thaw_waits = go && must_wait(agent, held);
    if (held->thaw_waits)
        log_verbose("turn.waits", "job=%u attempt=%u", held->job, held->attempt);
    else
        agent_freeze(agent, held, FREEZE_ASKED, go);
}

bool agent_launch_waits(struct agent *agent, struct attempt *held)
{
    held->launch_waits = held->has_load && !held->launched && must_wait(agent, held);
    return held->launch_waits;
}

void agent_gang_turns(struct agent *agent)
{
    VEC(struct attempt *) ready = { 0 };

    map_each (entry, &agent->table.held) {
        struct attempt *held = entry->value;
        if ((held->thaw_waits || held->launch_waits) && !must_wait(agent, held))
            vec_push(&ready, held);
    }
    vec_each (struct attempt *, at, &ready) {
        struct attempt *held = *at;
        bool launch = held->launch_waits;
        if (held->thaw_waits)
            agent_freeze(agent, held, FREEZE_ASKED, true);
        held->thaw_waits = held->launch_waits = false;
        if (launch)
            agent_advance(agent, held);
    }
    vec_done(&ready);
}
