/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_fanout.c - what all nodes of a job hear, some of them in each turn of the loop
 *
 * (1) A job of a few nodes tells them at once. What those of a wider one are to hear waits in a row, first in
 *     first out; its nodes are told SENDS of them in a turn, or as many as take SLICE_US.
 * (2) Whether a node is to hear it follows from the state at that moment: the attempt may be over, the node
 *     given back. A node that is not connected is told what is due when it says hello, as ever.
 * (3) When a job ends, what waits for it is given up: its nodes hear that alone.
 * (4) Grants of a wide job are large, each has all nodes: no more than FLIGHT_BYTES of them are under
 *     way that nobody acknowledged. Those of whom none answers for PATIENCE_US are not waited for; other
 *     jobs go on meanwhile.
 */
#include <stdlib.h>

#include "spurctld/ctl/ctl_priv.h"

enum {
    AT_ONCE = 64,
    SENDS = 256,
    SLICE_US = 1000,
    UNTIL_US = 2500,
    FLIGHT_BYTES = 64 << 20, /* (4) */
    FLIGHT_LEAST = 64,
    LOOK_US = 20000,
    PATIENCE_US = 1000000,
};

static void again(struct ctl *ctl, int64_t after_us)
{
    ctl->io.timer(ctl->io.ctx, CTL_TIMER_WIDE, ctl_now(ctl) + after_us);
}

static void drop(struct ctl *ctl, size_t at)
{
    struct ctl_fanout *wide = ctl->nodes.wide.items[at];

    str_done(&wide->common);
    free(wide);
    vec_remove(&ctl->nodes.wide, at);
}

void ctl_fanout_done(struct ctl *ctl)
{
    while (ctl->nodes.wide.len)
        drop(ctl, ctl->nodes.wide.len - 1);
    vec_done(&ctl->nodes.wide);
}

void ctl_fanout_forget(struct ctl *ctl, uint32_t job_id)
{
    for (size_t i = ctl->nodes.wide.len; i-- > 0;) {
        if (ctl->nodes.wide.items[i]->job_id == job_id)
            drop(ctl, i);
    }
}

/* (2); what was packed before the job lost a node is packed again. */
static void grant_part(struct ctl *ctl, const struct job *job, size_t part, struct ctl_fanout *wide)
{
    uint32_t version = ctl_grant_version(job);

    if (!job->run->parts[part].node || job->run->parts[part].left)
        return;
    if (wide->version != version)
        str_clear(&wide->common);
    wide->version = version;
    ctl_send_grant(ctl, job, part, &wide->common);
}

static void tell_part(struct ctl *ctl, const struct job *job, size_t part, struct ctl_fanout *wide)
{
    const struct job_part *at = &job->run->parts[part];

    switch (wide->what) {
    case WIDE_GRANT:
        grant_part(ctl, job, part, wide);
        break;
    case WIDE_REVOKE:
        if (at->node)
            ctl_send_revoke(ctl, job, part);
        break;
    case WIDE_SMALLER:
        if (at->node && at->left)
            ctl_send_revoke(ctl, job, part);
        else if (job_phase(job) != PHASE_CONFIGURING)
            grant_part(ctl, job, part, wide);
        break;
    case WIDE_MESSAGE:
        ctl_send_part(ctl, job, part, &wide->message);
        break;
    }
}

static struct ctl_fanout *wide_new(const struct job *job, enum fanout_what what)
{
    struct ctl_fanout *wide = NEW(struct ctl_fanout);

    *wide = (struct ctl_fanout){ .job_id = job->id, .attempt = job->attempt, .what = what };
    return wide;
}

/* A copy: what it is about has no pointers in it. */
static void keep_message(struct ctl_fanout *wide, const CtlMessage *message)
{
    wide->message = *message;
    switch (message->what_case) {
    case CTL_MESSAGE__WHAT_SIGNAL:
        wide->about.signal = *message->signal;
        wide->message.signal = &wide->about.signal;
        break;
    case CTL_MESSAGE__WHAT_FREEZE:
        wide->about.freeze = *message->freeze;
        wide->message.freeze = &wide->about.freeze;
        break;
    default:
        wide->about.limit = *message->limit;
        wide->message.limit = &wide->about.limit;
        break;
    }
}

void ctl_fanout_tell(struct ctl *ctl, const struct job *job, enum fanout_what what,
                     const CtlMessage *message)
{
    if (!job->run)
        return;
    if (what == WIDE_REVOKE)
        ctl_fanout_forget(ctl, job->id); /* (3) */
    struct ctl_fanout *wide = wide_new(job, what);
    if (message)
        keep_message(wide, message);
    if (job->run->count > (ctl->self.wide_from ? ctl->self.wide_from : AT_ONCE)) {
        vec_push(&ctl->nodes.wide, wide);
        again(ctl, 0);
        return;
    }
    for (size_t i = 0; i < job->run->count; i++)
        tell_part(ctl, job, i, wide);
    str_done(&wide->common);
    free(wide);
}

/* (4) */
static bool must_wait(struct ctl *ctl, struct ctl_fanout *wide)
{
    size_t most =
        ctl->self.wide_from ? 1 : MAX(FLIGHT_BYTES / MAX(wide->common.len, 1), FLIGHT_LEAST);
    size_t answered = ctl_granting_acked(ctl, wide->job_id) + wide->lost;
    size_t flying = wide->next - MIN(answered, wide->next);

    if (wide->what != WIDE_GRANT || flying < most || answered != wide->answered) {
        wide->answered = answered;
        wide->moved_us = ctl_mono(ctl);
        return wide->what == WIDE_GRANT && flying >= most;
    }
    if (ctl_mono(ctl) - wide->moved_us < PATIENCE_US)
        return true;
    wide->lost += flying; /* not waited for any longer */
    return false;
}

/* It has to wait for something that the same job is to hear before. */
static bool is_behind(const struct ctl *ctl, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (ctl->nodes.wide.items[i]->job_id == ctl->nodes.wide.items[at]->job_id)
            return true;
    }
    return false;
}

void ctl_fanout_timer(struct ctl *ctl)
{
    int64_t begin = ctl_mono(ctl);
    unsigned most = ctl->self.wide_from ? 1 : SENDS, sent = 0;

    for (size_t at = 0; at < ctl->nodes.wide.len;) {
        struct ctl_fanout *wide = ctl->nodes.wide.items[at];
        const struct job *job = state_job(ctl->state, wide->job_id);
        if (!job || !job->run || job->attempt != wide->attempt || wide->next >= job->run->count) {
            drop(ctl, at);
        } else if (is_behind(ctl, at) || must_wait(ctl, wide)) {
            at++;
        } else if (sent == most || ctl_mono(ctl) - begin > SLICE_US ||
                   ctl_busy_us(ctl) > UNTIL_US) {
            again(ctl, 0);
            return;
        } else {
            tell_part(ctl, job, wide->next++, wide);
            sent++;
        }
    }
    if (ctl->nodes.wide.len)
        again(ctl, LOOK_US);
}
