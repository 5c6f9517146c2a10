/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_admin.c - partitions, reservations: asked about and changed; ping and figures
 *
 * Who may change them is in auth.c's table: these methods need a role, so there is nothing to
 * check here.
 */
#include <string.h>

#include "base/hostlist.h"
#include "core/accounts.h"
#include "core/level.h"
#include "core/resv.h"
#include "spurctld/ctl/ctl_priv.h"
#include "sys/build.h"
#include "sys/log.h"

enum { LONG_TURN_US = 5000 };

/* ---- partitions ---- */

static bool named(const char *name, char **names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_eq(name, names[i]))
            return true;
    }
    return count == 0;
}

void ctl_list_partitions(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const ListPartitionsRequest *request = (const void *)message;
    ListPartitionsReply reply = LIST_PARTITIONS_REPLY__INIT;
    size_t count = state_partition_count(ctl->state);

    if (ctl_hides(ctl, ask, "partitions")) {
        ctl_fail(ask, ERR_PERMISSION);
        return;
    }
    reply.partitions = ARENA_ARRAY(ask->arena, Partition *, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct partition *partition = state_partition_at(ctl->state, i);
        bool hidden = partition->spec->hidden && !request->hidden_too && !request->n_names;
        if (hidden || !named(partition->spec->name, request->names, request->n_names))
            continue;
        Partition *out = ARENA_NEW(ask->arena, Partition);
        partition__init(out);
        partition_msg(ctl->state, partition, ask->arena, out);
        reply.partitions[reply.n_partitions++] = out;
    }
    reply.has_now_us = true;
    reply.now_us = ctl_now(ctl);
    reply.has_stale = reply.stale = request->stale;
    ask->ops->reply(ask, &reply.base);
}

void ctl_update_partition(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const UpdatePartitionRequest *request = (const void *)message;
    CmdPartition change = CMD_PARTITION__INIT;
    Command command = CTL_COMMAND(PARTITION, .partition = &change);

    change.change = request->change;
    change.has_create = change.has_remove = true;
    change.create = request->create;
    change.remove = request->remove;
    change.n_clear = request->n_clear;
    change.clear = request->clear;
    ctl_propose_ask(ctl, ask, &command, ctl_done_reply, ask);
}

/* ---- reservations ---- */

void ctl_list_reservations(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const ListReservationsRequest *request = (const void *)message;
    ListReservationsReply reply = LIST_RESERVATIONS_REPLY__INIT;
    size_t count = state_reservation_count(ctl->state);

    reply.reservations = ARENA_ARRAY(ask->arena, Reservation *, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct reservation *reservation = state_reservation_at(ctl->state, i);
        if (!named(reservation->spec->name, request->names, request->n_names) ||
            !ctl_may_see_reservation(ctl, ask, reservation))
            continue;
        Reservation *out = ARENA_NEW(ask->arena, Reservation);
        reservation__init(out);
        reservation_msg(ctl->state, reservation, ask->arena, out);
        reply.reservations[reply.n_reservations++] = out;
    }
    ask->ops->reply(ask, &reply.base);
}

void ctl_list_licenses(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const ListLicensesRequest *request = (const void *)message;
    ListLicensesReply reply = LIST_LICENSES_REPLY__INIT;
    size_t count = state_licence_count(ctl->state);

    reply.licenses = ARENA_ARRAY(ask->arena, License *, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct licence *licence = state_licence_at(ctl->state, i);
        if (!named(licence->name, request->names, request->n_names))
            continue;
        License *out = ARENA_NEW(ask->arena, License);
        license__init(out);
        out->name = (char *)(uintptr_t)licence->name;
        out->has_total = out->has_used = true;
        out->total = licence->total;
        out->used = licence->used;
        out->has_reserved = true;
        for (size_t r = 0; r < state_reservation_count(ctl->state); r++) {
            const struct reservation *resv = state_reservation_at(ctl->state, r);
            if (resv && resv->active)
                out->reserved += resv_licences(resv, licence->name);
        }
        reply.licenses[reply.n_licenses++] = out;
    }
    ask->ops->reply(ask, &reply.base);
}

/* With its name, which may have been made. */
static void reservation_done(struct ctl *ctl, void *arg, const struct events *events,
                             const struct err *err)
{
    struct ctl_ask *ask = arg;
    DoneReply reply = DONE_REPLY__INIT;

    if (err || ctl_answer(events)->code) {
        ctl_done_reply(ctl, arg, events, err);
        return;
    }
    events_each(event, events)
    {
        if (event->kind == EVENT_RESERVATION && event->text)
            reply.name = (char *)(uintptr_t)event->text;
    }
    ask->ops->reply(ask, &reply.base);
}

/* Of those it is for, if it is for accounts. */
static bool has_account(const struct ctl *ctl, const ReservationSpec *spec, const char *user)
{
    for (size_t i = 0; i < spec->n_accounts; i++) {
        if (user && spec->accounts[i][0] != '-' &&
            state_assoc(ctl->state, spec->accounts[i], user, NULL))
            return true;
    }
    return spec->n_accounts == 0;
}

/* Who may use a reservation with USER_DELETE may delete it; all else is for staff. */
static bool may_change_reservation(const struct ctl *ctl, const struct ctl_ask *ask,
                                   const UpdateReservationRequest *request)
{
    const char *name = request->change ? request->change->name : NULL;
    const struct reservation *resv = name ? state_reservation(ctl->state, name) : NULL;
    struct resv_access who = { .uid = ask->who->uid,
                               .user = ask->who->user,
                               .group = ask->who->group,
                               .gids = ask->who->gids,
                               .gid_count = ask->who->gid_count };

    if (ask->who->is_admin || ask->who->is_operator)
        return true;
    return request->remove && !request->create && resv && resv->flags & RESV_USER_DELETE &&
           resv_admits_person(resv, &who) && has_account(ctl, resv->spec, who.user);
}

void ctl_update_reservation(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const UpdateReservationRequest *request = (const void *)message;
    CmdReservation change = CMD_RESERVATION__INIT;
    Command command = CTL_COMMAND(RESERVATION, .reservation = &change);

    if (!may_change_reservation(ctl, ask, request)) {
        ctl_fail(ask, ERR_PERMISSION);
        return;
    }
    change.change = request->change;
    change.has_create = change.has_remove = change.has_by_uid = true;
    change.create = request->create;
    change.remove = request->remove;
    change.by_uid = ask->who->uid;
    change.clear = request->clear;
    change.n_clear = request->n_clear;
    ctl_propose_ask(ctl, ask, &command, reservation_done, ask);
}

/* ---- the controller itself ---- */

void ctl_propose_controllers(struct ctl *ctl, CmdControllers *list, ctl_agreed_fn *done, void *arg)
{
    Command command = CTL_COMMAND(CONTROLLERS, .controllers = list);

    ctl_propose_agreed(ctl, &command, done, arg);
}

void ctl_ping(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    PingReply reply = PING_REPLY__INIT;
    struct state_head head = state_head(ctl->state);

    (void)message;
    reply.name = ctl->self.name;
    reply.has_leader = reply.has_epoch = reply.has_index = reply.has_now_us = true;
    reply.leader = ctl->leading;
    reply.leader_name = (char *)head.leader;
    reply.leader_address = (char *)head.leader_address;
    reply.version = (char *)SPUR_VERSION;
    reply.epoch = head.epoch;
    reply.index = head.index;
    reply.now_us = ctl_now(ctl);
    reply.cluster_name = state_config(ctl->state)->cluster_name;
    if (head.cluster_id) {
        reply.has_cluster_id = true;
        reply.cluster_id = (ProtobufCBinaryData){ 16, (uint8_t *)head.cluster_id };
    }
    reply.has_digest = true;
    reply.digest = core_digest(ctl->state);
    reply.has_level = reply.has_level_known = true;
    reply.level = state_level(ctl->state);
    reply.level_known = LEVEL_NEWEST;
    reply.level_pin = state_level_pin(ctl->state);
    reply.has_level_pin = reply.level_pin != 0;
    reply.build = (char *)(uintptr_t)build_name();
    const CmdControllers *all = state_controllers(ctl->state);
    reply.n_controllers = all ? all->n_controllers : 0;
    reply.controllers = all ? all->controllers : NULL;
    struct log_status status;
    log_status(ctl->log, &status);
    reply.engine = (char *)status.engine;
    reply.has_snapshot = reply.has_log_first = true;
    reply.snapshot = status.snapshot;
    reply.log_first = status.first;
    ask->ops->reply(ask, &reply.base);
}

void ctl_count_turn(struct ctl *ctl, uint64_t us, uint64_t cpu_us, uint64_t faults)
{
    struct ctl_counts *counts = &ctl->counts;

    counts->turns++;
    if (us > LONG_TURN_US) {
        counts->turns_long++;
        log_verbose("loop.slow", "us=%llu cpu_us=%llu commands=%llu plan_us=%llu faults=%llu",
                    (unsigned long long)us, (unsigned long long)cpu_us,
                    (unsigned long long)(counts->commands - counts->turn_commands),
                    (unsigned long long)(counts->plan_us_total - counts->turn_plan_us),
                    (unsigned long long)faults);
    }
    counts->turn_commands = counts->commands;
    counts->turn_plan_us = counts->plan_us_total;
    counts->turn_us_max = MAX(counts->turn_us_max, us);
    counts->turn_cpu_us_max = MAX(counts->turn_cpu_us_max, cpu_us);
}

void ctl_who_am_i(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    IdentityReply reply = IDENTITY_REPLY__INIT;

    (void)ctl, (void)message;
    reply.has_uid = reply.has_is_operator = reply.has_is_admin = true;
    reply.uid = ask->who->uid;
    reply.user = (char *)(uintptr_t)ask->who->user;
    reply.is_operator = ask->who->is_operator;
    reply.is_admin = ask->who->is_admin;
    ask->ops->reply(ask, &reply.base);
}

void ctl_diag(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    DiagReply reply = DIAG_REPLY__INIT;
    struct state_counts jobs = state_counts(ctl->state);
    struct ctl_counts *counts = &ctl->counts;
    const DiagRequest *request = (const void *)message;

    if (request->reset && !ask->who->is_admin && !ask->who->is_operator) {
        ctl_fail(ask, ERR_PERMISSION);
        return;
    }
    map_each (entry, &ctl->nodes.agents)
        reply.nodes_connected += ((struct agent *)entry->value)->welcomed;
    reply.has_now_us = reply.has_start_us = reply.has_jobs_submitted = reply.has_jobs_started =
        true;
    reply.has_jobs_completed = reply.has_jobs_cancelled = reply.has_jobs_failed = true;
    reply.has_jobs_pending = reply.has_jobs_running = reply.has_log_batches = true;
    reply.has_log_commands = reply.has_plans = reply.has_plan_us_total = true;
    reply.has_plan_us_max = reply.has_plan_us_last = reply.has_nodes_connected = true;
    reply.now_us = ctl_now(ctl);
    reply.start_us = counts->start_us;
    reply.jobs_submitted = counts->submitted;
    reply.jobs_started = counts->started;
    reply.jobs_completed = counts->completed;
    reply.jobs_cancelled = counts->cancelled;
    reply.jobs_failed = counts->failed;
    reply.jobs_pending = jobs.pending;
    reply.jobs_running = jobs.running;
    reply.log_batches = counts->batches;
    reply.log_commands = counts->commands;
    reply.plans = counts->plans;
    reply.plan_us_total = counts->plan_us_total;
    reply.plan_us_max = counts->plan_us_max;
    reply.plan_us_last = counts->plan_us_last;
    reply.has_turns = reply.has_turn_us_max = reply.has_turn_cpu_us_max = reply.has_turns_long =
        true;
    reply.turns = counts->turns;
    reply.turn_us_max = counts->turn_us_max;
    reply.turn_cpu_us_max = counts->turn_cpu_us_max;
    reply.turns_long = counts->turns_long;
    reply.has_since_us = reply.has_plan_last_us = reply.has_plan_starts = true;
    reply.has_plan_backfilled = reply.has_plan_queue_sum = true;
    reply.since_us = MAX(counts->since_us, counts->start_us);
    reply.plan_last_us = counts->plan_last_us;
    reply.plan_starts = counts->plan_starts;
    reply.plan_backfilled = counts->plan_backfilled;
    reply.plan_queue_sum = counts->plan_queue_sum;
    if (ctl->io.diag)
        ctl->io.diag(ctl->io.ctx, &reply, request->reset, ask->arena);
    ask->ops->reply(ask, &reply.base);
    if (request->reset)
        *counts = (struct ctl_counts){ .start_us = counts->start_us, .since_us = ctl_now(ctl) };
}

/* ---- keys of nodes ---- */

void ctl_propose_node_key(struct ctl *ctl, const char *node, const uint8_t key[32],
                          ctl_agreed_fn *done, void *arg)
{
    CmdNodeKey msg = CMD_NODE_KEY__INIT;
    Command command = CTL_COMMAND(NODE_KEY, .node_key = &msg);

    msg.node = (char *)(uintptr_t)node;
    msg.has_key = true;
    msg.key = (ProtobufCBinaryData){ 32, (uint8_t *)(uintptr_t)key };
    ctl_propose_agreed(ctl, &command, done, arg);
}

void ctl_revoke_tokens(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const RevokeTokensRequest *request = (const void *)message;
    CmdRevoke msg = CMD_REVOKE__INIT;
    Command command = CTL_COMMAND(REVOKE, .revoke = &msg);
    struct err err = { 0 };

    if (request->has_uid && request->uid != ask->who->uid && !ask->who->is_admin) {
        err_set(&err, ERR_PERMISSION, "only administrators revoke the tokens of other users");
        ask->ops->fail(ask, &err);
        return;
    }
    msg.has_uid = msg.has_issued_s = true;
    msg.uid = request->has_uid ? request->uid : ask->who->uid;
    msg.issued_s = ctl->io.now_us(ctl->io.ctx) / 1000000;
    ctl_propose_ask(ctl, ask, &command, ctl_done_reply, ask);
}

struct forgetting {
    struct ctl_ask *ask;
    char *node;
};

/* A session that the old key opened ends. */
static void forgotten(struct ctl *ctl, void *arg, const struct events *events,
                      const struct err *err)
{
    struct forgetting *forgetting = arg;
    const struct event *answer = events ? ctl_answer(events) : NULL;
    struct agent *agent = ctl_agent(ctl, forgetting->node);

    if (!err && answer && answer->code == ERR_OK && agent && agent->session)
        ctl->io.hang_up(ctl->io.ctx, agent->session);
    ctl_done_reply(ctl, forgetting->ask, events, err);
}

void ctl_forget_node(struct ctl *ctl, struct ctl_ask *ask, const ProtobufCMessage *message)
{
    const ForgetNodeRequest *request = (const void *)message;
    CmdNodeKey msg = CMD_NODE_KEY__INIT;
    Command command = CTL_COMMAND(NODE_KEY, .node_key = &msg);
    struct err err = { 0 };

    if (str_is_empty(request->node) ||
        (!state_node(ctl->state, request->node) && !state_node_key(ctl->state, request->node))) {
        err_set(&err, ERR_INVALID_NODE_NAME, "there is no node '%s'",
                request->node ? request->node : "");
        ask->ops->fail(ask, &err);
        return;
    }
    msg.node = request->node;
    msg.has_forgotten = msg.forgotten = true;
    struct forgetting *forgetting = ARENA_NEW(ask->arena, struct forgetting);
    *forgetting = (struct forgetting){ ask, arena_strdup(ask->arena, request->node) };
    ctl_propose_ask(ctl, ask, &command, forgotten, forgetting);
}
