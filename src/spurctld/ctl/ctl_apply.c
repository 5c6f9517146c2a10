/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_apply.c - what the log says: committed commands into the state, answers to the askers
 *
 * (1) The state changes only in apply_one(), from the same bytes that are durable.
 * (2) An asker is answered after its command is durable and applied, never before.
 * (3) When the log refuses a batch (disk full), its askers get the error and nothing was applied;
 *     what the leader itself must still say is found again from the state.
 * (4) A batch whose commands take long, or that comes late in a turn of the loop, is applied in several
 *     turns, at least one command in each.
 * (5) One that is large (a job of thousands of nodes starts) is read in a turn and applied in the next. When that
 *     took long, what follows from it (the planner, effects, the answer) is done in the turn after that, or as
 *     soon as anybody comes who could tell: ctl_settle(). Nobody sees the one without the other.
 */
#include <stdlib.h>
#include <string.h>

#include "core/level.h"
#include "log/snapshot.h"
#include "spurctld/ctl/ctl_priv.h"
#include "sys/log.h"
#include "wire/pb.h"

enum {
    SLICE_US = 1000,
    UNTIL_US = 2800,
    LARGE_BYTES = 64 * 1024, /* (5) */
    LARGE_BYTES_TRIED = 256, /* where every job of two nodes is wide: in the simulator */
    LONG_US = 1000,
};

static struct proposal queue_take(struct ctl *ctl)
{
    struct proposal first = ctl->proposals.queue.items[ctl->proposals.taken++];

    if (ctl->proposals.taken == ctl->proposals.queue.len)
        ctl->proposals.taken = ctl->proposals.queue.len = 0;
    return first;
}

/* Keeps the queue from growing while it never runs empty. */
static void queue_settle(struct ctl *ctl)
{
    if (ctl->proposals.taken < 4096)
        return;
    ctl->proposals.queue.len -= ctl->proposals.taken;
    memmove(ctl->proposals.queue.items, ctl->proposals.queue.items + ctl->proposals.taken,
            ctl->proposals.queue.len * sizeof(*ctl->proposals.queue.items));
    ctl->proposals.taken = 0;
}

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

    if (!ctl->lead_proposed || strcmp(head.leader, ctl->self.name) != 0)
        return;
    ctl->leading = true;
    log_set_epoch(ctl->log, head.epoch);
    log_info("ctl.leads", "name=%s epoch=%llu index=%llu", ctl->self.name,
             (unsigned long long)head.epoch, (unsigned long long)head.index);
    ctl->level_rising = 0;
    ctl_look_at_level(ctl); /* before the configuration, which may need it */
    ctl_config_leading(ctl);
    ctl_nodes_leading(ctl);
    ctl_site_leading(ctl);
    ctl_triggers_look(ctl);
    ctl_cron_leading(ctl);
    ctl_resv_leading(ctl);
}

static void controllers_changed(struct ctl *ctl)
{
    if (ctl->leading)
        ctl_nodes_controllers(ctl);
    ctl_look_at_level(ctl);
    if (ctl->io.controllers)
        ctl->io.controllers(ctl->io.ctx);
}

/* The state is the same after all events of a command: who watches a job hears of it once. */
static void notify_watchers(struct ctl *ctl)
{
    const struct job *last = NULL;

    if (ctl->asks.watchers.len == 0)
        return;
    events_each(event, &ctl->applying.events)
    {
        if (event->job && event->job != last)
            ctl_watchers_notify(ctl, event->job);
        last = event->job ? event->job : last;
    }
}

static void config_changed(struct ctl *ctl)
{
    ctl->configs++;
    ctl_forget_config(ctl); /* a later one is known: ctl_config.c (1) */
}

static void handle_events(struct ctl *ctl)
{
    sched_feed_all(ctl->sched, &ctl->applying.events);
    events_each(event, &ctl->applying.events)
    {
        count_event(ctl, event);
        if (event->kind == EVENT_LEADER)
            became_leader(ctl);
        else if (event->kind == EVENT_CONFIG)
            config_changed(ctl);
        else if (event->kind == EVENT_CONTROLLERS)
            controllers_changed(ctl);
        else if (event->kind == EVENT_DIVERGED)
            log_warn("ctl.check",
                     "index=%llu a leader of an earlier build had another state; the "
                     "marks decide who is right",
                     (unsigned long long)state_head(ctl->state).index);
        else if (event->kind == EVENT_PAYLOAD_DROPPED)
            log_payload_drop(ctl->log, event->digest);
        if (!ctl->leading)
            continue;
        ctl_effect(ctl, event);
        if (event->kind == EVENT_TRIGGER)
            ctl_triggers_look(ctl);
        else if (event->kind == EVENT_JOB_ENDED || event->kind == EVENT_JOB_CLEAN)
            ctl_cron_ended(ctl, event->job);
    }
    notify_watchers(ctl);
    ctl_changes_notify(ctl);
}

/* Reads what comes next, if it is not read yet. 0: nothing does; LOG_APPLY_MORE: something. */
static int open_next(struct ctl *ctl, struct log_walk *walk, struct err *err)
{
    ProtobufCAllocator allocator = pb_arena(&ctl->applying.arena);
    struct opened *opened = &ctl->applying.opened;
    struct log_entry entry;

    opened->fresh = !opened->command;
    if (opened->command)
        return LOG_APPLY_MORE;
    if (!log_walk_next(walk, &entry))
        return 0;
    opened->index = entry.index;
    opened->len = entry.command.len;
    opened->command =
        command__unpack(&allocator, entry.command.len, (const uint8_t *)entry.command.ptr);
    if (!opened->command)
        return err_set(err, ERR_CORRUPT, "entry %llu of the log is not a command",
                       (unsigned long long)entry.index);
    if (level_check(ctl->state, entry.index, opened->command, err) < 0) {
        opened->command = NULL;
        return -(int)err->code;
    }
    return LOG_APPLY_MORE;
}

/* (5) */
static bool is_large(const struct ctl *ctl)
{
    return ctl->applying.opened.fresh &&
           ctl->applying.opened.len > (ctl->self.wide_from ? LARGE_BYTES_TRIED : LARGE_BYTES);
}

static void apply_one(struct ctl *ctl, bool own)
{
    struct opened *opened = &ctl->applying.opened;

    events_clear(&ctl->applying.events);
    core_apply(ctl->state, opened->index, opened->command, &ctl->applying.events); /* (1) */
    ctl_journal(ctl, opened->index, opened->command);
    ctl->proposals.skipped_us -= MIN(ctl->proposals.skipped_us, opened->command->skipped_us);
    if (opened->command->what_case == COMMAND__WHAT_LEVEL)
        ctl_level_changed(ctl);
    if (opened->command->what_case == COMMAND__WHAT_REVOKE && ctl->io.revoked)
        ctl->io.revoked(ctl->io.ctx, opened->command->revoke->issued_s);
    opened->command = NULL;
    opened->applied = true;
    opened->own = own;
}

void ctl_settle(struct ctl *ctl)
{
    struct proposal proposal = { 0 };

    if (!ctl->applying.opened.applied)
        return;
    ctl->applying.opened.applied = false;
    if (ctl->applying.opened.own)
        proposal = queue_take(ctl);
    if (ctl->sched)
        handle_events(ctl);
    if (proposal.done)
        proposal.done(ctl, proposal.arg, &ctl->applying.events, NULL); /* (2) */
    arena_reset(&ctl->applying.arena);
    ctl->counts.commands++;
}

/* (5) */
static bool took_long(const struct ctl *ctl, int64_t begin_us)
{
    return ctl->sched && (ctl_mono(ctl) - begin_us > LONG_US ||
                          (ctl->self.wide_from && ctl->applying.opened.len > LARGE_BYTES_TRIED));
}

/* (4) */
static bool is_enough(struct ctl *ctl, int64_t begin_us)
{
    return ctl_mono(ctl) - begin_us > SLICE_US || ctl_busy_us(ctl) > UNTIL_US;
}

static void has_grown(struct ctl *ctl)
{
    if (ctl->io.grown)
        ctl->io.grown(ctl->io.ctx);
}

static int on_apply(void *ctx, const struct log_batch *batch, struct err *err)
{
    struct ctl *ctl = ctx;
    struct log_walk *walk = &ctl->applying.walk;
    int64_t begin = ctl_mono(ctl);
    int code;

    ctl_settle(ctl);
    if (!walk->batch)
        log_walk_init(walk, batch);
    walk->batch = batch;
    while ((code = open_next(ctl, walk, err)) == LOG_APPLY_MORE && !is_large(ctl)) {
        int64_t from = ctl_mono(ctl);
        apply_one(ctl, batch->own);
        if (took_long(ctl, from))
            break;
        ctl_settle(ctl);
        if (walk->done < batch->count && is_enough(ctl, begin))
            break;
    }
    if (code != LOG_APPLY_MORE) {
        *walk = (struct log_walk){ 0 };
        ctl->counts.batches++;
    }
    if (!ctl->sched)
        has_grown(ctl);
    queue_settle(ctl);
    ctl->proposals.refused = false;
    if (ctl->leading && !ctl->applying.opened.applied) {
        ctl_plan_kick(ctl);
        ctl_arm_due(ctl);
    }
    return code;
}

/* (3) */
static void on_refused(void *ctx, uint32_t count, const struct err *why)
{
    struct ctl *ctl = ctx;

    ctl_settle(ctl);
    log_error("log.refused", "commands=%u text=%s", count, why->text);
    while (count--) {
        struct proposal proposal = queue_take(ctl);
        if (proposal.done)
            proposal.done(ctl, proposal.arg, NULL, why);
    }
    if (ctl->sched)
        sched_abandon_all(ctl->sched);
    ctl->plan.starts_in_flight = ctl->plan.due_in_flight = 0;
    ctl->level_rising = 0;
    ctl->proposals.refused = true;
    ctl->io.timer(ctl->io.ctx, CTL_TIMER_RETRY, ctl_now(ctl) + 500000);
}

static int on_restore(void *ctx, struct snapshot_reader *snapshot, struct err *err)
{
    struct ctl *ctl = ctx;
    struct restore *restore = core_restore_begin();
    uint8_t bytes[65536];
    ssize_t got = 0;
    int code = 0;

    ctl_settle(ctl);
    while (code == 0 && (got = snapshot_read(snapshot, bytes, sizeof(bytes), err)) > 0) {
        code = core_restore_feed(restore, bytes, (size_t)got, err);
        has_grown(ctl);
    }
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
    ctl->configs++;
    ctl_level_changed(ctl);
    if (ctl->io.restored)
        ctl->io.restored(ctl->io.ctx, state_head(state).index);
    if (ctl->sched) {
        sched_free(ctl->sched);
        ctl->sched = sched_new(state);
        if (ctl->io.controllers)
            ctl->io.controllers(ctl->io.ctx);
    }
    return 0;
}

static void on_role(void *ctx, enum log_role role, const char *leader)
{
    struct ctl *ctl = ctx;

    ctl_settle(ctl);
    if (role == LOG_FOLLOWS) {
        if (ctl->leading)
            log_warn("ctl.follows", "leader=%s", leader);
        ctl->leading = ctl->must_lead = ctl->lead_proposed = ctl->marks.asked = false;
        ctl_nodes_following(ctl);
        if (ctl->sched)
            sched_abandon_all(ctl->sched);
        ctl->plan.starts_in_flight = ctl->plan.due_in_flight = 0;
        return;
    }
    ctl->must_lead = true;
    if (ctl->sched)
        ctl_lead(ctl);
}

static void on_failed(void *ctx, const struct err *why)
{
    struct ctl *ctl = ctx;

    ctl->io.fence(ctl->io.ctx, why->text);
}

static void on_need_snapshot(void *ctx, uint64_t index)
{
    struct ctl *ctl = ctx;

    if (ctl->io.need_snapshot)
        ctl->io.need_snapshot(ctl->io.ctx, index);
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

const struct log_owner ctl_log_owner = {
    .restore = on_restore,
    .apply = on_apply,
    .refused = on_refused,
    .role = on_role,
    .failed = on_failed,
    .payload_live = on_payload_live,
    .wake = on_wake,
    .need_snapshot = on_need_snapshot,
};
