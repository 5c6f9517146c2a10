/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sqlite_loss.c - what is missing is named; going on without it must be said
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "log/test/recorder.h"

static void fill(uint64_t count, uint64_t snapshot_every)
{
    struct recorder rec;
    struct err err;

    recorder_init(&rec);
    struct log *log = open_log(test_dir, &rec, 0);
    assert_int_equal(log_start(log, &err), 0);
    for (uint64_t i = 1; i <= count; i++) {
        assert_int_equal(append_number(log, i, 50, &err), 0);
        settle(log, &rec, i);
        if (snapshot_every && i % snapshot_every == 0)
            take_snapshot(log, &rec);
    }
    log_free(log);
    recorder_done(&rec);
}

static void sql(const char *text)
{
    char path[128];
    sqlite3 *db;

    snprintf(path, sizeof(path), "%s/log.db", test_dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static int start_with(uint64_t accept_loss, struct recorder *rec, struct log_status *status,
                      struct err *err)
{
    vec_clear(&rec->seen);
    rec->restored = 0;
    struct log *log = open_log(test_dir, rec, accept_loss);
    int rc = log_start(log, err);
    if (rc == 0 && status) {
        log_status(log, status);
        /* It works as a log again. */
        size_t next = rec->seen.len + 1;
        assert_int_equal(append_number(log, next, 50, err), 0);
        settle(log, rec, next);
        assert_counts_from_one(rec, next);
    }
    log_free(log);
    return rc;
}

static void a_missing_tail_is_named(void **state)
{
    struct recorder rec;
    struct log_status status;
    struct err err;

    (void)state;
    fill(20, 0);
    sql("DELETE FROM log WHERE first > 13");
    recorder_init(&rec);
    assert_int_equal(start_with(0, &rec, NULL, &err), -(int)ERR_CORRUPT);
    assert_non_null(strstr(err.text, "Entries from 14 to 20 cannot be trusted"));
    assert_non_null(strstr(err.text, "--accept-loss 14"));
    /* Accepting less than what is lost is not enough. */
    assert_int_equal(start_with(15, &rec, NULL, &err), -(int)ERR_CORRUPT);
    assert_int_equal(start_with(14, &rec, &status, &err), 0);
    assert_int_equal(status.lost, 7);
    assert_int_equal(status.last, 13);
    /* From then on it is whole again. */
    assert_int_equal(start_with(0, &rec, NULL, &err), 0);
    assert_counts_from_one(&rec, 14);
    recorder_done(&rec);
}

static void a_gap_and_a_changed_row_are_named(void **state)
{
    static const struct {
        const char *sql, *says;
    } rows[] = {
        { "DELETE FROM log WHERE first = 7", "entry 6 is followed by 8" },
        { "UPDATE log SET epoch = 9 WHERE first = 7", "checksum of entries 7 to 7" },
        { "UPDATE log SET batch = substr(batch, 1, 10) WHERE first = 7", "checksum of entries 7" },
        { "UPDATE log SET batch = (SELECT batch FROM log WHERE first = 6) WHERE first = 7",
          "checksum of entries 7" },
    };
    struct recorder rec;
    struct log_status status;
    struct err err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        recorder_init(&rec);
        remove_dir(NULL);
        assert_int_equal(mkdir(test_dir, 0700), 0);
        fill(12, 0);
        sql(rows[i].sql);
        assert_int_equal(start_with(0, &rec, NULL, &err), -(int)ERR_CORRUPT);
        if (!strstr(err.text, rows[i].says))
            fail_msg("'%s' is not in '%s'", rows[i].says, err.text);
        assert_int_equal(start_with(7, &rec, &status, &err), 0);
        assert_int_equal(status.lost, 6);
        recorder_done(&rec);
    }
}

static void a_snapshot_saves_what_rows_lost(void **state)
{
    struct recorder rec;
    struct log_status status;
    struct err err;

    (void)state;
    fill(25, 10);
    /* Before the newer snapshot (20), after the older (10): only rows that it makes up for. */
    sql("UPDATE log SET crc = 1 WHERE first = 15");
    recorder_init(&rec);
    assert_int_equal(start_with(0, &rec, NULL, &err), -(int)ERR_CORRUPT);
    assert_int_equal(start_with(15, &rec, &status, &err), 0);
    assert_int_equal(status.lost, 0);
    assert_int_equal(rec.restored, 20);
    assert_counts_from_one(&rec, 26);
    recorder_done(&rec);
}

static void without_its_files_it_does_not_begin_anew(void **state)
{
    static const char *const lost[] = { "log.db", "watermark" };
    struct recorder rec;
    char path[128];
    struct err err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(lost); i++) {
        recorder_init(&rec);
        remove_dir(NULL);
        assert_int_equal(mkdir(test_dir, 0700), 0);
        fill(12, 5);
        snprintf(path, sizeof(path), "%s/%s", test_dir, lost[i]);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(start_with(0, &rec, NULL, &err), -(int)ERR_CORRUPT);
        assert_non_null(strstr(err.text, lost[i]));
        recorder_done(&rec);
    }
    /* The watermark is gone, all else is there: the operator says that this is all. */
    recorder_init(&rec);
    assert_int_equal(start_with(13, &rec, NULL, &err), 0);
    assert_counts_from_one(&rec, 12);
    recorder_done(&rec);
}

static void a_refusal_changes_nothing(void **state)
{
    CLEANUP(str_done) struct str before = { 0 };
    CLEANUP(str_done) struct str after = { 0 };
    struct recorder rec;
    char path[128];
    struct err err;

    (void)state;
    fill(20, 0);
    snprintf(path, sizeof(path), "%s/log.db-wal", test_dir);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_true(lseek(fd, 0, SEEK_END) > 30000);
    assert_int_equal(pwrite(fd, "flip", 4, 30000), 4);
    close(fd);
    assert_int_equal(file_read(path, 64 << 20, &before, NULL), 0);
    recorder_init(&rec);
    assert_int_equal(start_with(0, &rec, NULL, &err), -(int)ERR_CORRUPT);
    assert_int_equal(file_read(path, 64 << 20, &after, NULL), 0);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.data, after.data, before.len);
    recorder_done(&rec);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, make_dir, remove_dir)
UNIT_MAIN(T(a_missing_tail_is_named), T(a_gap_and_a_changed_row_are_named),
          T(a_snapshot_saves_what_rows_lost), T(without_its_files_it_does_not_begin_anew),
          T(a_refusal_changes_nothing))
