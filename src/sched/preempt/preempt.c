/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt.c - running jobs that make room for one that waits
 *
 * When all starts are planned, the first waiting jobs of each partition that may push others aside
 * are tried once more as if those had gone (preempt_search.c). What the victims leave is held for the job
 * until they are gone (preempt_hold.c).
 *
 * (1) Without a running job that anybody may preempt nothing is looked at.
 * (2) A search may take several slices. Families for which one came to nothing are passed over until
 *     all were tried; then a new pass begins when something happens.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/preempt/preempt_trial.h"

/* Jobs of a partition that are looked at in one go, and tried in earnest; that are passed over at most. */
enum { LOOK_MOST = 2048, TRY_MOST = 8, FAILURES_MOST = 64 };

/* ---- (1): who runs, by what decides who may preempt it ---- */

struct preemptible {
    uint32_t count;
    char *qos, *partition;              /* their names outlive them; NULL: none */
    struct billing_group billing_group; /* of it only the QOS */
    struct job job;                     /* stands for all of them */
    struct shape shape;                 /* of it only what decides who may preempt */
    struct job_run run; /* its own, without nodes; the last, for those would follow it */
};

static struct preemptible *preemptible_of(struct sched *sched, const struct job *job)
{
    for (size_t i = 0; i < sched->preempt->groups.len; i++) {
        struct preemptible *preemptible = sched->preempt->groups.items[i];
        if (preemptible->billing_group.qos == job_qos(job) &&
            preemptible->shape.resv_warn_s == job->shape->resv_warn_s &&
            str_eq(preemptible->run.partition, job->run->partition))
            return preemptible;
    }
    struct preemptible *preemptible = NEW(struct preemptible);
    preemptible->billing_group.qos = job_qos(job);
    preemptible->qos =
        preemptible->billing_group.qos ? mem_strdup(preemptible->billing_group.qos->name) : NULL;
    preemptible->run.partition = preemptible->partition = mem_strdup(job->run->partition);
    preemptible->job = (struct job){ .state = JOB_RUNNING,
                                     .billing_group = &preemptible->billing_group,
                                     .batch = true,
                                     .requeue = JOB_ASKED_YES };
    preemptible->job.run = &preemptible->run;
    preemptible->shape.resv_warn_s = job->shape->resv_warn_s;
    preemptible->job.shape = &preemptible->shape;
    vec_push(&sched->preempt->groups, preemptible);
    return preemptible;
}

void preempt_started(struct sched *sched, const struct job *job)
{
    if (!sched->preempt->on || map_get_num(&sched->preempt->group_of, job->id) ||
        !state_partition(sched->state, job->run->partition))
        return;
    struct preemptible *preemptible = preemptible_of(sched, job);
    preemptible->count++;
    map_put_num(&sched->preempt->group_of, job->id, preemptible);
    sched->queue->preempt_changed = true;
}

void preempt_ended(struct sched *sched, uint32_t job_id)
{
    struct preemptible *preemptible =
        sched->preempt->on ? map_del_num(&sched->preempt->group_of, job_id) : NULL;

    if (preemptible)
        preemptible->count--;
}

/* It may be of another QOS than it was. */
void preempt_again(struct sched *sched, const struct job *job)
{
    const struct preemptible *preemptible =
        sched->preempt->on ? map_get_num(&sched->preempt->group_of, job->id) : NULL;

    if (!preemptible || preemptible->billing_group.qos == job_qos(job))
        return;
    preempt_ended(sched, job->id);
    preempt_started(sched, job);
}

void preempts_renew(struct sched *sched)
{
    vec_each (struct preemptible *, at, &sched->preempt->groups)
        (*at)->billing_group.qos = (*at)->qos ? state_qos(sched->state, (*at)->qos) : NULL;
    vec_clear(&sched->preempt->failed);
    preempt_search_end(sched);
    sched->queue->preempt_changed = true;
}

static bool has_preemptible(const struct sched *sched, const struct job *job,
                            const struct partition *partition)
{
    vec_each (struct preemptible *, at, &sched->preempt->groups) {
        if ((*at)->count && preempt_mode(sched->state, job, partition, &(*at)->job) != PREEMPT_OFF)
            return true;
    }
    return false;
}

void preempts_done(struct sched *sched)
{
    preempt_holds_done(sched);
    preempt_search_done(sched);
    vec_done(&sched->preempt->failed);
    vec_done(&sched->preempt->retries);
    vec_each (struct preemptible *, preemptible, &sched->preempt->groups) {
        free((*preemptible)->qos);
        free((*preemptible)->partition);
        free(*preemptible);
    }
    vec_done(&sched->preempt->groups);
    map_done(&sched->preempt->group_of);
}

void preempts_read(struct sched *sched)
{
    map_init(&sched->preempt->group_of);
    map_init(&sched->preempt->held_victims);
    map_init(&sched->preempt->search.by_id);
    sched->preempt->on = preempt_is_on(sched->state);
    sched->queue->preempt_changed = true;
    sched->queue->preempt_wake_us = INT64_MAX;
}

/* ---- who is tried ---- */

static bool is_waiting_for_retry(const struct sched *sched, uint32_t job_id)
{
    vec_each (struct preempt_retry, at, &sched->preempt->retries) {
        if (at->job_id == job_id)
            return true;
    }
    return false;
}

static void forget_retry(struct sched *sched)
{
    for (size_t i = sched->preempt->retries.len; i-- > 0;) {
        if (sched->preempt->retries.items[i].until_us > sched->now_us) {
            sched->queue->preempt_wake_us =
                MIN(sched->queue->preempt_wake_us, sched->preempt->retries.items[i].until_us);
        } else {
            vec_remove(&sched->preempt->retries, i);
            sched->queue->preempt_changed = true;
        }
    }
}

static bool may_start(struct sched *sched, const struct job *job)
{
    struct limit_hit hit;

    return job && job_is_eligible(job) && !licences_lacking(sched, job->shape) &&
           (!state_enforce(sched->state) ||
            limits_allow_any(sched->state, job, &sched->limit->planned, &hit));
}

static bool may_preempt_any(struct sched *sched, const struct job *job)
{
    const struct pending *pending = pending_find(sched, job->id);

    if (!pending || pending->place != PENDING_QUEUED || preempt_hold_of(sched, job->id) ||
        is_waiting_for_retry(sched, job->id) || map_get_num(&sched->limit->inflights, job->id))
        return false;
    if (limit_stop_blocks(sched, class_of(sched, pending)->family,
                          (struct order){ pending->rank, job->id }))
        return false;
    for (uint32_t i = 0; i < het_count(job); i++) {
        if (!may_start(sched, state_job(sched->state, job->id + i)))
            return false;
    }
    return true;
}

static bool has_failed(const struct sched *sched, const struct family *family,
                       const struct qos *qos, uint32_t partition_queue)
{
    vec_each (struct preempt_failure, at, &sched->preempt->failed) {
        if (at->family == family && at->key == family->key && at->qos == qos &&
            at->partition_queue == partition_queue)
            return true;
    }
    return false;
}

/* The first job of the partition queue that is worth a search; NULL: none. */
static const struct job *next_preemptor(struct sched *sched, uint32_t number, unsigned *budget)
{
    struct partition_queue_walk walk;
    struct class *class;
    const struct job *found = NULL;
    unsigned looked = 0;

    partition_queue_walk_begin(&walk, &sched->queue->partition_queues.items[number]);
    for (; looked < LOOK_MOST && !found; looked++) {
        struct order order = partition_queue_walk_next(&walk, &class);
        const struct job *job = order_is_last(order) ? NULL : state_job(sched->state, order.id);
        if (!job)
            break;
        if (has_failed(sched, class->family, job_qos(job), number))
            continue;
        if ((het_count(job) > 1 ||
             has_preemptible(sched, job, state_partition_at(sched->state, number))) &&
            may_preempt_any(sched, job) &&
            preempt_search_suits(sched, job, number, has_preemptible))
            found = job;
    }
    partition_queue_walk_done(&walk);
    budget_take(budget, 1 + looked / ITEMS_PER_COST);
    return found;
}

/* Somebody to search for, from the first partition queue on; false: nobody is left. */
static bool find_preemptor(struct sched *sched, unsigned *budget)
{
    for (uint32_t n = 0; n < sched->queue->partition_queues.len; n++) {
        const struct job *job = next_preemptor(sched, n, budget);
        if (!job)
            continue;
        preempt_search_begin(sched, job->id, n);
        return true;
    }
    return false;
}

static void note_failure(struct sched *sched, const struct job *job)
{
    const struct pending *pending = pending_find(sched, job->id);
    struct order order =
        position_in_partition(sched, pending, job->id, sched->preempt->search.partition_queue);
    const struct family *family = position_class(sched, pending, order)->family;

    vec_push(&sched->preempt->failed,
             (struct preempt_failure){ family, family->key, job_qos(job),
                                       sched->preempt->search.partition_queue });
}

/* (2): true when the search is over. */
static bool search_for_job(struct sched *sched, unsigned *budget)
{
    const struct job *job = state_job(sched->state, sched->preempt->search.job_id);

    if (!job || !may_preempt_any(sched, job)) {
        preempt_search_end(sched); /* it needs nobody's room any more */
        return true;
    }
    enum preempt_search_result result = preempt_search_continue(sched, budget);
    if (result == PREEMPT_SEARCH_GOES_ON)
        return false; /* the budget is at its end */
    if (result == PREEMPT_SEARCH_FAILED)
        note_failure(sched, job);
    preempt_search_end(sched);
    return true;
}

static bool has_any_preemptible(const struct sched *sched)
{
    vec_each (struct preemptible *, at, &sched->preempt->groups) {
        if ((*at)->count)
            return true;
    }
    return false;
}

/* True: it must go on. */
static bool searches(struct sched *sched, unsigned *budget)
{
    if (!has_any_preemptible(sched) || heap_top(&sched->queue->ready) ||
        heap_top(&sched->queue->offers))
        return false; /* first what can start without it */
    if (!sched->preempt->searches_left && !sched->queue->preempt_changed)
        return false;
    if (!sched->preempt->searches_left) {
        sched->preempt->searches_left = TRY_MOST;
        sched->queue->preempt_changed = false;
        if (sched->preempt->pass_over || sched->preempt->failed.len >= FAILURES_MOST)
            vec_clear(&sched->preempt->failed);
        sched->preempt->pass_over = false;
    }
    while (*budget && sched->preempt->searches_left) {
        if (!sched->preempt->search.job_id && !find_preemptor(sched, budget)) {
            sched->preempt->searches_left = 0;
            sched->preempt->pass_over = true;
            return false;
        }
        if (!search_for_job(sched, budget))
            break;
        if (--sched->preempt->searches_left == 0)
            sched->queue->preempt_changed = true; /* there may be more to be had */
    }
    return sched->preempt->searches_left > 0;
}

bool preempt_plan(struct sched *sched, unsigned *budget)
{
    if (!sched->preempt->on)
        return false;
    if (sched->queue->preempt_wake_us <= sched->now_us) {
        sched->queue->preempt_wake_us = INT64_MAX;
        sched->queue->preempt_changed = true;
    }
    forget_retry(sched);
    bool more = searches(sched, budget);
    preempt_holds_tell(sched, budget);
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
    if (!sched->preempt->on || !has_any_preemptible(sched))
        return false;
    for (uint32_t k = 0; k < count; k++) {
        const struct need *needs = shape_needs(sched->state, jobs[k]->shape);
        for (size_t i = 0; i < jobs[k]->shape->partition_count; i++) {
            const struct partition *at = needs[i].partition;
            if (!at || !needs[i].fits || was_named(sched, jobs, k, at) ||
                (count == 1 && !has_preemptible(sched, jobs[k], at)) ||
                !preempt_search_test(sched, jobs, count, at->number, parts, victims))
                continue;
            *partition = at->spec->name;
            return true;
        }
    }
    return false;
}
