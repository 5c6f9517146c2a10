/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroups.c - where this node's jobs have their cgroups, and ending what is in one
 *
 * Under systemd with Delegate=yes that is jobs/ below our own unit; otherwise spur/CLUSTER-NODE below
 * the mount of cgroup version 2, or below what is configured. Controllers are passed down where the
 * kernel lets us.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "spurd/node/cgroups.h"
#include "spurd/root.h"
#include "sys/files.h"

enum { END_TRIES = 100, ENVIRON_BYTES = 8 * 1024 * 1024 };

static bool put(const char *dir, const char *file, const char *text)
{
    CLEANUP(freep) char *path = mem_printf("%s/%s", dir, file);
    CLEANUP(file_close) int fd = open(path, O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, text, strlen(text)) >= 0;
}

static void get(const char *dir, const char *file, struct str *out)
{
    CLEANUP(freep) char *path = mem_printf("%s/%s", dir, file);

    str_clear(out);
    file_read(path, 64 * 1024, out, NULL);
    while (out->len && out->data[out->len - 1] == '\n')
        str_truncate(out, out->len - 1);
}

static char *find_mount(void)
{
    FILE *mounts = fopen("/proc/self/mounts", "r");
    char line[4096], path[2048], type[64], *found = NULL;

    while (mounts && !found && fgets(line, sizeof(line), mounts)) {
        if (sscanf(line, "%*s %2047s %63s", path, type) == 2 && strcmp(type, "cgroup2") == 0)
            found = mem_strdup(path);
    }
    if (mounts)
        fclose(mounts);
    return found;
}

/* Our own cgroup of version 2, when systemd made it for us alone. */
static char *find_unit(const char *mount)
{
    CLEANUP(str_done) struct str text = { 0 };

    if (file_read("/proc/self/cgroup", 64 * 1024, &text, NULL) < 0)
        return NULL;
    const char *line = strstr(str_text(&text), "0::/");
    if (!line || (line != text.data && line[-1] != '\n'))
        return NULL;
    CLEANUP(freep) char *path = mem_strndup(line + 3, strcspn(line + 3, "\n"));
    if (!str_ends(path, ".service"))
        return NULL;
    return mem_printf("%s%s", mount, path);
}

static void pass_down(const char *dir)
{
    static const char *const wanted[] = { "+cpuset", "+memory", "+pids", "+cpu", "+io" };

    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        put(dir, "cgroup.subtree_control", wanted[i]);
}

static bool make(const char *dir, char *words, size_t words_bytes)
{
    if (mkdir(dir, 0755) == 0 || errno == EEXIST) {
        pass_down(dir);
        return true;
    }
    snprintf(words, words_bytes, "process tree (no cgroup '%.160s': %s)", dir, strerror(errno));
    return false;
}

/* No process may be where controllers are passed down from. */
static char *under_unit(const char *unit, char *words, size_t words_bytes)
{
    CLEANUP(freep) char *own = mem_printf("%s/agent", unit);
    CLEANUP(freep) char *jobs = mem_printf("%s/jobs", unit);

    if (mkdir(own, 0755) < 0 && errno != EEXIST)
        return NULL;
    if (!put(own, "cgroup.procs", "0"))
        return NULL;
    pass_down(unit);
    return make(jobs, words, words_bytes) ? TAKE(jobs) : NULL;
}

static void plain_name(char *name)
{
    for (; *name; name++) {
        if (*name == '/' || (unsigned char)*name < ' ')
            *name = '_';
    }
}

static char *under_root(const char *base, const char *cluster, const char *node, char *words,
                        size_t words_bytes)
{
    CLEANUP(freep) char *name = mem_printf("%s-%s", cluster, node);

    plain_name(name);
    CLEANUP(freep) char *dir = mem_printf("%s/%s", base, name);
    if (!make(base, words, words_bytes) || !make(dir, words, words_bytes))
        return NULL;
    return TAKE(dir);
}

char *cgroups_open(const char *root, const char *cluster, const char *node, char *words,
                   size_t words_bytes)
{
    CLEANUP(freep) char *mount = find_mount();
    CLEANUP(freep) char *unit = NULL;
    CLEANUP(str_done) struct str controllers = { 0 };
    char *dir = NULL;

    if (str_eq(root, "none") || (str_is_empty(root) && !mount)) {
        snprintf(words, words_bytes, "process tree (cgroups are %s)",
                 mount ? "turned off" : "not mounted");
        return NULL;
    }
    if (str_is_empty(root) && (unit = find_unit(mount)))
        dir = under_unit(unit, words, words_bytes);
    if (!dir) {
        const char *top = str_is_empty(root) ? mount : root;
        CLEANUP(freep) char *base = mem_printf("%s/spur", top);
        pass_down(top);
        dir = under_root(base, cluster, node, words, words_bytes);
    }
    if (!dir)
        return NULL;
    get(dir, "cgroup.subtree_control", &controllers);
    snprintf(words, words_bytes, "cgroup v2 (%s)",
             controllers.len ? str_text(&controllers) : "no controllers");
    return dir;
}

/* ---- ending ---- */

bool cgroups_have(const char *dir, const char *controller)
{
    CLEANUP(str_done) struct str text = { 0 };

    get(dir, "cgroup.subtree_control", &text);
    if (!controller)
        return text.len > 0;
    CLEANUP(freep) char *padded = mem_printf(" %s ", str_text(&text));
    CLEANUP(freep) char *word = mem_printf(" %s ", controller);
    return strstr(padded, word) != NULL;
}

/*
 * One by one: after cgroup.kill, some kernels end at once what is started right into that cgroup. Again, for
 * what was forked meanwhile.
 */
void cgroups_kill(const char *dir)
{
    CLEANUP(str_done) struct str text = { 0 };

    for (int round = 0; round < 3; round++) {
        get(dir, "cgroup.procs", &text);
        const char *list = str_text(&text);
        struct span word;
        while (str_next(&list, "\n", &word)) {
            pid_t pid = (pid_t)strtol(word.ptr, NULL, 10);
            if (pid > 1)
                kill(pid, SIGKILL);
        }
    }
}

/* "…/7.1/batch" below "7.1", which is then empty; "…/7.1.batch" alone. */
bool cgroups_end(const char *step_dir)
{
    const char *slash = strrchr(step_dir, '/');
    CLEANUP(freep) char *job_dir = mem_strndup(step_dir, (size_t)(slash - step_dir));

    for (int i = 0; i < END_TRIES; i++) {
        put(step_dir, "cgroup.kill", "1");
        if (rmdir(step_dir) == 0 || errno == ENOENT) {
            if (!strchr(slash, '.'))
                rmdir(job_dir);
            return true;
        }
        usleep(10000);
    }
    return false;
}

static bool is_marked(const char *pid, const char *job, const char *node)
{
    CLEANUP(freep) char *path = mem_printf("/proc/%s/environ", pid);
    CLEANUP(str_done) struct str text = { 0 };
    int found = 0;

    if (file_read(path, ENVIRON_BYTES, &text, NULL) < 0)
        return false;
    for (const char *p = str_text(&text), *end = p + text.len; p < end; p += strlen(p) + 1)
        found += strcmp(p, job) == 0 || strcmp(p, node) == 0;
    return found == 2;
}

void cgroups_end_marked(uint32_t job, uint32_t attempt, const char *socket)
{
    CLEANUP(freep) char *job_mark = mem_printf("SPUR_JOB=%u.%u", job, attempt);
    CLEANUP(freep) char *node_mark = mem_printf("SPUR_NODE_SOCKET=%s", socket);
    struct dirent *item;
    bool found = true;

    for (int round = 0; found && round < END_TRIES; round++) {
        DIR *dir = opendir("/proc");
        found = false;
        while (dir && (item = readdir(dir))) {
            if (item->d_name[0] < '1' || item->d_name[0] > '9' ||
                !is_marked(item->d_name, job_mark, node_mark))
                continue;
            found = kill((pid_t)atoi(item->d_name), SIGKILL) == 0 || found;
        }
        if (dir)
            closedir(dir);
        if (found)
            usleep(10000);
    }
}

static bool names_dir(const char *pid, const char *dir)
{
    CLEANUP(freep) char *path = mem_printf("/proc/%s/cmdline", pid);
    CLEANUP(str_done) struct str text = { 0 };

    return file_read(path, 64 * 1024, &text, NULL) == 0 &&
           memmem(str_text(&text), text.len, dir, strlen(dir)) != NULL;
}

/* A supervisor's title is written over its arguments; its log is in the run directory all the same. */
static bool writes_in(const char *pid, const char *dir)
{
    CLEANUP(freep) char *path = mem_printf("/proc/%s/fd/2", pid);
    char link[4096];
    ssize_t len = readlink(path, link, sizeof(link) - 1);
    size_t dir_len = strlen(dir);

    return len > (ssize_t)dir_len && memcmp(link, dir, dir_len) == 0 && link[dir_len] == '/';
}

static void remove_below(const char *dir)
{
    DIR *list = opendir(dir);
    struct dirent *entry;

    while (list && (entry = readdir(list))) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        CLEANUP(freep) char *path = mem_printf("%s/%s", dir, entry->d_name);
        remove_below(path);
        rmdir(path);
    }
    if (list)
        closedir(list);
}

/* What was killed needs a moment to go. */
static void remove_killed(const char *dir)
{
    for (int i = 0; i < END_TRIES; i++) {
        remove_below(dir);
        if (rmdir(dir) == 0 || errno == ENOENT)
            return;
        usleep(10000);
    }
}

/*
 * Ends every job of this node, its supervisors and the zygote: they have the run directory in their
 * arguments or their log in it, and jobs are in the node's cgroup. For SIGQUIT; otherwise jobs
 * outlive us.
 */
void cgroups_end_node(const char *cgroup, const char *run_dir)
{
    DIR *all = opendir("/proc");
    struct dirent *entry;
    struct err err;

    if (cgroup)
        put(cgroup, "cgroup.kill", "1");
    while (all && (entry = readdir(all))) {
        int pid = atoi(entry->d_name);
        if (pid > 1 && pid != getpid() &&
            (names_dir(entry->d_name, run_dir) || writes_in(entry->d_name, run_dir)))
            kill(pid, SIGKILL);
    }
    if (all)
        closedir(all);
    if (cgroup) {
        put(cgroup, "cgroup.kill", "1"); /* what was started meanwhile */
        remove_killed(cgroup);
    }
    file_remove_tree(run_dir, &err);
}
