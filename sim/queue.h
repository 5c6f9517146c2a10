/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - what will happen, in order of time; what comes at the same time, in order of asking
 */
#ifndef SIM_QUEUE_H
#define SIM_QUEUE_H

#include <stdint.h>

#include "base/vec.h"

struct world;
struct happening;
typedef void happen_fn(struct world *world, const struct happening *what);

/* Small numbers say whom it is about; it is looked up when the time comes, and may be gone. */
struct happening {
    int64_t at_us;
    uint64_t seq;
    happen_fn *fn;
    uint64_t a, b, c;
    uint8_t *bytes; /* freed after fn, or with the queue */
    size_t len;
};

struct queue {
    VEC(struct happening) heap;
    uint64_t seq;
};

void queue_done(struct queue *queue);
void queue_push(struct queue *queue, struct happening what);
/* The next one; false when there is none. Its bytes are now the caller's. */
bool queue_pop(struct queue *queue, struct happening *out);

#endif
