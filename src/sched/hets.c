/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hets.c - what is foreseen of heterogeneous jobs: they start when the last of their components can
 */
#include "core/core.h"
#include "sched/sched_priv.h"

const struct job *het_first(const struct sched *sched, const struct job *job)
{
    const struct job *first =
        job->more && job->more->het_count ? state_job(sched->state, job->more->het_job_id) : NULL;

    return first ? first : job;
}

unsigned het_reason(const struct sched *sched, const struct job *job)
{
    for (uint32_t i = 0; job->more && i < job->more->het_count; i++) {
        const struct job *part = state_job(sched->state, job->more->het_job_id + i);
        if (part && part->state == JOB_PENDING && !job_is_eligible(part))
            return core_job_reason(sched->state, part);
    }
    return 0;
}

int64_t het_latest(struct sched *sched, const struct job *job, int64_t start_us, int64_t now_us,
                   const struct job **last)
{
    for (uint32_t i = 0; job->more && i < job->more->het_count; i++) {
        const struct job *part = state_job(sched->state, job->more->het_job_id + i);
        struct parts parts = { 0 };
        struct mask mask;
        if (!part || part == job || part->state != JOB_PENDING)
            continue;
        int64_t start = INT64_MAX;
        if (job_mask(sched, part, &mask)) {
            struct family *family = family_for(sched, part);
            start = profile_start(sched, family, part, now_us, true, &parts);
            family_free(family);
            vec_done(&parts.list);
        }
        if (start > start_us) {
            start_us = start;
            *last = part;
        }
    }
    return start_us;
}
