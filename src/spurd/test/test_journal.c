/* SPDX-License-Identifier: Apache-2.0 */
/* What was written is read again; a torn or flipped end is cut off; tombstones are bounded. */
#include "test/unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spurd/record/attempt.h"
#include "spurd/record/journal.h"
#include "sys/files.h"
#include "sys/log.h"

static void quiet(void *ctx, enum log_level level, const char *event, const char *text)
{
    (void)ctx, (void)level, (void)event, (void)text;
}

static char path[64];

static int make_path(void **state)
{
    (void)state;
    strcpy(path, "/tmp/spur-journal-XXXXXX");
    int fd = mkstemp(path);
    close(fd);
    unlink(path);
    log_use(quiet, NULL);
    return 0;
}

static int remove_path(void **state)
{
    (void)state;
    unlink(path);
    log_use(NULL, NULL);
    return 0;
}

static void add_gone(struct journal *journal, uint32_t job, uint32_t attempt)
{
    SpoolRecord record = SPOOL_RECORD__INIT;
    SpoolGone gone = SPOOL_GONE__INIT;
    const SpoolRecord *list[] = { &record };

    gone.has_job_id = gone.has_attempt = true;
    gone.job_id = job;
    gone.attempt = attempt;
    record.what_case = SPOOL_RECORD__WHAT_GONE;
    record.gone = &gone;
    assert_int_equal(journal_add(journal, list, 1, NULL), 0);
}

static void add_grant(struct journal *journal, uint32_t job, uint32_t attempt, bool launched)
{
    SpoolRecord records[2] = { SPOOL_RECORD__INIT, SPOOL_RECORD__INIT };
    const SpoolRecord *list[] = { &records[0], &records[1] };
    Grant grant = GRANT__INIT;
    SpoolLaunched words = SPOOL_LAUNCHED__INIT;
    char out[] = "/o";

    grant.has_job_id = grant.has_attempt = words.has_job_id = words.has_attempt = true;
    grant.job_id = words.job_id = job;
    grant.attempt = words.attempt = attempt;
    words.std_out = out;
    records[0].what_case = SPOOL_RECORD__WHAT_GRANT;
    records[0].grant = &grant;
    records[1].what_case = SPOOL_RECORD__WHAT_LAUNCHED;
    records[1].launched = &words;
    assert_int_equal(journal_add(journal, list, launched ? 2 : 1, NULL), 0);
}

static void open_both(struct journal *journal, struct attempt_table *table)
{
    struct err err = { 0 };

    attempt_table_init(table);
    if (journal_open(journal, NULL, path, attempt_replay, table, &err) < 0)
        fail_msg("%s", err.text);
}

static void close_both(struct journal *journal, struct attempt_table *table)
{
    journal_close(journal);
    attempt_table_done(table);
}

static void the_last_word_counts(void **state)
{
    (void)state;
    struct journal journal;
    struct attempt_table table;

    open_both(&journal, &table);
    assert_int_equal(map_len(&table.held), 0);
    add_grant(&journal, 1, 1, true);
    add_grant(&journal, 2, 1, false);
    add_grant(&journal, 3, 4, true);
    add_gone(&journal, 3, 4);
    add_gone(&journal, 9, 7); /* never held: a revocation came first */
    close_both(&journal, &table);
    for (int round = 0; round < 2; round++) { /* as written, and written anew */
        open_both(&journal, &table);
        assert_int_equal(map_len(&table.held), 2);
        assert_true(attempt_find(&table, 1, 1)->launched);
        assert_string_equal(attempt_find(&table, 1, 1)->std_out, "/o");
        assert_false(attempt_find(&table, 2, 1)->launched);
        assert_null(attempt_find(&table, 3, 4));
        assert_true(attempt_is_buried(&table, 3, 4));
        assert_true(attempt_is_buried(&table, 3, 1));
        assert_false(attempt_is_buried(&table, 3, 5));
        assert_true(attempt_is_buried(&table, 9, 7));
        assert_false(attempt_is_buried(&table, 1, 1));
        assert_int_equal(journal_replace(&journal, attempt_write, &table, NULL), 0);
        close_both(&journal, &table);
    }
}

static void a_damaged_end_is_cut_off(void **state)
{
    (void)state;
    struct journal journal;
    struct attempt_table table;
    struct stat info;

    open_both(&journal, &table);
    for (uint32_t job = 1; job <= 10; job++)
        add_gone(&journal, job, 1);
    off_t whole = (off_t)journal.bytes;
    close_both(&journal, &table);
    assert_int_equal(stat(path, &info), 0);
    assert_true(info.st_size > whole); /* zeros are ahead of the records */
    for (off_t cut = 1; cut <= 40; cut++) {
        struct str bytes = { 0 };
        assert_int_equal(file_read(path, 1000000, &bytes, NULL), 0);
        assert_int_equal(truncate(path, whole - cut), 0);
        if (cut % 2) /* the same with zeros behind, as a power cut leaves it */
            assert_int_equal(truncate(path, info.st_size), 0);
        open_both(&journal, &table);
        assert_true(attempt_is_buried(&table, 1, 1));
        assert_false(attempt_is_buried(&table, 10, 1));
        add_gone(&journal, 11, 1); /* and it goes on from there */
        close_both(&journal, &table);
        open_both(&journal, &table);
        assert_true(attempt_is_buried(&table, 11, 1));
        close_both(&journal, &table);
        assert_int_equal(file_write_quick(path, bytes.data, bytes.len, 0600, NULL), 0);
        str_done(&bytes);
    }
    int fd = open(path, O_RDWR);
    char byte = 0;
    assert_int_equal(pwrite(fd, &byte, 1, whole - 3), 1); /* flipped in the last record */
    close(fd);
    open_both(&journal, &table);
    assert_true(attempt_is_buried(&table, 9, 1));
    assert_false(attempt_is_buried(&table, 10, 1));
    close_both(&journal, &table);
    assert_int_equal(stat(path, &info), 0);
    assert_true(info.st_size < whole);
    assert_int_equal(file_write_quick(path, "something else", 14, 0600, NULL), 0);
    attempt_table_init(&table);
    struct err err = { 0 };
    assert_int_equal(journal_open(&journal, NULL, path, attempt_replay, &table, &err),
                     -ERR_CORRUPT);
    attempt_table_done(&table);
}

static void tombstones_are_bounded(void **state)
{
    (void)state;
    struct attempt_table table;
    SpoolGone gone = SPOOL_GONE__INIT;

    attempt_table_init(&table);
    for (uint32_t job = 1; job <= HELD_TOMBS_MAX * 2; job++) {
        gone.job_id = job;
        gone.attempt = 1;
        attempt_bury(&table, &gone);
        if (job % 1000 == 0) { /* buried again: young again */
            gone.job_id = 1;
            attempt_bury(&table, &gone);
        }
    }
    assert_true(map_len(&table.tombs) <= HELD_TOMBS_MAX + 2000);
    assert_true(map_len(&table.tombs) >= HELD_TOMBS_MAX);
    assert_true(attempt_is_buried(&table, 1, 1));
    assert_false(attempt_is_buried(&table, 2, 1));
    assert_true(attempt_is_buried(&table, HELD_TOMBS_MAX * 2, 1));
    attempt_table_done(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_last_word_counts, make_path, remove_path),
        cmocka_unit_test_setup_teardown(a_damaged_end_is_cut_off, make_path, remove_path),
        UNIT(tombstones_are_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
