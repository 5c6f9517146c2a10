/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt.c - running jobs that make room for one that waits
 *
 * When all starts are planned, the first waiting jobs of each partition that may push others aside
 * are tried once more as if those had gone (chase.c). What the victims leave is held for the job
 * until they are gone (holds.c).
 *
 * (1) Without a running job that anybody may preempt nothing is looked at.
 * (2) A hunt may take several slices. Families for which one came to nothing are passed over until
 *     all were tried; then a new pass begins when something happens.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/hunt_priv.h"

/* Jobs of a partition that are looked at in one go, and tried in earnest; that are passed over at most. */
enum { LOOK_MOST = 2048, TRY_MOST = 8, VAIN_MOST = 64 };

/* ---- (1): who runs, by what decides who may preempt it ---- */

struct prey {
    uint32_t count;
    char *qos, *partition; /* their names outlive them; NULL: none */
    struct tab tab;        /* of it only the QOS */
    struct job job;        /* stands for all of them */
    struct shape shape;    /* of it only what decides who may preempt */
    struct job_run run;    /* its own, without nodes; the last, for those would follow it */
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
    prey->qos = prey->tab.qos ? mem_strdup(prey->tab.qos->name) : NULL;
    prey->run.partition = prey->partition = mem_strdup(job->run->partition);
    prey->job = (struct job){
        .state = JOB_RUNNING, .tab = &prey->tab, .batch = true, .requeue = JOB_ASKED_YES
    };
    prey->job.run = &prey->run;
    prey->shape.resv_warn_s = job->shape->resv_warn_s;
    prey->job.shape = &prey->shape;
    vec_push(&sched->prey, prey);
    return prey;
}

void preempt_started(struct sched *sched, const struct job *job)
{
    if (!sched->preempting || map_get_num(&sched->prey_of, job->id) ||
        !state_partition(sched->state, job->run->partition))
        return;
    struct prey *prey = prey_of(sched, job);
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

/* It may be of another QOS than it was. */
void preempt_again(struct sched *sched, const struct job *job)
{
    const struct prey *prey = sched->preempting ? map_get_num(&sched->prey_of, job->id) : NULL;

    if (!prey || prey->tab.qos == job_qos(job))
        return;
    preempt_ended(sched, job->id);
    preempt_started(sched, job);
}

void preempts_renew(struct sched *sched)
{
    vec_each (struct prey *, at, &sched->prey)
        (*at)->tab.qos = (*at)->qos ? state_qos(sched->state, (*at)->qos) : NULL;
    vec_clear(&sched->vain);
    chase_end(sched);
    sched->preempt_news = true;
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

void preempts_done(struct sched *sched)
{
    holds_done(sched);
    chase_done(sched);
    vec_done(&sched->vain);
    vec_done(&sched->in_vain);
    vec_each (struct prey *, prey, &sched->prey) {
        free((*prey)->qos);
        free((*prey)->partition);
        free(*prey);
    }
    vec_done(&sched->prey);
    map_done(&sched->prey_of);
}

void preempts_read(struct sched *sched)
{
    map_init(&sched->prey_of);
    map_init(&sched->held_victims);
    map_init(&sched->chase.by_id);
    sched->preempting = preempt_is_on(sched->state);
    sched->preempt_news = true;
    sched->preempt_wake_us = INT64_MAX;
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

static bool may_start(struct sched *sched, const struct job *job)
{
    struct limit_hit hit;

    return job && job_is_eligible(job) && !licences_lacking(sched, job->shape) &&
           (!state_enforce(sched->state) ||
            limits_allow_any(sched->state, job, &sched->planned, &hit));
}

static bool may_hunt(struct sched *sched, const struct job *job)
{
    const struct pend *pend = pend_find(sched, job->id);

    if (!pend || pend->place != PEND_QUEUED || hold_of(sched, job->id) ||
        was_in_vain(sched, job->id) || map_get_num(&sched->flights, job->id))
        return false;
    if (stops_hold(sched, class_of(sched, pend)->family, (struct order){ pend->rank, job->id }))
        return false;
    for (uint32_t i = 0; i < het_count(job); i++) {
        if (!may_start(sched, state_job(sched->state, job->id + i)))
            return false;
    }
    return true;
}

static bool was_vain(const struct sched *sched, const struct family *family, const struct qos *qos,
                     uint32_t lane)
{
    vec_each (struct vain, at, &sched->vain) {
        if (at->family == family && at->key == family->key && at->qos == qos && at->lane == lane)
            return true;
    }
    return false;
}

/* The first job of the lane that is worth a hunt; NULL: none. */
static const struct job *next_hunter(struct sched *sched, uint32_t number, unsigned *budget)
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
        if (was_vain(sched, class->family, job_qos(job), number))
            continue;
        if ((het_count(job) > 1 ||
             has_prey(sched, job, state_partition_at(sched->state, number))) &&
            may_hunt(sched, job) && chase_suits(sched, job, number, has_prey))
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
        const struct job *job = next_hunter(sched, n, budget);
        if (!job)
            continue;
        chase_begin(sched, job->id, n);
        return true;
    }
    return false;
}

static void note_vain(struct sched *sched, const struct job *job)
{
    const struct pend *pend = pend_find(sched, job->id);
    struct order order = echo_in_lane(sched, pend, job->id, sched->chase.lane);
    const struct family *family = echo_class(sched, pend, order)->family;

    vec_push(&sched->vain, (struct vain){ family, family->key, job_qos(job), sched->chase.lane });
}

/* (2): true when the hunt is over. */
static bool hunt_on(struct sched *sched, unsigned *budget)
{
    const struct job *job = state_job(sched->state, sched->chase.job_id);

    if (!job || !may_hunt(sched, job)) {
        chase_end(sched); /* it needs nobody's room any more */
        return true;
    }
    enum chase_result result = chase_on(sched, budget);
    if (result == CHASE_GOES_ON)
        return false; /* the budget is at its end */
    if (result == CHASE_IN_VAIN)
        note_vain(sched, job);
    chase_end(sched);
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

/* True: it must go on. */
static bool hunts(struct sched *sched, unsigned *budget)
{
    if (!has_any_prey(sched) || heap_top(&sched->hot) || heap_top(&sched->offers))
        return false; /* first what can start without it */
    if (!sched->hunts_left && !sched->preempt_news)
        return false;
    if (!sched->hunts_left) {
        sched->hunts_left = TRY_MOST;
        sched->preempt_news = false;
        if (sched->pass_over || sched->vain.len >= VAIN_MOST)
            vec_clear(&sched->vain);
        sched->pass_over = false;
    }
    while (*budget && sched->hunts_left) {
        if (!sched->chase.job_id && !find_hunter(sched, budget)) {
            sched->hunts_left = 0;
            sched->pass_over = true;
            return false;
        }
        if (!hunt_on(sched, budget))
            break;
        if (--sched->hunts_left == 0)
            sched->preempt_news = true; /* there may be more to be had */
    }
    return sched->hunts_left > 0;
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
    bool more = hunts(sched, budget);
    holds_tell(sched, budget);
    return more;
}

/* Of the first of them that names it. */
static bool was_named(const struct sched *sched, const struct job *const *jobs, uint32_t count,
                      const struct partition *partition)
{
    for (uint32_t k = 0; k < count; k++) {
        const struct need *needs = shape_needs(sched->state, jobs[k]->shape);
        for (size_t i = 0; i < jobs[k]->shape->partition_count; i++) {
            if (needs[i].partition == partition)
                return true;
        }
    }
    return false;
}

bool preempt_test(struct sched *sched, const struct job *const *jobs, uint32_t count,
                  struct parts *parts, id_list *victims, const char **partition)
{
    if (!sched->preempting || !has_any_prey(sched))
        return false;
    for (uint32_t k = 0; k < count; k++) {
        const struct need *needs = shape_needs(sched->state, jobs[k]->shape);
        for (size_t i = 0; i < jobs[k]->shape->partition_count; i++) {
            const struct partition *at = needs[i].partition;
            if (!at || !needs[i].fits || was_named(sched, jobs, k, at) ||
                (count == 1 && !has_prey(sched, jobs[k], at)) ||
                !chase_test(sched, jobs, count, at->number, parts, victims))
                continue;
            *partition = at->spec->name;
            return true;
        }
    }
    return false;
}
