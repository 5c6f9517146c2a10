/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner.c - a file that nobody but root can have changed
 *
 * The path is walked as the kernel does it, one name after the other, with every link on the way replaced by
 * what it says. So a directory is looked at whichever link leads through it.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/str.h"
#include "spank/plugstack.h"

enum { LINKS_MAX = 40 };

static int judge(const char *path, const struct stat *info, struct err *err)
{
    if (info->st_uid != 0 && info->st_uid != geteuid())
        return err_set(err, ERR_PERMISSION, "'%s' belongs to uid %u, not to root", path,
                       (unsigned)info->st_uid);
    if (!S_ISLNK(info->st_mode) && (info->st_mode & (S_IWGRP | S_IWOTH)))
        return err_set(err, ERR_PERMISSION, "others than root may write to '%s' (mode %04o)", path,
                       (unsigned)info->st_mode & 07777);
    return 0;
}

/* The names that are left begin with what the link says. */
static int follow(struct str *at, size_t before, char **rest, struct err *err)
{
    char target[LIMIT_PATH_BYTES];
    ssize_t len = readlink(str_text(at), target, sizeof(target) - 1);

    if (len <= 0)
        return err_errno(err, errno, "link '%s'", str_text(at));
    target[len] = '\0';
    char *joined = mem_printf("%s/%s", target, *rest);
    free(*rest);
    *rest = joined;
    str_truncate(at, target[0] == '/' ? 0 : before);
    return 0;
}

/* The next name of *rest, which loses it; false: there is none. */
static bool next_name(char **rest, char name[NAME_MAX + 1])
{
    const char *begin = *rest + strspn(*rest, "/");
    size_t len = strcspn(begin, "/");

    if (len == 0 || len > NAME_MAX)
        return false;
    memcpy(name, begin, len);
    name[len] = '\0';
    char *left = mem_strdup(begin + len);
    free(*rest);
    *rest = left;
    return true;
}

static int step_down(struct str *at, const char *name, char **rest, unsigned *links,
                     struct err *err)
{
    size_t before = at->len;
    struct stat info;

    if (strcmp(name, ".") == 0)
        return 0;
    if (strcmp(name, "..") == 0) {
        const char *slash = at->len ? strrchr(str_text(at), '/') : NULL;
        str_truncate(at, slash ? (size_t)(slash - str_text(at)) : 0);
        return 0;
    }
    str_addf(at, "/%s", name);
    if (at->len >= LIMIT_PATH_BYTES)
        return err_set(err, ERR_PATH_TOO_LONG, "'%s'", str_text(at));
    if (lstat(str_text(at), &info) < 0)
        return err_errno(err, errno, "'%s'", str_text(at));
    int ret = judge(str_text(at), &info, err);
    if (ret < 0 || !S_ISLNK(info.st_mode))
        return ret;
    if (++*links > LINKS_MAX)
        return err_set(err, ERR_CONFIG, "'%s': too many links", str_text(at));
    return follow(at, before, rest, err);
}

int plugstack_check_owner(const char *path, struct err *err)
{
    CLEANUP(str_done) struct str at = { 0 };
    CLEANUP(freep) char *rest = mem_strdup(path);
    char name[NAME_MAX + 1];
    unsigned links = 0;
    struct stat info;

    if (path[0] != '/')
        return err_set(err, ERR_CONFIG, "'%s' is not an absolute path", path);
    if (stat("/", &info) < 0)
        return err_errno(err, errno, "/");
    int ret = judge("/", &info, err);
    while (ret == 0 && next_name(&rest, name))
        ret = step_down(&at, name, &rest, &links, err);
    if (ret == 0 && rest[strspn(rest, "/")])
        ret = err_set(err, ERR_PATH_TOO_LONG, "'%s'", path);
    return ret;
}
