/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background.h - the thread for what may take long: checkpoints, reading a snapshot back
 *
 * It has a connection of its own. A passive checkpoint copies pages from the write-ahead log into
 * the database while the writer goes on; when it is through, the writer finishes the short rest
 * between two batches, and SQLite begins the log file anew. So the file stays near WAL_FRAMES and
 * no commit waits for a long copy.
 */
#ifndef LOG_BACKGROUND_H
#define LOG_BACKGROUND_H

#include "log/store.h"

struct background;

/* Takes the connection. `wake` is called from the thread when there is something to take. */
int background_start(const char *dir, struct store *store, void (*wake)(void *), void *ctx,
                     struct background **out, struct err *err);
void background_stop(struct background *background); /* waits, frees */

/* By the writer after each commit; may run the short rest of a checkpoint on its connection. */
void background_after_commit(struct background *background, struct store *writer);

/* Reads the snapshot back. If it is whole, removes those before `keeps`: a large file takes a while. */
void background_verify(struct background *background, struct log_point point, uint64_t keeps);
/* Some digests of payloads in the table; each call goes on after those of the last one. None: that was all. */
void background_list(struct background *background);

struct background_news {
    bool verified; /* an answer to background_verify */
    struct log_point point;
    int verify_rc;
    struct err verify_err;
    uint8_t (*digests)[LOG_DIGEST_BYTES]; /* the caller frees */
    size_t digest_count;
    int broken; /* a checkpoint failed for good */
    struct err broken_err;
};
bool background_take(struct background *background, struct background_news *out);

#endif
