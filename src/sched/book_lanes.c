/* SPDX-License-Identifier: Apache-2.0 */
/*
 * book_lanes.c - who is promised a start: the first jobs of each partition that must wait
 *
 * (1) Many bookings are made over several slices. Meanwhile nothing behind them is tried, and those
 *     further behind stay.
 * (2) lane->front has every job of the lane that goes before lane->front_end, in order, and perhaps some that
 *     have gone. Only what is doubted is looked at: from lane->doubt_lo to lane->doubt_hi, and as many behind
 *     the last one that is booked as there is room for.
 */
#include "sched/sched_priv.h"

/* A job that cannot be booked is passed over, so that those behind it can. */
enum { LOOK_MOST = 64, FRONT_MORE = 8, LIMITED_MOST = 64 };

typedef VEC(struct order) order_list;

static size_t place_in(const struct order *list, size_t count, struct order order)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (order_before(list[middle], order))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* False when it is there. */
static bool put_in(order_list *list, struct order order)
{
    size_t at = place_in(list->items, list->len, order);

    if (at < list->len && list->items[at].id == order.id && list->items[at].rank == order.rank)
        return false;
    vec_push(list, order);
    for (size_t i = list->len - 1; i > at; i--)
        list->items[i] = list->items[i - 1];
    list->items[at] = order;
    return true;
}

bool lane_uncount(struct lane *lane, struct order order)
{
    size_t at = place_in(lane->booked.items, lane->booked.len, order);

    if (at == lane->booked.len || lane->booked.items[at].id != order.id)
        return false;
    vec_remove(&lane->booked, at);
    return true;
}

/* The lane counts the job among its first. */
static void lane_keep(struct sched *sched, struct lane *lane, struct order order)
{
    if (put_in((order_list *)(void *)&lane->booked, order))
        booking_find(sched, order.id)->refs++;
}

/* What the lane no longer counts, and no other does, is given up. */
static void lane_trim(struct sched *sched, struct lane *lane)
{
    while (lane->booked.len > lane->most) {
        uint32_t id = lane->booked.items[--lane->booked.len].id;
        struct booking *booking = booking_find(sched, id);
        if (--booking->refs == 0)
            book_drop(sched, id);
    }
}

/* ---- (2) ---- */

void lane_doubt(struct sched *sched, uint32_t number, struct order order)
{
    struct lane *lane = number < sched->lanes.len ? &sched->lanes.items[number] : NULL;

    if (!lane)
        return;
    if (!lane->unsure)
        vec_push(&sched->unsure, number);
    if (!lane->unsure || order_before(order, lane->doubt_lo))
        lane->doubt_lo = order;
    if (!lane->unsure || order_before(lane->doubt_hi, order))
        lane->doubt_hi = order;
    lane->unsure = true;
}

void lane_doubt_at(struct sched *sched, uint32_t number, struct order order)
{
    const struct lane *lane = number < sched->lanes.len ? &sched->lanes.items[number] : NULL;

    if (lane && (lane->booked.len < lane->most ||
                 order_before(order, lane->booked.items[lane->booked.len - 1])))
        lane_doubt(sched, number, order);
}

static size_t front_most(const struct lane *lane)
{
    return 2 * (lane->most + LOOK_MOST);
}

void lane_joined(struct sched *sched, uint32_t number, struct order order)
{
    struct lane *lane = number < sched->lanes.len ? &sched->lanes.items[number] : NULL;

    if (!lane || !order_before(order, lane->front_end))
        return;
    put_in((order_list *)(void *)&lane->front, order);
    if (lane->front.len > front_most(lane)) {
        lane->front.len /= 2;
        lane->front_end = lane->front.items[lane->front.len];
    }
}

/* More of them than there are, up to `most`; false when there are none. */
static bool front_fill(struct lane *lane, size_t most, unsigned *budget)
{
    struct lane_walk walk;
    struct class *class;

    if (order_is_last(lane->front_end))
        return false;
    vec_clear(&lane->front);
    lane_walk_begin(&walk, lane);
    for (;;) {
        lane->front_end = lane_walk_next(&walk, &class);
        if (order_is_last(lane->front_end) || lane->front.len == most)
            break;
        vec_push(&lane->front, lane->front_end);
    }
    lane_walk_done(&walk);
    budget_take(budget, lane->front.len / ITEMS_PER_COST);
    return true;
}

/* Its family, if it is still there; NULL: it has gone. */
static struct family *front_family(const struct sched *sched, const struct lane *lane,
                                   struct order order)
{
    const struct pend *pend = pend_find(sched, order.id);
    uint32_t number = (uint32_t)(lane - sched->lanes.items);

    const struct class *class =
        pend && pend->place == PEND_QUEUED ? echo_class(sched, pend, order) : NULL;
    if (!class)
        return NULL;
    struct family *family = class->family;
    for (uint32_t i = 0; i < family->lane_count; i++) {
        if (family->lanes[i] == number)
            return family;
    }
    return NULL;
}

/*
 * The next job from there on, and its family; ORDER_LAST: none, or so many wait before it that it is not
 * looked at yet: it is when there is room behind the last one that is booked.
 */
static struct order front_next(const struct sched *sched, struct lane *lane, struct order from,
                               struct family **family, unsigned *budget)
{
    size_t at = place_in(lane->front.items, lane->front.len, from), filled = 0;

    for (;;) {
        while (at == lane->front.len) {
            size_t most = MAX(lane->most + lane->most / 2 + FRONT_MORE, lane->front.len * 2);
            most = MIN(most, front_most(lane));
            if (filled == most || !front_fill(lane, most, budget))
                return ORDER_LAST;
            filled = most;
            at = place_in(lane->front.items, lane->front.len, from);
        }
        if ((*family = front_family(sched, lane, lane->front.items[at])))
            return lane->front.items[at];
        vec_remove(&lane->front, at);
    }
}

/* Books the job if it must be; false when it cannot be. */
static bool book_one(struct sched *sched, struct lane *lane, struct order order,
                     struct family *family, unsigned *budget, bool *changed)
{
    const struct pend *pend = pend_find(sched, order.id);
    bool elsewhere = pend->booked && echo_booked(sched, pend, order.id).rank != order.rank;

    if (elsewhere && !echo_is_due(sched, pend, order))
        return true;
    if (!pend->booked || elsewhere) {
        *changed = true;
        if (!book_job(sched, order, family, budget))
            return false;
        if (echo_booked(sched, pend, order.id).rank != order.rank)
            return true; /* echoes.c (2): it stays there, and the lane does not count it */
        book_bounds_doubt(sched);
    }
    lane_keep(sched, lane, order);
    return true;
}

static struct order after(struct order order)
{
    return (struct order){ order.rank, order.id + 1 };
}

static struct order last_booked(const struct lane *lane)
{
    return lane->booked.len ? lane->booked.items[lane->booked.len - 1] : NO_ORDER;
}

static bool book_lane(struct sched *sched, struct lane *lane, struct order before, unsigned *budget)
{
    uint32_t limited[LIMITED_MOST];
    size_t stopped = 0;
    unsigned looked = 0, passed = 0;
    bool changed = false;
    struct order at = lane->doubt_lo, hi = lane->doubt_hi;

    lane->unsure = false;
    while (passed < LOOK_MOST) {
        struct family *family;
        bool full = lane->booked.len >= lane->most;
        if (full && !order_before(at, last_booked(lane)))
            break;
        if (order_before(hi, at)) { /* what follows is doubted only if there is room */
            if (full)
                break;
            at = order_before(at, last_booked(lane)) ? after(last_booked(lane)) : at;
        }
        struct order order = front_next(sched, lane, at, &family, budget);
        if (order_is_last(order) || horizon_waits(sched, order))
            break;
        if (!order_before(order, before) || (looked && !*budget)) { /* (1) */
            uint32_t number = (uint32_t)(lane - sched->lanes.items);
            lane_doubt(sched, number, order);
            lane_doubt(sched, number, order_before(hi, order) ? order : hi);
            break;
        }
        looked++;
        at = after(order);
        sched->searches[SEARCH_BOOK].paused = false;
        if (limits_stop(sched, order.id) && stopped < LIMITED_MOST) {
            limited[stopped++] = order.id;
            budget_take(budget, COST_TRY);
        } else if (book_is_bounded(sched, order)) {
            budget_take(budget, 1 + sched->bookings.len / ITEMS_PER_COST);
        } else if (!book_one(sched, lane, order, family, budget, &changed)) {
            passed++;
        }
        if (sched->searches[SEARCH_BOOK].paused) { /* it goes on in the next slice */
            uint32_t number = (uint32_t)(lane - sched->lanes.items);
            lane_doubt(sched, number, order);
            lane_doubt(sched, number, order_before(hi, order) ? order : hi);
            *budget = 0;
            break;
        }
        lane_trim(sched, lane);
    }
    budget_take(budget, 1 + looked / ITEMS_PER_COST);
    for (size_t i = 0; i < stopped; i++) /* not in the way of the next walk */
        changed = limits_in_way(sched, state_job(sched->state, limited[i])) || changed;
    return changed;
}

/* The unsure lane that is doubted before the others. */
static size_t next_unsure(const struct sched *sched, struct order before)
{
    struct order best = before;
    size_t found = SIZE_MAX;

    for (size_t i = 0; i < sched->unsure.len; i++) {
        const struct lane *lane = &sched->lanes.items[sched->unsure.items[i]];
        if (order_before(lane->doubt_lo, best)) {
            best = lane->doubt_lo;
            found = i;
        }
    }
    return found;
}

/* Nodes are not what they were: who could not be booked may be. */
static void doubt_all(struct sched *sched)
{
    if (sched->booked_epoch == sched->epoch + 1)
        return;
    sched->booked_epoch = sched->epoch + 1;
    for (uint32_t n = 0; n < sched->lanes.len; n++) {
        struct order last = last_booked(&sched->lanes.items[n]);
        lane_doubt(sched, n, NO_ORDER);
        lane_doubt(sched, n, last);
    }
}

bool book_ahead(struct sched *sched, struct order before, unsigned *budget)
{
    bool changed = false;

    if (sched->keeping.job_id && order_before(sched->keeping.order, before)) {
        if (!book_keep_on(sched))
            *budget = 0;
        return *budget > 0;
    }
    doubt_all(sched);
    while (*budget && sched->unsure.len) {
        size_t at = next_unsure(sched, before);
        if (at == SIZE_MAX)
            break;
        struct lane *lane = &sched->lanes.items[sched->unsure.items[at]];
        sched->unsure.items[at] = sched->unsure.items[--sched->unsure.len];
        changed = book_lane(sched, lane, before, budget) || changed;
    }
    return changed;
}
