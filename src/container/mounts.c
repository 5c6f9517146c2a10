/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts.c - what of the outside is seen inside
 *
 * Paths inside are resolved with the image's root as the root (unpack_dir), and mounted on by
 * descriptor: a link in an image leads nowhere else.
 */
#include "container/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/limits.h"
#include "container/unpack.h"
#include "sys/files.h"

static int make_dir(const char *path, struct err *err)
{
    return mkdir(path, 0755) < 0 && errno != EEXIST ? err_errno(err, errno, "%s", path) : 0;
}

int mounts_root(const char *lower, const char *stage, const char *named, const char *root,
                struct err *err)
{
    CLEANUP(freep) char *upper = mem_printf("%s/upper", named ? named : stage);
    CLEANUP(freep) char *work = mem_printf("%s/work", named ? named : stage);
    CLEANUP(freep)
    char *options = mem_printf("lowerdir=%s,upperdir=%s,workdir=%s%s", lower, upper, work,
                               geteuid() == 0 && !named ? "" : ",userxattr");

    if (strpbrk(lower, ",:") || strpbrk(stage, ",:"))
        return err_set(err, ERR_INVALID, "the store's path '%s' has a comma or a colon", stage);
    if (!named && mount("spur", stage, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755") < 0)
        return err_errno(err, errno, "memory for what the container writes");
    if (make_dir(upper, err) < 0 || make_dir(work, err) < 0)
        return -(int)err->code;
    if (mount("spur", root, "overlay", MS_NOSUID | MS_NODEV, options) < 0)
        return err_errno(err, errno, "the container's root (overlay)");
    return 0;
}

/* The place inside, made like the outside: a directory or an empty file. */
static int open_target(int root_fd, const char *to, bool is_dir, struct err *err)
{
    CLEANUP(freep) char *path = mem_strdup(to + strspn(to, "/"));
    char *last = strrchr(path, '/');

    if (is_dir)
        return unpack_dir(root_fd, path, err);
    if (last)
        *last = '\0';
    CLEANUP(file_close) int dir = unpack_dir(root_fd, last ? path : "", err);
    if (dir < 0)
        return dir;
    const char *base = last ? last + 1 : path;
    struct stat info;
    if (fstatat(dir, base, &info, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(info.st_mode) &&
        unlinkat(dir, base, 0) < 0)
        return err_errno(err, errno, "%s in the container", to);
    int fd = openat(dir, base, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    return fd < 0 ? err_errno(err, errno, "%s in the container", to) : fd;
}

/* Flags that the outside has cannot be dropped by a remount without its privileges. */
static unsigned long kept_flags(const char *from)
{
    struct statvfs info;
    unsigned long flags = 0;

    if (statvfs(from, &info) < 0)
        return 0;
    flags |= info.f_flag & ST_NOSUID ? MS_NOSUID : 0;
    flags |= info.f_flag & ST_NODEV ? MS_NODEV : 0;
    flags |= info.f_flag & ST_NOEXEC ? MS_NOEXEC : 0;
    return flags;
}

int mounts_bind(int root_fd, const char *from, const char *to, bool readonly, struct err *err)
{
    struct stat info;
    char path[64];

    if (stat(from, &info) < 0)
        return err_errno(err, errno, "mount %s", from);
    CLEANUP(file_close) int fd = open_target(root_fd, to, S_ISDIR(info.st_mode), err);
    if (fd < 0)
        return fd;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (mount(from, path, NULL, MS_BIND | MS_REC, NULL) < 0)
        return err_errno(err, errno, "mount %s on %s", from, to);
    if (!readonly)
        return 0;
    /* what is there now is the mount, not the directory under it */
    CLEANUP(file_close) int on_top = open_target(root_fd, to, S_ISDIR(info.st_mode), err);
    if (on_top < 0)
        return on_top;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", on_top);
    if (mount(NULL, path, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY | kept_flags(from), NULL) < 0)
        return err_errno(err, errno, "mount %s on %s read-only", from, to);
    return 0;
}

/* "SRC", "SRC:DST", "SRC:DST:ro" */
static int mount_asked(int root_fd, const char *text, struct err *err)
{
    CLEANUP(freep) char *copy = mem_strdup(text);
    char *to = strchr(copy, ':'), *flags = NULL;
    bool readonly = false;

    if (to)
        *to++ = '\0';
    if (to && (flags = strchr(to, ':')))
        *flags++ = '\0';
    to = to && *to ? to : copy;
    if (copy[0] != '/' || to[0] != '/')
        return err_set(err, ERR_INVALID,
                       "--container-mounts: '%s' is not /OUTSIDE[:/INSIDE[:FLAGS]]", text);
    const char *cursor = flags ? flags : "";
    struct span word;
    while (str_next(&cursor, "+", &word)) {
        if (span_eq(word, "ro"))
            readonly = true;
        else if (!span_eq(word, "rw") && !span_eq(word, "rbind") && !span_eq(word, "bind") &&
                 !span_eq(word, "x-create=dir") && !span_eq(word, "x-create=file"))
            return err_set(err, ERR_INVALID, "--container-mounts: '%.*s' in '%s' is none of ro, rw",
                           (int)word.len, word.ptr, text);
    }
    return mounts_bind(root_fd, copy, to, readonly, err);
}

static int mount_list(int root_fd, const char *list, bool asked, struct err *err)
{
    const char *cursor = list ? list : "";
    struct span word;

    while (str_next(&cursor, ",", &word)) {
        CLEANUP(freep) char *text = mem_strndup(word.ptr, word.len);
        int code =
            asked ? mount_asked(root_fd, text, err) : mounts_bind(root_fd, text, text, false, err);
        if (code < 0)
            return code;
    }
    return 0;
}

/* So that programs find the name of who they run as. */
static void add_user(int root_fd, bool remap_root)
{
    CLEANUP(str_done) struct str text = { 0 };
    const struct passwd *user = getpwuid(getuid());
    CLEANUP(file_close) int dir = unpack_dir(root_fd, "etc", NULL);
    char line[64];

    if (dir < 0 || remap_root || getuid() == 0)
        return;
    CLEANUP(file_close)
    int fd = openat(dir, "passwd", O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 || file_read_fd(fd, 1024 * 1024, &text, NULL) < 0)
        return;
    snprintf(line, sizeof(line), ":%u:", (unsigned)getuid());
    if (strstr(str_text(&text), line))
        return;
    const char *home = getenv("HOME");
    str_clear(&text);
    str_addf(&text, "%s:x:%u:%u::%s:/bin/sh\n", user ? user->pw_name : "user", (unsigned)getuid(),
             (unsigned)getgid(), home ? home : "/");
    file_write_all(fd, text.data, text.len, NULL);
}

int mounts_all(int root_fd, const struct run *run, struct err *err)
{
    static const char *const always[] = { "/proc", "/dev", "/sys" };
    static const char *const names[] = { "/etc/resolv.conf", "/etc/hosts", "/etc/hostname" };
    const char *home = getenv("HOME");

    add_user(root_fd, run->remap_root);
    for (size_t i = 0; i < ARRAY_LEN(always); i++) {
        if (mounts_bind(root_fd, always[i], always[i], false, err) < 0)
            return -(int)err->code;
    }
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (access(names[i], R_OK) == 0 && mounts_bind(root_fd, names[i], names[i], true, err) < 0)
            return -(int)err->code;
    }
    if (!str_is_empty(home) && home[0] == '/' && home[1]) {
        int fd = unpack_dir(root_fd, home + 1, NULL); /* there, if empty */
        if (fd >= 0)
            close(fd);
        if (run->mount_home && mounts_bind(root_fd, home, home, false, err) < 0)
            return -(int)err->code;
    }
    if (mount_list(root_fd, run->visible, false, err) < 0 ||
        mount_list(root_fd, run->mounts, true, err) < 0)
        return -(int)err->code;
    return 0;
}
