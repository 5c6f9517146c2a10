/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_grants.c - which nodes of a starting job have acknowledged their grants
 *
 * Soft: a leader that comes later hears from each node, in its hello, whether it is ready.
 */
#include <stdlib.h>
#include <string.h>

#include "spurctld/ctl_priv.h"

void ctl_granting_start(struct ctl *ctl, const struct job *job)
{
    struct granting *granting = NEW(struct granting);

    ctl_granting_end(ctl, job->id);
    granting->job_id = job->id;
    granting->attempt = job->attempt;
    bitset_init(&granting->acked, job->run->count);
    map_put_num(&ctl->granting, job->id, granting);
}

void ctl_granting_end(struct ctl *ctl, uint32_t job_id)
{
    struct granting *granting = map_del_num(&ctl->granting, job_id);

    if (granting) {
        bitset_done(&granting->acked);
        free(granting);
    }
}

static void ready_done(struct ctl *ctl, void *arg, const struct events *events,
                       const struct err *err)
{
    struct granting *granting = map_get_num(&ctl->granting, (uint32_t)(uintptr_t)arg);

    (void)events;
    if (err && granting) /* the next hello of one of its nodes proposes it again */
        granting->ready_proposed = false;
}

static void propose_ready(struct ctl *ctl, const struct job *job)
{
    CmdReady ready = CMD_READY__INIT;
    Command command = CTL_COMMAND(READY, .ready = &ready);

    ready.has_job_id = ready.has_attempt = true;
    ready.job_id = job->id;
    ready.attempt = job->attempt;
    ctl_propose(ctl, &command, ready_done, (void *)(uintptr_t)job->id);
}

void ctl_granting_ack(struct ctl *ctl, const struct job *job, const char *node)
{
    struct granting *granting = map_get_num(&ctl->granting, job->id);
    enum job_phase phase = job_phase(job);

    /* Its first node had lost the grant and was given it again: the script is due there. */
    if ((phase == PHASE_RUNNING || phase == PHASE_SUSPENDED) && !ctl_launches_with_grant(job) &&
        strcmp(job->run->parts[0].name, node) == 0)
        ctl_send_launch(ctl, job);
    if (!granting || granting->attempt != job->attempt || !job->run) {
        if (job->run && job_phase(job) != PHASE_CONFIGURING)
            return;
        ctl_granting_start(ctl, job); /* a leader that came later */
        granting = map_get_num(&ctl->granting, job->id);
    }
    for (size_t i = 0; i < job->run->count; i++) {
        if (strcmp(job->run->parts[i].name, node) == 0)
            bitset_add(&granting->acked, i);
    }
    if (bitset_count(&granting->acked) < job->run->count || granting->ready_proposed)
        return;
    granting->ready_proposed = true;
    if (job_phase(job) == PHASE_CONFIGURING)
        propose_ready(ctl, job);
    else
        ctl_granting_end(ctl, job->id);
}
