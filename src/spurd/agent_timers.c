/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_timers.c - what is done again from time to time: heartbeats, reports nobody acknowledged, late ends
 */
#include <stdlib.h>

#include "spurd/agent_priv.h"
#include "spurd/attempt/life.h"
#include "spurd/link/join.h"
#include "spurd/link/send.h"
#include "spurd/link/session.h"
#include "spurd/node/cgroups.h"
#include "spurd/root.h"
#include "spurd/task/task.h"
#include "sys/clock.h"
#include "sys/log.h"

/* Once an hour: a new session begins with asking for a certificate that lasts longer. */
static void look_at_certificate(struct agent *agent)
{
    if (clock_mono_us() < agent->renew_after_us)
        return;
    if (join_renews(agent))
        session_reconnect(agent->session, "its certificate ends soon");
    else
        agent->renew_after_us = clock_mono_us() + INT64_C(3600) * 1000000;
}

static void on_beat(uv_timer_t *timer)
{
    struct agent *agent = timer->data;

    agent_send_heartbeat(agent);
    look_at_certificate(agent);
    uv_timer_start(timer, on_beat, agent->heartbeat_ms, 0);
}

void agent_set_heartbeat(struct agent *agent, uint32_t ms)
{
    agent->heartbeat_ms = ms ? ms : AGENT_HEARTBEAT_MS;
    uv_timer_start(&agent->beat_timer, on_beat, agent->heartbeat_ms, 0);
}

struct late_work {
    uv_work_t work;
    char *cgroup;
};

static void end_late(uv_work_t *work)
{
    struct late_work *late = work->data;

    cgroups_end(late->cgroup);
}

static void late_ended(uv_work_t *work, int status)
{
    struct late_work *late = work->data;

    (void)status;
    free(late->cgroup);
    free(late);
}

/* A supervisor that should long have ended its step, and has not. */
static void help_late(struct agent *agent, struct attempt *held)
{
    struct arena arena;
    struct task_node node;

    if (!held->kill_late_us || held->ended || clock_boot_us() < held->kill_late_us)
        return;
    held->kill_late_us = 0;
    log_error("step.late", "job=%u attempt=%u", held->job, held->attempt);
    arena_init(&arena);
    agent_task_node(agent, &node);
    char *cgroup = task_cgroup(&node, held->job, held->attempt, &arena);
    if (cgroup) {
        struct late_work *late = NEW(struct late_work);
        late->work.data = late;
        late->cgroup = mem_strdup(cgroup);
        uv_queue_work(agent->uv, &late->work, end_late, late_ended);
    }
    arena_done(&arena);
}

/* A report that was lost on the way, or a step that was: both are looked at again. */
static void on_resend(uv_timer_t *timer)
{
    struct agent *agent = timer->data;
    VEC(uint64_t) keys = { 0 };

    map_each (entry, &agent->table.held)
        vec_push(&keys, entry->num);
    vec_each (uint64_t, key, &keys) {
        struct attempt *held = map_get_num(&agent->table.held, *key);
        if (!held)
            continue;
        help_late(agent, held);
        if (held->ended && !held->acked) {
            held->report_sent = false;
            agent_advance(agent, held);
        } else if (held->ended || held->revoked) {
            agent_advance(agent, held);
        }
    }
    vec_done(&keys);
}

void agent_start_timers(struct agent *agent)
{
    uv_timer_init(agent->uv, &agent->beat_timer);
    uv_timer_init(agent->uv, &agent->resend_timer);
    uv_timer_init(agent->uv, &agent->keep_timer);
    uv_timer_init(agent->uv, &agent->sync_timer);
    agent->sync_timer.data = agent;
    agent->beat_timer.data = agent->resend_timer.data = agent->keep_timer.data = agent;
    agent_set_heartbeat(agent, 0);
    uv_timer_start(&agent->resend_timer, on_resend, AGENT_RESEND_MS, AGENT_RESEND_MS);
}
