/* SPDX-License-Identifier: Apache-2.0 */
/*
 * private.c - directories that a job has for itself
 */
#include "spurstepd/private.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "sys/files.h"

#define CHILD __attribute__((no_sanitize("address", "undefined"), noinline))

static void add(struct private_dirs *dirs, const char *from, const char *path)
{
    dirs->list[dirs->count++] = (struct private_mount){ .from = from, .path = path };
}

int private_plan(const StepTask *task, struct private_dirs *out, struct err *err)
{
    const StepPrivate *asked = task->private_dirs;

    *out = (struct private_dirs){ 0 };
    if (!asked)
        return 0;
    if (asked->n_dirs > PRIVATE_MAX)
        return err_set(err, ERR_TOO_MANY, "private directories");
    out->shared = asked->shared;
    for (size_t i = 0; i < asked->n_dirs; i++)
        add(out, asked->dirs[i]->from, asked->dirs[i]->path);
    if (asked->keep)
        add(out, asked->keep, asked->keep);
    return 0;
}

/* What is shown is a directory of ours: nobody else could have put it there. */
CHILD static int clone_ours(const char *path)
{
    struct stat info;
    int fd = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), tree = -1;

    if (fd < 0)
        return -1;
    if (fstat(fd, &info) == 0 && info.st_uid == (uid_t)syscall(SYS_geteuid))
        tree = (int)syscall(SYS_open_tree, fd, "",
                            AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    else
        errno = EPERM;
    int error = errno;
    syscall(SYS_close, fd);
    errno = error;
    return tree;
}

CHILD static bool put(int tree, const char *path)
{
    int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && syscall(SYS_move_mount, tree, "", fd, "",
                                 MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) == 0;
    int error = errno;

    if (fd >= 0)
        syscall(SYS_close, fd);
    syscall(SYS_close, tree);
    errno = error;
    return ok;
}

CHILD int private_enter(const struct private_dirs *dirs, const char **path)
{
    unsigned long how = MS_REC | (dirs->shared ? MS_SLAVE : MS_PRIVATE);
    int trees[PRIVATE_MAX + 1];

    if (dirs->count == 0)
        return 0;
    *path = "/";
    if (syscall(SYS_unshare, CLONE_NEWNS) < 0 || syscall(SYS_mount, NULL, "/", NULL, how, NULL) < 0)
        return errno;
    for (size_t i = 0; i < dirs->count; i++) {
        *path = dirs->list[i].from;
        trees[i] = clone_ours(*path);
        if (trees[i] < 0)
            return errno;
    }
    for (size_t i = 0; i < dirs->count; i++) {
        *path = dirs->list[i].path;
        if (!put(trees[i], *path))
            return errno;
    }
    return 0;
}

char *private_path(const StepTask *task, const char *path, int *fd)
{
    *fd = AT_FDCWD;
    for (size_t i = 0; task->private_dirs && i < task->private_dirs->n_dirs; i++) {
        const StepPrivateDir *dir = task->private_dirs->dirs[i];
        size_t len = strlen(dir->path);
        if (strncmp(path, dir->path, len) != 0 || path[len] != '/')
            continue;
        *fd = open(dir->from, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return mem_printf(".%s", path + len);
    }
    return mem_strdup(path);
}
