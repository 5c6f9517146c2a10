/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_tree.c - a directory that is fetched: what is in it, part by part
 *
 * (1) Every step is made from an open directory and follows no link: what changes meanwhile cannot lead
 *     elsewhere.
 * (2) Files, directories and links are read; sockets, pipes and devices are left out.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/limits.h"
#include "spurd/access/copy.h"
#include "sys/files.h"

static int push(struct copy_tree *tree, int fd, struct err *err)
{
    DIR *dir = tree->levels.len < LIMIT_COPY_DEPTH ? fdopendir(fd) : NULL;

    if (!dir) {
        close(fd);
        return err_set(err, ERR_TOO_MANY, "%s: more than %d directories in each other",
                       str_text(&tree->name), LIMIT_COPY_DEPTH);
    }
    vec_push(&tree->levels, (struct copy_level){ .dir = dir, .name_len = tree->name.len });
    return 0;
}

int copy_tree_open(struct copy_tree *tree, int fd, struct err *err)
{
    tree->fd = -1;
    return push(tree, fd, err);
}

void copy_tree_done(struct copy_tree *tree)
{
    file_close(&tree->fd);
    while (tree->levels.len)
        closedir(tree->levels.items[--tree->levels.len].dir);
    vec_done(&tree->levels);
    str_done(&tree->name);
}

static int begin_dir(struct copy_tree *tree, int parent, const char *name, struct copy_entry *out,
                     struct err *err)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    out->entry = COPY_ENTRY_DIR;
    return fd < 0 ? err_errno(err, errno, "%s", str_text(&tree->name)) : push(tree, fd, err);
}

static int begin_file(struct copy_tree *tree, int parent, const char *name, struct copy_entry *out,
                      struct err *err)
{
    tree->fd = file_open_safe(parent, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0,
                              FILE_NO_LINKS | FILE_REGULAR, err);
    out->entry = COPY_ENTRY_FILE;
    return tree->fd < 0 ? err_wrap(err, "%s", str_text(&tree->name)) : 0;
}

static int read_link(struct copy_tree *tree, int parent, const char *name, uint8_t *bytes,
                     size_t most, struct copy_entry *out, struct err *err)
{
    out->entry = COPY_ENTRY_LINK;
    out->got = readlinkat(parent, name, (char *)bytes, MIN(most, (size_t)LIMIT_PATH_BYTES));
    return out->got < 0 ? err_errno(err, errno, "%s", str_text(&tree->name)) : 0;
}

/* 1: an entry begins; 0: it is left out (2). */
static int begin(struct copy_tree *tree, DIR *dir, const char *name, uint8_t *bytes, size_t most,
                 struct copy_entry *out, struct err *err)
{
    int parent = dirfd(dir), ret;

    if (fstatat(parent, name, &out->info, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : err_errno(err, errno, "%s", str_text(&tree->name));
    if (S_ISDIR(out->info.st_mode))
        ret = begin_dir(tree, parent, name, out, err);
    else if (S_ISREG(out->info.st_mode))
        ret = begin_file(tree, parent, name, out, err);
    else if (S_ISLNK(out->info.st_mode))
        ret = read_link(tree, parent, name, bytes, most, out, err);
    else
        return 0;
    out->begins = true;
    out->name = str_text(&tree->name);
    return ret < 0 ? ret : 1;
}

/* The directory itself is the first entry: it has no name. */
static bool is_first(const struct copy_tree *tree)
{
    return tree->levels.len == 1 && tree->name.cap == 0;
}

int copy_tree_next(struct copy_tree *tree, uint8_t *bytes, size_t most, struct copy_entry *out,
                   struct err *err)
{
    *out = (struct copy_entry){ 0 };
    if (is_first(tree)) {
        str_reserve(&tree->name, 1);
        out->begins = true;
        out->name = "";
        out->entry = COPY_ENTRY_DIR;
        return fstat(dirfd(tree->levels.items[0].dir), &out->info) < 0
                   ? err_errno(err, errno, "fstat")
                   : 0;
    }
    if (tree->fd >= 0) {
        out->got = read(tree->fd, bytes, most);
        if (out->got < 0)
            return err_errno(err, errno, "%s", str_text(&tree->name));
        if (out->got > 0)
            return 0;
        file_close(&tree->fd);
    }
    while (tree->levels.len) {
        struct copy_level *level = &tree->levels.items[tree->levels.len - 1];
        str_truncate(&tree->name, level->name_len);
        errno = 0;
        struct dirent *item = readdir(level->dir);
        if (!item && errno)
            return err_errno(err, errno, "%s", str_text(&tree->name));
        if (!item) {
            closedir(level->dir);
            tree->levels.len--;
            continue;
        }
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0)
            continue;
        str_addf(&tree->name, "%s%s", tree->name.len ? "/" : "", item->d_name);
        int ret = begin(tree, level->dir, item->d_name, bytes, most, out, err);
        if (ret != 0)
            return MIN(ret, 0);
    }
    out->ended = true;
    return 0;
}
