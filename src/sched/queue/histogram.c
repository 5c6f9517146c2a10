/* SPDX-License-Identifier: Apache-2.0 */
/*
 * histogram.c - moments in order, and how values are spread
 */
#include "sched/queue/histogram.h"

#include "sched/queue/queue.h"

static bool is_sooner(struct moment a, struct moment b)
{
    return a.at_s != b.at_s ? a.at_s < b.at_s : a.job_id < b.job_id;
}

void moment_put(struct moments *heap, struct moment item)
{
    vec_push(&heap->items, item);
    size_t at = heap->items.len - 1;
    for (; at && is_sooner(item, heap->items.items[(at - 1) / 2]); at = (at - 1) / 2)
        heap->items.items[at] = heap->items.items[(at - 1) / 2];
    heap->items.items[at] = item;
}

struct moment moment_take(struct moments *heap)
{
    struct moment *items = heap->items.items, first = items[0];
    size_t at = 0, len = --heap->items.len;
    struct moment last = items[len];

    for (size_t child; (child = at * 2 + 1) < len; at = child) {
        if (child + 1 < len && is_sooner(items[child + 1], items[child]))
            child++;
        if (!is_sooner(items[child], last))
            break;
        items[at] = items[child];
    }
    items[at] = last;
    return first;
}

bool moment_is_due(const struct moments *heap, int64_t now_s)
{
    return heap->items.len && heap->items.items[0].at_s <= now_s;
}

unsigned histogram_bucket(int64_t value)
{
    return (unsigned)(predict_log(value) / HISTOGRAM_STEP);
}

void histogram_add(struct histogram *spread, int64_t value)
{
    spread->counts[histogram_bucket(value)]++;
    spread->total++;
}

unsigned histogram_top(const struct histogram *spread, unsigned part)
{
    uint64_t above = 0, most = MAX(spread->total / part, 1);
    unsigned at = HISTOGRAM_BUCKETS;

    while (at > 0 && above < most)
        above += spread->counts[--at];
    return at;
}

unsigned histogram_tip(const struct histogram *spread, unsigned part)
{
    uint64_t above = 0, most = spread->total / part;
    unsigned at = HISTOGRAM_BUCKETS;

    while (at > 0 && above + spread->counts[at - 1] <= most)
        above += spread->counts[--at];
    return at;
}

void histogram_halve(struct histogram *spread)
{
    spread->total = 0;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        spread->total += spread->counts[i] /= 2;
}

int64_t histogram_value(unsigned bucket)
{
    uint64_t log = (uint64_t)bucket * HISTOGRAM_STEP + HISTOGRAM_STEP / 2, top = log / 256,
             rest = 256 + log % 256;

    return (int64_t)MIN(top >= 8 ? rest << (top - 8) : rest >> (8 - top),
                        (uint64_t)HISTOGRAM_LARGEST);
}
