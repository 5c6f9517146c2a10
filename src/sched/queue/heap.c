/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.c - families by the order of their first job
 *
 * A binary heap whose members know their place, so that a key can change.
 */
#include "base/must.h"
#include "sched/queue/queue.h"

static void put(struct heap *heap, size_t at, struct heap_item item)
{
    heap->items.items[at] = item;
    *item.at = (uint32_t)at + 1;
}

static void sift(struct heap *heap, size_t at, struct heap_item item)
{
    struct heap_item *items = heap->items.items;

    for (; at > 0 && order_before(item.key, items[(at - 1) / 2].key); at = (at - 1) / 2)
        put(heap, at, items[(at - 1) / 2]);
    for (;;) {
        size_t child = at * 2 + 1;
        if (child + 1 < heap->items.len && order_before(items[child + 1].key, items[child].key))
            child++;
        if (child >= heap->items.len || !order_before(items[child].key, item.key))
            break;
        put(heap, at, items[child]);
        at = child;
    }
    put(heap, at, item);
}

void heap_set(struct heap *heap, uint32_t *at, struct family *family, struct order key)
{
    struct heap_item item = { key, family, at };

    if (order_is_last(key)) {
        heap_del(heap, at);
    } else if (*at) {
        sift(heap, *at - 1, item);
    } else {
        vec_push(&heap->items, item);
        sift(heap, heap->items.len - 1, item);
    }
}

void heap_del(struct heap *heap, uint32_t *at)
{
    if (!*at)
        return;
    MUST(*at <= heap->items.len && heap->items.items[*at - 1].at == at);
    size_t hole = *at - 1;
    *at = 0;
    struct heap_item last = heap->items.items[--heap->items.len];
    if (hole < heap->items.len)
        sift(heap, hole, last);
}

const struct heap_item *heap_top(const struct heap *heap)
{
    return heap->items.len ? &heap->items.items[0] : NULL;
}
