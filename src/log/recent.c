/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recent.c - the last batches, still in memory
 */
#include "log/recent.h"

static struct batch *pop(struct recent *recent)
{
    struct batch *oldest = recent->ring[recent->head];

    recent->head = (recent->head + 1) % RECENT_BATCHES;
    recent->count--;
    recent->bytes -= oldest->bytes.cap;
    return oldest;
}

struct batch *recent_push(struct recent *recent, struct batch *batch)
{
    struct batch *left = NULL;

    if (batch && recent->count == RECENT_BATCHES)
        left = pop(recent);
    if (batch) {
        recent->ring[(recent->head + recent->count++) % RECENT_BATCHES] = batch;
        recent->bytes += batch->bytes.cap;
    }
    if (!left && recent->count && recent->bytes > RECENT_BYTES)
        left = pop(recent);
    return left;
}

const struct batch *recent_find(const struct recent *recent, uint64_t first)
{
    /* Newest first: that is what is asked for. */
    for (unsigned i = recent->count; i-- > 0;) {
        const struct batch *batch = recent->ring[(recent->head + i) % RECENT_BATCHES];
        if (batch->first == first)
            return batch;
        if (batch->first < first)
            return NULL;
    }
    return NULL;
}

void recent_done(struct recent *recent)
{
    while (recent->count)
        batch_free(pop(recent));
}
