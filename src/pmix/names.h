/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - what tasks publish and look up, kept by the first node of the step
 *
 * Pure: a question comes in, its answer goes out by a callback, at once or when what it waits for is
 * there. A value is bytes.
 */
#ifndef PMIX_NAMES_H
#define PMIX_NAMES_H

#include "base/map.h"
#include "base/vec.h"
#include "proto/pmix.pb-c.h"

struct names {
    void *ctx;
    void (*answer)(void *ctx, uint32_t node, PmixNamesAnswer *answer);
    struct map values;
    size_t kept_bytes;
    VEC(struct names_waiting *) waiting;
};

void names_init(struct names *names);
void names_done(struct names *names);

/* Takes `ask`. */
void names_ask(struct names *names, uint32_t node, PmixNamesAsk *ask, int64_t now_us);
/* When names_due() has something to do; negative: never. */
int64_t names_next_us(const struct names *names);
void names_due(struct names *names, int64_t now_us);

#endif
