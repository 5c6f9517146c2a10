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
    if (ctl->plan.due_in_flight)
        ctl->plan.due_in_flight--;
}

static void propose_due(struct ctl *ctl)
{
    ctl->plan.due_in_flight++;
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
        else if (ctl->must_lead && ctl->lead_proposed)
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
    case CTL_TIMER_STEPS:
        ctl_steps_timer(ctl);
        break;
    case CTL_TIMER_REHASH:
        ctl_rehash_timer(ctl);
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
    ctl->self.name = mem_strdup(options->name);
    ctl->self.address = mem_strdup(options->address ? options->address : "");
    if (options->cluster_id)
        memcpy(ctl->self.cluster_id, options->cluster_id, sizeof(ctl->self.cluster_id));
    if (options->verify_key) {
        memcpy(ctl->self.verify_key, options->verify_key, sizeof(ctl->self.verify_key));
        ctl->self.has_verify_key = true;
    }
    ctl->self.several = options->several;
    if (options->step_secret)
        memcpy(ctl->self.step_secret, options->step_secret, sizeof(ctl->self.step_secret));
    ctl->self.ids_per_command = options->ids_per_command;
    ctl->self.wide_from = options->wide_from;
    ctl->journaled = options->journaled;
    ctl->state = state_new();
    ctl->counts.start_us = ctl_now(ctl);
    events_init(&ctl->applying.events);
    arena_init(&ctl->applying.arena);
    map_init(&ctl->nodes.agents);
    map_init(&ctl->nodes.sessions);
    map_init(&ctl->nodes.granting);
    map_init(&ctl->site.running);
    map_init(&ctl->site.triggers);
    ctl->site.uid = options->uid;
    map_init(&ctl->steps);
    ctl->log = open(open_arg, &ctl_log_owner, ctl, err);
    if (ctl->log)
        ctl_marks_init(ctl, options);
    if (!ctl->log || log_start(ctl->log, err) < 0) {
        ctl_free(ctl);
        return NULL;
    }
    ctl->proposals.last_stamp_us = state_head(ctl->state).time_us;
    ctl->proposals.clock_wall_us = ctl_now(ctl);
    ctl->proposals.clock_mono_us = ctl->nodes.awake_us = ctl_mono(ctl);
    ctl_arm_paused(ctl);
    ctl->sched = sched_new(ctl->state);
    ctl_rehash_arm(ctl);
    if (ctl->must_lead)
        ctl_lead(ctl);
    ctl_flush(ctl);
    return ctl;
}

void ctl_free(struct ctl *ctl)
{
    if (!ctl)
        return;
    if (ctl->log)
        log_free(ctl->log); /* refuses what still waits */
    map_each (entry, &ctl->nodes.agents) {
        struct agent *agent = entry->value;
        if (agent->hello)
            node_hello__free_unpacked(agent->hello, NULL);
        free(agent->name);
        free(agent);
    }
    map_each (entry, &ctl->nodes.granting) {
        struct granting *granting = entry->value;
        bitset_done(&granting->acked);
        free(granting);
    }
    map_done(&ctl->nodes.agents);
    map_done(&ctl->nodes.sessions);
    map_done(&ctl->nodes.granting);
    map_done(&ctl->site.triggers);
    ctl_fanout_done(ctl);
    map_done(&ctl->site.running);
    ctl_resv_done(ctl);
    ctl_steps_done(ctl);
    ctl_listings_gone(ctl);
    ctl_bulk_gone(ctl);
    ctl_proposals_gone(ctl);
    ctl_inventory_gone(ctl);
    vec_done(&ctl->asks.readings);
    while (ctl->asks.forked.len)
        ctl_forked_drop(ctl->asks.forked.items[0]);
    vec_done(&ctl->asks.forked);
    str_done(&ctl->proposals.packed);
    str_done(&ctl->nodes.launched.bytes);
    str_done(&ctl->journal_record);
    str_done(&ctl->journal_job);
    str_done(&ctl->journal);
    vec_done(&ctl->asks.watchers);
    vec_done(&ctl->asks.change_readers);
    vec_done(&ctl->asks.orphans);
    vec_done(&ctl->nodes.telling);
    agree_done(&ctl->marks.agree);
    events_done(&ctl->applying.events);
    arena_done(&ctl->applying.arena);
    if (ctl->sched)
        sched_free(ctl->sched);
    state_free(ctl->state);
    ctl_forget_config(ctl);
    free(ctl->self.name);
    free(ctl->self.address);
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
    return ctl->proposals.taken == ctl->proposals.queue.len;
}

void ctl_close_log(struct ctl *ctl)
{
    log_free(TAKE(ctl->log));
}
