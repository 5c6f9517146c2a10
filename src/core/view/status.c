/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status.c - why a job waits
 *
 * Worked out when asked: a partition that goes down changes the answer of all its jobs, and none of
 * their records.
 */
#include "core/resv.h"
#include "core/view/view.h"

static unsigned held_reason(const struct job *job)
{
    if (job->reason)
        return job->reason;
    return job->hold == 2 ? REASON_HELD_ADMIN : REASON_HELD_USER;
}

static bool over_memory(const PartitionSpec *part, const struct shape *shape)
{
    return (part->max_mem_per_node_mb && shape->mem_per_node_mb > part->max_mem_per_node_mb) ||
           (part->max_mem_per_cpu_mb && shape->mem_per_cpu_mb > part->max_mem_per_cpu_mb);
}

unsigned core_partition_reason(const struct job *job, const struct need *need)
{
    const struct partition *partition = need->partition;

    if (!partition)
        return REASON_PART_CONFIG;
    const PartitionSpec *part = partition->spec;
    switch (partition_state(partition)) {
    case PARTITION_DOWN:
        return REASON_PART_DOWN;
    case PARTITION_INACTIVE:
        return REASON_PART_INACTIVE;
    default:
        break;
    }
    if (!partition_takes_account(partition, job->account))
        return REASON_ACCOUNT;
    if (!partition_takes_qos(partition, job->qos))
        return REASON_QOS;
    unsigned over = job_qos(job) ? job_qos(job)->flags : 0;
    if ((part->has_max_nodes && MAX(job->shape->min_nodes, need->least_nodes) > part->max_nodes &&
         !(over & QOS_PART_MAX_NODES)) ||
        (job->shape->max_nodes < part->min_nodes && !(over & QOS_PART_MIN_NODES)))
        return REASON_PART_NODE_LIMIT;
    int64_t shortest =
        job->more && job->more->time_min_s ? job->more->time_min_s : job->time_limit_s;
    if (part->max_time_s > 0 && (shortest < 0 || shortest > part->max_time_s) &&
        !(over & QOS_PART_TIME))
        return REASON_PART_TIME_LIMIT;
    if (over_memory(part, job->shape))
        return REASON_PN_MEM_LIMIT;
    return need->fits ? REASON_NONE : REASON_FAIL_BAD_CONSTRAINTS;
}

/* The first reason when every partition has one. */
static unsigned partitions_reason(const struct state *state, const struct job *job)
{
    const struct need *needs = shape_needs(state, job->shape);
    unsigned first = REASON_NONE;

    for (size_t i = 0; i < job->shape->partition_count; i++) {
        unsigned reason = core_partition_reason(job, &needs[i]);
        if (reason == REASON_NONE)
            return REASON_NONE;
        first = first ? first : reason;
    }
    return first;
}

/* Has one of the reservations it asks for, or may it start before? */
static bool has_begun(const struct state *state, const struct job *job)
{
    const struct reservation *resv;
    size_t at = 0;

    while ((resv = resv_next_for(state, job, &at))) {
        if (resv->active || resv->flags & RESV_FLEX)
            return true;
    }
    return false;
}

unsigned core_job_reason(const struct state *state, const struct job *job)
{
    if (job_phase(job) == PHASE_REQUEUING)
        return job->hold ? held_reason(job) : REASON_CLEANING;
    if (job_phase(job) == PHASE_CONFIGURING)
        return REASON_PROLOG;
    if (job_phase(job) != PHASE_PENDING)
        return job->reason;
    if (job->hold)
        return held_reason(job);
    if (deps_never(job->deps))
        return REASON_DEP_INVALID;
    if (job->deps)
        return REASON_DEPENDENCY;
    if (!job->eligible_us)
        return REASON_BEGIN_TIME;
    if (job->array && array_room(job->array) == 0)
        return REASON_ARRAY_TASK_LIMIT;
    if (job->shape->reservation && !has_begun(state, job))
        return REASON_RESERVATION;
    struct limit_hit hit;
    if (!limits_allow_any(state, job, NULL, &hit))
        return hit.reason;
    return partitions_reason(state, job);
}
