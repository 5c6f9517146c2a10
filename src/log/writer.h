/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h - the thread that writes the log
 *
 * The owner's thread fills batches; this thread writes one at a time and syncs it while the next
 * fills. Between two batches it does at most one chore (a slice of trimming), so that neither
 * starves the other. What is done waits in a list until the owner takes it.
 *
 * (1) A batch gets its indexes and checksum here, when its turn comes: after a refusal the next
 *     one takes the same indexes, and the log has no gap.
 * (2) The watermark is written after the commit and before anybody is told.
 * (3) After an error other than a full disk nothing more is written, ever, by this process: a sync
 *     that failed cannot be repeated.
 */
#ifndef LOG_WRITER_H
#define LOG_WRITER_H

#include <pthread.h>

#include "log/background.h"
#include "log/store.h"

struct chore {
    struct store_chore what;
    struct store_move *moves;
    uint8_t (*drops)[LOG_DIGEST_BYTES];
    int rc;
    struct err err;
};
void chore_free(struct chore *chore);

struct writer {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    bool running;

    /* under the lock */
    struct batch *queue, *queue_tail;
    size_t queue_bytes;
    uint32_t queued;
    bool released, stopping, broken;
    struct batch *done, *done_tail;
    struct chore *chore, *chore_done;
    struct batch *spare; /* to be filled again: their memory is warm */
    unsigned spares;

    /* the thread's own */
    struct store *store;
    struct background *background;
    int mark_fd;
    uint64_t turn;
    struct log_point tail;
    void (*wake)(void *ctx);
    void *wake_ctx;
};

int writer_start(struct writer *writer, struct err *err);
/* Ends after the batch in flight; what waits comes back as refused. */
void writer_stop(struct writer *writer);
void writer_done(struct writer *writer);

int writer_append(struct writer *writer, uint64_t epoch, struct span command,
                  const struct log_payload *payloads, uint32_t payload_count, struct err *err);
void writer_release(struct writer *writer);
/* The list of batches that are decided, oldest first, and the chore that is. */
struct batch *writer_take(struct writer *writer, struct chore **chore);
void writer_give_back(struct writer *writer, struct batch *batch); /* or frees it */
void writer_do_chore(struct writer *writer, struct chore *chore);
uint32_t writer_queued(struct writer *writer);

#endif
