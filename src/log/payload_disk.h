/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload_disk.h - the payloads of a controller whose log is elsewhere
 *
 * A database of its own (payload.db) with a thread that writes. Batches that brought payloads are
 * kept whole and compressed, as they are in etcd, one row each (a *segment*): writing them costs a
 * fraction of a row per payload. When a segment is older than the last snapshot but one, what is
 * still wanted of it moves to the table of payload.h and the segment goes. One job at a time, one
 * transaction each. Reading is on the caller's thread.
 */
#ifndef LOG_PAYLOAD_DISK_H
#define LOG_PAYLOAD_DISK_H

#include "log/log.h"
#include "log/payload_index.h"

struct payload_disk;

struct payload_segment {
    uint64_t row;
    struct span value; /* as etcd_msg.h writes it; stays where it is until the job is taken back */
};

struct payload_job {
    struct payload_segment *segments;
    size_t segment_count;
    struct payload_place *moves; /* payloads of segments up to trim_upto that stay */
    size_t move_count;
    uint64_t trim_upto; /* 0: none */
    uint8_t (*drops)[LOG_DIGEST_BYTES];
    size_t drop_count;
    bool list; /* give some digests that are there, after `cursor`, which moves on */
    int64_t cursor;
    uint8_t (*listed)[LOG_DIGEST_BYTES];
    size_t listed_count;
    const char *verify_dir; /* also read the snapshot of `verify` in it back; NULL: none */
    struct log_point verify;
    uint64_t verify_keeps; /* it is whole: those before this index are removed */
    int verify_rc;
    struct err verify_err;
    int rc;
    struct err err;
};
void payload_job_free(struct payload_job *job);

int payload_disk_open(const char *dir, void (*wake)(void *), void *ctx, struct payload_disk **out,
                      struct err *err);
void payload_disk_close(struct payload_disk *disk); /* waits for the job */
bool payload_disk_busy(const struct payload_disk *disk);
void payload_disk_run(struct payload_disk *disk, struct payload_job *job);
struct payload_job *payload_disk_take(
    struct payload_disk *disk); /* the one that is done, or NULL */

/* Waits for the one that runs and takes it; NULL: there is none. */
struct payload_job *payload_disk_wait(struct payload_disk *disk);

/* Every segment, in order; for the start, before the first job. */
typedef int (*payload_segment_fn)(void *ctx, uint64_t row, struct span value, struct err *err);
int payload_disk_scan(struct payload_disk *disk, payload_segment_fn fn, void *ctx, struct err *err);
/* Appends the value of a segment. ERR_NOT_FOUND when it is gone. */
int payload_disk_segment(struct payload_disk *disk, uint64_t row, struct str *out, struct err *err);
/* From the table. out NULL: is it there? */
int payload_disk_get(struct payload_disk *disk, const uint8_t digest[LOG_DIGEST_BYTES],
                     struct str *out, struct err *err);

#endif
