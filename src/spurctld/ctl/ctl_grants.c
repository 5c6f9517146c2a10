/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ctl_grants.c - which nodes of a starting job have acknowledged their grants
 *
 * Soft: a leader that comes later hears from each node, in its hello, whether it is ready.
 */
#include <stdlib.h>
#include <string.h>

#include "spurctld/ctl/ctl_priv.h"

struct granting *ctl_granting_start(struct ctl *ctl, const struct job *job)
{
    struct granting *granting =
        mem_new(sizeof(*granting) + job->run->count * sizeof(granting->sent_us[0]));

    ctl_granting_end(ctl, job->id);
    granting->job_id = job->id;
    granting->attempt = job->attempt;
    bitset_init(&granting->acked, job->run->count);
    map_put_num(&ctl->nodes.granting, job->id, granting);
    return granting;
}

void ctl_granting_end(struct ctl *ctl, uint32_t job_id)
{
    struct granting *granting = map_del_num(&ctl->nodes.granting, job_id);

    if (granting) {
        bitset_done(&granting->acked);
        free(granting);
    }
}

void ctl_granting_sent(struct ctl *ctl, const struct job *job, size_t part)
{
    struct granting *granting = map_get_num(&ctl->nodes.granting, job->id);

    if (granting && granting->attempt == job->attempt && !granting->sent_us[part])
        granting->sent_us[part] = MAX(ctl_mono(ctl), 1);
}

void ctl_granting_unsure(struct ctl *ctl)
{
    map_each (entry, &ctl->nodes.granting)
        ((struct granting *)entry->value)->unsure = true;
}

static bool never_sent(struct ctl *ctl, const struct job *job, size_t part, int64_t boot_us)
{
    const struct granting *granting = map_get_num(&ctl->nodes.granting, job->id);

    if (!granting || granting->attempt != job->attempt || !granting->own ||
        bitset_has(&granting->acked, part))
        return false;
    int64_t sent_us = granting->sent_us[part];
    return !sent_us || (boot_us != INT64_MIN && boot_us < sent_us && !granting->unsure);
}

uint32_t *ctl_unstarted(struct ctl *ctl, const struct node *node, int64_t boot_us, size_t *count)
{
    uint32_t *ids = NEW_ARRAY(uint32_t, node->jobs.len + 1);

    *count = 0;
    vec_each (struct job *, at, &node->jobs) {
        const struct job *job = *at;
        size_t part = ctl_part_of(ctl, job, node->spec->name);
        if (part < job->run->count && never_sent(ctl, job, part, boot_us))
            ids[(*count)++] = job->id;
    }
    return ids;
}

size_t ctl_granting_acked(struct ctl *ctl, uint32_t job_id)
{
    const struct granting *granting = map_get_num(&ctl->nodes.granting, job_id);

    return granting ? granting->acks : 0;
}

static void ready_done(struct ctl *ctl, void *arg, const struct events *events,
                       const struct err *err)
{
    struct granting *granting = map_get_num(&ctl->nodes.granting, (uint32_t)(uintptr_t)arg);

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
    struct granting *granting = map_get_num(&ctl->nodes.granting, job->id);
    enum job_phase phase = job_phase(job);

    /* Its first node had lost the grant and was given it again: the script is due there. */
    if ((phase == PHASE_RUNNING || phase == PHASE_SUSPENDED) && !ctl_launches_with_grant(job) &&
        strcmp(job->run->parts[0].name, node) == 0)
        ctl_send_launch(ctl, job);
    if (!granting || granting->attempt != job->attempt || !job->run) {
        if (job->run && job_phase(job) != PHASE_CONFIGURING)
            return;
        granting = ctl_granting_start(ctl, job); /* a leader that came later */
    }
    size_t part = ctl_part_of(ctl, job, node);
    if (part < job->run->count && !bitset_has(&granting->acked, part)) {
        bitset_add(&granting->acked, part);
        granting->acks++;
    }
    if (granting->acks < job->run->count || granting->ready_proposed)
        return;
    granting->ready_proposed = true;
    if (job_phase(job) == PHASE_CONFIGURING)
        propose_ready(ctl, job);
    else
        ctl_granting_end(ctl, job->id);
}
