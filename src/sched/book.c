/* SPDX-License-Identifier: Apache-2.0 */
/*
 * book.c - starts that are promised
 *
 * The first jobs of each partition that must wait are given a start and hosts; what they need then
 * is blocked on these hosts. What goes behind them may use it until then, and only until then.
 *
 * (1) A booking is made with all bookings of jobs before it in place and none of jobs behind it.
 * (2) It may be too late, never too early: jobs end before their limit. It is worked out again
 *     when enough has ended since to make that worth its cost.
 * (3) Many bookings are made over several slices. Meanwhile nothing behind them is tried, and those
 *     further behind stay.
 */
#include <stdlib.h>

#include "sched/sched_priv.h"

/* A job that cannot be booked is passed over, so that those behind it can. */
enum { LOOK_MOST = 64, COST_PER_RELEASE = 16, BOOKINGS_PER_SHARE = 4 };

const struct booking *booking_of(const struct sched *sched, uint32_t job_id)
{
    vec_each (struct booking, booking, &sched->bookings) {
        if (booking->job_id == job_id)
            return booking;
    }
    return NULL;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

void book_blocks(struct sched *sched)
{
    vec_clear(&sched->block_starts);
    vec_each (struct booking, booking, &sched->bookings) {
        if (booking->start_us > sched->now_us)
            vec_push(&sched->block_starts, booking->start_us);
    }
    for (size_t i = 0; i < state_reservation_count(sched->state); i++) {
        int64_t start = state_reservation_at(sched->state, i)->spec->start_us;
        if (start > sched->now_us)
            vec_push(&sched->block_starts, start);
    }
    if (sched->block_starts.len)
        qsort(sched->block_starts.items, sched->block_starts.len, sizeof(int64_t), by_value);
    sched->last_block_us = sched->block_starts.len
                               ? sched->block_starts.items[sched->block_starts.len - 1]
                               : INT64_MIN;
}

static void unblock(struct sched *sched, const struct booking *booking)
{
    for (uint32_t k = 0; k < booking->count; k++) {
        const struct parts *parts = &booking->of[k].parts;
        for (size_t i = 0; i < parts->list.len; i++)
            host_block_del(sched, parts->list.items[i].host, booking->job_id);
    }
}

static void block(struct sched *sched, const struct booking *booking, const struct booked *of)
{
    const struct parts *parts = &of->parts;

    for (size_t i = 0; i < parts->list.len; i++) {
        struct block block = { .start_us = booking->start_us, .job_id = booking->job_id };
        block.end_us = of->end_us;
        block.resv = resv_hash(parts->resv ? parts->resv->spec->name : NULL);
        block.amount = amount_take(sched, &parts->list.items[i].take, parts->need->whole_nodes);
        host_block_add(sched, parts->list.items[i].host, block);
    }
}

static void drop_at(struct sched *sched, size_t at)
{
    struct booking booking = sched->bookings.items[at];
    struct pend *pend = pend_find(sched, booking.job_id);

    vec_remove(&sched->bookings, at);
    unblock(sched, &booking);
    booked_free(sched, booking.of, booking.count);
    if (pend) {
        pend->booked = false;
        class_of(sched, pend)->family->booked--;
    }
    for (uint32_t n = 0; n < sched->lanes.len && booking.refs; n++) {
        struct lane *lane = &sched->lanes.items[n];
        for (size_t i = lane->booked.len; i-- > 0;) {
            if (lane->booked.items[i] == booking.job_id) {
                vec_remove(&lane->booked, i);
                booking.refs--;
                lane_doubt(sched, n);
            }
        }
    }
    book_blocks(sched);
}

void book_drop(struct sched *sched, uint32_t job_id)
{
    for (size_t i = 0; i < sched->bookings.len; i++) {
        if (sched->bookings.items[i].job_id == job_id) {
            drop_at(sched, i);
            return;
        }
    }
}

bool book_drop_behind(struct sched *sched, struct order order)
{
    bool any = false;

    while (sched->bookings.len &&
           order_before(order, sched->bookings.items[sched->bookings.len - 1].order)) {
        drop_at(sched, sched->bookings.len - 1);
        any = true;
    }
    return any;
}

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

static void keep_licences(struct sched *sched, const struct booking *booking)
{
    for (uint32_t i = 0; i < booking->count; i++) {
        const struct job *job = state_job(sched->state, booking->job_id + i);
        booking->of[i].licences =
            licences_book(sched, booking->job_id, job->shape, &booking->of[i].parts,
                          booking->start_us, booking->of[i].end_us);
    }
}

static bool book(struct sched *sched, struct order order, struct class *class)
{
    const struct job *job = state_job(sched->state, order.id);
    struct family *family = class->family;
    struct booking booking = { .job_id = order.id, .order = order, .releases = sched->releases };
    uint64_t before = sched->looked;

    if (family->hopeless == hope(sched, family) || hold_of(sched, order.id) ||
        never_reserves(sched, job) || (family->het && het_reason(sched, job)))
        return false;
    book_drop_behind(sched, order); /* (1) */
    booking.count = het_count(job);
    booking.start_us = start_of(sched, family, job, sched->now_us, false, &booking.of, NULL);
    booking.cost = sched->looked - before;
    if (booking.start_us == INT64_MAX) {
        family->hopeless = hope(sched, family);
        booked_free(sched, booking.of, booking.count);
        return false;
    }
    vec_push(&sched->bookings, booking);
    pend_find(sched, order.id)->booked = true;
    family->booked++;
    for (uint32_t i = 0; i < booking.count; i++)
        block(sched, &booking, &booking.of[i]);
    keep_licences(sched, &booking);
    book_blocks(sched);
    return true;
}

static struct booking *booking_at(struct sched *sched, uint32_t job_id)
{
    return (struct booking *)booking_of(sched, job_id);
}

/* The lane counts the job among its first. */
static void lane_keep(struct sched *sched, struct lane *lane, uint32_t job_id)
{
    for (size_t i = 0; i < lane->booked.len; i++) {
        if (lane->booked.items[i] == job_id)
            return;
    }
    vec_push(&lane->booked, job_id);
    booking_at(sched, job_id)->refs++;
}

/*
 * What the lane no longer counts, and no other does, is given up. Not those that the walk did not
 * come to, while there is room for them: they would be booked again when it does, and each time
 * what was blocked for them would look free.
 */
static void lane_forget(struct sched *sched, struct lane *lane, struct order before,
                        const uint32_t *kept, size_t count)
{
    size_t room = lane->most - MIN(count, lane->most);

    for (size_t i = lane->booked.len; i-- > 0;) {
        uint32_t id = lane->booked.items[i];
        struct booking *booking = booking_at(sched, id);
        bool keep = false;
        for (size_t k = 0; k < count; k++)
            keep = keep || kept[k] == id;
        if (!keep && booking && room && !order_before(booking->order, before)) {
            room--;
            keep = true;
        }
        if (keep)
            continue;
        vec_remove(&lane->booked, i);
        if (booking && --booking->refs == 0)
            book_drop(sched, id);
    }
}

static bool book_lane(struct sched *sched, struct lane *lane, struct order before, unsigned *budget)
{
    uint32_t kept[LIMIT_BOOKINGS], limited[64];
    size_t stopped = 0;
    struct lane_walk walk;
    struct class *class;
    size_t count = 0;
    bool changed = false;

    unsigned looked = 0;
    lane_walk_begin(&walk, lane);
    for (; count < lane->most && looked < LOOK_MOST + lane->most; looked++) {
        struct order order = lane_walk_next(&walk, &class);
        if (order_is_last(order) || !order_before(order, before))
            break;
        if (looked && !*budget) { /* (3) */
            before = order;
            lane_doubt(sched, (uint32_t)(lane - sched->lanes.items));
            break;
        }
        if (limits_stop(sched, order.id) && stopped < ARRAY_LEN(limited)) {
            limited[stopped++] = order.id;
            budget_take(budget, COST_TRY);
            continue;
        }
        if (!pend_find(sched, order.id)->booked) {
            uint64_t was = sched->looked;
            changed = true;
            bool good = book(sched, order, class);
            /* Those that cannot be are known then: they cost nothing in the next slice. */
            budget_take(budget, good + (sched->looked - was) / STARTS_PER_COST);
            if (!good)
                continue;
        }
        kept[count++] = order.id;
    }
    lane_walk_done(&walk);
    budget_take(budget, 1 + looked / ITEMS_PER_COST);
    for (size_t i = 0; i < stopped; i++) /* not in the way of the next walk */
        changed = limits_in_way(sched, state_job(sched->state, limited[i])) || changed;
    for (size_t i = 0; i < count; i++) {
        const struct booking *booking = booking_of(sched, kept[i]);
        if (booking) {
            lane->last = booking->order;
            lane_keep(sched, lane, kept[i]);
        }
    }
    lane_forget(sched, lane, before, kept, count);
    return changed;
}

/* The unsure lane whose first job goes before those of the others. */
static size_t next_unsure(const struct sched *sched, struct order before)
{
    struct order best = before;
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < sched->unsure.len; i++) {
        const struct heap_item *top = heap_top(&sched->lanes.items[sched->unsure.items[i]].heap);
        if (top && order_before(top->key, best)) {
            best = top->key;
            found = i;
        }
    }
    return found;
}

bool book_ahead(struct sched *sched, struct order before, unsigned *budget)
{
    bool changed = false;

    while (*budget && sched->unsure.len) {
        size_t at = next_unsure(sched, before);
        if (at == SIZE_MAX)
            break;
        struct lane *lane = &sched->lanes.items[sched->unsure.items[at]];
        sched->unsure.items[at] = sched->unsure.items[--sched->unsure.len];
        lane->unsure = false;
        changed = book_lane(sched, lane, before, budget) || changed;
    }
    return changed;
}

static bool same_parts(const struct booked *a, const struct booked *b, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++) {
        const struct parts *x = &a[k].parts, *y = &b[k].parts;
        if (x->list.len != y->list.len)
            return false;
        for (size_t i = 0; i < x->list.len; i++) {
            if (x->list.items[i].host != y->list.items[i].host)
                return false;
        }
    }
    return true;
}

/* (2) */
void book_review(struct sched *sched, unsigned *budget)
{
    uint64_t share = 1 + sched->bookings.len / BOOKINGS_PER_SHARE; /* of what a release pays for */

    for (size_t i = 0; i < sched->bookings.len && *budget; i++) {
        struct booking *booking = &sched->bookings.items[i];
        bool due = booking->start_us < sched->now_us;
        uint64_t worth = (sched->releases - booking->releases) * COST_PER_RELEASE / share;
        if (!due && (worth == 0 || worth < booking->cost))
            continue;
        const struct job *job = state_job(sched->state, booking->job_id);
        struct pend *pend = pend_find(sched, booking->job_id);
        struct booked *of;
        uint64_t was = sched->looked;
        int64_t start =
            start_of(sched, class_of(sched, pend)->family, job, sched->now_us, false, &of, NULL);
        bool same = start == booking->start_us && same_parts(of, booking->of, booking->count);
        booked_free(sched, of, booking->count);
        budget_take(budget, 1 + (sched->looked - was) / STARTS_PER_COST);
        booking->cost = sched->looked - was;
        booking->releases = sched->releases;
        if (!same) { /* it is booked again, and so are those behind it */
            book_drop_behind(sched, (struct order){ booking->order.rank, booking->order.id - 1 });
            return;
        }
    }
}

void bookings_done(struct sched *sched)
{
    vec_each (struct booking, booking, &sched->bookings)
        booked_free(sched, booking->of, booking->count);
    vec_done(&sched->bookings);
    vec_done(&sched->block_starts);
    sched->last_block_us = INT64_MIN;
    for (size_t i = 0; i < sched->lanes.len; i++)
        vec_done(&sched->lanes.items[i].booked);
}
