/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.c - connections between agents and the controller
 *
 * A session is what TCP gives: bytes in order, or an end. What is under way when it breaks is lost.
 * Packets that are swallowed are sent again by the kernel, so they come when the way is free, if
 * the session is still there. Beyond TCP, messages may be repeated and the copy may be late: the
 * protocol says that this is harmless.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/world.h"

enum { PING_LOST_S = 15 }; /* an agent that gets no answer for so long closes its connection */

static uint8_t *wire_copy(const uint8_t *bytes, size_t len)
{
    uint8_t *copy = mem_new(len + 1);

    memcpy(copy, bytes, len);
    return copy;
}

/* What a leader hears that another has followed, and does not know it yet, helps nobody. */
static void heard(struct world *world, struct machine *machine, const struct host *by)
{
    if (by != world_leader(world))
        return;
    if (world->now_us - machine->heard_us >= AGENT_TIMEOUT_S * SEC)
        machine->back_us = world->now_us;
    machine->heard_us = world->now_us;
}

static struct session *session_at(struct world *world, uint64_t id)
{
    return map_get_num(&world->sessions, id);
}

static void settle(struct world *world, struct session *session)
{
    if (session->node_open || session->ctl_open)
        return;
    map_del_num(&world->sessions, session->id);
    free(session);
}

static int64_t latency(struct world *world)
{
    if (fault_on(world, FAULT_REPORTS) && rand_chance(&world->rand, 20))
        return rand_skewed(&world->rand, 10 * MS, 20 * SEC);
    return rand_skewed(&world->rand, 50, 2 * MS);
}

/* ---- the two ends learn that it is over ---- */

static void end_at_ctl(struct world *world, const struct happening *what)
{
    struct session *session = session_at(world, what->a);

    if (!session || !session->ctl_open)
        return;
    struct host *host = &world->hosts[session->host];
    if (host_is_stopped(host)) {
        world_later_bytes(world, host->stopped_until_us, end_at_ctl, what->a, 0, NULL, 0);
        return;
    }
    session->ctl_open = false;
    if (host_enter(host)) {
        TRACE(world, "session %llu of n%u closed at %s", (unsigned long long)session->id,
              session->machine + 1, host->name);
        ctl_session_closed(host->ctl, session->id, true);
        host_leave(host);
    }
    session = session_at(world, what->a); /* the call may have ended it */
    if (session)
        settle(world, session);
}

static void end_at_node(struct world *world, const struct happening *what)
{
    struct session *session = session_at(world, what->a);

    if (!session || !session->node_open)
        return;
    unsigned number = session->machine;
    session->node_open = false;
    settle(world, session);
    machine_closed(world, &world->machines[number], what->a);
}

static int64_t arrival(struct world *world, const struct session *session, int way)
{
    int64_t last = way == TO_CTL ? session->last_to_ctl : session->last_to_node;
    int64_t at = world->now_us + latency(world);

    at = MAX(at, last);
    return MAX(at, world->machines[session->machine].blocked_us[way]);
}

void wire_hang_up(struct world *world, uint64_t id)
{
    struct session *session = session_at(world, id);

    if (!session)
        return;
    session->ctl_open = false;
    world_later_bytes(world, arrival(world, session, TO_NODE), end_at_node, id, 0, NULL, 0);
}

void wire_close(struct world *world, uint64_t id)
{
    struct session *session = session_at(world, id);

    if (!session)
        return;
    session->node_open = false;
    world_later_bytes(world, arrival(world, session, TO_CTL), end_at_ctl, id, 0, NULL, 0);
}

void wire_break(struct world *world, uint64_t id)
{
    struct session *session = session_at(world, id);

    if (!session)
        return;
    world_count(world, COUNT_BREAKS);
    world_later(world, rand_skewed(&world->rand, 0, 50 * MS), end_at_ctl, id, 0, 0);
    world_later(world, rand_skewed(&world->rand, 0, 50 * MS), end_at_node, id, 0, 0);
}

void wire_silence(struct world *world, uint64_t id)
{
    struct session *session = session_at(world, id);

    if (!session)
        return;
    session->node_open = false; /* the controller finds out by itself */
    settle(world, session);
}

void wire_host_died(struct host *host)
{
    struct world *world = host->world;

    map_each (entry, &world->sessions) {
        struct session *session = entry->value;
        if (session->host != host->number)
            continue;
        session->ctl_open = false;
        /* Its kernel says so at once, or, when the machine went too, pings find out. */
        int64_t delay = rand_chance(&world->rand, 800)
                            ? rand_skewed(&world->rand, 100, 50 * MS)
                            : rand_between(&world->rand, SEC, PING_LOST_S * SEC);
        if (session->node_open)
            world_later(world, delay, end_at_node, session->id, 0, 0);
    }
    for (struct map_entry *entry = map_live_from(&world->sessions, world->sessions.entries); entry;
         entry = map_live_from(&world->sessions, entry + 1))
        settle(world, entry->value);
}

/* What was swallowed is on its way until the time that was thought then; no network is that slow when it is well. */
void wire_heal(struct world *world)
{
    map_each (entry, &world->sessions) {
        const struct session *session = entry->value;
        if (!session->ctl_open || !session->node_open ||
            MAX(session->last_to_ctl, session->last_to_node) > world->now_us + SEC)
            wire_break(world, session->id);
    }
}

void wire_done(struct world *world)
{
    map_each (entry, &world->sessions)
        free(entry->value);
    map_done(&world->sessions);
}

/* ---- connecting ---- */

static void refused(struct world *world, const struct happening *what)
{
    struct machine *machine = &world->machines[what->a];

    if (machine->connect_turn == what->b)
        machine_refused(world, machine);
}

static void connected(struct world *world, const struct happening *what)
{
    struct session *session = session_at(world, what->a);
    struct machine *machine = &world->machines[what->c];
    bool wanted = machine->connect_turn == what->b && machine->agent_up && !machine->session;

    if (!session || !session->ctl_open) { /* it was over before the node knew of it */
        if (session)
            settle(world, session);
        if (wanted)
            machine_refused(world, machine);
        return;
    }
    if (!wanted) {
        wire_close(world, what->a);
        return;
    }
    session->node_open = true;
    machine_connected(world, machine, what->a);
}

static void arrives(struct world *world, const struct happening *what)
{
    struct machine *machine = &world->machines[what->a];
    struct host *host = &world->hosts[machine->controller];

    if (machine->connect_turn != what->b)
        return;
    if (host_is_stopped(host)) { /* no answer */
        machine->controller = (machine->controller + 1) % world->host_count;
        world_later(world, 2 * SEC, refused, what->a, what->b, 0);
        return;
    }
    if (!host_leads(host) || !host_enter(host)) {
        machine->controller = (machine->controller + 1) % world->host_count;
        world_later(world, latency(world), refused, what->a, what->b, 0);
        return;
    }
    struct session *session = NEW(struct session);
    session->id = ++world->next_session;
    session->machine = machine->number;
    session->host = host->number;
    session->ctl_open = true;
    map_put_num(&world->sessions, session->id, session);
    uint64_t id = session->id;
    TRACE(world, "session %llu of %s opens at %s", (unsigned long long)id, machine->name,
          host->name);
    heard(world, machine, host);
    ctl_session_open(host->ctl, id, machine->name);
    host_leave(host);
    session = session_at(world, id);
    int64_t delay = latency(world);
    if (session)
        delay = arrival(world, session, TO_NODE) - world->now_us;
    world_later(world, delay, connected, id, what->b, what->a);
}

void wire_connect(struct world *world, unsigned number)
{
    struct machine *machine = &world->machines[number];
    int64_t at = world->now_us + latency(world);

    machine->connect_turn++;
    if (machine->blocked_us[TO_CTL] > at || machine->blocked_us[TO_NODE] > at) /* times out */
        world_later(world, rand_between(&world->rand, SEC, 3 * SEC), refused, number,
                    machine->connect_turn, 0);
    else
        world_later_bytes(world, at, arrives, number, machine->connect_turn, NULL, 0);
}

/* ---- messages ---- */

static void at_ctl(struct world *world, const struct happening *what)
{
    struct session *session = session_at(world, what->a);

    if (!session || !session->ctl_open)
        return;
    struct machine *machine = &world->machines[session->machine];
    struct host *host = &world->hosts[session->host];
    int64_t later = MAX(machine->blocked_us[TO_CTL], host->stopped_until_us);
    if (later > world->now_us) {
        session->last_to_ctl = MAX(session->last_to_ctl, later);
        world_later_bytes(world, later, at_ctl, what->a, what->b, wire_copy(what->bytes, what->len),
                          what->len);
        return;
    }
    if (!host_enter(host))
        return;
    NodeMessage *message = node_message__unpack(NULL, what->len, what->bytes);
    heard(world, machine, host);
    ctl_session_message(host->ctl, what->a, message);
    node_message__free_unpacked(message, NULL);
    host_leave(host);
}

static void at_node(struct world *world, const struct happening *what)
{
    struct session *session = session_at(world, what->a);

    if (!session || !session->node_open)
        return;
    struct machine *machine = &world->machines[session->machine];
    if (machine->blocked_us[TO_NODE] > world->now_us) {
        session->last_to_node = MAX(session->last_to_node, machine->blocked_us[TO_NODE]);
        world_later_bytes(world, machine->blocked_us[TO_NODE], at_node, what->a, what->b,
                          wire_copy(what->bytes, what->len), what->len);
        return;
    }
    if (!machine->agent_up || machine->session != what->a)
        return;
    CtlMessage *message = ctl_message__unpack(NULL, what->len, what->bytes);
    machine_receive(world, machine, message);
    ctl_message__free_unpacked(message, NULL);
}

static bool may_be_late(const NodeMessage *up, const CtlMessage *down)
{
    if (up)
        return up->what_case == NODE_MESSAGE__WHAT_ENDED ||
               up->what_case == NODE_MESSAGE__WHAT_RELEASED ||
               up->what_case == NODE_MESSAGE__WHAT_GRANT_ACK;
    return down->what_case == CTL_MESSAGE__WHAT_GRANT ||
           down->what_case == CTL_MESSAGE__WHAT_LAUNCH ||
           down->what_case == CTL_MESSAGE__WHAT_REVOKE || down->what_case == CTL_MESSAGE__WHAT_ACK;
}

/* A copy that comes a second time, at once or much later. */
static void repeat(struct world *world, uint64_t id, happen_fn *fn, int64_t at_us,
                   const uint8_t *bytes, size_t len)
{
    if (!fault_on(world, FAULT_REPORTS) || !rand_chance(&world->rand, 60))
        return;
    world_count(world, COUNT_REPEATED);
    if (rand_chance(&world->rand, 500)) {
        at_us += rand_skewed(&world->rand, MS, 60 * SEC);
        world_count(world, COUNT_LATE);
    }
    world_later_bytes(world, at_us, fn, id, 1, wire_copy(bytes, len), len);
}

void wire_to_ctl(struct world *world, uint64_t id, const NodeMessage *message)
{
    struct session *session = session_at(world, id);
    size_t len = node_message__get_packed_size(message);
    uint8_t *bytes = mem_new(len + 1);

    if (!session) {
        free(bytes);
        return;
    }
    node_message__pack(message, bytes);
    session->last_to_ctl = arrival(world, session, TO_CTL);
    world_later_bytes(world, session->last_to_ctl, at_ctl, id, 0, bytes, len);
    if (may_be_late(message, NULL))
        repeat(world, id, at_ctl, session->last_to_ctl, bytes, len);
}

void wire_to_node(struct world *world, uint64_t id, const CtlMessage *message)
{
    struct session *session = session_at(world, id);
    size_t len = ctl_message__get_packed_size(message);
    uint8_t *bytes = mem_new(len + 1);

    if (!session) {
        free(bytes);
        return;
    }
    ctl_message__pack(message, bytes);
    session->last_to_node = arrival(world, session, TO_NODE);
    world_later_bytes(world, session->last_to_node, at_node, id, 0, bytes, len);
    if (may_be_late(NULL, message))
        repeat(world, id, at_node, session->last_to_node, bytes, len);
}
