/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reboot.c - nodes that are to be started anew: asked for, told so, back again
 *
 * (1) A node that somebody wants rebooted goes on (REBOOT_REQUESTED) until nobody holds anything there. Then it is
 *     told (REBOOT_ISSUED) and cannot be used until it says hello from another boot.
 * (2) ASAP drains it meanwhile, and that drain ends with the reboot or with its cancellation. One that was drained
 *     before stays so, unless RESUME is what follows.
 * (3) The nodes of a job that wants them rebooted are told so when it starts, and hear of the job when all are back.
 *     It has them for itself.
 * (4) Who is not back after resume_timeout is down.
 * (5) A node may also come back by itself (ResumeAfter), as if an administrator resumed it then.
 */
#include "core/job/jobs.h"

#include <stdio.h>

static const uint32_t ASKED = NODE_FLAG_REBOOT_REQUESTED | NODE_FLAG_REBOOT_ISSUED;
enum { DEFAULT_RESUME_TIMEOUT_S = 60 };

static int64_t due_of(const struct state *state, const struct node *node)
{
    const Config *config = state->config;
    int64_t limit_s =
        config->resume_timeout_s ? config->resume_timeout_s : DEFAULT_RESUME_TIMEOUT_S;

    return node->flags & NODE_FLAG_REBOOT_ISSUED ? node->reboot.issued_us + limit_s * US_PER_S
                                                 : NEVER;
}

static int64_t resume_of(const struct node *node)
{
    return node->resume_us ? node->resume_us : NEVER;
}

void reboots_next(struct state *state)
{
    state->next_reboot_us = NEVER;
    vec_each (struct node *, at, &state->nodes)
        state->next_reboot_us = MIN(state->next_reboot_us, MIN(due_of(state, *at), resume_of(*at)));
}

/* What it says of the node already stays in front, and so does who said it. */
static void add_reason(struct state *state, struct node *node, const char *what)
{
    char text[512];

    if (str_is_empty(node->reason)) {
        node_set_reason(state, node, what, "slurm", 0);
        return;
    }
    snprintf(text, sizeof(text), "%.450s : %s", node->reason, what);
    job_set_text(&node->reason, text);
    node->reason_us = state->time_us;
    node_touch(state, node);
}

static void issue(struct state *state, struct node *node, struct events *out)
{
    node->flags = (node->flags & ~ASKED) | NODE_FLAG_REBOOT_ISSUED;
    node->reboot.issued_us = state->time_us;
    state->next_reboot_us = MIN(state->next_reboot_us, due_of(state, node));
    add_reason(state, node, "reboot issued");
    emit_node(out, EVENT_NODE_DOWN, node);
    emit_node(out, EVENT_NODE_REBOOT, node);
}

void reboot_idle(struct state *state, struct node *node, struct events *out)
{
    if (node->flags & NODE_FLAG_REBOOT_REQUESTED && !node->jobs.len && !node->removed) /* (1) */
        issue(state, node, out);
}

bool reboot_ask(struct state *state, struct node *node, bool asap, unsigned next)
{
    if (node->state == NODE_FUTURE || node->flags & NODE_FLAG_REBOOT_ISSUED)
        return false;
    node->flags |= NODE_FLAG_REBOOT_REQUESTED;
    if (next)
        node->reboot.next = next;
    if (asap && !(node->flags & NODE_FLAG_DRAIN)) {
        node->flags |= NODE_FLAG_DRAIN;
        node->reboot.drained = true; /* (2) */
    }
    node_touch(state, node);
    return true;
}

/* All nodes of a job came back; (3). */
static void boot_is_over(struct state *state, struct job *job, struct events *out)
{
    if (job->run->boot != SITE_DUE)
        return;
    for (unsigned i = 0; i < job->run->count; i++) {
        const struct node *node = job->run->parts[i].node;
        if (node && node->flags & NODE_FLAG_REBOOT_ISSUED)
            return;
    }
    job->run->boot = SITE_DONE;
    job_touch(state, job);
    if (job->run->prolog != SITE_DUE && job_phase(job) == PHASE_CONFIGURING)
        emit_job(out, EVENT_JOB_PREPARED, job);
}

void reboot_forget(struct state *state, struct node *node, struct events *out)
{
    bool issued = node->flags & NODE_FLAG_REBOOT_ISSUED;

    if (!(node->flags & ASKED))
        return;
    node->flags &= ~ASKED;
    if (node->reboot.drained)
        node->flags &= ~(uint32_t)NODE_FLAG_DRAIN;
    node->reboot = (struct node_reboot){ 0 };
    node_touch(state, node);
    if (issued)
        reboots_next(state);
    for (size_t i = 0; issued && i < node->jobs.len; i++)
        boot_is_over(state, node->jobs.items[i], out);
}

void reboot_back(struct state *state, struct node *node, struct events *out)
{
    unsigned next = node->reboot.next;

    if (!(node->flags & NODE_FLAG_REBOOT_ISSUED))
        return;
    if (next == REBOOT_TO_DOWN)
        node->state = NODE_DOWN;
    else if (next == REBOOT_TO_RESUME && node->state == NODE_DOWN)
        node->state = NODE_IDLE;
    if (next == REBOOT_TO_RESUME)
        node->flags &= ~(uint32_t)(NODE_FLAG_DRAIN | NODE_FLAG_FAIL);
    reboot_forget(state, node, out);
    if (node->state == NODE_DOWN || node->flags & (NODE_FLAG_DRAIN | NODE_FLAG_FAIL))
        add_reason(state, node, "reboot complete");
    else
        node_set_reason(state, node, NULL, NULL, 0);
}

bool reboot_is_awaited(const struct job *job)
{
    return job->run && job->run->boot == SITE_DUE && job_phase(job) == PHASE_CONFIGURING;
}

void reboot_begins(struct state *state, struct job *job, struct events *out)
{
    if (!job->shape->reboot || str_is_empty(state->config->reboot_program))
        return;
    job->run->boot = SITE_DUE;
    for (unsigned i = 0; i < job->run->count; i++)
        issue(state, job->run->parts[i].node, out);
}

void reboot_ends(struct job *job)
{
    if (job->run && job->run->boot == SITE_DUE)
        job->run->boot = SITE_DONE;
}

bool reboot_was_late(const struct node *node)
{
    return str_ends(node->reason ? node->reason : "", "reboot timed out");
}

void reboots_due(struct state *state, struct events *out)
{
    if (state->next_reboot_us > state->time_us)
        return;
    vec_each (struct node *, at, &state->nodes) {
        struct node *node = *at;
        if (resume_of(node) <= state->time_us) { /* (5) */
            node_resume(state, node, out);
            emit_node(out, node_is_usable(node) ? EVENT_NODE_UP : EVENT_NODE_CHANGED, node);
        }
        if (due_of(state, node) > state->time_us)
            continue;
        node->flags &= ~ASKED; /* (4); a drain of its own stays */
        node->reboot = (struct node_reboot){ 0 };
        node->state = NODE_DOWN;
        add_reason(state, node, "reboot timed out");
        node_lose_jobs(state, node, out);
        emit_node(out, EVENT_NODE_DOWN, node);
    }
    reboots_next(state);
}

/* Nobody led, or the clock was set: nodes could not be heard. */
void reboots_skipped(struct state *state, int64_t us)
{
    if (state->next_reboot_us == NEVER)
        return;
    vec_each (struct node *, at, &state->nodes) {
        if (!((*at)->flags & NODE_FLAG_REBOOT_ISSUED))
            continue;
        (*at)->reboot.issued_us += us;
        node_touch(state, *at);
    }
    reboots_next(state);
}
