/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partition_queue.c - the jobs of one partition in order
 *
 * A partition queue is a heap of families, a family a tree of classes, a class a queue. A walk opens only what
 * it comes to, so the first few jobs of a million cost a few steps.
 */
#include "sched/sched_priv.h"

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
