/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - whole files, safely
 *
 * Every descriptor is close-on-exec. Reading is bounded before memory is taken. Writing is whole or
 * not at all: a new file is written, synced, renamed over the old one, and the directory synced.
 * file_use() replaces the calls that can lose data, so that a test can make them fail.
 */
#ifndef SYS_FILES_H
#define SYS_FILES_H

#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"

struct file_ops {
    ssize_t (*write)(void *ctx, int fd, const void *bytes, size_t len);
    int (*sync)(void *ctx, int fd);
    int (*rename)(void *ctx, const char *from, const char *to);
};
void file_use(const struct file_ops *ops, void *ctx); /* NULL: the kernel's own */

/* Appends the file to `out`; more than `max` bytes is ERR_TOO_LARGE. */
int file_read(const char *path, size_t max, struct str *out, struct err *err);
int file_read_fd(int fd, size_t max, struct str *out, struct err *err);
/* As file_read, but the file must be ours or root's and closed to group and others. */
int file_read_secret(const char *path, size_t max, struct str *out, struct err *err);

/* After it returns 0 the new content survives a power cut; else the old content is untouched. */
int file_write(const char *path, const void *bytes, size_t len, mode_t mode, struct err *err);
/* The same without the syncs, for what may be lost but not torn (addresses, process ids). */
int file_write_quick(const char *path, const void *bytes, size_t len, mode_t mode, struct err *err);
int file_write_all(int fd, const void *bytes, size_t len, struct err *err);
int file_sync(int fd, struct err *err);
int file_sync_dir(const char *path, struct err *err); /* makes names in it durable */
int file_rename(const char *from, const char *to, struct err *err);

int file_make_dirs(const char *path, mode_t mode, struct err *err); /* present is fine */
/*
 * As unlink(2), for a file that may be large: the name is gone when it returns, and a thread gives
 * back what it held, which takes 10 ms for a gigabyte.
 */
int file_unlink(const char *path);
/* Removes the tree without following links; absent is fine. */
int file_remove_tree(const char *path, struct err *err);
int file_remove_tree_at(int dir_fd, const char *name, struct err *err);

enum file_safe {
    FILE_NO_LINKS = 1, /* no symbolic link anywhere in the path */
    FILE_BENEATH = 2,  /* never leaves dir_fd: no absolute path, no ".." above it */
    FILE_REGULAR = 4,  /* refuse devices, FIFOs, sockets, directories; never blocks on them */
    FILE_ONE_NAME = 8, /* refuse a file that has other hard links */
    FILE_OWN = 16,     /* refuse a file that another user owns */
};

/*
 * openat() that a user's links cannot lead astray; returns the descriptor. dir_fd may be AT_FDCWD.
 * With O_TRUNC the file is emptied only after every check has passed.
 */
int file_open_safe(int dir_fd, const char *path, int flags, mode_t mode, unsigned safe,
                   struct err *err);

/*
 * Creates and locks `path` for as long as the descriptor (returned) is open, and writes our process
 * id in it. Another holder is ERR_EXISTS, and the text names its process id.
 */
int file_lock(const char *path, struct err *err);

void file_close(int *fd); /* closes when >= 0, leaves -1; for CLEANUP(file_close) */

/*
 * As read(), of what poll() said is readable. When somebody who shares it was faster, or a signal came:
 * -1 and EAGAIN, some milliseconds later.
 */
ssize_t file_read_soon(int fd, void *bytes, size_t len);

/*
 * First thing in a program: standard input, output and error that whoever started us has closed are
 * /dev/null, so that no socket or file becomes one of them.
 */
void files_hold_standard(void);

#endif
