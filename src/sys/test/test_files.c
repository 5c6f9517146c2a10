/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_files.c - whole files, safely
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sys/files.h"
#include "test/unit.h"

static char dir[64];

static int enter(void **state)
{
    (void)state;
    snprintf(dir, sizeof(dir), "/tmp/test-file.XXXXXX");
    return mkdtemp(dir) && chdir(dir) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    (void)state;
    file_use(NULL, NULL);
    return chdir("/") == 0 ? file_remove_tree(dir, NULL) : -1;
}

static void assert_content(const char *path, const char *want)
{
    CLEANUP(str_done) struct str text = { 0 };

    assert_int_equal(file_read(path, 1000, &text, NULL), 0);
    assert_string_equal(str_text(&text), want);
}

static void reading_is_bounded(void **state)
{
    CLEANUP(str_done) struct str text = { 0 };
    struct err err;

    (void)state;
    assert_int_equal(file_write("f", "12345", 5, 0600, NULL), 0);
    assert_int_equal(file_read("f", 5, &text, &err), 0);
    assert_string_equal(text.data, "12345");
    assert_int_equal(file_read("f", 4, &text, &err), -(int)ERR_TOO_LARGE);
    assert_int_equal(text.len, 5); /* what was there stays */
    assert_int_equal(file_read("absent", 4, &text, &err), -(int)ERR_NOT_FOUND);
    assert_non_null(strstr(err.text, "absent"));
}

static int fail_sync(void *ctx, int fd)
{
    (void)ctx, (void)fd;
    errno = EIO;
    return -1;
}

static ssize_t fail_write(void *ctx, int fd, const void *bytes, size_t len)
{
    /* The second half does not fit. */
    if (len <= 2) {
        errno = ENOSPC;
        return -1;
    }
    (void)ctx;
    return write(fd, bytes, len - 2);
}

static int do_rename(void *ctx, const char *from, const char *to)
{
    (void)ctx;
    return rename(from, to);
}

static ssize_t do_write(void *ctx, int fd, const void *bytes, size_t len)
{
    (void)ctx;
    return write(fd, bytes, len);
}

static int do_sync(void *ctx, int fd)
{
    (void)ctx;
    return fsync(fd);
}

static int count_files(void)
{
    FILE *ls = popen("ls -A | wc -l", "r");
    int count = -1;

    assert_non_null(ls);
    assert_int_equal(fscanf(ls, "%d", &count), 1);
    pclose(ls);
    return count;
}

static void a_failed_write_leaves_the_old_content(void **state)
{
    static const struct {
        struct file_ops ops;
        enum err_code code;
    } rows[] = {
        { { do_write, fail_sync, do_rename }, ERR_IO },
        { { fail_write, do_sync, do_rename }, ERR_DISK_FULL },
    };
    struct err err;

    (void)state;
    assert_int_equal(file_write("f", "old", 3, 0640, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        file_use(&rows[i].ops, NULL);
        assert_int_equal(file_write("f", "newer", 5, 0640, &err), -(int)rows[i].code);
        file_use(NULL, NULL);
        assert_content("f", "old");
        assert_int_equal(count_files(), 1);
    }
    assert_int_equal(file_write("f", "newer", 5, 0640, &err), 0);
    assert_content("f", "newer");
}

static void secrets_must_be_closed(void **state)
{
    CLEANUP(str_done) struct str text = { 0 };
    struct err err;

    (void)state;
    assert_int_equal(file_write("key", "k", 1, 0600, NULL), 0);
    assert_int_equal(file_read_secret("key", 10, &text, &err), 0);
    assert_int_equal(chmod("key", 0640), 0);
    assert_int_equal(file_read_secret("key", 10, &text, &err), -(int)ERR_PERMISSION);
    assert_non_null(strstr(err.text, "0640"));
}

static void directories_are_made_and_removed(void **state)
{
    struct err err;

    (void)state;
    assert_int_equal(file_make_dirs("a/b//c/", 0755, &err), 0);
    assert_int_equal(file_make_dirs("a/b/c", 0755, &err), 0);
    assert_int_equal(file_write("a/b/f", "", 0, 0600, NULL), 0);
    assert_int_equal(mkdir("outside", 0700), 0);
    assert_int_equal(file_write("outside/kept", "x", 1, 0600, NULL), 0);
    assert_int_equal(symlink("../../outside", "a/b/link"), 0);
    assert_int_equal(file_make_dirs("a/b/f", 0755, &err), -(int)ERR_EXISTS);
    assert_int_equal(file_remove_tree("a", &err), 0);
    assert_int_equal(access("a", F_OK), -1);
    assert_content("outside/kept", "x");
    assert_int_equal(file_remove_tree("a", &err), 0);
}

static void links_lead_nobody_astray(void **state)
{
    static const struct {
        const char *path;
        unsigned safe;
        int rc;
    } rows[] = {
        { "sub/plain", FILE_NO_LINKS | FILE_BENEATH | FILE_REGULAR, 0 },
        { "sub/link", FILE_NO_LINKS, -(int)ERR_PERMISSION },
        { "sub/link", 0, 0 },
        { "dirlink/plain", FILE_NO_LINKS, -(int)ERR_PERMISSION },
        { "../../../../etc/passwd", FILE_BENEATH, -(int)ERR_PERMISSION },
        { "/etc/passwd", FILE_BENEATH, -(int)ERR_PERMISSION },
        { "sub/fifo", FILE_REGULAR, -(int)ERR_PERMISSION },
        { "sub", FILE_REGULAR, -(int)ERR_PERMISSION },
        { "sub/twice", FILE_ONE_NAME, -(int)ERR_PERMISSION },
        { "sub/absent", FILE_NO_LINKS, -(int)ERR_NOT_FOUND },
    };
    CLEANUP(file_close) int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    (void)state;
    assert_int_equal(mkdir("sub", 0755), 0);
    assert_int_equal(file_write("sub/plain", "p", 1, 0600, NULL), 0);
    assert_int_equal(symlink("plain", "sub/link"), 0);
    assert_int_equal(symlink("sub", "dirlink"), 0);
    assert_int_equal(mkfifo("sub/fifo", 0600), 0);
    assert_int_equal(file_write("sub/once", "p", 1, 0600, NULL), 0);
    assert_int_equal(link("sub/once", "sub/twice"), 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int fd = file_open_safe(here, rows[i].path, O_RDONLY, 0, rows[i].safe, NULL);
        if (rows[i].rc == 0)
            assert_true(fd >= 0);
        else
            assert_int_equal(fd, rows[i].rc);
        if (fd >= 0)
            close(fd);
    }
}

static void truncation_waits_for_the_checks(void **state)
{
    (void)state;
    assert_int_equal(file_write("f", "precious", 8, 0600, NULL), 0);
    assert_int_equal(link("f", "g"), 0);
    assert_int_equal(
        file_open_safe(AT_FDCWD, "g", O_WRONLY | O_TRUNC, 0, FILE_ONE_NAME | FILE_REGULAR, NULL),
        -(int)ERR_PERMISSION);
    assert_content("f", "precious");
    unlink("g");
    int fd =
        file_open_safe(AT_FDCWD, "f", O_WRONLY | O_TRUNC, 0, FILE_ONE_NAME | FILE_REGULAR, NULL);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(fd);
    assert_content("f", "");
}

static void a_lock_has_one_holder(void **state)
{
    struct err err;
    char pid[32];
    int held = file_lock("pid", &err);

    (void)state;
    assert_true(held >= 0);
    assert_int_equal(file_lock("pid", &err), -(int)ERR_EXISTS);
    snprintf(pid, sizeof(pid), "process %ld", (long)getpid());
    assert_non_null(strstr(err.text, pid));
    close(held);
    held = file_lock("pid", &err);
    assert_true(held >= 0);
    close(held);
}

static void a_name_goes_at_once(void **state)
{
    (void)state;
    assert_int_equal(file_write("large", "12345", 5, 0600, NULL), 0);
    assert_int_equal(file_unlink("large"), 0);
    assert_int_equal(access("large", F_OK), -1);
    assert_int_equal(file_unlink("large"), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(file_write("f", "stays", 5, 0600, NULL), 0);
    assert_int_equal(symlink("f", "link"), 0);
    assert_int_equal(file_unlink("link"), 0);
    assert_content("f", "stays");
    assert_int_equal(mkfifo("fifo", 0600), 0); /* nobody waits for a reader */
    assert_int_equal(file_unlink("fifo"), 0);
}

/* poll() said that there is something, and somebody else was faster. */
static void a_shared_file_may_be_empty(void **state)
{
    int ends[2];
    char bytes[8];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(file_read_soon(ends[0], bytes, sizeof(bytes)), -1);
        assert_int_equal(errno, EAGAIN);
    }
    assert_int_equal(write(ends[1], "hi", 2), 2);
    assert_int_equal(file_read_soon(ends[0], bytes, sizeof(bytes)), 2);
    close(ends[1]);
    assert_int_equal(file_read_soon(ends[0], bytes, sizeof(bytes)), 0);
    close(ends[0]);
    assert_int_equal(file_read_soon(ends[0], bytes, sizeof(bytes)), -1);
    assert_int_equal(errno, EBADF);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, enter, leave)
UNIT_MAIN(T(reading_is_bounded), T(a_failed_write_leaves_the_old_content),
          T(secrets_must_be_closed), T(directories_are_made_and_removed),
          T(links_lead_nobody_astray), T(truncation_waits_for_the_checks), T(a_lock_has_one_holder),
          T(a_name_goes_at_once), T(a_shared_file_may_be_empty))
