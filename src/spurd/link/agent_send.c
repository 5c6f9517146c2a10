/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_send.c - what the agent says to the leader
 *
 * Nothing is queued here: what is not sent now is found again after the next welcome, from what is
 * held (agent_ctl.c) and from the hello.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysinfo.h>

#include "base/feature_level.h"
#include "spurd/link/send.h"
#include "spurd/link/session.h"
#include "spurd/root.h"
#include "spurd/task/task.h"
#include "sys/build.h"
#include "sys/clock.h"

static bool send_message(struct agent *agent, NodeMessage *message)
{
    if (!agent->welcomed)
        return false;
    message->has_epoch = true;
    message->epoch = agent->table.epoch;
    return session_send(agent->session, message);
}

void agent_send_grant_ack(struct agent *agent, uint32_t job, uint32_t attempt,
                          const struct err *refused, bool drain)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    GrantAck ack = GRANT_ACK__INIT;

    ack.has_job_id = ack.has_attempt = true;
    ack.job_id = job;
    ack.attempt = attempt;
    if (refused) {
        ack.has_refused = ack.refused = true;
        ack.has_code = true;
        ack.code = refused->code;
        ack.text = (char *)refused->text;
        ack.has_drain = drain;
        ack.drain = drain;
    }
    message.what_case = NODE_MESSAGE__WHAT_GRANT_ACK;
    message.grant_ack = &ack;
    send_message(agent, &message);
}

void agent_send_started(struct agent *agent, const struct attempt *held)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    StepStarted started = STEP_STARTED__INIT;
    StepId id = STEP_ID__INIT;

    id.has_job_id = id.has_attempt = id.has_step = true;
    id.job_id = held->job;
    id.attempt = held->attempt;
    id.step = TASK_STEP_BATCH;
    started.id = &id;
    started.has_time_us = started.has_pid = true;
    started.time_us = held->started_us;
    started.pid = held->pid;
    message.what_case = NODE_MESSAGE__WHAT_STARTED;
    message.started = &started;
    send_message(agent, &message);
}

/* One-node job and no epilog: the end is the release too. */
void agent_send_ended(struct agent *agent, struct attempt *held)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    StepEnded report = *held->report;
    bool has_epilog = agent_has_epilog(agent) && !held->epilog_done;

    report.has_released = true;
    report.released = attempt_is_alone(held) && !has_epilog && !held->unkillable;
    message.what_case = NODE_MESSAGE__WHAT_ENDED;
    message.ended = &report;
    if (send_message(agent, &message)) {
        held->report_sent = true;
        held->released = held->released || report.released;
    }
}

void agent_send_released(struct agent *agent, uint32_t job, uint32_t attempt,
                         const struct err *epilog)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    Released released = RELEASED__INIT;

    released.has_job_id = released.has_attempt = true;
    released.job_id = job;
    released.attempt = attempt;
    if (epilog) {
        released.has_epilog_failed = released.epilog_failed = true;
        released.text = (char *)epilog->text;
    }
    message.what_case = NODE_MESSAGE__WHAT_RELEASED;
    message.released = &released;
    send_message(agent, &message);
}

void agent_send_found(struct agent *agent)
{
    NodeMessage message = NODE_MESSAGE__INIT;

    message.what_case = NODE_MESSAGE__WHAT_FOUND;
    message.found = &agent->inventory.node;
    send_message(agent, &message);
}

void agent_send_heartbeat(struct agent *agent)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    Heartbeat beat = HEARTBEAT__INIT;
    double load[1] = { 0 };
    struct sysinfo info;

    beat.has_seq = beat.has_load_centi = beat.has_free_mem_mb = beat.has_steps = true;
    beat.seq = ++agent->beat_seq;
    agent->beat_sent_us[beat.seq % AGENT_BEATS] = clock_boot_us();
    if (getloadavg(load, 1) == 1)
        beat.load_centi = (uint32_t)(load[0] * 100);
    if (sysinfo(&info) == 0)
        beat.free_mem_mb = (uint64_t)info.freeram * info.mem_unit / (1024 * 1024);
    map_each (entry, &agent->table.held) {
        const struct attempt *held = entry->value;
        beat.steps += held->running && !held->ended;
    }
    message.what_case = NODE_MESSAGE__WHAT_HEARTBEAT;
    message.heartbeat = &beat;
    send_message(agent, &message);
}

void agent_ask_drain(struct agent *agent, const char *reason)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    NodeDrainRequest drain = NODE_DRAIN_REQUEST__INIT;

    drain.reason = (char *)reason;
    message.what_case = NODE_MESSAGE__WHAT_DRAIN;
    message.drain = &drain;
    send_message(agent, &message);
}

static HeldGrant *held_grant(const struct attempt *held, struct arena *arena)
{
    HeldGrant *out = ARENA_NEW(arena, HeldGrant);

    held_grant__init(out);
    out->has_job_id = out->has_attempt = out->has_ready = true;
    out->has_running = out->has_launched = true;
    out->job_id = held->job;
    out->attempt = held->attempt;
    out->ready = held->ready;
    out->launched = held->launched;
    out->running = held->given && !held->ended;
    return out;
}

NodeMessage *agent_hello(struct agent *agent, struct arena *arena)
{
    NodeMessage *message = ARENA_NEW(arena, NodeMessage);
    NodeHello *hello = ARENA_NEW(arena, NodeHello);
    struct attempt_table *table = &agent->table;

    agent->hello_sent_us = clock_boot_us();
    node_message__init(message);
    node_hello__init(hello);
    hello->has_level = true;
    hello->level = LEVEL_NEWEST;
    hello->build = arena_strdup(arena, build_name());
    message->has_epoch = true;
    message->epoch = table->epoch;
    message->what_case = NODE_MESSAGE__WHAT_HELLO;
    message->hello = hello;
    hello->node = agent->name;
    hello->found = &agent->inventory.node;
    hello->has_epoch = hello->has_uptime_us = true;
    hello->uptime_us = clock_boot_us();
    hello->epoch = table->epoch;
    if (table->cluster_id_len) {
        hello->has_cluster_id = true;
        hello->cluster_id = (ProtobufCBinaryData){ .data = (uint8_t *)table->cluster_id,
                                                   .len = table->cluster_id_len };
    }
    hello->held = ARENA_ARRAY(arena, HeldGrant *, map_len(&table->held) + 1);
    map_each (entry, &table->held)
        hello->held[hello->n_held++] = held_grant(entry->value, arena);
    return message;
}
