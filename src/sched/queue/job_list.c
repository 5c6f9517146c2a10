/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_list.c - a sorted list of jobs, cheap at both ends
 *
 * Chunks of at most CHUNK_MOST entries, each sorted, in order. Jobs mostly come in at the end and
 * leave at the front; anywhere else costs a move within one chunk.
 *
 * (1) No chunk is empty.
 */
#include <stdlib.h>
#include <string.h>

#include "sched/queue/queue.h"

enum { CHUNK_LEAST = 4, CHUNK_MOST = 256 };

struct chunk {
    uint32_t start, len, cap; /* items[start … start + len) */
    struct order items[];
};

static struct order first_of(const struct chunk *chunk)
{
    return chunk->items[chunk->start];
}

static struct order last_of(const struct chunk *chunk)
{
    return chunk->items[chunk->start + chunk->len - 1];
}

static struct chunk *chunk_new(uint32_t cap)
{
    struct chunk *chunk = mem_new(sizeof(*chunk) + cap * sizeof(struct order));

    chunk->cap = cap;
    return chunk;
}

/* The chunk that holds the order, or would: the first whose last is not before it. */
static uint32_t chunk_for(const struct job_list *queue, struct order order)
{
    uint32_t low = queue->first, high = queue->first + queue->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (order_before(last_of(queue->chunks[middle]), order))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint32_t place_in(const struct chunk *chunk, struct order order)
{
    uint32_t low = chunk->start, high = chunk->start + chunk->len;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (order_before(chunk->items[middle], order))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert_chunk(struct job_list *queue, uint32_t at, struct chunk *chunk)
{
    if (queue->first + queue->count == queue->cap) {
        if (queue->first > queue->count) {
            memmove(queue->chunks, queue->chunks + queue->first,
                    queue->count * sizeof(*queue->chunks));
            at -= queue->first;
            queue->first = 0;
        } else {
            queue->cap = queue->cap ? queue->cap * 2 : 2;
            queue->chunks = mem_resize(queue->chunks, queue->cap * sizeof(*queue->chunks));
        }
    }
    memmove(&queue->chunks[at + 1], &queue->chunks[at],
            (queue->first + queue->count - at) * sizeof(*queue->chunks));
    queue->chunks[at] = chunk;
    queue->count++;
}

/*
 * Room for one more at the end of chunk `at`; a full one is cut in two. Returns where the chunk is
 * then: the list of chunks may have been moved to its front.
 */
static uint32_t make_room(struct job_list *queue, uint32_t at)
{
    struct chunk *chunk = queue->chunks[at];
    uint32_t place = at - queue->first;

    if (chunk->start) {
        memmove(chunk->items, chunk->items + chunk->start, chunk->len * sizeof(*chunk->items));
        chunk->start = 0;
    } else if (chunk->cap < CHUNK_MOST) {
        chunk->cap *= 2;
        queue->chunks[at] = mem_resize(chunk, sizeof(*chunk) + chunk->cap * sizeof(*chunk->items));
    } else {
        struct chunk *half = chunk_new(CHUNK_MOST);
        half->len = chunk->len / 2;
        chunk->len -= half->len;
        memcpy(half->items, chunk->items + chunk->len, half->len * sizeof(*half->items));
        insert_chunk(queue, at + 1, half);
    }
    return queue->first + place;
}

static void note_end(struct job_list *queue)
{
    queue->tail = queue->count ? queue->chunks[queue->first + queue->count - 1] : NULL;
    queue->last = queue->count ? last_of(queue->tail) : ORDER_LAST;
}

void job_list_put(struct job_list *queue, struct order order)
{
    struct chunk *tail = queue->tail;

    if (tail && order_before(queue->last, order) && tail->start + tail->len < tail->cap) {
        tail->items[tail->start + tail->len++] = order;
        queue->last = order;
        return;
    }
    uint32_t end = queue->first + queue->count;
    bool behind = !queue->count || order_before(last_of(queue->chunks[end - 1]), order);
    uint32_t at = behind ? end : chunk_for(queue, order);

    if (at == end) { /* behind all others */
        bool full = queue->count && queue->chunks[end - 1]->len == CHUNK_MOST;
        if (!queue->count || full) {
            insert_chunk(queue, end, chunk_new(full ? CHUNK_MOST : CHUNK_LEAST));
            end = queue->first + queue->count;
        }
        at = end - 1;
    }
    while (queue->chunks[at]->start + queue->chunks[at]->len == queue->chunks[at]->cap) {
        at = make_room(queue, at);
        if (order_before(last_of(queue->chunks[at]), order) && at + 1 < queue->first + queue->count)
            at++;
    }
    struct chunk *chunk = queue->chunks[at];
    uint32_t to = place_in(chunk, order);
    memmove(&chunk->items[to + 1], &chunk->items[to],
            (chunk->start + chunk->len - to) * sizeof(*chunk->items));
    chunk->items[to] = order;
    chunk->len++;
    note_end(queue);
}

bool job_list_del(struct job_list *queue, struct order order)
{
    if (!queue->count)
        return false;
    bool front = !order_before(first_of(queue->chunks[queue->first]), order);
    uint32_t at = front ? queue->first : chunk_for(queue, order);
    if (at == queue->first + queue->count)
        return false;
    struct chunk *chunk = queue->chunks[at];
    uint32_t from = front ? chunk->start : place_in(chunk, order);
    if (chunk->items[from].id != order.id || chunk->items[from].rank != order.rank)
        return false;
    if (from == chunk->start) {
        chunk->start++;
    } else {
        memmove(&chunk->items[from], &chunk->items[from + 1],
                (chunk->start + chunk->len - from - 1) * sizeof(*chunk->items));
    }
    if (--chunk->len) {
        if (order.id == queue->last.id && order.rank == queue->last.rank)
            queue->last = last_of(chunk);
        return true;
    }
    free(chunk); /* (1) */
    if (at == queue->first)
        queue->first++;
    else
        memmove(&queue->chunks[at], &queue->chunks[at + 1],
                (queue->first + queue->count - at - 1) * sizeof(*queue->chunks));
    if (--queue->count == 0)
        queue->first = 0;
    note_end(queue);
    return true;
}

struct order job_list_head(const struct job_list *queue)
{
    return queue->count ? first_of(queue->chunks[queue->first]) : ORDER_LAST;
}

void job_list_prefetch(const struct job_list *queue, unsigned time)
{
    if (!queue->count)
        return;
    if (time == 0) {
        __builtin_prefetch(&queue->chunks[queue->first]);
        return;
    }
    const struct chunk *front = queue->chunks[queue->first];
    if (time == 1)
        __builtin_prefetch(front, 1);
    else
        __builtin_prefetch(&front->items[front->start]);
}

struct order job_list_next(const struct job_list *queue, struct job_list_cursor *cursor)
{
    while (cursor->chunk < queue->count) {
        const struct chunk *chunk = queue->chunks[queue->first + cursor->chunk];
        if (cursor->item < chunk->len)
            return chunk->items[chunk->start + cursor->item++];
        cursor->chunk++;
        cursor->item = 0;
    }
    return ORDER_LAST;
}

size_t job_list_count_before(const struct job_list *queue, struct order order)
{
    uint32_t at = chunk_for(queue, order);
    size_t count = 0;

    for (uint32_t i = queue->first; i < at; i++)
        count += queue->chunks[i]->len;
    if (at < queue->first + queue->count)
        count += place_in(queue->chunks[at], order) - queue->chunks[at]->start;
    return count;
}

void job_list_done(struct job_list *queue)
{
    for (uint32_t i = 0; i < queue->count; i++)
        free(queue->chunks[queue->first + i]);
    free(queue->chunks);
    *queue = (struct job_list){ 0 };
}
