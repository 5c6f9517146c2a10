/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recent.h - the last batches, still in memory
 *
 * A job is often launched a moment after it was submitted: its payload is then copied from here
 * and the disk is not asked.
 */
#ifndef LOG_RECENT_H
#define LOG_RECENT_H

#include "log/batch.h"

enum { RECENT_BATCHES = 256, RECENT_BYTES = 16 * 1024 * 1024 };

struct recent {
    struct batch *ring[RECENT_BATCHES];
    unsigned head, count; /* ring[head] is the oldest */
    size_t bytes;
};

/* Takes the batch; returns one that had to leave (more may: call with NULL until it gives NULL). */
struct batch *recent_push(struct recent *recent, struct batch *batch);
const struct batch *recent_find(const struct recent *recent, uint64_t first);
void recent_done(struct recent *recent);

#endif
