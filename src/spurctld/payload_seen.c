/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload_seen.c - digests of payloads that came a moment ago
 */
#include "spurctld/payload_seen.h"

#include <stdlib.h>
#include <string.h>

static void move_first(struct payload_seen *recall, size_t at)
{
    struct recalled one = recall->list[at];

    memmove(&recall->list[1], &recall->list[0], at * sizeof(one));
    recall->list[0] = one;
}

void payload_seen_digest(struct payload_seen *recall, const void *bytes, size_t len,
                         uint8_t out[DIGEST_BYTES])
{
    struct recalled *last = &recall->list[RECALL_COUNT - 1];

    for (size_t i = 0; i < RECALL_COUNT; i++) {
        const struct recalled *one = &recall->list[i];
        if (one->len != len || !one->bytes || memcmp(one->bytes, bytes, len) != 0)
            continue;
        memcpy(out, one->digest, DIGEST_BYTES);
        move_first(recall, i);
        return;
    }
    digest_sha256(bytes, len, out);
    if (len == 0 || len > RECALL_BYTES)
        return;
    last->bytes = mem_resize(last->bytes, len);
    last->len = len;
    memcpy(last->bytes, bytes, len);
    memcpy(last->digest, out, DIGEST_BYTES);
    move_first(recall, RECALL_COUNT - 1);
}

void payload_seen_done(struct payload_seen *recall)
{
    for (size_t i = 0; i < RECALL_COUNT; i++)
        free(recall->list[i].bytes);
    *recall = (struct payload_seen){ 0 };
}
