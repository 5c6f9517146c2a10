/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload_seen.h - digests of payloads that came a moment ago
 *
 * Who submits many jobs mostly submits the same script with the same environment. To see that bytes are
 * the same costs a twentieth of what their SHA-256 does.
 */
#ifndef SPURCTLD_PAYLOAD_SEEN_H
#define SPURCTLD_PAYLOAD_SEEN_H

#include "base/util.h"
#include "sys/digest.h"

enum { RECALL_COUNT = 4, RECALL_BYTES = 64 * 1024 /* longer ones are not kept */ };

struct payload_seen {
    struct recalled {
        uint8_t *bytes;
        size_t len;
        uint8_t digest[DIGEST_BYTES];
    } list[RECALL_COUNT]; /* the one that was asked for last first */
};

/* SHA-256 of the bytes. */
void payload_seen_digest(struct payload_seen *recall, const void *bytes, size_t len,
                         uint8_t out[DIGEST_BYTES]);
void payload_seen_done(struct payload_seen *recall);

#endif
