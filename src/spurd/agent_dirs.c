/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent_dirs.c - the spool, which survives a reboot, and the run directory, which is best in memory
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/limits.h"
#include "spurd/agent_priv.h"
#include "spurd/root.h"
#include "sys/files.h"
#include "sys/log.h"

enum { TMPFS_MAGIC_NUMBER = 0x01021994 };

static bool in_memory(const char *path)
{
    struct statfs info;

    return statfs(path, &info) == 0 && info.f_type == TMPFS_MAGIC_NUMBER;
}

/* Ours alone: somebody else could have made a directory of that name before us. */
static bool make_own_dir(const char *path)
{
    struct stat info;

    if (mkdir(path, 0711) < 0 && errno != EEXIST)
        return false;
    CLEANUP(file_close) int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd >= 0 && fstat(fd, &info) == 0 && info.st_uid == geteuid() &&
           (info.st_mode & 022) == 0 && fchmod(fd, 0711) == 0;
}

/* By the spool's place, so that several agents of one machine do not meet. */
static char *choose_run_dir(const char *spool)
{
    const char *const places[] = { "/run", getenv("XDG_RUNTIME_DIR"), "/dev/shm" };
    uint64_t number = hash_bytes(spool, strlen(spool), 0);

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (!places[i] || !in_memory(places[i]))
            continue;
        char *path = mem_printf("%s/spurd-%u-%012llx", places[i], (unsigned)geteuid(),
                                (unsigned long long)(number & 0xffffffffffffULL));
        if (make_own_dir(path))
            return path;
        free(path);
    }
    return mem_printf("%s/run", spool);
}

/* What an earlier run of ours chose stays, as long as it is there: its steps are in it. */
static char *find_run_dir(struct agent *agent, const char *asked)
{
    CLEANUP(freep) char *link = mem_printf("%s/run-dir", agent->spool_dir);
    char target[LIMIT_PATH_BYTES];
    ssize_t len = readlink(link, target, sizeof(target) - 1);

    if (len > 0) {
        target[len] = '\0';
        if ((!asked || str_eq(asked, target)) && make_own_dir(target))
            return mem_strdup(target);
    }
    char *path = asked ? mem_strdup(asked) : choose_run_dir(agent->spool_dir);
    unlink(link);
    if (symlink(path, link) < 0)
        log_warn("agent.run_dir", "path=%s error=%s", link, strerror(errno));
    return path;
}

int agent_open_dirs(struct agent *agent, const struct agent_options *options, struct err *err)
{
    CLEANUP(freep) char *ended = mem_printf("%s/ended", options->spool_dir);
    CLEANUP(freep) char *lock = mem_printf("%s/spurd.lock", options->spool_dir);
    char full[LIMIT_PATH_BYTES];

    if (file_make_dirs(options->spool_dir, 0711, err) < 0 || file_make_dirs(ended, 0700, err) < 0)
        return err_wrap(err, "spool directory");
    agent->spool_dir = mem_strdup(realpath(options->spool_dir, full) ? full : options->spool_dir);
    agent->lock_fd = file_lock(lock, err);
    if (agent->lock_fd < 0)
        return err_wrap(err, "spool directory '%s' is in use", agent->spool_dir);
    agent->run_dir = find_run_dir(agent, options->run_dir);
    if (file_make_dirs(agent->run_dir, 0711, err) < 0)
        return err_wrap(err, "run directory");
    CLEANUP(freep) char *logins = mem_printf("%s/extern", agent->run_dir);
    if (file_make_dirs(logins, 0700, err) <
        0) /* pam_spur refuses logins by it, before the first job too */
        return -(int)err->code;
    return 0;
}
