/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.c - one layer of an image, put over what the layers before it left in a directory
 */
#include "container/unpack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/limits.h"
#include "sys/files.h"

enum { MAX_DEPTH = 256, COPY_BYTES = 128 * 1024 };

/* Links in the image are followed as the image sees them: its root is the root. */
static int open_in(int root_fd, const char *path, int flags)
{
    struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC),
                            .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

    return (int)syscall(SYS_openat2, root_fd, *path ? path : ".", &how, sizeof(how));
}

int unpack_dir(int root_fd, const char *path, struct err *err)
{
    char part[LIMIT_PATH_BYTES];
    size_t len = strlen(path);

    int fd = open_in(root_fd, path, O_PATH | O_DIRECTORY);
    if (fd >= 0 || errno != ENOENT)
        return fd >= 0 ? fd : err_errno(err, errno, "%s", path);
    if (len >= sizeof(part))
        return err_set(err, ERR_TOO_LARGE, "a path of %zu bytes", len);
    for (size_t end = 1; end <= len; end++) {
        if (path[end] != '/' && path[end] != '\0')
            continue;
        snprintf(part, sizeof(part), "%.*s", (int)end, path);
        char *last = strrchr(part, '/');
        fd = open_in(root_fd, part, O_PATH | O_DIRECTORY);
        if (fd < 0 && errno == ENOENT) {
            if (last)
                *last = '\0';
            int parent = open_in(root_fd, last ? part : "", O_PATH | O_DIRECTORY);
            int made = parent < 0 ? -1 : mkdirat(parent, last ? last + 1 : part, 0755);
            file_close(&parent);
            if (made < 0 && errno != EEXIST)
                return err_errno(err, errno, "%s", path);
            continue;
        }
        if (fd < 0)
            return err_errno(err, errno, "%s", path);
        close(fd);
    }
    fd = open_in(root_fd, path, O_PATH | O_DIRECTORY);
    return fd >= 0 ? fd : err_errno(err, errno, "%s", path);
}

/* "./a//b/" becomes "a/b"; ".." anywhere is refused. */
static int clean_name(const char *name, struct str *out, struct err *err)
{
    const char *cursor = name;
    struct span word;
    unsigned depth = 0;

    str_clear(out);
    while (str_next(&cursor, "/", &word)) {
        if (span_eq(word, "."))
            continue;
        if (span_eq(word, ".."))
            return err_set(err, ERR_INVALID, "the archive has a name that leads out of it: '%s'",
                           name);
        if (++depth > MAX_DEPTH)
            return err_set(err, ERR_TOO_LARGE, "the archive has a name of more than %d levels",
                           MAX_DEPTH);
        if (out->len)
            str_add_char(out, '/');
        str_add_len(out, word.ptr, word.len);
    }
    return 0;
}

/* Splits a clean name; opens the directory it is in. */
static int open_parent(int root_fd, struct str *path, const char **base, struct err *err)
{
    char *last = strrchr(path->data, '/');
    int fd;

    *base = last ? last + 1 : path->data;
    if (!last)
        return (fd = unpack_dir(root_fd, "", err));
    *last = '\0';
    fd = unpack_dir(root_fd, path->data, err);
    return fd;
}

static int remove_at(int dir_fd, const char *name);

static int empty_dir(int fd)
{
    DIR *dir = fdopendir(fd);
    struct dirent *item;
    int code = 0;

    if (!dir) {
        close(fd);
        return -1;
    }
    while (code == 0 && (item = readdir(dir))) {
        if (!str_eq(item->d_name, ".") && !str_eq(item->d_name, ".."))
            code = remove_at(dirfd(dir), item->d_name);
    }
    closedir(dir);
    return code;
}

/* As deep as the archive may be: clean_name() bounds it. */
static int remove_at(int dir_fd, const char *name)
{
    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || empty_dir(fd) < 0)
        return -1;
    return unlinkat(dir_fd, name, AT_REMOVEDIR);
}

/* ---- removals ---- */

static int take_away(struct unpack *unpack, const char *name, struct err *err)
{
    CLEANUP(str_done) struct str path = { 0 };
    const char *base;
    int code = 0;

    if (clean_name(name, &path, err) < 0)
        return -(int)err->code;
    if (path.len == 0)
        return 0;
    const char *last = strrchr(path.data, '/');
    if (!str_starts(last ? last + 1 : path.data, ".wh."))
        return 0;
    CLEANUP(file_close) int dir = open_parent(unpack->root_fd, &path, &base, err);
    if (dir < 0)
        return dir;
    if (str_eq(base, ".wh..wh..opq")) {
        int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        code = copy < 0 ? -1 : empty_dir(copy);
    } else if (base[4] && !str_starts(base, ".wh..wh.") && !str_eq(base + 4, "..") &&
               !str_eq(base + 4, ".")) {
        code = remove_at(dir, base + 4);
    }
    return code < 0 ? err_errno(err, errno, "%s", name) : 0;
}

/* ---- entries ---- */

static int write_file(struct unpack *unpack, struct tar *tar, int dir, const char *base,
                      const struct tar_entry *entry, struct err *err)
{
    CLEANUP(file_close)
    int fd = openat(dir, base, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    CLEANUP(freep) char *bytes = mem_new(COPY_BYTES);
    ssize_t got;

    if (fd < 0)
        return err_errno(err, errno, "%s", entry->name);
    if (entry->size > LIMIT_IMAGE_BYTES || unpack->bytes + entry->size > LIMIT_IMAGE_BYTES)
        return err_set(err, ERR_TOO_LARGE, "the image unpacks to more than %llu bytes",
                       (unsigned long long)LIMIT_IMAGE_BYTES);
    unpack->bytes += entry->size;
    while ((got = tar_content(tar, bytes, COPY_BYTES, err)) > 0) {
        if (file_write_all(fd, bytes, (size_t)got, err) < 0)
            return err_wrap(err, "%s", entry->name);
    }
    if (got < 0)
        return (int)got;
    struct timespec times[2] = { { .tv_sec = entry->mtime }, { .tv_sec = entry->mtime } };
    futimens(fd, times);
    return fchmod(fd, (entry->mode & 0777) | 0400) < 0 ? err_errno(err, errno, "%s", entry->name)
                                                       : 0;
}

static int make_dir(int dir, const char *base, const struct tar_entry *entry, struct err *err)
{
    struct stat info;

    if (fstatat(dir, base, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode))
        return fchmodat(dir, base, (entry->mode & 01777) | 0700, 0) < 0
                   ? err_errno(err, errno, "%s", entry->name)
                   : 0;
    if (remove_at(dir, base) < 0 || mkdirat(dir, base, 0700) < 0 ||
        fchmodat(dir, base, (entry->mode & 01777) | 0700, 0) < 0)
        return err_errno(err, errno, "%s", entry->name);
    return 0;
}

static int make_hard_link(struct unpack *unpack, int dir, const char *base,
                          const struct tar_entry *entry, struct err *err)
{
    CLEANUP(str_done) struct str path = { 0 };
    const char *from;

    if (clean_name(entry->link, &path, err) < 0)
        return -(int)err->code;
    if (path.len == 0)
        return err_set(err, ERR_INVALID, "'%s' links to nothing", entry->name);
    CLEANUP(file_close) int from_dir = open_parent(unpack->root_fd, &path, &from, err);
    if (from_dir < 0)
        return from_dir;
    if (linkat(from_dir, from, dir, base, 0) < 0)
        return err_errno(err, errno, "%s: link to '%s'", entry->name, entry->link);
    return 0;
}

static int put_entry(struct unpack *unpack, struct tar *tar, const struct tar_entry *entry,
                     struct err *err)
{
    CLEANUP(str_done) struct str path = { 0 };
    const char *base;

    if (clean_name(entry->name, &path, err) < 0)
        return -(int)err->code;
    if (path.len == 0)
        return 0;
    const char *last = strrchr(path.data, '/');
    if (str_starts(last ? last + 1 : path.data, ".wh."))
        return 0;
    CLEANUP(file_close) int dir = open_parent(unpack->root_fd, &path, &base, err);
    if (dir < 0)
        return dir;
    if (entry->type == '5')
        return make_dir(dir, base, entry, err);
    if (entry->type == '3' || entry->type == '4' || entry->type == '6') {
        unpack->left_out++;
        return 0;
    }
    if (strchr("012", entry->type) == NULL)
        return err_set(err, ERR_UNSUPPORTED, "'%s' is of kind '%c', which is not known",
                       entry->name, entry->type);
    if (remove_at(dir, base) < 0)
        return err_errno(err, errno, "%s", entry->name);
    if (entry->type == '0')
        return write_file(unpack, tar, dir, base, entry, err);
    if (entry->type == '1')
        return make_hard_link(unpack, dir, base, entry, err);
    return symlinkat(entry->link, dir, base) < 0 ? err_errno(err, errno, "%s", entry->name) : 0;
}

static int walk(struct unpack *unpack, tar_read_fn read, void *ctx, bool removals, struct err *err)
{
    struct tar_entry entry;
    struct tar tar;
    int code, result = 0;

    tar_open(&tar, read, ctx);
    while (result == 0 && (code = tar_next(&tar, &entry, err)) != 0) {
        result = code < 0   ? code
                 : removals ? take_away(unpack, entry.name, err)
                            : put_entry(unpack, &tar, &entry, err);
    }
    tar_close(&tar);
    return result;
}

int unpack_layer(struct unpack *unpack, tar_read_fn read, unpack_again_fn again, void *ctx,
                 struct err *err)
{
    int code = walk(unpack, read, ctx, true, err);

    if (code == 0)
        code = again(ctx, err);
    return code < 0 ? code : walk(unpack, read, ctx, false, err);
}
