/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - which jobs start now
 *
 * The ready family whose first job goes first is tried, again and again. What fits is put into the
 * plan and claimed; what does not cools its family down, and is booked when it is among the first
 * of its partition, before anything behind it is tried.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/plan.h"

/* Effort in a slice for what somebody asked about, however much else there is to do. */
enum { ASKED_LEAST = 256 };

/* Hosts of a job that is found and held in two slices. */
enum { PUT_OFF_HOSTS = 2048 };

/* ---- one job ---- */

/* The task of an array that is next, among those that are not planned. */
static uint32_t next_task(struct sched *sched, const struct job *job)
{
    const struct inflight_list *inflights = inflights_of(sched, job->id);

    if (!job_is_meta(job))
        return NO_TASK;
    uint32_t number = array_next_waiting(job->array, inflights ? inflights->next_task : 0);
    if (number == job->array->count)
        number = array_next_waiting(job->array, 0);
    return array_task_id(job->array, number);
}

static bool is_planned(const struct sched *sched, uint32_t job_id, uint32_t task)
{
    const struct inflight_list *inflights = inflights_of(sched, job_id);

    for (const struct inflight *at = inflights ? inflights->first : NULL; at; at = at->next) {
        if (at->task == task)
            return true;
    }
    return false;
}

static void after_task(struct sched *sched, const struct job *job, uint32_t task)
{
    struct inflight_list *inflights = inflights_of(sched, job->id);
    uint32_t number;

    if (inflights && task != NO_TASK && array_find(job->array, task, &number))
        inflights->next_task = number + 1;
}

/* What a try to start a job with all its components is about. */
struct attempt {
    struct family *family; /* of the first */
    const struct job *job;
    uint32_t task, short_of;
    struct order over; /* what is booked behind this makes way; NO_ORDER: nothing does */
    struct limit_hit hit;
    bool put_off;
};

/* Holds what it is to be given, unless a limit is in the way: NULL then. */
static JobStart *hold_parts(struct sched *sched, struct attempt *try, const struct job *part,
                            const struct family *family, struct parts *parts)
{
    int64_t end = job_end_by(part, sched->now_us);

    if (limits_in_way_of(sched, part, parts, &try->hit))
        return NULL;
    pending_prefetch_list(sched, part->id, 1);
    sched->plan->given += parts->list.len;
    struct inflight *inflight =
        inflight_start(sched, part, try->task, parts, family,
                       end == INT64_MAX ? sched->now_us + UNLIMITED_US : end);
    if (try->over.id)
        book_yield(sched, try->over, part->shape, parts);
    pending_prefetch_list(sched, part->id, 2);
    return start_message(sched, part, try->task, parts, inflight);
}

/*
 * To find thousands of hosts takes as long as to hold them: that is left to the next slice. What was found is
 * worth nothing when a host or the job has changed until then; after that it is done in one slice.
 */
static bool put_off(struct sched *sched, struct attempt *try)
{
    const struct shape *shape = try->job->shape;

    if (sched->plan->scratch.list.len < PUT_OFF_HOSTS || het_count(try->job) > 1 ||
        shape->licence_count || sched->plan->placed.last_id == try->job->id)
        return false;
    struct parts was = sched->plan->placed.parts;
    sched->plan->placed.parts = sched->plan->scratch;
    sched->plan->scratch = was;
    sched->plan->placed.job_id = sched->plan->placed.last_id = try->job->id;
    sched->plan->placed.at = sched->hosts->changes;
    sched->plan->placed.epoch = sched->epoch;
    sched->plan->placed.changed = try->job->changed;
    sched->plan->placed.over = try->over;
    sched->plan->placed.now = try->put_off = true;
    return true;
}

static bool is_placed(const struct sched *sched, const struct attempt *try)
{
    return sched->plan->placed.job_id == try->job->id &&
           sched->plan->placed.at == sched->hosts->changes &&
           sched->plan->placed.epoch == sched->epoch &&
           sched->plan->placed.over.id == try->over.id &&
           sched->plan->placed.changed == try->job->changed;
}

/* Plans a start of one of them; NULL when it cannot be. */
static JobStart *try_component(struct sched *sched, struct attempt *try, uint32_t offset)
{
    const struct job *job = try->job;
    const struct job *part = offset ? state_job(sched->state, job->id + offset) : job;
    JobStart *start = NULL;

    if (!part || !job_is_eligible(part))
        return NULL;
    struct family *own = offset ? family_for(sched, part) : try->family;
    struct view view = { .now_us = sched->now_us, .start_us = sched->now_us };
    view.end_us = job_end_by(part, sched->now_us);
    view.order = try->over;
    view.mine = booking_of(sched, job->id) || preempt_hold_of(sched, job->id) ? job->id : 0;
    pending_prefetch_list(sched, part->id, 0);
    if (is_placed(sched, try))
        start = hold_parts(sched, try, part, own, &sched->plan->placed.parts);
    else if (place(sched, own, part, &view, &sched->plan->scratch, &try->short_of) &&
             !put_off(sched, try))
        start = hold_parts(sched, try, part, own, &sched->plan->scratch);
    if (offset)
        family_free(own);
    return start;
}

static void land(struct sched *sched, const struct attempt *try, const uint32_t *offsets,
                 uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        inflight_undo(sched, try->job->id + offsets[i], try->task);
}

/* On hosts that are known, one for each component. */
static bool take_parts(struct sched *sched, struct attempt *try, CmdStart *command,
                       const uint32_t *offsets, const struct booked *of)
{
    uint32_t count = het_count(try->job), done = 0;

    for (; done < count; done++) {
        uint32_t offset = offsets ? offsets[done] : done;
        const struct job *part = state_job(sched->state, try->job->id + offset);
        struct family *own = family_for(sched, part);
        struct parts parts = of[offset].parts; /* the list stays theirs */
        command->starts[offset] = hold_parts(sched, try, part, own, &parts);
        family_free(own);
        if (!command->starts[offset])
            break;
    }
    for (uint32_t i = 0; i < done && done < count; i++)
        inflight_undo(sched, try->job->id + (offsets ? offsets[i] : i), try->task);
    return done == count;
}

/* Where they would be if it were planned ahead: that looks for hosts in another way. */
static bool try_as_booked(struct sched *sched, struct attempt *try, CmdStart *command,
                          const uint32_t *offsets)
{
    struct booked *of;
    bool good = het_starts_now(sched, try->job, try->over, &of) &&
                take_parts(sched, try, command, offsets, of);

    booked_free(sched, of, het_count(try->job));
    return good;
}

static CmdStart *start_command(struct sched *sched, uint32_t count)
{
    CmdStart *command = ARENA_NEW(&sched->plan_arena, CmdStart);

    cmd_start__init(command);
    command->n_starts = count;
    command->starts = ARENA_ARRAY(&sched->plan_arena, JobStart *, count);
    return command;
}

/* All or none; when one finds no room beside the others, once more in another order. */
static bool try_components(struct sched *sched, struct attempt *try)
{
    uint32_t count = het_count(try->job), done;
    CmdStart *command = start_command(sched, count);
    struct het_turns turns;

    het_turns_init(&turns, count);
    do {
        for (done = 0; done < count; done++) {
            uint32_t offset = turns.order[done];
            command->starts[offset] = try_component(sched, try, offset);
            if (!command->starts[offset])
                break;
        }
        if (done < count)
            land(sched, try, turns.order, done);
    } while (done < count && !try->hit.reason && het_turns_retry(&turns, done));
    bool good = done == count ||
                (done > 0 && !try->hit.reason && try_as_booked(sched, try, command, turns.order));
    het_turns_done(&turns);
    if (good)
        vec_push(&sched->plan->starts, command);
    return good;
}

/* False when it does not fit now; *short_of is then set. */
bool plan_job(struct sched *sched, struct family *family, const struct job *job, struct order over,
              uint32_t *short_of)
{
    uint32_t task = next_task(sched, job);
    struct attempt try = { .family = family, .job = job, .task = task, .short_of = 1 };

    *short_of = 1;
    if (pending_place_of(sched, job) != PENDING_QUEUED) { /* others of its array went meanwhile */
        pending_settle(sched, job);
        return true;
    }
    if (task != NO_TASK && is_planned(sched, job->id, task)) {
        /* Tasks before the planned ones wait again: begin from the front. */
        ((struct inflight_list *)map_get_num(&sched->limit->inflights, job->id))->next_task = 0;
        return true;
    }
    if (limits_in_way(sched, job))
        return true;
    try.over = over;
    search_hold(sched);
    bool good = try_components(sched, &try);
    search_unhold(sched, good);
    if (!good) {
        *short_of = try.short_of;
        if (try.put_off)
            return true;
        if (try.hit.reason) /* what it would be given is more than it asks for */
            pending_limit(sched, job, &try.hit, true);
        return try.hit.reason != 0;
    }
    after_task(sched, job, task);
    preempt_hold_returns(sched, job);
    pending_settle(sched, job);
    return true;
}

bool plan_job_at(struct sched *sched, struct family *family, const struct job *job,
                 struct order over, const struct booked *of)
{
    struct attempt try = { .family = family, .job = job, .over = over };
    CmdStart *command = start_command(sched, het_count(job));

    try.task = next_task(sched, job);
    if (pending_place_of(sched, job) != PENDING_QUEUED ||
        (try.task != NO_TASK && is_planned(sched, job->id, try.task)) ||
        !take_parts(sched, &try, command, NULL, of))
        return false;
    vec_push(&sched->plan->starts, command);
    after_task(sched, job, try.task);
    preempt_hold_returns(sched, job);
    pending_settle(sched, job);
    return true;
}

/* Grows when something that matters to every job became free or was added. */
static uint64_t turn(const struct sched *sched)
{
    return sched->releases + sched->epoch + 1;
}

/* Where it was promised to start, which is not always found again. */
static bool plan_as_booked(struct sched *sched, struct family *family, const struct job *job,
                           struct order order)
{
    const struct pending *pending = pending_find(sched, job->id);
    const struct booked *of = pending && pending->booked ? book_seats(sched, job->id) : NULL;

    return of && plan_job_at(sched, family, job, order, of);
}

/*
 * Tries to start it now, if need be over promises to jobs behind it. Once that did not help it is not done again
 * for jobs that take as long until something is released.
 */
static bool try_job(struct sched *sched, struct family *family, const struct job *job,
                    struct order order, uint32_t *short_of)
{
    uint32_t other;

    if (plan_job(sched, family, job, NO_ORDER, short_of) ||
        plan_as_booked(sched, family, job, order))
        return true;
    if (!book_is_behind(sched, order) ||
        (family->barred == turn(sched) && job_length_us(job) >= family->barred_us))
        return false;
    if (plan_job(sched, family, job, order, &other))
        return true;
    family->barred = turn(sched);
    family->barred_us = job_length_us(job);
    return false;
}

static void try_family(struct sched *sched, struct family *family, struct order order)
{
    const struct job *job = state_job(sched->state, order.id);
    uint32_t short_of;

    if (try_job(sched, family, job, order, &short_of))
        return;
    int64_t end = job_end_by(job, sched->now_us);
    family_tried(sched, family);
    family_mark_blocked(sched, family, book_start_before(sched, end), short_of, order);
}

static void try_offer(struct sched *sched, struct family *family, struct order order,
                      struct host *host)
{
    const struct job *job = state_job(sched->state, order.id);
    uint32_t short_of;

    if (try_job(sched, family, job, order, &short_of)) {
        order.id--; /* more of an array may follow */
    } else {
        /* Shorter ones may do; they are tried in their own right. */
        family_mark_ready(sched, family, book_start_before(sched, job_end_by(job, sched->now_us)));
        if (!pending_find(sched, order.id)->booked)
            family_needs_booking(sched, family, order);
    }
    wants_offered(sched, host, order);
}

/* ---- the plan ---- */

/* The family whose job is next, with its key brought up to date: time passes. */
static struct family *hottest(struct sched *sched, struct order *order)
{
    const struct heap_item *top;

    while ((top = heap_top(&sched->queue->ready))) {
        struct family *family = top->family;
        int64_t limit =
            family->end_by_us == INT64_MAX ? INT64_MAX : family->end_by_us - sched->now_us;
        *order = family_first(family, limit, NULL);
        if (order->id == top->key.id && order->rank == top->key.rank)
            return family;
        heap_set(&sched->queue->ready, &family->ready_at, family, *order);
        if (order_is_last(*order)) {
            family_tried(sched, family);
            if (family_is_open(family)) /* those of limit queues may be short enough */
                family_wake(sched, family);
        }
    }
    *order = ORDER_LAST;
    return NULL;
}

/* Strictly in order: nothing goes before a job of the same partition that waits. */
static bool must_wait_in_limit_queue(const struct sched *sched, const struct family *family,
                                     struct order order)
{
    bool first = false;

    for (uint32_t i = 0; i < family->partition_queue_count; i++) {
        if (family->partition_queues[i] >= sched->queue->partition_queues.len)
            continue;
        const struct heap_item *top =
            heap_top(&sched->queue->partition_queues.items[family->partition_queues[i]].heap);
        first = first || (top && top->key.id == order.id);
    }
    return sched->queue->in_order && !first;
}

static void take_back_refused(struct sched *sched)
{
    while (sched->plan->refused.len) {
        const struct job *job =
            state_job(sched->state, sched->plan->refused.items[--sched->plan->refused.len]);
        if (job)
            pending_refresh(sched, job);
    }
}

static void look_around(struct sched *sched, int64_t now_us)
{
    bool passed = sched->book->block_starts.len && sched->book->block_starts.items[0] <= now_us;
    uint64_t generation = state_generation(sched->state);

    if (passed)
        book_blocks(sched);
    if (sched->plan->refused.len && now_us >= sched->plan->refused_until_us)
        take_back_refused(sched);
    if (sched->limit->stop_changed && state_config(sched->state)->limit_stop)
        families_mark_ready(sched);
    sched->limit->stop_changed = false;
    if (now_us >= sched->hosts->topo.wake_us) {
        sched->hosts->topo.wake_us = INT64_MAX;
        families_mark_ready(sched);
    }
    if (sched->plan->generation != generation ||
        sched->plan->kinds_seen != sched->hosts->kinds_version) {
        sched->plan->generation = generation;
        sched->plan->kinds_seen = sched->hosts->kinds_version;
        sched->epoch++;
        families_mark_ready(sched);
    }
    sched->queue->het_news += passed;
    families_mark_het_ready(sched);
}

static void try_next(struct sched *sched, struct family *family, struct order order,
                     struct host *host)
{
    if (must_wait_in_limit_queue(sched, family, order) || limit_stop_blocks(sched, family, order)) {
        heap_del(&sched->queue->ready, &family->ready_at); /* until the limit queue moves */
        if (host)
            wants_offered(sched, host, order);
    } else if (host) {
        try_offer(sched, family, order, host);
    } else {
        try_family(sched, family, order);
    }
}

static void plan_on(struct sched *sched, unsigned *budget)
{
    for (;;) {
        struct order order, offered;
        struct host *host = NULL;
        wants_absorb(sched, budget);
        limits_review(sched, budget);
        struct family *family = hottest(sched, &order);
        struct family *other = wants_offer(sched, &offered, &host, budget);
        if (!other && !*budget && heap_top(&sched->queue->offers))
            break; /* which job is next is not known yet */
        if (other && (!family || order_before(offered, order))) {
            family = other;
            order = offered;
        } else {
            host = NULL;
        }
        if (!sched->queue->in_order && book_ahead(sched, order, budget))
            continue;
        if (!*budget || (!family && !limits_to_review(sched)))
            break;
        if (!family || limits_to_review(sched))
            continue; /* somebody was let out */
        if (limit_queue_ahead(sched, family, order) || reconfigure_moves(sched, order.id))
            continue;
        uint64_t looked = sched->looked, given = sched->plan->given;
        uint64_t cost = shape_cost(sched, family->shape) + COST_TRY;
        try_next(sched, family, order, host);
        cost += (sched->looked - looked) / HOSTS_PER_COST +
                (sched->plan->given - given) / GIVEN_PER_COST;
        budget_take(budget, cost);
        if (sched->plan->placed.now)
            *budget = 0;
        sched->plan->placed.now = false;
    }
}

/* With no more than half of the budget: others that must be made come after it, in every slice. */
static void review_bookings(struct sched *sched, unsigned *budget)
{
    unsigned half = *budget / 2 + 1, left = half;

    book_review(sched, &left);
    *budget = MAX(*budget - MIN(*budget, half - left), 1);
}

const struct plan *sched_plan(struct sched *sched, int64_t now_us, unsigned budget)
{
    arena_reset(&sched->plan_arena);
    vec_clear(&sched->plan->starts);
    vec_clear(&sched->preempt->commands);
    sched->now_us = now_us;
    if (!rebuild_continue(sched, &budget) || !budget) {
        sched->plan->plan = (struct plan){ .more = true, .works = true, .wake_us = INT64_MAX };
        return &sched->plan->plan;
    }
    if (sched->queue->reclass || sched->plan->reclass_id)
        reconfigure_continue(sched, &budget);
    look_around(sched, now_us);
    overtake_look(sched, &budget);
    preempt_start_held(sched);
    limits_sweep(sched, &budget);
    review_bookings(sched, &budget);
    int64_t waits_us = completing_until(sched);
    bool searches = false;
    bool moves = sched->plan->reclass_first && sched->plan->reclass_id;
    if (!waits_us && !moves) {
        plan_on(sched, &budget);
        searches = preempt_plan(sched, &budget);
    }
    forecast_continue(sched, MAX(budget, ASKED_LEAST));
    answer_continue(sched, MAX(budget, ASKED_LEAST));
    sched->plan->plan.preempts = (CmdPreempt *const *)sched->preempt->commands.items;
    sched->plan->plan.preempt_count = sched->preempt->commands.len;
    sched->plan->plan.starts = (CmdStart *const *)sched->plan->starts.items;
    sched->plan->plan.count = sched->plan->starts.len;
    sched->plan->plan.more =
        !budget && (sched->hosts->freed.len || heap_top(&sched->queue->ready) ||
                    heap_top(&sched->queue->offers) || sched->queue->needs_booking.len);
    sched->plan->plan.works =
        sched->book->searches[SEARCH_BOOK].paused || sched->book->searches[SEARCH_REVIEW].paused ||
        sched->book->keeping.job_id || sched->plan->reclass_id || sched->queue->sweep_id ||
        sched->plan->retired || sched_is_asked(sched);
    sched->plan->plan.more = sched->plan->plan.more || sched->queue->sweep_id ||
                             sched->plan->reclass_id || sched->plan->retired || searches ||
                             limits_to_review(sched) || sched->limit->queue_sweep ||
                             sched->book->searches[SEARCH_REVIEW].paused ||
                             sched->book->keeping.job_id || sched->book->review_soon;
    sched->plan->plan.more = (sched->plan->plan.more && !waits_us) || sched_is_asked(sched);
    sched->plan->plan.works = sched->plan->plan.works && sched->plan->plan.more;
    sched->plan->plan.wake_us =
        sched->plan->refused.len ? sched->plan->refused_until_us : INT64_MAX;
    sched->plan->plan.wake_us = MIN(sched->plan->plan.wake_us, sched->hosts->topo.wake_us);
    sched->plan->plan.wake_us = MIN(sched->plan->plan.wake_us, sched->queue->preempt_wake_us);
    sched->plan->plan.wake_us = MIN(sched->plan->plan.wake_us, waits_us ? waits_us : INT64_MAX);
    return &sched->plan->plan;
}
