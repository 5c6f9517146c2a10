/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer.h - snapshots and payloads from another controller, in pieces, checked
 *
 * Both ends without a socket: spurctld moves the messages. What arrives is believed when it is
 * whole: pieces must follow each other, the size may not pass its bound nor change on the way, the
 * SHA-256 must match, and the snapshot must read back. Until then nothing has a name that anybody
 * looks at, and what went wrong leaves nothing behind.
 */
#ifndef LOG_TRANSFER_H
#define LOG_TRANSFER_H

#include "log/log.h"
#include "proto/peer.pb-c.h"

enum {
    TRANSFER_CHUNK_BYTES = 256 * 1024, /* sent */
    TRANSFER_CHUNK_MOST = 1024 * 1024, /* taken */
    TRANSFER_DIGESTS = 256,            /* payloads asked for at once */
};

/* ---- giving a snapshot ---- */

struct transfer_out;
/* The snapshot of that index in `dir`: ERR_NOT_FOUND. */
int transfer_open(const char *dir, uint64_t index, struct transfer_out **out, struct err *err);
/* 1: `chunk` is the next piece and borrows from `out`; 0: that was all; negative: it cannot be read. */
int transfer_next(struct transfer_out *out, PeerSnapshotChunk *chunk, struct err *err);
void transfer_close(struct transfer_out *out);

/* ---- taking one ---- */

struct transfer_in;
/* Into `dir`. What an earlier one left there unfinished is removed. */
int transfer_begin(const char *dir, uint64_t at_least, struct transfer_in **in, struct err *err);
int transfer_take(struct transfer_in *in, const PeerSnapshotChunk *chunk, struct err *err);
/* Checks it, makes it durable and gives it its name. Frees `in`, also when it fails. */
int transfer_finish(struct transfer_in *in, uint64_t *index, struct err *err);
void transfer_abandon(struct transfer_in *in);

/* ---- payloads ---- */

struct transfer_payload {
    uint8_t digest[LOG_DIGEST_BYTES];
    uint64_t total;
    struct str bytes;
};
/*
 * 1: a payload is whole, in `payload`, its digest checked; 0: more of it is to come. `wanted` are
 * the digests that were asked for: anything else is refused.
 */
int transfer_payload_take(struct transfer_payload *payload, const PeerPayloadChunk *chunk,
                          const uint8_t (*wanted)[LOG_DIGEST_BYTES], size_t wanted_count,
                          struct err *err);

#endif
