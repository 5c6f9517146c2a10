/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_propose.c - commands into the log, stamped
 *
 * (1) The log answers in the order it took; queue[] holds who waits for each answer.
 * (2) Time stands still while nobody leads, and does not pass because a clock is set: neither may
 *     end a job or forget a request id.
 */
#include <string.h>

#include "spurctld/ctl/ctl_priv.h"
#include "sys/log.h"
#include "wire/pb.h"

#define CLOCK_STEP_US INT64_C(1000000) /* less is a clock that is being slewed */

/* What one command did not finish goes on in the next turn; one such command at a time. */
void ctl_arm_due(struct ctl *ctl)
{
    int64_t due = core_next_due(ctl->state), now = ctl_now(ctl);
    bool at_once = due <= state_head(ctl->state).time_us && !ctl->plan.due_in_flight;

    ctl->io.timer(ctl->io.ctx, CTL_TIMER_DUE,
                  due == INT64_MAX ? 0
                  : at_once        ? now
                                   : MAX(due, now + 1000));
}

/*
 * Has the wall clock been set since we last looked? (2): what it was set forward by did not pass,
 * and the next commands say so.
 */
void ctl_look_at_clock(struct ctl *ctl)
{
    int64_t wall = ctl_now(ctl), mono = ctl_mono(ctl);
    int64_t set_by = (wall - ctl->proposals.clock_wall_us) - (mono - ctl->proposals.clock_mono_us);

    ctl->proposals.clock_wall_us = wall;
    ctl->proposals.clock_mono_us = mono;
    if (set_by > -CLOCK_STEP_US && set_by < CLOCK_STEP_US)
        return;
    log_warn("clock.set", "by_ms=%lld", (long long)(set_by / 1000));
    ctl_stopped_for(ctl, set_by); /* a machine that was suspended shows it by its clock alone */
    ctl->proposals.skipped_us += MAX(set_by, 0);
    ctl_granting_unsure(ctl);
    if (ctl->leading)
        ctl_arm_due(ctl); /* timers count from when they were armed */
}

static void stamp(struct ctl *ctl, Command *command)
{
    int64_t last = MAX(ctl->proposals.last_stamp_us, state_head(ctl->state).time_us);

    ctl_look_at_clock(ctl);
    ctl_paused(ctl);
    ctl->proposals.last_stamp_us = MAX(last + 1, ctl->proposals.clock_wall_us);
    command->has_time_us = true;
    command->time_us = ctl->proposals.last_stamp_us;
    command->has_skipped_us = ctl->proposals.skipped_us > 0;
    command->skipped_us = ctl->proposals.skipped_us;
}

static void propose(struct ctl *ctl, Command *command, const struct log_payload *payloads,
                    uint32_t count, struct proposal proposal)
{
    struct err err = { 0 };
    Command *fitted = NULL;

    ctl->settle(ctl); /* a caller may have come another way than by ctl_enter() */
    stamp(ctl, command);
    if (ctl_fit_level(ctl, command, &fitted, &err) < 0) {
        if (proposal.done)
            proposal.done(ctl, proposal.arg, NULL, &err);
        return;
    }
    if (fitted)
        command = fitted;
    size_t len = command__get_packed_size(command);
    str_clear(&ctl->proposals.packed);
    str_reserve(&ctl->proposals.packed, len);
    command__pack(command, (uint8_t *)ctl->proposals.packed.data);
    struct span bytes = { ctl->proposals.packed.data, len };
    int code = ctl_check_late(ctl, command, &err);
    pb_free(fitted);
    if (code < 0 || log_append(ctl->log, bytes, payloads, count, &err) < 0) {
        if (proposal.done)
            proposal.done(ctl, proposal.arg, NULL, &err);
        return;
    }
    vec_push(&ctl->proposals.queue, proposal);
    ctl->proposals.unflushed = true;
}

void ctl_propose_payloads(struct ctl *ctl, Command *command, const struct log_payload *payloads,
                          uint32_t count, ctl_done_fn *done, void *arg)
{
    propose(ctl, command, payloads, count, (struct proposal){ .done = done, .arg = arg });
}

void ctl_propose(struct ctl *ctl, Command *command, ctl_done_fn *done, void *arg)
{
    ctl_propose_payloads(ctl, command, NULL, 0, done, arg);
}

void ctl_propose_own(struct ctl *ctl, Command *command, ctl_done_fn *done, void *arg)
{
    propose(ctl, command, NULL, 0, (struct proposal){ .done = done, .arg = arg, .own = true });
}

/* What the log had under way when it ended; whether it is agreed nobody knows. */
void ctl_proposals_gone(struct ctl *ctl)
{
    struct err err = { .code = ERR_SHUTTING_DOWN };

    for (size_t i = ctl->proposals.taken; i < ctl->proposals.queue.len; i++) {
        const struct proposal *proposal = &ctl->proposals.queue.items[i];
        if (proposal->own)
            proposal->done(ctl, proposal->arg, NULL, &err);
    }
    vec_done(&ctl->proposals.queue);
}

struct agreement {
    ctl_agreed_fn *done;
    void *arg;
};

static void on_agreed(struct ctl *ctl, void *arg, const struct events *events,
                      const struct err *err)
{
    struct agreement *agreement = arg;
    const struct event *answer = events ? ctl_answer(events) : NULL;
    struct err refused = { 0 };

    (void)ctl;
    if (!err && answer && answer->code) {
        err_set(&refused, answer->code, "%s", answer->text ? answer->text : err_text(answer->code));
        err = &refused;
    }
    agreement->done(agreement->arg, err);
    free(agreement);
}

void ctl_propose_agreed(struct ctl *ctl, Command *command, ctl_agreed_fn *done, void *arg)
{
    struct agreement *agreement = done ? NEW(struct agreement) : NULL;

    if (agreement)
        *agreement = (struct agreement){ done, arg };
    ctl_propose(ctl, command, done ? on_agreed : NULL, agreement);
}

void ctl_flush(struct ctl *ctl)
{
    if (!ctl->proposals.unflushed)
        return;
    ctl->proposals.unflushed = false;
    log_flush(ctl->log);
}

void ctl_poll(struct ctl *ctl)
{
    log_poll(ctl->log);
    ctl_flush(ctl);
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

void ctl_stamp_ask(const struct ctl_ask *ask, Command *command)
{
    command->has_uid = true;
    command->uid = ask->who->uid;
    if (ask->who->request_id) {
        command->has_request_id = true;
        command->request_id = (ProtobufCBinaryData){ 16, (uint8_t *)ask->who->request_id };
    }
}

bool ctl_seen(const struct ctl *ctl, const struct ctl_ask *ask, struct request_seen *out)
{
    const struct ctl_who *who = ask->who;

    return who->request_id && core_request_seen(ctl->state, who->uid, who->request_id, out);
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

void ctl_propose_lead(struct ctl *ctl)
{
    CmdLead lead = CMD_LEAD__INIT;
    Command command = CTL_COMMAND(LEAD, .lead = &lead);

    lead.leader = ctl->self.name;
    lead.address = ctl->self.address;
    lead.has_cluster_id = true;
    lead.cluster_id = (ProtobufCBinaryData){ sizeof(ctl->self.cluster_id), ctl->self.cluster_id };
    ctl->lead_proposed = true;
    ctl_propose(ctl, &command, NULL, NULL);
}
