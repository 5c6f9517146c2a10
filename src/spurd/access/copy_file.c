/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_file.c - the file of a copy, with the identity of the job's user
 *
 * (1) A file appears whole or not at all: it is written under another name and then renamed.
 * (2) No link is followed at the end of the path, and none on the way that belongs to a third user.
 * (3) What exists is replaced only when that was asked for.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/limits.h"
#include "spurd/access/copy.h"
#include "sys/files.h"
#include "sys/identity.h"
#include "sys/rng.h"

enum { MODES = 0777, MODES_PRESERVED = 07777, SECOND_NS = 1000000000 };

static char *expand(const char *path, const char *node)
{
    struct str out = { 0 };

    for (const char *c = path; *c; c++) {
        if (c[0] == '%' && c[1] == 'N') {
            str_add(&out, node);
            c++;
        } else {
            str_add_char(&out, *c);
        }
    }
    char *text = mem_strdup(str_text(&out));
    str_done(&out);
    return text;
}

void copy_file_init(struct copy_file *file, const CopyOrder *order, const JobOwner *owner,
                    const char *node)
{
    as_user_init(&file->user, owner);
    file->shown = expand(order->path, node);
    file->path = mem_strdup(file->shown);
    file->root_fd = AT_FDCWD;
    file->force = order->force;
    file->make_dir = order->make_dir;
    file->recursive = order->recursive;
    file->preserve = order->has_mtime_ns;
    file->mode = order->mode & (file->preserve ? MODES_PRESERVED : MODES);
    file->atime_ns = order->atime_ns;
    file->mtime_ns = order->mtime_ns;
    file->dir_fd = file->fd = -1;
}

void copy_file_place(struct copy_file *file, char *path, int root_fd)
{
    free(file->path);
    file->path = path;
    file->root_fd = root_fd;
}

void copy_file_done(struct copy_file *file)
{
    file_close(&file->fd);
    file_close(&file->dir_fd);
    as_user_done(&file->user);
    file_close(&file->root_fd);
    free(TAKE(file->path));
    free(TAKE(file->shown));
}

static const char *name_of(const struct copy_file *file)
{
    return strrchr(file->path, '/') + 1; /* absolute or "./…": copy_check(), private_path() */
}

/* (2) */
static int check_links(const struct copy_file *file, const char *dir, struct err *err)
{
    struct stat info;

    for (const char *end = strchr(dir + 1, '/'); dir[1]; end = strchr(end + 1, '/')) {
        CLEANUP(freep) char *part = end ? mem_strndup(dir, (size_t)(end - dir)) : mem_strdup(dir);
        if (fstatat(file->root_fd, part, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISLNK(info.st_mode) && info.st_uid != 0 && info.st_uid != file->user.uid)
            return err_set(err, ERR_PERMISSION, "%s is a link of another user", part);
        if (!end)
            break;
    }
    return 0;
}

static int open_dir(struct copy_file *file, struct err *err)
{
    size_t len = (size_t)(name_of(file) - 1 - file->path);
    CLEANUP(freep) char *dir = len ? mem_strndup(file->path, len) : mem_strdup("/");

    if (check_links(file, dir, err) < 0)
        return -1;
    if (file->make_dir && mkdirat(file->root_fd, dir, 0700) < 0 && errno != EEXIST)
        return err_errno(err, errno, "%s", dir);
    file->dir_fd = identity_open(file->root_fd, dir, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    return file->dir_fd < 0 ? err_errno(err, errno, "%s", dir) : 0;
}

static int create(struct copy_file *file, struct err *err)
{
    struct stat info;

    if (open_dir(file, err) < 0)
        return -1;
    if (fstatat(file->dir_fd, name_of(file), &info, AT_SYMLINK_NOFOLLOW) == 0) {
        if (S_ISDIR(info.st_mode))
            return err_errno(err, EISDIR, "%s", file->shown);
        if (!file->force) /* (3) */
            return err_errno(err, EEXIST, "%s", file->shown);
    }
    char temp[sizeof(file->temp)];
    snprintf(temp, sizeof(temp), ".spur-copy.%016llx", (unsigned long long)rng_u64());
    file->fd =
        openat(file->dir_fd, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file->fd < 0)
        return err_errno(err, errno, "%s", file->shown);
    memcpy(file->temp, temp, sizeof(temp));
    return 0;
}

int copy_file_create(struct copy_file *file, struct err *err)
{
    if (as_user_begin(&file->user, err) < 0)
        return -1;
    int ret = create(file, err);
    as_user_end();
    return ret;
}

ssize_t copy_file_read(struct copy_file *file, void *bytes, size_t len, struct err *err)
{
    if (as_user_begin(&file->user, err) < 0)
        return -1;
    ssize_t got = read(file->fd, bytes, len);
    as_user_end();
    if (got < 0)
        err_errno(err, errno, "%s", file->shown);
    return got;
}

int copy_file_write(struct copy_file *file, const void *bytes, size_t len, struct err *err)
{
    if (as_user_begin(&file->user, err) < 0)
        return -1;
    int ret = file_write_all(file->fd, bytes, len, err);
    as_user_end();
    return ret < 0 ? err_wrap(err, "%s", file->shown) : 0;
}

static struct timespec moment(int64_t ns)
{
    int64_t seconds = ns / SECOND_NS, rest = ns % SECOND_NS;

    return (struct timespec){ .tv_sec = seconds - (rest < 0),
                              .tv_nsec = rest < 0 ? rest + SECOND_NS : rest };
}

static int give_name(struct copy_file *file)
{
    const char *name = name_of(file);

    if (file->force)
        return renameat(file->dir_fd, file->temp, file->dir_fd, name);
    if (syscall(SYS_renameat2, file->dir_fd, file->temp, file->dir_fd, name, 1U /* NOREPLACE */) ==
        0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    /* A file system that cannot: a second name, which fails when the name is taken. */
    if (linkat(file->dir_fd, file->temp, file->dir_fd, name, 0) < 0)
        return -1;
    unlinkat(file->dir_fd, file->temp, 0);
    return 0;
}

static int commit(struct copy_file *file, struct err *err)
{
    const struct timespec times[2] = { moment(file->atime_ns), moment(file->mtime_ns) };

    if (fchmod(file->fd, file->mode) < 0 || (file->preserve && futimens(file->fd, times) < 0) ||
        give_name(file) < 0)
        return err_errno(err, errno, "%s", file->shown);
    file->temp[0] = '\0';
    int fd = file->fd;
    file->fd = -1;
    return close(fd) < 0 ? err_errno(err, errno, "%s", file->shown) : 0;
}

int copy_file_commit(struct copy_file *file, struct err *err)
{
    if (as_user_begin(&file->user, err) < 0)
        return -1;
    int ret = commit(file, err);
    as_user_end();
    return ret;
}

void copy_file_drop(struct copy_file *file)
{
    struct err err = { 0 };

    if (!file->temp[0] || as_user_begin(&file->user, &err) < 0)
        return;
    unlinkat(file->dir_fd, file->temp, 0);
    as_user_end();
    file->temp[0] = '\0';
}

int copy_file_open(struct copy_file *file, struct err *err)
{
    if (as_user_begin(&file->user, err) < 0)
        return -1;
    int ret = open_dir(file, err);
    if (ret == 0)
        ret = file_open_safe(file->dir_fd, name_of(file),
                             O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0,
                             FILE_NO_LINKS | FILE_REGULAR, err);
    as_user_end();
    if (ret < 0)
        return err_wrap(err, "%s", file->shown);
    file->fd = ret;
    return 0;
}

int copy_file_open_dir(struct copy_file *file, struct err *err)
{
    int fd = -1;

    if (!file->recursive || as_user_begin(&file->user, err) < 0)
        return -1;
    if (open_dir(file, err) == 0)
        fd = openat(file->dir_fd, name_of(file), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && !err->code && errno != ENOTDIR && errno != ELOOP)
        err_errno(err, errno, "%s", file->shown);
    as_user_end();
    if (fd < 0)
        file_close(&file->dir_fd);
    return fd;
}

static int remove_tree(struct copy_file *file, struct err *err)
{
    if (file_remove_tree_at(file->dir_fd, name_of(file), err) < 0)
        return err_wrap(err, "%s", file->shown);
    return 0;
}

int copy_file_remove(struct copy_file *file, struct err *err)
{
    if (as_user_begin(&file->user, err) < 0)
        return -1;
    int ret = open_dir(file, err);
    if (ret == 0 && unlinkat(file->dir_fd, name_of(file), 0) < 0)
        ret = errno == EISDIR && file->recursive ? remove_tree(file, err)
                                                 : err_errno(err, errno, "%s", file->shown);
    as_user_end();
    return ret;
}
