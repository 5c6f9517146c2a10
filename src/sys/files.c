/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.c - whole files, safely
 */
#include "sys/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static ssize_t real_write(void *ctx, int fd, const void *bytes, size_t len)
{
    (void)ctx;
    return write(fd, bytes, len);
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

static const struct file_ops real_ops = { real_write, real_sync, real_rename };
static const struct file_ops *used = &real_ops;
static void *used_ctx;

void file_use(const struct file_ops *ops, void *ctx)
{
    used = ops ? ops : &real_ops;
    used_ctx = ctx;
}

void file_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int file_read_fd(int fd, size_t max, struct str *out, struct err *err)
{
    char chunk[16384];
    size_t start = out->len;

    for (;;) {
        /* One byte more than allowed tells "exactly max" from "too much". */
        size_t want = MIN(sizeof(chunk), max - (out->len - start) + 1);
        ssize_t got = read(fd, chunk, want);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            int saved = errno;
            str_truncate(out, start);
            return err_errno(err, saved, "read");
        }
        if (got == 0)
            return 0;
        if ((size_t)got > max - (out->len - start)) {
            str_truncate(out, start);
            return err_set(err, ERR_TOO_LARGE, "larger than %zu bytes", max);
        }
        str_add_len(out, chunk, (size_t)got);
    }
}

int file_read(const char *path, size_t max, struct str *out, struct err *err)
{
    CLEANUP(file_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return err_errno(err, errno, "%s", path);
    return file_read_fd(fd, max, out, err) < 0 ? err_wrap(err, "%s", path) : 0;
}

int file_read_secret(const char *path, size_t max, struct str *out, struct err *err)
{
    CLEANUP(file_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return err_errno(err, errno, "%s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_PERMISSION, "%s: not a regular file", path);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return err_set(err, ERR_PERMISSION, "%s: belongs to uid %u, not to us or root", path,
                       (unsigned)st.st_uid);
    if (st.st_mode & 077)
        return err_set(err, ERR_PERMISSION, "%s: mode %04o lets group or others in; chmod 600 it",
                       path, (unsigned)st.st_mode & 07777);
    return file_read_fd(fd, max, out, err) < 0 ? err_wrap(err, "%s", path) : 0;
}

int file_write_all(int fd, const void *bytes, size_t len, struct err *err)
{
    const char *at = bytes;

    while (len) {
        ssize_t put = used->write(used_ctx, fd, at, len);

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 &&
            errno == EAGAIN) { /* somebody else's O_NONBLOCK: a terminal or pipe is shared */
            poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1);
            continue;
        }
        if (put <= 0)
            return err_errno(err, put < 0 ? errno : ENOSPC, "write");
        at += put;
        len -= (size_t)put;
    }
    return 0;
}

int file_sync(int fd, struct err *err)
{
    return used->sync(used_ctx, fd) < 0 ? err_errno(err, errno, "fsync") : 0;
}

int file_sync_dir(const char *path, struct err *err)
{
    CLEANUP(file_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return err_errno(err, errno, "%s", path);
    return file_sync(fd, err) < 0 ? err_wrap(err, "%s", path) : 0;
}

static void *close_it(void *arg)
{
    close((int)(intptr_t)arg);
    return NULL;
}

int file_unlink(const char *path)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int rc = unlink(path), error = errno;
    pthread_t thread;

    if (fd >= 0 && pthread_create(&thread, NULL, close_it, (void *)(intptr_t)fd) == 0)
        pthread_detach(thread);
    else
        file_close(&fd);
    errno = error;
    return rc;
}

int file_rename(const char *from, const char *to, struct err *err)
{
    if (used->rename(used_ctx, from, to) < 0)
        return err_errno(err, errno, "rename %s to %s", from, to);
    return 0;
}

static char *parent_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return mem_strdup(".");
    return slash == path ? mem_strdup("/") : mem_strndup(path, (size_t)(slash - path));
}

static int write_beside(const char *temp, const char *path, int fd, const void *bytes, size_t len,
                        mode_t mode, bool durable, struct err *err)
{
    int rc = fchmod(fd, mode) < 0 ? err_errno(err, errno, "fchmod") : 0;

    if (rc == 0)
        rc = file_write_all(fd, bytes, len, err);
    if (rc == 0 && durable)
        rc = file_sync(fd, err);
    return rc < 0 ? rc : file_rename(temp, path, err);
}

static int write_file(const char *path, const void *bytes, size_t len, mode_t mode, bool durable,
                      struct err *err)
{
    CLEANUP(freep) char *temp = mem_printf("%s.XXXXXX", path);
    CLEANUP(freep) char *parent = parent_of(path);
    CLEANUP(file_close) int fd = mkostemp(temp, O_CLOEXEC);

    if (fd < 0)
        return err_errno(err, errno, "%s", temp);
    int rc = write_beside(temp, path, fd, bytes, len, mode, durable, err);
    if (rc < 0) {
        unlink(temp);
        err_wrap(err, "%s", path);
        return rc;
    }
    return durable ? file_sync_dir(parent, err) : 0;
}

int file_write(const char *path, const void *bytes, size_t len, mode_t mode, struct err *err)
{
    return write_file(path, bytes, len, mode, true, err);
}

int file_write_quick(const char *path, const void *bytes, size_t len, mode_t mode, struct err *err)
{
    return write_file(path, bytes, len, mode, false, err);
}

int file_make_dirs(const char *path, mode_t mode, struct err *err)
{
    CLEANUP(freep) char *copy = mem_strdup(path);
    struct stat st;

    for (char *at = copy + 1; *copy && *at; at++) {
        if (*at != '/' || at[-1] == '/')
            continue;
        *at = '\0';
        if (mkdir(copy, mode) < 0 && errno != EEXIST)
            return err_errno(err, errno, "mkdir %s", copy);
        *at = '/';
    }
    if (mkdir(copy, mode) < 0 && errno != EEXIST)
        return err_errno(err, errno, "mkdir %s", path);
    if (stat(path, &st) < 0)
        return err_errno(err, errno, "%s", path);
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_EXISTS, "%s: there, but not a directory", path);
    return 0;
}

static int remove_entry(int dir_fd, const char *name, unsigned depth, struct err *err);

static int remove_children(int dir_fd, const char *name, unsigned depth, struct err *err)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int rc = 0;

    if (!dir) {
        int saved = errno;
        file_close(&fd);
        return err_errno(err, saved, "%s", name);
    }
    while (rc == 0 && (entry = readdir(dir))) {
        if (!str_eq(entry->d_name, ".") && !str_eq(entry->d_name, ".."))
            rc = remove_entry(dirfd(dir), entry->d_name, depth + 1, err);
    }
    closedir(dir);
    return rc;
}

static int remove_entry(int dir_fd, const char *name, unsigned depth, struct err *err)
{
    enum { DEEPEST = 256 };

    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return err_errno(err, errno, "unlink %s", name);
    if (depth > DEEPEST)
        return err_set(err, ERR_TOO_LARGE, "%s: more than %d directories deep", name, DEEPEST);
    int rc = remove_children(dir_fd, name, depth, err);
    if (rc < 0)
        return rc;
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return err_errno(err, errno, "rmdir %s", name);
    return 0;
}

int file_remove_tree(const char *path, struct err *err)
{
    return remove_entry(AT_FDCWD, path, 0, err);
}

int file_remove_tree_at(int dir_fd, const char *name, struct err *err)
{
    return remove_entry(dir_fd, name, 0, err);
}

static int lock_held(int fd, const char *path, struct err *err)
{
    CLEANUP(str_done) struct str text = { 0 };

    if (file_read_fd(fd, 64, &text, NULL) < 0)
        str_clear(&text);
    long pid = strtol(str_text(&text), NULL, 10);
    return err_set(err, ERR_EXISTS, "%s: held by running process %ld", path, pid);
}

int file_lock(const char *path, struct err *err)
{
    CLEANUP(file_close) int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    char text[32];

    if (fd < 0)
        return err_errno(err, errno, "%s", path);
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? lock_held(fd, path, err)
                                    : err_errno(err, errno, "lock %s", path);
    int len = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)len, 0) != len)
        return err_errno(err, errno, "%s", path);
    int kept = fd;
    fd = -1;
    return kept;
}

void files_hold_standard(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        /* Those below are open, so this is the one that open() takes. */
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_WRONLY : O_RDONLY) != fd)
            return;
    }
}
