/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_journal.c - the journal of jobs and steps: whole after any crash, and it says what it lacks
 */
#include "log/journal.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/vec.h"
#include "sys/files.h"

static char dir[64];

static int set_up(void **state)
{
    (void)state;
    strcpy(dir, "/tmp/spur-journal-XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    file_use(NULL, NULL);
    return file_remove_tree(dir, NULL);
}

static struct journal *open_with(uint64_t segment_bytes, uint64_t keep_bytes)
{
    struct journal_limits limits = { .segment_bytes = segment_bytes, .keep_bytes = keep_bytes };
    struct journal *journal = NULL;
    struct err err = { 0 };

    assert_int_equal(journal_open(dir, &limits, &journal, &err), 0);
    return journal;
}

/* An entry says its own number; every third one meant nothing. */
static int add(struct journal *journal, uint64_t index)
{
    char text[64];
    struct err err = { 0 };
    struct journal_entry entry = { .index = index, .time_us = (int64_t)index * 1000000 };

    snprintf(text, sizeof(text), "what entry %llu meant", (unsigned long long)index);
    if (index % 3)
        entry.bytes = (struct span){ text, strlen(text) };
    return journal_add(journal, &entry, &err);
}

static void add_all(struct journal *journal, uint64_t from, uint64_t upto)
{
    for (uint64_t index = from; index <= upto; index++)
        assert_int_equal(add(journal, index), 0);
}

struct got {
    VEC(uint64_t) entries;
    struct {
        uint64_t from, upto;
    } lost[8];
    size_t lost_count;
};

static void take(void *ctx, const struct journal_entry *entry)
{
    struct got *got = ctx;
    char text[64];

    if (entry->lost_from) {
        got->lost[got->lost_count].from = entry->lost_from;
        got->lost[got->lost_count++].upto = entry->index;
        return;
    }
    snprintf(text, sizeof(text), "what entry %llu meant", (unsigned long long)entry->index);
    assert_true(span_eq(entry->bytes, text));
    assert_int_equal(entry->time_us, entry->index * 1000000);
    vec_push(&got->entries, entry->index);
}

static void read_all(struct journal *journal, uint64_t from, size_t piece, struct got *got)
{
    struct journal_cursor cursor = { .next = from };
    struct err err = { 0 };
    int rc;

    *got = (struct got){ 0 };
    while ((rc = journal_read(journal, &cursor, piece, take, got, &err)) > 0)
        ;
    assert_int_equal(rc, 0);
}

/* Everything that meant something in [from, upto], once, in order. */
static void expect_run(struct got *got, size_t *at, uint64_t from, uint64_t upto)
{
    for (uint64_t index = from; index <= upto; index++) {
        if (index % 3 == 0)
            continue;
        assert_true(*at < got->entries.len);
        assert_int_equal(got->entries.items[(*at)++], index);
    }
}

static void expect(struct journal *journal, uint64_t from, uint64_t upto)
{
    static const size_t pieces[] = { 1, 100, 1 << 20 };

    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        struct got got;
        size_t at = 0;
        read_all(journal, from, pieces[i], &got);
        expect_run(&got, &at, from, upto);
        assert_int_equal(at, got.entries.len);
        assert_int_equal(got.lost_count, 0);
        vec_done(&got.entries);
    }
}

static unsigned count_files(const char *ending)
{
    DIR *all = opendir(dir);
    unsigned count = 0;

    for (struct dirent *entry; (entry = readdir(all));)
        count += entry->d_name[0] != '.' && !str_eq(entry->d_name, "lock") &&
                 (!ending || str_ends(entry->d_name, ending));
    closedir(all);
    return count;
}

static void what_is_added_is_read_from_anywhere(void **state)
{
    struct journal *journal = open_with(400, 0);

    (void)state;
    assert_int_equal(journal_first(journal), 0);
    add_all(journal, 1, 200);
    assert_int_equal(journal_first(journal), 1);
    assert_int_equal(journal_last(journal), 200);
    expect(journal, 1, 200);
    expect(journal, 57, 200);
    expect(journal, 200, 200);
    expect(journal, 201, 200);
    assert_true(count_files(NULL) > 5);
    journal_close(journal);
}

static void entries_that_come_again_are_not_kept_twice(void **state)
{
    struct journal *journal = open_with(400, 0);

    (void)state;
    add_all(journal, 1, 100);
    journal_close(journal);
    journal = open_with(400, 0);
    assert_int_equal(journal_last(journal), 100);
    add_all(journal, 40, 120); /* the log is applied again from a snapshot at 39 */
    expect(journal, 1, 120);
    journal_close(journal);
}

/* The newest file that is not sealed. */
static char *newest_open(void)
{
    DIR *all = opendir(dir);
    char *found = NULL;

    for (struct dirent *entry; (entry = readdir(all));) {
        if (!str_ends(entry->d_name, ".open"))
            continue;
        char *path = mem_printf("%s/%s", dir, entry->d_name);
        if (!found || strcmp(path, found) > 0) {
            free(found);
            found = path;
        } else {
            free(path);
        }
    }
    closedir(all);
    return found;
}

/* A process that is killed: nothing is flushed or closed. */
static void leave(struct journal *journal)
{
    struct err err = { 0 };

    assert_int_equal(journal_flush(journal, &err), 0);
}

static void every_torn_end_is_cut_and_made_again(void **state)
{
    (void)state;
    struct journal *journal = open_with(1 << 20, 0);
    add_all(journal, 1, 20);
    leave(journal);
    CLEANUP(freep) char *path = newest_open();
    CLEANUP(str_done) struct str whole = { 0 };
    assert_int_equal(file_read(path, 1 << 20, &whole, NULL), 0);
    journal_close(journal);

    for (size_t len = 0; len <= whole.len; len++) {
        assert_int_equal(file_write_quick(path, whole.data, len, 0600, NULL), 0);
        journal = open_with(1 << 20, 0);
        uint64_t last = journal_last(journal);
        assert_true(last <= 20);
        add_all(journal, 1, 25); /* all that follows the last snapshot */
        struct got got;
        size_t at = 0;
        read_all(journal, 1, 1 << 20, &got);
        expect_run(&got, &at, 1, 25);
        assert_int_equal(at, got.entries.len);
        vec_done(&got.entries);
        journal_close(journal);
    }
}

static void a_flipped_bit_never_gives_a_wrong_entry(void **state)
{
    (void)state;
    struct journal *journal = open_with(300, 0);
    add_all(journal, 1, 60);
    assert_int_equal(journal_mark(journal, NULL), 0);
    assert_int_equal(journal_sync_files(journal, NULL), 0);
    journal_synced(journal, 60);
    leave(journal);
    journal_close(journal);
    CLEANUP(freep) char *path = mem_printf("%s/%020d-", dir, 1);
    DIR *all = opendir(dir);
    CLEANUP(freep) char *sealed = NULL;
    for (struct dirent *entry; (entry = readdir(all));) {
        if (str_starts(entry->d_name, path + strlen(dir) + 1))
            sealed = mem_printf("%s/%s", dir, entry->d_name);
    }
    closedir(all);
    assert_non_null(sealed);
    CLEANUP(str_done) struct str whole = { 0 };
    assert_int_equal(file_read(sealed, 1 << 20, &whole, NULL), 0);
    for (size_t at = 8; at < whole.len; at++) {
        whole.data[at] ^= 4;
        assert_int_equal(file_write_quick(sealed, whole.data, whole.len, 0600, NULL), 0);
        whole.data[at] ^= 4;
        journal = open_with(300, 0);
        struct got got;
        read_all(journal, 1, 1 << 20, &got); /* take() checks each */
        assert_int_equal(got.lost_count, 1); /* and what is gone is said */
        size_t from = 0;
        expect_run(&got, &from, 1, got.lost[0].from - 1);
        expect_run(&got, &from, got.lost[0].upto + 1, 60);
        assert_int_equal(from, got.entries.len);
        vec_done(&got.entries);
        journal_close(journal);
    }
}

static void what_a_snapshot_stands_on_is_sealed(void **state)
{
    (void)state;
    struct journal *journal = open_with(300, 0);
    add_all(journal, 1, 60);
    assert_int_equal(journal_mark(journal, NULL), 0);
    assert_int_equal(journal_sync_files(journal, NULL), 0);
    add_all(journal, 61, 120); /* while the child writes */
    journal_synced(journal, 60);
    assert_true(count_files(".open") > 1); /* those after 60 may still be lost */
    assert_true(count_files(NULL) > count_files(".open"));
    expect(journal, 1, 120);
    journal_close(journal);
    journal = open_with(300, 0);
    expect(journal, 1, 120);
    journal_close(journal);
}

static void an_entry_that_meant_nothing_is_covered_all_the_same(void **state)
{
    (void)state;
    struct journal *journal = open_with(0, 0);
    add_all(journal, 1, 3); /* 3 meant nothing */
    assert_int_equal(journal_mark(journal, NULL), 0);
    journal_close(journal);
    journal = open_with(0, 0);
    assert_int_equal(journal_last(journal), 3); /* so a snapshot at 3 is no jump */
    journal_close(journal);
}

static void a_jump_is_said_and_filled(void **state)
{
    struct journal *journal = open_with(0, 0);
    struct err err = { 0 };
    uint64_t from = 0, upto = 0;
    struct got got;
    size_t at = 0;

    (void)state;
    add_all(journal, 1, 10);
    assert_false(journal_missing(journal, 0, &from, &upto));
    assert_int_equal(journal_jump(journal, 50, &err), 0);
    assert_true(journal_missing(journal, 0, &from, &upto));
    assert_int_equal(from, 11);
    assert_int_equal(upto, 50);
    add_all(journal, 51, 60);
    journal_close(journal);

    journal = open_with(0, 0); /* it is known after a restart too */
    read_all(journal, 1, 1 << 20, &got);
    assert_int_equal(got.lost_count, 1);
    assert_int_equal(got.lost[0].from, 11);
    assert_int_equal(got.lost[0].upto, 50);
    expect_run(&got, &at, 1, 10);
    expect_run(&got, &at, 51, 60);
    assert_int_equal(at, got.entries.len);
    vec_done(&got.entries);
    assert_true(journal_missing(journal, 0, &from, &upto));
    assert_true(journal_missing(journal, 20, &from, &upto));
    assert_int_equal(from, 21); /* what is acknowledged nobody needs */
    assert_false(journal_missing(journal, 50, &from, &upto));

    struct journal_fill *fill = journal_fill_begin(journal, 11, &err);
    struct journal_cursor cursor = { 0 };
    assert_non_null(fill);
    for (uint64_t index = 11; index <= 50; index++) {
        char text[64];
        snprintf(text, sizeof(text), "what entry %llu meant", (unsigned long long)index);
        struct journal_entry entry = { index, (int64_t)index * 1000000, { text, strlen(text) }, 0 };
        if (index % 3)
            assert_int_equal(journal_fill_add(fill, &entry, &err), 0);
    }
    assert_int_equal(journal_fill_end(fill, 50, &err), 0);
    (void)cursor;
    expect(journal, 1, 60);
    assert_false(journal_missing(journal, 0, &from, &upto));
    add_all(journal, 61, 70);
    journal_close(journal);
    journal = open_with(0, 0);
    expect(journal, 1, 70);
    journal_close(journal);
}

static void a_fill_that_does_not_fit_is_refused(void **state)
{
    struct journal *journal = open_with(0, 0);
    struct err err = { 0 };

    (void)state;
    add_all(journal, 1, 10);
    struct journal_fill *fill = journal_fill_begin(journal, 5, &err);
    assert_int_equal(journal_fill_end(fill, 8, &err), -ERR_EXISTS);
    fill = journal_fill_begin(journal, 11, &err);
    struct journal_entry entry = { 20, 1, { "x", 1 }, 0 };
    assert_int_equal(journal_fill_add(fill, &entry, &err), 0);
    assert_int_equal(journal_fill_add(fill, &entry, &err), -ERR_CORRUPT);
    assert_int_equal(journal_fill_end(fill, 15, &err), -ERR_CORRUPT);
    assert_int_equal(count_files(".fill"), 0);
    expect(journal, 1, 10);
    journal_close(journal);
}

static void it_begins_where_it_was_begun(void **state)
{
    struct journal *journal = open_with(0, 0);
    uint64_t from, upto;

    (void)state;
    add_all(journal, 101, 110); /* an older cluster gets a journal */
    assert_int_equal(journal_first(journal), 101);
    assert_true(journal_missing(journal, 0, &from, &upto));
    assert_int_equal(upto, 100);
    struct got got;
    size_t at = 0;
    read_all(journal, 0, 1 << 20, &got);
    assert_int_equal(got.lost_count, 0); /* from where it begins */
    expect_run(&got, &at, 101, 110);
    vec_done(&got.entries);
    journal_close(journal);
}

/* All that goes now. */
static uint64_t trim_all(struct journal *journal, uint64_t acked, int64_t now_us)
{
    uint64_t lost = 0;

    while (journal_trim(journal, acked, now_us, &lost))
        ;
    return lost;
}

static void what_is_acknowledged_goes_and_what_is_too_much_is_counted(void **state)
{
    struct journal *journal = open_with(400, 3000);
    struct got got;

    (void)state;
    add_all(journal, 1, 100);
    assert_int_equal(trim_all(journal, 0, 0), 0); /* nothing is over a limit yet? */
    uint64_t first = journal_first(journal);
    assert_int_equal(first, 1);
    assert_int_equal(trim_all(journal, 50, 0), 0);
    assert_true(journal_first(journal) > 1 && journal_first(journal) <= 51);
    add_all(journal, 101, 400);
    first = journal_first(journal);
    uint64_t lost = trim_all(journal, 50, 0);
    assert_true(lost > 0);
    assert_int_equal(lost, journal_first(journal) - 51);
    assert_int_equal(journal_dropped(journal), lost);
    read_all(journal, 51, 1 << 20, &got); /* and who asks for it is told */
    assert_int_equal(got.lost_count, 1);
    assert_int_equal(got.lost[0].from, 51);
    assert_int_equal(got.lost[0].upto, journal_first(journal) - 1);
    vec_done(&got.entries);
    /* age: everything but the segment that is written to */
    assert_true(trim_all(journal, 50, INT64_C(86400) * 31 * 1000000 + 400000000) > 0);
    assert_true(journal_first(journal) > 380);
    journal_close(journal);
}

static void what_the_log_lost_the_journal_forgets(void **state)
{
    (void)state;
    for (uint64_t at = 0; at <= 60; at += 5) {
        struct journal *journal = open_with(300, 0);
        add_all(journal, 1, 60);
        assert_int_equal(journal_mark(journal, NULL), 0);
        assert_int_equal(journal_sync_files(journal, NULL), 0);
        journal_synced(journal, 60);
        assert_int_equal(journal_cut(journal, at, NULL), 0);
        assert_int_equal(journal_last(journal), at);
        add_all(journal, at + 1, 70);
        expect(journal, 1, 70);
        journal_close(journal);
        journal = open_with(300, 0);
        expect(journal, 1, 70);
        assert_int_equal(journal_cut(journal, 0, NULL), 0);
        journal_close(journal);
    }
}

/* ---- a disk that refuses ---- */

static int refuse_with;
static size_t torn_bytes;

static ssize_t refuse_write(void *ctx, int fd, const void *bytes, size_t len)
{
    (void)ctx;
    if (!refuse_with)
        return write(fd, bytes, len);
    if (torn_bytes) {
        size_t some = MIN(len, torn_bytes);
        torn_bytes = 0;
        return write(fd, bytes, some);
    }
    errno = refuse_with;
    return -1;
}
static int real_sync(void *ctx, int fd)
{
    (void)ctx;
    return fsync(fd);
}
static int real_rename(void *ctx, const char *from, const char *to)
{
    (void)ctx;
    return rename(from, to);
}
static const struct file_ops refusing = { refuse_write, real_sync, real_rename };

static void a_full_disk_keeps_entries_waiting(void **state)
{
    struct journal *journal = open_with(300, 0);
    struct err err = { 0 };

    (void)state;
    file_use(&refusing, NULL);
    add_all(journal, 1, 10);
    leave(journal);
    refuse_with = ENOSPC;
    for (uint64_t index = 11; index <= 60; index++) {
        torn_bytes = 13;
        add_all(journal, index, index);
        assert_int_equal(journal_flush(journal, &err), 0);
    }
    assert_int_equal(journal_mark(journal, &err), -ERR_DISK_FULL); /* so no snapshot */
    refuse_with = 0;
    assert_int_equal(journal_flush(journal, &err), 0);
    expect(journal, 1, 60);
    add_all(journal, 61, 90);
    expect(journal, 1, 90);
    refuse_with = EIO;
    add_all(journal, 91, 91);
    assert_int_equal(journal_flush(journal, &err), -ERR_IO);
    refuse_with = 0;
    journal_close(journal);
    journal = open_with(300, 0);
    expect(journal, 1, 91);
    journal_close(journal);
}

static void what_no_longer_fits_in_memory_is_given_up_and_said(void **state)
{
    struct journal *journal = open_with(0, 0);
    CLEANUP(freep) char *big = mem_new(8 << 20);
    struct err err = { 0 };
    struct got got;

    (void)state;
    file_use(&refusing, NULL);
    add_all(journal, 1, 4);
    leave(journal);
    refuse_with = ENOSPC;
    memset(big, 'x', 8 << 20);
    uint64_t next = 5;
    for (; journal_dropped(journal) == 0; next++) {
        struct journal_entry entry = { next, 1, { big, 8 << 20 }, 0 };
        assert_int_equal(journal_add(journal, &entry, &err), 0);
        assert_int_equal(journal_flush(journal, &err), 0);
    }
    refuse_with = 0;
    add_all(journal, next, 20);
    read_all(journal, 1, 1 << 20, &got);
    assert_int_equal(got.lost_count, 1);
    assert_int_equal(got.lost[0].from, 5);
    assert_int_equal(got.lost[0].upto, next - 1);
    assert_int_equal(journal_dropped(journal), next - 5);
    vec_done(&got.entries);
    journal_close(journal);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(what_is_added_is_read_from_anywhere),
        T(entries_that_come_again_are_not_kept_twice),
        T(every_torn_end_is_cut_and_made_again),
        T(a_flipped_bit_never_gives_a_wrong_entry),
        T(what_a_snapshot_stands_on_is_sealed),
        T(an_entry_that_meant_nothing_is_covered_all_the_same),
        T(a_jump_is_said_and_filled),
        T(a_fill_that_does_not_fit_is_refused),
        T(it_begins_where_it_was_begun),
        T(what_is_acknowledged_goes_and_what_is_too_much_is_counted),
        T(what_the_log_lost_the_journal_forgets),
        T(a_full_disk_keeps_entries_waiting),
        T(what_no_longer_fits_in_memory_is_given_up_and_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
