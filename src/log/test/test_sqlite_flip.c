/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sqlite_flip.c - a bit flipped anywhere is refused, repaired or harmless, never served
 *
 * A directory with two snapshots, trimmed and moved payloads, rows in the database and rows still
 * in SQLite's write-ahead log is copied, one bit of one file is flipped, and the log started.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/vec.h"
#include "log/test/recorder.h"
#include "sys/rng.h"

enum { FLIPS = 200, LEN = 700, ALL = 330, MORE = 20 };

struct image {
    char name[64];
    struct str bytes;
};
static VEC(struct image) images;

static void fill(void)
{
    struct recorder rec;
    struct err err;

    recorder_init(&rec);
    struct log *log = open_log(test_dir, &rec, 0);
    assert_int_equal(log_start(log, &err), 0);
    for (uint64_t i = 1; i <= ALL; i++) {
        assert_int_equal(append_number(log, i, LEN, &err), 0);
        if (i % 5 == 0)
            settle(log, &rec, i);
        if (i % 100 == 0 && i <= 300)
            take_snapshot(log, &rec);
        if (i == 310) { /* everything until here into the database file: reopen */
            log_free(log);
            vec_clear(&rec.seen);
            log = open_log(test_dir, &rec, 0);
            assert_int_equal(log_start(log, &err), 0);
        }
    }
    settle(log, &rec, ALL);
    log_free(log);
    recorder_done(&rec);
}

static void load_images(void)
{
    DIR *dir = opendir(test_dir);
    const struct dirent *entry;
    char path[512];

    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.' || str_eq(entry->d_name, "lock") ||
            str_ends(entry->d_name, "-shm"))
            continue;
        struct image image = { 0 };
        snprintf(image.name, sizeof(image.name), "%.60s", entry->d_name);
        snprintf(path, sizeof(path), "%s/%s", test_dir, entry->d_name);
        assert_int_equal(file_read(path, 64 << 20, &image.bytes, NULL), 0);
        vec_push(&images, image);
    }
    closedir(dir);
}

static void write_images(const char *dir, size_t bad, uint64_t bit)
{
    char path[512];

    for (size_t i = 0; i < images.len; i++) {
        struct image *image = &images.items[i];
        char *byte = &image->bytes.data[bit / 8];

        snprintf(path, sizeof(path), "%s/%s", dir, image->name);
        if (i == bad)
            *byte = (char)(*byte ^ 1 << bit % 8);
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        assert_int_equal(file_write_all(fd, image->bytes.data, image->bytes.len, NULL), 0);
        close(fd);
        if (i == bad)
            *byte = (char)(*byte ^ 1 << bit % 8);
    }
}

/* Whether it started; then it must have everything, and every payload right or said to be bad. */
static bool starts_with(const char *dir, size_t want, size_t more, struct err *err)
{
    struct recorder rec;
    bool started;

    recorder_init(&rec);
    struct log *log = open_log(dir, &rec, 0);
    started = log_start(log, err) == 0;
    if (started) {
        assert_counts_from_one(&rec, want);
        for (uint64_t i = 1; i <= want; i++) {
            int rc = check_payload(log, i, LEN, NULL);
            assert_true(rc == 0 || rc == -(int)ERR_CORRUPT || rc == -(int)ERR_NOT_FOUND ||
                        rc == -(int)ERR_IO);
        }
        for (uint64_t i = 1; i <= more && !rec.failed; i++) {
            if (append_number(log, want + i, LEN, NULL) == 0)
                settle(log, &rec, want + i);
        }
        if (rec.failed || rec.refused) /* found while writing: stopped, not hidden */
            started = false;
    }
    log_free(log);
    recorder_done(&rec);
    return started;
}

static void no_flip_is_served_in_silence(void **state)
{
    unsigned refused = 0, later = 0, fine = 0;
    char dir[] = "/tmp/test-flip.XXXXXX", fast[] = "/dev/shm/test-flip.XXXXXX";
    const char *root = mkdtemp(fast) ? fast : mkdtemp(dir);
    struct err err;

    (void)state;
    fill();
    load_images();
    assert_true(images.len >= 5); /* log.db, -wal, watermark, two snapshots */
    rng_seed(13);
    for (int i = 0; i < FLIPS; i++) {
        char copy[80];
        size_t bad = rng_below(images.len);
        uint64_t bit = rng_below(images.items[bad].bytes.len * 8);

        snprintf(copy, sizeof(copy), "%s/%d", root, i);
        assert_int_equal(mkdir(copy, 0700), 0);
        write_images(copy, bad, bit);
        if (!starts_with(copy, ALL, MORE, &err)) {
            refused++;
            assert_true(err.text[0] != '\0');
        } else if (!starts_with(copy, ALL + MORE, 0, &err)) {
            later++;
        } else {
            fine++;
        }
        assert_int_equal(file_remove_tree(copy, NULL), 0);
    }
    print_message("%d flips: refused %u, found later %u, repaired or harmless %u, silent 0\n",
                  FLIPS, refused, later, fine);
    assert_true(refused > 0 && fine > 0);
    for (size_t i = 0; i < images.len; i++)
        str_done(&images.items[i].bytes);
    vec_done(&images);
    assert_int_equal(file_remove_tree(root, NULL), 0);
}

UNIT_MAIN(cmocka_unit_test_setup_teardown(no_flip_is_served_in_silence, make_dir, remove_dir))
