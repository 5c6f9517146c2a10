/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_lease.c - what happens when no controller is heard
 *
 * With a lease, a controller may start a job again elsewhere once this node was silent for that
 * long. So jobs that may be requeued are frozen before: by their supervisors, which read the lease
 * file and need nobody for it, and by us for those that began while there was no lease. On contact
 * the welcome says which attempts are current; those are thawed, the others ended.
 *
 * (1) The lease counts from when we sent what a controller then answered, never from when its answer
 *     came: the controller's own wait begins with the same message, or a later one.
 */
#include <stdio.h>

#include "spurd/attempt/life.h"
#include "spurd/link/session.h"
#include "spurd/root.h"
#include "spurd/step/step.h"
#include "spurd/task/stepd.h"
#include "spurd/task/task.h"
#include "sys/clock.h"
#include "sys/files.h"
#include "sys/log.h"

enum { WRITES_PER_LEASE = 8 };

static void write_lease(struct agent *agent)
{
    StepLease lease = STEP_LEASE__INIT;
    struct err err = { 0 };
    uint8_t bytes[64];

    lease.has_heard_us = lease.has_lease_ms = true;
    lease.heard_us = agent->heard_us;
    lease.lease_ms = agent->lease_ms;
    size_t len = step_lease__pack(&lease, bytes);
    if (file_write_quick(agent->lease_file, bytes, len, 0600, &err) < 0)
        log_error("lease.write", "error=%s", err.text);
    agent->lease_written_us = agent->heard_us;
}

static bool is_bound(const struct agent *agent, const struct attempt *held)
{
    return held->grant && task_spec(held->grant) && task_is_bound(held->grant, agent_common(agent));
}

static void check_lease(uv_timer_t *timer)
{
    struct agent *agent = timer->data;
    int64_t left_us = agent->heard_us + agent->lease_ms * INT64_C(1000) - clock_boot_us();

    if (agent->lease_ms == 0)
        return;
    if (left_us > 0) {
        uv_timer_start(timer, check_lease, (uint64_t)left_us / 1000 + 1, 0);
        return;
    }
    log_warn("lease.over", "lease_ms=%u jobs=%zu", agent->lease_ms, map_len(&agent->table.held));
    map_each (entry, &agent->table.held) {
        struct attempt *held = entry->value;
        if (is_bound(agent, held))
            agent_freeze(agent, held, FREEZE_LEASE, false);
    }
}

/* The connection lived through the silence: only a welcome says which attempts are still current. */
void agent_lease_again(struct agent *agent)
{
    bool frozen = false;

    if (!agent->welcomed || !agent->lease_ms ||
        clock_boot_us() > agent->heard_us + agent->lease_ms * INT64_C(1000))
        return;
    map_each (entry, &agent->table.held) {
        const struct attempt *held = entry->value;
        frozen = frozen || (!held->ended && ((held->frozen | held->freeze_wanted) & FREEZE_LEASE));
    }
    if (frozen)
        session_reconnect(agent->session, "the lease was over");
}

void agent_heard_beat(struct agent *agent, uint64_t seq)
{
    if (!seq || seq > agent->beat_seq || agent->beat_seq - seq >= AGENT_BEATS)
        return;
    agent_heard(agent, agent->beat_sent_us[seq % AGENT_BEATS]);
    agent_lease_again(agent);
}

void agent_heard(struct agent *agent, int64_t sent_us)
{
    agent->heard_us = MAX(agent->heard_us, sent_us);
    if (agent->lease_ms == 0)
        return;
    if (agent->heard_us - agent->lease_written_us >
        agent->lease_ms * INT64_C(1000) / WRITES_PER_LEASE)
        write_lease(agent);
    if (!uv_is_active((uv_handle_t *)&agent->lease_timer))
        uv_timer_start(&agent->lease_timer, check_lease, agent->lease_ms, 0);
}

void agent_set_lease(struct agent *agent, uint32_t lease_ms)
{
    StepOrder order = STEP_ORDER__INIT;
    StepLeaseChanged changed = STEP_LEASE_CHANGED__INIT;
    bool same = agent->lease_ms == lease_ms;

    agent->lease_ms = lease_ms;
    write_lease(agent); /* before anybody is thawed */
    uv_timer_stop(&agent->lease_timer);
    if (lease_ms)
        uv_timer_start(&agent->lease_timer, check_lease, lease_ms, 0);
    if (same)
        return;
    order.what_case = STEP_ORDER__WHAT_LEASE;
    order.lease = &changed;
    map_each (entry, &agent->table.held) {
        struct attempt *held = entry->value;
        if (held->chan)
            stepd_order(held->chan, &order);
        steps_order(agent, held, &order);
    }
}

void agent_lease_init(struct agent *agent)
{
    agent->lease_file = mem_printf("%s/lease", agent->run_dir);
    uv_timer_init(agent->uv, &agent->lease_timer);
    agent->lease_timer.data = agent;
}
