/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - the thread that writes the log
 */
#include "log/writer.h"

#include <signal.h>
#include <stdlib.h>

#include "base/limits.h"
#include "log/watermark.h"

enum { SPARES = 8 };

void chore_free(struct chore *chore)
{
    if (!chore)
        return;
    free(chore->moves);
    free(chore->drops);
    free(chore);
}

static struct batch *pop_queue(struct writer *writer)
{
    struct batch *batch = writer->queue;

    writer->queue = batch->next;
    if (!writer->queue) {
        writer->queue_tail = NULL;
        writer->released = false;
    }
    writer->queue_bytes -= batch->bytes.len;
    writer->queued -= batch->count;
    batch->next = NULL;
    return batch;
}

static void push_done(struct writer *writer, struct batch *batch)
{
    if (writer->done_tail)
        writer->done_tail->next = batch;
    else
        writer->done = batch;
    writer->done_tail = batch;
}

static int write_batch(struct writer *writer, struct batch *batch)
{
    batch->first = writer->tail.index + 1;
    struct log_batch view = batch_view(batch, true);
    view.crc = batch->crc = batch_crc(writer->tail.crc, &view);
    int rc = store_insert(writer->store, &view, &batch->err);
    if (rc < 0)
        return rc;
    struct log_point tail = { batch->first + batch->count - 1, batch->crc };
    rc = watermark_write(writer->mark_fd, tail, writer->turn++, &batch->err); /* (2) */
    if (rc < 0)
        return -(int)(batch->err.code = ERR_IO); /* the file is preallocated: never "full" */
    writer->tail = tail;
    background_after_commit(writer->background, writer->store);
    return 0;
}

static bool is_fatal(int rc)
{
    return rc < 0 && rc != -(int)ERR_DISK_FULL && rc != -(int)ERR_NO_MEMORY;
}

static void *writer_main(void *arg)
{
    struct writer *writer = arg;

    pthread_mutex_lock(&writer->lock);
    while (!writer->stopping && !writer->broken) {
        struct batch *batch = writer->queue && writer->released ? pop_queue(writer) : NULL;
        struct chore *chore = TAKE(writer->chore);

        if (!batch && !chore) {
            pthread_cond_wait(&writer->work, &writer->lock);
            continue;
        }
        pthread_mutex_unlock(&writer->lock);
        if (batch)
            batch->rc = write_batch(writer, batch);
        if (chore && !(batch && is_fatal(batch->rc)))
            chore->rc = store_run_chore(writer->store, &chore->what, &chore->err);
        pthread_mutex_lock(&writer->lock);
        if (batch)
            push_done(writer, batch);
        if (chore)
            writer->chore_done = chore;
        writer->broken |=
            (batch && is_fatal(batch->rc)) || (chore && is_fatal(chore->rc)); /* (3) */
        writer->wake(writer->wake_ctx);
        if (batch && !writer->broken) { /* while its owners are told; `batch` is theirs */
            pthread_mutex_unlock(&writer->lock);
            store_fill_ahead(writer->store);
            pthread_mutex_lock(&writer->lock);
        }
    }
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}

int writer_start(struct writer *writer, struct err *err)
{
    sigset_t all, before;

    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->work, NULL);
    sigfillset(&all); /* signals are the owner's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&writer->thread, NULL, writer_main, writer);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        return err_errno(err, code, "log writer");
    writer->running = true;
    return 0;
}

void writer_stop(struct writer *writer)
{
    if (!writer->running)
        return;
    pthread_mutex_lock(&writer->lock);
    writer->stopping = true;
    pthread_cond_signal(&writer->work);
    pthread_mutex_unlock(&writer->lock);
    pthread_join(writer->thread, NULL);
    writer->running = false;
    while (writer->queue) {
        struct batch *batch = pop_queue(writer);
        batch->rc = err_code(&batch->err, ERR_SHUTTING_DOWN);
        push_done(writer, batch);
    }
    chore_free(TAKE(writer->chore));
}

static void free_list(struct batch *batch)
{
    while (batch) {
        struct batch *next = batch->next;
        batch_free(batch);
        batch = next;
    }
}

void writer_done(struct writer *writer)
{
    free_list(writer->queue);
    free_list(writer->done);
    free_list(writer->spare);
    chore_free(writer->chore);
    chore_free(writer->chore_done);
}

static struct batch *fresh_batch(struct writer *writer)
{
    struct batch *batch = writer->spare;

    if (batch) {
        writer->spare = batch->next;
        writer->spares--;
        batch->next = NULL;
    } else {
        batch = NEW(struct batch);
    }
    if (writer->queue_tail)
        writer->queue_tail->next = batch;
    else
        writer->queue = batch;
    writer->queue_tail = batch;
    return batch;
}

int writer_append(struct writer *writer, uint64_t epoch, struct span command,
                  const struct log_payload *payloads, uint32_t payload_count, struct err *err)
{
    size_t size = batch_record_bytes(command, payloads, payload_count);
    int rc = 0;

    if (size == 0)
        return err_set(err, ERR_TOO_LARGE, "command of %zu bytes", command.len);
    pthread_mutex_lock(&writer->lock);
    struct batch *batch = writer->queue_tail;
    if (writer->queue_bytes + size > LOG_QUEUE_BYTES) {
        rc = err_set(err, ERR_TOO_MANY, "the log is %zu bytes behind", writer->queue_bytes);
    } else {
        if (!batch || batch->bytes.len + size > BATCH_BYTES || batch->count == LIMIT_BATCH_COMMANDS)
            batch = fresh_batch(writer);
        batch_add(batch, command, payloads, payload_count);
        batch->epoch = epoch;
        writer->queue_bytes += size;
        writer->queued++;
    }
    pthread_mutex_unlock(&writer->lock);
    return rc;
}

void writer_release(struct writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    if (writer->queue && !writer->released) {
        writer->released = true;
        pthread_cond_signal(&writer->work);
    }
    pthread_mutex_unlock(&writer->lock);
}

struct batch *writer_take(struct writer *writer, struct chore **chore)
{
    pthread_mutex_lock(&writer->lock);
    struct batch *done = TAKE(writer->done);
    writer->done_tail = NULL;
    *chore = TAKE(writer->chore_done);
    pthread_mutex_unlock(&writer->lock);
    return done;
}

void writer_give_back(struct writer *writer, struct batch *batch)
{
    if (batch->bytes.cap > 2 * BATCH_BYTES) {
        batch_free(batch);
        return;
    }
    batch_reset(batch);
    pthread_mutex_lock(&writer->lock);
    bool keep = writer->spares < SPARES;
    if (keep) {
        batch->next = writer->spare;
        writer->spare = batch;
        writer->spares++;
    }
    pthread_mutex_unlock(&writer->lock);
    if (!keep)
        batch_free(batch);
}

void writer_do_chore(struct writer *writer, struct chore *chore)
{
    pthread_mutex_lock(&writer->lock);
    writer->chore = chore;
    pthread_cond_signal(&writer->work);
    pthread_mutex_unlock(&writer->lock);
}

uint32_t writer_queued(struct writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    uint32_t queued = writer->queued;
    pthread_mutex_unlock(&writer->lock);
    return queued;
}
