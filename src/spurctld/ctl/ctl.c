/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl.c - the controller's logic: its life, its timers, and the way in
 */
#include <stdlib.h>
#include <string.h>

#include "spurctld/ctl/ctl_priv.h"

/* What could not be said while the disk was full is due again. */
static void retry_done(struct ctl *ctl, void *arg, const struct events *events,
                       const struct err *err)
{
    (void)arg, (void)events;
    if (!err)
        ctl_reconcile(ctl);
}

static void due_done(struct ctl *ctl, void *arg, const struct events *events, const struct err *err)
{
    (void)arg, (void)events, (void)err;
    if (ctl->due_in_flight)
        ctl->due_in_flight--;
}

static void propose_due(struct ctl *ctl)
{
    ctl->due_in_flight++;
    ctl_propose_time(ctl, NULL, due_done, NULL);
}

/* ---- the way in ---- */

void ctl_enter(struct ctl *ctl)
{
    ctl_settle(ctl);
    ctl_paused(ctl);
}

void ctl_session_open(struct ctl *ctl, uint64_t session, const char *node)
{
    ctl_enter(ctl);
    ctl_nodes_open(ctl, session, node);
}

void ctl_session_message(struct ctl *ctl, uint64_t session, const NodeMessage *message)
{
    ctl_enter(ctl);
    ctl_on_message(ctl, session, message);
}

void ctl_session_closed(struct ctl *ctl, uint64_t session, bool host_answers)
{
    ctl_enter(ctl);
    ctl_nodes_closed(ctl, session, host_answers);
}

void ctl_hook_done(struct ctl *ctl, const char *what, uint32_t job_id, uint32_t attempt,
                   int exit_status)
{
    ctl_enter(ctl);
    ctl_site_done(ctl, what, job_id, attempt, exit_status);
}

/* Does not enter: what was applied last may be about to answer it. */
void ctl_ask_gone(struct ctl *ctl, struct ctl_ask *ask)
{
    ctl_query_gone(ctl, ask);
    ctl_read_gone(ctl, ask);
    ctl_changes_gone(ctl, ask);
    ctl_forked_gone(ctl, ask);
    ask->ops->end(ask);
}

void ctl_timer(struct ctl *ctl, enum ctl_timer timer)
{
    ctl_settle(ctl);
    ctl_look_at_clock(ctl);
    ctl_enter(ctl);
    switch (timer) {
    case CTL_TIMER_DUE:
        if (ctl->leading)
            propose_due(ctl);
        break;
    case CTL_TIMER_PLAN:
        ctl_plan_timer(ctl);
        break;
    case CTL_TIMER_NODES:
        ctl_nodes_timer(ctl);
        break;
    case CTL_TIMER_RETRY:
        if (ctl->leading)
            ctl_propose_time(ctl, NULL, retry_done, NULL); /* does the disk take it now? */
        else if (ctl->must_lead)
            ctl_propose_lead(ctl);
        break;
    case CTL_TIMER_HOLD:
        ctl_hold_timer(ctl);
        break;
    case CTL_TIMER_AWAKE:
        ctl_arm_paused(ctl);
        break;
    case CTL_TIMER_LISTS:
        ctl_lists_timer(ctl);
        ctl_bulk_timer(ctl);
        ctl_inventory_timer(ctl);
        break;
    case CTL_TIMER_TELL:
        ctl_tell_timer(ctl);
        break;
    case CTL_TIMER_WIDE:
        ctl_fanout_timer(ctl);
        break;
    case CTL_TIMERS:
        break;
    }
    ctl_flush(ctl);
}

bool ctl_is_leading(const struct ctl *ctl)
{
    return ctl->leading;
}

/* ---- life ---- */

struct ctl *ctl_new(const struct ctl_io *io, const struct ctl_options *options, ctl_open_log *open,
                    void *open_arg, struct err *err)
{
    struct ctl *ctl = NEW(struct ctl);

    ctl->io = *io;
    ctl->settle = ctl_settle;
    ctl->name = mem_strdup(options->name);
    ctl->address = mem_strdup(options->address ? options->address : "");
    if (options->cluster_id)
        memcpy(ctl->cluster_id, options->cluster_id, sizeof(ctl->cluster_id));
    if (options->verify_key) {
        memcpy(ctl->verify_key, options->verify_key, sizeof(ctl->verify_key));
        ctl->has_verify_key = true;
    }
    ctl->several = options->several;
    if (options->step_secret)
        memcpy(ctl->step_secret, options->step_secret, sizeof(ctl->step_secret));
    ctl->ids_per_command = options->ids_per_command;
    ctl->wide_from = options->wide_from;
    ctl->journaled = options->journaled;
    ctl->state = state_new();
    ctl->counts.start_us = ctl_now(ctl);
    events_init(&ctl->events);
    arena_init(&ctl->apply_arena);
    map_init(&ctl->agents);
    map_init(&ctl->sessions);
    map_init(&ctl->granting);
    map_init(&ctl->site);
    map_init(&ctl->steps);
    ctl->log = open(open_arg, &ctl_log_owner, ctl, err);
    if (!ctl->log || log_start(ctl->log, err) < 0) {
        ctl_free(ctl);
        return NULL;
    }
    ctl->last_stamp_us = state_head(ctl->state).time_us;
    ctl->clock_wall_us = ctl_now(ctl);
    ctl->clock_mono_us = ctl->awake_us = ctl_mono(ctl);
    ctl_arm_paused(ctl);
    ctl->sched = sched_new(ctl->state);
    if (ctl->must_lead)
        ctl_propose_lead(ctl);
    ctl_flush(ctl);
    return ctl;
}

void ctl_free(struct ctl *ctl)
{
    if (!ctl)
        return;
    if (ctl->log)
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
    ctl_fanout_done(ctl);
    map_done(&ctl->site);
    ctl_resv_done(ctl);
    ctl_steps_done(ctl);
    ctl_listings_gone(ctl);
    ctl_bulk_gone(ctl);
    ctl_proposals_gone(ctl);
    ctl_inventory_gone(ctl);
    vec_done(&ctl->readings);
    while (ctl->asides.len)
        ctl_forked_drop(ctl->asides.items[0]);
    vec_done(&ctl->asides);
    str_done(&ctl->packed);
    str_done(&ctl->launched.bytes);
    str_done(&ctl->journal_record);
    str_done(&ctl->journal_job);
    str_done(&ctl->journal);
    vec_done(&ctl->watchers);
    vec_done(&ctl->change_readers);
    vec_done(&ctl->orphans);
    vec_done(&ctl->telling);
    events_done(&ctl->events);
    arena_done(&ctl->apply_arena);
    if (ctl->sched)
        sched_free(ctl->sched);
    state_free(ctl->state);
    ctl_forget_config(ctl);
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

bool ctl_is_idle(const struct ctl *ctl)
{
    return ctl->queue_at == ctl->queue.len;
}

void ctl_close_log(struct ctl *ctl)
{
    log_free(TAKE(ctl->log));
}
