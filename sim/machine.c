/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.c - machines with agents, by the agent's rules
 *
 * (1) Grants, end reports, tombstones and the highest epoch are on disk: they outlive the agent. A
 *     power cut ends all processes; whether reports and tombstones were in memory is the seed's.
 * (2) The agent says hello with all it holds, reports that nobody has acknowledged among it, and
 *     does nothing it is told before it is welcome.
 * (3) (job, attempt) runs once: what is held or has a tombstone is not started again.
 * (4) What the welcome does not name is ended.
 * (5) A message with a lower epoch than one seen before is from a controller that leads no more.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/world.h"

enum { HEARTBEAT_MS = 3000, RESEND_S = 5 };

void machine_init(struct world *world, struct machine *machine, unsigned number)
{
    static const uint32_t sizes[] = { 1, 2, 4, 8, 16 };

    machine->number = number;
    snprintf(machine->name, sizeof(machine->name), "n%u", number + 1);
    machine->cpus = sizes[rand_below(&world->rand, ARRAY_LEN(sizes))];
    machine->mem_mb = machine->cpus * 1024;
}

void machine_done(struct machine *machine)
{
    while (machine->grants.len)
        machine_forget_grant(machine, machine->grants.items[0]);
    vec_done(&machine->grants);
    vec_done(&machine->reports);
    vec_done(&machine->tombstones);
}

static void send(struct world *world, struct machine *machine, NodeMessage *message)
{
    message->has_epoch = true;
    message->epoch = machine->epoch;
    if (machine->session)
        wire_to_ctl(world, machine->session, message);
}

/* ---- connecting ---- */

static void connect_now(struct world *world, const struct happening *what)
{
    struct machine *machine = &world->machines[what->a];

    if (machine->agent_up && machine->agent_turn == what->b && !machine->session)
        wire_connect(world, machine->number);
}

static void connect_soon(struct world *world, struct machine *machine)
{
    world_later(world, rand_skewed(&world->rand, 50 * MS, 3 * SEC), connect_now, machine->number,
                machine->agent_turn, 0);
}

void machine_refused(struct world *world, struct machine *machine)
{
    if (machine->agent_up && !machine->session)
        connect_soon(world, machine);
}

void machine_closed(struct world *world, struct machine *machine, uint64_t session)
{
    if (machine->session != session)
        return;
    machine->session = 0;
    machine->welcomed = false;
    if (machine->agent_up)
        connect_soon(world, machine);
}

static void heartbeat(struct world *world, const struct happening *what)
{
    struct machine *machine = &world->machines[what->a];
    NodeMessage message = NODE_MESSAGE__INIT;
    Heartbeat beat = HEARTBEAT__INIT;

    if (!machine->agent_up || machine->session != what->b)
        return;
    message.what_case = NODE_MESSAGE__WHAT_HEARTBEAT;
    message.heartbeat = &beat;
    send(world, machine, &message);
    for (size_t i = 0; i < machine->reports.len; i++) { /* nobody has acknowledged it */
        struct report *report = &machine->reports.items[i];
        if (report->sent && world->now_us - report->sent_us >= RESEND_S * SEC)
            machine_send_report(world, machine, report);
    }
    world_later(world, HEARTBEAT_MS * MS, heartbeat, what->a, what->b, 0);
}

static void add_held(HeldGrant *held, uint32_t job_id, uint32_t attempt)
{
    held_grant__init(held);
    held->has_job_id = held->has_attempt = true;
    held->job_id = job_id;
    held->attempt = attempt;
    held->has_ready = held->has_running = held->has_launched = true;
}

/* (2) */
static void say_hello(struct world *world, struct machine *machine)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    NodeHello hello = NODE_HELLO__INIT;
    NodeInventory found = NODE_INVENTORY__INIT;
    size_t most = machine->grants.len + machine->reports.len, count = 0;
    HeldGrant *held = NEW_ARRAY(HeldGrant, most + 1), **list = NEW_ARRAY(HeldGrant *, most + 1);
    char boot_id[40];

    for (size_t i = 0; i < machine->grants.len; i++) {
        const struct grant *grant = machine->grants.items[i];
        const struct run *run = grant_run(world, machine, grant);
        add_held(&held[count], grant->job_id, grant->attempt);
        held[count].ready = grant->ready;
        held[count].launched = grant->launched;
        held[count].running = run && run->alive;
        count++;
    }
    for (size_t i = 0; i < machine->reports.len; i++) {
        const struct report *report = &machine->reports.items[i];
        if (machine_grant(machine, report->job_id, report->attempt))
            continue;
        add_held(&held[count], report->job_id, report->attempt);
        held[count].ready = held[count].launched = true;
        count++;
    }
    for (size_t i = 0; i < count; i++)
        list[i] = &held[i];
    snprintf(boot_id, sizeof(boot_id), "boot-%s-%u", machine->name, machine->boot);
    found.has_cpus = found.has_memory_mb = true;
    found.cpus = machine->cpus;
    found.memory_mb = machine->mem_mb;
    found.boot_id = boot_id;
    hello.node = machine->name;
    hello.found = &found;
    hello.n_held = count;
    hello.held = list;
    hello.has_epoch = hello.has_uptime_us = true;
    hello.uptime_us = world->now_us - machine->on_us;
    hello.epoch = machine->epoch;
    message.what_case = NODE_MESSAGE__WHAT_HELLO;
    message.hello = &hello;
    send(world, machine, &message);
    free(held);
    free(list);
}

void machine_connected(struct world *world, struct machine *machine, uint64_t session)
{
    machine->session = session;
    machine->welcomed = false;
    TRACE(world, "%s says hello on session %llu", machine->name, (unsigned long long)session);
    say_hello(world, machine);
    world_later(world, HEARTBEAT_MS * MS, heartbeat, machine->number, session, 0);
}

/* ---- life ---- */

void machine_agent_start(struct world *world, struct machine *machine)
{
    if (!machine->powered || machine->agent_up)
        return;
    TRACE(world, "%s agent starts", machine->name);
    machine->agent_up = true;
    machine->agent_turn++;
    for (size_t i = 0; i < machine->grants.len; i++) {
        if (!machine->grants.items[i]->ready)
            step_prepare(world, machine, machine->grants.items[i]); /* its prolog again */
    }
    wire_connect(world, machine->number);
}

/*
 * What an agent that died does not know any more: a script that was not launched, sometimes its
 * grant too, and that something was to end; the controller will have to say it again.
 */
static void lose_memory(struct world *world, struct machine *machine, struct grant *grant)
{
    grant->turn = ++world->turn;
    if (!grant->launched) {
        grant->has_launch = grant->ending = false;
        if (!grant->ready && !world->has_prolog && rand_chance(&world->rand, 500))
            machine_forget_grant(machine, grant);
        return;
    }
    grant->ending = false;
    step_arm(world, machine, grant);
}

void machine_agent_kill(struct world *world, struct machine *machine)
{
    if (!machine->agent_up)
        return;
    TRACE(world, "%s agent dies", machine->name);
    world_count(world, COUNT_AGENTS);
    if (machine->session)
        wire_close(world, machine->session);
    machine->agent_up = machine->welcomed = false;
    machine->session = 0;
    machine->agent_turn++;
    for (size_t i = machine->grants.len; i-- > 0;)
        lose_memory(world, machine, machine->grants.items[i]);
}

void machine_power_on(struct world *world, struct machine *machine)
{
    if (machine->powered)
        return;
    machine->powered = true;
    machine->boot++;
    machine->on_us = world->now_us;
    TRACE(world, "%s boots, boot %u", machine->name, machine->boot);
    machine_agent_start(world, machine);
}

void machine_power_off(struct world *world, struct machine *machine)
{
    bool keeps_files = rand_chance(&world->rand, 500);

    if (!machine->powered)
        return;
    TRACE(world, "%s loses power%s", machine->name, keeps_files ? "" : " and its spool");
    world_count(world, COUNT_REBOOTS);
    machine->off_us = world->now_us;
    if (machine->session)
        wire_silence(world, machine->session);
    machine->powered = machine->agent_up = machine->welcomed = false;
    machine->session = 0;
    machine->agent_turn++;
    while (machine->grants.len) {
        struct grant *grant = machine->grants.items[0];
        struct run *run = grant_run(world, machine, grant);
        if (run && run->alive)
            truth_stopped(world, run, 9);
        machine_tombstone(world, machine, grant->job_id, grant->attempt);
        machine_forget_grant(machine, grant);
    }
    if (keeps_files)
        return;
    vec_clear(&machine->reports);
    vec_clear(&machine->tombstones);
}

/* ---- messages ---- */

static bool is_kept(const CtlWelcome *welcome, uint32_t job_id, uint32_t attempt)
{
    for (size_t i = 0; i < welcome->n_keep; i++) {
        if (welcome->keep[i]->job_id == job_id && welcome->keep[i]->attempt == attempt)
            return true;
    }
    return false;
}

static void on_welcome(struct world *world, struct machine *machine, const CtlWelcome *welcome)
{
    machine->welcomed = true;
    TRACE(world, "%s is welcome, epoch %llu, keeps %zu of %zu", machine->name,
          (unsigned long long)welcome->epoch, welcome->n_keep, machine->grants.len);
    for (size_t i = machine->grants.len; i-- > 0;) {
        struct grant *grant = machine->grants.items[i];
        if (!is_kept(welcome, grant->job_id, grant->attempt)) /* (4) */
            step_revoke(world, machine, grant);
    }
    for (size_t i = 0; i < machine->reports.len; i++)
        machine_send_report(world, machine, &machine->reports.items[i]);
}

static void answer_grant(struct world *world, struct machine *machine, uint32_t job_id,
                         uint32_t attempt, const char *refused)
{
    NodeMessage message = NODE_MESSAGE__INIT;
    GrantAck ack = GRANT_ACK__INIT;

    ack.has_job_id = ack.has_attempt = ack.has_refused = true;
    ack.job_id = job_id;
    ack.attempt = attempt;
    ack.refused = refused != NULL;
    ack.text = (char *)refused;
    message.what_case = NODE_MESSAGE__WHAT_GRANT_ACK;
    message.grant_ack = &ack;
    send(world, machine, &message);
}

static uint32_t request_of(const JobSpec *spec)
{
    return spec && spec->name ? (uint32_t)strtoul(spec->name + 1, NULL, 10) : 0;
}

static bool payload_is(struct world *world, const JobSpec *spec, ProtobufCBinaryData payload)
{
    const struct request *request = people_request(world, request_of(spec));

    return request && payload.len == request->payload.len &&
           memcmp(payload.data, request->payload.data, payload.len) == 0;
}

static void take_launch(struct world *world, struct grant *grant, const Launch *launch)
{
    grant->has_launch = true;
    grant->request = request_of(launch->spec);
    grant->payload_good = payload_is(world, launch->spec, launch->payload);
}

static struct grant *new_grant(struct world *world, struct machine *machine, const Grant *message)
{
    struct grant *grant = NEW(struct grant);

    grant->job_id = message->job_id;
    grant->attempt = message->attempt;
    grant->request = request_of(message->spec);
    grant->limit_s = message->has_time_limit_s ? message->time_limit_s : -1;
    grant->alone = !message->allocation || message->allocation->n_nodes <= 1;
    grant->manager = message->manager && strcmp(message->manager, machine->name) == 0;
    grant->cpus = message->alloc ? message->alloc->cpus : 0;
    bitset_init(&grant->cpu_ids, machine->cpus);
    if (message->alloc && message->alloc->cpu_ids &&
        !bitset_parse(&grant->cpu_ids, message->alloc->cpu_ids))
        world_violation(world, "job %u is granted CPUs %s of %s, which has %u", grant->job_id,
                        message->alloc->cpu_ids, machine->name, machine->cpus);
    if (message->launch)
        take_launch(world, grant, message->launch);
    vec_push(&machine->grants, grant);
    return grant;
}

static void on_grant(struct world *world, struct machine *machine, const Grant *message)
{
    uint32_t job_id = message->job_id, attempt = message->attempt;
    struct grant *grant = machine_grant(machine, job_id, attempt);
    struct grant *other = machine_other(machine, job_id, attempt);
    struct report *report = machine_report(machine, job_id, attempt);

    if (report) { /* (3): it ran to its end; say so again */
        machine_send_report(world, machine, report);
    } else if (grant) {
        if (grant->ready)
            answer_grant(world, machine, job_id, attempt, NULL);
    } else if (machine_has_tombstone(machine, job_id, attempt) ||
               (other && other->attempt > attempt)) {
        answer_grant(world, machine, job_id, attempt, "that attempt is over here");
    } else {
        grant = new_grant(world, machine, message);
        if (other)
            step_revoke(world, machine, other); /* the controller has given it up */
        else
            step_prepare(world, machine, grant);
    }
}

static void on_launch(struct world *world, struct machine *machine, const Launch *launch)
{
    struct grant *grant = machine_grant(machine, launch->job_id, launch->attempt);
    struct report *report = machine_report(machine, launch->job_id, launch->attempt);

    if (report) {
        machine_send_report(world, machine, report);
        return;
    }
    if (!grant || grant->ending) { /* (3): its time is over, or never came */
        answer_grant(world, machine, launch->job_id, launch->attempt, "no grant is held for it");
        return;
    }
    take_launch(world, grant, launch);
    if (grant->ready && !grant->launched)
        step_launch(world, machine, grant);
}

static void on_revoke(struct world *world, struct machine *machine, const Revoke *revoke)
{
    struct grant *grant = machine_grant(machine, revoke->job_id, revoke->attempt);

    if (grant) {
        step_revoke(world, machine, grant);
        return;
    }
    machine_tombstone(world, machine, revoke->job_id, revoke->attempt);
    machine_send_released(world, machine, revoke->job_id, revoke->attempt);
}

static void on_ack(struct world *world, struct machine *machine, const AckReport *ack)
{
    for (size_t i = 0; i < machine->reports.len; i++) {
        struct report *report = &machine->reports.items[i];
        if (report->job_id != ack->job_id || report->attempt != ack->attempt)
            continue;
        struct run *run = truth_run(world, ack->job_id, ack->attempt);
        if (run)
            run->reported = true;
        vec_remove(&machine->reports, i);
        return;
    }
}

void machine_receive(struct world *world, struct machine *machine, const CtlMessage *message)
{
    struct grant *grant;

    if (message->epoch < machine->epoch) { /* (5) */
        TRACE(world, "%s refuses epoch %llu", machine->name, (unsigned long long)message->epoch);
        world_count(world, COUNT_STALE);
        wire_close(world, machine->session); /* and looks for the one that leads now */
        machine_closed(world, machine, machine->session);
        return;
    }
    machine->epoch = message->epoch;
    if (message->what_case != CTL_MESSAGE__WHAT_WELCOME && !machine->welcomed)
        return; /* (2) */
    switch (message->what_case) {
    case CTL_MESSAGE__WHAT_WELCOME:
        on_welcome(world, machine, message->welcome);
        break;
    case CTL_MESSAGE__WHAT_GRANT:
        TRACE(world, "%s gets grant of %u.%u", machine->name, message->grant->job_id,
              message->grant->attempt);
        on_grant(world, machine, message->grant);
        break;
    case CTL_MESSAGE__WHAT_LAUNCH:
        TRACE(world, "%s gets launch of %u.%u", machine->name, message->launch->job_id,
              message->launch->attempt);
        on_launch(world, machine, message->launch);
        break;
    case CTL_MESSAGE__WHAT_REVOKE:
        TRACE(world, "%s gets revoke of %u.%u", machine->name, message->revoke->job_id,
              message->revoke->attempt);
        on_revoke(world, machine, message->revoke);
        break;
    case CTL_MESSAGE__WHAT_ACK:
        on_ack(world, machine, message->ack);
        break;
    case CTL_MESSAGE__WHAT_FREEZE:
        grant = machine_grant(machine, message->freeze->job_id, message->freeze->attempt);
        if (grant)
            step_freeze(world, machine, grant, message->freeze->thaw);
        break;
    case CTL_MESSAGE__WHAT_LIMIT:
        grant = machine_grant(machine, message->limit->job_id, message->limit->attempt);
        if (grant) {
            grant->limit_s = message->limit->time_limit_s;
            if (grant->launched)
                step_arm(world, machine, grant);
        }
        break;
    default:
        break;
    }
}
