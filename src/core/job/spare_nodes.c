/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spare_nodes.c - nodes that a job holds in reserve (--spare-nodes)
 *
 * (1) A job with spares asks for so many nodes more, each with room for as many tasks as any other.
 *     The last parts of its allocation are the spares: granted and counted like the others, but in no
 *     list of its nodes, and without steps.
 * (2) When a running job loses a node that its script is not on, a spare takes its place and the job
 *     goes on. Steps that were there end, as with --no-kill.
 */
#include "core/job/jobs.h"

static void set_spare(struct job *job, struct job_part *part, bool spare)
{
    part_changes(job->run, part);
    part->spare = spare;
    part_changed(job->run, part);
}

void spare_nodes_mark(struct job *job)
{
    for (unsigned i = 0; i < job->shape->spare && i + 1 < job->run->count; i++)
        set_spare(job, &job->run->parts[job->run->count - 1 - i], true);
}

static struct job_part *spare_of(const struct job *job, const struct job_part *but)
{
    for (unsigned i = 0; i < job->run->count; i++) {
        struct job_part *part = &job->run->parts[i];
        if (part->spare && !part->left && part->node && part != but &&
            part->node->state != NODE_DOWN)
            return part;
    }
    return NULL;
}

bool spare_nodes_has(const struct job *job, const struct job_part *lost)
{
    return lost->spare || spare_of(job, lost) != NULL;
}

void spare_nodes_take(struct state *state, struct job *job, struct job_part *lost)
{
    struct job_part *part = lost->spare ? NULL : spare_of(job, lost);

    set_spare(job, lost, false);
    if (part)
        set_spare(job, part, false);
    job_touch(state, job);
}
