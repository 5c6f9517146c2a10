/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - a binary heap of happenings
 */
#include "queue.h"

#include <stdlib.h>

static bool sooner(const struct happening *a, const struct happening *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->seq < b->seq;
}

void queue_done(struct queue *queue)
{
    vec_each (struct happening, what, &queue->heap)
        free(what->bytes);
    vec_done(&queue->heap);
}

void queue_push(struct queue *queue, struct happening what)
{
    what.seq = ++queue->seq;
    vec_push(&queue->heap, what);
    struct happening *heap = queue->heap.items;
    size_t at = queue->heap.len - 1;
    for (; at > 0 && sooner(&what, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = what;
}

bool queue_pop(struct queue *queue, struct happening *out)
{
    struct happening *heap = queue->heap.items;

    if (!queue->heap.len)
        return false;
    *out = heap[0];
    struct happening last = heap[--queue->heap.len];
    size_t at = 0, len = queue->heap.len;
    for (;;) {
        size_t child = at * 2 + 1;
        if (child + 1 < len && sooner(&heap[child + 1], &heap[child]))
            child++;
        if (child >= len || !sooner(&heap[child], &last))
            break;
        heap[at] = heap[child];
        at = child;
    }
    if (len)
        heap[at] = last;
    return true;
}
