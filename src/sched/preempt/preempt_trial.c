/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preempt_trial.c - would a job start if these were gone?
 *
 * Runs are marked as if they had gone, and the job is placed with what is left (view.without). The
 * components of a heterogeneous job are placed one after the other; where those before are is a forecast
 * meanwhile.
 *
 * (1) A component makes use of nobody's going whom it could not send away itself, even if another one can.
 * (2) Marks are there for a call only: outside of it no run is marked.
 * (3) Who is suspended runs again as soon as its CPUs are free and nobody waits for that any more; who does may
 *     start elsewhere. If it may be sent away it is told to stay suspended, else its CPUs count as in use.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/preempt/preempt_trial.h"

/* ---- who searches ---- */

static size_t place_in_shape(const struct sched *sched, struct shape *shape, uint32_t number)
{
    const struct need *needs = shape_needs(sched->state, shape);

    for (size_t p = 0; p < shape->partition_count; p++) {
        if (needs[p].partition && needs[p].partition->number == number)
            return p;
    }
    return SIZE_MAX;
}

static bool choose_partition(struct sched *sched, struct preemptor *preemptor, uint32_t number)
{
    struct shape *shape = preemptor->job->shape;
    size_t p = place_in_shape(sched, shape, number);

    family_asks(sched, preemptor->family);
    for (size_t i = 0; p == SIZE_MAX || !family_may_use(sched, preemptor->family, p); i++) {
        if (i == shape->partition_count)
            return false;
        p = preemptor->family->turns[i];
    }
    preemptor->partition = p;
    preemptor->need = &shape_needs(sched->state, shape)[p];
    return true;
}

static bool same_side(const struct sched *sched, const struct side *side,
                      const struct preemptor *preemptor)
{
    const struct job *a = side->job, *b = preemptor->job;

    return side->partition == preemptor->need->partition && job_qos(a) == job_qos(b) &&
           job_priority(sched->state, a) == job_priority(sched->state, b) &&
           str_eq(a->shape->reservation, b->shape->reservation);
}

static bool choose_side(struct preempt_trial *trial, struct preemptor *preemptor)
{
    unsigned at = 0;

    while (at < trial->side_count && !same_side(trial->sched, &trial->sides[at], preemptor))
        at++;
    if (at == SIDES_MOST)
        return false;
    if (at == trial->side_count)
        trial->sides[trial->side_count++] =
            (struct side){ preemptor->job, preemptor->need->partition };
    preemptor->side = at;
    return true;
}

static bool preemptor_init(struct preempt_trial *trial, uint32_t at, uint32_t partition_queue,
                           struct order order)
{
    struct sched *sched = trial->sched;
    struct preemptor *preemptor = &trial->preemptors[at];
    const struct pending *pending = at ? NULL : pending_find(sched, trial->job->id);
    struct mask mask;

    preemptor->job = trial->jobs ? trial->jobs[at]
                     : at        ? state_job(sched->state, trial->job->id + at)
                                 : trial->job;
    if (!preemptor->job || !job_mask(sched, preemptor->job, &mask))
        return false;
    preemptor->own =
        !pending || !pending->class || pending->positions; /* in any of its partitions */
    preemptor->family =
        preemptor->own ? family_for(sched, preemptor->job) : class_of(sched, pending)->family;
    if (!choose_partition(sched, preemptor, partition_queue) || !choose_side(trial, preemptor))
        return false;
    preemptor->view = (struct view){ .now_us = sched->now_us,
                                     .start_us = sched->now_us + 1,
                                     .end_us = job_end_by(preemptor->job, sched->now_us),
                                     .mine = trial->job->id,
                                     .without = true,
                                     .forecast = trial->count > 1,
                                     .order = order };
    return true;
}

static bool open_all(struct preempt_trial *trial, uint32_t count, uint32_t partition_queue,
                     const uint32_t *partition_queues)
{
    const struct job *job = trial->job;
    const struct pending *pending = pending_find(trial->sched, job->id);
    bool good = true;

    trial->search = &trial->sched->preempt->search;
    trial->count = count;
    trial->preemptors = NEW_ARRAY(struct preemptor, trial->count);
    het_turns_init(&trial->turns, trial->count);
    struct order order =
        pending ? position_in_partition(trial->sched, pending, job->id,
                                        partition_queues ? partition_queues[0] : partition_queue)
                : (struct order){ UINT64_MAX, job->id };
    for (uint32_t i = 0; i < trial->count && good; i++)
        good = preemptor_init(trial, i, partition_queues ? partition_queues[i] : partition_queue,
                              order);
    return good;
}

bool preempt_trial_open(struct preempt_trial *trial, struct sched *sched, const struct job *job,
                        uint32_t partition_queue, const uint32_t *partition_queues)
{
    *trial = (struct preempt_trial){ .sched = sched, .job = job };
    return open_all(trial, het_count(job), partition_queue, partition_queues);
}

bool preempt_trial_open_asked(struct preempt_trial *trial, struct sched *sched,
                              const struct job *const *jobs, uint32_t count,
                              uint32_t partition_queue)
{
    *trial = (struct preempt_trial){ .sched = sched, .job = jobs[0], .jobs = jobs };
    return open_all(trial, count, partition_queue, NULL);
}

void preempt_trial_close(struct preempt_trial *trial)
{
    for (uint32_t i = 0; i < trial->count; i++) {
        if (trial->preemptors[i].own)
            family_free(trial->preemptors[i].family);
        vec_done(&trial->preemptors[i].of.parts.list);
    }
    free(trial->preemptors);
    het_turns_done(&trial->turns);
}

/* ---- who may go ---- */

static bool ends(const struct job *job)
{
    enum job_phase phase = job_phase(job);

    return phase == PHASE_COMPLETING || phase == PHASE_REQUEUING || phase == PHASE_ENDED;
}

const struct job *preempt_trial_stands_for(const struct sched *sched, const struct job *job)
{
    const struct job *first = het_first(sched, job);

    return first->run && ends(first) == ends(job) ? first : job;
}

bool preempt_trial_is_going(const struct preempt_trial *trial, const struct job *job)
{
    return ends(job) ||
           (job->more && job->more->preempt_end_us && job->more->preempted_by == trial->job->id);
}

bool preempt_trial_may_take(struct preempt_trial *trial, const struct job *job, struct victim *out)
{
    struct sched *sched = trial->sched;
    enum preempt_mode mode = PREEMPT_OFF;

    *out = (struct victim){ .id = job->id, .attempt = job->attempt };
    if (preempt_hold_waits_for(sched, job->id))
        return false;
    for (unsigned s = 0; s < trial->side_count; s++) {
        enum preempt_mode its =
            preempt_mode(sched->state, trial->sides[s].job, trial->sides[s].partition, job);
        out->sides |= its == PREEMPT_OFF ? 0 : UINT64_C(1) << s;
        mode = its == PREEMPT_OFF ? mode : its;
    }
    if (mode == PREEMPT_OFF)
        return false;
    bool sized = sched->queue->predict.preempts;
    if (sized && !overtake_goes_before(sched, trial->job, job))
        return false;
    int64_t from = preempt_from_us(sched->state, job);
    if (from > sched->now_us) {
        sched->queue->preempt_wake_us = MIN(sched->queue->preempt_wake_us, from);
        return false;
    }
    out->out = mode == PREEMPT_SUSPEND ? HOST_JOB_LENDS : HOST_JOB_GONE;
    out->lent = job->run->lent;
    out->worth = sized ? overtake_worth(sched, job) : preempt_worth(sched->state, job);
    out->priority = job->priority;
    out->start_us = job->run->start_us;
    return true;
}

int preempt_trial_by_cost(const struct victim *x, const struct victim *y, bool youngest)
{
    if (x->worth != y->worth)
        return x->worth < y->worth ? -1 : 1;
    if (!youngest && x->priority != y->priority)
        return x->priority < y->priority ? -1 : 1;
    if (x->start_us != y->start_us)
        return x->start_us > y->start_us ? -1 : 1;
    return x->id > y->id ? -1 : x->id < y->id;
}

struct victim *preempt_trial_victim(const struct preempt_trial *trial, uint32_t job_id)
{
    uintptr_t at = (uintptr_t)map_get_num(&trial->search->by_id, job_id);

    return at ? &trial->search->list.items[at - 1] : NULL;
}

/* ---- marks ---- */

/* (1) */
void preempt_trial_mark_host(const struct preempt_trial *trial, uint32_t number, unsigned side)
{
    struct host *host = &trial->sched->hosts->list.items[number];

    for (size_t i = 0; i < host->running.len; i++) {
        struct host_job *run = &host->running.items[i];
        const struct victim *victim = preempt_trial_victim(trial, run->job_id);
        run->out = HOST_JOB_STAYS;
        if (victim && victim->going)
            run->out = HOST_JOB_GONE;
        else if (victim && victim->out == HOST_JOB_RETURNS)
            run->out = HOST_JOB_RETURNS;
        else if (victim && !victim->lent && !victim->stays && victim->sides >> side & 1)
            run->out = victim->out;
    }
}

void preempt_trial_unmark_host(const struct preempt_trial *trial, uint32_t number)
{
    struct host *host = &trial->sched->hosts->list.items[number];

    for (size_t i = 0; i < host->running.len; i++)
        host->running.items[i].out = HOST_JOB_STAYS;
}

void preempt_trial_mark_all(const struct preempt_trial *trial, unsigned side)
{
    for (size_t i = 0; i < trial->search->hosts.len; i++)
        preempt_trial_mark_host(trial, trial->search->hosts.items[i], side);
}

void preempt_trial_unmark_all(const struct preempt_trial *trial)
{
    for (size_t i = 0; i < trial->search->hosts.len; i++)
        preempt_trial_unmark_host(trial, trial->search->hosts.items[i]);
}

/* ---- do they fit? ---- */

static bool preemptor_fits(struct preempt_trial *trial, struct preemptor *preemptor)
{
    struct parts *parts = &preemptor->of.parts;

    if (trial->search && trial->side_count > 1)
        preempt_trial_mark_all(trial, preemptor->side);
    if (preemptor->family->shape->licence_count &&
        !licences_fit(trial->sched, preemptor->family, &preemptor->view, &parts->licence))
        return false;
    return place_among(trial->sched, preemptor->family, preemptor->partition, preemptor->job,
                       &preemptor->view, preemptor->hosts, preemptor->host_count, parts);
}

bool preempt_trial_fits(struct preempt_trial *trial)
{
    uint32_t at, *order = trial->turns.order;

    trial->turns.moves = 0;
    do {
        for (at = 0; at < trial->count; at++) {
            struct preemptor *preemptor = &trial->preemptors[order[at]];
            if (!preemptor_fits(trial, preemptor))
                break;
            preemptor->of.end_us = job_ends_us(preemptor->job, preemptor->view.start_us);
            if (trial->count > 1)
                tried_put(trial->sched, preemptor->job, preemptor->view.start_us, &preemptor->of);
        }
        for (uint32_t k = at; trial->count > 1 && k-- > 0;)
            tried_take(trial->sched, &trial->preemptors[order[k]].of);
    } while (at < trial->count && het_turns_retry(&trial->turns, at));
    return at == trial->count;
}

bool preempt_trial_is_allowed(struct preempt_trial *trial)
{
    struct limit_hit hit;
    uint32_t at = 0;

    if (!state_enforce(trial->sched->state))
        return true;
    struct held **held = NEW_ARRAY(struct held *, trial->count);
    for (; at < trial->count; at++) {
        struct preemptor *preemptor = &trial->preemptors[at];
        if (limits_in_way_of(trial->sched, preemptor->job, &preemptor->of.parts, &hit))
            break;
        held[at] = limits_plan(trial->sched, preemptor->job, &preemptor->of.parts);
    }
    bool good = at == trial->count;
    while (at > 0)
        limits_unplan(trial->sched, held[--at], true);
    free(held);
    return good;
}

static bool seat_fits(struct preempt_trial *trial, const struct seat *seat)
{
    const struct preemptor *preemptor = &trial->preemptors[seat->component];

    if (trial->search)
        preempt_trial_mark_host(trial, seat->host, preemptor->side);
    return place_tasks_at(trial->sched, preemptor->family, preemptor->partition, preemptor->job,
                          &preemptor->view, seat->host) >= seat->take.tasks;
}

bool preempt_trial_seats_fit(struct preempt_trial *trial, const struct seat *seats, size_t count)
{
    struct sched *sched = trial->sched;
    struct host *host = &sched->hosts->list.items[seats[0].host];
    size_t at = 0;

    for (; at < count && seat_fits(trial, &seats[at]); at++) {
        const struct preemptor *preemptor = &trial->preemptors[seats[at].component];
        struct block block = { .start_us = preemptor->view.start_us, .job_id = UINT32_MAX };
        block.end_us = preemptor->view.end_us;
        block.partition = preemptor->need->partition->number + 1;
        block.amount = amount_take(sched, &seats[at].take, preemptor->need->whole_nodes);
        vec_push(&host->forecasts, block);
    }
    for (size_t k = 0; k < at; k++)
        amount_drop(sched, host->forecasts.items[--host->forecasts.len].amount);
    preempt_trial_unmark_host(trial, seats[0].host);
    return at == count;
}
