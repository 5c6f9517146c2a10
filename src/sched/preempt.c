/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt.c - running jobs that make room for one that waits
 *
 * When all starts are planned, the first waiting jobs of each partition that may push others aside
 * are tried once more as if those had gone (hunt.c). What the victims leave is held for the job
 * until they are gone.
 *
 * (1) Without a running job that anybody may preempt nothing is looked at.
 * (2) A hold is a block on each host, so that nothing else takes the room. When the last victim is
 *     gone the job is tried before all others, and the hold is given up whatever comes of it.
 */
#include <stdlib.h>
#include <string.h>

#include "core/preempt.h"
#include "sched/sched_priv.h"

/* Jobs of a partition that are looked at in one go, and tried in earnest. */
enum { LOOK_MOST = 2048, TRY_MOST = 8 };

/* ---- (1): who runs, by what decides who may preempt it ---- */

struct prey {
    uint32_t count;
    const struct qos *qos;
    struct job job;     /* stands for all of them */
    struct job_run run; /* its own, without nodes */
};

static struct prey *prey_of(struct sched *sched, const struct job *job)
{
    for (size_t i = 0; i < sched->prey.len; i++) {
        struct prey *prey = sched->prey.items[i];
        if (prey->qos == job->in_qos && str_eq(prey->run.partition, job->run->partition))
            return prey;
    }
    struct prey *prey = NEW(struct prey);
    prey->qos = job->in_qos;
    prey->run.partition = job->run->partition;
    prey->job = (struct job){ .state = JOB_RUNNING, .in_qos = job->in_qos, .batch = true };
    prey->job.run = &prey->run;
    vec_push(&sched->prey, prey);
    return prey;
}

void preempt_started(struct sched *sched, const struct job *job)
{
    if (!sched->preempting || map_get_num(&sched->prey_of, job->id))
        return;
    struct prey *prey = prey_of(sched, job);
    /* The name must outlive the job. */
    const struct partition *partition = state_partition(sched->state, job->run->partition);
    prey->run.partition = partition ? partition->spec->name : NULL;
    if (!prey->run.partition)
        return;
    prey->count++;
    map_put_num(&sched->prey_of, job->id, prey);
    sched->preempt_news = true;
}

void preempt_ended(struct sched *sched, uint32_t job_id)
{
    struct prey *prey = sched->preempting ? map_del_num(&sched->prey_of, job_id) : NULL;

    if (prey)
        prey->count--;
}

static bool has_prey(const struct sched *sched, const struct job *job,
                     const struct partition *partition)
{
    vec_each (struct prey *, at, &sched->prey) {
        if ((*at)->count && preempt_mode(sched->state, job, partition, &(*at)->job) != PREEMPT_OFF)
            return true;
    }
    return false;
}

/* ---- holds ---- */

const struct hold *hold_of(const struct sched *sched, uint32_t job_id)
{
    vec_each (struct hold, hold, &sched->holds) {
        if (hold->job_id == job_id)
            return hold;
    }
    return NULL;
}

bool hold_waits_for(const struct sched *sched, uint32_t victim)
{
    vec_each (struct hold, hold, &sched->holds) {
        for (size_t i = 0; i < hold->count; i++) {
            if (hold->victims[i].id == victim)
                return true;
        }
    }
    return false;
}

static void hold_drop_at(struct sched *sched, size_t at)
{
    struct hold hold = sched->holds.items[at];

    vec_remove(&sched->holds, at);
    for (size_t i = 0; i < hold.host_count; i++)
        host_block_del(sched, hold.hosts[i], hold.job_id);
    free(hold.hosts);
    free(hold.victims);
    sched->preempt_news = true;
}

void hold_drop(struct sched *sched, uint32_t job_id)
{
    for (size_t i = 0; i < sched->holds.len; i++) {
        if (sched->holds.items[i].job_id == job_id) {
            hold_drop_at(sched, i);
            return;
        }
    }
}

void preempt_refused(struct sched *sched, uint32_t job_id)
{
    if (!hold_of(sched, job_id))
        return;
    hold_drop(sched, job_id);
    sched->preempt_news = false;
    sched->preempt_wake_us = sched->now_us + US_PER_S;
}

void preempts_done(struct sched *sched)
{
    vec_each (struct hold, hold, &sched->holds) {
        free(hold->hosts);
        free(hold->victims);
    }
    vec_done(&sched->holds);
    vec_each (struct prey *, prey, &sched->prey)
        free(*prey);
    vec_done(&sched->prey);
    map_done(&sched->prey_of);
}

void preempts_read(struct sched *sched)
{
    map_init(&sched->prey_of);
    sched->preempting = preempt_is_on(sched->state);
    sched->preempt_news = true;
    sched->preempt_wake_us = INT64_MAX;
}

static bool is_gone(const struct sched *sched, const struct victim *victim)
{
    const struct job *job = state_job(sched->state, victim->id);

    return !job || job->attempt != victim->attempt || !job_holds(job) || job->run->lent;
}

/* (2) */
void preempt_ripen(struct sched *sched)
{
    for (size_t i = 0; i < sched->holds.len;) {
        struct hold *hold = &sched->holds.items[i];
        const struct job *job = state_job(sched->state, hold->job_id);
        const struct pend *pend = job ? pend_find(sched, job->id) : NULL;
        uint32_t short_of, id = hold->job_id;
        bool ripe = true;
        for (size_t v = 0; v < hold->count; v++)
            ripe = ripe && is_gone(sched, &hold->victims[v]);
        if (job && job_is_eligible(job) && pend && !ripe) {
            i++;
            continue;
        }
        if (job && job_is_eligible(job) && pend && pend->place == PEND_QUEUED) {
            book_drop_behind(sched, (struct order){ pend->rank, job->id });
            plan_job(sched, class_of(sched, pend)->family, job, &short_of);
        }
        hold_drop(sched, id);
    }
}

/* ---- who is tried ---- */

static bool may_hunt(struct sched *sched, const struct job *job)
{
    const struct pend *pend = pend_find(sched, job->id);
    struct limit_hit hit;

    return pend && pend->place == PEND_QUEUED && !(job->more && job->more->het_count) &&
           !hold_of(sched, job->id) && !map_get_num(&sched->flights, job->id) &&
           !licences_lacking(sched, job->shape) &&
           (!state_enforce(sched->state) ||
            limits_allow_any(sched->state, job, &sched->planned, &hit));
}

/* The place of a partition among those that the shape names. */
static size_t place_in_shape(const struct sched *sched, struct shape *shape, uint32_t number)
{
    const struct need *needs = shape_needs(sched->state, shape);

    for (size_t p = 0; p < shape->partition_count; p++) {
        if (needs[p].partition && needs[p].partition->number == number)
            return p;
    }
    return SIZE_MAX;
}

/* Families and QOS for which it came to nothing in this pass. */
struct vain {
    const struct family *family;
    const struct qos *qos;
};

static void hunt_lane(struct sched *sched, uint32_t number, unsigned *tries)
{
    struct lane_walk walk;
    struct class *class;
    VEC(struct vain) vain = { 0 };

    lane_walk_begin(&walk, &sched->lanes.items[number]);
    for (unsigned looked = 0; looked < LOOK_MOST && *tries; looked++) {
        struct order order = lane_walk_next(&walk, &class);
        const struct job *job = order_is_last(order) ? NULL : state_job(sched->state, order.id);
        bool skip = false;
        if (!job)
            break;
        vec_each (struct vain, at, &vain)
            skip = skip || (at->family == class->family && at->qos == job->in_qos);
        size_t partition = skip ? SIZE_MAX : place_in_shape(sched, job->shape, number);
        if (partition == SIZE_MAX || !family_may_use(sched, class->family, partition) ||
            !has_prey(sched, job, state_partition_at(sched->state, number)) ||
            !may_hunt(sched, job))
            continue;
        --*tries;
        if (!hunt_victims(sched, class->family, job, order, partition))
            vec_push(&vain, (struct vain){ class->family, job->in_qos });
    }
    lane_walk_done(&walk);
    vec_done(&vain);
}

void preempt_plan(struct sched *sched)
{
    unsigned tries = TRY_MOST;
    bool any = false;

    if (!sched->preempting)
        return;
    vec_each (struct prey *, at, &sched->prey)
        any = any || (*at)->count;
    if (sched->preempt_wake_us <= sched->now_us) {
        sched->preempt_wake_us = INT64_MAX;
        sched->preempt_news = true;
    }
    if (!any || !sched->preempt_news || heap_top(&sched->hot) || heap_top(&sched->offers))
        return; /* first what can start without it */
    sched->preempt_news = false;
    for (uint32_t n = 0; n < sched->lanes.len && tries; n++)
        hunt_lane(sched, n, &tries);
    sched->preempt_news = !tries;
}
