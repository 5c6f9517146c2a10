// SPDX-License-Identifier: Apache-2.0
/*
 * sgather_tree.c - a directory that comes from a node
 *
 * (1) It is made in a directory that only we can enter. Names lead downwards, and links are made when
 *     everything else is there: nothing that a node says makes us write elsewhere.
 * (2) Modes and times of directories come last, those inside first: a directory may be one that nobody can
 *     write to.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "cli/sgather.h"
#include "sys/files.h"

enum { SECOND_NS = 1000000000 };

struct tree_later {
    char *name, *target; /* target: of a link; NULL: a directory */
    mode_t mode;
    struct timespec times[2];
};

static struct timespec moment(int64_t ns)
{
    int64_t seconds = ns / SECOND_NS, rest = ns % SECOND_NS;

    return (struct timespec){ .tv_sec = seconds - (rest < 0),
                              .tv_nsec = rest < 0 ? rest + SECOND_NS : rest };
}

/* (1) "a/b", never "/a", "a//b", "." or "..". */
static bool is_name(const char *name)
{
    if (!name || strlen(name) >= LIMIT_PATH_BYTES)
        return false;
    for (const char *at = name; *at;) {
        size_t len = strcspn(at, "/");
        if (len == 0 || (len == 1 && at[0] == '.') || (len == 2 && at[0] == '.' && at[1] == '.'))
            return false;
        at += len;
        if (*at == '/' && !*++at)
            return false;
    }
    return true;
}

static mode_t mode_of(const struct tree *tree, uint32_t mode)
{
    mode_t mask = umask(0);

    umask(mask);
    return tree->preserve ? mode & 07777 : mode & 0777 & ~mask;
}

static void add_later(struct tree *tree, const CopyPart *part, char *target)
{
    struct tree_later *later = NEW(struct tree_later);

    *later = (struct tree_later){ .name = mem_strdup(part->name),
                                  .target = target,
                                  .mode = mode_of(tree, part->mode),
                                  .times = { moment(part->atime_ns), moment(part->mtime_ns) } };
    vec_push(&tree->later, later);
}

static int begin_dir(struct tree *tree, const CopyPart *part, struct err *err)
{
    bool root = part->name[0] == '\0';
    int ret = root ? mkdir(tree->root, 0700) : mkdirat(tree->fd, part->name, 0700);

    if (ret < 0)
        return err_errno(err, errno, "%s/%s", tree->root, part->name);
    if (root)
        tree->fd = open(tree->root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (tree->fd < 0)
        return err_errno(err, errno, "%s", tree->root);
    add_later(tree, part, NULL);
    return 0;
}

static int end_file(struct tree *tree, struct err *err)
{
    int fd = tree->file;

    tree->file = -1;
    return fd >= 0 && close(fd) < 0 ? err_errno(err, errno, "%s", tree->root) : 0;
}

static int begin_file(struct tree *tree, const CopyPart *part, struct err *err)
{
    tree->file =
        openat(tree->fd, part->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (tree->file < 0 || fchmod(tree->file, mode_of(tree, part->mode)) < 0)
        return err_errno(err, errno, "%s/%s", tree->root, part->name);
    if (tree->preserve) /* writing changes its time */
        add_later(tree, part, NULL);
    return 0;
}

int tree_begin(struct tree *tree, const CopyPart *part, const void *bytes, size_t len,
               struct err *err)
{
    if (end_file(tree, err) < 0)
        return -(int)err->code;
    if (!is_name(part->name) || (part->name[0] == '\0') != (tree->fd < 0) ||
        (tree->fd < 0 && part->entry != COPY_ENTRY_DIR))
        return err_set(err, ERR_BAD_MESSAGE, "a name that leads elsewhere");
    switch (part->entry) {
    case COPY_ENTRY_DIR:
        return begin_dir(tree, part, err);
    case COPY_ENTRY_FILE:
        return begin_file(tree, part, err);
    case COPY_ENTRY_LINK:
        if (len == 0 || len >= LIMIT_PATH_BYTES || memchr(bytes, '\0', len))
            return err_set(err, ERR_BAD_MESSAGE, "a link that leads nowhere");
        add_later(tree, part, mem_strndup(bytes, len));
        return 0;
    default:
        return err_code(err, ERR_BAD_MESSAGE);
    }
}

int tree_write(struct tree *tree, const void *bytes, size_t len, struct err *err)
{
    if (!len)
        return 0;
    if (tree->file < 0)
        return err_code(err, ERR_BAD_MESSAGE);
    return file_write_all(tree->file, bytes, len, err);
}

/* (2) */
int tree_end(struct tree *tree, struct err *err)
{
    if (tree->fd < 0)
        return err_code(err, ERR_BAD_MESSAGE);
    if (end_file(tree, err) < 0)
        return -(int)err->code;
    for (size_t i = tree->later.len; i-- > 0;) {
        const struct tree_later *later = tree->later.items[i];
        const char *name = later->name[0] ? later->name : ".";
        bool good = !later->target || symlinkat(later->target, tree->fd, name) == 0;
        if (good && tree->preserve)
            good = utimensat(tree->fd, name, later->times, AT_SYMLINK_NOFOLLOW) == 0;
        if (good && !later->target)
            good = fchmodat(tree->fd, name, later->mode, 0) == 0;
        if (!good)
            return err_errno(err, errno, "%s/%s", tree->root, later->name);
    }
    return 0;
}

void tree_drop(struct tree *tree)
{
    /* Those outside first: only who may enter a directory changes what is in it. */
    for (size_t i = 0; tree->fd >= 0 && i < tree->later.len; i++) {
        const struct tree_later *later = tree->later.items[i];
        if (!later->target)
            fchmodat(tree->fd, later->name[0] ? later->name : ".", 0700, 0);
    }
    file_remove_tree(tree->root, NULL);
}

void tree_done(struct tree *tree)
{
    file_close(&tree->file);
    file_close(&tree->fd);
    vec_each (struct tree_later *, later, &tree->later) {
        free((*later)->name);
        free((*later)->target);
        free(*later);
    }
    vec_done(&tree->later);
}
