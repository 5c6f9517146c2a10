/* SPDX-License-Identifier: Apache-2.0 */
/*
 * book.c - starts that are promised
 *
 * The first jobs of each partition that must wait are given a start and hosts; what they need then
 * is blocked on these hosts. What goes behind them may use it until then, and only until then.
 *
 * (1) A booking is made with all bookings of jobs before it in place, as if there were none of jobs
 *     behind it. Of those, the ones that it leaves no room for are given up, and made again when it
 *     is their turn; the others stay. A start that is planned over them does the same.
 * (2) It may be too late, never too early: jobs end before their limit. It is worked out again
 *     when enough has ended since to make that worth its cost.
 * (3) It becomes no later as long as there is room where it was promised: with less room than there was, other
 *     hosts may be found for it than these, and then too late. When its time has come it may start there, if
 *     no place is found for it in another way.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/book/book.h"

/* By how many bookings it is shared what a release pays for, and less for those that cost much; limits of one plan. */
enum { BOOKINGS_PER_SHARE = 4, DEAR_COST = 128, DEAR_SHARE = 4, LIMITS_MOST = 32 };

/* Effort of a search in one slice, at least: most are over after less. */
enum { LOOKS_LEAST = 2048 };

/* The place of the first booking that does not go before the order. */
static size_t place_of(const struct sched *sched, struct order order)
{
    size_t low = 0, high = sched->book->list.len;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (order_before(sched->book->list.items[middle].order, order))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct booking *booking_find(const struct sched *sched, uint32_t job_id)
{
    const struct pending *pending = pending_find(sched, job_id);
    size_t at = pending && pending->booked
                    ? place_of(sched, position_booked(sched, pending, job_id))
                    : sched->book->list.len;

    if (at == sched->book->list.len || sched->book->list.items[at].job_id != job_id)
        return NULL;
    return &sched->book->list.items[at];
}

const struct booking *booking_of(const struct sched *sched, uint32_t job_id)
{
    return booking_find(sched, job_id);
}

static void drop_at(struct sched *sched, size_t at)
{
    struct booking booking = sched->book->list.items[at];
    struct pending *pending = pending_find(sched, booking.job_id);
    bool held = sched->book->touches_held;

    vec_remove(&sched->book->list, at);
    sched->book->touches_held = false; /* this happens, whatever is tried */
    book_unkeep(sched, &booking);
    sched->book->touches_held = held;
    booked_free(sched, booking.of, booking.count);
    if (pending) {
        positions_booked(sched, pending, booking.job_id, -1);
        pending->booked = 0;
    }
    for (uint32_t n = 0; n < sched->queue->partition_queues.len && booking.refs; n++) {
        if (partition_queue_uncount(&sched->queue->partition_queues.items[n], booking.order)) {
            booking.refs--;
            partition_queue_needs_booking(sched, n, booking.order);
        }
    }
    if (pending && pending->positions)
        positions_need_booking(sched, pending, booking.job_id);
    book_bounds_changed(sched);
}

void book_drop(struct sched *sched, uint32_t job_id)
{
    search_forget(sched, job_id);
    const struct booking *booking = booking_find(sched, job_id);

    if (booking)
        drop_at(sched, (size_t)(booking - sched->book->list.items));
}

bool book_is_behind(const struct sched *sched, struct order order)
{
    size_t count = sched->book->list.len;

    return count && order_before(order, sched->book->list.items[count - 1].order);
}

/* ---- (1): what makes way ---- */

static bool has_licences(const struct sched *sched, uint32_t first_id, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct job *job = state_job(sched->state, first_id + i);
        if (job && job->shape->licence_count)
            return true;
    }
    return false;
}

static void amount_add(struct amount *sum, const struct amount *amount)
{
    sum->whole = sum->whole || amount->whole;
    sum->cpus += amount->cpus;
    sum->mem_mb += amount->mem_mb;
    for (size_t i = 0; i < TAKE_GRES; i++)
        sum->gres[i] += amount->gres[i];
}

/* `late_us` of that it may start later without ending later. */
static bool host_keeps(const struct sched *sched, const struct host *host, uint32_t job_id,
                       int64_t from_us, int64_t late_us)
{
    struct amount sum = { 0 };
    struct view view = { .now_us = sched->now_us, .mine = job_id };

    view.start_us = MAX(from_us, sched->now_us);
    for (size_t i = 0; i < host->blocks.len; i++) {
        const struct block *block = &host->blocks.items[i];
        if (block->job_id != job_id)
            continue;
        amount_add(&sum, block->amount);
        view.order = block->order;
        view.resv = block->resv;
        view.end_us = MAX(view.end_us, block->end_us + view.start_us - block->start_us - late_us);
    }
    return host->usable && host_has_room(sched, host, &sum, &view);
}

bool book_host_keeps(const struct sched *sched, const struct host *host, uint32_t job_id,
                     int64_t from_us)
{
    return host_keeps(sched, host, job_id, from_us, 0);
}

/* One of the blocks of the host that is behind and does not hold; 0: none. */
static uint32_t who_must_go(const struct sched *sched, uint32_t number, struct order order)
{
    const struct host *host = &sched->hosts->list.items[number];

    for (size_t i = 0; i < host->blocks.len; i++) {
        const struct block *block = &host->blocks.items[i];
        if (block->job_id && block->job_id != order.id && order_before(order, block->order) &&
            booking_find(sched, block->job_id) &&
            !book_host_keeps(sched, host, block->job_id, block->start_us))
            return block->job_id;
    }
    return 0;
}

static struct family *family_of(const struct sched *sched, const struct booking *booking)
{
    return position_class(sched, pending_find(sched, booking->job_id), booking->order)->family;
}

static bool licences_hold(struct sched *sched, const struct booking *booking, int64_t from_us,
                          int64_t late_us)
{
    const struct job *job = state_job(sched->state, booking->job_id);
    struct view view = { .now_us = sched->now_us, .mine = job->id, .order = booking->order };
    uint32_t choice;

    if (booking->count > 1)
        return false;
    view.start_us = MAX(from_us, sched->now_us);
    view.end_us = booking->of->end_us + view.start_us - booking->start_us - late_us;
    view.resv = resv_hash(booking->of->parts.resv ? booking->of->parts.resv->spec->name : NULL);
    return licences_fit(sched, family_of(sched, booking), &view, &choice);
}

/* Could it still start then, or `late_us` later, where it was promised to? */
static bool holds_from(struct sched *sched, const struct booking *booking, int64_t from_us,
                       int64_t late_us)
{
    for (uint32_t k = 0; k < booking->count; k++) {
        const struct parts *parts = &booking->of[k].parts;
        for (size_t i = 0; i < parts->list.len; i++) {
            if (!host_keeps(sched, &sched->hosts->list.items[parts->list.items[i].host],
                            booking->job_id, from_us + late_us, late_us))
                return false;
        }
    }
    return !has_licences(sched, booking->job_id, booking->count) ||
           licences_hold(sched, booking, from_us + late_us, late_us);
}

/* More than room on its hosts decides whether it may start there. */
static bool is_simple(const struct sched *sched, const struct booking *booking)
{
    for (uint32_t k = 0; k < booking->count; k++) {
        const struct parts *parts = &booking->of[k].parts;
        const struct need *need = parts->need;
        const struct job *job = state_job(sched->state, booking->job_id + k);
        if (need->share > 1 || need->max_cpus_per_node || need->max_cpus_per_socket || need->lone ||
            need->bound || parts->resv || need->partition->spec->exclusive_user ||
            job->shape->exclusive_user || job->shape->exclusive_mcs || job->shape->exclusive_topo)
            return false;
        for (size_t i = 0; i < parts->list.len; i++) {
            if (sched->hosts->list.items[parts->list.items[i].host].exclusive)
                return false;
        }
    }
    return !sched->hosts->topo_exclusive;
}

const struct booked *book_seats(struct sched *sched, uint32_t job_id)
{
    const struct booking *booking = booking_find(sched, job_id);

    bool good = booking && booking->kept && booking->start_us <= sched->now_us &&
                is_simple(sched, booking) && holds_from(sched, booking, sched->now_us, 0);
    return good ? booking->of : NULL;
}

void book_yield_at(struct sched *sched, struct order order, uint32_t host)
{
    uint32_t id;

    while ((id = who_must_go(sched, host, order)))
        book_drop(sched, id);
}

void book_yield(struct sched *sched, struct order order, const struct shape *shape,
                const struct parts *parts)
{
    if (!book_is_behind(sched, order))
        return;
    for (size_t i = 0; i < parts->list.len; i++)
        book_yield_at(sched, order, parts->list.items[i].host);
    book_yield_licences(sched, order, shape);
}

void book_yield_licences(struct sched *sched, struct order order, const struct shape *shape)
{
    for (size_t i = shape->licence_count ? place_of(sched, order) : sched->book->list.len;
         i < sched->book->list.len;) {
        const struct booking *booking = &sched->book->list.items[i];
        if (booking->job_id != order.id && has_licences(sched, booking->job_id, booking->count) &&
            !licences_hold(sched, booking, booking->start_us, 0))
            drop_at(sched, i);
        else
            i++;
    }
}

/* ---- bookings ---- */

/* The QOS says that nothing is kept for the job, or not with so low a priority. */
static bool never_reserves(const struct sched *sched, const struct job *job)
{
    const struct qos *qos = job_qos(job);

    return qos && (qos->flags & QOS_NO_RESERVE ||
                   (qos->min_priority && job_priority(sched->state, job) < qos->min_priority));
}

/* Until when it is known of a family that no start can be foreseen; what ends may help several components. */
static uint64_t hope(const struct sched *sched, const struct family *family)
{
    return sched->epoch + 1 + (family->het ? sched->releases : 0);
}

/* That one before it was in in vain: with more before it, it is so too. */
static bool is_hopeless(const struct sched *sched, const struct family *family, struct order order)
{
    return family->hopeless == hope(sched, family) && !order_before(order, family->hopeless_at);
}

static void booking_put(struct sched *sched, const struct booking *booking)
{
    size_t at = place_of(sched, booking->order);

    vec_push(&sched->book->list, *booking);
    for (size_t i = sched->book->list.len - 1; i > at; i--)
        sched->book->list.items[i] = sched->book->list.items[i - 1];
    sched->book->list.items[at] = *booking;
}

/*
 * When it can start, and where; LATER: that goes on in the next slice. *of is to be freed in any case. The search is
 * to be ended unless LATER.
 */
static int64_t search_start(struct sched *sched, unsigned which, struct order order,
                            struct family *family, unsigned *budget, struct booked **of,
                            uint32_t *late_id)
{
    const struct job *job = state_job(sched->state, order.id);
    uint64_t effort = MAX((uint64_t)*budget * STARTS_PER_COST, LOOKS_LEAST), was = sched->looked;
    struct search *search = search_begin(sched, which, job, order, effort);
    struct view view = { .now_us = search->now_us, .order = order, .search = search };
    const struct job *last = NULL;

    int64_t start = start_of(sched, family, job, &view, of, &last);
    *late_id = last ? last->id : 0;
    search->cost += sched->looked - was;
    budget_take(budget, 1 + (sched->looked - was) / STARTS_PER_COST);
    return start;
}

/* position.c (2): what it has for another of its places is no worse. */
static bool stays(struct sched *sched, const struct pending *pending, const struct booking *found)
{
    const struct booking *has = booking_find(sched, found->job_id);

    position_compared(sched, pending, found->order, found->cost);
    return has->start_us < found->start_us ||
           (has->start_us == found->start_us && order_before(has->order, found->order));
}

bool book_job(struct sched *sched, struct order order, struct family *family, unsigned *budget)
{
    const struct job *job = state_job(sched->state, order.id);
    struct search *search = &sched->book->searches[SEARCH_BOOK];
    struct booking booking = { .job_id = order.id, .order = order };

    if (is_hopeless(sched, family, order) || sched->hooks->is_held(sched, order.id) ||
        never_reserves(sched, job) || (family->het && het_reason(sched, job)))
        return false;
    booking.count = het_count(job);
    booking.start_us =
        search_start(sched, SEARCH_BOOK, order, family, budget, &booking.of, &booking.late_id);
    booking.releases = search->releases;
    booking.cost = search->cost;
    if (booking.start_us == LATER) {
        booked_free(sched, booking.of, booking.count);
        return false;
    }
    search_end(sched, search);
    if (booking.start_us == INT64_MAX) {
        family->hopeless = hope(sched, family);
        family->hopeless_at = order;
        booked_free(sched, booking.of, booking.count);
        return false;
    }
    struct pending *pending = pending_find(sched, order.id);
    if (pending->booked && stays(sched, pending, &booking)) {
        booked_free(sched, booking.of, booking.count);
        return true;
    }
    if (pending->booked)
        book_drop(sched, order.id);
    booking_put(sched, &booking);
    pending->booked = position_number(sched, pending, order);
    positions_booked(sched, pending, order.id, 1);
    search->paused = !book_keep(sched, order.id);
    return true;
}

static bool same_parts(const struct booked *a, const struct booked *b, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        const struct parts *x = &a[k].parts, *y = &b[k].parts;
        if (x->list.len != y->list.len)
            return false;
        for (size_t i = 0; i < x->list.len; i++) {
            const struct chosen *one = &x->list.items[i], *other = &y->list.items[i];
            if (one->host != other->host || one->take.tasks != other->take.tasks ||
                one->take.cpus != other->take.cpus || one->take.mem_mb != other->take.mem_mb ||
                memcmp(one->take.gres, other->take.gres, sizeof(one->take.gres)) != 0)
                return false;
        }
    }
    return true;
}

/* It gets another start, or other hosts; none: it is given up. */
static void move(struct sched *sched, size_t at, int64_t start_us, struct booked *of)
{
    struct booking *booking = &sched->book->list.items[at];

    if (start_us == INT64_MAX) {
        booked_free(sched, of, booking->count);
        drop_at(sched, at);
        return;
    }
    book_unkeep(sched, booking);
    booked_free(sched, booking->of, booking->count);
    booking->of = of;
    booking->start_us = start_us;
    booking->due_us = 0;
    book_keep(sched, booking->job_id);
}

/* Works it out again; true when it is as it was, or not known yet. */
static bool review(struct sched *sched, size_t at, unsigned *budget)
{
    struct booking *booking = &sched->book->list.items[at];
    struct family *family = family_of(sched, booking);
    struct search *search = &sched->book->searches[SEARCH_REVIEW];
    struct booked *of;
    uint32_t late_id;
    int64_t start =
        search_start(sched, SEARCH_REVIEW, booking->order, family, budget, &of, &late_id);

    if (start == LATER) { /* it stays as it is until that is known */
        booked_free(sched, of, booking->count);
        return true;
    }
    booking->late_id = late_id;
    booking->cost = search->cost;
    booking->releases = search->releases;
    search_end(sched, search);
    bool same = start == booking->start_us && same_parts(of, booking->of, booking->count);
    /* (3). A start that was planned until then ends some moments later, and who comes after it begins so. */
    if (!same && start > booking->start_us && !booking->due_us &&
        holds_from(sched, booking, booking->start_us, US_PER_S)) {
        if (booking->start_us < sched->now_us) { /* it is to be tried there */
            booking->due_us = sched->now_us + US_PER_S;
            family_mark_ready(sched, family, INT64_MAX);
        }
        same = true;
    }
    if (same) {
        booked_free(sched, of, booking->count);
        return true;
    }
    move(sched, at, start, of);
    return false;
}

/* Some of those that a limit keeps from starting by now, in turn: nothing is kept for them. */
static void drop_limited(struct sched *sched)
{
    for (unsigned i = 0; i < LIMITS_MOST && i < sched->book->list.len; i++) {
        if (sched->book->limits_at >= sched->book->list.len)
            sched->book->limits_at = 0;
        uint32_t id = sched->book->list.items[sched->book->limits_at].job_id;
        if (limits_stop(sched, id))
            limits_in_way(sched, state_job(sched->state, id)); /* and gives it up */
        else
            sched->book->limits_at++;
    }
}

/* The one whose review was left off goes on before others; true: it must again. */
static bool review_on(struct sched *sched, unsigned *budget)
{
    struct search *search = &sched->book->searches[SEARCH_REVIEW];
    const struct booking *booking = search->job_id ? booking_find(sched, search->job_id) : NULL;

    if (booking)
        review(sched, (size_t)(booking - sched->book->list.items), budget);
    else if (search->job_id)
        search_end(sched, search);
    return search->paused;
}

/* (2) */
void book_review(struct sched *sched, unsigned *budget)
{
    const struct search *search = &sched->book->searches[SEARCH_REVIEW];

    drop_limited(sched);
    sched->book->review_soon = false;
    if (review_on(sched, budget))
        return;
    uint64_t share =
        1 + sched->book->list.len / BOOKINGS_PER_SHARE; /* of what a release pays for */

    for (size_t i = 0; i < sched->book->list.len && *budget && !search->paused; i++) {
        const struct booking *booking = &sched->book->list.items[i];
        bool due = MAX(booking->start_us, booking->due_us) < sched->now_us;
        uint64_t worth = (sched->releases - booking->releases) * COST_PER_RELEASE / share;
        if (booking->cost > DEAR_COST)
            worth /= DEAR_SHARE;
        if (booking->kept && (due || (worth && worth >= booking->cost)))
            review(sched, i, budget);
    }
}

void book_settle(struct sched *sched, unsigned *budget)
{
    while (review_on(sched, budget)) {
    }
    for (size_t i = 0; i < sched->book->list.len && *budget; i++) {
        review(sched, i, budget);
        while (review_on(sched, budget)) {
        }
    }
}

void bookings_done(struct sched *sched)
{
    vec_each (struct booking, booking, &sched->book->list)
        booked_free(sched, booking->of, booking->count);
    vec_done(&sched->book->list);
    vec_done(&sched->book->block_starts);
    sched->hosts->last_block_us = INT64_MIN;
    for (size_t i = 0; i < sched->queue->partition_queues.len; i++) {
        vec_done(&sched->queue->partition_queues.items[i].booked);
        vec_done(&sched->queue->partition_queues.items[i].front);
    }
}
