/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pending_place.c - where a pending job waits: in its queue, parked with its array, or behind a limit
 *
 * (1) A job that is eligible has a class. It is in the class's queue unless all of it is planned
 *     already, its array runs as many tasks as it may (throttle), or a limit keeps it waiting.
 * (2) A job that leaves its queue loses its booking.
 */
#include <string.h>

#include "sched/limit/limit.h"

/* Is it in the limit queue of its owner? */
static bool is_in_limit_queue(const struct pending *pending)
{
    return pending->place == PENDING_LIMITED && pending->limit_queue;
}

/* Its place in the queue, or in the limit queue of its owner: limit_queue.c (1). */
static bool job_rank(const struct sched *sched, const struct job *job, bool own, uint64_t *rank)
{
    struct queue_place places[POSITIONS_MOST];
    bool any = positions_of_job(sched, job, own, places) > 0;

    if (any)
        *rank = places[0].rank;
    return any;
}

/* Components of a heterogeneous job behind the first are placed with it. */
static bool follows_another(const struct job *job)
{
    return job->more && job->more->het_job_id && job->more->het_offset > 0;
}

enum pending_place pending_place_of(const struct sched *sched, const struct job *job)
{
    const struct inflight_list *inflights = inflights_of(sched, job->id);
    uint32_t planned = inflights ? inflights->count : 0;

    if (planned >= (job_is_meta(job) ? job->array->waiting : 1))
        return PENDING_IDLE;
    return job->array && !array_left(sched, job->array) ? PENDING_PARKED : PENDING_QUEUED;
}

/* Into the queue of the class, or out of it. */
static void queue_move(struct sched *sched, struct class *class, struct order order, bool in)
{
    struct order was = class->head;

    if (in) {
        job_list_put(&class->queue, order);
        class->head = order_before(order, was) ? order : was;
    } else {
        job_list_del(&class->queue, order);
        class->head = job_list_head(&class->queue);
    }
    if (class->head.id != was.id || class->head.rank != was.rank) {
        if (class->family->het && in)
            family_mark_ready(sched, class->family, INT64_MAX);
        class_pull_up(class, was);
        family_rekey(sched, class->family, order);
        /* Freed hosts that are being offered may have passed it already. */
        if (in && wants_may_offer(sched, class->family))
            family_mark_ready(sched, class->family, INT64_MAX);
    }
    if (in)
        family_joined(sched, class->family, order);
}

static void set_place(struct sched *sched, struct pending *pending, uint32_t job_id,
                      enum pending_place place)
{
    struct class *class = class_of(sched, pending);
    struct order order = { pending->rank, job_id };
    enum pending_place from = pending->place;

    if (from == place)
        return;
    pending->place = (uint8_t)place;
    if (from == PENDING_PARKED) {
        job_list_del(&throttle_of(sched, pending->array_id)->parked, order);
        throttle_tidy(sched, pending->array_id);
    } else if (place == PENDING_PARKED) {
        job_list_put(&throttle_of(sched, pending->array_id)->parked, order);
    }
    if (from == PENDING_QUEUED && pending->out) {
        bool tried = pending->out == OUT_TO_BE_TRIED;
        pending->out = OUT_NOT;
        if (tried)
            limit_queue_out(sched, pending->limit_queue, -1);
        else
            limit_queue_review(sched, pending->limit_queue, false);
    }
    sched->limit->stop_changed = sched->limit->stop_changed || from == PENDING_LIMITED;
    if (from == PENDING_LIMITED)
        limit_queue_del(sched, pending->limit_queue, class, order);
    if (place == PENDING_LIMITED)
        limit_queue_put(sched, pending->limit_queue, class, order);
    if (from != PENDING_QUEUED && place != PENDING_QUEUED)
        return;
    const struct position *position;
    queue_move(sched, class, order, place == PENDING_QUEUED);
    for (unsigned i = 0; (position = position_at(sched, pending, job_id, i)); i++)
        queue_move(sched, sched->queue->classes.items[position->class - 1],
                   (struct order){ position->rank, job_id }, place == PENDING_QUEUED);
    if (place != PENDING_QUEUED && pending->booked)
        sched->hooks->unbook(sched, job_id);
    else if (place != PENDING_QUEUED)
        sched->hooks->forget_search(sched, job_id);
}

/* To where it belongs; out of the limit queue of a holder it has another rank. */
static void settle(struct sched *sched, struct pending *pending, const struct job *job)
{
    if (pending->place == PENDING_LIMITED) {
        set_place(sched, pending, job->id, PENDING_IDLE);
        pending->over = false;
        job_rank(sched, job, false, &pending->rank);
        positions_rank(sched, pending, job);
    }
    set_place(sched, pending, job->id, pending_place_of(sched, job));
}

void pending_limit(struct sched *sched, const struct job *job, const struct limit_hit *hit,
                   bool over)
{
    struct pending *pending = pending_find(sched, job->id);

    if (!pending)
        return;
    if (pending->booked)
        sched->hooks->unbook(sched, job->id);
    set_place(sched, pending, job->id, PENDING_IDLE);
    pending->over = over;
    pending->limit_queue = hit->holder ? limit_queue_of(sched, job) : 0;
    job_rank(sched, job, pending->limit_queue != 0, &pending->rank);
    set_place(sched, pending, job->id, PENDING_LIMITED);
    if (pending->limit_queue)
        limit_queue_hit(sched, pending->limit_queue, class_of(sched, pending), hit, over);
}

bool pending_let_out(struct sched *sched, const struct job *job, bool out)
{
    struct pending *pending = pending_find(sched, job->id);

    settle(sched, pending, job);
    const struct class *class = class_of(sched, pending);
    if (pending->place != PENDING_QUEUED)
        return false;
    if (!out || !family_will_try(sched, class->family, class->limit_us)) {
        pending->out = OUT_SHOWN;
        return false;
    }
    pending->out = OUT_TO_BE_TRIED;
    limit_queue_out(sched, pending->limit_queue, 1);
    vec_push(&class->family->outs, job->id);
    return true;
}

bool pending_would_try(struct sched *sched, const struct pending *pending, uint32_t job_id)
{
    const struct class *class = class_of(sched, pending);

    const struct family *family = class->family;
    if (pending->positions || family_is_ready(sched, family, class->limit_us))
        return true; /* one of its other places may be tried */
    /* A freed host goes to the first job of the family. */
    return family_would_try(sched, class->family, class->limit_us) &&
           order_before(pending_order(sched, state_job(sched->state, job_id)), family->root->best);
}

/* Where it is now, or would be if no limit were in its way. */
struct order pending_order(const struct sched *sched, const struct job *job)
{
    const struct pending *pending = pending_find(sched, job->id);
    uint64_t rank = pending ? pending->rank : 0;

    if (pending && pending->place == PENDING_LIMITED)
        job_rank(sched, job, false, &rank);
    return (struct order){ rank, job->id };
}

static bool positions_are_right(const struct sched *sched, const struct pending *pending,
                                const struct job *job, const struct queue_place *places,
                                unsigned count)
{
    const struct position *position;

    if (count != pending->positions + 1U)
        return false;
    for (unsigned i = 0; (position = position_at(sched, pending, job->id, i)); i++) {
        const struct family *family = sched->queue->classes.items[position->class - 1]->family;
        if (position->rank != places[i + 1].rank ||
            memcmp(&family->mask, &places[i + 1].mask, sizeof(struct mask)) != 0)
            return false;
    }
    return true;
}

bool pending_rank_is_old(struct sched *sched, const struct job *job)
{
    const struct pending *pending = pending_find(sched, job->id);
    struct queue_place places[POSITIONS_MOST];
    unsigned count = pending ? positions_of_job(sched, job, is_in_limit_queue(pending), places) : 0;

    return count && (places[0].rank != pending->rank ||
                     (!is_in_limit_queue(pending) &&
                      !positions_are_right(sched, pending, job, places, count)));
}

void throttle_release(struct sched *sched, uint32_t array_id)
{
    struct throttle *throttle = map_get_num(&sched->queue->arrays, array_id);
    const struct job *first = state_job(sched->state, array_id);

    if (!throttle || !first || !first->array)
        return;
    for (uint32_t room = array_left(sched, first->array); room && throttle; room--) {
        uint32_t id = job_list_head(&throttle->parked).id;
        const struct job *job = state_job(sched->state, id);
        if (!job)
            break;
        pending_settle(sched, job);
        throttle = map_get_num(&sched->queue->arrays, array_id);
    }
}

static void leave(struct sched *sched, struct class *class)
{
    if (--class->members == 0)
        class_drop(sched, class);
}

void pending_remove(struct sched *sched, uint32_t job_id)
{
    struct pending *pending = pending_find(sched, job_id);

    if (!pending)
        return;
    if (pending->booked)
        sched->hooks->unbook(sched, job_id);
    set_place(sched, pending, job_id, PENDING_IDLE);
    struct class *class = class_of(sched, pending);
    const struct position *position;
    for (unsigned i = 0; (position = position_at(sched, pending, job_id, i)); i++)
        leave(sched, sched->queue->classes.items[position->class - 1]);
    positions_del(sched, pending, job_id);
    pending_free(sched, job_id);
    leave(sched, class);
}

void pending_settle(struct sched *sched, const struct job *job)
{
    struct pending *pending = pending_find(sched, job->id);

    if (pending)
        settle(sched, pending, job);
}

/* One of its other components is not what it was. */
static void refresh_first(struct sched *sched, const struct job *job)
{
    const struct job *first = het_first(sched, job);

    if (first == job || !pending_find(sched, first->id))
        return;
    sched->hooks->unbook(sched, first->id);
    pending_refresh(sched, first);
}

bool pending_is_right(struct sched *sched, const struct job *job)
{
    const struct pending *pending = pending_find(sched, job->id);
    struct queue_place places[POSITIONS_MOST];

    bool goes = job_is_eligible(job) && !follows_another(job);
    unsigned count = goes ? positions_of_job(sched, job, false, places) : 0;
    if (!pending || !count)
        return !pending && !count;
    return class_get(sched, job, &places[0].mask) == class_of(sched, pending) &&
           positions_are_right(sched, pending, job, places, count) &&
           (pending->place != PENDING_LIMITED ||
            (pending->limit_queue && limit_queue_has(sched, pending->limit_queue, job)));
}

/* In the classes of its other places too. */
static void add_positions(struct sched *sched, struct pending *pending, const struct job *job,
                          const struct queue_place *places, unsigned count)
{
    struct position list[POSITIONS_MOST];

    for (unsigned i = 1; i < count; i++) {
        struct class *class = class_get(sched, job, &places[i].mask);
        class->members++;
        list[i - 1] = (struct position){ .rank = places[i].rank, .class = class->number + 1 };
    }
    if (count > 1)
        positions_put(sched, pending, job->id, list, count - 1);
}

void pending_refresh(struct sched *sched, const struct job *job)
{
    struct pending *pending = pending_find(sched, job->id);
    struct queue_place places[POSITIONS_MOST];
    unsigned count;

    if (follows_another(job))
        refresh_first(sched, job);
    if (!job_is_eligible(job) || follows_another(job) ||
        !(count = positions_of_job(sched, job, false, places))) {
        pending_remove(sched, job->id);
        return;
    }
    uint64_t rank = places[0].rank;
    if (pending && is_in_limit_queue(pending))
        job_rank(sched, job, true, &rank);
    struct class *class = class_get(sched, job, &places[0].mask);
    if (pending && (class_of(sched, pending) != class || pending->rank != rank ||
                    (!is_in_limit_queue(pending) &&
                     !positions_are_right(sched, pending, job, places, count)))) {
        class->members++; /* it may be its last one */
        pending_remove(sched, job->id);
        class->members--;
        pending = NULL;
    }
    if (!pending) {
        pending = pending_new(sched, job->id);
        pending->rank = places[0].rank;
        pending->class = class->number + 1;
        pending->array_id = job->array ? job->array->id : 0;
        class->members++;
        add_positions(sched, pending, job, places, count);
    }
    if (pending_place_of(sched, job) != PENDING_QUEUED || !limits_in_way(sched, job))
        settle(sched, pending, job);
}
