/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc_tree.c - the processes below one process, read from /proc
 */
#include "spurstepd/proc_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { STOP_ROUNDS = 50, ROUND_US = 500 };

struct entry {
    pid_t pid, parent;
    bool zombie, stopped, below;
};
struct entries {
    VEC(struct entry) list;
};

void pids_done(struct pids *pids)
{
    vec_done(&pids->list);
}

/* The name in /proc/PID/stat may hold blanks and parentheses: the last ')' ends it. */
static bool read_entry(int proc_fd, const char *name, struct entry *out)
{
    char path[32], text[512], state;
    int parent;

    snprintf(path, sizeof(path), "%.20s/stat", name);
    int fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t len = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (len <= 0)
        return false;
    text[len] = '\0';
    const char *after = strrchr(text, ')');
    if (!after || sscanf(after + 1, " %c %d", &state, &parent) != 2)
        return false;
    *out = (struct entry){ .pid = (pid_t)atoi(name),
                           .parent = parent,
                           .zombie = state == 'Z' || state == 'X',
                           .stopped = state == 'T' || state == 't' };
    return true;
}

static void read_all(struct entries *out)
{
    DIR *dir = opendir("/proc");
    struct dirent *item;
    struct entry entry;

    if (!dir)
        return;
    while ((item = readdir(dir))) {
        if (item->d_name[0] < '1' || item->d_name[0] > '9')
            continue;
        if (read_entry(dirfd(dir), item->d_name, &entry))
            vec_push(&out->list, entry);
    }
    closedir(dir);
}

static int by_pid(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static struct entry *find(struct entries *all, pid_t pid)
{
    struct entry key = { .pid = pid };

    if (all->list.len == 0)
        return NULL;
    return bsearch(&key, all->list.items, all->list.len, sizeof(key), by_pid);
}

/* Marks those below `root` in `all`. */
static void mark_below(pid_t root, struct entries *all)
{
    bool found = true;

    read_all(all);
    qsort(all->list.items, all->list.len, sizeof(struct entry), by_pid);
    while (found) {
        found = false;
        vec_each (struct entry, entry, &all->list) {
            if (entry->below)
                continue;
            struct entry *parent = find(all, entry->parent);
            if (entry->parent == root || (parent && parent->below))
                entry->below = found = true;
        }
    }
}

void proc_tree_list(pid_t root, struct pids *out)
{
    struct entries all = { 0 };

    mark_below(root, &all);
    vec_each (struct entry, entry, &all.list) {
        if (entry->below && !entry->zombie)
            vec_push(&out->list, entry->pid);
    }
    vec_done(&all.list);
}

size_t proc_tree_signal(pid_t root, int sig)
{
    CLEANUP(pids_done) struct pids pids = { 0 };

    proc_tree_list(root, &pids);
    vec_each (pid_t, pid, &pids.list)
        kill(*pid, sig);
    return pids.list.len;
}

/* One round. Returns how many were seen running. */
static size_t stop_running(pid_t root)
{
    struct entries all = { 0 };
    size_t running = 0;

    mark_below(root, &all);
    vec_each (struct entry, entry, &all.list) {
        if (!entry->below || entry->zombie || entry->stopped)
            continue;
        running++;
        kill(entry->pid, SIGSTOP);
    }
    vec_done(&all.list);
    return running;
}

bool proc_tree_stop(pid_t root)
{
    for (int round = 0; round < STOP_ROUNDS; round++) {
        if (round > 1)
            usleep(ROUND_US); /* a process on another CPU needs a moment to stop */
        if (stop_running(root) == 0)
            return true;
    }
    return false;
}

size_t proc_tree_kill(pid_t root)
{
    proc_tree_stop(root);
    return proc_tree_signal(root, SIGKILL);
}
