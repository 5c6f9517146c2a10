/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity.c - a thread of root that opens files as somebody else
 */
#include "sys/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHILD __attribute__((no_sanitize("address", "undefined"), noinline))

enum { GROUPS_AT_ONCE = 256 };

CHILD static bool has_capabilities(void)
{
    struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    memset(data, 0, sizeof(data));
    if (syscall(SYS_capget, &header, data) < 0)
        return true; /* unknown is as bad */
    return data[0].effective != 0 || data[1].effective != 0;
}

CHILD static bool contains(const gid_t *groups, size_t count, gid_t gid)
{
    for (size_t i = 0; i < count; i++) {
        if (groups[i] == gid)
            return true;
    }
    return false;
}

/* The kernel sorts them; those of a user with more than we look at are only counted. */
CHILD static bool has_groups(const gid_t *groups, size_t count)
{
    gid_t have[GROUPS_AT_ONCE];
    long got = syscall(SYS_getgroups, 0, NULL);

    if (got < 0 || (size_t)got != count)
        return false;
    if (got > GROUPS_AT_ONCE)
        return true;
    got = syscall(SYS_getgroups, GROUPS_AT_ONCE, have);
    for (long i = 0; i < got; i++) {
        if (!contains(groups, count, have[i]))
            return false;
    }
    return got >= 0 && (size_t)got == count;
}

CHILD int identity_take(uid_t uid, gid_t gid, const gid_t *groups, size_t count)
{
    if (syscall(SYS_setgroups, count, groups) < 0 || syscall(SYS_setresgid, -1, gid, -1) < 0 ||
        syscall(SYS_setresuid, -1, uid, -1) < 0)
        return errno;
    if ((uid_t)syscall(SYS_geteuid) != uid || (gid_t)syscall(SYS_getegid) != gid ||
        (uid_t)syscall(SYS_setfsuid, -1) != uid || (gid_t)syscall(SYS_setfsgid, -1) != gid ||
        !has_groups(groups, count) || (uid != 0 && has_capabilities()))
        return EPERM;
    return 0;
}

CHILD void identity_return(gid_t gid, const gid_t *groups, size_t count)
{
    int saved = errno;

    if (syscall(SYS_setresuid, -1, 0, -1) < 0 || syscall(SYS_setresgid, -1, gid, -1) < 0 ||
        syscall(SYS_setgroups, count, groups) < 0 || (uid_t)syscall(SYS_geteuid) != 0 ||
        (gid_t)syscall(SYS_getegid) != gid)
        abort();
    errno = saved;
}

CHILD static int open_without_magic(int dir_fd, const char *path, int flags, mode_t mode)
{
    struct open_how how;

    memset(&how, 0, sizeof(how));
    how.flags = (uint64_t)(unsigned)flags;
    how.mode = (flags & O_CREAT) ? mode : 0;
    how.resolve = RESOLVE_NO_MAGICLINKS;
    return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
}

/* Filters of older container engines answer EPERM to calls they do not know. */
CHILD static bool kernel_lacks_it(int error)
{
    if (error != EPERM)
        return error == ENOSYS;
    int fd = open_without_magic(AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0);
    if (fd >= 0)
        syscall(SYS_close, fd);
    return fd < 0;
}

CHILD int identity_open(int dir_fd, const char *path, int flags, mode_t mode)
{
    int fd = open_without_magic(dir_fd, path, flags, mode), error = errno;

    if (fd >= 0)
        return fd;
    if (kernel_lacks_it(error))
        return (int)syscall(SYS_openat, dir_fd, path, flags, mode);
    errno = error;
    return -1;
}
