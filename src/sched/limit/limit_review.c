/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit_review.c - who of a limit queue that waits for limits goes back to its queue
 *
 * (1) When a counter falls, the first of a limit queue that limits allow and that will be tried goes back
 *     to its class. It is out: the next one follows when it was tried, so a place that is free is
 *     not run for by the whole limit queue.
 * (2) Those whose family is blocked cannot use it. Only when none will be tried some are shown, that
 *     is go back too: SHOW_MOST at once, and as many with the next job that ends, or all when none
 *     is left to end.
 * (3) Bins that were passed because their family was blocked are open. When it becomes ready and has
 *     nobody to try, or nobody who is short enough, their limit queues are looked at, in the order of the
 *     first jobs of these bins, until one lets a job out. So are those whose first job goes before
 *     the one that is about to be tried. Nobody is shown then, unless all go strictly in order.
 * (4) A job that would be given more than it asks for, and more than there is room for, is over: it
 *     is not let out again until a counter falls, or hosts can be used that could not.
 * (5) When all limit queues are to be looked at, that is done some in each slice, and others are planned
 *     meanwhile: who has to wait for it waited before.
 */
#include "sched/limit/limit_counter.h"

#include <stdlib.h>

/* Jobs of one look: shown, of one bin, without a counter to wait for; counters; limit queues. */
enum { SHOW_MOST = 1, BIN_MOST = 16, LOST_MOST = 16, WALLS_MOST = 8, PASS_MOST = 4 };
enum { BINS_PER_JOB = 8 }; /* that are passed while one job is looked at */

/* ---- who goes ---- */

void limit_queue_review(struct sched *sched, uint32_t number, bool fell)
{
    struct limit_queue *queue = sched->limit->queues.items[number - 1];

    if (!queue) /* nobody is left in it */
        return;
    queue->fell = queue->fell || fell;
    queue->woken = false;
    if (!queue->review)
        vec_push(&sched->limit->queue_reviews, number);
    queue->review = true;
}

void limit_queue_out(struct sched *sched, uint32_t number, int by)
{
    struct limit_queue *queue = sched->limit->queues.items[number - 1];

    queue->outs += (uint32_t)by;
    if (by < 0 && !queue->outs) /* it was tried: the next one */
        limit_queue_review(sched, number, false);
}

/* A counter that is in the way: of a TRES there is so much left. */
struct wall {
    const struct holder *holder;
    size_t tres;
    uint64_t room, most;
    uint64_t least; /* that a bin asks for, of those that it is in the way of */
};

/* What a look finds. */
struct look {
    struct wall walls[WALLS_MOST];
    size_t wall_count;
    uint64_t turn;
    bool fell;
    bool shut; /* no job of the limit queue may go */
    uint32_t lost[LOST_MOST];
    size_t losts;
    unsigned looked, passed; /* jobs, and bins */
};

/* A hit that is in the way of all bins that ask for as much is remembered: they are passed. */
static void meet(struct sched *sched, struct limit_queue *queue, const struct family *family,
                 const struct limit_hit *hit, struct look *look)
{
    size_t count;

    if (hit->is != LIMIT_TRES || queue->partition_count > 1 || look->wall_count == WALLS_MOST) {
        limit_queue_block(sched, queue, family, hit);
        look->shut = queue->partition_count == 1 && hit->is == LIMIT_JOBS;
        return;
    }
    size_t tres = (size_t)(hit->tres - state_tres(sched->state, &count));
    look->walls[look->wall_count++] = (struct wall){ .holder = hit->holder,
                                                     .tres = tres,
                                                     .most = hit->most,
                                                     .room = hit->most - MIN(hit->used, hit->most),
                                                     .least = family->charge[tres] };
}

static bool meets_wall(const struct family *family, struct look *look)
{
    for (size_t i = 0; i < look->wall_count; i++) {
        struct wall *wall = &look->walls[i];
        uint64_t asks = family->charge[wall->tres];
        if (asks <= wall->room)
            continue;
        wall->least = MIN(wall->least, asks);
        return true;
    }
    return false;
}

/*
 * The first job of the bin that may go; NULL: none. `ready`: and would be tried; then the bin stays to
 * be looked at for others.
 */
static const struct job *look_in(struct sched *sched, struct limit_queue *queue, struct bin_at *at,
                                 struct look *look, bool ready)
{
    struct job_list_cursor cursor = { .item = 1 }; /* behind the head */
    struct order order = queue->heads.items[at - queue->bins.items];
    bool blocked = false;

    at->ready_turn = look->turn;
    pending_prefetch(
        sched, order.id); /* mostly it is the first that goes: its memory, and that of its queue */
    __builtin_prefetch(&at->bin->jobs, 1);
    for (unsigned i = 0; i < BIN_MOST && !order_is_last(order);
         i++, order = job_list_next(&at->bin->jobs, &cursor)) {
        struct limit_hit hit;
        const struct pending *pending = pending_find(sched, order.id);
        look->looked++;
        if (pending->over && !look->fell) /* (4) */
            continue;
        job_list_prefetch(&at->bin->jobs, 0);
        if (ready && !pending_would_try(sched, pending, order.id)) {
            blocked = true;
            continue;
        }
        const struct job *job = state_job(sched->state, order.id);
        job_list_prefetch(&at->bin->jobs, 1);
        if (limits_allow_any(sched->state, job, &sched->limit->planned, &hit)) {
            job_list_prefetch(&at->bin->jobs, 2);
            return job;
        }
        if (!hit.holder) {
            if (look->losts < LOST_MOST)
                look->lost[look->losts++] = order.id;
            continue;
        }
        meet(sched, queue, at->family, &hit, look);
        if (hit.is != LIMIT_OTHER && queue->partition_count == 1) { /* limit_queue.c (2) */
            blocked = false;
            break;
        }
    }
    if (!blocked)
        at->turn = look->turn;
    return NULL;
}

/* The bin that has the first job of those that were not looked at; `ready`: and would be tried. */
static struct bin_at *next_bin(struct sched *sched, const struct limit_queue *queue,
                               struct look *look, bool ready)
{
    struct order first = ORDER_LAST;
    struct bin_at *found = NULL;

    look->passed += (unsigned)queue->bins.len;
    for (size_t i = 0; i < queue->bins.len; i++) {
        if (!order_before(queue->heads.items[i], first))
            continue;
        struct bin_at *at = &queue->bins.items[i];
        if (at->turn == look->turn)
            continue;
        if (ready &&
            (at->ready_turn == look->turn || !family_would_try(sched, at->family, INT64_MIN) ||
             !family_would_try(sched, at->family, at->shortest_us)))
            continue;
        if (meets_wall(at->family, look)) {
            at->turn = look->turn;
            continue;
        }
        first = queue->heads.items[i];
        found = at;
    }
    return found;
}

/* Lets out the first that will be tried. */
static bool look_ready(struct sched *sched, struct limit_queue *queue, struct look *look)
{
    struct bin_at *at;

    while (!look->shut && (at = next_bin(sched, queue, look, true))) {
        const struct job *job = look_in(sched, queue, at, look, true);
        if (job)
            queue->let = pending_order(sched, job);
        if (job && pending_let_out(sched, job, true))
            return true;
        if (job) /* it is in its queue and not ready after all */
            limit_queue_review(sched, queue->number + 1, false);
    }
    return false;
}

/* Lets out some that will not be tried; false when there was none. */
static bool look_blocked(struct sched *sched, struct limit_queue *queue, struct look *look)
{
    unsigned shown = 0;
    struct bin_at *at;

    while (!look->shut && shown < SHOW_MOST && (at = next_bin(sched, queue, look, false))) {
        const struct job *job = look_in(sched, queue, at, look, false);
        if (!job)
            continue;
        pending_let_out(sched, job, false); /* the bin may be gone then; else it stays open */
        shown++;
    }
    return shown > 0;
}

static bool is_busy(const struct sched *sched, const struct holder *holder)
{
    return holder->jobs || (holder->number < sched->limit->planned.count &&
                            sched->limit->planned.items[holder->number].jobs);
}

/* (2): some are left that could be let out too. When something of a holder of theirs ends. */
static void show_more_later(struct sched *sched, struct limit_queue *queue)
{
    const struct holder *holders[HOLDERS_MOST];
    const struct job *job = state_job(sched->state, queue->head.id);
    const struct partition *partition = state_partition(sched->state, job->shape->partitions[0]);
    size_t count = limits_holders(sched->state, job, partition, holders);

    for (size_t i = 0; i < count; i++) {
        if (is_busy(sched, holders[i])) {
            limit_counter_wait(sched, queue, holders[i], FOR_ANY, 0);
            return;
        }
    }
    limit_queue_review(sched, queue->number + 1, false);
}

/* Those that a limit is in the way of are shut, those that were passed are open. (3) */
static void shut_bins(const struct sched *sched, struct limit_queue *queue, struct look *look)
{
    look->passed += (unsigned)queue->bins.len;
    if (look->shut && !queue->open)
        return;
    queue->open = false;
    vec_each (struct bin_at, at, &queue->bins) {
        bool was = at->shut;
        bool blocked = at->family->end_by_us == INT64_MIN;
        if (!(look->shut ? at->shut : blocked && !at->shut)) /* else as it was, or not looked at */
            at->shut = look->shut || at->turn == look->turn;
        queue->open = queue->open || !at->shut;
        if (!at->shut)
            look->looked += bin_open(sched, at->bin);
        else if (!was)
            bin_shut(at->bin);
    }
}

enum limit_queue_seen limit_queue_look(struct sched *sched, struct limit_queue *queue, bool fell,
                                       bool show, unsigned *looked)
{
    struct look look = { .fell = fell, .turn = ++sched->limit->queue_turns };
    struct limit_hit never = { 0 };
    bool shown = false;

    limit_counter_unwait(queue, 0, FOR_ANY);
    look.shut = queue->bins.len && limit_counter_bars(sched, queue);
    queue->outs++; /* so that it stays */
    bool out = look_ready(sched, queue, &look);
    if (!out && show)
        shown = look_blocked(sched, queue, &look);
    for (size_t i = 0; i < look.losts; i++)
        pending_limit(sched, state_job(sched->state, look.lost[i]), &never, false);
    queue->outs--;
    if (out) {
        limit_counter_unwait(queue, 0, FOR_ANY);
        *looked += look.looked + look.passed / BINS_PER_JOB;
        return LIMIT_QUEUE_OUT;
    }
    if (look.losts && queue->bins.len) /* there may be more */
        limit_queue_review(sched, queue->number + 1, fell);
    queue->has_blocked =
        queue->bins.len && !look.shut && (shown || next_bin(sched, queue, &look, false));
    for (size_t i = 0; i < look.wall_count && queue->bins.len; i++) {
        const struct wall *wall = &look.walls[i];
        int64_t most = (int64_t)MIN(wall->most, (uint64_t)INT64_MAX / 2);
        limit_counter_wait(sched, queue, wall->holder, (unsigned)wall->tres,
                           (int64_t)wall->least - most);
    }
    shut_bins(sched, queue, &look);
    if (queue->has_blocked)
        show_more_later(sched, queue);
    *looked += look.looked + look.passed / BINS_PER_JOB;
    limit_queue_tidy(sched, queue);
    return LIMIT_QUEUE_STAYS;
}

/* ---- reviews ---- */

static void review_queue(struct sched *sched, uint32_t number, unsigned *budget)
{
    struct limit_queue *queue = sched->limit->queues.items[number - 1];

    limit_queue_renew(sched, queue);
    struct limit_counter *via = queue->via;
    bool fell = queue->fell, show = !via && !queue->woken;
    unsigned looked = 0;

    queue->review = false;
    if (queue->outs)
        return; /* when that was tried */
    queue->via = NULL;
    if (via && queue->bins.len &&
        limit_counter_has_before(sched, via, limit_queue_first(sched, queue))) {
        limit_counter_again(sched, via, queue);
        return;
    }
    queue->fell = false;
    queue->outs++;
    bool out = limit_queue_look(sched, queue, fell, show, &looked) == LIMIT_QUEUE_OUT;
    queue->outs--;
    if (out)
        queue->via = via;
    else if (via)
        limit_counter_review(sched, via);
    budget_take(budget, COST_LIMIT_QUEUE + looked / JOBS_PER_COST);
    limit_queue_tidy(sched, queue);
}

/* The limit queue of the bin is to be looked at. */
static void wake_queue(struct sched *sched, const struct bin *bin)
{
    struct limit_queue *queue = bin->queue;
    bool show = sched->queue->in_order || (queue->review && !queue->woken);

    limit_queue_review(sched, queue->number + 1, false);
    queue->woken = !show;
}

static struct bin *pass_first(struct family *family)
{
    struct heap_item item = *heap_top(family_open(family));
    struct bin *bin = CONTAINER_OF(item.at, struct bin, open_at);

    heap_del(family_open(family), item.at);
    bin->side = !family->open_side;
    heap_set(family_passed(family), item.at, family, item.key);
    return bin;
}

bool limit_queue_ahead(struct sched *sched, struct family *family, struct order order)
{
    if (!family_is_open(family))
        return false;
    if (family->passed_at != sched->changes) { /* something happened since they were looked at */
        family->passed_at = sched->changes;
        family_open_again(family);
    }
    const struct heap_item *top = heap_top(family_open(family));
    if (!top || !order_before(top->key, order))
        return false;
    wake_queue(sched, pass_first(family));
    return true;
}

/* (3) */
static void wake(struct sched *sched, unsigned *budget)
{
    struct family *family = sched->queue->woken.items[sched->queue->woken.len - 1];
    const struct heap_item *top = NULL;
    bool woken = false;

    for (unsigned i = 0; i < PASS_MOST && !woken; i++) {
        top = family->end_by_us == INT64_MIN || family->ready_at ? NULL
                                                                 : heap_top(family_open(family));
        if (!top)
            break;
        const struct bin *bin = pass_first(family);
        woken = sched->queue->in_order || family_is_ready(sched, family, bin->shortest_us);
        if (woken)
            wake_queue(sched, bin);
    }
    if (!top) {
        family->waking = false;
        sched->queue->woken.len--;
    }
    budget_take(budget, 1);
}

void limits_review(struct sched *sched, unsigned *budget)
{
    while (*budget && limits_to_review(sched)) {
        if (sched->queue->woken.len && !sched->limit->queue_reviews.len &&
            !sched->limit->counter_reviews.len)
            wake(sched, budget);
        else if (sched->limit->queue_reviews.len)
            review_queue(sched,
                         sched->limit->queue_reviews.items[--sched->limit->queue_reviews.len],
                         budget);
        else
            limit_counter_look(
                sched,
                sched->limit->counters.items[sched->limit->counter_reviews
                                                 .items[--sched->limit->counter_reviews.len]],
                budget);
    }
}

bool limits_to_review(const struct sched *sched)
{
    return sched->limit->queue_reviews.len || sched->limit->counter_reviews.len ||
           sched->queue->woken.len;
}

void limit_queues_review_all(struct sched *sched)
{
    sched->limit->falls++;
    sched->limit->queue_sweep = (uint32_t)sched->limit->queues.len;
}

/* (5) */
void limit_queues_sweep(struct sched *sched, unsigned *budget)
{
    for (; sched->limit->queue_sweep && *budget; sched->limit->queue_sweep--) {
        const struct limit_queue *queue = sched->limit->queues.items[sched->limit->queue_sweep - 1];
        bool soon = queue && queue->review;
        if (!queue)
            continue;
        limit_queue_review(sched, sched->limit->queue_sweep, true);
        if (!soon)
            review_queue(sched,
                         sched->limit->queue_reviews.items[--sched->limit->queue_reviews.len],
                         budget);
    }
}

void family_tried(struct sched *sched, struct family *family)
{
    while (family->outs.len) {
        struct pending *pending = pending_find(sched, family->outs.items[--family->outs.len]);
        if (!pending || pending->out != OUT_TO_BE_TRIED)
            continue;
        pending->out = OUT_SHOWN;
        limit_queue_out(sched, pending->limit_queue, -1);
    }
}
