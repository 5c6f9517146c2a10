/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files_safe.c - opening a path that somebody else may have prepared
 *
 * (1) openat2() resolves the whole path under the rules given, in one step that nobody can race.
 * (2) Where the kernel has no openat2() (or a filter denies it), the path is walked one component
 *     at a time with O_NOFOLLOW, which is as strict and a little slower.
 * (3) What was opened is checked on the descriptor, never on the name.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/limits.h"
#include "sys/files.h"

static int open_by_kernel(int dir_fd, const char *path, int flags, mode_t mode, unsigned safe)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)flags,
        .mode = (flags & (O_CREAT | O_TMPFILE)) ? mode : 0,
        .resolve = RESOLVE_NO_MAGICLINKS,
    };

    if (safe & FILE_NO_LINKS)
        how.resolve |= RESOLVE_NO_SYMLINKS;
    if (safe & FILE_BENEATH)
        how.resolve |= RESOLVE_BENEATH;
    return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
}

/* (2) Strict for both rules: without openat2() no link is followed, also when only BENEATH asks. */
static int open_by_walk(int dir_fd, const char *path, int flags, mode_t mode, unsigned safe)
{
    CLEANUP(file_close) int at = -1;
    char name[256];

    if (*path == '/') {
        if (safe & FILE_BENEATH) {
            errno = EXDEV;
            return -1;
        }
        at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    } else {
        at = dir_fd == AT_FDCWD ? open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)
                                : fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
    }
    while (at >= 0) {
        path += strspn(path, "/");
        size_t len = strcspn(path, "/");
        const char *rest = path + len + strspn(path + len, "/");

        if (len >= sizeof(name) || (len == 2 && memcmp(path, "..", 2) == 0)) {
            errno = len >= sizeof(name) ? ENAMETOOLONG : EXDEV;
            return -1;
        }
        memcpy(name, path, len);
        name[len] = '\0';
        if (!*rest)
            return openat(at, len ? name : ".", flags | O_NOFOLLOW, mode);
        int next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        file_close(&at);
        at = next;
        path = rest;
    }
    return -1;
}

static int open_raw(int dir_fd, const char *path, int flags, mode_t mode, unsigned safe)
{
    if (!(safe & (FILE_NO_LINKS | FILE_BENEATH)))
        return openat(dir_fd, path, flags, mode);
    int fd = open_by_kernel(dir_fd, path, flags, mode, safe);
    if (fd < 0 && (errno == ENOSYS || errno == EPERM))
        fd = open_by_walk(dir_fd, path, flags, mode, safe);
    return fd;
}

static int check_opened(int fd, const char *path, unsigned safe, struct err *err)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return err_errno(err, errno, "%s", path);
    if ((safe & FILE_REGULAR) && !S_ISREG(st.st_mode))
        return err_set(err, ERR_PERMISSION, "%s: not a regular file", path);
    if ((safe & FILE_ONE_NAME) && st.st_nlink > 1)
        return err_set(err, ERR_PERMISSION, "%s: has %lu hard links", path,
                       (unsigned long)st.st_nlink);
    if ((safe & FILE_OWN) && st.st_uid != geteuid())
        return err_set(err, ERR_PERMISSION, "%s: belongs to uid %u", path, (unsigned)st.st_uid);
    return 0;
}

int file_open_safe(int dir_fd, const char *path, int flags, mode_t mode, unsigned safe,
                   struct err *err)
{
    if (strlen(path) >= LIMIT_PATH_BYTES)
        return err_set(err, ERR_PATH_TOO_LONG, "path of %zu bytes", strlen(path));

    /* A FIFO without a reader must not hold us up, nor a device be touched before (3). */
    int extra = O_CLOEXEC | O_NOCTTY | ((safe & FILE_REGULAR) ? O_NONBLOCK : 0);
    CLEANUP(file_close) int fd = open_raw(dir_fd, path, (flags & ~O_TRUNC) | extra, mode, safe);

    if (fd < 0) {
        int saved = errno;
        if (saved == ELOOP)
            return err_set(err, ERR_PERMISSION, "%s: a symbolic link is in the way", path);
        if (saved == EXDEV)
            return err_set(err, ERR_PERMISSION, "%s: leads outside its directory", path);
        return err_errno(err, saved, "%s", path);
    }
    int rc = check_opened(fd, path, safe, err);
    if (rc < 0)
        return rc;
    if ((flags & O_TRUNC) && ftruncate(fd, 0) < 0)
        return err_errno(err, errno, "truncate %s", path);
    if ((safe & FILE_REGULAR) && !(flags & O_NONBLOCK) &&
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) < 0)
        return err_errno(err, errno, "%s", path);
    int kept = fd;
    fd = -1;
    return kept;
}
