/* SPDX-License-Identifier: Apache-2.0 */
/*
 * book_queue.c - who is promised a start: the first jobs of each partition that must wait
 *
 * (1) Many bookings are made over several slices. Meanwhile nothing behind them is tried, and those
 *     further behind stay.
 * (2) partition_queue->front has every job of the partition queue that goes before partition_queue->front_end, in order, and perhaps some that
 *     have gone. Only what is doubted is looked at: from partition_queue->needs_booking_lo to partition_queue->needs_booking_hi, and as many behind
 *     the last one that is booked as there is room for.
 */
#include "base/must.h"
#include "sched/book/book.h"

/* A job that cannot be booked is passed over, so that those behind it can. */
enum { LOOK_MOST = PARTITION_FRONT, FRONT_MORE = 8, LIMITED_MOST = 64 };

/* The partition queue counts the job among its first. */
static void partition_queue_keep(struct sched *sched, struct partition_queue *partition_queue,
                                 struct order order)
{
    if (order_list_put((order_list *)(void *)&partition_queue->booked, order))
        booking_find(sched, order.id)->refs++;
}

/* What the partition queue no longer counts, and no other does, is given up. */
static void partition_queue_trim(struct sched *sched, struct partition_queue *partition_queue)
{
    while (partition_queue->booked.len > partition_queue->most) {
        uint32_t id = partition_queue->booked.items[--partition_queue->booked.len].id;
        struct booking *booking = booking_find(sched, id);
        MUST(booking && booking->refs > 0);
        if (--booking->refs == 0)
            book_drop(sched, id);
    }
}

/* ---- (2) ---- */

/* More of them than there are, up to `most`; false when there are none. */
static bool front_fill(struct partition_queue *partition_queue, size_t most, unsigned *budget)
{
    struct partition_queue_walk walk;
    struct class *class;

    if (order_is_last(partition_queue->front_end))
        return false;
    vec_clear(&partition_queue->front);
    partition_queue_walk_begin(&walk, partition_queue);
    for (;;) {
        partition_queue->front_end = partition_queue_walk_next(&walk, &class);
        if (order_is_last(partition_queue->front_end) || partition_queue->front.len == most)
            break;
        vec_push(&partition_queue->front, partition_queue->front_end);
    }
    partition_queue_walk_done(&walk);
    budget_take(budget, partition_queue->front.len / ITEMS_PER_COST);
    return true;
}

/* Its family, if it is still there; NULL: it has gone. */
static struct family *front_family(const struct sched *sched,
                                   const struct partition_queue *partition_queue,
                                   struct order order)
{
    const struct pending *pending = pending_find(sched, order.id);
    uint32_t number = (uint32_t)(partition_queue - sched->queue->partition_queues.items);

    const struct class *class =
        pending && pending->place == PENDING_QUEUED ? position_class(sched, pending, order) : NULL;
    if (!class)
        return NULL;
    struct family *family = class->family;
    for (uint32_t i = 0; i < family->partition_queue_count; i++) {
        if (family->partition_queues[i] == number)
            return family;
    }
    return NULL;
}

/*
 * The next job from there on, and its family; ORDER_LAST: none, or so many wait before it that it is not
 * looked at yet: it is when there is room behind the last one that is booked.
 */
static struct order front_next(const struct sched *sched, struct partition_queue *partition_queue,
                               struct order from, struct family **family, unsigned *budget)
{
    size_t at = order_list_place(partition_queue->front.items, partition_queue->front.len, from),
           filled = 0;

    for (;;) {
        while (at == partition_queue->front.len) {
            size_t most = MAX(partition_queue->most + partition_queue->most / 2 + FRONT_MORE,
                              partition_queue->front.len * 2);
            most = MIN(most, partition_queue_front_most(partition_queue));
            if (filled == most || !front_fill(partition_queue, most, budget))
                return ORDER_LAST;
            filled = most;
            at = order_list_place(partition_queue->front.items, partition_queue->front.len, from);
        }
        if ((*family = front_family(sched, partition_queue, partition_queue->front.items[at])))
            return partition_queue->front.items[at];
        vec_remove(&partition_queue->front, at);
    }
}

/* Books the job if it must be; false when it cannot be. */
static bool book_one(struct sched *sched, struct partition_queue *partition_queue,
                     struct order order, struct family *family, unsigned *budget, bool *changed)
{
    const struct pending *pending = pending_find(sched, order.id);
    bool elsewhere =
        pending->booked && position_booked(sched, pending, order.id).rank != order.rank;

    if (elsewhere && !position_is_due(sched, pending, order))
        return true;
    if (!pending->booked || elsewhere) {
        *changed = true;
        if (!book_job(sched, order, family, budget))
            return false;
        if (position_booked(sched, pending, order.id).rank != order.rank)
            return true; /* position.c (2): it stays there, and the partition queue does not count it */
        book_bounds_changed(sched);
    }
    partition_queue_keep(sched, partition_queue, order);
    return true;
}

static struct order after(struct order order)
{
    return (struct order){ order.rank, order.id + 1 };
}

static struct order last_booked(const struct partition_queue *partition_queue)
{
    return partition_queue->booked.len
               ? partition_queue->booked.items[partition_queue->booked.len - 1]
               : NO_ORDER;
}

static bool book_partition_queue(struct sched *sched, struct partition_queue *partition_queue,
                                 struct order before, unsigned *budget)
{
    uint32_t limited[LIMITED_MOST];
    size_t stopped = 0;
    unsigned looked = 0, passed = 0;
    bool changed = false;
    struct order at = partition_queue->needs_booking_lo, hi = partition_queue->needs_booking_hi;

    partition_queue->needs_booking = false;
    while (passed < LOOK_MOST) {
        struct family *family;
        bool full = partition_queue->booked.len >= partition_queue->most;
        if (full && !order_before(at, last_booked(partition_queue)))
            break;
        if (order_before(hi, at)) { /* what follows is doubted only if there is room */
            if (full)
                break;
            at = order_before(at, last_booked(partition_queue))
                     ? after(last_booked(partition_queue))
                     : at;
        }
        struct order order = front_next(sched, partition_queue, at, &family, budget);
        if (order_is_last(order) || overtake_waits(sched, order))
            break;
        if (!order_before(order, before) || (looked && !*budget)) { /* (1) */
            uint32_t number = (uint32_t)(partition_queue - sched->queue->partition_queues.items);
            partition_queue_needs_booking(sched, number, order);
            partition_queue_needs_booking(sched, number, order_before(hi, order) ? order : hi);
            break;
        }
        looked++;
        at = after(order);
        sched->book->searches[SEARCH_BOOK].paused = false;
        if (limits_stop(sched, order.id) && stopped < LIMITED_MOST) {
            limited[stopped++] = order.id;
            budget_take(budget, COST_TRY);
        } else if (book_is_bounded(sched, order)) {
            budget_take(budget, 1 + sched->book->list.len / ITEMS_PER_COST);
        } else if (!book_one(sched, partition_queue, order, family, budget, &changed)) {
            passed++;
        }
        if (sched->book->searches[SEARCH_BOOK].paused) { /* it goes on in the next slice */
            uint32_t number = (uint32_t)(partition_queue - sched->queue->partition_queues.items);
            partition_queue_needs_booking(sched, number, order);
            partition_queue_needs_booking(sched, number, order_before(hi, order) ? order : hi);
            *budget = 0;
            break;
        }
        partition_queue_trim(sched, partition_queue);
    }
    budget_take(budget, 1 + looked / ITEMS_PER_COST);
    for (size_t i = 0; i < stopped; i++) /* not in the way of the next walk */
        changed = limits_in_way(sched, state_job(sched->state, limited[i])) || changed;
    return changed;
}

/* The needs a booking partition queue that is doubted before the others. */
static size_t next_needing_booking(const struct sched *sched, struct order before)
{
    struct order best = before;
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < sched->queue->needs_booking.len; i++) {
        const struct partition_queue *partition_queue =
            &sched->queue->partition_queues.items[sched->queue->needs_booking.items[i]];
        if (order_before(partition_queue->needs_booking_lo, best)) {
            best = partition_queue->needs_booking_lo;
            found = i;
        }
    }
    return found;
}

/* Nodes are not what they were: who could not be booked may be. */
static void all_need_booking(struct sched *sched)
{
    if (sched->book->booked_epoch == sched->epoch + 1)
        return;
    sched->book->booked_epoch = sched->epoch + 1;
    for (uint32_t n = 0; n < sched->queue->partition_queues.len; n++) {
        struct order last = last_booked(&sched->queue->partition_queues.items[n]);
        partition_queue_needs_booking(sched, n, NO_ORDER);
        partition_queue_needs_booking(sched, n, last);
    }
}

bool book_ahead(struct sched *sched, struct order before, unsigned *budget)
{
    bool changed = false;

    if (sched->book->keeping.job_id && order_before(sched->book->keeping.order, before)) {
        if (!book_keep_continue(sched))
            *budget = 0;
        return *budget > 0;
    }
    all_need_booking(sched);
    while (*budget && sched->queue->needs_booking.len) {
        size_t at = next_needing_booking(sched, before);
        if (at == SIZE_MAX)
            break;
        struct partition_queue *partition_queue =
            &sched->queue->partition_queues.items[sched->queue->needs_booking.items[at]];
        sched->queue->needs_booking.items[at] =
            sched->queue->needs_booking.items[--sched->queue->needs_booking.len];
        changed = book_partition_queue(sched, partition_queue, before, budget) || changed;
    }
    return changed;
}
