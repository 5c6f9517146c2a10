/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recall.h - digests of payloads that came a moment ago
 *
 * Who submits many jobs mostly submits the same script with the same environment. To see that bytes are
 * the same costs a twentieth of what their SHA-256 does.
 */
#ifndef SPURCTLD_RECALL_H
#define SPURCTLD_RECALL_H

#include "base/util.h"
#include "sys/digest.h"

enum { RECALL_COUNT = 4, RECALL_BYTES = 64 * 1024 /* longer ones are not kept */ };

struct recall {
    struct recalled {
        uint8_t *bytes;
        size_t len;
        uint8_t digest[DIGEST_BYTES];
    } list[RECALL_COUNT]; /* the one that was asked for last first */
};

/* SHA-256 of the bytes. */
void recall_digest(struct recall *recall, const void *bytes, size_t len, uint8_t out[DIGEST_BYTES]);
void recall_done(struct recall *recall);

#endif
