/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes.c - the jobs of one partition in order
 *
 * A lane is a heap of families, a family a tree of classes, a class a queue. A walk opens only what
 * it comes to, so the first few jobs of a million cost a few steps.
 */
#include "sched/sched_priv.h"

/* A queue before the tree it is in, the tree before its family: those have the same key. */
static bool goes_before(const struct lane_step *a, const struct lane_step *b)
{
    if (a->key.id == b->key.id && a->key.rank == b->key.rank)
        return a->what > b->what;
    return order_before(a->key, b->key);
}

/* The steps are a binary heap. */
static void push(struct lane_walk *walk, struct lane_step step)
{
    if (order_is_last(step.key))
        return;
    vec_push(&walk->steps, step);
    struct lane_step *steps = walk->steps.items;
    size_t at = walk->steps.len - 1;
    for (; at > 0 && goes_before(&step, &steps[(at - 1) / 2]); at = (at - 1) / 2)
        steps[at] = steps[(at - 1) / 2];
    steps[at] = step;
}

static void push_family(struct lane_walk *walk, size_t index)
{
    if (index < walk->lane->heap.items.len)
        push(walk, (struct lane_step){ .key = walk->lane->heap.items.items[index].key,
                                       .what = STEP_FAMILY,
                                       .index = index });
}

static void push_tree(struct lane_walk *walk, struct class *class)
{
    if (class)
        push(walk, (struct lane_step){ .key = class->best, .what = STEP_TREE, .class = class });
}

void lane_walk_begin(struct lane_walk *walk, const struct lane *lane)
{
    *walk = (struct lane_walk){ .lane = lane };
    push_family(walk, 0);
}

static struct lane_step pop_first(struct lane_walk *walk)
{
    struct lane_step *steps = walk->steps.items;
    struct lane_step first = steps[0], last = steps[--walk->steps.len];
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

struct order lane_walk_next(struct lane_walk *walk, struct class **class)
{
    while (walk->steps.len) {
        struct lane_step step = pop_first(walk);
        switch (step.what) {
        case STEP_FAMILY:
            push_family(walk, step.index * 2 + 1);
            push_family(walk, step.index * 2 + 2);
            push_tree(walk, walk->lane->heap.items.items[step.index].family->root);
            break;
        case STEP_TREE: {
            struct lane_step queue = { .what = STEP_QUEUE, .class = step.class };
            push_tree(walk, step.class->left);
            push_tree(walk, step.class->right);
            queue.key = line_next(&step.class->queue, &queue.cursor);
            push(walk, queue);
            break;
        }
        case STEP_QUEUE: {
            struct lane_step next = step;
            next.key = line_next(&step.class->queue, &next.cursor);
            push(walk, next);
            *class = step.class;
            return step.key;
        }
        }
    }
    return ORDER_LAST;
}

void lane_walk_done(struct lane_walk *walk)
{
    vec_done(&walk->steps);
}
