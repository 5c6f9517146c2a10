/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition_queue.c - the jobs of one partition in order
 *
 * A partition queue is a heap of families, a family a tree of classes, a class a queue. A walk opens only what
 * it comes to, so the first few jobs of a million cost a few steps.
 */
#include "sched/queue/queue.h"

/* A queue before the tree it is in, the tree before its family: those have the same key. */
static bool goes_before(const struct partition_queue_step *a, const struct partition_queue_step *b)
{
    if (a->key.id == b->key.id && a->key.rank == b->key.rank)
        return a->what > b->what;
    return order_before(a->key, b->key);
}

/* The steps are a binary heap. */
static void push(struct partition_queue_walk *walk, struct partition_queue_step step)
{
    if (order_is_last(step.key))
        return;
    vec_push(&walk->steps, step);
    struct partition_queue_step *steps = walk->steps.items;
    size_t at = walk->steps.len - 1;
    for (; at > 0 && goes_before(&step, &steps[(at - 1) / 2]); at = (at - 1) / 2)
        steps[at] = steps[(at - 1) / 2];
    steps[at] = step;
}

static void push_family(struct partition_queue_walk *walk, size_t index)
{
    if (index < walk->partition_queue->heap.items.len)
        push(walk, (struct partition_queue_step){
                       .key = walk->partition_queue->heap.items.items[index].key,
                       .what = STEP_FAMILY,
                       .index = index });
}

static void push_tree(struct partition_queue_walk *walk, struct class *class)
{
    if (class)
        push(walk, (struct partition_queue_step){
                       .key = class->best, .what = STEP_TREE, .class = class });
}

void partition_queue_walk_begin(struct partition_queue_walk *walk,
                                const struct partition_queue *partition_queue)
{
    *walk = (struct partition_queue_walk){ .partition_queue = partition_queue };
    push_family(walk, 0);
}

static struct partition_queue_step pop_first(struct partition_queue_walk *walk)
{
    struct partition_queue_step *steps = walk->steps.items;
    struct partition_queue_step first = steps[0], last = steps[--walk->steps.len];
    size_t at = 0;

    for (;;) {
        size_t child = at * 2 + 1;
        if (child + 1 < walk->steps.len && goes_before(&steps[child + 1], &steps[child]))
            child++;
        if (child >= walk->steps.len || !goes_before(&steps[child], &last))
            break;
        steps[at] = steps[child];
        at = child;
    }
    steps[at] = last;
    return first;
}

struct order partition_queue_walk_next(struct partition_queue_walk *walk, struct class **class)
{
    while (walk->steps.len) {
        struct partition_queue_step step = pop_first(walk);
        switch (step.what) {
        case STEP_FAMILY:
            push_family(walk, step.index * 2 + 1);
            push_family(walk, step.index * 2 + 2);
            push_tree(walk, walk->partition_queue->heap.items.items[step.index].family->root);
            break;
        case STEP_TREE: {
            struct partition_queue_step queue = { .what = STEP_QUEUE, .class = step.class };
            push_tree(walk, step.class->left);
            push_tree(walk, step.class->right);
            queue.key = job_list_next(&step.class->queue, &queue.cursor);
            push(walk, queue);
            break;
        }
        case STEP_QUEUE: {
            struct partition_queue_step next = step;
            next.key = job_list_next(&step.class->queue, &next.cursor);
            push(walk, next);
            *class = step.class;
            return step.key;
        }
        }
    }
    return ORDER_LAST;
}

void partition_queue_walk_done(struct partition_queue_walk *walk)
{
    vec_done(&walk->steps);
}

size_t order_list_place(const struct order *list, size_t count, struct order order)
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
bool order_list_put(order_list *list, struct order order)
{
    size_t at = order_list_place(list->items, list->len, order);

    if (at < list->len && list->items[at].id == order.id && list->items[at].rank == order.rank)
        return false;
    vec_push(list, order);
    for (size_t i = list->len - 1; i > at; i--)
        list->items[i] = list->items[i - 1];
    list->items[at] = order;
    return true;
}

bool partition_queue_uncount(struct partition_queue *partition_queue, struct order order)
{
    size_t at = order_list_place(partition_queue->booked.items, partition_queue->booked.len, order);

    if (at == partition_queue->booked.len || partition_queue->booked.items[at].id != order.id)
        return false;
    vec_remove(&partition_queue->booked, at);
    return true;
}

void partition_queue_needs_booking(struct sched *sched, uint32_t number, struct order order)
{
    struct partition_queue *partition_queue = number < sched->queue->partition_queues.len
                                                  ? &sched->queue->partition_queues.items[number]
                                                  : NULL;

    if (!partition_queue)
        return;
    if (!partition_queue->needs_booking)
        vec_push(&sched->queue->needs_booking, number);
    if (!partition_queue->needs_booking || order_before(order, partition_queue->needs_booking_lo))
        partition_queue->needs_booking_lo = order;
    if (!partition_queue->needs_booking || order_before(partition_queue->needs_booking_hi, order))
        partition_queue->needs_booking_hi = order;
    partition_queue->needs_booking = true;
}

void partition_queue_needs_booking_at(struct sched *sched, uint32_t number, struct order order)
{
    const struct partition_queue *partition_queue =
        number < sched->queue->partition_queues.len ? &sched->queue->partition_queues.items[number]
                                                    : NULL;

    if (partition_queue &&
        (partition_queue->booked.len < partition_queue->most ||
         order_before(order, partition_queue->booked.items[partition_queue->booked.len - 1])))
        partition_queue_needs_booking(sched, number, order);
}

size_t partition_queue_front_most(const struct partition_queue *partition_queue)
{
    return 2 * (partition_queue->most + PARTITION_FRONT);
}

void partition_queue_joined(struct sched *sched, uint32_t number, struct order order)
{
    struct partition_queue *partition_queue = number < sched->queue->partition_queues.len
                                                  ? &sched->queue->partition_queues.items[number]
                                                  : NULL;

    if (!partition_queue || !order_before(order, partition_queue->front_end))
        return;
    order_list_put((order_list *)(void *)&partition_queue->front, order);
    if (partition_queue->front.len > partition_queue_front_most(partition_queue)) {
        partition_queue->front.len /= 2;
        partition_queue->front_end = partition_queue->front.items[partition_queue->front.len];
    }
}
