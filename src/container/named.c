/* SPDX-License-Identifier: Apache-2.0 */
/*
 * named.c - containers whose changes are kept until the job ends (--container-name)
 *
 * The first process makes the container and writes its process id; later ones of the same job on
 * this node join its namespaces while it lives, and take over its files when it does not. A lock
 * keeps them apart until each has executed its command. What jobs left behind goes after a day.
 */
#include "container/named.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "sys/files.h"

enum { KEPT_S = 24 * 3600 };

/* When a process started, in ticks: a number that is used again is another process. */
static bool start_of(long pid, unsigned long long *out)
{
    CLEANUP(str_done) struct str text = { 0 };
    char path[64];

    snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
    if (file_read(path, 8192, &text, NULL) < 0)
        return false;
    const char *after = strrchr(str_text(&text), ')');
    return after && sscanf(after + 1,
                           " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                           "%*d %*d %llu",
                           out) == 1;
}

static void find_running(struct named *named)
{
    CLEANUP(freep) char *path = mem_printf("%s/pid", named->dir);
    CLEANUP(str_done) struct str text = { 0 };
    unsigned long long began = 0, now = 1;
    long pid = 0;
    char ns[64];

    if (file_read(path, 128, &text, NULL) < 0 ||
        sscanf(str_text(&text), "%ld %llu", &pid, &began) != 2 || !start_of(pid, &now) ||
        began != now)
        return;
    snprintf(ns, sizeof(ns), "/proc/%ld/ns/user", pid);
    named->user = open(ns, O_RDONLY | O_CLOEXEC);
    snprintf(ns, sizeof(ns), "/proc/%ld/ns/mnt", pid);
    named->mnt = open(ns, O_RDONLY | O_CLOEXEC);
    if (named->user < 0 || named->mnt < 0) {
        file_close(&named->user);
        file_close(&named->mnt);
    }
}

static void remove_old(const char *all, const char *ours)
{
    DIR *dir = opendir(all);
    struct dirent *item;
    time_t now = time(NULL);

    while (dir && (item = readdir(dir))) {
        CLEANUP(freep) char *path = mem_printf("%s/%s", all, item->d_name);
        CLEANUP(freep) char *work = mem_printf("%s/work/work", path);
        struct stat info;
        if (item->d_name[0] == '.' || str_eq(path, ours) || stat(path, &info) < 0 ||
            now - info.st_mtime < KEPT_S)
            continue;
        struct named other = { .dir = path, .user = -1, .mnt = -1 };
        find_running(&other);
        if (other.user < 0) {
            chmod(work, 0700); /* the kernel leaves it closed */
            file_remove_tree(path, NULL);
        }
        file_close(&other.user);
        file_close(&other.mnt);
    }
    if (dir)
        closedir(dir);
}

int named_open(struct named *named, const char *store, const char *name, struct err *err)
{
    const char *job = getenv("SLURM_JOB_ID");
    CLEANUP(freep) char *all = mem_printf("%s/named", store);

    *named = (struct named){ .lock = -1, .user = -1, .mnt = -1 };
    if (strchr(name, '/') || name[0] == '.' || !name[0] || strlen(name) > 100)
        return err_set(err, ERR_INVALID, "--container-name: '%s' is not a name", name);
    named->dir = mem_printf("%s/%s.%s", all, job && *job ? job : "none", name);
    CLEANUP(freep) char *lock = mem_printf("%s/.lock", named->dir);
    if (file_make_dirs(named->dir, 0700, err) < 0)
        return -(int)err->code;
    named->lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (named->lock < 0 || flock(named->lock, LOCK_EX) < 0)
        return err_errno(err, errno, "%s", lock);
    utimensat(AT_FDCWD, named->dir, NULL, 0);
    find_running(named);
    remove_old(all, named->dir);
    return 0;
}

int named_publish(const struct named *named, struct err *err)
{
    CLEANUP(freep) char *path = mem_printf("%s/pid", named->dir);
    unsigned long long began = 0;
    char text[64];

    start_of(getpid(), &began);
    int len = snprintf(text, sizeof(text), "%ld %llu\n", (long)getpid(), began);
    return file_write_quick(path, text, (size_t)len, 0600, err);
}

void named_close(struct named *named)
{
    free(named->dir);
    file_close(&named->lock);
    file_close(&named->user);
    file_close(&named->mnt);
}
