/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload_disk.h - the payloads of a controller whose log is elsewhere
 *
 * A database of its own (payload.db) with a thread that writes. One job at a time: payloads to
 * keep and digests to drop, durable together. Reading is on the caller's thread.
 */
#ifndef LOG_PAYLOAD_DISK_H
#define LOG_PAYLOAD_DISK_H

#include "log/log.h"

struct payload_disk;

struct payload_job {
    struct log_payload *puts; /* bytes stay where they are until the job is taken back */
    size_t put_count;
    uint8_t (*drops)[LOG_DIGEST_BYTES];
    size_t drop_count;
    bool list; /* also give every digest that is there (before anything else is done) */
    uint8_t (*listed)[LOG_DIGEST_BYTES];
    size_t listed_count;
    const char *verify_dir; /* also read the snapshot of `verify` in it back; NULL: none */
    struct log_point verify;
    int verify_rc;
    struct err verify_err;
    uint64_t upto; /* the caller's */
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

/* out NULL: is it there? */
int payload_disk_get(struct payload_disk *disk, const uint8_t digest[LOG_DIGEST_BYTES],
                     struct str *out, struct err *err);

#endif
