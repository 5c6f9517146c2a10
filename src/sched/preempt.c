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
 *     gone the job is tried before all others, and the hold is given up whatever comes of it. If it
 *     does not start then, nobody is preempted for it for a while (VAIN_US): were that a mistake
 *     of ours, it would be made again and again.
 * (3) A hunt may take several slices. Families for which one came to nothing are passed over until
 *     something happens and a new pass begins.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/hunt_priv.h"

/* Jobs of a partition that are looked at in one go, and tried in earnest. */
enum { LOOK_MOST = 2048, TRY_MOST = 8 };
#define VAIN_US (60 * US_PER_S)

/* ---- (1): who runs, by what decides who may preempt it ---- */

struct prey {
    uint32_t count;
    struct tab tab;     /* of it only the QOS */
    struct job job;     /* stands for all of them */
    struct shape shape; /* of it only what decides who may preempt */
    struct job_run run; /* its own, without nodes; the last, for those would follow it */
};

static struct prey *prey_of(struct sched *sched, const struct job *job)
{
    for (size_t i = 0; i < sched->prey.len; i++) {
        struct prey *prey = sched->prey.items[i];
        if (prey->tab.qos == job_qos(job) && prey->shape.resv_warn_s == job->shape->resv_warn_s &&
            str_eq(prey->run.partition, job->run->partition))
            return prey;
    }
    struct prey *prey = NEW(struct prey);
    prey->tab.qos = job_qos(job);
    prey->run.partition = job->run->partition;
    prey->job = (struct job){ .state = JOB_RUNNING, .tab = &prey->tab, .batch = true };
    prey->job.run = &prey->run;
    prey->shape.resv_warn_s = job->shape->resv_warn_s;
    prey->job.shape = &prey->shape;
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
    vec_done(&sched->vain);
    vec_done(&sched->bids.list);
    vec_done(&sched->in_vain);
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
            if (!plan_job(sched, class_of(sched, pend)->family, job, &short_of))
                vec_push(&sched->in_vain, (struct in_vain){ id, sched->now_us + VAIN_US });
        }
        hold_drop(sched, id);
    }
}

/* ---- who is tried ---- */

static bool was_in_vain(const struct sched *sched, uint32_t job_id)
{
    vec_each (struct in_vain, at, &sched->in_vain) {
        if (at->job_id == job_id)
            return true;
    }
    return false;
}

static void forget_in_vain(struct sched *sched)
{
    for (size_t i = sched->in_vain.len; i-- > 0;) {
        if (sched->in_vain.items[i].until_us > sched->now_us) {
            sched->preempt_wake_us = MIN(sched->preempt_wake_us, sched->in_vain.items[i].until_us);
        } else {
            vec_remove(&sched->in_vain, i);
            sched->preempt_news = true;
        }
    }
}

static bool may_hunt(struct sched *sched, const struct job *job)
{
    const struct pend *pend = pend_find(sched, job->id);
    struct limit_hit hit;

    return pend && pend->place == PEND_QUEUED && !(job->more && job->more->het_count) &&
           !hold_of(sched, job->id) && !was_in_vain(sched, job->id) &&
           !map_get_num(&sched->flights, job->id) && !licences_lacking(sched, job->shape) &&
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

static bool was_vain(const struct sched *sched, const struct family *family, const struct qos *qos)
{
    vec_each (struct vain, at, &sched->vain) {
        if (at->family == family && at->qos == qos)
            return true;
    }
    return false;
}

/* The first job of the lane that is worth a hunt; NULL: none. */
static const struct job *next_hunter(struct sched *sched, uint32_t number, size_t *partition,
                                     unsigned *budget)
{
    struct lane_walk walk;
    struct class *class;
    const struct job *found = NULL;
    unsigned looked = 0;

    lane_walk_begin(&walk, &sched->lanes.items[number]);
    for (; looked < LOOK_MOST && !found; looked++) {
        struct order order = lane_walk_next(&walk, &class);
        const struct job *job = order_is_last(order) ? NULL : state_job(sched->state, order.id);
        if (!job)
            break;
        if (was_vain(sched, class->family, job_qos(job)))
            continue;
        *partition = place_in_shape(sched, job->shape, number);
        if (*partition != SIZE_MAX && family_may_use(sched, class->family, *partition) &&
            has_prey(sched, job, state_partition_at(sched->state, number)) && may_hunt(sched, job))
            found = job;
    }
    lane_walk_done(&walk);
    budget_take(budget, 1 + looked / ITEMS_PER_COST);
    return found;
}

/* Somebody to hunt for, from the first lane on; false: nobody is left. */
static bool find_hunter(struct sched *sched, unsigned *budget)
{
    for (uint32_t n = 0; n < sched->lanes.len; n++) {
        size_t partition;
        const struct job *job = next_hunter(sched, n, &partition, budget);
        if (!job)
            continue;
        bids_clear(sched);
        sched->bids.job_id = job->id;
        sched->bids.partition = partition;
        return true;
    }
    return false;
}

/* (3): true when the hunt is over. */
static bool hunt_on(struct sched *sched, unsigned *budget)
{
    const struct job *job = state_job(sched->state, sched->bids.job_id);
    struct hunt hunt;
    size_t count;

    if (!job || !may_hunt(sched, job) || sched->bids.partition >= job->shape->partition_count) {
        bids_clear(sched); /* it needs nobody's room any more */
        return true;
    }
    hunt_init(&hunt, sched, job, sched->bids.partition);
    if (!bids_ask(&hunt, budget))
        return false; /* the budget is at its end */
    uint32_t *hosts = bids_best(&hunt, &count);
    budget_take(budget, COST_TRY + count);
    bids_clear(sched);
    if (!hunt_victims(&hunt, hosts, count))
        vec_push(&sched->vain, (struct vain){ hunt.family, job_qos(job) });
    free(hosts);
    return true;
}

static bool has_any_prey(const struct sched *sched)
{
    vec_each (struct prey *, at, &sched->prey) {
        if ((*at)->count)
            return true;
    }
    return false;
}

bool preempt_plan(struct sched *sched, unsigned *budget)
{
    if (!sched->preempting)
        return false;
    if (sched->preempt_wake_us <= sched->now_us) {
        sched->preempt_wake_us = INT64_MAX;
        sched->preempt_news = true;
    }
    forget_in_vain(sched);
    if (!has_any_prey(sched) || heap_top(&sched->hot) || heap_top(&sched->offers))
        return false; /* first what can start without it */
    if (!sched->hunts_left && !sched->preempt_news)
        return false;
    if (!sched->hunts_left) { /* a new pass */
        sched->hunts_left = TRY_MOST;
        sched->preempt_news = false;
        vec_clear(&sched->vain);
    }
    while (*budget && sched->hunts_left) {
        if (!sched->bids.job_id && !find_hunter(sched, budget)) {
            sched->hunts_left = 0;
            return false;
        }
        if (!hunt_on(sched, budget))
            break;
        if (--sched->hunts_left == 0)
            sched->preempt_news = true; /* there may be more to be had */
    }
    return sched->hunts_left > 0;
}
