/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_propose.c - commands into the log, committed ones into the state, answers to the askers
 *
 * (1) The log answers in the order it took; queue[] holds who waits for each answer.
 * (2) The state changes only in apply_one(), from the same bytes that are durable.
 * (3) An asker is answered after its command is durable and applied, never before.
 * (4) When the log refuses a batch (disk full), its askers get the error and nothing was applied;
 *     what the leader itself must still say is found again from the state.
 * (5) Time stands still while nobody leads, and does not pass because a clock is set: neither may
 *     end a job or forget a request id.
 */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "log/snapshot.h"
#include "spurctld/ctl_priv.h"
#include "sys/log.h"

#define CLOCK_STEP_US INT64_C(1000000) /* less is a clock that is being slewed */

static void *arena_take(void *data, size_t size)
{
    return arena_alloc(data, size);
}

static void arena_give(void *data, void *pointer)
{
    (void)data, (void)pointer;
}

ProtobufCAllocator ctl_allocator(struct arena *arena)
{
    return (ProtobufCAllocator){ arena_take, arena_give, arena };
}

const struct event *ctl_answer(const struct events *events)
{
    events_each(event, events)
    {
        if (event->kind == EVENT_ANSWER)
            return event;
    }
    return NULL;
}

/* ---- proposing ---- */

static void arm_due(struct ctl *ctl);

/*
 * Has the wall clock been set since we last looked? (5): what it was set forward by did not pass,
 * and the next commands say so.
 */
static void look_at_clock(struct ctl *ctl)
{
    int64_t wall = ctl_now(ctl), mono = ctl_mono(ctl);
    int64_t set_by = (wall - ctl->clock_wall_us) - (mono - ctl->clock_mono_us);

    ctl->clock_wall_us = wall;
    ctl->clock_mono_us = mono;
    if (set_by > -CLOCK_STEP_US && set_by < CLOCK_STEP_US)
        return;
    log_warn("clock.set", "by_ms=%lld", (long long)(set_by / 1000));
    ctl->skipped_us += MAX(set_by, 0);
    if (ctl->leading)
        arm_due(ctl); /* timers count from when they were armed */
}

static void stamp(struct ctl *ctl, Command *command)
{
    int64_t last = MAX(ctl->last_stamp_us, state_head(ctl->state).time_us);

    look_at_clock(ctl);
    ctl->last_stamp_us = MAX(last + 1, ctl->clock_wall_us);
    command->has_time_us = true;
    command->time_us = ctl->last_stamp_us;
    command->has_skipped_us = ctl->skipped_us > 0;
    command->skipped_us = ctl->skipped_us;
}

void ctl_propose_payloads(struct ctl *ctl, Command *command, const struct log_payload *payloads,
                          uint32_t count, ctl_done_fn *done, void *arg)
{
    struct err err = { 0 };

    stamp(ctl, command);
    size_t len = command__get_packed_size(command);
    str_clear(&ctl->packed);
    str_reserve(&ctl->packed, len);
    command__pack(command, (uint8_t *)ctl->packed.data);
    struct span bytes = { ctl->packed.data, len };
    if (log_append(ctl->log, bytes, payloads, count, &err) < 0) {
        if (done)
            done(ctl, arg, NULL, &err);
        return;
    }
    vec_push(&ctl->queue, (struct proposal){ done, arg });
    ctl->unflushed = true;
}

void ctl_propose(struct ctl *ctl, Command *command, ctl_done_fn *done, void *arg)
{
    ctl_propose_payloads(ctl, command, NULL, 0, done, arg);
}

void ctl_flush(struct ctl *ctl)
{
    if (!ctl->unflushed)
        return;
    ctl->unflushed = false;
    log_flush(ctl->log);
}

void ctl_poll(struct ctl *ctl)
{
    log_poll(ctl->log);
    ctl_flush(ctl);
}

static struct proposal queue_take(struct ctl *ctl)
{
    struct proposal first = ctl->queue.items[ctl->queue_at++];

    if (ctl->queue_at == ctl->queue.len)
        ctl->queue_at = ctl->queue.len = 0;
    return first;
}

/* Keeps the queue from growing while it never runs empty. */
static void queue_settle(struct ctl *ctl)
{
    if (ctl->queue_at < 4096)
        return;
    ctl->queue.len -= ctl->queue_at;
    memmove(ctl->queue.items, ctl->queue.items + ctl->queue_at,
            ctl->queue.len * sizeof(*ctl->queue.items));
    ctl->queue_at = 0;
}

void ctl_stamp_ask(const struct ctl_ask *ask, Command *command)
{
    command->has_uid = true;
    command->uid = ask->who->uid;
    if (ask->who->request_id) {
        command->has_request_id = true;
        command->request_id = (ProtobufCBinaryData){ 16, (uint8_t *)ask->who->request_id };
    }
}

void ctl_propose_ask(struct ctl *ctl, struct ctl_ask *ask, Command *command, ctl_done_fn *done,
                     void *arg)
{
    ctl_stamp_ask(ask, command);
    ctl_propose(ctl, command, done, arg);
}

void ctl_done_reply(struct ctl *ctl, void *arg, const struct events *events, const struct err *err)
{
    struct ctl_ask *ask = arg;
    DoneReply reply = DONE_REPLY__INIT;

    (void)ctl;
    if (err) {
        ask->ops->fail(ask, err);
        return;
    }
    const struct event *answer = ctl_answer(events);
    if (answer->code) {
        struct err refused = { 0 };
        err_set(&refused, answer->code, "%s", answer->text ? answer->text : err_text(answer->code));
        ask->ops->fail(ask, &refused);
        return;
    }
    reply.name = (char *)answer->text;
    ask->ops->reply(ask, &reply.base);
}

/* ---- applying ---- */

static void count_event(struct ctl *ctl, const struct event *event)
{
    struct ctl_counts *counts = &ctl->counts;

    if (event->kind == EVENT_JOB_SUBMITTED)
        counts->submitted++;
    else if (event->kind == EVENT_JOB_STARTED)
        counts->started++;
    else if (event->kind == EVENT_JOB_ENDED && event->end_state == JOB_COMPLETED)
        counts->completed++;
    else if (event->kind == EVENT_JOB_ENDED && event->end_state == JOB_CANCELLED)
        counts->cancelled++;
    else if (event->kind == EVENT_JOB_ENDED)
        counts->failed++;
}

static void became_leader(struct ctl *ctl)
{
    struct state_head head = state_head(ctl->state);

    if (!ctl->lead_proposed || strcmp(head.leader, ctl->name) != 0)
        return;
    ctl->leading = true;
    log_set_epoch(ctl->log, head.epoch);
    log_info("ctl.leads", "name=%s epoch=%llu index=%llu", ctl->name,
             (unsigned long long)head.epoch, (unsigned long long)head.index);
    if (ctl->config)
        ctl_set_config(ctl, ctl->config, ctl->config_reconfigure);
    ctl_nodes_leading(ctl);
}

static void handle_events(struct ctl *ctl)
{
    sched_feed_all(ctl->sched, &ctl->events);
    events_each(event, &ctl->events)
    {
        count_event(ctl, event);
        if (event->kind == EVENT_LEADER)
            became_leader(ctl);
        else if (event->kind == EVENT_DIVERGED)
            ctl->io.fence(ctl->io.ctx, "the state differs from the other controllers'");
        else if (event->kind == EVENT_PAYLOAD_DROPPED)
            log_payload_drop(ctl->log, event->digest);
        if (ctl->leading)
            ctl_effect(ctl, event);
        if (event->job)
            ctl_watchers_notify(ctl, event->job);
    }
}

static void propose_lead(struct ctl *ctl)
{
    CmdLead lead = CMD_LEAD__INIT;
    Command command = CTL_COMMAND(LEAD, .lead = &lead);

    lead.leader = ctl->name;
    lead.address = ctl->address;
    lead.has_cluster_id = true;
    lead.cluster_id = (ProtobufCBinaryData){ sizeof(ctl->cluster_id), ctl->cluster_id };
    ctl->lead_proposed = true;
    ctl_propose(ctl, &command, NULL, NULL);
}

static int apply_one(struct ctl *ctl, const struct log_entry *entry,
                     const struct proposal *proposal, struct err *err)
{
    ProtobufCAllocator allocator = ctl_allocator(&ctl->apply_arena);
    Command *command =
        command__unpack(&allocator, entry->command.len, (const uint8_t *)entry->command.ptr);

    if (!command)
        return err_set(err, ERR_CORRUPT, "entry %llu of the log is no command",
                       (unsigned long long)entry->index);
    events_clear(&ctl->events);
    core_apply(ctl->state, entry->index, command, &ctl->events); /* (2) */
    ctl->skipped_us -= MIN(ctl->skipped_us, command->skipped_us);
    if (ctl->sched)
        handle_events(ctl);
    if (proposal && proposal->done)
        proposal->done(ctl, proposal->arg, &ctl->events, NULL); /* (3) */
    arena_reset(&ctl->apply_arena);
    ctl->counts.commands++;
    return 0;
}

static void arm_due(struct ctl *ctl)
{
    int64_t due = core_next_due(ctl->state);

    ctl->io.timer(ctl->io.ctx, CTL_TIMER_DUE, due == INT64_MAX ? 0 : MAX(due, ctl_now(ctl) + 1000));
}

static int on_apply(void *ctx, const struct log_batch *batch, struct err *err)
{
    struct ctl *ctl = ctx;
    struct log_walk walk;
    struct log_entry entry;
    int code = 0;

    log_walk_init(&walk, batch);
    while (code == 0 && log_walk_next(&walk, &entry)) {
        struct proposal proposal = { 0 };
        if (batch->own)
            proposal = queue_take(ctl);
        code = apply_one(ctl, &entry, &proposal, err);
    }
    queue_settle(ctl);
    ctl->counts.batches++;
    ctl->refused = false;
    if (ctl->leading) {
        ctl_plan_kick(ctl);
        arm_due(ctl);
    }
    return code;
}

/* (4) */
static void on_refused(void *ctx, uint32_t count, const struct err *why)
{
    struct ctl *ctl = ctx;

    log_error("log.refused", "commands=%u text=%s", count, why->text);
    while (count--) {
        struct proposal proposal = queue_take(ctl);
        if (proposal.done)
            proposal.done(ctl, proposal.arg, NULL, why);
    }
    if (ctl->sched)
        sched_abandon_all(ctl->sched);
    ctl->starts_in_flight = 0;
    ctl->refused = true;
    ctl->io.timer(ctl->io.ctx, CTL_TIMER_RETRY, ctl_now(ctl) + 500000);
}

static int on_restore(void *ctx, struct snapshot_reader *snapshot, struct err *err)
{
    struct ctl *ctl = ctx;
    struct restore *restore = core_restore_begin();
    uint8_t bytes[65536];
    ssize_t got = 0;
    int code = 0;

    while (code == 0 && (got = snapshot_read(snapshot, bytes, sizeof(bytes), err)) > 0)
        code = core_restore_feed(restore, bytes, (size_t)got, err);
    if (got < 0)
        code = (int)got;
    struct err ignored;
    struct state *state = core_restore_end(restore, code < 0 ? &ignored : err);
    if (code < 0 || !state) {
        state_free(state);
        return code < 0 ? code : -(int)err->code;
    }
    state_free(ctl->state);
    ctl->state = state;
    if (ctl->sched) {
        sched_free(ctl->sched);
        ctl->sched = sched_new(state);
    }
    return 0;
}

static void on_role(void *ctx, enum log_role role, const char *leader)
{
    struct ctl *ctl = ctx;

    if (role == LOG_FOLLOWS) {
        if (ctl->leading)
            log_warn("ctl.follows", "leader=%s", leader);
        ctl->leading = ctl->must_lead = ctl->lead_proposed = false;
        ctl_nodes_following(ctl);
        if (ctl->sched)
            sched_abandon_all(ctl->sched);
        ctl->starts_in_flight = 0;
        return;
    }
    ctl->must_lead = true;
    if (ctl->sched)
        propose_lead(ctl);
}

static void on_failed(void *ctx, const struct err *why)
{
    struct ctl *ctl = ctx;

    ctl->io.fence(ctl->io.ctx, why->text);
}

static bool on_payload_live(void *ctx, const uint8_t digest[LOG_DIGEST_BYTES])
{
    struct ctl *ctl = ctx;

    return state_has_payload(ctl->state, digest);
}

static void on_wake(void *ctx)
{
    struct ctl *ctl = ctx;

    ctl->io.wake(ctl->io.ctx);
}

static const struct log_owner owner = {
    .restore = on_restore,
    .apply = on_apply,
    .refused = on_refused,
    .role = on_role,
    .failed = on_failed,
    .payload_live = on_payload_live,
    .wake = on_wake,
};

/* What could not be said while the disk was full is due again. */
static void retry_done(struct ctl *ctl, void *arg, const struct events *events,
                       const struct err *err)
{
    (void)arg, (void)events;
    if (!err)
        ctl_reconcile(ctl);
}

void ctl_timer(struct ctl *ctl, enum ctl_timer timer)
{
    CmdTime time = CMD_TIME__INIT;
    Command command = CTL_COMMAND(TIME, .time = &time);

    look_at_clock(ctl);
    switch (timer) {
    case CTL_TIMER_DUE:
        if (ctl->leading)
            ctl_propose(ctl, &command, NULL, NULL);
        break;
    case CTL_TIMER_PLAN:
        ctl_plan_timer(ctl);
        break;
    case CTL_TIMER_NODES:
        ctl_nodes_timer(ctl);
        break;
    case CTL_TIMER_RETRY:
        if (ctl->leading)
            ctl_propose(ctl, &command, retry_done, NULL); /* does the disk take it now? */
        else if (ctl->must_lead)
            propose_lead(ctl);
        break;
    case CTL_TIMER_HOLD:
        ctl_hold_timer(ctl);
        break;
    case CTL_TIMERS:
        break;
    }
    ctl_flush(ctl);
}

/* ---- leading and configuration ---- */

bool ctl_is_leading(const struct ctl *ctl)
{
    return ctl->leading;
}

static Config *config_copy(const Config *config)
{
    size_t len = config__get_packed_size(config);
    uint8_t *bytes = mem_new(len + 1);

    config__pack(config, bytes);
    Config *copy = config__unpack(NULL, len, bytes);
    free(bytes);
    return copy;
}

void ctl_set_config(struct ctl *ctl, const Config *config, bool reconfigure)
{
    const Config *present = state_config(ctl->state);
    CmdConfig change = CMD_CONFIG__INIT;
    Command command = CTL_COMMAND(CONFIG, .config = &change);

    if (!ctl->leading) {
        Config *copy = config_copy(config);
        if (ctl->config)
            config__free_unpacked(ctl->config, NULL);
        ctl->config = copy;
        ctl->config_reconfigure = reconfigure;
        return;
    }
    if (!reconfigure && str_eq(present->hash, config->hash))
        return;
    change.config = (Config *)config;
    change.has_reconfigure = true;
    change.reconfigure = reconfigure;
    ctl_propose(ctl, &command, NULL, NULL);
}

/* ---- life ---- */

struct ctl *ctl_new(const struct ctl_io *io, const struct ctl_options *options, ctl_open_log *open,
                    void *open_arg, struct err *err)
{
    struct ctl *ctl = NEW(struct ctl);

    ctl->io = *io;
    ctl->name = mem_strdup(options->name);
    ctl->address = mem_strdup(options->address ? options->address : "");
    if (options->cluster_id)
        memcpy(ctl->cluster_id, options->cluster_id, sizeof(ctl->cluster_id));
    if (options->verify_key) {
        memcpy(ctl->verify_key, options->verify_key, sizeof(ctl->verify_key));
        ctl->has_verify_key = true;
    }
    if (options->step_secret)
        memcpy(ctl->step_secret, options->step_secret, sizeof(ctl->step_secret));
    ctl->state = state_new();
    ctl->counts.start_us = ctl_now(ctl);
    events_init(&ctl->events);
    arena_init(&ctl->apply_arena);
    map_init(&ctl->agents);
    map_init(&ctl->sessions);
    map_init(&ctl->granting);
    ctl->log = open(open_arg, &owner, ctl, err);
    if (!ctl->log || log_start(ctl->log, err) < 0) {
        ctl_free(ctl);
        return NULL;
    }
    ctl->last_stamp_us = state_head(ctl->state).time_us;
    ctl->clock_wall_us = ctl_now(ctl);
    ctl->clock_mono_us = ctl_mono(ctl);
    ctl->sched = sched_new(ctl->state);
    if (ctl->must_lead)
        propose_lead(ctl);
    ctl_flush(ctl);
    return ctl;
}

void ctl_free(struct ctl *ctl)
{
    if (!ctl)
        return;
    log_free(ctl->log); /* refuses what still waits */
    map_each (entry, &ctl->agents) {
        struct agent *agent = entry->value;
        if (agent->hello)
            node_hello__free_unpacked(agent->hello, NULL);
        free(agent->name);
        free(agent);
    }
    map_each (entry, &ctl->granting) {
        struct granting *granting = entry->value;
        bitset_done(&granting->acked);
        free(granting);
    }
    map_done(&ctl->agents);
    map_done(&ctl->sessions);
    map_done(&ctl->granting);
    ctl_listings_gone(ctl);
    vec_done(&ctl->queue);
    str_done(&ctl->packed);
    vec_done(&ctl->watchers);
    vec_done(&ctl->orphans);
    events_done(&ctl->events);
    arena_done(&ctl->apply_arena);
    if (ctl->sched)
        sched_free(ctl->sched);
    state_free(ctl->state);
    if (ctl->config)
        config__free_unpacked(ctl->config, NULL);
    free(ctl->name);
    free(ctl->address);
    free(ctl);
}

const struct state *ctl_state(const struct ctl *ctl)
{
    return ctl->state;
}

struct log *ctl_log(struct ctl *ctl)
{
    return ctl->log;
}
