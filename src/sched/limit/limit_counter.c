/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limit_counter.c - counters of limits, and the limit queues that wait until they fall
 *
 * (1) A limit queue waits at the counter of every holder that was in the way of one of its jobs when it was
 *     last looked at, with what must be so before that job could pass.
 * (2) A counter knows the least that any of its limit queues needs. While that is not there a fall of its
 *     counter costs a comparison: no limit queue and no job is looked at.
 * (3) Otherwise its limit queues are taken in the order of their first jobs. Once one has let a job out,
 *     a few more are looked at whose first jobs are before that one: they may be stuck elsewhere, or go
 *     before it. Then the counter waits until these were tried, and goes on with whose turn it is: the
 *     others have what is left. Jobs that would not be tried are let out only when no limit queue has one that would.
 * (4) When the rules are others (limits, holders), all counters are: what was needed to pass the old ones
 *     is of no use. A limit queue that is looked at forgets them; then they are freed. Of an old one nothing
 *     is read but its heaps: its holder may be no more.
 */
#include "sched/limit/limit_counter.h"

#include <stdlib.h>

/* Lines of which only a look can tell, that are passed over, and that may go before one, in one look at a counter. */
enum { LOOKS_MOST = 8, SHOWS_MOST = 2, MORE_MOST = 2 };

static uint64_t in_use(const struct sched *sched, const struct limit_counter *counter, unsigned why)
{
    static const struct planned none;
    uint32_t number = counter->holder->number;
    const struct planned *planned =
        number < sched->limit->planned.count ? &sched->limit->planned.items[number] : &none;

    return why == FOR_JOBS ? counter->holder->jobs + (uint64_t)planned->jobs
                           : counter->holder->used[why] + planned->tres[why];
}

static bool is_shut(const struct sched *sched, const struct limit_waiter *waiter)
{
    return waiter->why < FOR_ANY &&
           (int64_t)in_use(sched, waiter->counter, waiter->why) + waiter->needs > 0;
}

/* (2) */
static bool limit_counter_may_open(const struct sched *sched, const struct limit_counter *counter)
{
    for (unsigned why = 0; why < FOR_ANY; why++) {
        if (counter->has >> why & 1 &&
            (int64_t)in_use(sched, counter, why) + counter->tight[why] <= 0)
            return true;
    }
    return false;
}

static void limit_counter_tighten(struct limit_counter *counter, const struct limit_waiter *waiter)
{
    unsigned why = waiter->why;

    if (why >= FOR_ANY)
        return;
    if (!(counter->has >> why & 1) || waiter->needs < counter->tight[why])
        counter->tight[why] = waiter->needs;
    counter->has |= 1U << why;
}

static struct limit_counter *limit_counter_of(struct sched *sched, const struct holder *holder)
{
    while (sched->limit->counters.len <= holder->number)
        vec_push(&sched->limit->counters, NULL);
    struct limit_counter **counter = &sched->limit->counters.items[holder->number];
    if (!*counter) {
        *counter = NEW(struct limit_counter);
        (*counter)->holder = holder;
    }
    return *counter;
}

static struct heap *heap_of(struct limit_counter *counter, const struct limit_waiter *waiter)
{
    return waiter->why < FOR_ANY ? &counter->known : &counter->any;
}

void limit_counter_wait(struct sched *sched, struct limit_queue *queue, const struct holder *holder,
                        unsigned why, int64_t needs)
{
    struct limit_counter *counter = limit_counter_of(sched, holder);
    struct limit_waiter **at = &queue->waiters;

    while (*at && ((*at)->counter != counter || (*at)->why != why))
        at = &(*at)->next;
    if (!*at) {
        *at = NEW(struct limit_waiter);
        **at = (struct limit_waiter){ .queue = queue, .counter = counter, .why = why };
    }
    struct limit_waiter *waiter = *at;
    waiter->needs = waiter->here ? MIN(waiter->needs, needs) : needs;
    waiter->here = true;
    heap_set(heap_of(counter, waiter), &waiter->at, NULL, limit_queue_first(sched, queue));
    limit_counter_tighten(counter, waiter);
}

bool limit_counter_bars(struct sched *sched, struct limit_queue *queue)
{
    for (struct limit_waiter *waiter = queue->waiters; waiter; waiter = waiter->next) {
        if (waiter->why == FOR_JOBS && is_shut(sched, waiter)) {
            limit_counter_wait(sched, queue, waiter->counter->holder, FOR_JOBS, waiter->needs);
            return true;
        }
    }
    return false;
}

void limit_counter_unwait(struct limit_queue *queue, unsigned why, unsigned last)
{
    for (struct limit_waiter *waiter = queue->waiters; waiter; waiter = waiter->next) {
        if (waiter->why < why || waiter->why > last)
            continue;
        waiter->here = false;
        heap_del(heap_of(waiter->counter, waiter), &waiter->at);
    }
}

void limit_waiters_free(struct limit_queue *queue)
{
    limit_counter_unwait(queue, 0, FOR_OVER);
    for (struct limit_waiter *waiter = queue->waiters, *next; waiter; waiter = next) {
        next = waiter->next;
        free(waiter);
    }
    queue->waiters = NULL;
}

/* (4) */
void limit_counters_renew(struct sched *sched)
{
    vec_each (struct limit_counter *, counter, &sched->limit->counters) {
        if (*counter)
            vec_push(&sched->limit->old_counters, *counter);
    }
    vec_clear(&sched->limit->counters);
    vec_clear(&sched->limit->counter_reviews);
    sched->limit->rules++;
    sched->limit->old_queues = 0;
    vec_each (struct limit_queue *, queue, &sched->limit->queues)
        sched->limit->old_queues += *queue != NULL;
}

/* Those that are over wait for any counter of theirs. */
static void wait_over(struct sched *sched, struct limit_queue *queue)
{
    const struct holder *holders[HOLDERS_MOST];
    const struct job *job = state_job(sched->state, queue->head.id);
    const struct partition *partition = state_partition(sched->state, job->shape->partitions[0]);
    size_t count = limits_holders(sched->state, job, partition, holders);

    for (size_t i = 0; i < count; i++)
        limit_counter_wait(sched, queue, holders[i], FOR_OVER, 0);
}

void limit_queue_renew(struct sched *sched, struct limit_queue *queue)
{
    bool over = false;

    if (queue->rules == sched->limit->rules)
        return;
    for (const struct limit_waiter *waiter = queue->waiters; waiter; waiter = waiter->next)
        over = over || (waiter->here && waiter->why == FOR_OVER);
    queue->rules = sched->limit->rules;
    queue->via = NULL;
    limit_waiters_free(queue);
    vec_each (struct bin_at, at, &queue->bins)
        family_charge(sched, at->family, state_job(sched->state, job_list_head(&at->bin->jobs).id));
    if (over && queue->bins.len)
        wait_over(sched, queue);
    sched->limit->old_queues--;
}

static void limit_counter_free(struct limit_counter *counter)
{
    if (!counter)
        return;
    vec_done(&counter->known.items);
    vec_done(&counter->any.items);
    free(counter);
}

void limit_counters_tidy(struct sched *sched, unsigned *budget)
{
    for (unsigned left = *budget / 4;
         !sched->limit->old_queues && sched->limit->old_counters.len && left; left--) {
        limit_counter_free(sched->limit->old_counters.items[--sched->limit->old_counters.len]);
        budget_take(budget, 1);
    }
}

void limit_counter_review(struct sched *sched, struct limit_counter *counter)
{
    if (counter->review || (!heap_top(&counter->known) && !heap_top(&counter->any)))
        return;
    counter->review = true;
    vec_push(&sched->limit->counter_reviews, counter->holder->number);
}

void limit_counter_fell(struct sched *sched, const struct holder *holder)
{
    struct limit_counter *counter = holder->number < sched->limit->counters.len
                                        ? sched->limit->counters.items[holder->number]
                                        : NULL;

    if (!counter)
        return;
    counter->fell = ++sched->limit->falls;
    counter->turn = 0;
    limit_counter_review(sched, counter);
}

/* Nothing of it could go: what its limit queues need is worked out anew. */
static void limit_counter_measure(struct limit_counter *counter)
{
    counter->has = 0;
    for (size_t i = 0; i < counter->known.items.len; i++)
        limit_counter_tighten(
            counter, CONTAINER_OF(counter->known.items.items[i].at, struct limit_waiter, at));
}

/* The waits whose limit queue is next: of those that are not shut for all. */
static struct limit_waiter *limit_counter_next(const struct sched *sched,
                                               const struct limit_counter *counter)
{
    const struct heap_item *any = heap_top(&counter->any);
    const struct heap_item *known =
        limit_counter_may_open(sched, counter) ? heap_top(&counter->known) : NULL;
    const struct heap_item *top = any;

    if (known && (!any || order_before(known->key, any->key)))
        top = known;
    return top ? CONTAINER_OF(top->at, struct limit_waiter, at) : NULL;
}

bool limit_counter_has_before(const struct sched *sched, const struct limit_counter *counter,
                              struct order order)
{
    const struct limit_waiter *waiter = limit_counter_next(sched, counter);

    return waiter && order_before(limit_queue_first(sched, waiter->queue), order);
}

void limit_counter_again(struct sched *sched, struct limit_counter *counter,
                         struct limit_queue *queue)
{
    queue->again = true;
    queue->turn = 0;
    limit_counter_wait(sched, queue, counter->holder, FOR_ANY, 0);
    limit_counter_review(sched, counter);
}

/* One look at a counter. */
struct limit_counter_look {
    VEC(struct limit_waiter *) aside;
    struct limit_queue *blocked[SHOWS_MOST];
    size_t blocked_count;
    unsigned looks;
    uint64_t turn;
    bool out;
    struct order first; /* of those that were let out */
    unsigned more;      /* limit queues that were looked at after one had let a job out */
};

static void look_at_queue(struct sched *sched, struct limit_counter *counter,
                          struct limit_queue *queue, struct limit_counter_look *look, bool show,
                          unsigned *budget)
{
    bool fell = counter->fell > queue->over_at;
    unsigned looked = 0;

    queue->turn = look->turn;
    queue->again = false;
    queue->outs++; /* so that it stays */
    bool out = limit_queue_look(sched, queue, fell, show, &looked) == LIMIT_QUEUE_OUT;
    queue->outs--;
    if (out) {
        queue->via = counter;
        if (!look->out || order_before(queue->let, look->first))
            look->first = queue->let;
        look->out = true;
    } else if (!show && queue->has_blocked && look->blocked_count < SHOWS_MOST) {
        look->blocked[look->blocked_count++] = queue;
    }
    limit_queue_tidy(sched, queue);
    budget_take(budget, COST_LIMIT_QUEUE + looked / JOBS_PER_COST);
}

/* Nobody was let out, or one who may be behind the first of that limit queue. */
static bool may_go_on(const struct sched *sched, const struct limit_counter_look *look,
                      const struct limit_waiter *waiter)
{
    return !look->out || (look->more < MORE_MOST &&
                          order_before(limit_queue_first(sched, waiter->queue), look->first));
}

/* (3) */
void limit_counter_look(struct sched *sched, struct limit_counter *counter, unsigned *budget)
{
    struct limit_counter_look look = { .turn = counter->turn ? counter->turn
                                                             : ++sched->limit->counter_turns };
    struct limit_waiter *waiter;

    counter->review = false;
    counter->turn = 0;
    while (*budget && (waiter = limit_counter_next(sched, counter)) &&
           may_go_on(sched, &look, waiter)) {
        struct limit_queue *queue = waiter->queue;
        bool was = queue->turn == look.turn || waiter->turn == look.turn;
        if (was || queue->outs || is_shut(sched, waiter)) {
            heap_del(heap_of(counter, waiter), &waiter->at);
            vec_push(&look.aside, waiter);
            waiter->turn = look.turn;
            budget_take(budget, !was && look.aside.len % ITEMS_PER_COST == 0);
            continue;
        }
        if (waiter->why >= FOR_ANY && !queue->again && ++look.looks > LOOKS_MOST)
            break;
        look.more += look.out;
        look_at_queue(sched, counter, queue, &look, false, budget);
    }
    bool all = !heap_top(&counter->known);
    vec_each (struct limit_waiter *, at, &look.aside) {
        if ((*at)->here && !(*at)->at)
            heap_set(heap_of(counter, *at), &(*at)->at, NULL,
                     limit_queue_first(sched, (*at)->queue));
    }
    vec_done(&look.aside);
    if (all)
        limit_counter_measure(counter);
    if (!*budget && !look.out && limit_counter_next(sched, counter)) {
        limit_counter_review(sched, counter);
        counter->turn = look.turn;
        return;
    }
    for (size_t i = 0; i < look.blocked_count && !look.out; i++)
        look_at_queue(sched, counter, look.blocked[i], &look, true, budget);
}

void limit_counters_done(struct sched *sched)
{
    vec_each (struct limit_counter *, counter, &sched->limit->counters)
        limit_counter_free(*counter);
    vec_each (struct limit_counter *, counter, &sched->limit->old_counters)
        limit_counter_free(*counter);
    vec_done(&sched->limit->counters);
    vec_done(&sched->limit->old_counters);
    vec_done(&sched->limit->counter_reviews);
}
