/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sqlite.c - what was acknowledged comes back, in order, once
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/limits.h"
#include "log/test/recorder.h"

static void everything_comes_back_after_a_restart(void **state)
{
    struct recorder rec;
    struct log_status status;
    struct err err;

    (void)state;
    for (size_t round = 0; round < 4; round++) {
        recorder_init(&rec);
        struct log *log = open_log(test_dir, &rec, 0);
        if (log_start(log, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(rec.role, LOG_LEADS);
        assert_counts_from_one(&rec, round * 100);
        assert_int_equal(rec.own, 0);
        for (uint64_t i = 1; i <= 100; i++)
            assert_int_equal(append_number(log, round * 100 + i, 100, &err), 0);
        settle(log, &rec, round * 100 + 100);
        assert_counts_from_one(&rec, round * 100 + 100);
        assert_int_equal(rec.own, 100);
        log_status(log, &status);
        /* All that came in one turn travelled together, as far as a batch takes it. */
        assert_int_equal(status.commits, (100 + LIMIT_BATCH_COMMANDS - 1) / LIMIT_BATCH_COMMANDS);
        assert_int_equal(status.last, round * 100 + 100);
        assert_int_equal(log_point(log).index, round * 100 + 100);
        log_free(log);
        recorder_done(&rec);
    }
}

static void the_next_batch_fills_while_one_is_written(void **state)
{
    struct recorder rec;
    struct log_status status;

    (void)state;
    recorder_init(&rec);
    struct log *log = open_log(test_dir, &rec, 0);
    assert_int_equal(log_start(log, NULL), 0);
    for (uint64_t i = 1; i <= 2000; i++) {
        assert_int_equal(append_number(log, i, 0, NULL), 0);
        log_flush(log);
        log_poll(log);
    }
    settle(log, &rec, 2000);
    assert_counts_from_one(&rec, 2000);
    log_status(log, &status);
    assert_true(status.commits < 2000);
    log_free(log);
    recorder_done(&rec);
}

/* An owner that takes a few commands at a time gets each once, also when it stops in between. */
static void a_batch_is_taken_in_parts(void **state)
{
    enum { ALL = 300, MOST = 7 };
    struct recorder rec;

    (void)state;
    recorder_init(&rec);
    rec.most = MOST;
    struct log *log = open_log(test_dir, &rec, 0);
    assert_int_equal(log_start(log, NULL), 0);
    for (uint64_t i = 1; i <= ALL; i++)
        assert_int_equal(append_number(log, i, 100, NULL), 0);
    log_flush(log);
    while (rec.seen.len < ALL / 2) {
        char byte;
        size_t had = rec.seen.len;
        assert_int_equal(read(rec.wake[0], &byte, 1), 1);
        log_poll(log);
        assert_true(rec.seen.len <= had + MOST);
        assert_true(log_point(log).index <= rec.seen.len);
    }
    assert_true(rec.parts > 0);
    log_stop(log); /* what was written is delivered whole */
    assert_int_equal(rec.had, 0);
    assert_int_equal(log_point(log).index, rec.seen.len);
    assert_int_equal(rec.own + rec.refused, ALL);
    assert_int_equal(rec.own, rec.seen.len);
    uint64_t seen = rec.seen.len;
    log_free(log);
    recorder_done(&rec);

    recorder_init(&rec);
    rec.most = MOST;
    log = open_log(test_dir, &rec, 0);
    assert_int_equal(log_start(log, NULL), 0);
    assert_counts_from_one(&rec, seen);
    log_free(log);
    recorder_done(&rec);
}

static void large_commands_get_rows_of_their_own(void **state)
{
    struct recorder rec;
    struct err err;
    uint64_t number = 9;
    struct span huge = { NULL, (size_t)5 * 1024 * 1024 };

    (void)state;
    recorder_init(&rec);
    struct log *log = open_log(test_dir, &rec, 0);
    assert_int_equal(log_start(log, NULL), 0);
    assert_int_equal(append_number(log, 1, 3000000, &err), 0);
    assert_int_equal(append_number(log, 2, 10, &err), 0);
    assert_int_equal(append_number(log, 3, 8000000, &err), 0);
    settle(log, &rec, 3);
    assert_counts_from_one(&rec, 3);
    assert_int_equal(check_payload(log, 3, 8000000, &err), 0);
    huge.ptr = mem_new(huge.len);
    assert_int_equal(log_append(log, huge, NULL, 0, &err), -(int)ERR_TOO_LARGE);
    free((char *)(uintptr_t)huge.ptr);
    /* Whoever does not wait is told to. */
    int rc = 0;
    for (int i = 0; i < 20 && rc == 0; i++)
        rc = append_number(log, 4 + (uint64_t)i, 8000000, &err);
    assert_int_equal(rc, -(int)ERR_TOO_MANY);
    (void)number;
    log_free(log);
    assert_int_equal(rec.refused + rec.seen.len, 3 + 8);
    assert_int_equal(rec.refused_for, ERR_SHUTTING_DOWN);
    recorder_done(&rec);
}

static void payloads_outlive_restart_and_trimming(void **state)
{
    enum { ALL = 400, LEN = 3000 };
    struct recorder rec;
    struct log_status status;
    uint8_t digest[DIGEST_BYTES];
    char bytes[LEN];
    struct err err;

    (void)state;
    recorder_init(&rec);
    struct log *log = open_log(test_dir, &rec, 0);
    assert_int_equal(log_start(log, NULL), 0);
    for (uint64_t i = 1; i <= ALL; i++) {
        assert_int_equal(append_number(log, i, LEN, &err), 0);
        if (i % 10 == 0)
            settle(log, &rec, i);
        if (i % 100 == 0)
            take_snapshot(log, &rec);
    }
    /* Two snapshots stay, and what follows the older one. */
    for (log_status(log, &status); status.first != 301; log_status(log, &status)) {
        char byte;
        assert_int_equal(read(rec.wake[0], &byte, 1), 1);
        log_poll(log);
    }
    for (uint64_t i = 1; i <= ALL; i++)
        assert_int_equal(check_payload(log, i, LEN, &err), 0);
    /* 7 is in the table, 350 in a row; both are given up. */
    payload_of(7, bytes, LEN);
    digest_sha256(bytes, LEN, digest);
    assert_true(log_payload_has(log, digest));
    log_payload_drop(log, digest);
    payload_of(350, bytes, LEN);
    digest_sha256(bytes, LEN, digest);
    log_payload_drop(log, digest);
    assert_false(log_payload_has(log, digest));
    log_free(log);

    uint64_t seen = rec.seen.len;
    vec_clear(&rec.seen);
    log = open_log(test_dir, &rec, 0);
    assert_int_equal(log_start(log, &err), 0);
    assert_counts_from_one(&rec, seen);
    assert_int_equal(rec.restored, 400);
    for (uint64_t i = 1; i <= ALL; i++)
        assert_int_equal(check_payload(log, i, LEN, &err), 0); /* live again: the owner says so */
    log_free(log);
    recorder_done(&rec);
}

static void dead_payloads_leave_with_their_rows(void **state)
{
    struct recorder rec;
    struct log_status status;
    struct err err;

    (void)state;
    recorder_init(&rec);
    rec.keep_payloads = false;
    struct log *log = open_log(test_dir, &rec, 0);
    assert_int_equal(log_start(log, NULL), 0);
    for (uint64_t i = 1; i <= 30; i++) {
        assert_int_equal(append_number(log, i, 2000, &err), 0);
        settle(log, &rec, i);
        if (i % 10 == 0)
            take_snapshot(log, &rec);
    }
    for (log_status(log, &status); status.first != 21; log_status(log, &status)) {
        char byte;
        assert_int_equal(read(rec.wake[0], &byte, 1), 1);
        log_poll(log);
    }
    assert_int_equal(check_payload(log, 5, 2000, &err), -(int)ERR_NOT_FOUND);
    assert_int_equal(check_payload(log, 25, 2000, &err), 0);
    log_free(log);
    recorder_done(&rec);
}

static bool has_payload(struct log *log, uint64_t number, size_t len)
{
    uint8_t digest[DIGEST_BYTES];
    char bytes[256];

    payload_of(number, bytes, len);
    digest_sha256(bytes, len, digest);
    return log_payload_has(log, digest);
}

/* A start looks through the table, some payloads at a time, for those that nobody refers to any more. */
static void what_died_before_a_start_leaves_the_table(void **state)
{
    enum { ALL = 4000, LEN = 100, AT_A_TIME = 1024 };
    struct recorder rec;
    struct log_status status;
    size_t left = ALL;
    char byte;

    (void)state;
    recorder_init(&rec);
    struct log *log = open_log(test_dir, &rec, 0);
    assert_int_equal(log_start(log, NULL), 0);
    for (uint64_t i = 1; i <= ALL; i++) {
        assert_int_equal(append_number(log, i, LEN, NULL), 0);
        if (i % (ALL / 2) == 0) {
            settle(log, &rec, i);
            take_snapshot(log, &rec);
        }
    }
    append_number(log, ALL + 1, 0, NULL);
    settle(log, &rec, ALL + 1);
    take_snapshot(log, &rec);
    for (log_status(log, &status); status.first <= ALL; log_status(log, &status)) {
        assert_int_equal(read(rec.wake[0], &byte, 1), 1);
        log_poll(log);
    }
    log_free(log);
    recorder_done(&rec);
    recorder_init(&rec);
    rec.keep_payloads = false;
    log = open_log(test_dir, &rec, 0);
    assert_int_equal(log_start(log, NULL), 0);
    while (left >= AT_A_TIME) { /* a rest that is not worth a transaction may stay */
        assert_int_equal(read(rec.wake[0], &byte, 1), 1);
        log_poll(log);
        left = 0;
        for (uint64_t i = 1; i <= ALL; i++)
            left += has_payload(log, i, LEN);
    }
    log_free(log);
    recorder_done(&rec);
}

static void damage_snapshot(uint64_t index)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/snapshot-%020llu", test_dir, (unsigned long long)index);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, "!", 1, 40), 1);
    close(fd);
}

static void a_damaged_snapshot_is_made_up_for(void **state)
{
    struct recorder rec;
    struct err err;

    (void)state;
    recorder_init(&rec);
    struct log *log = open_log(test_dir, &rec, 0);
    assert_int_equal(log_start(log, NULL), 0);
    for (uint64_t i = 1; i <= 35; i++) {
        assert_int_equal(append_number(log, i, 10, &err), 0);
        settle(log, &rec, i);
        if (i % 10 == 0)
            take_snapshot(log, &rec);
    }
    log_free(log);
    damage_snapshot(30);
    vec_clear(&rec.seen);
    log = open_log(test_dir, &rec, 0);
    if (log_start(log, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(rec.restored, 20);
    assert_counts_from_one(&rec, 35);
    log_free(log);
    /* With the older one gone too nothing is left to begin with. */
    damage_snapshot(20);
    log = open_log(test_dir, &rec, 0);
    assert_int_equal(log_start(log, &err), -(int)ERR_CORRUPT);
    assert_non_null(strstr(err.text, "no whole snapshot"));
    log_free(log);
    recorder_done(&rec);
}

/* The owner writes one when the log has stopped, and does not tell it. */
static void write_the_end(struct log *log, const struct recorder *rec)
{
    struct snapshot_writer *writer = NULL;

    assert_false(log_is_kept(log));
    log_stop(log);
    assert_true(log_is_kept(log));
    assert_int_equal(snapshot_create(log_dir(log), log_point(log), &writer, NULL), 0);
    assert_int_equal(
        snapshot_write(writer, rec->seen.items, rec->seen.len * sizeof(uint64_t), NULL), 0);
    assert_int_equal(snapshot_finish(writer, NULL), 0);
}

static void a_start_begins_at_the_end_of_the_last_run(void **state)
{
    enum { ROUNDS = 5, EACH = 10 };
    uint64_t indexes[SNAPSHOT_MOST];
    size_t count;
    struct err err;

    (void)state;
    for (uint64_t round = 0; round <= ROUNDS; round++) {
        struct recorder rec;
        recorder_init(&rec);
        if (round == ROUNDS)
            damage_snapshot(ROUNDS * EACH);
        struct log *log = open_log(test_dir, &rec, 0);
        if (log_start(log, &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(rec.restored, (round - (round == ROUNDS)) * EACH);
        assert_counts_from_one(&rec, round * EACH);
        assert_int_equal(snapshot_list(test_dir, indexes, SNAPSHOT_MOST, &count, NULL), 0);
        assert_int_equal(count, MIN(round, 2 + (uint64_t)(round == ROUNDS)));
        for (uint64_t i = 1; i <= EACH; i++)
            assert_int_equal(append_number(log, round * EACH + i, 10, &err), 0);
        settle(log, &rec, (round + 1) * EACH);
        write_the_end(log, &rec);
        log_free(log);
        recorder_done(&rec);
    }
}

static void one_directory_has_one_owner(void **state)
{
    struct recorder rec, other;
    struct err err;

    (void)state;
    recorder_init(&rec);
    recorder_init(&other);
    struct log *log = open_log(test_dir, &rec, 0), *second = open_log(test_dir, &other, 0);
    assert_int_equal(log_start(log, &err), 0);
    assert_int_equal(log_start(second, &err), -(int)ERR_EXISTS);
    log_free(second);
    log_free(log);
    recorder_done(&rec);
    recorder_done(&other);
}

static void count_confirm(void *arg, int rc)
{
    *(int *)arg += rc == 0 ? 1 : 100;
}

static void a_stopped_log_answers(void **state)
{
    struct recorder rec;
    struct err err;
    int confirmed = 0;

    (void)state;
    recorder_init(&rec);
    struct log *log = open_log(test_dir, &rec, 0);
    assert_int_equal(append_number(log, 1, 0, &err), -(int)ERR_SHUTTING_DOWN); /* not started */
    assert_int_equal(log_start(log, &err), 0);
    log_confirm(log, count_confirm, &confirmed);
    assert_int_equal(confirmed, 1);
    assert_int_equal(append_number(log, 1, 0, &err), 0);
    log_stop(log); /* nobody released it: not written */
    assert_int_equal(rec.refused, 1);
    assert_int_equal(append_number(log, 2, 0, &err), -(int)ERR_SHUTTING_DOWN);
    log_confirm(log, count_confirm, &confirmed);
    assert_int_equal(confirmed, 101);
    log_free(log);
    recorder_done(&rec);
}

/* Small commits find room that an earlier one made: the file does not grow with each of them. */
static void the_write_ahead_log_grows_ahead_of_small_commits(void **state)
{
    enum { COMMITS = 60 };
    struct recorder rec;
    char path[128];
    struct stat was = { 0 }, is;
    int grown = 0;

    (void)state;
    snprintf(path, sizeof(path), "%s/log.db-wal", test_dir);
    recorder_init(&rec);
    struct log *log = open_log(test_dir, &rec, 0);
    assert_int_equal(log_start(log, NULL), 0);
    for (uint64_t i = 1; i <= COMMITS; i++) {
        assert_int_equal(append_number(log, i, 0, NULL), 0);
        settle(log, &rec, i);
        assert_int_equal(stat(path, &is), 0);
        grown += is.st_size != was.st_size;
        was = is;
    }
    assert_in_range(grown, 1, COMMITS / 3);
    log_free(log);
    recorder_done(&rec);
    recorder_init(&rec);
    log = open_log(test_dir, &rec, 0);
    assert_int_equal(log_start(log, NULL), 0);
    assert_counts_from_one(&rec, COMMITS);
    log_free(log);
    recorder_done(&rec);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, make_dir, remove_dir)
UNIT_MAIN(T(the_write_ahead_log_grows_ahead_of_small_commits),
          T(everything_comes_back_after_a_restart), T(the_next_batch_fills_while_one_is_written),
          T(a_batch_is_taken_in_parts), T(large_commands_get_rows_of_their_own),
          T(payloads_outlive_restart_and_trimming), T(dead_payloads_leave_with_their_rows),
          T(what_died_before_a_start_leaves_the_table), T(a_damaged_snapshot_is_made_up_for),
          T(a_start_begins_at_the_end_of_the_last_run), T(one_directory_has_one_owner),
          T(a_stopped_log_answers))
