/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.h - an owner of a log whose state is the list of commands it has seen
 *
 * A command is a number; a payload, when there is one, is the number repeated, so that anybody can
 * say what it must be. The snapshot is the list.
 */
#ifndef LOG_TEST_RECORDER_H
#define LOG_TEST_RECORDER_H

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/vec.h"
#include "log/log.h"
#include "log/snapshot.h"
#include "log/sqlite.h"
#include "sys/clock.h"
#include "sys/digest.h"
#include "sys/files.h"
#include "sys/log.h"
#include "test/unit.h"

struct recorder {
    VEC(uint64_t) seen;
    uint64_t restored; /* how many came by snapshot */
    uint32_t refused, own;
    enum err_code refused_for;
    enum log_role role;
    bool failed, keep_payloads;
    struct err why;
    int wake[2];   /* a pipe */
    uint32_t most; /* commands that it takes at a time; 0: all */
    uint32_t had;  /* of the present batch */
    uint32_t parts;
};

static void payload_of(uint64_t number, char *out, size_t len)
{
    for (size_t i = 0; i < len; i++)
        out[i] = (char)(number >> (8 * (i % 8)) ^ i / 8);
}

static int record_restore(void *ctx, struct snapshot_reader *snapshot, struct err *err)
{
    struct recorder *rec = ctx;
    uint64_t number;
    ssize_t got;

    vec_clear(&rec->seen);
    while ((got = snapshot_read(snapshot, &number, sizeof(number), err)) == sizeof(number))
        vec_push(&rec->seen, number);
    rec->restored = rec->seen.len;
    return got < 0 ? (int)got : 0;
}

static int record_apply(void *ctx, const struct log_batch *batch, struct err *err)
{
    struct recorder *rec = ctx;
    struct log_walk walk;
    struct log_entry entry;
    uint64_t number;
    uint32_t taken = 0;

    for (log_walk_init(&walk, batch); log_walk_next(&walk, &entry);) {
        if (walk.done <= rec->had)
            continue;
        if (rec->most && taken == rec->most) {
            rec->had += taken;
            rec->parts++;
            return LOG_APPLY_MORE;
        }
        taken++;
        if (entry.index != rec->seen.len + 1)
            return err_set(err, ERR_INTERNAL, "index %llu after %zu",
                           (unsigned long long)entry.index, rec->seen.len);
        memcpy(&number, entry.command.ptr, sizeof(number));
        vec_push(&rec->seen, number);
    }
    rec->had = 0;
    if (batch->own)
        rec->own += batch->count;
    return 0;
}

static void record_refused(void *ctx, uint32_t count, const struct err *why)
{
    struct recorder *rec = ctx;

    rec->refused += count;
    rec->refused_for = why->code;
}

static void record_role(void *ctx, enum log_role role, const char *leader)
{
    (void)leader;
    ((struct recorder *)ctx)->role = role;
}

static void record_failed(void *ctx, const struct err *why)
{
    struct recorder *rec = ctx;

    rec->failed = true;
    rec->why = *why;
}

static bool record_live(void *ctx, const uint8_t digest[LOG_DIGEST_BYTES])
{
    (void)digest;
    return ((struct recorder *)ctx)->keep_payloads;
}

static void record_wake(void *ctx)
{
    if (write(((struct recorder *)ctx)->wake[1], "", 1) < 0)
        return; /* full: it is awake enough */
}

static const struct log_owner recorder_owner = {
    .restore = record_restore,
    .apply = record_apply,
    .refused = record_refused,
    .role = record_role,
    .failed = record_failed,
    .payload_live = record_live,
    .wake = record_wake,
};

static inline void recorder_init(struct recorder *rec)
{
    *rec = (struct recorder){ .keep_payloads = true };
    assert_int_equal(pipe(rec->wake), 0);
}

static inline void recorder_done(struct recorder *rec)
{
    vec_done(&rec->seen);
    close(rec->wake[0]);
    close(rec->wake[1]);
}

static inline int append_number(struct log *log, uint64_t number, size_t payload_len,
                                struct err *err)
{
    uint8_t digest[DIGEST_BYTES];
    char *bytes = mem_new(payload_len + 1);
    struct log_payload payload = { digest, { bytes, payload_len } };

    payload_of(number, bytes, payload_len);
    digest_sha256(bytes, payload_len, digest);
    int rc = log_append(log, (struct span){ (char *)&number, sizeof(number) }, &payload,
                        payload_len ? 1 : 0, err);
    free(bytes);
    return rc;
}

static inline int check_payload(struct log *log, uint64_t number, size_t len, struct err *err)
{
    CLEANUP(str_done) struct str got = { 0 };
    uint8_t digest[DIGEST_BYTES];
    char *want = mem_new(len + 1);

    payload_of(number, want, len);
    digest_sha256(want, len, digest);
    int rc = log_payload_get(log, digest, &got, err);
    if (rc == 0) {
        assert_int_equal(got.len, len);
        assert_memory_equal(got.data, want, len);
    }
    free(want);
    return rc;
}

/* Polls until `want` commands were applied or refused, or it failed. */
static inline void settle(struct log *log, struct recorder *rec, size_t want)
{
    char byte;

    log_flush(log);
    while (rec->seen.len + rec->refused < want && !rec->failed) {
        assert_int_equal(read(rec->wake[0], &byte, 1), 1);
        log_poll(log);
    }
}

static inline struct log *open_log(const char *dir, struct recorder *rec, uint64_t accept_loss)
{
    struct log_config config = { .dir = dir,
                                 .name = "c1",
                                 .owner = &recorder_owner,
                                 .owner_ctx = rec,
                                 .accept_loss = accept_loss };

    return log_sqlite_new(&config);
}

static inline void assert_counts_from_one(const struct recorder *rec, size_t want)
{
    assert_int_equal(rec->seen.len, want);
    for (size_t i = 0; i < want; i++)
        assert_int_equal(rec->seen.items[i], i + 1);
}

static inline void take_snapshot(struct log *log, struct recorder *rec)
{
    struct snapshot_writer *writer = NULL;
    struct log_point point = log_point(log);
    struct log_status status;
    char byte;

    log_status(log, &status);
    if (status.snapshot == point.index)
        return;
    assert_int_equal(snapshot_create(log_dir(log), point, &writer, NULL), 0);
    assert_int_equal(
        snapshot_write(writer, rec->seen.items, rec->seen.len * sizeof(uint64_t), NULL), 0);
    assert_int_equal(snapshot_finish(writer, NULL), 0);
    assert_int_equal(log_snapshot_taken(log, point, NULL), 0);
    for (log_status(log, &status); status.snapshot != point.index; log_status(log, &status)) {
        assert_int_equal(read(rec->wake[0], &byte, 1), 1);
        log_poll(log);
    }
}

static inline void quiet(void *ctx, enum log_level level, const char *event, const char *text)
{
    (void)ctx, (void)level, (void)event, (void)text;
}

static char test_dir[64];

static inline int make_dir(void **state)
{
    (void)state;
    log_use(quiet, NULL);
    snprintf(test_dir, sizeof(test_dir), "/tmp/test-durable.XXXXXX");
    return mkdtemp(test_dir) ? 0 : -1;
}

static inline int remove_dir(void **state)
{
    (void)state;
    return file_remove_tree(test_dir, NULL);
}

#endif
