/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_loss.c - what happens to jobs when their node is lost or comes back into use
 */
#include <string.h>

#include "core/job/jobs.h"

/*
 * Nothing of the attempt ran: the script of a job on several nodes or with several components is launched
 * when all are ready, and that of a job on one cannot have come there.
 */
static bool never_ran(const struct state *state, const struct job *job, const CmdNodeDown *cmd)
{
    bool configuring = job_phase(job) == PHASE_CONFIGURING;

    if (reboot_is_awaited(job))
        return true;
    if (!job_has_script(state, job) || (!configuring && job_phase(job) != PHASE_RUNNING))
        return false;
    for (size_t i = 0; cmd && i < cmd->n_unstarted; i++) {
        if (cmd->unstarted[i] == job->id)
            return true;
    }
    return configuring && (job->run->count > 1 || (job->more && job->more->het_count));
}

struct job_part *node_part_of(const struct job *job, const struct node *node)
{
    struct job_part *part = job->run->parts;

    while (part->node != node)
        part++;
    return part;
}

/*
 * The node's processes are gone: its jobs end or go elsewhere. When only its lease is over, those that
 * it was told to hold still do so, and the others may be alive. Where there are leases, no other is
 * taken to be gone because of silence: it ends, if it is given up, and does not run elsewhere.
 */
void node_lose_jobs_of(struct state *state, struct node *node, const CmdNodeDown *cmd, bool back,
                       struct events *out)
{
    bool lease_only = cmd && !cmd->jobs_lost;

    for (size_t at = 0; at < node->jobs.len;) {
        struct job *job = node->jobs.items[at];
        if (back && reboot_is_awaited(job)) { /* it was for this job */
            at++;
            continue;
        }
        bool fresh = never_ran(state, job, cmd);
        bool alive = !fresh && !job_is_bound(state, job);
        bool for_good = alive && cmd && cmd->leases && cmd->no_respond;
        if (alive && (lease_only || (for_good && job_phase(job) == PHASE_REQUEUING))) {
            at++;
            continue;
        }
        job_lost_node(state, job, node_part_of(job, node),
                      fresh      ? JOB_NEVER_RAN
                      : for_good ? JOB_MAY_RUN
                                 : JOB_RUNS_NOT,
                      out);
    }
}

void node_lose_jobs(struct state *state, struct node *node, struct events *out)
{
    node_lose_jobs_of(state, node, NULL, false, out);
}

void node_resume(struct state *state, struct node *node, struct events *out)
{
    node->flags &= ~(uint32_t)(NODE_FLAG_DRAIN | NODE_FLAG_FAIL | NODE_FLAG_INVALID_REG);
    node->resume_us = 0;
    reboot_forget(state, node, out);
    if (node->state == NODE_DOWN || node->state == NODE_FUTURE)
        node->state = node->found ? NODE_IDLE : NODE_UNKNOWN;
    node_set_reason(state, node, NULL, NULL, 0);
}
