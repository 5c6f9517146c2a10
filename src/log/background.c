/* SPDX-License-Identifier: Apache-2.0 */
/*
 * background.c - the thread for what may take long: checkpoints, reading a snapshot back
 */
#include "log/background.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "log/snapshot.h"

enum {
    WAL_FRAMES = 32 * 1024 * 1024 / STORE_PAGE_BYTES, /* begin a checkpoint */
    WAL_FRAMES_MOST = 16 * WAL_FRAMES,                /* the writer does it, now */
    LIST_CHUNK = 1024,
};

struct background {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct store *store;
    char *dir;
    void (*wake)(void *ctx);
    void *wake_ctx;
    int64_t list_cursor; /* the thread's */

    /* under the lock */
    bool stopping, want_checkpoint, checkpointing, checkpointed, want_verify, want_list;
    struct log_point verify;
    uint64_t verify_keeps;
    struct background_news news;
    bool has_news;
};

static void tell(struct background *bg)
{
    bg->has_news = true;
    bg->wake(bg->wake_ctx);
}

static void note_broken(struct background *bg, int rc, const struct err *err)
{
    /* A full disk is met again, and said, by the writer. */
    if (rc == 0 || rc == -(int)ERR_DISK_FULL || rc == -(int)ERR_NO_MEMORY)
        return;
    bg->news.broken = rc;
    bg->news.broken_err = *err;
    tell(bg);
}

static void do_checkpoint(struct background *bg)
{
    struct err err;
    bool complete;

    bg->want_checkpoint = false;
    bg->checkpointing = true;
    pthread_mutex_unlock(&bg->lock);
    int rc = store_checkpoint(bg->store, false, &complete, &err);
    pthread_mutex_lock(&bg->lock);
    bg->checkpointing = false;
    bg->checkpointed = rc == 0;
    note_broken(bg, rc, &err);
}

static void do_verify(struct background *bg)
{
    struct log_point point = bg->verify;
    uint64_t keeps = bg->verify_keeps;
    struct snapshot_reader *reader = NULL;
    struct err err;

    bg->want_verify = false;
    pthread_mutex_unlock(&bg->lock);
    int rc = snapshot_open(bg->dir, point.index, &reader, &err);
    if (rc == 0 && snapshot_point(reader).crc != point.crc)
        rc = err_set(&err, ERR_CORRUPT, "snapshot belongs to another log");
    snapshot_close(reader);
    if (rc == 0)
        snapshot_prune(bg->dir, keeps);
    pthread_mutex_lock(&bg->lock);
    bg->news.verified = true;
    bg->news.point = point;
    bg->news.verify_rc = rc;
    if (rc < 0)
        bg->news.verify_err = err;
    tell(bg);
}

static void do_list(struct background *bg)
{
    uint8_t(*digests)[LOG_DIGEST_BYTES] = mem_new((size_t)LIST_CHUNK * LOG_DIGEST_BYTES);
    struct err err;

    bg->want_list = false;
    pthread_mutex_unlock(&bg->lock);
    int got = payload_list(&bg->store->payloads, &bg->list_cursor, digests, LIST_CHUNK, &err);
    pthread_mutex_lock(&bg->lock);
    note_broken(bg, MIN(got, 0), &err);
    free(bg->news.digests);
    bg->news.digests = digests;
    bg->news.digest_count = (size_t)MAX(got, 0);
    tell(bg);
}

static void *background_main(void *arg)
{
    struct background *bg = arg;

    pthread_mutex_lock(&bg->lock);
    while (!bg->stopping) {
        if (bg->want_checkpoint)
            do_checkpoint(bg);
        else if (bg->want_verify)
            do_verify(bg);
        else if (bg->want_list)
            do_list(bg);
        else
            pthread_cond_wait(&bg->work, &bg->lock);
    }
    pthread_mutex_unlock(&bg->lock);
    return NULL;
}

int background_start(const char *dir, struct store *store, void (*wake)(void *), void *ctx,
                     struct background **out, struct err *err)
{
    struct background *bg = NEW(struct background);
    sigset_t all, before;

    bg->store = store;
    bg->dir = mem_strdup(dir);
    bg->wake = wake;
    bg->wake_ctx = ctx;
    pthread_mutex_init(&bg->lock, NULL);
    pthread_cond_init(&bg->work, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int code = pthread_create(&bg->thread, NULL, background_main, bg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        free(bg->dir);
        free(bg);
        return err_errno(err, code, "log background thread");
    }
    *out = bg;
    return 0;
}

void background_stop(struct background *bg)
{
    if (!bg)
        return;
    pthread_mutex_lock(&bg->lock);
    bg->stopping = true;
    pthread_cond_signal(&bg->work);
    pthread_mutex_unlock(&bg->lock);
    pthread_join(bg->thread, NULL);
    store_close(bg->store);
    free(bg->news.digests);
    free(bg->dir);
    free(bg);
}

void background_after_commit(struct background *bg, struct store *writer)
{
    bool finish = false, complete;
    struct err err;

    if (writer->wal_frames < WAL_FRAMES)
        return;
    pthread_mutex_lock(&bg->lock);
    if (bg->checkpointed || writer->wal_frames > WAL_FRAMES_MOST) {
        bg->checkpointed = false;
        finish = true;
    } else if (!bg->want_checkpoint && !bg->checkpointing) {
        bg->want_checkpoint = true;
        pthread_cond_signal(&bg->work);
    }
    pthread_mutex_unlock(&bg->lock);
    if (!finish)
        return;
    int rc = store_checkpoint(writer, false, &complete, &err);
    pthread_mutex_lock(&bg->lock);
    note_broken(bg, rc, &err);
    pthread_mutex_unlock(&bg->lock);
}

void background_verify(struct background *bg, struct log_point point, uint64_t keeps)
{
    pthread_mutex_lock(&bg->lock);
    bg->want_verify = true;
    bg->verify = point;
    bg->verify_keeps = keeps;
    pthread_cond_signal(&bg->work);
    pthread_mutex_unlock(&bg->lock);
}

void background_list(struct background *bg)
{
    pthread_mutex_lock(&bg->lock);
    bg->want_list = true;
    pthread_cond_signal(&bg->work);
    pthread_mutex_unlock(&bg->lock);
}

bool background_take(struct background *bg, struct background_news *out)
{
    pthread_mutex_lock(&bg->lock);
    bool has = bg->has_news;
    *out = bg->news;
    memset(&bg->news, 0, sizeof(bg->news));
    bg->has_news = false;
    pthread_mutex_unlock(&bg->lock);
    return has;
}
