/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pam_spur.c - logins to a node: only with a job there, and as a part of it
 *
 * A module for sshd's account stack. With prolog_flags = "Contain" spurd writes a line about each job of its node to a file
 * that root alone reads (RUN/extern/JOB.ATTEMPT: uid, job, start, cgroup). Who has a job there is let in, and the process is
 * moved into the job's extern cgroup: the session has the job's limits and ends with the job. Options and their words are
 * those of pam_slurm_adopt, as far as they make sense here; an option that is not known refuses everybody.
 *
 * (1) It runs inside another program, as root: it links nothing of ours, keeps nothing and does not wait.
 * (2) Files and directories that are not root's are not believed.
 */
#define PAM_SM_ACCOUNT
#define PAM_SM_SESSION

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <security/pam_appl.h>
#include <security/pam_ext.h>
#include <security/pam_modules.h>

#define SPOOL_DIR "/var/spool/spurd"

enum { PATH_BYTES = 4096, BUFFER_BYTES = 16384, LINE_BYTES = 8192 };

enum action { ACT_DENY, ACT_ALLOW, ACT_IGNORE, ACT_NEWEST };

struct settings {
    enum action no_jobs, unknown, generic_failure, adopt_failure;
    char spool[PATH_BYTES];
    const char *nodename;
    bool ignore_root, bad;
};

struct job {
    uint32_t id;
    long long start_us;
    char cgroup[PATH_BYTES];
};

/* ---- options ---- */

static const struct word {
    const char *option, *value;
    size_t offset;
    enum action action;
} words[] = {
    { "action_no_jobs=", "deny", offsetof(struct settings, no_jobs), ACT_DENY },
    { "action_no_jobs=", "ignore", offsetof(struct settings, no_jobs), ACT_IGNORE },
    { "action_unknown=", "newest", offsetof(struct settings, unknown), ACT_NEWEST },
    { "action_unknown=", "allow", offsetof(struct settings, unknown), ACT_ALLOW },
    { "action_unknown=", "deny", offsetof(struct settings, unknown), ACT_DENY },
    { "action_generic_failure=", "ignore", offsetof(struct settings, generic_failure), ACT_IGNORE },
    { "action_generic_failure=", "allow", offsetof(struct settings, generic_failure), ACT_ALLOW },
    { "action_generic_failure=", "deny", offsetof(struct settings, generic_failure), ACT_DENY },
    { "action_adopt_failure=", "allow", offsetof(struct settings, adopt_failure), ACT_ALLOW },
    { "action_adopt_failure=", "deny", offsetof(struct settings, adopt_failure), ACT_DENY },
};

static bool read_action(struct settings *settings, const char *text)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t len = strlen(words[i].option);
        if (strncmp(text, words[i].option, len) != 0 || strcmp(text + len, words[i].value) != 0)
            continue;
        memcpy((char *)settings + words[i].offset, &words[i].action, sizeof(enum action));
        return true;
    }
    return false;
}

static void read_settings(pam_handle_t *pam, struct settings *settings, int argc, const char **argv)
{
    const char *spool = SPOOL_DIR;

    *settings = (struct settings){ .no_jobs = ACT_DENY,
                                   .unknown = ACT_NEWEST,
                                   .generic_failure = ACT_IGNORE,
                                   .adopt_failure = ACT_ALLOW,
                                   .ignore_root = true };
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "spool_dir=/", 11) == 0)
            spool = argv[i] + 10;
        else if (strncmp(argv[i], "nodename=", 9) == 0)
            settings->nodename = argv[i] + 9;
        else if (strcmp(argv[i], "ignore_root=0") == 0 || strcmp(argv[i], "ignore_root=1") == 0)
            settings->ignore_root = argv[i][12] == '1';
        else if (!read_action(settings, argv[i])) {
            pam_syslog(pam, LOG_ERR, "'%s' is not an option; nobody is let in", argv[i]);
            settings->bad = true;
        }
    }
    const char *place = strstr(spool, "%n"); /* several nodes on one host */
    if (place && settings->nodename)
        snprintf(settings->spool, sizeof(settings->spool), "%.*s%s%s", (int)(place - spool), spool,
                 settings->nodename, place + 2);
    else
        snprintf(settings->spool, sizeof(settings->spool), "%s", spool);
}

/* ---- jobs of the user ---- */

static bool is_roots(int fd, bool directory)
{
    struct stat info;

    return fstat(fd, &info) == 0 && info.st_uid == 0 && !(info.st_mode & (S_IWGRP | S_IWOTH)) &&
           (directory ? S_ISDIR(info.st_mode) : S_ISREG(info.st_mode));
}

/* "UID JOB START CGROUP" */
static bool read_job(int dir_fd, const char *name, uid_t uid, struct job *out)
{
    char line[LINE_BYTES];
    unsigned long owner;
    unsigned id;
    int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    ssize_t len = fd >= 0 && is_roots(fd, false) ? read(fd, line, sizeof(line) - 1) : -1;

    if (fd >= 0)
        close(fd);
    if (len <= 0)
        return false;
    line[len] = '\0';
    if (sscanf(line, "%lu %u %lld %4095s", &owner, &id, &out->start_us, out->cgroup) != 4 ||
        owner != uid)
        return false;
    out->id = id;
    return true;
}

/* How many jobs the user has here, the newest of them in *newest; -1: it is not known. */
static int find_jobs(int dir_fd, uid_t uid, struct job *newest)
{
    int count = 0, copy = dup(dir_fd);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    struct dirent *entry;
    struct job job;

    if (!dir) {
        if (copy >= 0)
            close(copy);
        return -1;
    }
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] == '.' || !read_job(dir_fd, entry->d_name, uid, &job))
            continue;
        if (count++ == 0 || job.start_us > newest->start_us ||
            (job.start_us == newest->start_us && job.id > newest->id))
            *newest = job;
    }
    closedir(dir);
    return count;
}

/* ---- the session becomes a part of the job ---- */

/* Our own process, and with it the session's that begins in it. */
static bool adopt(const struct job *job)
{
    char path[PATH_BYTES + 32];

    snprintf(path, sizeof(path), "%s/cgroup.procs", job->cgroup);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, "0", 1) == 1;
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return ok;
}

static int result_of(enum action action)
{
    return action == ACT_IGNORE ? PAM_IGNORE : action == ACT_ALLOW ? PAM_SUCCESS : PAM_PERM_DENIED;
}

static int refuse(pam_handle_t *pam, const char *user)
{
    pam_syslog(pam, LOG_NOTICE, "user %s has no job on this node", user);
    pam_error(pam, "Access denied by pam_spur: you have no active jobs on this node");
    return PAM_PERM_DENIED;
}

static int decide(pam_handle_t *pam, const struct settings *settings, int dir_fd, const char *user,
                  uid_t uid)
{
    struct job job;
    int count = find_jobs(dir_fd, uid, &job);

    if (count < 0)
        return result_of(settings->generic_failure);
    if (count == 0)
        return settings->no_jobs == ACT_IGNORE ? PAM_IGNORE : refuse(pam, user);
    if (count > 1 && settings->unknown != ACT_NEWEST) {
        pam_syslog(pam, LOG_NOTICE, "user %s has %d jobs here; action_unknown decides", user,
                   count);
        return result_of(settings->unknown);
    }
    if (adopt(&job)) {
        pam_syslog(pam, LOG_INFO, "session of %s adopted by job %u", user, job.id);
        return PAM_SUCCESS;
    }
    pam_syslog(pam, LOG_ERR, "session of %s could not be adopted by job %u: %m", user, job.id);
    return result_of(settings->adopt_failure);
}

/* ---- what PAM calls ---- */

PAM_EXTERN int pam_sm_acct_mgmt(pam_handle_t *pam, int flags, int argc, const char **argv)
{
    char buffer[BUFFER_BYTES], path[PATH_BYTES + 32];
    struct settings settings;
    struct passwd entry, *found = NULL;
    const char *user = NULL;

    (void)flags;
    read_settings(pam, &settings, argc, argv);
    if (settings.bad)
        return PAM_PERM_DENIED;
    if (pam_get_user(pam, &user, NULL) != PAM_SUCCESS || !user ||
        getpwnam_r(user, &entry, buffer, sizeof(buffer), &found) != 0 || !found) {
        pam_syslog(pam, LOG_ERR, "the user is not known");
        return PAM_USER_UNKNOWN;
    }
    if (found->pw_uid == 0 && settings.ignore_root)
        return PAM_IGNORE;
    snprintf(path, sizeof(path), "%s/run-dir/extern", settings.spool);
    int dir_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0 || !is_roots(dir_fd, true)) { /* (2) */
        pam_syslog(pam, LOG_ERR, "%s: %s; spurd writes there with prolog_flags = \"Contain\"", path,
                   dir_fd < 0 ? strerror(errno) : "not root's alone");
        if (dir_fd >= 0)
            close(dir_fd);
        return result_of(settings.generic_failure);
    }
    int result = decide(pam, &settings, dir_fd, user, found->pw_uid);
    close(dir_fd);
    return result;
}

PAM_EXTERN int pam_sm_open_session(pam_handle_t *pam, int flags, int argc, const char **argv)
{
    (void)pam, (void)flags, (void)argc, (void)argv;
    return PAM_SUCCESS;
}

PAM_EXTERN int pam_sm_close_session(pam_handle_t *pam, int flags, int argc, const char **argv)
{
    (void)pam, (void)flags, (void)argc, (void)argv;
    return PAM_SUCCESS;
}
